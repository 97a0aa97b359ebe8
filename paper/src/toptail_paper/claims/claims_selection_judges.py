"""Statements about who may judge on which task, and about what follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from toptail_paper.claims.claims_selection import powered
from toptail_paper.claims.criteria import (
    ZERO,
    Criterion,
    Words,
    above,
    at_least,
    at_most,
    below,
    between,
    listed,
    percent,
)
from toptail_paper.claims.findings import Answer, Finding, Ruling, from_parts
from toptail_paper.claims.ledger import Claim
from toptail_paper.claims.numbers import (
    ALONE,
    Named,
    NotMeasuredError,
    Number,
    Numbers,
    Tables,
    difference,
    each,
    number,
    paired,
    stored,
)
from toptail_paper.claims.reported import ANT, CONTRASTIVE, CORE, CRITICS, HUMANOID, SOCCER
from toptail_paper.claims.selection_order import HEADS, MAIN, NAMES, TAU, only_task

LARGEST_K = "closed_loop/K=64"


def judged_by_rollouts(task: str, spearman: float) -> Ruling:
    """Decide that a task's reference fails its criteria and its rollouts pass theirs."""
    return _admission(task, True, f"The number is the Spearman; the paper has {spearman:g}.")


def judged_by_nobody(task: str) -> Ruling:
    """Decide that a task's reference and its rollouts both fail their criteria."""
    return _admission(task, False, "The number is the Spearman; the paper gives none.")


def _admission(task: str, powered_here: bool, ends: str) -> Ruling:
    """The declared admissions, applied to the numbers that the table of judges holds."""

    def decide(tables: Tables) -> Finding:
        agreement = number(tables, "judges", task, "reference", "spearman")
        resolved = number(tables, "judges", task, "reference", "resolvability")
        least, share = (
            float(stored(tables, "judges", task, "reference", name)["threshold"])
            for name in ("spearman", "resolvability")
        )
        enough, width = powered(tables, task)
        parts: dict[str, Answer] = {
            "the reference fails": _fails(agreement, least, resolved, share),
            _ROLLOUTS[powered_here]: enough == powered_here,
        }
        return from_parts(
            parts,
            agreement,
            "Criterion: the declared ones. The members' mean pairwise within-pool Spearman is "
            f"{agreement.mean:.2f} (at least {least:g}), {percent(resolved.mean)} of the pools of "
            f"the prespecified group are resolved (at least {percent(share)}), and the largest "
            f"half-width of the rollouts is {width['mean']:.4f} (below {width['threshold']:g}). "
            + ends,
        )

    said = (
        "the reference ensemble misses at least one of its declared criteria (Spearman, "
        f"resolvability), and {_ROLLOUTS[powered_here]} theirs: every half-width below e_min"
    )
    return Ruling(decide, (task,), said)


_ROLLOUTS = {True: "the rollouts pass", False: "the rollouts fail"}


def _fails(agreement: Number, least: float, resolved: Number, share: float) -> Answer:
    """Whether one of the reference's criteria is missed; open where an interval decides."""
    missed = {below(least).asked(agreement), below(share).asked(resolved)}
    return True if True in missed else None if None in missed else False


def seeds_over_gap(tables: Tables, task: str) -> Named:
    """Standard deviation over seeds as a share of TD-Q's lead in tau_b, by contrastive critic."""
    tdq, *others = each(MAIN, TAU, CRITICS, ALONE).of(tables, task).values()
    found = {}
    for critic, x in zip(CONTRASTIVE, others, strict=True):
        if len(x.seeds) < 2:
            raise NotMeasuredError(f"{MAIN}: {task}: one seed alone has no spread")
        gap = tdq.mean - x.mean
        found[NAMES[critic]] = Number(max(x.std, tdq.std) / gap if gap > 0 else math.inf)
    return found


def change_over_k(tables: Tables, task: str) -> Named:
    """TD-Q's closed-loop success at the largest K less that at K = 1."""
    one, many = (number(tables, "deployment", task, "tdq", f"closed_loop/K={k}") for k in (1, 64))
    return {"TD-Q": difference(many, one)}


def behind_tdq(tables: Tables, task: str) -> Named:
    """Closed-loop success of raw at the largest K less TD-Q's."""
    tdq, raw = (number(tables, "deployment", task, c, LARGEST_K) for c in ("tdq", "raw"))
    return {"raw": difference(raw, tdq)}


def raw_beside(tables: Tables, tasks: Sequence[str]) -> str:
    """Raw's success beside TD-Q's, or that raw was not run where this is asked."""
    numbers = Numbers(behind_tdq, "Raw less TD-Q at K = 64")
    missing = " Raw was not run: that half is not asked."
    return listed(numbers, "+.2f")(tables, tasks) or missing


# fmt: off
JUDGED: tuple[Claim, ...] = (
    Claim("needs-value",
          "Contrastive critics remain useful compatibility rankers, but action selection requires "
          "a value-calibrated scalar.", "abstract",
          Criterion(Numbers(change_over_k, "From K = 1 to 64"), CORE,
                    at_least(Words(-0.1, "minus ten points")),
                    "with best-of-K at every step TD-Q's success changes by {condition} from K = 1 "
                    "to 64", part="TD-Q holds under search", digits="+.2f",
                    chosen=only_task("deployment"), beside=(raw_beside,))
          & Criterion(Numbers(behind_tdq, ""), CORE, below(ZERO),
                      "raw's at 64 less TD-Q's is {condition}", part="raw does worse")),
    Claim("norms-grow",
          "Candidate maximization can exploit false positives caused by norm drift, …", "abstract",
          Criterion(each("pick-norm", "pick_norm_64", ("raw",), ALONE).called("Norm of the pick"),
                    CORE, above(Words(1.0, "one")),
                    "the norm of φ of raw's pick at K = 64 is {condition} in units of a random "
                    "candidate's: it grows with K", shown="first",
                    chosen=only_task("pick-norm"))),
    Claim("antmaze-judges",
          "AntMaze fails the reference criterion (Spearman 0.55) but passes the rollout-power "
          "criterion.", "sec:fixed-query",
          judged_by_rollouts(ANT, 0.55)),
    Claim("humanoidmaze-judges",
          "HumanoidMaze fails the reference criterion (Spearman 0.42) but passes the "
          "rollout-power criterion.", "sec:fixed-query",
          judged_by_rollouts(HUMANOID, 0.42)),
    Claim("antsoccer-excluded",
          "AntSoccer fails both criteria: it has no reliable value signal, …", "sec:fixed-query",
          judged_by_nobody(SOCCER)),
    Claim("antsoccer-policy",
          "… and the value-trained policy succeeds only about 5 % of the time.", "sec:fixed-query",
          Criterion(each("deployment", "actor_success", ("tdq",), "TD-Q's actor"), (SOCCER,),
                    at_most(0.10), "a success of {condition:%}, twice the paper's", shown="first",
                    digits=".1%")),
    Claim("two-head-antmaze",
          "The deployed scalar alone moves AntMaze τ_b from 0.73 to 0.11.", "sec:fixed-query",
          Criterion(paired(each(MAIN, TAU, HEADS[:1], "q_td less f_cos"),
                           each(MAIN, TAU, HEADS[1:]), "The fall"), (ANT,), at_least(0.31),
                    "tau_b of f_cos is lower than that of q_td of the same checkpoint by "
                    "{condition}, half of the paper's fall; the interval is over training seeds",
                    shown="first", digits=".2f")),
    Claim("seed-spread",
          "The three-seed standard deviation is only 1–2 % of the TD-versus-contrastive "
          "gap.", "app:critic-details",
          Criterion(Numbers(seeds_over_gap, "Shares"), CORE, at_most(0.025),
                    "the larger standard deviation over seeds of TD-Q's and a contrastive critic's "
                    "tau_b is {condition:%} of the gap between them, which rounds to 2 %",
                    digits=".1%", chosen=only_task())),
    Claim("actors-level",
          "The actor reaches about 20–32 % AntMaze success …", "app:actor",
          Criterion(each("deployment", "actor_success", CRITICS, ALONE), (ANT,),
                    between(0.15, 0.37), "every rate {condition:%}, the paper's range and five "
                    "points on either side", digits=".0%")),
)
# fmt: on
"""Admissions, exclusion, and what the paper says beside its table."""
