"""Decisions about search: pooled best-of-K, support preference, the independent value."""

from __future__ import annotations

import numpy as np

from toptail.lab.paper.ledger import Finding, NotMeasuredError, Tables, from_parts
from toptail.lab.paper.semantics_cells import (
    BOUNDED,
    CONTRASTIVE,
    CORE,
    CRITICS,
    NAVIGATION,
    Found,
    compared,
    curve,
    each,
    each_curve,
    extreme,
    found,
    ratio,
    row,
    scope,
    spelled,
    tasks_with,
)

SIZES = (50, 200, 800)
"""Neighbourhood sizes of the paper's sweep."""

no_saturation = each(
    "ogbench-curse",
    "share_above_0.9",
    BOUNDED,
    NAVIGATION,
    lambda cell: cell.mean < 0.005,
    "the pick of the largest pools scores above 0.9 in less than 0.5 % of pools",
    "highest",
)

negative_medians = each(
    "ogbench-curse",
    "median_selected",
    BOUNDED,
    NAVIGATION,
    lambda cell: cell.mean < 0.0,
    "the median score of the pick is below zero; the paper has −0.74 to −0.25. A score's level "
    "depends on the loss and on the temperature",
    "highest",
)

centering = each(
    "ogbench-curse",
    "centered_tau",
    CRITICS,
    NAVIGATION,
    lambda cell: abs(cell.mean) <= 0.03,
    "tau within 0.03 of zero once the mean score of behaviour-model actions at the same (s, g) is "
    "subtracted",
    "farthest from zero",
)


def _least_step(_tables: Tables, _task: str, _critic: str, y: list[float]) -> float:
    return float(np.diff(y).min())


tdq_never_worsens = each_curve(
    "value",
    ("tdq",),
    NAVIGATION,
    _least_step,
    lambda step: step >= 0.0,
    "the value of TD-Q's pick falls at no step of K; the measured number is the smallest rise",
    "lowest",
)

tdq_approaches_oracle = each(
    "ogbench-curse",
    "normalized",
    ("tdq",),
    NAVIGATION,
    lambda cell: cell.mean <= 0.25,
    "normalized regret at the largest K of at most 0.25, where random selection has 1",
    "highest",
)


def tdq_regret(tables: Tables) -> Finding:
    """TD-Q's regret is at most 0.03 on the core tasks and 0.06 on AntSoccer."""
    tasks = tasks_with(tables, "ogbench-curse", ("tdq",), "regret", NAVIGATION)
    cells = {task: found(tables, "ogbench-curse", task, "tdq", "regret") for task in tasks}
    means = {task: cell.mean for task, cell in cells.items()}
    at = extreme(means, "highest")
    return from_parts(
        {task: mean <= (0.035 if task in CORE else 0.065) for task, mean in means.items()},
        means[at],
        cells[at].ends,
        "Criterion: regret that rounds to at most 0.03 on the core tasks and 0.06 on AntSoccer. "
        f"Measured: {spelled(means)}; the number is the highest." + scope(tasks, NAVIGATION),
    )


def _kept(tables: Tables, task: str, critic: str, y: list[float]) -> float:
    """What the largest K keeps of the peak's gain over random; 1 where the peak is the end."""
    random = float(tables["curves"]["tasks"][task][critic]["random"])
    gain = max(y) - random
    return (y[-1] - random) / gain if gain > 0 else -np.inf


peaks_early = each_curve(
    "value",
    CONTRASTIVE,
    NAVIGATION,
    _kept,
    lambda kept: kept <= 0.5,
    "at the largest K at least half of the gain over random at the best K is gone again; the "
    "measured number is the share that is kept (1: the curve still rises; below 0: worse than "
    "random)",
    "highest",
)

contrastive_regret = each(
    "ogbench-curse",
    "regret",
    CONTRASTIVE,
    NAVIGATION,
    lambda cell: cell.mean >= 0.175,
    "regret of at least 0.175, which rounds to the lower end of the paper's 0.18 to 0.26",
    "lowest",
)

order_of_magnitude = compared(
    "ogbench-curse",
    "regret",
    CONTRASTIVE,
    "tdq",
    NAVIGATION,
    ratio,
    lambda times: times >= 5.0,
    "at least five times TD-Q's regret",
    "lowest",
    paper=True,
)


def off_support_rises(tables: Tables) -> Finding:
    """The excess off-support rate of contrastive critics is above zero and grows with K."""
    tasks = tasks_with(tables, "robustness", CRITICS, "excess_off_200", NAVIGATION)
    parts, ends = {}, {}
    for task in tasks:
        for critic in CONTRASTIVE:
            y = curve(tables, task, critic, "excess_off_support")
            cell = found(tables, "robustness", task, critic, "excess_off_200")
            ends[f"{critic} on {task}"] = cell.mean
            clear = cell.ends is not None and cell.ends[0] > 0.0
            parts[f"{critic} on {task}"] = clear and y[-1] > y[1]
    at = extreme(ends, "lowest")
    return from_parts(
        parts,
        ends[at],
        None,
        "Criterion: at the largest K the excess rate (200 nearest states) is above zero with its "
        f"whole interval, and larger than at the first K above one. Measured: {spelled(ends)}; the "
        "number is the lowest." + _without_trajectory(tables, tasks) + scope(tasks, NAVIGATION),
    )


tdq_stays_on_support = each(
    "robustness",
    "excess_off_200",
    ("tdq",),
    NAVIGATION,
    lambda cell: cell.mean <= 0.0,
    "an excess rate of at most zero at the largest K (200 nearest states); the paper's own "
    "HumanoidMaze cell is +0.027",
    "highest",
)


def _without_trajectory(tables: Tables, tasks: list[str], size: int = 200) -> str:
    """The same rates with the anchor's whole trajectory left out, where they were measured."""
    metric = f"excess_off_{size}_trajectory"
    try:
        rates = {
            f"{critic} on {task}": cell.mean
            for task in tasks
            for critic, cell in row(tables, "robustness", task, CRITICS, metric).items()
        }
    except NotMeasuredError:
        return ""
    return f" Without the anchor's whole trajectory: {spelled(rates)}."


def near_sweep_positive(tables: Tables) -> Finding:
    """Every contrastive critic prefers off-support actions at every neighbourhood size."""
    tasks, cells = _by_size(tables, CONTRASTIVE)
    rates = {key: cell.mean for key, cell in cells.items()}
    at = extreme(rates, "lowest")
    return from_parts(
        {key: cell.ends is not None and cell.ends[0] > 0.0 for key, cell in cells.items()},
        rates[at],
        cells[at].ends,
        "Criterion: at the largest K an excess rate above zero with its whole interval. Measured: "
        f"{spelled(rates)}; the number is the lowest."
        + _without_trajectory(tables, tasks)
        + scope(tasks, NAVIGATION),
    )


def near_sweep_decreases(tables: Tables) -> Finding:
    """The excess rate is lower at 800 nearest states than at 50."""
    tasks, _ = _by_size(tables, CONTRASTIVE)
    falls: dict[str, float] = {}
    for task in tasks:
        near, far = (row(tables, "robustness", task, CONTRASTIVE, f"excess_off_{n}")
                     for n in (SIZES[0], SIZES[-1]))  # fmt: skip
        falls |= {f"{c} on {task}": near[c].mean - far[c].mean for c in CONTRASTIVE}
    at = extreme(falls, "lowest")
    return from_parts(
        {key: fall > 0.0 for key, fall in falls.items()},
        falls[at],
        None,
        f"Criterion: lower at {SIZES[-1]} nearest states than at {SIZES[0]}. It falls by: "
        f"{spelled(falls)}; the number is the smallest fall." + scope(tasks, NAVIGATION),
    )


def near_sweep_tdq(tables: Tables) -> Finding:
    """TD-Q has no off-support preference; on HumanoidMaze at most a small one."""
    tasks, cells = _by_size(tables, ("tdq",))
    rates = {key: cell.mean for key, cell in cells.items()}
    at = extreme(rates, "highest")
    return from_parts(
        {k: rate <= (0.09 if "HumanoidMaze" in k else 0.0) for k, rate in rates.items()},
        rates[at],
        None,
        "Criterion: an excess rate of at most zero at the largest K, at most 0.09 on HumanoidMaze. "
        f"Measured: {spelled(rates)}; the number is the highest." + scope(tasks, NAVIGATION),
    )


def _by_size(tables: Tables, critics: tuple[str, ...]) -> tuple[list[str], dict[str, Found]]:
    """Excess rates at every neighbourhood size, of the tasks that have all sizes."""
    tasks = list(NAVIGATION)
    for size in SIZES:
        tasks = tasks_with(tables, "robustness", critics, f"excess_off_{size}", tasks)
    return tasks, {
        f"{critic} on {task} ({size})": cell
        for task in tasks
        for size in SIZES
        for critic, cell in row(tables, "robustness", task, critics, f"excess_off_{size}").items()
    }


def bucket_falls(tables: Tables) -> Finding:
    """Regret within quartiles of γ^d is below that of mixed pools, for all critics."""
    tasks = tasks_with(tables, "robustness", CRITICS, "regret_within_bucket", NAVIGATION)
    falls: dict[str, float] = {}
    for task in tasks:
        full = row(tables, "robustness", task, CRITICS, "regret_full")
        within = row(tables, "robustness", task, CRITICS, "regret_within_bucket")
        falls |= {f"{c} on {task}": full[c].mean - within[c].mean for c in CRITICS}
    paper = tables["robustness"].get("paper", {})
    own = [
        f"{critic} on {task}"
        for task, cells in paper.items()
        for critic, metrics in cells.items()
        if metrics["regret_within_bucket"]["mean"] > metrics["regret_full"]["mean"]
    ]
    text = f" In the paper's own cells it rises for {', '.join(own)}." if own else ""
    at = extreme(falls, "lowest")
    return from_parts(
        {key: fall > 0.0 for key, fall in falls.items()},
        falls[at],
        None,
        f"Criterion: lower than over mixed pools. It falls by: {spelled(falls)}; the number is the "
        f"smallest fall.{text}" + scope(tasks, NAVIGATION),
    )


bucket_ratio = compared(
    "robustness",
    "regret_within_bucket",
    CONTRASTIVE,
    "tdq",
    NAVIGATION,
    ratio,
    lambda times: 1.45 <= times <= 2.55,
    "between 1.5 and 2.5 times TD-Q's regret within quartiles, rounded",
    "lowest",
    paper=True,
)
