"""Scorers: the columns of a study's scores, made of trained runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.files import entries
from toptail.lab.critics.registry import CRITICS, entry, without_settings
from toptail.lab.tasks.trajectories import IntArray
from toptail.lab.training.config import RunConfig, labelled
from toptail.lab.training.run_files import RECORD, Run, differences, read_run, run_folder

if TYPE_CHECKING:
    from toptail.lab.critics.base import TrainedCritic

Rows: TypeAlias = NDArray[np.float32]

Score: TypeAlias = Callable[[Rows, Rows, Rows], Rows]
"""(states [n, s], actions [n, a], goals [n, g]) -> scores [n]; larger is better."""

Towards: TypeAlias = Callable[[Rows, Rows, IntArray], Rows]
"""(states [n, s], actions [n, a], numbers of goals [n]) -> scores [n]."""

_TRAINED_WITH = (
    *("steps", "batch_size", "learning_rate", "bfloat16", "reward", "settings", "critic_fields"),
)

SMALLEST_BLOCK = 256
"""Rows of one compiled call, at least; others are filled up to a power of two."""
MOST_ROWS = 65_536
"""Rows that a critic is shown at once where there are many candidates."""
SOME_ROWS = 2_048
"""Rows of one call where their number changes from call to call: the last alone is filled up."""


@dataclass(frozen=True, eq=False)
class RunScore:
    """A readout of a run in full float32, which compiles few shapes: see `_filled`."""

    trained: Callable[[], TrainedCritic]
    """Gives the run's critic, when it is first asked."""

    readout: str
    """What is read."""

    def __call__(self, states: Rows, actions: Rows, goals: Rows) -> Rows:
        """Score rows."""
        rows = (_filled(x) for x in (states, actions, goals))
        with _full_precision():
            return self._critic().score(*rows)[: len(states)]

    def towards(self, goals: Rows) -> Callable[[Rows, Rows, IntArray], Rows] | None:
        """Embed goals once, for a function that scores pairs towards them.

        Returns
        -------
        (states [p, s], actions [p, a], asked [n, 2]) -> scores [n], where ``asked`` has the
        numbers of a pair and of a goal; None if the readout has no factors.
        """
        critic = self._critic()
        with _full_precision():
            psi = critic.embed_goals(_filled(goals))
        if psi is None:
            return None

        def score(states: Rows, actions: Rows, asked: IntArray) -> Rows:
            with _full_precision():
                scores = critic.score_pairs(_filled(states), _filled(actions), psi, _filled(asked))
            return scores[: len(asked)]

        return score

    def _critic(self) -> TrainedCritic:
        return replace(self.trained(), readout=self.readout)


def _full_precision() -> AbstractContextManager[Any]:
    """Products in float32 on every device."""
    import jax  # only here: a function of NumPy's is scored without JAX

    precision: AbstractContextManager[Any] = jax.default_matmul_precision("highest")
    return precision


def _filled(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows filled up with zeros to a power of two of them."""
    n = len(rows)
    return np.pad(rows, [(0, max(SMALLEST_BLOCK, 1 << (n - 1).bit_length()) - n), (0, 0)])


def score_shared(
    score: Score, states: Rows, actions: Rows, goals: Rows, asked: IntArray, block: int
) -> Iterator[tuple[slice, Rows]]:
    """Score pairs (s, a) towards goals, many of which share a pair or a goal.

    A readout with factors embeds each goal once and each pair once per block; any other scorer is
    shown every row. ``asked`` [n, 2] has the number of a pair and that of a goal. Yields which of
    the n, at most ``block`` of them, and their scores.
    """
    towards = score.towards(goals) if isinstance(score, RunScore) else None
    for start in range(0, len(asked), block):
        at = slice(start, min(start + block, len(asked)))
        pair, goal = asked[at].T
        if towards is None:
            yield at, score(states[pair], actions[pair], goals[goal])
        else:
            own, place = np.unique(pair, return_inverse=True)
            yield at, towards(states[own], actions[own], np.stack([place, goal], axis=1))


def score_each(towards: Towards, states: Rows, candidates: Rows, goal: IntArray) -> Rows:
    """Scores ``[n, k]`` of k candidates ``[n, k, a]`` for each state and number of a goal.

    A critic is shown `MOST_ROWS` rows at a time, so that its memory does not grow with the pools.
    """
    (count, k, width), scores = candidates.shape, []
    block = max(1, MOST_ROWS // k)
    for at in (slice(first, first + block) for first in range(0, count, block)):
        rows, number = np.repeat(states[at], k, axis=0), np.repeat(goal[at], k)
        scores.append(towards(rows, candidates[at].reshape(-1, width), number).reshape(-1, k))
    return np.concatenate(scores)


def score_towards(score: Score, goals: Rows) -> Towards:
    """A function that scores rows towards some of these goals, again and again.

    A readout with factors embeds each goal once for all calls. Rows are taken some at a time: those
    of one call are filled up to a power of two.

    Returns
    -------
    (states [n, s], actions [n, a], numbers of goals [n]) -> scores [n].
    """
    if not isinstance(score, RunScore):
        return lambda states, actions, goal: score(states, actions, goals[goal])
    towards = score.towards(goals)

    def some(states: Rows, actions: Rows, goal: IntArray) -> Rows:
        if towards is None:
            return score(states, actions, goals[goal])
        return towards(states, actions, np.stack([np.arange(len(goal)), goal], axis=1))

    def scores(states: Rows, actions: Rows, goal: IntArray) -> Rows:
        parts = [slice(i, i + SOME_ROWS) for i in range(0, len(goal), SOME_ROWS)]
        return np.concatenate([some(states[at], actions[at], goal[at]) for at in parts])

    return scores


@dataclass(frozen=True, eq=False)
class Scorer:
    """One column: a function of states, actions and goals, and what must be known of it."""

    column: str
    """``NAME@SEED``, or ``NAME`` where there is no training seed."""

    score: Score
    """The deployed scalar."""

    origin: Mapping[str, Any]
    """Where it comes from, as JSON has it; equal origins give equal scores, unless `opaque`."""

    step_reward: float = 0.0
    """Reward of a step that misses the goal, in the scale of the score."""

    readouts: Mapping[str, Score] = field(default_factory=dict)
    """Further scalars of the same network."""

    opaque: bool = False
    """Whether the origin does not decide the scores, as a user's function may read other files."""


def of_run(home: Path, seed: int, task: str) -> list[Scorer]:
    """The scorers of the run ``HOME/seed-N``: none if there is none, two for a two-head checkpoint.

    Whatever it was trained with, a run is read in float32: see `load_run`.
    """
    folder = run_folder(home, seed)
    if not (folder / RECORD).is_file():
        return []
    import jax

    from toptail.lab.training.runs import load_run, stored_config

    run = read_run(folder)

    @cache
    def trained() -> TrainedCritic:
        """Load the run when it is first asked, and put it on the device once for all calls."""
        loaded = load_run(folder, task, in_float32=True)
        return replace(loaded, params=jax.device_put(loaded.params))

    if run.state != "finished":
        trained()  # says what is wrong with it
    stored = stored_config(run)  # says so if this version of the code reads it otherwise
    critic = entry(str(run.config["critic"]))
    _require_label(run, stored)
    return [
        Scorer(
            f"{_labelled(scorer, critic.name, home.name)}@{seed}",
            RunScore(trained, read.name),
            run_origin(run) | {"readout": read.name, "read_in": "float32"},
            read.step_reward(str(run.config["reward"])),
            {ours: RunScore(trained, theirs) for ours, theirs in critic.beside.items()},
        )
        for scorer, read in critic.scorers.items()
    ]


def of_runs(home: Path, critics: Iterable[str], seeds: Iterable[int], task: str) -> list[Scorer]:
    """The scorers of the runs ``HOME/CRITIC/seed-N`` that are there, critic by critic."""
    pairs = product(critics, seeds)
    return [scorer for critic, seed in pairs for scorer in of_run(home / critic, seed, task)]


def critics_in(home: Path) -> list[str]:
    """The critics, and after each the variants of it that have a folder in ``RUNS/TASK``.

    ``cosine[temperature=0.1]`` is such a variant.
    """
    folders = [path.name for path in entries(home) if path.is_dir()] if home.is_dir() else []
    labels = [name for name in folders if without_settings(name) in CRITICS and "[" in name]
    return [x for critic in CRITICS for x in (critic, *_variants(critic, labels))]


def _variants(critic: str, labels: Iterable[str]) -> list[str]:
    return sorted(label for label in labels if without_settings(label) == critic)


def _labelled(scorer: str, critic: str, folder: str) -> str:
    """A scorer's name with the settings that its run's folder names."""
    return folder + scorer.removeprefix(critic) if "[" in folder else scorer


def _require_label(run: Run, stored: RunConfig) -> None:
    """Refuse a run in a folder whose name says other settings than the run was trained with."""
    label = run.folder.parent.name
    changed = differences(stored.content, labelled(stored, label).content) if "[" in label else []
    if changed:
        raise InputError(
            f"{run.folder} was trained otherwise than its folder's name says, {changed[0]}: name "
            "the folder by the settings in its config.json."
        )


def run_origin(run: Run) -> dict[str, Any]:
    """What identifies a run."""
    config = run.config
    return {
        "run": "/".join(run.folder.parts[-3:]),
        "critic": config["critic"],
        "seed": run.record["seed"],
        "config_hash": run.config_hash,
        "params_sha256": run.record["params_sha256"],
        "data": run.record["data"]["train"],
        **{name: config[name] for name in _TRAINED_WITH},
    }
