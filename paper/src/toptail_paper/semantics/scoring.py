"""Scoring: every column of every task once, block by block, each into a file of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail.lab.judges.point import EXACT, is_point_maze
from toptail.lab.judges.reference import REFERENCE_CRITIC
from toptail.lab.scorers.base import Rows, Score, Scorer, score_shared
from toptail.lab.scorers.runs import critics_in, of_run, of_runs
from toptail.lab.scorers.user import require_names, user_scorers
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.tasks.triples import TooFewTrajectoriesError
from toptail.lab.training.runs import require_data
from toptail.pools.columns import split_seed
from toptail.progress import Tick, no_tick
from toptail_paper.semantics.config import (
    DRAWS,
    ORACLE,
    PROPOSALS,
    SEEN,
    SWEEP,
    VALUES,
    Beside,
    SemanticsConfig,
)
from toptail_paper.semantics.draws import behaviour_runs, draw, proposals_spec, propose, spec
from toptail_paper.semantics.load import stored_columns
from toptail_paper.study.ideals import ideal_scorers, knows_ideals
from toptail_paper.study.main_settings import load_task
from toptail_paper.study.naming import IDEALS
from toptail_paper.study.point_judges import EUCLIDEAN, POINT_JUDGES, PointJudge
from toptail_paper.study.results import note_critics, note_data
from toptail_paper.study.store import RunFolder, Stale, Stored, fitting, need

BLOCK = 16_384
"""Scores of one call of a scorer, at most."""


def score_tasks(
    config: SemanticsConfig,
    folder: RunFolder,
    runs: Path | None = None,
    critics: Sequence[str] = (),
    tick: Tick = no_tick,
    *,
    ideals: bool = False,
) -> None:
    """Draw, sample and score what is missing; stored files that fit are not made again.

    Parameters
    ----------
    config, folder
        Tasks, seeds and sizes; the folder also counts columns asked for and columns scored.
    runs
        Trained runs, ``RUNS/TASK/CRITIC/seed-N`` and ``RUNS/temperature/...``; None if only a
        user's critics are to be scored.
    critics
        A user's critics: see `user_scorer`.
    tick
        Called with the stage and the share that is done.
    ideals
        Whether the ideal critics are scored, too, on the tasks where they are known.
    """
    users = user_scorers(critics, reserved=(DRAWS, PROPOSALS, ORACLE, *IDEALS))
    if runs is None and not users and not ideals:
        return
    for number, name in enumerate(config.tasks):

        def share(stage: str, done: float, number: int = number) -> None:
            tick(stage, (number + done) / len(config.tasks))

        share(f"reading {name}", 0.0)
        task = load_task(name)
        known = ideals and knows_ideals(task.name)
        extra = ideal_scorers(task.name, config.gamma) if known else []
        _Task(config, folder, task, share).score(runs, [*users, *extra])
    tick("scored", 1.0)


class _Task:
    def __init__(
        self, config: SemanticsConfig, folder: RunFolder, task: TaskDataset, tick: Tick
    ) -> None:
        self.config, self.folder, self.task, self.tick = config, folder, task, tick
        self.done, self.columns = 0.0, 0
        self.split = task.split(config.split)

    def score(self, runs: Path | None, users: Sequence[Scorer]) -> None:
        scorers, sweep = list(users), list[Scorer]()
        if runs is not None:
            scorers = [*run_scorers(runs, self.task.name, self.config), *users]
            sweep = sweep_scorers(runs, self.task.name)
        self._require_sound(scorers + sweep, runs)
        note_data(self.folder.path, self.task.name, self.task.data.train)
        note_critics(self.folder.path, self.task.name, [scorer.origin for scorer in scorers])
        seen = self._also_on_seen(scorers)
        self.columns = len(scorers) + len(sweep) + len(seen)
        if scorers:
            draws = self._draws()
            proposals = self._proposals(draws, runs) if self.task.navigation else None
            self._judge_by_maze(draws)
            self._score_columns(scorers, draws, proposals)
        if sweep:
            self._score_columns(sweep, self._draws(SWEEP), None, SWEEP)
        if seen:
            self._score_columns(seen, self._draws(SEEN), None, SEEN)

    def _also_on_seen(self, scorers: Sequence[Scorer]) -> list[Scorer]:
        """The scorers that also score trajectories of the training split.

        None where the study draws from that split anyway, or where it has too few trajectories;
        the reference is never among them.
        """
        seen = [s for s in scorers if split_seed(s.column)[0] != ORACLE]
        if self.config.split == "train" or not seen:
            return []
        try:
            self._draws(SEEN)
        except TooFewTrajectoriesError:
            return []
        return seen

    def _home(self, beside: Beside = "") -> Path:
        return self.folder.path / "scores" / beside / self.task.name

    def _score_columns(
        self,
        scorers: Sequence[Scorer],
        draws: Stored,
        proposals: Stored | None,
        beside: Beside = "",
    ) -> None:
        for scorer in scorers:
            self._score_column(scorer, self._home(beside), draws, proposals)
            self.done += 1 / self.columns

    def _say(self, stage: str) -> None:
        self.tick(f"{self.task.key}: {stage}", self.done)

    def _require_sound(self, scorers: Sequence[Scorer], runs: Path | None) -> None:
        """Refuse too few triples, missing or equally named columns, and runs of other data."""
        least = 9 * max(self.config.k) // 2  # not 4: quartiles of whole steps differ in size
        if self.task.navigation and self.config.triples < least:
            raise InputError(
                f"{self.config.triples} triples are too few to take the best of "
                f"{max(self.config.k)} within quartiles: ask for at least {least} with "
                f"{option('triples')}."
            )
        if not scorers:
            seeds = ", ".join(map(str, self.config.seeds))
            raise InputError(
                f"{runs}/{self.task.name} has no run of the seeds {seeds}: expected "
                f"{runs}/{self.task.name}/CRITIC/seed-N, as 'toptail train' writes; train them "
                f"with {option('train')} and {option('critics')}, or name other {option('seeds')}."
            )
        require_names([scorer.column for scorer in scorers], stored_columns(self._home()))
        train = self.task.data.train
        for origin in (scorer.origin for scorer in scorers if "data" in scorer.origin):
            require_data(origin["run"], origin["data"], train.source, train.sha256)

    def _draws(self, beside: Beside = "") -> Stored:
        """The stored draws, or new ones; draws of other settings are never mixed in."""

        def drawn() -> Stored:
            self._say("drawing")
            return draw(self.config, self.task, beside)

        home = self._home(beside)
        # What a call drew that failed before it scored anything must not bind the next one.
        stale: Stale = "refuse" if stored_columns(home) else "remake"
        return need(home / f"{DRAWS}.npz", spec(self.config, self.task, beside), drawn, stale)

    def _proposals(self, draws: Stored, runs: Path | None) -> Stored | None:
        """Actions of the behaviour models in RUNS, or those stored, or None."""
        path = self._home() / f"{PROPOSALS}.npz"
        stored = fitting(path, {}, stale="remake")
        found = {} if runs is None else behaviour_runs(runs, self.task.name, self.config)
        if not found:
            return stored
        wanted = proposals_spec(self.config, draws, found)
        if stored is not None:
            # Models that are not at hand any more have left their actions: those of all stay.
            wanted["runs"] = {**stored.header["runs"], **wanted["runs"]}

        def proposed() -> Stored:
            self._say("sampling behaviour models")
            return propose(self.config, self.task, draws, found)

        return need(path, wanted, proposed, stale="remake")

    def _judge_by_maze(self, draws: Stored) -> None:
        """Value the triples by the judges that know the maze's shortest paths, on PointMaze."""
        if is_point_maze(self.task.name) and find_spec("mujoco") is not None:
            for judge in (EXACT, EUCLIDEAN):
                self._judge(POINT_JUDGES[judge], draws)

    def _judge(self, judge: PointJudge, draws: Stored) -> None:
        gamma = self.config.gamma
        header = {DRAWS: draws.sha256, "origin": judge.origin(gamma)}

        def judged() -> Stored:
            self._say(f"ways ({judge.name})")
            rows, goals = draws.arrays["rows"], draws.arrays["goal_rows"]
            states, actions = self.split.observations, self.split.actions[rows][:, None]
            values = judge.values(self.task.name, states[rows], actions, states[goals], gamma)
            return Stored(header, {"values": values[:, 0]})

        need(self._home() / VALUES / f"{judge.name}.npz", header, judged, stale="remake")

    def _score_column(
        self, scorer: Scorer, home: Path, draws: Stored, proposals: Stored | None
    ) -> None:
        self._say(f"scoring {scorer.column}")
        self.folder.asked += 1
        rows = _ScoredRows(self.task.split(draws.header["split"]), draws, proposals)
        origin = dict(scorer.origin)
        if scorer.opaque:
            answers = hashlib.sha256(rows.triples(scorer.score).tobytes())
            origin["scores_sha256"] = answers.hexdigest()
        header = {
            "column": scorer.column,
            "origin": origin,
            "step_reward": scorer.step_reward,
            DRAWS: draws.sha256,
            PROPOSALS: None if proposals is None else proposals.sha256,
        }

        def scored() -> Stored:
            self.folder.made += 1
            return Stored(header, dict(rows.scored(scorer)))

        need(home / f"{scorer.column}.npz", header, scored, stale="remake")


class _ScoredRows:
    """The rows of a split that a scorer is given, and the scores that it returns."""

    def __init__(self, split: Trajectories, draws: Stored, proposals: Stored | None) -> None:
        self.split, self.draws, self.proposals = split, draws, proposals
        self.rows, self.goals = draws.arrays["rows"], draws.arrays["goal_rows"]

    def triples(self, score: Score) -> Rows:
        return self._on_data(score, self.rows, self.goals)

    def scored(self, scorer: Scorer) -> Iterator[tuple[str, Rows]]:
        """Name and scores of everything that was drawn; see `toptail_paper.semantics`."""
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


def run_scorers(runs: Path, task: str, config: SemanticsConfig) -> list[Scorer]:
    """The scorers of every finished run ``RUNS/TASK/CRITIC/seed-N`` of the wanted seeds.

    Critics without a run and missing seeds are left out; an invalid run is refused. The
    independently seeded TD-Q is ``oracle@SEED``.
    """
    home, seed = runs / task, config.oracle_seed
    reference = of_run(home / REFERENCE_CRITIC, seed, task)
    return of_runs(home, critics_in(home), config.seeds, task) + [
        replace(scorer, column=f"{ORACLE}@{seed}") for scorer in reference
    ]


def sweep_scorers(runs: Path, task: str) -> list[Scorer]:
    """The cosine critics of the temperature study: ``RUNS/temperature/SETTING/TASK/...``."""
    found: list[Scorer] = []
    for home in entries(runs / SWEEP, f"*/{task}/cosine"):
        setting = home.parent.parent.name
        numbers = [path.name.removeprefix("seed-") for path in entries(home, "seed-*")]
        for seed in sorted(int(number) for number in numbers if number.isdigit()):
            column = f"{setting}@{seed}"
            found += [replace(each, column=column) for each in of_run(home, seed, task)]
    return found
