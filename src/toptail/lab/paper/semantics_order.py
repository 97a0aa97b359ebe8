"""Decisions about calibration, ordering, readouts and Bellman consistency."""

from __future__ import annotations

import numpy as np

from toptail.lab.paper.ledger import Finding, NotMeasuredError, Tables, from_parts
from toptail.lab.paper.semantics_cells import (
    BOUNDED,
    CONTRASTIVE,
    CORE,
    CRITICS,
    NAVIGATION,
    RANKERS,
    below,
    compared,
    each,
    each_curve,
    extreme,
    found,
    ratio,
    row,
    scope,
    spelled,
    spread,
    sweep,
    tasks_with,
    with_temperature,
)

WEAK_GAP = 2 / 3
"""Largest share of TD-Q's decile gap that is weak: the paper's own shares reach 0.57."""
NO_GAP = 0.05
"""Largest decile gap that is near zero: the paper says so of 0.04."""
NO_ORDER = 0.10
"""Largest tau that is near zero: the paper says so of 0.058 and −0.102."""

weak_calibration = compared(
    "calibration-summary",
    "gap",
    CONTRASTIVE,
    "tdq",
    NAVIGATION,
    ratio,
    lambda share: share <= WEAK_GAP,
    "a decile gap of at most two thirds of TD-Q's (a negative one is inverted)",
    "highest",
)

tdq_gap = each(
    "calibration-summary",
    "gap",
    ("tdq",),
    NAVIGATION,
    lambda cell: cell.mean >= 0.15 and cell.ends is not None and cell.ends[0] > 0,
    "a gap of at least 0.15 whose interval lies above zero; the paper has 0.18 to 0.35",
    "lowest",
)

bounded_gap = with_temperature(
    each(
        "calibration-summary",
        "gap",
        BOUNDED,
        NAVIGATION,
        lambda cell: cell.mean <= NO_GAP,
        f"a gap of at most {NO_GAP}; the paper's own hybrid on PointMaze has 0.13",
        "highest",
    ),
    "gap",
    lambda gap: gap <= NO_GAP,
    f"the cosine critic's gap is at most {NO_GAP}",
)

gap_spread = spread("calibration-summary", ("gap",), CRITICS, NAVIGATION, 0.02)


def raw_gap(tables: Tables) -> Finding:
    """Raw's gap is weaker than TD-Q's everywhere, and differs between tasks."""
    name = "calibration-summary"
    tasks = tasks_with(tables, name, ("tdq", "raw"), "gap", NAVIGATION)
    raw = {task: found(tables, name, task, "raw", "gap") for task in tasks}
    parts = {
        f"weak on {task}": cell.mean <= WEAK_GAP * found(tables, name, task, "tdq", "gap").mean
        for task, cell in raw.items()
    }
    means = {task: cell.mean for task, cell in raw.items()}
    if len(tasks) > 1:
        parts["task-dependent"] = max(means.values()) - min(means.values()) >= 0.05
    at = extreme(means, "highest")
    return from_parts(
        parts,
        means[at],
        raw[at].ends,
        "Criterion: weak is at most two thirds of TD-Q's gap; task-dependent, where more than one "
        f"task was measured, is a range of at least 0.05 over tasks. Measured: {spelled(means)}; "
        "the number is the highest." + scope(tasks, NAVIGATION),
    )


tdq_monotone = each_curve(
    "deciles",
    ("tdq",),
    NAVIGATION,
    lambda _tables, _task, _critic, y: float(np.diff(y).min()),
    lambda step: step >= 0.0,
    "no decile's mean γ^d lies below that of the decile before it, in the mean over seeds; the "
    "measured number is the smallest step",
    "lowest",
)

flat_tail = each_curve(
    "deciles",
    BOUNDED,
    NAVIGATION,
    lambda _tables, _task, _critic, y: y[-1] - y[len(y) // 2],
    lambda rise: rise <= 0.02,
    "mean γ^d rises by at most 0.02 from the sixth to the top decile",
    "highest",
)

tdq_order = each(
    "main",
    "tau",
    ("tdq",),
    NAVIGATION,
    lambda cell: cell.mean >= 0.45,
    "tau of at least 0.45; the paper has 0.49 to 0.79",
    "lowest",
)


def raw_order(tables: Tables) -> Finding:
    """Raw orders weakly on the core tasks, and not at all on AntSoccer."""
    tasks = tasks_with(tables, "main", ("tdq", "raw"), "tau", NAVIGATION)
    raw = {task: found(tables, "main", task, "raw", "tau") for task in tasks}
    parts = {}
    for task, cell in raw.items():
        if task in CORE:
            half = found(tables, "main", task, "tdq", "tau").mean / 2
            parts[f"weak on {task}"] = 0.0 < cell.mean <= half
        else:
            parts[f"negative on {task}"] = cell.mean < 0.0
    means = {task: cell.mean for task, cell in raw.items()}
    at = extreme(means, "highest")
    return from_parts(
        parts,
        means[at],
        raw[at].ends,
        "Criterion: on the core tasks above zero and at most half of TD-Q's tau; on AntSoccer "
        f"below zero. Measured: {spelled(means)}; the number is the highest."
        + scope(tasks, NAVIGATION),
    )


bounded_order = with_temperature(
    each(
        "main",
        "tau",
        BOUNDED,
        NAVIGATION,
        lambda cell: cell.mean <= NO_ORDER,
        f"tau of at most {NO_ORDER}; the paper's own hybrid on PointMaze has 0.181",
        "highest",
    ),
    "tau",
    lambda tau: tau <= NO_ORDER,
    f"the cosine critic's tau is at most {NO_ORDER}",
)


def order_despite_compatibility(tables: Tables) -> Finding:
    """Contrastive tau is at most half of TD-Q's where contrastive AUC is high."""
    tasks = tasks_with(tables, "main", CRITICS, "tau", NAVIGATION)
    tasks = tasks_with(tables, "retrieval", CONTRASTIVE, "auc", tasks)
    parts, shares = {}, {}
    for task in tasks:
        tau = row(tables, "main", task, CRITICS, "tau")
        auc = row(tables, "retrieval", task, CONTRASTIVE, "auc")
        for critic in CONTRASTIVE:
            shares[f"{critic} on {task}"] = ratio(tau[critic], tau["tdq"])
            parts[f"order of {critic} on {task}"] = shares[f"{critic} on {task}"] <= 0.5
            parts[f"retrieval of {critic} on {task}"] = auc[critic].mean >= 0.85
    return from_parts(
        parts,
        max(shares.values()),
        None,
        "Criterion: tau at most half of TD-Q's, and a retrieval AUC of at least 0.85, the paper's "
        f"lowest being 0.856. Tau as a share of TD-Q's: {spelled(shares)}; the number is the "
        "highest." + scope(tasks, NAVIGATION),
    )


def no_monotone_fix(tables: Tables) -> Finding:
    """An increasing map changes no pick; cosine's and hybrid's picks leave something to repair."""
    tasks = tasks_with(tables, "ogbench-curse", BOUNDED, "normalized", NAVIGATION)
    cells = {
        f"{critic} on {task}": cell
        for task in tasks
        for critic, cell in row(tables, "ogbench-curse", task, BOUNDED, "normalized").items()
    }
    means = {key: cell.mean for key, cell in cells.items()}
    at = extreme(means, "lowest")
    return from_parts(
        {key: mean >= 0.5 for key, mean in means.items()},
        means[at],
        cells[at].ends,
        "That a strictly increasing map changes no pick holds by arithmetic. What is measured is "
        "that there is something to repair: criterion, a normalized regret of at least 0.5 (half "
        f"of what random selection loses) over pooled triples. Measured: {spelled(means)}; the "
        "number is the lowest." + scope(tasks, NAVIGATION),
    )


raw_read_as_cosine = each(
    "readout",
    "tau",
    ("raw_trained/cosine",),
    CORE,
    lambda cell: cell.ends is not None and cell.ends[0] > 0.0,
    "tau above zero with its whole interval",
    "lowest",
)

norm_alone = each(
    "readout",
    "tau",
    ("raw_trained/phi_norm",),
    CORE,
    lambda cell: abs(cell.mean) <= 0.05,
    "tau within 0.05 of zero; the paper has −0.011 to 0.032",
    "farthest from zero",
)

cosine_training_loses = with_temperature(
    each(
        "readout",
        "tau",
        ("cosine_trained/raw", "cosine_trained/cosine"),
        CORE,
        lambda cell: cell.mean <= NO_ORDER,
        f"tau of at most {NO_ORDER}",
        "highest",
    ),
    "tau",
    lambda tau: tau <= NO_ORDER,
    f"the cosine-trained, cosine-read tau is at most {NO_ORDER}",
)


def training_not_reading(tables: Tables) -> Finding:
    """Reading raw embeddings by cosine keeps the order; training by cosine loses most of it."""
    keys = ("raw_trained/raw", "raw_trained/cosine", "cosine_trained/cosine")
    tasks = tasks_with(tables, "readout", keys, "tau", CORE)
    parts, shares = {}, {}
    for task in tasks:
        deployed, read, trained = row(tables, "readout", task, keys, "tau").values()
        parts[f"reading keeps it on {task}"] = read.mean >= 0.5 * deployed.mean > 0
        parts[f"training removes it on {task}"] = trained.mean <= 0.5 * read.mean
        shares[task] = ratio(trained, read)
    limits = {t: found(tables, "readout", t, keys[1], "tau").mean / 2 for t in tasks}
    met, failed = sweep(tables, "tau", lambda tau: tau <= min(limits.values()))
    text = ""
    if met or failed:
        text = (
            " At settings of the temperature study without collapse, training removes it by the "
            f"same criterion in {len(met)} of {len(met) + len(failed)}"
            + (f": {spelled(met)}." if met else ".")
        )
        parts["every temperature and loss"] = not failed
    at = extreme(shares, "highest")
    return from_parts(
        parts,
        shares[at],
        None,
        "Criterion: raw embeddings read by cosine keep at least half of raw's tau, and training by "
        "cosine leaves at most half of that. Tau of cosine training as a share of the cosine "
        f"reading of raw training: {spelled(shares)}; the number is the highest.{text}"
        + scope(tasks, CORE),
    )


tdq_consistent = each(
    "bellman",
    "rmse",
    ("tdq",),
    NAVIGATION,
    lambda cell: cell.mean <= 0.075,
    "RMSE(δ)/std(f) of at most 0.075; the paper has 0.036 to 0.051",
    "highest",
)

contrastive_error = compared(
    "bellman",
    "rmse",
    RANKERS,
    "tdq",
    NAVIGATION,
    ratio,
    lambda times: 4.0 <= times <= 8.0,
    "RMSE(δ)/std(f) of raw and cosine 4 to 8 times TD-Q's. It depends on a score's arbitrary "
    "offset",
    "lowest",
    paper=True,
)


def hybrid_between(tables: Tables) -> Finding:
    """Hybrid's error lies between TD-Q's and the lower of raw's and cosine's."""
    tasks = tasks_with(tables, "bellman", CRITICS, "rmse", NAVIGATION)
    parts, numbers = {}, {}
    for task in tasks:
        cells = row(tables, "bellman", task, CRITICS, "rmse")
        parts[task] = (
            below(cells["tdq"], cells["hybrid"])
            and below(cells["hybrid"], cells["raw"])
            and below(cells["hybrid"], cells["cosine"])
        )
        numbers[task] = cells["hybrid"].mean
    at = extreme(numbers, "highest")
    return from_parts(
        parts,
        numbers[at],
        found(tables, "bellman", at, "hybrid", "rmse").ends,
        "Criterion: every seed's RMSE(δ)/std(f) lies above all of TD-Q's and below all of raw's "
        f"and cosine's. Hybrid: {spelled(numbers)}." + scope(tasks, NAVIGATION),
    )


def consistent_without_offset(tables: Tables) -> Finding:
    """TD-Q obeys the recursion and contrastive scores do not, whatever the score's offset."""
    tasks = tasks_with(tables, "bellman", CRITICS, "std", NAVIGATION)
    tasks = tasks_with(tables, "bellman", CRITICS, "rmse", tasks)
    parts: dict[str, bool] = {}
    numbers: dict[str, float] = {}
    offsets: dict[str, float] = {}
    for task in tasks:
        std = row(tables, "bellman", task, CRITICS, "std")
        rmse = row(tables, "bellman", task, CRITICS, "rmse")
        parts[f"TD-Q on {task}"] = std["tdq"].mean <= 0.10
        for critic in CONTRASTIVE:
            numbers[f"{critic} on {task}"] = ratio(std[critic], std["tdq"])
            parts[f"{critic} on {task}"] = numbers[f"{critic} on {task}"] >= 2.0
        offsets |= {f"{c} on {task}": ratio(rmse[c], std[c]) for c in CRITICS}
    if not parts:
        raise NotMeasuredError("bellman")
    return from_parts(
        parts,
        min(numbers.values()),
        None,
        "Criterion, in std(δ)/std(f), which no constant added to a score changes: TD-Q at most "
        f"0.10, every contrastive score at least twice TD-Q's. Times TD-Q's: {spelled(numbers, 2)};"
        " the number is the lowest. The paper's RMSE(δ)/std(f) is larger by these factors, which "
        f"are the offset's: {spelled(offsets, 2)}." + scope(tasks, NAVIGATION),
    )
