"""Actions of behaviour models at every triple's (s, g), and how well those models fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import (
    ROWS,
    DiffusionPolicy,
    DiffusionRun,
    held_out_loss,
    load_policy,
    loss_gap,
)
from toptail.lab.scorers.base import run_origin
from toptail.lab.store.units import Stored
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.training.offline import GoalSampling, device_data
from toptail.lab.training.run_files import RECORD, Run, read_run, run_folder
from toptail.lab.training.runs import stored_config
from toptail_paper.semantics.config import DRAWS, SemanticsConfig

_CENTERING, _SINGLE, _LOSS = range(3)
"""One number for each kind of draw: its key follows from it and from ``draw_seed``."""


def behaviour_runs(runs: Path, task: str, config: SemanticsConfig) -> dict[int, Run]:
    """The behaviour models that there are among the wanted seeds: ``RUNS/TASK/diffusion/seed-N``.

    The first wanted seed centers scores: without it there is nothing to do for the others.
    """
    home = runs / task / Diffusion.name
    folders = {seed: run_folder(home, seed) for seed in config.diffusion_seeds}
    found = {
        seed: read_run(folder) for seed, folder in folders.items() if (folder / RECORD).is_file()
    }
    first = config.diffusion_seeds[0]
    if found and first not in found:
        raise InputError(
            f"{home} has behaviour models of other seeds but none of seed {first}, which centers "
            "scores: train it, or name the seeds that there are, the one to center with first."
        )
    return found


def proposals_spec(config: SemanticsConfig, draws: Stored, runs: dict[int, Run]) -> dict[str, Any]:
    """Everything that decides the behaviour models' actions, as JSON has it."""
    return {
        DRAWS: draws.sha256,
        "behaviour_actions": config.behaviour_actions,
        "centering": config.diffusion_seeds[0],
        "draw_seed": config.draw_seed,
        "loss_rows": ROWS,
        "runs": {str(seed): run_origin(run) for seed, run in runs.items()},
    }


def propose(
    config: SemanticsConfig, task: TaskDataset, draws: Stored, runs: dict[int, Run]
) -> Stored:
    """Sample the behaviour models, by ancestral sampling through all noise levels.

    Returns
    -------
    Stored
        ``centering`` [n, behaviour_actions, a] of the first seed's model and, for each model,
        ``diffusion/SEED`` [n, a]; the header has each model's ``loss_gaps``.
    """
    split = task.split(config.split)
    states, goals = (split.observations[draws.arrays[name]] for name in ("rows", "goal_rows"))
    root = jax.random.key(config.draw_seed)
    arrays: dict[str, NDArray[Any]] = {}
    gaps: dict[str, dict[str, float]] = {}
    for seed, run in runs.items():
        policy = load_policy(run.folder, task.name)
        keys = [jax.random.fold_in(jax.random.fold_in(root, kind), seed) for kind in range(2)]
        if seed == config.diffusion_seeds[0]:
            count = config.behaviour_actions
            arrays["centering"] = policy.sample(keys[_CENTERING], states, goals, count)
        arrays[f"diffusion/{seed}"] = policy.sample(keys[_SINGLE], states, goals, 1)[:, 0]
        gaps[str(seed)] = _loss_gap(config, task, policy, run)
    return Stored(proposals_spec(config, draws, runs) | {"loss_gaps": gaps}, arrays)


def _loss_gap(
    config: SemanticsConfig, task: TaskDataset, policy: DiffusionPolicy, run: Run
) -> dict[str, float]:
    """The model's loss on its training split and on the validation split."""
    # One key for all models: they meet the same rows and noise.
    key = jax.random.fold_in(jax.random.key(config.draw_seed), _LOSS)
    trained = stored_config(run, DiffusionRun)
    sampling = GoalSampling(gamma=trained.gamma, reward=trained.reward)
    seen, unseen = (
        held_out_loss(policy, device_data(split), key, sampling=sampling)
        for split in (task.data.train, task.data.val)
    )
    gap = loss_gap(seen, unseen, np.random.default_rng(config.draw_seed))
    return {name: float(value) for name, value in gap._asdict().items()}
