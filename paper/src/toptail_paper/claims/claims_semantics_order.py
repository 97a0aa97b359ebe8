"""Statements about calibration, ordering, retrieval and readouts: abstract to main text."""

from __future__ import annotations

import numpy as np

from toptail_paper.claims.criteria import (
    HALF,
    SPREAD,
    WEAK_OR_INVERTED,
    WEAKLY,
    ZERO,
    Criterion,
    above,
    at_least,
    at_most,
    below,
    near,
    pick,
    spelled,
    where,
    wholly_above,
)
from toptail_paper.claims.findings import (
    Answer,
    Finding,
    from_parts,
    from_tasks,
    ruled,
    scope,
)
from toptail_paper.claims.ledger import Claim
from toptail_paper.claims.numbers import (
    BY_TASK,
    Tables,
    curve,
    difference,
    each,
    least,
    less,
    most,
    number,
    over_tdq,
    quotient,
    ratio,
    spread,
)
from toptail_paper.claims.reported import (
    BOUNDED,
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
from toptail_paper.claims.temperatures import settings, told, with_temperatures

GAP, CURSE = "calibration-summary", "ogbench-curse"
KEPT, LOST = at_least(HALF), at_most(HALF)
"""The shares of an order at which it counts as kept, and as lost."""
NO_GAP = at_most(0.05)
"""A decile gap that is near zero: the paper says so of 0.04."""
NO_ORDER = at_most(0.10)
"""A tau that is near zero: the paper says so of 0.058 and −0.102."""
HARD = "hard_negative_auc"


@ruled(
    CORE,
    f"raw embeddings read by cosine keep {KEPT} of raw's tau, and training by cosine leaves {LOST} "
    "of that; where the temperature study was run, in all its settings",
)
def training_not_reading(tables: Tables) -> Finding:
    """Reading raw embeddings by cosine keeps the order; training by cosine loses most of it."""
    keys = ("raw_trained/raw", "raw_trained/cosine", "cosine_trained/cosine")
    taus = where(tables, each("readout", "tau", keys), CORE)
    parts: dict[str, dict[str, Answer]] = {}
    shares, limits = {}, []
    among: dict[str, Answer] = {}
    for task, cells in taus.items():
        deployed, read, trained = cells.values()
        shares[task] = quotient(trained, read)
        parts[task] = {
            f"reading keeps it on {task}": KEPT.asked(quotient(read, deployed)),
            f"training removes it on {task}": LOST.asked(shares[task]),
        }
        limits.append(HALF * read.mean)
    found = settings(tables, "tau", at_most(min(limits)))
    text = ""
    if any(found):
        text = (
            " At settings of the temperature study without collapse, training removes it by the "
            f"same criterion in {told(*found)}"
        )
        among["every temperature and loss"] = False if found[1] else None if found[2] else True
    return from_tasks(
        parts,
        shares[pick(shares, "highest")],
        f"Criterion: raw embeddings read by cosine keep {KEPT} of raw's tau, and training by "
        f"cosine leaves {LOST} of that. Tau of cosine training as a share of the cosine "
        f"reading of raw training: {spelled(shares)}; the number is the highest.{text}"
        + scope(list(taus), CORE),
        among,
    )


DIFFER = at_least(0.05)
"""The range over tasks at which raw's gap depends on the task."""


@ruled(
    NAVIGATION,
    f"raw's decile gap is {WEAKLY}, and its range over tasks, where more than one was measured, "
    f"is {DIFFER}",
)
def raw_gap(tables: Tables) -> Finding:
    """Raw's gap is weaker than TD-Q's everywhere, and differs between tasks."""
    found = where(tables, each(GAP, "gap", ("tdq", "raw"), "{critic}"), NAVIGATION)
    raw = {task: cells["raw"] for task, cells in found.items()}
    parts = {
        task: {
            f"weak on {task}": WEAKLY.asked(quotient(cells["raw"], cells["tdq"])),
        }
        for task, cells in found.items()
    }
    among: dict[str, Answer] = {}
    if len(raw) > 1:
        high, low = (raw[pick(raw, which)] for which in ("highest", "lowest"))
        among["task-dependent"] = DIFFER.asked(difference(high, low))
    return from_tasks(
        parts,
        raw[pick(raw, "highest")],
        f"Criterion: weak is a gap of {WEAKLY}; task-dependent, where more than one task "
        f"was measured, is a range of {DIFFER} over tasks. Measured: {spelled(raw)}; the number is "
        "the highest." + scope(list(raw), NAVIGATION),
        among,
    )


@ruled(
    NAVIGATION,
    f"on the core tasks raw's tau is above zero and {WEAKLY}; on AntSoccer it is below zero",
)
def raw_order(tables: Tables) -> Finding:
    """Raw orders weakly on the core tasks, and not at all on AntSoccer."""
    found = where(tables, each("main", "tau", ("tdq", "raw"), "{critic}"), NAVIGATION)
    raw = {task: cells["raw"] for task, cells in found.items()}
    parts: dict[str, dict[str, Answer]] = {}
    for task, cells in found.items():
        if task in CORE:
            share = quotient(cells["raw"], cells["tdq"])
            parts[task] = {f"weak on {task}": (above(ZERO) & WEAKLY).asked(share)}
        else:
            parts[task] = {f"negative on {task}": below(ZERO).asked(cells["raw"])}
    return from_tasks(
        parts,
        raw[pick(raw, "highest")],
        f"Criterion: on the core tasks above zero and {WEAKLY}; on AntSoccer "
        f"below zero. Measured: {spelled(raw)}; the number is the highest."
        + scope(list(raw), NAVIGATION),
    )


@ruled(
    NAVIGATION,
    "every seed's AUC of hybrid is below all of raw's and of cosine's, and its range over tasks "
    "(its standard deviation over seeds, where one task was measured) is larger than theirs",
)
def hybrid_lower(tables: Tables) -> Finding:
    """Hybrid retrieves worse than raw and cosine, and varies more."""
    cells = where(tables, each("retrieval", "auc", CONTRASTIVE, "{critic}"), NAVIGATION)
    parts: dict[str, dict[str, Answer]] = {}
    lag = {}
    for task, c in cells.items():
        below_all = all(c["hybrid"].below(c[other]) for other in RANKERS)
        parts[task] = {f"lower on {task}": below_all}
        lag[task] = difference(c["hybrid"], min((c[o] for o in RANKERS), key=lambda x: x.mean))
    if len(cells) > 1:
        over = "its range over tasks"
        means = {critic: [c[critic].mean for c in cells.values()] for critic in CONTRASTIVE}
        width = {critic: max(found) - min(found) for critic, found in means.items()}
    else:
        over = "its standard deviation over seeds (one task was measured)"
        width = {critic: x.std for critic, x in next(iter(cells.values())).items()}
    more = width["hybrid"] > max(width["raw"], width["cosine"])
    return from_tasks(
        parts,
        lag[pick(lag, "highest")],
        "Criterion: every seed's AUC is below all of raw's and of cosine's, and "
        f"{over} is larger than theirs: {spelled(width)}. Hybrid less the lower of the two: "
        f"{spelled(lag)}; the number is the highest." + scope(list(cells), NAVIGATION),
        {"more variable": more},
    )


def hybrid_lowest_on_puzzle(tables: Tables) -> Finding:
    """Hybrid has the lowest AUC of the four critics on Puzzle."""
    cells = {c: number(tables, "retrieval", "Puzzle", c, "auc") for c in CRITICS}
    hybrid = cells.pop("hybrid")
    lowest = min(cells.values(), key=lambda x: x.mean)
    less_than = difference(hybrid, lowest)
    return from_parts(
        {"Puzzle": below(ZERO).asked(less_than)},
        less_than,
        f"Criterion: hybrid's AUC, {hybrid.mean:.3f} (the paper has 0.79), less the lowest of the "
        f"other three, {lowest.mean:.3f}, is {below(ZERO)}.",
    )


# fmt: off
ORDER: tuple[Claim, ...] = (
    Claim("weak-calibration",
          "Contrastive scores are weakly calibrated or inverted in the top score decile across "
          "four OGBench navigation tasks.", "abstract",
          Criterion(over_tdq(GAP, "gap", CONTRASTIVE), NAVIGATION, WEAK_OR_INVERTED,
                    "a decile gap of {condition} of TD-Q's (a negative one is inverted)",
                    own=True)),
    Claim("training-not-reading",
          "A training/readout decomposition traces the lost ordering to the cosine training "
          "objective; raw-trained embeddings retain weak ordering after inference-time "
          "normalization.", "abstract",
          training_not_reading),
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
          raw_gap),
    Claim("bounded-gap",
          "… and near zero or negative for cosine and hybrid.", "sec:calibration",
          with_temperatures(Criterion(each(GAP, "gap", BOUNDED), NAVIGATION, NO_GAP,
                                      "a gap of {condition}; the paper's own hybrid on PointMaze "
                                      "has 0.13"), "gap", "the cosine critic's gap")),
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
          raw_order),
    Claim("bounded-order",
          "Cosine and hybrid are near zero or negative.", "tab:main",
          with_temperatures(Criterion(each("main", "tau", BOUNDED), NAVIGATION, NO_ORDER,
                                      "tau of {condition}; the paper's own hybrid on PointMaze has "
                                      "0.181"), "tau", "the cosine critic's tau")),
    Claim("no-monotone-fix",
          "Monotone recalibration leaves the pick unchanged, so post-training transformations "
          "cannot repair the selection of cosine and hybrid.", "sec:calibration",
          Criterion(each(CURSE, "normalized", BOUNDED), NAVIGATION, at_least(0.5),
                    "That a strictly increasing map changes no pick holds by arithmetic. What is "
                    "measured is that there is something to repair and that the paper's premise, "
                    "no order, holds: criterion, a normalized regret of {condition} (half of what "
                    "random selection loses) over pooled triples, and {also}. {numbers}",
                    part="regret of {}")
          & Criterion(each("main", "tau", BOUNDED).called("Tau"), NAVIGATION, NO_ORDER,
                      "a tau of {condition}", part="premise for {}")),
    Claim("rankers-auc",
          "Raw and cosine reach retrieval AUCs of 0.96–1.0, …", "sec:good-rankers",
          Criterion(each("retrieval", "auc", RANKERS), NAVIGATION, at_least(0.955),
                    "AUC of {condition}, which rounds to the paper's 0.96")),
    Claim("hybrid-lower",
          "… while hybrid is lower and more variable at 0.86–0.99.", "sec:good-rankers",
          hybrid_lower),
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
                    at_most(-0.2), "TD-Q's AUC less cosine's {condition}")),
    Claim("tdq-well-on-puzzle",
          "… but performs well on Puzzle (AUC 0.89).", "tab:retrieval",
          Criterion(each("retrieval", "auc", TDQ), ("Puzzle",), at_least(0.8),
                    "AUC of {condition:.2f}; the paper has 0.89")),
    Claim("hybrid-lowest-on-puzzle",
          "Hybrid has the lowest Puzzle AUC at 0.79.", "tab:retrieval",
          hybrid_lowest_on_puzzle),
    Claim("retrieval-spread",
          "Per-seed std is at most 0.06, except for AntSoccer TD-Q recall.", "tab:retrieval",
          Criterion(spread("retrieval", ("auc", HARD, "recall_1", "recall_5"), CRITICS,
                           unless=lambda task, critic, metric: "recall" in metric
                           and (task, critic) == ("AntSoccer", "tdq")),
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
          with_temperatures(Criterion(each("readout", "tau",
                                           ("cosine_trained/raw", "cosine_trained/cosine")), CORE,
                                      NO_ORDER, "tau of {condition}"), "tau",
                            "the cosine-trained, cosine-read tau")),
)
# fmt: on
"""From the abstract to the readouts."""
