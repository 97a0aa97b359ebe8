"""The whole study: train what is missing, then write tables, curves, surfaces and the audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from toptail.audit.run import pools_content
from toptail.audit.settings import Settings
from toptail.io.arrays import write_arrays
from toptail.io.json_files import write_json
from toptail.judging.values import judged_pools
from toptail.lab.critics.base import Critic, Params
from toptail.lab.critics.registry import MAIN
from toptail.pools import ScoredPools
from toptail.progress import Tick, no_tick
from toptail.results import write_report
from toptail.stats import oracle
from toptail_paper.controlled.cells import CriticCell, Trained, compute_cell, unit_of
from toptail_paper.controlled.config import CONTROL, NOISE_SIGMA, TWO_HEAD, StudyConfig, Sweep
from toptail_paper.controlled.evaluate import Floats, Pools, Scores, heldout_scores
from toptail_paper.controlled.measure import (
    COUNTERFACTUALS,
    curve_entry,
    decompose,
    ideal_rows,
    in_support_norm,
    noise_rows,
    pick_cells,
    plain_cells,
    search_error_rows,
)
from toptail_paper.controlled.specs import TABLES
from toptail_paper.controlled.trainings import CAPTIONS, COSINES, Trainings, cells_of
from toptail_paper.controlled.world import exact_value
from toptail_paper.study.naming import is_circular
from toptail_paper.study.search_error import NOTES as SPLIT_NOTES
from toptail_paper.study.store import Arrays, RunFolder, alone
from toptail_paper.study.tables import Rows, StoredCell

QUERY = 0
"""The query that is drawn: the first, whatever it shows."""


def surface(
    critic: Critic, params: Params, state: Floats, actions: Floats, goal: Floats
) -> tuple[Scores, Scores]:
    """Deployed score and ||grad_a f|| at actions [n, 2] of one query: [n] each."""
    read = critic.readouts()[critic.deployed]
    at = (jnp.asarray(state, jnp.float32), jnp.asarray(goal, jnp.float32))

    def score(action: jax.Array) -> jax.Array:
        return read(params, at[0], action, at[1])

    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(score)))(actions.astype(np.float32))
    return np.asarray(values), np.linalg.norm(np.asarray(slopes), axis=-1)


def landscape(units: Mapping[str, Trained], config: StudyConfig, pools: Pools) -> Arrays:
    """All arrays of ``landscape.npz``; units by critic, all of one seed."""
    world = config.world
    axis = np.linspace(-world.box, world.box, config.grid)
    x, y = np.meshgrid(axis, axis)
    grid = np.stack([x.ravel(), y.ravel()], axis=-1)
    state, goal = pools.queries.states[QUERY], pools.queries.goals[QUERY]
    distance = np.linalg.norm(pools.heldout.goals - pools.heldout.states, axis=-1)
    arrays: Arrays = {
        "axis": axis,
        "goal": goal,
        "radius": np.array(world.radius),
        "seed": np.array(next(iter(units.values())).seed),
        "candidates": pools.actions[QUERY],
        "candidate_value": pools.value[QUERY],
        "oracle_pick": np.array(pools.value[QUERY].argmax()),
        "value": exact_value(world, state, grid, goal).reshape(x.shape),
        "distance": distance,
    }
    for name, unit in units.items():
        critic, params = unit.cell.critic, unit.params()
        score, slope = surface(critic, params, state, grid, goal)
        candidate_score = unit.scores()[critic.deployed][QUERY]
        positive, negative = heldout_scores(critic, params, critic.deployed, pools)
        arrays |= {
            f"score_{name}": score.reshape(x.shape),
            f"gradient_{name}": slope.reshape(x.shape),
            f"candidate_score_{name}": candidate_score,
            f"pick_{name}": np.array(candidate_score.argmax()),
            f"positive_{name}": positive,
            f"negative_{name}": negative[:, 0],
        }
    return arrays


DECOMPOSED = tuple(name for name in MAIN if not is_circular(name))
"""Critics of the support decomposition."""


def write_pools(runs: Trainings) -> None:
    """Store what the critics of each radius were scored on."""
    for radius in sorted({runs.config.world.radius, *runs.config.radii}):
        pools = runs.pools(replace(runs.config.world, radius=radius))
        arrays = {
            "states": pools.queries.states,
            "goals": pools.queries.goals,
            "actions": pools.actions,
            "value": pools.value,
            "value_noisy": pools.value_noisy,
            "support": pools.support,
        }
        write_arrays(runs.run.path / "pools" / f"R{radius:.2f}.npz", dict(arrays))


def write_tables(runs: Trainings) -> None:
    config, main = runs.config, [runs.main[name] for name in MAIN]
    text = f"Controlled candidate selection, R={config.world.radius:.2f}"
    rows: Rows = {"controlled": _rows(runs, main) | ideal_rows(runs, config.world)}
    _write(runs, "toy-support", text, rows)
    text = "Within-model readout control: one two-head network per seed"
    _write(runs, "toy-within", text, {"controlled": _rows(runs, [runs.main[TWO_HEAD]])})
    _write_decomposition(runs)
    _write_noise(runs)
    split: Rows = {"controlled": search_error_rows(runs)}
    _write(runs, "search-error", "Where search error comes from", split, SPLIT_NOTES)
    if runs.by_radius:
        rows = {
            f"controlled@R={r:.2f}": _rows(runs, cells) | ideal_rows(runs, cells[0].world)
            for r, cells in runs.by_radius.items()
        }
        _write(runs, "r-sweep", "Support-radius robustness", rows, seeds=config.radius_seeds)
    for name in runs.sweeps:
        _write_sweep(runs, name)


def _write(
    runs: Trainings,
    name: str,
    text: str,
    rows: Rows,
    notes: Sequence[str] = (),
    *,
    seeds: int | None = None,
    **more: Any,
) -> None:
    """Store a table; its caption tells K and how many of the seeds, all by default."""
    count = len(runs.config.seeds[:seeds])
    caption = f"{text}, K={runs.config.pool}, {count} seeds"
    runs.run.write_table(name, TABLES[name].table(caption, rows, notes, **more))


def _rows(runs: Trainings, cells: Sequence[CriticCell]) -> dict[str, dict[str, StoredCell]]:
    return {
        name: pick_cells(runs.units(cell), readout, runs.config, runs.pools(cell.world))
        for cell in cells
        for name, readout in cell.readouts.items()
    }


def _write_decomposition(runs: Trainings) -> None:
    cells = {"controlled": [runs.main[name] for name in DECOMPOSED]}
    for setting in runs.sweeps.get("loss", []):
        if not runs.is_default(setting):
            cells[setting.task] = [c for c in setting.cells if c.critic.name in DECOMPOSED]
    rows: Rows = {
        task: {c.critic.name: decompose(runs.units(c), runs.config, runs.pools()) for c in row}
        for task, row in cells.items()
    }
    notes = [f"{name}: {what}." for name, what in COUNTERFACTUALS.items()]
    text = "Support decomposition: regret without one channel"
    _write(runs, "support-decomposition", text, rows, notes)


def _write_noise(runs: Trainings) -> None:
    critics = {name: runs.units(runs.main[name]) for name in MAIN}
    task = f"controlled@sigma={NOISE_SIGMA:.2f}"
    rows: Rows = {task: noise_rows(critics, runs.units(runs.noisy), runs.pools())}
    notes = [
        "The contrastive critics never see the reached state, so noise leaves their data, "
        "parameters and picks as they are.",
        "The paper's 0.063 is a bound, sigma sqrt(pi/2).",
    ]
    _write(runs, "noise", "Transition noise: changed picks and shifted regret", rows, notes)


def _write_sweep(runs: Trainings, name: Sweep) -> None:
    settings = runs.sweeps[name]
    rows: Rows = {
        setting.task: {
            name: plain_cells(runs.units(cell, setting.steps), readout)
            for cell in setting.cells
            for name, readout in cell.readouts.items()
        }
        for setting in settings
    }
    default = [setting.task for setting in settings if runs.is_default(setting)]
    _write(runs, f"sweep-{name}", CAPTIONS[name], rows, axis=name, default=default)


def write_curves(runs: Trainings) -> None:
    pools = runs.pools()
    deployments = runs.deployments()
    content = {
        "label": ["fig:curse", "fig:toy-regret"],
        "k": list(runs.config.k),
        "oracle": oracle(pools.value, runs.config.k).mean(axis=0).tolist(),
        "random": float(pools.value.mean()),
        "critics": {name: curve_entry(units, readout) for name, units, readout in deployments},
        "phi_norm_in_support": {
            name: in_support_norm(units, pools) for name, units, _ in deployments
        },
    }
    write_json(runs.run.path / "curves.json", content)


def write_landscape(runs: Trainings) -> None:
    units = {name: runs.units(runs.main[name])[0] for name in MAIN}
    write_arrays(runs.run.path / "landscape.npz", landscape(units, runs.config, runs.pools()))


def write_audit(runs: Trainings) -> None:
    """Put the pools through the audit that any user runs, from the file on."""
    pools = runs.pools()
    scores = {
        f"{name}@{unit.seed}": unit.scores()[readout]
        for name, units, readout in runs.deployments()
        for unit in units
    }
    path = runs.run.path / "audit_pools.npz"
    ScoredPools.from_arrays(scores, pools.value, support=pools.support).write(path)
    result = pools_content(
        # By its name: the file lies beside the audit, and nobody else has this path.
        judged_pools(replace(ScoredPools.read(path), source=path.name)),
        Settings(k=runs.config.k, resamples=runs.config.resamples),
        command=f"toptail audit {path.name}",
    )
    write_report(result, runs.run.path / "audit")


TRAINING_SHARE = 0.9
"""Share of the progress bar that training takes."""

WRITERS: tuple[tuple[str, Callable[[Trainings], None]], ...] = (
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
    run = RunFolder(Path(out), study="controlled")
    runs = Trainings(config, run)
    with alone(run.path, tick), run.recording(asdict(config), list(config.seeds), command):
        runs.compute(lambda stage, share: tick(stage, TRAINING_SHARE * share))
        for i, (stage, write) in enumerate(WRITERS):
            tick(stage, TRAINING_SHARE + (1.0 - TRAINING_SHARE) * i / len(WRITERS))
            write(runs)
    tick("finished", 1.0)
    return run


CHOICE_SEEDS = (0, 1, 2, 3, 4)
"""Seeds that the default setting was fixed on; they are never reported."""

CONTROL_REGRET = 0.078
"""The regret reported for the positive control, TD-Q, which the training length is chosen by."""

CHOICE_POOL_SEED = 0
"""Seed of the queries, pools and held-out pairs of the choice."""


def choose_default(
    config: StudyConfig, out: str | Path, command: str | None = None
) -> dict[str, Any]:
    """Apply the rule; store ``tables/choice.json`` and return its ``chosen`` settings."""
    config = replace(config, seeds=CHOICE_SEEDS, pool_seed=CHOICE_POOL_SEED, sweeps=(), radii=())
    run = RunFolder(Path(out), study="controlled")
    pools = Pools.draw(config, config.world)
    rows: Rows = {}

    def measure(cell: CriticCell, steps: int, setting: str, metric: str) -> float:
        """Train the cell, add its row to the table as ``setting``, and return a metric's mean."""
        run.made += compute_cell(run, config, cell, pools)
        units = [unit_of(run, config, cell, seed, steps) for seed in cell.seeds]
        cells = plain_cells(units, cell.critic.deployed)
        rows[f"controlled@{setting}"] = {cell.critic.name: cells}
        return cells[metric]["mean"] or 0.0

    with run.recording(asdict(config), list(config.seeds), command):
        run.asked = len(config.seeds) * (len(config.sweep_steps) + len(config.sweep_temperatures))
        (control,) = cells_of(config, (CONTROL,), steps=config.sweep_steps)
        regrets = {n: measure(control, n, f"steps={n}", "regret") for n in config.sweep_steps}
        steps = min(regrets, key=lambda n: abs(regrets[n] - CONTROL_REGRET))
        aucs = {}
        for t in config.sweep_temperatures:
            (cosine,) = cells_of(config, COSINES[:1], steps=(steps,), temperature=t)
            aucs[t] = measure(cosine, steps, f"temperature={t:g}", "retrieval_auc")
        chosen = {"steps": steps, "temperature": max(aucs, key=lambda t: aucs[t])}
        caption = "How the default setting was fixed, on seeds that are not reported"
        run.write_table("choice", TABLES["choice"].table(caption, rows, chosen=chosen))
    return chosen
