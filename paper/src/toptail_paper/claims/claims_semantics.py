"""The paper's statements about score semantics: calibration, order, retrieval, readouts, checks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toptail_paper.claims.claim import Claim, Temperatures, by_temperature
from toptail_paper.claims.criteria import (
    HALF,
    WEAK_OR_INVERTED,
    WEAKLY,
    ZERO,
    Criterion,
    OverTasks,
    Words,
    above,
    at_least,
    at_most,
    below,
    between,
    listed,
    near,
    short_by_at_most,
    show,
    wholly_above,
)
from toptail_paper.claims.findings import PART
from toptail_paper.claims.grids import CellCheck, SettledGrid
from toptail_paper.claims.numbers import (
    BY_TASK,
    Named,
    Number,
    Numbers,
    Tables,
    curve,
    difference,
    each,
    least,
    less,
    most,
    number,
    over_tdq,
    ratio,
    seed_gap,
    shifted,
    spread,
)
from toptail_paper.claims.reported import (
    ANT,
    BOUNDED,
    CONTRASTIVE,
    CORE,
    CRITICS,
    EIGHT,
    HUMANOID,
    MANIPULATION,
    NAVIGATION,
    POINT,
    RANKERS,
    SOCCER,
    TDQ,
)
from toptail_paper.study.naming import PAPER_TASKS

GAP, CURSE, HARD = "calibration-summary", "ogbench-curse", "hard_negative_auc"
READ, TRAINED = ("raw_trained/cosine",), ("cosine_trained/cosine",)
LEAST = (*RANKERS, *TDQ)
"""A statement about TD-Q and the contrastive critics needs at least these."""
LOST = at_most(HALF)
"""The share of an order at which it counts as lost."""
NO_GAP = at_most(0.05)
"""A decile gap that is near zero: the paper says so of 0.04."""
NO_ORDER = at_most(0.10)
"""A tau that is near zero: the paper says so of 0.058 and −0.102."""
SPREAD = "a standard deviation over seeds of {condition} in each cell"
COSINE_GRID = SettledGrid(
    ("cosine", "cosine_info_nce"),
    (CellCheck("tau", NO_ORDER), CellCheck("auc", at_least(0.8))),
    f"the cosine critic's tau {NO_ORDER} at a retrieval AUC of at least 0.8",
)
"""A cosine critic that still retrieves and does not order; one that has collapsed counts not."""


def tau_by_temperature(tables: Tables, tasks: Sequence[str]) -> Named:
    """Tau in each setting of the temperature study, less a limit.

    The limit is half of the lowest tau, over tasks, of raw embeddings that are read by cosine.
    """
    taus = (number(tables, "readout", task, READ[0], "tau").mean for task in tasks)
    limit = min(HALF * tau for tau in taus)
    return {name: shifted(x, -limit) for name, x in by_temperature(tables, "tau").items()}


def range_of_gaps(tables: Tables, tasks: Sequence[str]) -> Named:
    """The range of raw's decile gap over tasks, where there is more than one."""
    gaps = [number(tables, GAP, task, "raw", "gap") for task in tasks]
    low, high = (of(gaps, key=lambda x: x.mean) for of in (min, max))
    return {"range over tasks": difference(high, low)} if len(gaps) > 1 else {}


def hybrid_spread(tables: Tables, tasks: Sequence[str]) -> Named:
    """Range of hybrid's AUC over tasks, or its deviation over seeds, less the larger of the two."""
    auc = {c: [number(tables, "retrieval", t, c, "auc") for t in tasks] for c in CONTRASTIVE}
    width = {
        c: max(x.mean for x in found) - min(x.mean for x in found)
        if len(found) > 1
        else found[0].std
        for c, found in auc.items()
    }
    return {"more than the others": Number(width["hybrid"] - max(width[c] for c in RANKERS))}


def swaps(tables: Tables, task: str) -> Named:
    """How many pairs of critics change places between random and hard negatives, and which."""
    before, after = (
        each("retrieval", metric, CRITICS, "{critic}", required=LEAST).of(tables, task)
        for metric in ("auc", HARD)
    )
    pairs = [
        f"{a} and {b} on {task}"
        for a in after
        for b in after
        if a in before and b in before
        if before[a].low > before[b].high and after[b].low > after[a].high
    ]
    return {", ".join(pairs) or task: Number(float(len(pairs)))}


def two_heads(metric: str, reference: str, what: str, name: str = BY_TASK) -> Numbers:
    """A metric of the separate variant less that of a reference."""
    separate = each("twohead", metric, ("separate",), name)
    return less(separate, each("twohead", metric, (reference,)), what)


JOINT = less(
    each("twohead", "tau", ("joint",), BY_TASK),
    each("twohead", "tau", ("tdq_ref",)),
    "Joint less TD-Q",
)

# fmt: off
ORDER: tuple[Claim, ...] = (
    Claim("weak-calibration",
          "Contrastive scores are weakly calibrated or inverted in the top score decile across "
          "four OGBench navigation tasks.", "abstract",
          Criterion(over_tdq(GAP, "gap", CONTRASTIVE), NAVIGATION, WEAK_OR_INVERTED,
                    "a decile gap of {condition} of TD-Q's (a negative one is inverted)")),
    Claim("training-not-reading",
          "A training/readout decomposition traces the lost ordering to the cosine training "
          "objective; raw-trained embeddings retain weak ordering after inference-time "
          "normalization.", "abstract",
          Criterion(ratio(each("readout", "tau", TRAINED, BY_TASK), each("readout", "tau", READ),
                          "Tau of cosine training as a share of the cosine reading"), CORE, LOST,
                    "training by cosine leaves {condition} of the tau of raw embeddings read by "
                    "cosine", part="training removes it on {task}", on=PART)
          & Criterion(ratio(each("readout", "tau", READ, BY_TASK),
                            each("readout", "tau", ("raw_trained/raw",)),
                            "Cosine reading as a share of raw's"), CORE, at_least(HALF),
                      "these keep {condition} of raw's tau", part="reading keeps it on {task}")
          & OverTasks(tau_by_temperature, at_most(ZERO),
                      "where the temperature study was run, training leaves no more in any of its "
                      "settings", "every temperature and loss")),
    Claim("useful-rankers",
          "Contrastive critics remain useful compatibility rankers on navigation and manipulation "
          "tasks.", "abstract",
          Criterion(each("retrieval", "auc", RANKERS), EIGHT, at_least(0.9),
                    "AUC of {condition:.2f}")),
    Claim("order-despite-compatibility",
          "Our experiments find weak or inverted value ordering despite strong compatibility "
          "across four OGBench navigation tasks …", "sec:intro",
          Criterion(over_tdq("main", "tau", CONTRASTIVE, "Tau as a share of TD-Q's"), NAVIGATION,
                    WEAK_OR_INVERTED,
                    "tau {condition} of TD-Q's", part="order of {}")
          & Criterion(each("retrieval", "auc", CONTRASTIVE).called(""), NAVIGATION, at_least(0.85),
                      "a retrieval AUC of {condition}, the paper's lowest being 0.856",
                      part="retrieval of {}")),
    Claim("manipulation-rankers",
          "… and strong retrieval on four manipulation tasks: raw and cosine remain near-perfect "
          "retrievers.", "sec:intro",
          Criterion(each("retrieval", "auc", RANKERS), MANIPULATION, at_least(0.99),
                    "AUC of {condition}")),
    Claim("tdq-gap",
          "The top-minus-bottom decile gap is strongly positive for TD-Q (0.18–0.35), "
          "…", "sec:calibration",
          Criterion(each(GAP, "gap", TDQ), NAVIGATION, at_least(0.15) & wholly_above(ZERO),
                    "a gap of {condition}; the paper has 0.18 to 0.35")),
    Claim("raw-gap",
          "… weak and task-dependent for raw bilinear (−0.01–0.15), …", "sec:calibration",
          show(each(GAP, "gap", ("raw",), BY_TASK), NAVIGATION, "highest", on=PART)
          & Criterion(over_tdq(GAP, "gap", ("raw",), "Shares of TD-Q's"), NAVIGATION, WEAKLY,
                      "raw's decile gap is {condition}", part="weak on {task}")
          & OverTasks(range_of_gaps, at_least(0.05),
                      "its range over tasks, where more than one was measured, is at least 0.05",
                      "task-dependent")),
    Claim("bounded-gap",
          "… and near zero or negative for cosine and hybrid.", "sec:calibration",
          Criterion(each(GAP, "gap", BOUNDED), NAVIGATION, NO_GAP,
                                      "a gap of {condition}; the paper's own hybrid on PointMaze "
                                      "has 0.13"),
          Temperatures("gap", "the cosine critic's gap")),
    Claim("tdq-monotone",
          "TD-Q is monotone [over deciles].", "fig:calibration",
          Criterion(curve("deciles", TDQ, lambda y: float(np.diff(y).min())), NAVIGATION,
                    at_least(ZERO),
                    "no decile's mean γ^d lies below that of the decile before it, in the mean "
                    "over seeds; the measured number is the smallest step")),
    Claim("flat-tail",
          "Cosine and hybrid are flat or inverted in the high-score tail.", "fig:calibration",
          Criterion(curve("deciles", BOUNDED, lambda y: y[-1] - y[len(y) // 2]), NAVIGATION,
                    at_most(0.02),
                    "mean γ^d rises by {condition} from the sixth to the top decile")),
    Claim("gap-spread",
          "Per-seed std is ≤ 0.02.", "tab:calibration-summary",
          Criterion(spread(GAP, ("gap",), CRITICS), NAVIGATION, at_most(0.02),
                    SPREAD)),
    Claim("tdq-order",
          "TD-Q produces strong progress ordering (τ = 0.49–0.79).", "tab:main",
          Criterion(each("main", "tau", TDQ), NAVIGATION, at_least(0.45),
                    "tau of {condition}; the paper has 0.49 to 0.79")),
    Claim("raw-order",
          "Raw bilinear has only weak, task-dependent ordering: 0.22–0.27 on the three core tasks "
          "and a negative correlation on AntSoccer.", "tab:main",
          show(each("main", "tau", ("raw",), BY_TASK), NAVIGATION, "highest")
          & Criterion(over_tdq("main", "tau", ("raw",), "Shares of TD-Q's"), CORE,
                      above(ZERO) & WEAKLY, "on the core tasks raw's tau is {condition}",
                      part="weak on {task}")
          & Criterion(each("main", "tau", ("raw",)).requiring(each("main", "tau", TDQ)).called(""),
                      (SOCCER,), below(ZERO), "on AntSoccer it is {condition}",
                      part="negative on {task}")),
    Claim("bounded-order",
          "Cosine and hybrid are near zero or negative.", "tab:main",
          Criterion(each("main", "tau", BOUNDED), NAVIGATION, NO_ORDER,
                                      "tau of {condition}; the paper's own hybrid on PointMaze has "
                                      "0.181"),
          Temperatures("tau", "the cosine critic's tau"), grids=(COSINE_GRID,)),
    Claim("no-monotone-fix",
          "Monotone recalibration leaves the pick unchanged, so post-training transformations "
          "cannot repair the selection of cosine and hybrid.", "sec:calibration",
          Criterion(each(CURSE, "normalized", BOUNDED), NAVIGATION, at_least(0.5),
                    "a normalized regret of {condition} (half of what random selection loses) over "
                    "pooled triples", part="regret of {}",
                    note="That a strictly increasing map changes no pick holds by arithmetic; "
                    "asked are that there is something to repair, and the paper's premise, no "
                    "order.")
          & Criterion(each("main", "tau", BOUNDED).called("Tau"), NAVIGATION, NO_ORDER,
                      "a tau of {condition}", part="premise for {}")),
    Claim("rankers-auc",
          "Raw and cosine reach retrieval AUCs of 0.96–1.0, …", "sec:good-rankers",
          Criterion(each("retrieval", "auc", RANKERS), NAVIGATION, at_least(0.955),
                    "AUC of {condition}, which rounds to the paper's 0.96")),
    Claim("hybrid-lower",
          "… while hybrid is lower and more variable at 0.86–0.99.", "sec:good-rankers",
          show(less(each("retrieval", "auc", ("hybrid",), BY_TASK),
                    least(each("retrieval", "auc", RANKERS)), "Hybrid less the lower of the two"),
               NAVIGATION, "highest", on=PART)
          & Criterion(seed_gap(each("retrieval", "auc", RANKERS),
                               each("retrieval", "auc", ("hybrid",))), NAVIGATION, above(ZERO),
                      "every seed's AUC of hybrid is below all of raw's and of cosine's",
                      part="lower on {task}")
          & OverTasks(hybrid_spread, above(ZERO),
                      "its range over tasks (its standard deviation over seeds, where one task was "
                      "measured) is larger than theirs", "more variable")),
    Claim("hard-strongest",
          "The contrastive readouts remain the strongest retrievers on every task with harder "
          "negatives.", "sec:good-rankers",
          Criterion(less(most(each("retrieval", HARD, CONTRASTIVE, required=RANKERS)),
                         each("retrieval", HARD, TDQ), "Its lead"), EIGHT, above(ZERO),
                    "the best contrastive critic wins more pairs than TD-Q")),
    Claim("reverse-pattern",
          "TD-Q generally shows the reverse pattern: stronger ordering and less emphasis on "
          "retrieval. HumanoidMaze is the exception, where TD-Q also retrieves nearly "
          "perfectly.", "sec:good-rankers",
          Criterion(less(each("main", "tau", TDQ, BY_TASK), most(each("main", "tau", CONTRASTIVE)),
                         "Its lead in tau"), NAVIGATION, above(ZERO),
                    "TD-Q's tau above every contrastive critic's", part="orders better on {}")
          & Criterion(less(each("retrieval", "auc", TDQ, BY_TASK),
                           least(each("retrieval", "auc", RANKERS)), ""),
                      [task for task in NAVIGATION if task != HUMANOID], below(ZERO),
                      "its AUC below raw's and cosine's", part="retrieves worse on {}")
          & Criterion(each("retrieval", "auc", TDQ, BY_TASK).called(""), (HUMANOID,),
                      at_least(0.985), "on HumanoidMaze {condition}",
                      part="retrieves nearly perfectly on {}")),
    Claim("profile-above",
          "Each contrastive score stays far above the random-goal baseline at every distance "
          "…", "fig:good-rankers",
          Criterion(curve("profile", CONTRASTIVE, min), CORE, at_least(HALF),
                    "at every distance the mean score is {condition} as far above the random "
                    "goals' as the nearest goals' is; the measured number is the lowest bin's")),
    Claim("profile-flat",
          "… but changes little as distance grows.", "fig:good-rankers",
          Criterion(curve("profile", CONTRASTIVE, lambda y: max(y) - min(y)), CORE, at_most(0.25),
                    "the profile (1: nearest goals, 0: random goals) changes by {condition} over "
                    "all distances")),
    Claim("profile-decays",
          "TD-Q scores instead decay toward the baseline as the goal recedes.", "fig:good-rankers",
          Criterion(curve("profile", TDQ, lambda y: y[-1]), CORE, at_most(HALF),
                    "at the largest distances {condition} of the nearest goals' lead over the "
                    "random goals' is left in TD-Q's mean score; the measured number is what is "
                    "left")),
    Claim("tdq-weak-on-cube",
          "TD-Q is much weaker on Cube and Scene (AUC 0.53–0.56) …", "tab:retrieval",
          Criterion(less(each("retrieval", "auc", TDQ), each("retrieval", "auc", ("cosine",)),
                         "Difference from cosine"), ("Cube-single", "Cube-double", "Scene"),
                    at_most(-0.2), "TD-Q's AUC less cosine's {condition}"),
          grids=(SettledGrid(("tdq_manipulation",), (CellCheck("auc", at_most(-0.2), ("cosine",)),),
                             "TD-Q's AUC less that of cosine in the main table at most -0.2"),)),
    Claim("tdq-well-on-puzzle",
          "… but performs well on Puzzle (AUC 0.89).", "tab:retrieval",
          Criterion(each("retrieval", "auc", TDQ), ("Puzzle",), at_least(0.8),
                    "AUC of {condition:.2f}; the paper has 0.89")),
    Claim("hybrid-lowest-on-puzzle",
          "Hybrid has the lowest Puzzle AUC at 0.79.", "tab:retrieval",
          Criterion(less(each("retrieval", "auc", ("hybrid",)),
                         least(each("retrieval", "auc", (*TDQ, *RANKERS))),
                         "Less the lowest of the others"), ("Puzzle",), below(ZERO),
                    "hybrid's AUC less the lowest of the other three is {condition}",
                    remarks=(listed(each("retrieval", "auc", ("hybrid",)).called("AUC")),)),
          grids=(SettledGrid(("hybrid",), (CellCheck("auc", below(ZERO), (*TDQ, *RANKERS)),),
                             "hybrid's AUC less the lowest of the other three in the main table "
                             "below zero", {"data": PAPER_TASKS["Puzzle"]}),)),
    Claim("retrieval-spread",
          "Per-seed std is at most 0.06, except for AntSoccer TD-Q recall.", "tab:retrieval",
          Criterion(spread("retrieval", ("auc", HARD, "recall_1", "recall_5"), CRITICS,
                           unless=lambda task, critic, metric: "recall" in metric
                           and (task, critic) == (SOCCER, "tdq")),
                    EIGHT, at_most(0.06),
                    SPREAD)),
    Claim("raw-read-as-cosine",
          "Raw-trained embeddings retain weak value ordering under a cosine readout, with positive "
          "τ, …", "sec:readout",
          Criterion(each("readout", "tau", ("raw_trained/cosine",)), CORE, wholly_above(ZERO),
                    "tau {condition}", part="positive for {}")
          & Criterion(ratio(each("readout", "tau", ("raw_trained/cosine",)),
                            each("main", "tau", TDQ), "As a share of TD-Q's"), CORE, WEAKLY,
                      "{condition}", part="weak for {}")),
    Claim("norm-alone",
          "… while the norm ‖φ‖ alone carries almost none of the signal.", "sec:readout",
          Criterion(each("readout", "tau", ("raw_trained/phi_norm",)), CORE, near(ZERO, 0.05),
                    "tau {condition}; the paper has −0.011 to 0.032")),
    Claim("cosine-training-loses",
          "Cosine-trained embeddings lose the ordering under both raw and normalized "
          "readouts.", "sec:readout",
          Criterion(each("readout", "tau",
                                           ("cosine_trained/raw", "cosine_trained/cosine")), CORE,
                                      NO_ORDER, "tau of {condition}"),
          Temperatures("tau", "the cosine-trained, cosine-read tau"), grids=(COSINE_GRID,)),
)
"""From the abstract to the readouts."""

CHECKS: tuple[Claim, ...] = (
    Claim("tdq-consistent",
          "TD-Q has normalized [Bellman] error near 0.05.", "tab:bellman",
          Criterion(each("bellman", "rmse", TDQ), NAVIGATION, at_most(0.075),
                    "RMSE(δ)/std(f) of {condition}; the paper has 0.036 to 0.051")),
    Claim("contrastive-error",
          "The contrastive scores are 4–8× larger.", "tab:bellman",
          Criterion(over_tdq("bellman", "rmse", RANKERS), NAVIGATION, between(4.0, 8.0),
                    "RMSE(δ)/std(f) of raw and cosine {condition} times TD-Q's. It depends on a "
                    "score's arbitrary offset")),
    Claim("contrastive-error-range",
          "[Their errors range] from 0.2 to 0.38.", "app:bellman",
          Criterion(each("bellman", "rmse", RANKERS), NAVIGATION, between(0.195, 0.385),
                    "RMSE(δ)/std(f) of raw and cosine {condition}, which rounds to 0.2 to 0.38. It "
                    "depends on a score's arbitrary offset", shown="highest")),
    Claim("hybrid-between",
          "Hybrid lies between them.", "tab:bellman",
          show(each("bellman", "rmse", ("hybrid",), BY_TASK), NAVIGATION, "highest")
          & Criterion(seed_gap(each("bellman", "rmse", ("hybrid",)), each("bellman", "rmse", TDQ)),
                      NAVIGATION, above(ZERO),
                      "every seed's RMSE(δ)/std(f) of hybrid lies above all of TD-Q's",
                      part="{task}")
          & Criterion(seed_gap(each("bellman", "rmse", RANKERS),
                               each("bellman", "rmse", ("hybrid",))), NAVIGATION, above(ZERO),
                      "below all of raw's and cosine's", part="{task}")),
    Claim("consistent-without-offset",
          "TD-Q is nearly consistent, whereas the contrastive scores are not.", "tab:bellman",
          Criterion(over_tdq("bellman", "std", CONTRASTIVE, "Times TD-Q's")
                    .requiring(each("bellman", "rmse", CRITICS)), NAVIGATION, at_least(2.0),
                    "in std(δ)/std(f), which no constant added to a score changes, every "
                    "contrastive score {condition} times TD-Q's", digits=".2f",
                    remarks=(listed(ratio(each("bellman", "rmse", CRITICS),
                                         each("bellman", "std", CRITICS),
                                         "The paper's RMSE(δ)/std(f) is larger by these factors, "
                                         "which are the offset's"), ".2f"),))
          & Criterion(each("bellman", "std", TDQ, "TD-Q on {task}").called(""), NAVIGATION,
                      at_most(0.1), "TD-Q {condition:.2f}")),
    Claim("hard-order",
          "Even with these harder negatives, the critic ordering is unchanged on every "
          "task.", "app:retrieval",
          Criterion(Numbers(swaps, "Pairs that do"), EIGHT, at_most(ZERO),
                    "no two critics change places between random and hard negatives, with disjoint "
                    "intervals in both", part="{task}", digits=".0f")),
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
                    "TD-Q's win rate is below every contrastive critic's")),
    Claim("same-trajectory",
          "With same-trajectory goals at different temporal distances, every critic performs at "
          "chance …", "app:retrieval",
          Criterion(each("retrieval", "same_trajectory", CRITICS, required=LEAST), EIGHT,
                    near(0.5, 0.03),
                    "a win rate {condition}", certain=True,
                    note="This holds by construction for every score, a perfect one too: both "
                    "goals are drawn by one rule, so that which of them is called the goal is a "
                    "coin toss.")),
    Claim("temporal-precision",
          "… [this] measures temporal precision rather than compatibility and does not separate "
          "the critics.", "app:retrieval",
          Criterion(less(most(each("retrieval", "same_trajectory", CRITICS)),
                         least(each("retrieval", "same_trajectory", CRITICS)), "Differences"),
                    NAVIGATION, at_most(0.05),
                    "the win rates of the entry before differ by {condition} between the best and "
                    "the worst critic", certain=True,
                    note="By this construction no scores can differ (see the entry before). How "
                    "often the nearer of the two goals scores higher would measure temporal "
                    "precision; it is shown and not asked.",
                    remarks=(listed(each("retrieval", "nearer_goal", CRITICS)
                                    .called("The nearer goal scores higher")),))),
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
          show(JOINT, CORE)
          & Criterion(JOINT.called(""), (POINT, ANT), short_by_at_most(0.05),
                      "tau of the joint q_td is {condition} TD-Q's on PointMaze and AntMaze",
                      part="works on {task}")
          & Criterion(ratio(each("twohead", "tau", ("joint",)),
                            each("twohead", "tau", ("tdq_ref",)), "Share of TD-Q's"),
                      (HUMANOID,), WEAKLY, "{condition} on HumanoidMaze", part="weak on {task}")),
)
# fmt: on
"""Bellman consistency, hard negatives, two heads."""
