"""Statements about what stays the same: over seeds, over proposals, over tasks, by construction."""

from __future__ import annotations

import numpy as np

from toptail_paper.claims.claims_semantics_order import HARD, NO_ORDER
from toptail_paper.claims.claims_semantics_search import CURSE, MODELS, ROBUST, SIZES
from toptail_paper.claims.criteria import SPREAD, ZERO, Criterion, above, at_least, at_most, near
from toptail_paper.claims.ledger import Claim
from toptail_paper.claims.numbers import (
    BY_TASK,
    Named,
    NotMeasuredError,
    Number,
    Numbers,
    Tables,
    difference,
    each,
    less,
    number,
    ratio,
    spread,
    together,
)
from toptail_paper.claims.reported import (
    ANT,
    CONTRASTIVE,
    CORE,
    CRITICS,
    DECLARED,
    HUMANOID,
    NAVIGATION,
    POINT,
    RANKERS,
    SOCCER,
    TDQ,
)

RETRAINED = "43"
"""The seed of HumanoidMaze's TD-Q that the paper trained again."""
ROBUST_METRICS = (
    *(f"excess_off_{n}" for n in SIZES),
    "regret_full",
    "regret_within_bucket",
)


def lead_of_worst_seed(tables: Tables, task: str) -> Named:
    """Tau of TD-Q's worst seed less that of the best seed of any contrastive critic."""
    tdq, *others = each("main", "tau", CRITICS).of(tables, task).values()
    best = max(max(x.seeds.values()) for x in others)
    return {task: Number(min(tdq.seeds.values()) - best)}


def apart_from_other_seeds(tables: Tables, task: str) -> Named:
    """Tau of the retrained seed less the mean of the others'."""
    seeds = dict(number(tables, "main", task, "tdq", "tau").seeds)
    own = seeds.pop(RETRAINED, None)
    if own is None or not seeds:
        raise NotMeasuredError(f"main: {task}/tdq/tau has no seed {RETRAINED} beside others")
    return {f"seed {RETRAINED} on {task}": Number(own - float(np.mean(list(seeds.values()))))}


def profile_spread(tables: Tables, task: str) -> Named:
    """The largest standard deviation over seeds along each critic's profile."""
    curves = tables.get("curves", {}).get("tasks", {}).get(task, {})
    found = {}
    for critic in CRITICS:
        profile = curves.get(critic, {}).get("profile", {})
        stds = [x for x in profile.get("std", ()) if x is not None]
        if not stds:
            raise NotMeasuredError(f"curves: {task}/{critic}/profile has no spread")
        found[f"{critic} on {task}"] = Number(max(stds))
    return found


def over_pointmaze(tables: Tables, task: str) -> Named:
    """Win rates against hard negatives less those on PointMaze."""
    rates = each("retrieval", HARD, RANKERS, "{critic}")
    here, there = rates.of(tables, task), rates.of(tables, POINT)
    return {f"{critic} on {task}": difference(x, there[critic]) for critic, x in here.items()}


def over_tdq_by(metric: str, called: str) -> Numbers:
    """Contrastive critics' normalized regret less TD-Q's, with candidates of one kind."""
    contrastive = each(MODELS, metric, CONTRASTIVE, f"{{critic}} on {{task}} ({called})")
    return less(contrastive, each(MODELS, metric, TDQ), "More than TD-Q")


# fmt: off
STABILITY: tuple[Claim, ...] = (
    Claim("never-encodes-value",
          "Binary compatibility training never encodes γ^d.", "sec:calibration",
          Criterion(each("main", "tau", RANKERS), NAVIGATION, near(ZERO, NO_ORDER.limits[0]),
                    "tau {condition}: a score that orders by γ^d has something of it, whatever it "
                    "was trained by")),
    Claim("seed-43",
          "The HumanoidMaze TD-Q seed-43 retrain reproduces the reported behaviour (τ = "
          "+0.793).", "sec:calibration",
          Criterion(Numbers(apart_from_other_seeds, "Apart from the other seeds' mean"),
                    (HUMANOID,), near(ZERO, 0.02),
                    "tau of seed 43 less the mean of the others' {condition}. The run counts as "
                    "it is; it is repeated once, with the same seed, only if the seed policy calls "
                    "it invalid")),
    Claim("profile-spread",
          "[The profiles' standard deviation over seeds] is ≤ 0.06.", "fig:good-rankers",
          Criterion(Numbers(profile_spread), CORE, at_most(0.06), SPREAD)),
    Claim("coarse-order",
          "TD-Q's safety in this setting comes from coarse ordering rather than fine action "
          "resolution.", "sec:local-drift",
          Criterion(each("main", "tau", TDQ, BY_TASK).called("Over all triples"), NAVIGATION,
                    at_least(0.45), "tau over all triples {condition}", part="coarse on {}")
          & Criterion(ratio(each(CURSE, "centered_tau", TDQ, BY_TASK),
                            each("main", "tau", TDQ, BY_TASK), "Share left by centering"),
                      NAVIGATION, at_most(0.25),
                      "{condition} of it is left once the mean score of behaviour-model actions at "
                      "the same (s, g) is subtracted", part="not fine on {}")),
    Claim("pool-ends",
          "Random selection is about 0.75, and the oracle is about 0.99.", "tab:ogbench-curse",
          Criterion(each(CURSE, "random", TDQ, "random on {task}"), NAVIGATION, near(0.75, 0.015),
                    "the mean γ^d of a random triple {condition}. Distances are drawn uniformly "
                    "from 1 to 60, whatever the task and the critic", part="{}", certain=True)
          & Criterion(each(CURSE, "oracle", TDQ, "oracle on {task}").called("Best of K"),
                      NAVIGATION, near(0.99, 0.015), "of the best of K {condition}")),
    Claim("robustness-spread",
          "Per-seed std is at most 0.04, except for AntMaze hybrid excess, …", "tab:robustness",
          Criterion(spread(ROBUST, ROBUST_METRICS, CRITICS,
                           unless=lambda task, critic, metric: "excess" in metric
                           and (task, critic) == (ANT, "hybrid")),
                    NAVIGATION, at_most(0.04), SPREAD)),
    Claim("robustness-spread-antmaze",
          "… where it is at most 0.12.", "tab:robustness",
          Criterion(spread(ROBUST, ROBUST_METRICS[:len(SIZES)], ("hybrid",)), (ANT,),
                    at_most(0.12), SPREAD)),
    Claim("retrieval-spread-antsoccer",
          "[Per-seed std of] AntSoccer TD-Q recall is at most 0.27.", "tab:retrieval",
          Criterion(spread("retrieval", ("recall_1", "recall_5"), TDQ), (SOCCER,), at_most(0.27),
                    SPREAD)),
    Claim("hard-lowest-on-pointmaze",
          "Absolute values [under hard negatives] are lower in densely sampled regions where "
          "states overlap, especially on PointMaze.", "app:retrieval",
          Criterion(Numbers(over_pointmaze, "Less PointMaze's"), DECLARED, above(ZERO),
                    "the win rates of raw and cosine are higher than on PointMaze")),
    Claim("stable-over-seeds",
          "The findings remain stable across seeds …", "sec:limitations",
          Criterion(Numbers(lead_of_worst_seed, "Its lead"), NAVIGATION, above(ZERO),
                    "the tau of TD-Q's worst seed is above that of the best seed of any "
                    "contrastive critic")),
    Claim("stable-over-proposals",
          "… and proposals.", "sec:limitations",
          Criterion(together(over_tdq_by("nregret_oracle_data", "data"),
                             over_tdq_by("nregret_oracle_diffusion", "diffusion")),
                    CORE, above(ZERO),
                    "by the independent value every contrastive critic has more normalized regret "
                    "than TD-Q, with recorded actions as with a behaviour model's")),
)
# fmt: on
"""Seeds, proposals, and what the other rooms of the paper take for granted."""
