"""How statements about the order within a pool are decided: every judge is asked.

The cases of a criterion here are judges, not tasks: a folder holds one task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toptail_paper.claims.criteria import (
    HALF,
    WEAK_OR_INVERTED,
    ZERO,
    Condition,
    Criterion,
    above,
    at_least,
    at_most,
    below,
    spelled,
)
from toptail_paper.claims.findings import (
    PART,
    Answer,
    Finding,
    elsewhere,
    from_parts,
    ruled,
    scope,
)
from toptail_paper.claims.numbers import (
    Named,
    NotMeasuredError,
    Number,
    Numbers,
    Tables,
    from_seeds,
    number,
    quotient,
)
from toptail_paper.claims.reported import CONTRASTIVE, CORE, POINT, WAYS

MAIN, SQUARE = "fixed-query", "function-class"
TAU, REGRET = "tau_b_64", "nregret_64"

NAMES = {
    "tdq": "TD-Q",
    "raw": "raw",
    "cosine": "cosine",
    "hybrid": "hybrid",
    "td_bilinear": "TD bilinear",
    "nce_mlp": "contrastive MLP",
    "two_head_joint": "q_td",
    "two_head_joint.f_cos": "f_cos",
}

HEADS = ("two_head_joint", "two_head_joint.f_cos")
"""The value and the cosine of one checkpoint."""

FLAT = below(0.415)
"""The largest tau_b that the paper still calls near-flat is 0.41."""
ORDERS = at_least(0.595)
"""The smallest tau_b at which the paper says that a score orders is 0.60."""
JUDGE = "the judge"
"""What a statement depends on that one judge confirms and another does not."""
RANDOM_LEVEL = at_least(0.655)
"""The paper calls normalized regrets from 0.66 to 1.15 random-level."""


def one_task(tables: Tables, table: str = MAIN) -> str:
    """The first task of a table; a folder holds one."""
    for task in tables.get(table, {}).get("rows", {}):
        return str(task)
    raise NotMeasuredError(f"no table '{table}'")


def only_task(table: str = MAIN) -> Callable[[Tables], Sequence[str]]:
    """The task that a criterion is asked on."""
    return lambda tables: [one_task(tables, table)]


def judges(tables: Tables, task: str, critic: str = "tdq", table: str = MAIN) -> dict[str, str]:
    """The judges that are asked about a critic, and the prefix of their metrics.

    The reference, and of those that know the maze's ways the first.
    """
    row = tables.get(table, {}).get("rows", {}).get(task, {}).get(critic, {})
    found = {"reference": ""} if TAU in row else {}
    for judge in WAYS:
        if f"{judge}/{TAU}" in row:
            found[judge] = f"{judge}/"
            break
    if not found:
        raise NotMeasuredError(f"{table}: {task}/{critic}/{TAU}", task)
    return found


def judged(metric: str, critics: Sequence[str]) -> Numbers:
    """A metric of several critics under every judge that saw the first of them."""

    def of(tables: Tables, task: str) -> Named:
        return {
            f"{NAMES[critic]} ({judge})": number(tables, MAIN, task, critic, prefix + metric)
            for judge, prefix in judges(tables, task, critics[0]).items()
            for critic in critics
        }

    return Numbers(of)


def caveat(tables: Tables, tasks: Sequence[str]) -> str:
    """Say so where the reference ensemble did not pass its declared criteria."""
    rows = tables.get(MAIN, {}).get("rows", {}).get(tasks[0], {})
    if any(row.get(TAU, {}).get("unreliable") for row in rows.values()):
        return " The reference ensemble did not pass its criteria here: its numbers decide little."
    return ""


def on_included(metric: str, critics: Sequence[str], condition: Condition, said: str) -> Criterion:
    """A condition on every judge's word about the task of the folder."""
    return Criterion(
        judged(metric, critics),
        CORE,
        condition,
        said,
        "first",
        digits=".2f",
        beside=(caveat,),
        chosen=only_task(),
        differ="the judge and the critic",
    )


@ruled(
    CORE,
    f"every contrastive tau_b is {WEAK_OR_INVERTED} of TD-Q's, under every judge of every "
    "candidate",
)
def contrastive_fail_to_order(tables: Tables) -> Finding:
    """Every contrastive tau_b is at most half of TD-Q's."""
    task = one_task(tables)
    parts: dict[str, Answer] = {}
    texts = []
    for judge, prefix in judges(tables, task).items():
        tdq = number(tables, MAIN, task, "tdq", prefix + TAU)
        for critic in CONTRASTIVE:
            tau = number(tables, MAIN, task, critic, prefix + TAU)
            parts[f"{critic} ({judge})"] = WEAK_OR_INVERTED.asked(quotient(tau, tdq))
            texts.append(f"{critic} {tau.mean:.2f} against {tdq.mean:.2f} ({judge})")
    first = next(iter(judges(tables, task).values()))
    raw = number(tables, MAIN, task, "raw", first + TAU)
    finding = from_parts(
        parts,
        raw,
        f"Criterion: tau_b is {WEAK_OR_INVERTED} of TD-Q's, under every judge of every candidate. "
        f"On {task}: {', '.join(texts)}. The number is raw's.{caveat(tables, [task])}"
        + scope([task], CORE),
        JUDGE,
    )
    return elsewhere(finding, [task], CORE)


SAME_GAP = at_least(HALF)
"""The share of TD-Q's lead over the cosine critic at which two heads show the same gap."""


@ruled(
    CORE,
    "the lead in tau_b of q_td over f_cos, from the same checkpoint on the same pools, is above "
    f"zero and {SAME_GAP} of TD-Q's over the cosine critic, under every judge of every candidate",
)
def two_head_gap(tables: Tables) -> Finding:
    """On one checkpoint q_td orders better than f_cos, by as much as two critics differ."""
    task = one_task(tables)
    parts: dict[str, Answer] = {}
    texts, gaps, said = [], [], set()
    for judge, prefix in judges(tables, task, HEADS[0]).items():
        q_td, f_cos, tdq, cosine = (
            number(tables, MAIN, task, row, prefix + TAU) for row in (*HEADS, "tdq", "cosine")
        )
        gap, other = q_td.minus(f_cos), tdq.minus(cosine)
        answers = above(ZERO).asked(gap), SAME_GAP.asked(quotient(gap, other))
        parts[f"a gap ({judge})"], parts[f"as large ({judge})"] = answers
        said.add(answers)
        texts.append(
            f"{judge}: q_td {q_td.mean:.2f}, f_cos {f_cos.mean:.2f}, their gap {gap.mean:.2f} and "
            f"that of the two critics {other.mean:.2f}"
        )
        gaps.append(gap)
    finding = from_parts(
        parts,
        gaps[0],
        "Criterion: q_td's tau_b less that of f_cos, from the same checkpoint on the same pools, "
        f"is above zero and {SAME_GAP} of TD-Q's less the cosine critic's. On {task}, by "
        f"{'; by '.join(texts)}. The number is the gap.{caveat(tables, [task])}"
        + scope([task], CORE),
        JUDGE if len(said) > 1 else PART,
    )
    return elsewhere(finding, [task], CORE)


def square(tables: Tables, metric: str = TAU) -> dict[str, Named]:
    """The four cells of the 2 x 2, by judge."""
    critics = ("raw", "nce_mlp", "td_bilinear", "tdq")
    return {
        judge: {c: number(tables, SQUARE, POINT, c, prefix + metric) for c in critics}
        for judge, prefix in judges(tables, POINT, "raw", SQUARE).items()
    }


def effect(tables: Tables, more: str, fewer: str) -> Named:
    """What one cell of the 2 x 2 has more than another, seed by seed, by judge."""
    return {judge: tau[more].minus(tau[fewer]) for judge, tau in square(tables).items()}


def size(x: Number) -> Number:
    """An effect without its direction, seed by seed."""
    return x if x.mean >= 0 else from_seeds({seed: -value for seed, value in x.seeds.items()})


def objective_explains_most(tables: Tables) -> Finding:
    """Each effect of the objective is larger than each effect of the function class."""
    parts: dict[str, Answer] = {}
    texts, margins = [], []
    for judge, tau in square(tables).items():
        objective = (tau["td_bilinear"].minus(tau["raw"]), tau["tdq"].minus(tau["nce_mlp"]))
        function = (tau["nce_mlp"].minus(tau["raw"]), tau["tdq"].minus(tau["td_bilinear"]))
        smaller = min(objective, key=lambda x: x.mean)
        margin = smaller.minus(max(map(size, function), key=lambda x: x.mean))
        parts[judge] = above(ZERO).asked(margin)
        texts.append(
            f"{judge}: objective {objective[0].mean:+.2f} (bilinear) and {objective[1].mean:+.2f} "
            f"(MLP), function class {function[0].mean:+.2f} (contrastive) and "
            f"{function[1].mean:+.2f} (Bellman)"
        )
        margins.append(margin)
    return from_parts(
        parts,
        margins[0],
        "Criterion: the smaller of the two effects of the objective on tau_b less the larger of "
        f"the two of the function class, seed by seed, is {above(ZERO)}. By {'; by '.join(texts)}. "
        "The number is that difference.",
        JUDGE,
    )


def bellman_raises_tau(tables: Tables) -> Finding:
    """Bellman training raises tau_b in both classes by at least half of what the paper has."""
    limits = {"bilinear": at_least(0.30 / 2), "MLP": at_least(0.44 / 2)}
    rises = {
        "bilinear": effect(tables, "td_bilinear", "raw"),
        "MLP": effect(tables, "tdq", "nce_mlp"),
    }
    texts = [
        f"{judge}: {', '.join(f'{NAMES[c]} {x.mean:.2f}' for c, x in tau.items())}"
        for judge, tau in square(tables).items()
    ]
    return from_parts(
        {
            f"{n} ({judge})": limits[n].asked(rise)
            for n, by_judge in rises.items()
            for judge, rise in by_judge.items()
        },
        next(iter(rises["bilinear"].values())),
        f"Criterion: a rise of {limits['bilinear']} in the bilinear and of {limits['MLP']} in the "
        f"MLP class, half of the paper's. tau_b by {'; by '.join(texts)}. The number is the rise "
        "in the bilinear class.",
        JUDGE,
    )


def architecture_changes_little(tables: Tables) -> Finding:
    """Matching the architecture raises the contrastive tau_b by little."""
    little = at_most(0.12)
    rises = effect(tables, "nce_mlp", "raw")
    return from_parts(
        {judge: little.asked(rise) for judge, rise in rises.items()},
        next(iter(rises.values())),
        f"Criterion: a change of {little:+}, twice the paper's. Contrastive MLP less raw: "
        f"{spelled(rises, '+.2f')}.",
        JUDGE,
    )


def bottleneck(tables: Tables) -> Finding:
    """The bilinear class lowers the Bellman tau_b by at least half of what the paper has."""
    much = at_least(0.105)
    drops = effect(tables, "tdq", "td_bilinear")
    text = ", ".join(
        f"{tau['tdq'].mean:.2f} to {tau['td_bilinear'].mean:.2f} ({judge})"
        for judge, tau in square(tables).items()
    )
    return from_parts(
        {judge: much.asked(drop) for judge, drop in drops.items()},
        next(iter(drops.values())),
        f"Criterion: TD bilinear's tau_b lies below TD-Q's by {much}, half of the paper's drop. "
        f"{text}. The number is the drop.",
        JUDGE,
    )


def worst_bellman_beats_best_contrastive(tables: Tables) -> Finding:
    """The worse Bellman cell beats the better contrastive one, in tau_b and in regret."""
    parts: dict[str, Answer] = {}
    texts, margins = [], []
    for metric, sign, name in ((TAU, 1, "tau_b"), (REGRET, -1, "regret")):
        for judge, cells in square(tables, metric).items():
            worst = min((cells["td_bilinear"], cells["tdq"]), key=lambda x: sign * x.mean)
            best = max((cells["raw"], cells["nce_mlp"]), key=lambda x: sign * x.mean)
            margin = worst.minus(best) if sign > 0 else best.minus(worst)
            parts[f"{name} ({judge})"] = above(ZERO).asked(margin)
            texts.append(f"{name} {worst.mean:.2f} against {best.mean:.2f} ({judge})")
            margins.append(margin)
    return from_parts(
        parts,
        margins[0],
        "Criterion: the worse Bellman cell's lead over the better contrastive cell, seed by seed, "
        f"is {above(ZERO)} on every metric: {', '.join(texts)}. The number is the lead in tau_b.",
        JUDGE,
    )
