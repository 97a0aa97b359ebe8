"""Statements about Bellman consistency, hard negatives and the two-head control: supplement."""

from __future__ import annotations

from toptail_paper.claims.criteria import (
    WEAKLY,
    ZERO,
    Criterion,
    Words,
    at_least,
    at_most,
    below,
    between,
    listed,
    near,
    pick,
    short_by_at_most,
    spelled,
    where,
)
from toptail_paper.claims.findings import Answer, Finding, from_tasks, ruled, scope
from toptail_paper.claims.ledger import Claim
from toptail_paper.claims.numbers import (
    BY_TASK,
    Number,
    Numbers,
    Tables,
    difference,
    each,
    least,
    less,
    most,
    over_tdq,
    quotient,
    ratio,
)
from toptail_paper.claims.reported import (
    CONTRASTIVE,
    CORE,
    CRITICS,
    EIGHT,
    HUMANOID,
    MANIPULATION,
    NAVIGATION,
    RANKERS,
    TDQ,
)

HARD = "hard_negative_auc"
LEAST = (*RANKERS, *TDQ)
"""A statement about TD-Q and the contrastive critics is decided where at least these are there."""
WORKS = short_by_at_most(0.05)
"""How far behind TD-Q's a tau still works."""


@ruled(
    NAVIGATION,
    "every seed's RMSE(δ)/std(f) of hybrid lies above all of TD-Q's and below all of raw's and "
    "cosine's",
)
def hybrid_between(tables: Tables) -> Finding:
    """Hybrid's error lies between TD-Q's and the lower of raw's and cosine's."""
    found = where(tables, each("bellman", "rmse", CRITICS, "{critic}"), NAVIGATION)
    hybrid = {task: cells["hybrid"] for task, cells in found.items()}
    parts = {
        task: {
            task: cells["tdq"].below(cells["hybrid"])
            and all(cells["hybrid"].below(cells[other]) for other in RANKERS)
        }
        for task, cells in found.items()
    }
    return from_tasks(
        parts,
        hybrid[pick(hybrid, "highest")],
        "Criterion: every seed's RMSE(δ)/std(f) lies above all of TD-Q's and below all of raw's "
        f"and cosine's. Hybrid: {spelled(hybrid)}." + scope(list(found), NAVIGATION),
    )


@ruled(
    EIGHT,
    "no two critics change places between random and hard negatives, with disjoint intervals in "
    "both",
)
def hard_order(tables: Tables) -> Finding:
    """No two critics change places between random and hard negatives."""
    easy, hard = (
        each("retrieval", metric, CRITICS, "{critic}", required=LEAST) for metric in ("auc", HARD)
    )
    found = where(tables, hard.given(easy), EIGHT)
    parts: dict[str, dict[str, Answer]] = {}
    swaps = []
    for task, after in found.items():
        before = easy.of(tables, task)
        both = [critic for critic in after if critic in before]
        mine = [
            f"{a} and {b} on {task}"
            for a in both
            for b in both
            if _ahead(before[a], before[b]) and _ahead(after[b], after[a])
        ]
        parts[task] = {task: not mine}
        swaps += mine
    return from_tasks(
        parts,
        Number(float(len(swaps))),
        "Criterion: no two of the critics change places with disjoint intervals in both. The "
        f"number counts those that do{': ' + ', '.join(swaps) if swaps else ''}."
        + scope(list(found), EIGHT),
    )


def _ahead(x: Number, y: Number) -> bool:
    """Whether one number is clearly the larger."""
    return x.low > y.high


@ruled(
    CORE,
    f"tau of the joint q_td is {WORKS} TD-Q's on PointMaze and AntMaze, and {WEAKLY} on "
    "HumanoidMaze",
)
def joint_order(tables: Tables) -> Finding:
    """The joint variant orders like TD-Q on PointMaze and AntMaze, and weakly on HumanoidMaze."""
    found = where(tables, each("twohead", "tau", ("tdq_ref", "joint"), "{critic}"), CORE)
    parts: dict[str, dict[str, Answer]] = {}
    less_than = {}
    for task, cells in found.items():
        less_than[task] = difference(cells["joint"], cells["tdq_ref"])
        if task == HUMANOID:
            share = quotient(cells["joint"], cells["tdq_ref"])
            parts[task] = {f"weak on {task}": WEAKLY.asked(share)}
        else:
            parts[task] = {f"works on {task}": WORKS.asked(less_than[task])}
    at = pick(less_than, "first")
    return from_tasks(
        parts,
        less_than[at],
        f"Criterion: tau of the joint q_td {WORKS} TD-Q's on PointMaze and AntMaze, {WEAKLY} "
        f"on HumanoidMaze. Joint less TD-Q: {spelled(less_than)}; the number is that of {at}."
        + scope(list(found), CORE),
    )


def two_heads(metric: str, reference: str, what: str, name: str = BY_TASK) -> Numbers:
    """A metric of the separate variant less that of a reference."""
    separate = each("twohead", metric, ("separate",), name)
    return less(separate, each("twohead", metric, (reference,)), what)


# fmt: off
CHECKS: tuple[Claim, ...] = (
    Claim("tdq-consistent",
          "TD-Q has normalized [Bellman] error near 0.05.", "tab:bellman",
          Criterion(each("bellman", "rmse", TDQ), NAVIGATION, at_most(0.075),
                    "RMSE(δ)/std(f) of {condition}; the paper has 0.036 to 0.051")),
    Claim("contrastive-error",
          "The contrastive scores are 4–8× larger.", "tab:bellman",
          Criterion(over_tdq("bellman", "rmse", RANKERS), NAVIGATION, between(4.0, 8.0),
                    "RMSE(δ)/std(f) of raw and cosine {condition} times TD-Q's. It depends on a "
                    "score's arbitrary offset", own=True)),
    Claim("contrastive-error-range",
          "[Their errors range] from 0.2 to 0.38.", "app:bellman",
          Criterion(each("bellman", "rmse", RANKERS), NAVIGATION, between(0.195, 0.385),
                    "RMSE(δ)/std(f) of raw and cosine {condition}, which rounds to 0.2 to 0.38. It "
                    "depends on a score's arbitrary offset", shown="highest")),
    Claim("hybrid-between",
          "Hybrid lies between them.", "tab:bellman",
          hybrid_between),
    Claim("consistent-without-offset",
          "TD-Q is nearly consistent, whereas the contrastive scores are not.", "tab:bellman",
          Criterion(over_tdq("bellman", "std", CONTRASTIVE, "Times TD-Q's")
                    .given(each("bellman", "rmse", CRITICS)), NAVIGATION, at_least(2.0),
                    "Criterion, in std(δ)/std(f), which no constant added to a score changes: "
                    "every contrastive score {condition} times TD-Q's, and {also}. {numbers}",
                    digits=".2f",
                    beside=(listed(ratio(each("bellman", "rmse", CRITICS),
                                         each("bellman", "std", CRITICS),
                                         "The paper's RMSE(δ)/std(f) is larger by these factors, "
                                         "which are the offset's"), ".2f"),))
          & Criterion(each("bellman", "std", TDQ, "TD-Q on {task}").called(""), NAVIGATION,
                      at_most(0.1), "TD-Q {condition:.2f}")),
    Claim("hard-order",
          "Even with these harder negatives, the critic ordering is unchanged on every "
          "task.", "app:retrieval",
          hard_order),
    Claim("manipulation-hard",
          "Contrastive readouts remain the strongest retrievers, with manipulation AUC at 0.94–1.0 "
          "[under hard negatives] …", "app:retrieval",
          Criterion(each("retrieval", HARD, RANKERS), MANIPULATION, at_least(0.935),
                    "a paired win rate of {condition}, which rounds to the paper's 0.94")),
    Claim("hard-tdq-weakest",
          "… and TD-Q remains the weakest.", "app:retrieval",
          Criterion(less(each("retrieval", HARD, TDQ, BY_TASK),
                         least(each("retrieval", HARD, CONTRASTIVE, required=RANKERS)),
                         "TD-Q less the lowest of those"), EIGHT, below(ZERO),
                    "TD-Q's win rate is below every contrastive critic's", own=True)),
    Claim("same-trajectory",
          "With same-trajectory goals at different temporal distances, every critic performs at "
          "chance …", "app:retrieval",
          Criterion(each("retrieval", "same_trajectory", CRITICS, required=LEAST), EIGHT,
                    near(0.5, 0.03),
                    "Criterion: {condition}. This holds by construction for every score, a perfect "
                    "one too: both goals are drawn by one rule, so that which of them is called "
                    "the goal is a coin toss. The number is that of {shown}, the farthest from 0.5 "
                    "among {count} cells.", certain=True)),
    Claim("temporal-precision",
          "… [this] measures temporal precision rather than compatibility and does not separate "
          "the critics.", "app:retrieval",
          Criterion(less(most(each("retrieval", "nearer_goal", CRITICS)),
                         least(each("retrieval", "nearer_goal", CRITICS)), "Differences"),
                    NAVIGATION, at_most(0.05),
                    "The paper's construction cannot separate any scores (see the entry before). "
                    "Asked instead how often the nearer of the two goals scores higher, criterion: "
                    "{condition} between the best and the worst critic. {numbers}",
                    beside=(listed(each("retrieval", "nearer_goal", CRITICS).called("Win "
                                                                                    "rates")),))),
    Claim("separate-order",
          "The separate two-head variant matches TD-Q's γ^d ordering on all three tasks, "
          "…", "tab:twohead",
          Criterion(two_heads("tau", "tdq_ref", "Difference from tdq_ref", "separate on {task}"),
                    CORE, near(Words(0.0, "TD-Q's"), 0.03), "tau of q_td {condition}",
                    shown="farthest from zero")),
    Claim("separate-near-perfect",
          "… while its cosine head keeps retrieval AUC near 0.99.", "tab:twohead",
          Criterion(each("twohead", "auc", ("separate",)), CORE, at_least(0.955),
                    "AUC of f_cos of {condition}; the paper says near 0.99 and has 0.962 to "
                    "0.998")),
    Claim("separate-retrieval",
          "A separate TD head restores value ordering without reducing the cosine retrieval "
          "score.", "app:twohead",
          Criterion(two_heads("auc", "cosine_ref", "AUC less cosine's"), CORE,
                    short_by_at_most(0.01), "AUC of f_cos {condition} the cosine critic's",
                    part="retrieval on {}")
          & Criterion(two_heads("tau", "tdq_ref", "Tau less TD-Q's"), CORE, short_by_at_most(0.03),
                      "tau of q_td {condition} TD-Q's", part="order on {}")),
    Claim("joint-order",
          "The joint variant works on PointMaze and AntMaze, but its value ordering is weak on "
          "HumanoidMaze.", "tab:twohead",
          joint_order),
)
# fmt: on
"""Bellman consistency, hard negatives, two heads."""
