"""What every scorer of a task is shown: triples, other goals, and pools of candidate actions.

No network is involved. Each kind of draw has a generator of its own, so that changing one setting
leaves the other draws as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.studies.datasets import TaskDataset
from toptail.lab.studies.semantics.config import EXCLUSIONS, SemanticsConfig
from toptail.lab.studies.store import Stored
from toptail.lab.tasks.neighbours import nearest_rows
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.tasks.triples import (
    Triples,
    hard_negatives,
    negatives,
    same_trajectory_pairs,
    sample_triples,
)

_TRIPLES, _NEGATIVES, _SECOND_GOALS, _NEAR, _RANDOM = range(5)
"""One number for each kind of draw: its generator follows from it and from ``draw_seed``."""

Purpose: TypeAlias = Literal["study", "sweep", "seen"]
"""What draws are for: the study's tables, the temperature study, or the trained-on trajectories."""


def spec(config: SemanticsConfig, task: TaskDataset, purpose: Purpose = "study") -> dict[str, Any]:
    """Everything that decides a task's draws, as JSON has it."""
    if purpose == "seen":
        config = _of_train(config)
    names = ["split", "triples", "negatives", "max_offset", "gamma"]
    if task.navigation and purpose == "study":
        names += ["support_queries", "support_pool", "n_near"]
    described = config.described()
    return {
        "task": task.name,
        "key": task.key,
        "navigation": task.navigation,
        "data": task.split(config.split).sha256,
        "draw_seed": config.draw_seed + (purpose == "sweep"),
        **{name: described[name] for name in names},
    }


def draw(config: SemanticsConfig, task: TaskDataset) -> Stored:
    """Draw everything that the scorers of a task are shown.

    Returns
    -------
    Stored
        ``rows``, ``goal_rows`` and ``trajectory`` [n] of the triples; ``negative_rows`` [n, m];
        ``hard_negative_rows`` [n]; ``second_goal_rows`` [n], -1 where there is none; and for
        navigation, for each exclusion E in "row", "trajectory" and each n_near N,
        ``support/E/N`` [q, pool], the rows whose actions are the candidates, and
        ``on_support/E/N`` [q, pool].
    """
    split = task.split(config.split)
    triples, arrays = _draw_retrieval(config, split)
    if task.navigation:
        arrays |= _draw_support(config, split, triples)
    return Stored(spec(config, task), arrays)


def draw_sweep(config: SemanticsConfig, task: TaskDataset) -> Stored:
    """Draw the triples and negatives of the temperature study: not those that are reported."""
    _, arrays = _draw_goals(config, task.split(config.split), config.draw_seed + 1)
    return Stored(spec(config, task, "sweep"), arrays)


def draw_seen(config: SemanticsConfig, task: TaskDataset) -> Stored:
    """Draw what `draw` draws on play data, from the training split."""
    _, arrays = _draw_retrieval(_of_train(config), task.data.train)
    return Stored(spec(config, task, "seen"), arrays)


def _of_train(config: SemanticsConfig) -> SemanticsConfig:
    return replace(config, split="train")


def _rng(seed: int, *kind: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=kind))


def _draw_goals(
    config: SemanticsConfig, split: Trajectories, seed: int
) -> tuple[Triples, dict[str, NDArray[Any]]]:
    """Triples, and for each of them goals of other trajectories."""
    rng = _rng(seed, _TRIPLES)
    triples = sample_triples(split, config.triples, rng, config.max_offset, config.gamma)
    arrays = {
        "rows": triples.rows,
        "goal_rows": triples.goal_rows,
        "trajectory": triples.trajectory,
        "negative_rows": negatives(triples, config.negatives, _rng(seed, _NEGATIVES)),
    }
    return triples, arrays


def _draw_retrieval(
    config: SemanticsConfig, split: Trajectories
) -> tuple[Triples, dict[str, NDArray[Any]]]:
    """Triples and all the goals that they are compared with."""
    seed = config.draw_seed
    triples, arrays = _draw_goals(config, split, seed)
    pairs = same_trajectory_pairs(triples, split, _rng(seed, _SECOND_GOALS), config.max_offset)
    second = np.full(len(triples), -1, dtype=np.int64)
    second[_has_two_goals(config, split, triples)] = pairs.other_goal_rows
    arrays["second_goal_rows"] = second
    arrays["hard_negative_rows"] = hard_negatives(triples, split)
    return triples, arrays


def _has_two_goals(
    config: SemanticsConfig, split: Trajectories, triples: Triples
) -> NDArray[np.bool_]:
    """Whether a triple's state has a second possible goal, ``[n]``."""
    has: NDArray[np.bool_] = np.minimum(config.max_offset, split.remaining(triples.rows)) >= 2
    return has


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
            arrays[f"on_support/{name}"] = _among(pool, ordered[:, :n_near])
    return arrays


def _require_enough(
    config: SemanticsConfig,
    split: Trajectories,
    anchors: IntArray,
    group: IntArray,
    exclusion: str,
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
    split: Trajectories,
    anchors: IntArray,
    count: int,
    group: IntArray,
    rng: np.random.Generator,
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


def _among(pool: IntArray, near: IntArray) -> NDArray[np.bool_]:
    """Whether each row of a line's pool is among the line's near rows."""
    return np.stack([np.isin(line, own) for line, own in zip(pool, near, strict=True)])
