"""Scoring: every column of every task once, block by block, each into a file of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.studies.common import RunFolder, Tick, no_tick
from toptail.lab.studies.semantics.behaviour import behaviour_runs, proposals_spec, propose
from toptail.lab.studies.semantics.config import GEODESIC, ORACLE, SEEN, SWEEP, SemanticsConfig
from toptail.lab.studies.semantics.draws import TaskDataset, draw, draw_seen, draw_sweep, spec
from toptail.lab.studies.semantics.load import DRAWS, PROPOSALS, VALUES
from toptail.lab.studies.semantics.scorers import (
    Rows,
    Score,
    Scorer,
    run_scorers,
    score_shared,
    sweep_scorers,
)
from toptail.lab.studies.semantics.user_scorers import user_scorer
from toptail.lab.studies.stored import Stored
from toptail.lab.tasks.names import OGBENCH_NAMES
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.tasks.triples import TooFewTrajectoriesError
from toptail.lab.training.records import differences
from toptail.lab.training.runs import require_data
from toptail.pools.columns import split_seed

BLOCK = 16_384
"""Scores of one call of a scorer, at most."""

POINT_MAZES = tuple(
    name for name in OGBENCH_NAMES if name.startswith("pointmaze-") and "teleport" not in name
)
"""Data sets in which the shortest way to a goal is known exactly."""

Arrays: TypeAlias = dict[str, NDArray[Any]]


def score_tasks(
    config: SemanticsConfig,
    folder: RunFolder,
    runs: Path | None = None,
    critics: Sequence[str] = (),
    progress: Tick | None = None,
) -> None:
    """Draw, sample and score what is missing; what is stored and fits stays as it is.

    Parameters
    ----------
    config
        Tasks, seeds and sizes.
    folder
        The study's folder; it also counts columns asked for and columns scored.
    runs
        Trained runs, ``RUNS/TASK/CRITIC/seed-N`` and ``RUNS/temperature/...``; None if only a
        user's critics are to be scored.
    critics
        A user's critics: see `user_scorer`.
    progress
        Called as the work goes on.
    """
    tick = progress or no_tick
    users = [user_scorer(text) for text in critics]
    if runs is None and not users:
        return
    for number, name in enumerate(config.tasks):

        def share(stage: str, done: float, number: int = number) -> None:
            tick(stage, (number + done) / len(config.tasks))

        share(f"reading {name}", 0.0)
        _Task(config, folder, TaskDataset.load(name), share).score(runs, users)
    tick("scored", 1.0)


class _Task:
    """The scoring of one task."""

    def __init__(
        self, config: SemanticsConfig, folder: RunFolder, task: TaskDataset, tick: Tick
    ) -> None:
        self.config, self.folder, self.task, self.tick = config, folder, task, tick
        self.done = 0.0
        self.scores = folder.path / "scores"
        self.home = self.scores / task.name
        self.split = task.split(config)

    def score(self, runs: Path | None, users: Sequence[Scorer]) -> None:
        """Score everything of this task."""
        scorers = list(users)
        sweep: list[Scorer] = []
        if runs is not None:
            scorers = [*run_scorers(runs, self.task.name, self.config), *users]
            sweep = sweep_scorers(runs, self.task.name)
        self._require_sound(scorers + sweep, runs)
        seen, seen_draws = self._also_on_seen(scorers)
        columns = len(scorers) + len(sweep) + len(seen)
        if scorers:
            draws = self._draws(self.home, draw, spec(self.config, self.task))
            proposals = self._proposals(draws, runs) if self.task.navigation else None
            self._geodesic(draws)
            self._score_columns(scorers, self.home, draws, proposals, columns)
        if sweep:
            home, wanted = self.scores / SWEEP, spec(self.config, self.task, "sweep")
            draws = self._draws(home / self.task.name, draw_sweep, wanted)
            self._score_columns(sweep, home / self.task.name, draws, None, columns)
        if seen_draws is not None:
            home = self.scores / SEEN / self.task.name
            self._score_columns(seen, home, seen_draws, None, columns)

    def _also_on_seen(self, scorers: Sequence[Scorer]) -> tuple[list[Scorer], Stored | None]:
        """Who is also shown the trajectories that critics are trained on, and what of them.

        Nobody where the study draws from these in any case, or where they are too few to draw
        from; and the oracle is not judged.
        """
        seen = [s for s in scorers if split_seed(s.column)[0] != ORACLE]
        if self.config.split == "train" or not seen:
            return [], None
        wanted = spec(self.config, self.task, "seen")
        try:
            return seen, self._draws(self.scores / SEEN / self.task.name, draw_seen, wanted)
        except TooFewTrajectoriesError:
            return [], None

    def _score_columns(
        self,
        scorers: Sequence[Scorer],
        home: Path,
        draws: Stored,
        proposals: Stored | None,
        columns: int,
    ) -> None:
        """Score columns one after another, of so many in all."""
        for scorer in scorers:
            self._score_column(scorer, home, draws, proposals)
            self.done += 1 / columns

    def _say(self, stage: str) -> None:
        self.tick(f"{self.task.key}: {stage}", self.done)

    def _require_sound(self, scorers: Sequence[Scorer], runs: Path | None) -> None:
        """Columns are there and have different names; runs were trained on this very data."""
        self._require_enough()
        if not scorers:
            seeds = ", ".join(map(str, self.config.seeds))
            raise InputError(
                f"{runs}/{self.task.name} has no run of the seeds {seeds}: expected "
                f"{runs}/{self.task.name}/CRITIC/seed-N, as `toptail train` writes; train them or "
                "name other --seeds."
            )
        seen: set[str] = set()
        for scorer in scorers:
            if scorer.column in seen:
                raise InputError(
                    f"Two critics are called '{scorer.column}': give one of them another name, "
                    "--critic NAME=path/to/file.py:function."
                )
            seen.add(scorer.column)
            origin, train = scorer.origin, self.task.data.train
            if "data" in origin:
                require_data(origin["run"], origin["data"], train.source, train.sha256)

    def _require_enough(self) -> None:
        """Refuse too few triples before anything is scored: pools need K of each quartile."""
        least = 9 * max(self.config.k) // 2  # not 4: quartiles of whole steps differ in size
        if self.task.navigation and self.config.triples < least:
            raise InputError(
                f"{self.config.triples} triples are too few to take the best of "
                f"{max(self.config.k)} within quartiles: ask for at least {least} with --triples."
            )

    def _draws(
        self,
        home: Path,
        make: Callable[[SemanticsConfig, TaskDataset], Stored],
        wanted: dict[str, Any],
    ) -> Stored:
        """The stored draws, or new ones; draws of other settings are never mixed in."""
        path = home / f"{DRAWS}.npz"
        stored = _readable(path)
        if stored is not None:
            changed = differences(stored.header, wanted)
            if changed:
                raise InputError(
                    f"{path} was drawn with other settings, {', '.join(changed)}: choose another "
                    "--out, or give the settings of that folder."
                )
            return stored
        self._say("drawing")
        stored = make(self.config, self.task)
        stored.write(path)
        return stored

    def _proposals(self, draws: Stored, runs: Path | None) -> Stored | None:
        """Actions of the behaviour models in RUNS, or those stored, or None."""
        path = self.home / f"{PROPOSALS}.npz"
        stored = _readable(path)
        found = {} if runs is None else behaviour_runs(runs, self.task.name, self.config)
        if not found:
            return stored
        wanted = proposals_spec(self.config, draws, found)
        if stored is not None:
            header = {name: entry for name, entry in stored.header.items() if name != "loss_gaps"}
            # Models that are not at hand any more have left their actions: those of all stay.
            known = {**header["runs"], **_as_json(wanted)["runs"]}
            if header == {**_as_json(wanted), "runs": known}:
                return stored
        self._say("sampling behaviour models")
        stored = propose(self.config, self.task, draws, found)
        stored.write(path)
        return stored

    def _geodesic(self, draws: Stored) -> None:
        """Let the judge that knows the shortest way value the triples, where there is one."""
        if self.task.name not in POINT_MAZES or find_spec("mujoco") is None:
            return
        from toptail.lab.judges.geodesic import geodesic_origin, geodesic_values

        path = self.home / VALUES / f"{GEODESIC}.npz"
        header = {DRAWS: draws.sha256, "origin": geodesic_origin(self.config.gamma)}
        stored = _readable(path)
        if stored is not None and stored.header == _as_json(header):
            return
        self._say("shortest ways")
        rows, goals = draws.arrays["rows"], draws.arrays["goal_rows"]
        states, actions = self.split.observations, self.split.actions
        values = geodesic_values(
            self.task.name, states[rows], actions[rows][:, None], states[goals], self.config.gamma
        )
        Stored(header, {"values": values[:, 0]}).write(path)

    def _score_column(
        self, scorer: Scorer, home: Path, draws: Stored, proposals: Stored | None
    ) -> None:
        """Score one column unless its file is there and fits."""
        path = home / f"{scorer.column}.npz"
        self._say(f"scoring {scorer.column}")
        self.folder.units += 1
        data = self.task.data
        split = data.train if draws.header["split"] == "train" else data.val
        shown = _Shown(split, draws, proposals)
        origin = dict(scorer.origin)
        if scorer.opaque:
            answers = hashlib.sha256(shown.triples(scorer.score).tobytes())
            origin["scores_sha256"] = answers.hexdigest()
        header = {
            "column": scorer.column,
            "origin": origin,
            "step_reward": scorer.step_reward,
            DRAWS: draws.sha256,
            PROPOSALS: None if proposals is None else proposals.sha256,
        }
        stored = _readable(path)
        if stored is None or stored.header != _as_json(header):
            Stored(header, dict(shown.scored(scorer))).write(path)
            self.folder.trained += 1


class _Shown:
    """What a scorer is shown, and its answers."""

    def __init__(self, split: Trajectories, draws: Stored, proposals: Stored | None) -> None:
        self.split, self.draws, self.proposals = split, draws, proposals
        self.rows, self.goals = draws.arrays["rows"], draws.arrays["goal_rows"]

    def triples(self, score: Score) -> Rows:
        """Scores of the triples themselves, ``[n]``."""
        return self._on_data(score, self.rows, self.goals)

    def scored(self, scorer: Scorer) -> Iterator[tuple[str, Rows]]:
        """Name and scores of everything that was drawn; see `toptail.lab.studies.semantics`."""
        score, drawn = scorer.score, self.draws.arrays
        yield "scores", self.triples(score)
        yield "negatives", self._on_data(score, self.rows[:, None], drawn["negative_rows"])
        if "hard_negative_rows" not in drawn:
            return  # the temperature study looks at nothing else
        yield "hard_negatives", self._on_data(score, self.rows, drawn["hard_negative_rows"])
        yield "second_goals", self._second_goals(score, drawn["second_goal_rows"])
        yield "next_scores", self._on_data(score, self.rows + 1, self.goals)
        for name, read in scorer.readouts.items():
            yield f"readout/{name}", self.triples(read)
        for name, pool in self.draws.under("support").items():
            anchors, goals = (x[: len(pool), None] for x in (self.rows, self.goals))
            actions = self.split.actions[pool]
            yield f"support/{name}", evaluate(score, self.split, anchors, actions, goals)
        if self.proposals is not None:
            yield from self._behaviour(score, self.proposals)

    def _on_data(self, score: Score, rows: IntArray, goals: IntArray) -> Rows:
        """Scores of recorded pairs (s, a) towards goals."""
        return evaluate(score, self.split, rows, self.split.actions[rows], goals)

    def _second_goals(self, score: Score, second: IntArray) -> Rows:
        """NaN where a triple has no second goal."""
        has = second >= 0
        result = np.full(len(second), np.nan, dtype=np.float32)
        result[has] = self._on_data(score, self.rows[has], second[has])
        return result

    def _behaviour(self, score: Score, proposals: Stored) -> Iterator[tuple[str, Rows]]:
        """Mean and standard deviation over a model's actions at each (s, g), and single actions."""
        actions = proposals.arrays["centering"]
        rows, goals = self.rows[:, None], self.goals[:, None]
        pool = evaluate(score, self.split, rows, actions, goals).astype(np.float64)
        yield "query_means", pool.mean(axis=1).astype(np.float32)
        yield "query_std", pool.std(axis=1).astype(np.float32)
        for seed, single in proposals.under("diffusion").items():
            scores = evaluate(score, self.split, self.rows, single, self.goals)
            yield f"diffusion/{seed}", scores


def evaluate(
    score: Score,
    split: Trajectories,
    rows: IntArray,
    actions: NDArray[Any],
    goals: IntArray,
    block: int = BLOCK,
) -> Rows:
    """Score actions ``[..., a]`` at states and goals given by their rows, block by block.

    The leading axes of ``rows``, ``actions`` and ``goals`` broadcast to the result's shape.
    """
    width = actions.shape[-1]
    pairs = np.broadcast_shapes(rows.shape, actions.shape[:-1])
    shape = np.broadcast_shapes(pairs, goals.shape)
    states = split.observations[np.broadcast_to(rows, pairs).reshape(-1)]
    candidates = np.broadcast_to(actions, (*pairs, width)).reshape(-1, width)
    different, number = np.unique(goals, return_inverse=True)
    numbers = (np.arange(len(states)).reshape(pairs), number.reshape(goals.shape))
    asked = np.stack([np.broadcast_to(x, shape).reshape(-1) for x in numbers], axis=1)
    vectors = (states, candidates, split.observations[different])
    s, a, g = (np.asarray(x, dtype=np.float32) for x in vectors)
    result = np.empty(len(asked), dtype=np.float32)
    for at, scores in score_shared(score, s, a, g, asked, block):
        result[at] = scores
    return result.reshape(shape)


def _readable(path: Path) -> Stored | None:
    """A stored file, or None where there is none that is sound."""
    try:
        return Stored.read(path) if path.is_file() else None
    except InputError:
        return None


def _as_json(content: dict[str, Any]) -> Any:
    return json.loads(json.dumps(content))
