"""The whole study: train what is missing, then write tables, curves, surfaces and the audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from toptail.audit import Settings, pools_content
from toptail.io.arrays import write_arrays
from toptail.io.json_files import write_json
from toptail.lab.critics.registry import MAIN
from toptail.lab.store.folder import RunFolder, alone
from toptail.pools import ScoredPools
from toptail.progress import Tick, no_tick
from toptail.results import write_report
from toptail.stats import oracle
from toptail_paper.controlled.cells import CriticCell
from toptail_paper.controlled.config import NOISE_SIGMA, TWO_HEAD, StudyConfig, Sweep
from toptail_paper.controlled.decomposition import COUNTERFACTUALS, decompose
from toptail_paper.controlled.ideals import ideal_rows, search_error_rows
from toptail_paper.controlled.landscape import landscape
from toptail_paper.controlled.noise import noise_rows
from toptail_paper.controlled.picks import (
    curve_entry,
    in_support_norm,
    pick_cells,
    plain_cells,
)
from toptail_paper.controlled.plan import Plan
from toptail_paper.controlled.specs import TABLES
from toptail_paper.controlled.sweeps import CAPTIONS
from toptail_paper.study.naming import is_circular
from toptail_paper.study.search_error import NOTES as SPLIT_NOTES
from toptail_paper.study.tables import Rows, StoredCell

DECOMPOSED = tuple(name for name in MAIN if not is_circular(name))
"""Critics of the support decomposition."""


def write_pools(plan: Plan) -> None:
    """Store what the critics of each radius were scored on."""
    for radius in sorted({plan.config.world.radius, *plan.config.radii}):
        pools = plan.pools(replace(plan.config.world, radius=radius))
        arrays = {
            "states": pools.queries.states,
            "goals": pools.queries.goals,
            "actions": pools.actions,
            "value": pools.value,
            "value_noisy": pools.value_noisy,
            "support": pools.support,
        }
        write_arrays(plan.run.path / "pools" / f"R{radius:.2f}.npz", dict(arrays))


def write_tables(plan: Plan) -> None:
    """Write every table that this plan has the units for."""
    config, main = plan.config, [plan.main[name] for name in MAIN]
    text = f"Controlled candidate selection, R={config.world.radius:.2f}"
    rows: Rows = {"controlled": _rows(plan, main) | ideal_rows(plan, config.world)}
    _write(plan, "toy-support", text, rows)
    text = "Within-model readout control: one two-head network per seed"
    _write(plan, "toy-within", text, {"controlled": _rows(plan, [plan.main[TWO_HEAD]])})
    _write_decomposition(plan)
    _write_noise(plan)
    split: Rows = {"controlled": search_error_rows(plan)}
    _write(plan, "search-error", "Where search error comes from", split, SPLIT_NOTES)
    if plan.by_radius:
        rows = {
            f"controlled@R={r:.2f}": _rows(plan, cells) | ideal_rows(plan, cells[0].world)
            for r, cells in plan.by_radius.items()
        }
        _write(plan, "r-sweep", "Support-radius robustness", rows, seeds=config.radius_seeds)
    for name in plan.sweeps:
        _write_sweep(plan, name)


def _write(
    plan: Plan,
    name: str,
    text: str,
    rows: Rows,
    notes: Sequence[str] = (),
    *,
    seeds: int | None = None,
    **more: Any,
) -> None:
    """Store a table; its caption tells K and how many of the seeds, all by default."""
    count = len(plan.config.seeds[:seeds])
    caption = f"{text}, K={plan.config.pool}, {count} seeds"
    plan.run.write_table(name, TABLES[name].table(caption, rows, notes, **more))


def _rows(plan: Plan, cells: Sequence[CriticCell]) -> dict[str, dict[str, StoredCell]]:
    """One row per scalar that the critics are selected with."""
    return {
        name: pick_cells(plan.units(cell), readout, plan.config, plan.pools(cell.world))
        for cell in cells
        for name, readout in cell.readouts.items()
    }


def _write_decomposition(plan: Plan) -> None:
    cells = {"controlled": [plan.main[name] for name in DECOMPOSED]}
    for setting in plan.sweeps.get("loss", []):
        if not plan.is_default(setting):
            cells[setting.task] = [c for c in setting.cells if c.critic.name in DECOMPOSED]
    rows: Rows = {
        task: {c.critic.name: decompose(plan.units(c), plan.config, plan.pools()) for c in row}
        for task, row in cells.items()
    }
    notes = [f"{name}: {what}." for name, what in COUNTERFACTUALS.items()]
    text = "Support decomposition: regret without one channel"
    _write(plan, "support-decomposition", text, rows, notes)


def _write_noise(plan: Plan) -> None:
    critics = {name: plan.units(plan.main[name]) for name in MAIN}
    task = f"controlled@sigma={NOISE_SIGMA:.2f}"
    rows: Rows = {task: noise_rows(critics, plan.units(plan.noisy), plan.pools())}
    notes = [
        "The contrastive critics never see the reached state, so noise leaves their data, "
        "parameters and picks as they are.",
        "The paper's 0.063 is a bound, sigma sqrt(pi/2).",
    ]
    _write(plan, "noise", "Transition noise: changed picks and shifted regret", rows, notes)


def _write_sweep(plan: Plan, name: Sweep) -> None:
    settings = plan.sweeps[name]
    rows: Rows = {
        setting.task: {
            name: plain_cells(plan.units(cell, setting.steps), readout)
            for cell in setting.cells
            for name, readout in cell.readouts.items()
        }
        for setting in settings
    }
    default = [setting.task for setting in settings if plan.is_default(setting)]
    _write(plan, f"sweep-{name}", CAPTIONS[name], rows, axis=name, default=default)


def write_curves(plan: Plan) -> None:
    """Store every metric over K, for all seeds."""
    pools = plan.pools()
    deployments = plan.deployments()
    content = {
        "label": ["fig:curse", "fig:toy-regret"],
        "k": list(plan.config.k),
        "oracle": oracle(pools.value, plan.config.k).mean(axis=0).tolist(),
        "random": float(pools.value.mean()),
        "critics": {name: curve_entry(units, readout) for name, units, readout in deployments},
        "phi_norm_in_support": {
            name: in_support_norm(units, pools) for name, units, _ in deployments
        },
    }
    write_json(plan.run.path / "curves.json", content)


def write_landscape(plan: Plan) -> None:
    """Store the score surfaces of the first seed."""
    units = {name: plan.units(plan.main[name])[0] for name in MAIN}
    write_arrays(plan.run.path / "landscape.npz", landscape(units, plan.config, plan.pools()))


def write_audit(plan: Plan) -> None:
    """Put the pools through the audit that any user runs, from the file on."""
    pools = plan.pools()
    scores = {
        f"{name}@{unit.seed}": unit.scores()[readout]
        for name, units, readout in plan.deployments()
        for unit in units
    }
    path = plan.run.path / "audit_pools.npz"
    ScoredPools.from_arrays(scores, pools.value, support=pools.support).write(path)
    result = pools_content(
        # By its name: the file lies beside the audit, and nobody else has this path.
        replace(ScoredPools.read(path), source=path.name),
        Settings(k=plan.config.k, resamples=plan.config.resamples),
        command=f"toptail audit {path.name}",
    )
    write_report(result, plan.run.path / "audit")


TRAINING_SHARE = 0.9
"""Share of the progress bar that training takes."""

WRITERS: tuple[tuple[str, Callable[[Plan], None]], ...] = (
    ("writing pools", write_pools),
    ("writing tables", write_tables),
    ("writing curves", write_curves),
    ("writing surfaces", write_landscape),
    ("auditing", write_audit),
)


def run_controlled(
    config: StudyConfig, out: str | Path, tick: Tick = no_tick, command: str | None = None
) -> RunFolder:
    """Run the study and store everything under ``out``; finished units are not repeated.

    See `toptail_paper.controlled` for what the folder holds afterwards. The record names
    ``command``, or the process's own.
    """
    run = RunFolder(Path(out))
    plan = Plan(config, run)
    with alone(run.path, tick), run.recording(asdict(config), list(config.seeds), command):
        plan.compute(lambda stage, share: tick(stage, TRAINING_SHARE * share))
        for i, (stage, write) in enumerate(WRITERS):
            tick(stage, TRAINING_SHARE + (1.0 - TRAINING_SHARE) * i / len(WRITERS))
            write(plan)
    tick("finished", 1.0)
    return run
