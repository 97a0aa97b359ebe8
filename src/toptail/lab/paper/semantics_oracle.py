"""Decisions about the independent value oracle and the behaviour models' candidates."""

from __future__ import annotations

import numpy as np

from toptail.lab.paper.ledger import Finding, NotMeasuredError, Tables, from_parts
from toptail.lab.paper.semantics_cells import (
    CONTRASTIVE,
    CORE,
    CRITICS,
    NAVIGATION,
    each,
    extreme,
    found,
    known_row,
    ratio,
    row,
    scope,
    spelled,
    spread,
    tasks_with,
)


def stitching_gap(tables: Tables) -> Finding:
    """γ^d and the independent value differ on PointMaze and AntMaze, and agree on HumanoidMaze."""
    tasks = tasks_with(tables, "value-oracle", ("oracle",), "spearman", CORE)
    cells = {task: found(tables, "value-oracle", task, "oracle", "spearman") for task in tasks}
    means = {task: cell.mean for task, cell in cells.items()}
    return from_parts(
        {t: m >= 0.85 if t == "HumanoidMaze" else m <= 0.80 for t, m in means.items()},
        means[tasks[0]],
        cells[tasks[0]].ends,
        "Criterion: Spearman's rho of at most 0.80 on PointMaze and AntMaze, at least 0.85 on "
        f"HumanoidMaze. Measured: {spelled(means)}; the paper has 0.73, 0.57 and 0.90. The number "
        f"is that of {tasks[0]}." + scope(tasks, CORE),
    )


def regret_doubles(tables: Tables) -> Finding:
    """Normalized contrastive regret against the independent value is about twice that by γ^d."""
    among = ("PointMaze", "AntMaze")
    tasks = tasks_with(tables, "value-oracle", CONTRASTIVE, "nregret_oracle", among)
    times: dict[str, float] = {}
    for task in tasks:
        ours = row(tables, "value-oracle", task, CONTRASTIVE, "nregret_oracle")
        base = row(tables, "value-oracle", task, CONTRASTIVE, "nregret_gamma")
        times |= {f"{c} on {task}": ratio(ours[c], base[c]) for c in CONTRASTIVE}
    at = extreme(times, "lowest")
    return from_parts(
        {key: 1.5 <= number <= 3.0 for key, number in times.items()},
        times[at],
        None,
        "Criterion: between 1.5 and 3 times the normalized regret by γ^d. Measured: "
        f"{spelled(times, 2)}; the number is the lowest." + scope(tasks, among),
    )


def curse_under_oracle(tables: Tables) -> Finding:
    """In every seed every contrastive critic loses much more than TD-Q by the independent value."""
    name, metric = "value-oracle", "nregret_oracle"
    tasks = tasks_with(tables, name, CRITICS, metric, CORE)
    parts, times = {}, {}
    for task in tasks:
        cells = row(tables, name, task, CRITICS, metric)
        worst = max(cells["tdq"].seeds.values())
        for critic in CONTRASTIVE:
            best = min(cells[critic].seeds.values())
            times[f"{critic} on {task}"] = best / worst if worst > 0 else np.inf
            parts[f"the effect for {critic} on {task}"] = best >= 0.5
            parts[f"more than TD-Q for {critic} on {task}"] = best >= 2.0 * worst
    at = extreme(times, "lowest")
    return from_parts(
        parts,
        times[at],
        None,
        "Criterion: the contrastive critic's best seed has a normalized regret of at least 0.5 "
        "(the effect remains) and of twice TD-Q's worst seed. TD-Q is trained as the judge is, so "
        "that its own regret is no independent evidence. Best seed over TD-Q's worst: "
        f"{spelled(times, 2)}; the number is the lowest." + scope(tasks, CORE),
    )


def not_the_proxy(tables: Tables) -> Finding:
    """Contrastive regret stays when another judge takes the place of γ^d."""
    name = "value-oracle"
    tasks = tasks_with(tables, name, CONTRASTIVE, "nregret_oracle", CORE)
    share: dict[str, float] = {}
    for task in tasks:
        base = row(tables, name, task, CONTRASTIVE, "nregret_gamma")
        for judge in ("oracle", "geodesic"):
            cells = known_row(tables, name, task, CONTRASTIVE, f"nregret_{judge}")
            share |= {
                f"{critic} by {judge} on {task}": cell.mean / base[critic].mean
                for critic, cell in cells.items()
            }
    at = extreme(share, "lowest")
    return from_parts(
        {key: number >= 0.5 for key, number in share.items()},
        share[at],
        None,
        "Criterion: by every other judge, normalized regret is at least half of what it is by γ^d. "
        "The geodesic judge, where there is one, is exact and untrained. Shares: "
        f"{spelled(share, 2)}; the number is the lowest." + scope(tasks, CORE),
    )


near_random_on_humanoid = each(
    "value-oracle",
    "nregret_oracle",
    CONTRASTIVE,
    ("HumanoidMaze",),
    lambda cell: 0.75 <= cell.mean <= 1.25,
    "a normalized regret between 0.75 and 1.25; the paper's own cosine has 2.28",
    "highest",
)


def diffusion_unchanged(tables: Tables) -> Finding:
    """Candidates of behaviour models leave normalized regret as it was."""
    name = "value-oracle-diffusion"
    among = ("AntMaze",)
    tasks = [task for task in NAVIGATION if task in tables.get(name, {}).get("rows", {})]
    tasks = tasks_with(tables, name, CRITICS, "nregret_oracle_diffusion", tasks or among)
    shifts: dict[str, float] = {}
    for task in tasks:
        data = row(tables, name, task, CRITICS, "nregret_oracle_data")
        drawn = row(tables, name, task, CRITICS, "nregret_oracle_diffusion")
        shifts |= {
            f"{c} on {task}": abs(drawn[c].mean - data[c].mean) / max(abs(data[c].mean), 0.5)
            for c in CRITICS
        }
    at = extreme(shifts, "highest")
    return from_parts(
        {key: shift <= 0.10 for key, shift in shifts.items()},
        shifts[at],
        None,
        "Criterion: the normalized regret changes by at most a tenth of itself (of 0.5 where it is "
        f"smaller). Relative changes: {spelled(shifts)}; the number is the highest."
        + _other_task(tasks),
    )


def diffusion_spread(tables: Tables) -> Finding:
    """The regret hardly depends on which behaviour model proposed the candidates."""
    name = "value-oracle-diffusion"
    tasks = [task for task in NAVIGATION if task in tables.get(name, {}).get("rows", {})]
    decision = spread(
        name, ("nregret_oracle_diffusion",), CRITICS, tasks or ["AntMaze"], limit=0.005
    )
    finding = decision(tables)
    comment = f"{finding.comment} The seeds are those of the behaviour models."
    return Finding(finding.status, finding.number, finding.interval, comment + _other_task(tasks))


def diffusion_holds_out(tables: Tables) -> Finding:
    """The behaviour models' loss on held-out data is close to that on training data."""
    gaps = {
        f"seed {seed} on {task}": abs(gap["gap"]) / gap["held_out"]
        for task, models in tables.get("value-oracle-diffusion", {}).get("loss_gaps", {}).items()
        for seed, gap in models.items()
    }
    if not gaps:
        raise NotMeasuredError("value-oracle-diffusion: loss_gaps")
    at = extreme(gaps, "highest")
    return from_parts(
        {key: gap <= 0.05 for key, gap in gaps.items()},
        gaps[at],
        None,
        "Criterion: the denoising loss on held-out and on training data differ by at most 5 % of "
        f"the former. Measured: {spelled(gaps)}; the number is the highest. The denoising loss "
        "stands in for the likelihood, of which it is a weighted bound.",
    )


def _other_task(tasks: list[str]) -> str:
    if tasks == ["AntMaze"]:
        return ""
    return f" The paper measured AntMaze; this was measured on {', '.join(tasks)}."
