"""What every scorer of a task is shown: triples, other goals, and pools of candidate actions.

No critic is involved. Each kind of draw has a generator of its own, so that changing one setting
leaves the other draws as they are.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.critics.base import TARGET, Params
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import DiffusionPolicy, DiffusionRun, load_policy
from toptail.lab.scorers.runs import run_origin
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.tasks.neighbours import nearest_rows
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.tasks.triples import Triples, negatives, sample_triples
from toptail.lab.training.data import GoalSampling, OfflineData, device_data
from toptail.lab.training.runs import RECORD, Run, read_run, run_folder, stored_config
from toptail.stats.resample import bootstrap_sums, cluster_sums, percentile_interval
from toptail_paper.semantics.config import DRAWS, EXCLUSIONS, SEEN, SWEEP, Beside, SemanticsConfig
from toptail_paper.study.store import Stored
from toptail_paper.triples.draws import hard_negatives, second_goals

_TRIPLES, _NEGATIVES, _SECOND_GOALS, _NEAR, _RANDOM = range(5)
"""One number for each kind of draw: its generator follows from it and from ``draw_seed``."""


def spec(config: SemanticsConfig, task: TaskDataset, beside: Beside = "") -> dict[str, Any]:
    """Everything that decides a task's draws, as JSON has it."""
    names = ["split", "triples", "negatives", "max_offset", "gamma"]
    if task.navigation and not beside:
        names += ["support_queries", "support_pool", "n_near"]
    described = config.described() | ({"split": "train"} if beside == SEEN else {})
    return {
        "task": task.name,
        "key": task.key,
        "navigation": task.navigation,
        "data": task.split(described["split"]).sha256,
        "draw_seed": config.draw_seed + (beside == SWEEP),
        **{name: described[name] for name in names},
    }


def draw(config: SemanticsConfig, task: TaskDataset, beside: Beside = "") -> Stored:
    """Draw everything that the scorers of a task are shown.

    The temperature study draws triples and negatives that are reported nowhere else; on the
    trajectories that critics were trained on there are no support pools.

    Returns
    -------
    Stored
        ``rows``, ``goal_rows`` and ``trajectory`` [n] of the triples; ``negative_rows`` [n, m];
        ``hard_negative_rows`` [n]; ``second_goal_rows`` [n], -1 where there is none; and for
        navigation, for each exclusion E in "row", "trajectory" and each n_near N,
        ``support/E/N`` [q, pool], the rows whose actions are the candidates, and
        ``on_support/E/N`` [q, pool].
    """
    header = spec(config, task, beside)
    split, seed = task.split(header["split"]), header["draw_seed"]
    rng = _rng(seed, _TRIPLES)
    triples = sample_triples(split, config.triples, rng, config.max_offset, config.gamma)
    arrays = {
        "rows": triples.rows,
        "goal_rows": triples.goal_rows,
        "trajectory": triples.trajectory,
        "negative_rows": negatives(triples, config.negatives, _rng(seed, _NEGATIVES)),
    }
    if beside != SWEEP:
        rng = _rng(config.draw_seed, _SECOND_GOALS)
        arrays["second_goal_rows"] = second_goals(triples, split, rng, config.max_offset)
        arrays["hard_negative_rows"] = hard_negatives(triples, split)
    if task.navigation and not beside:
        arrays |= _draw_support(config, split, triples)
    return Stored(header, arrays)


def _rng(seed: int, *kind: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=kind))


def _draw_support(
    config: SemanticsConfig, split: Trajectories, triples: Triples
) -> dict[str, NDArray[Any]]:
    """Pools of recorded actions at the first triples' states, for each exclusion and n_near.

    Rows at the end of a trajectory are no candidates: their action leads nowhere. The random
    half is the same for every n_near, so that only the near half differs between them; a random
    row that happens to be near counts as on support.
    """
    anchors = triples.rows[: config.support_queries]
    arrays: dict[str, NDArray[Any]] = {}
    for number, exclusion in enumerate(EXCLUSIONS):
        group = np.arange(len(split)) if exclusion == "row" else split.trajectory
        _require_enough(config, split, anchors, group, exclusion)
        ordered = _neighbours(split, anchors, max(config.n_near), group)
        half = config.support_pool // 2
        random = _random_rows(split, anchors, half, group, _rng(config.draw_seed, _RANDOM, number))
        for n_near in config.n_near:
            rng = _rng(config.draw_seed, _NEAR, number, n_near)
            near = _pick(ordered[:, :n_near], half, rng)
            name = f"{exclusion}/{n_near}"
            arrays[f"support/{name}"] = pool = np.concatenate([near, random], axis=1)
            both = zip(pool, ordered[:, :n_near], strict=True)
            arrays[f"on_support/{name}"] = np.stack([np.isin(line, own) for line, own in both])
    return arrays


def _require_enough(
    config: SemanticsConfig, split: Trajectories, anchors: IntArray, group: IntArray, exclusion: str
) -> None:
    """Refuse an n_near that the data set is too small for."""
    own = np.bincount(group[split.transitions], minlength=int(group.max()) + 1)[group[anchors]]
    least = len(split.transitions) - int(own.max())
    if max(config.n_near) > least:
        raise InputError(
            f"{split.source} has {least} states to look for near ones in once the anchor's "
            f"{exclusion} is left out, but n_near asks for {max(config.n_near)}: use smaller "
            "n_near or more data."
        )


def _neighbours(split: Trajectories, anchors: IntArray, count: int, group: IntArray) -> IntArray:
    """Rows of the nearest states that have an action, nearest first ``[q, count]``."""
    rows = split.transitions
    inside = np.searchsorted(rows, anchors)
    found: IntArray = rows[nearest_rows(split.observations[rows], inside, count, group[rows])]
    return found


def _random_rows(
    split: Trajectories, anchors: IntArray, count: int, group: IntArray, rng: np.random.Generator
) -> IntArray:
    """For each anchor, different rows drawn uniformly from the transitions outside its group."""
    rows = split.transitions
    inside = group[rows]  # in ascending order: a group is one block to step over
    first = np.searchsorted(inside, group[anchors], side="left")
    own = np.searchsorted(inside, group[anchors], side="right") - first
    others = len(rows) - own
    drawn = np.stack([rng.choice(n, size=count, replace=n < count) for n in others])
    drawn += np.where(drawn >= first[:, None], own[:, None], 0)
    picked: IntArray = rows[drawn]
    return picked


def _pick(rows: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """``count`` of each line's rows, different ones as far as there are enough."""
    width = rows.shape[1]
    at = np.stack([rng.choice(width, size=count, replace=width < count) for _ in rows])
    return np.take_along_axis(rows, at, axis=1)


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
        "loss_rows": LOSS_ROWS,
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


LOSS_ROWS = 16_384
"""Rows that a loss is measured on, by default."""

RESAMPLES = 2_000
"""Bootstrap draws behind an interval."""


class RowErrors(NamedTuple):
    """Denoising errors of rows of a data set."""

    error: NDArray[np.float64]
    """[n] weighted squared error of the predicted noise: see `Diffusion.errors`."""
    trajectory: NDArray[np.int64]
    """[n] code 0, 1, ... of the trajectory that each row is from."""


class LossGap(NamedTuple):
    """The EMA model's loss on its training data and on held-out data."""

    train: float
    """Mean denoising error on the training split."""
    held_out: float
    """Mean denoising error on the held-out split."""
    gap: float
    """Held-out less training loss."""
    low: float
    """Lower end of the gap's 95 % interval; whole trajectories are resampled, in each split."""
    high: float
    """Upper end of that interval."""


def held_out_loss(
    policy: DiffusionPolicy,
    data: OfflineData,
    key: jax.Array,
    *,
    sampling: GoalSampling,
    rows: int = LOSS_ROWS,
) -> RowErrors:
    """The training loss of the EMA parameters, row by row, on any data set.

    Transitions, goals, levels and noise are drawn as in training; each row has one level, and the
    levels are spread evenly over the rows. Two models with the same key get the same rows, which
    are drawn with replacement, and the same noise.
    """
    error, last = _errors(policy.model, sampling, rows, policy.params[TARGET], data, key)
    _, code = np.unique(np.asarray(last), return_inverse=True)
    return RowErrors(np.asarray(error, np.float64), code.astype(np.int64))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _errors(
    model: Diffusion,
    sampling: GoalSampling,
    rows: int,
    params: Params,
    data: OfflineData,
    key: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Errors [rows], and the last row of each row's trajectory."""
    key_rows, key_level, key_noise = jax.random.split(key, 3)
    row, goal, *_ = sampling.rows(key_rows, data, rows)
    actions = data.actions[row]
    level = model.draw_levels(key_level, rows)
    noise = jax.random.normal(key_noise, actions.shape)
    triple = (data.observations[row], actions, data.observations[goal])
    error = model.errors(model.compute_params(params), *triple, level, noise)
    return error, data.last[row]


def loss_gap(train: RowErrors, held_out: RowErrors, rng: np.random.Generator) -> LossGap:
    """Compare the losses of two splits, with an interval clustered by trajectory."""
    draws = [_resampled_means(rows, rng) for rows in (train, held_out)]
    low, high = percentile_interval(draws[1] - draws[0])
    means = [float(rows.error.mean()) for rows in (train, held_out)]
    return LossGap(means[0], means[1], means[1] - means[0], float(low), float(high))


def _resampled_means(rows: RowErrors, rng: np.random.Generator) -> NDArray[np.float64]:
    columns = np.stack([rows.error, np.ones_like(rows.error)], axis=1)
    sums = bootstrap_sums(cluster_sums(columns, rows.trajectory), rng, RESAMPLES)
    means: NDArray[np.float64] = sums[:, 0] / sums[:, 1]
    return means
