"""The stages of a study in their order, with what a user brings in place of any of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toptail.errors import InputError, option
from toptail.io.arrays import read_arrays
from toptail.io.files import sha256
from toptail.lab.critics.registry import IDEALS, MAIN
from toptail.lab.judges.exact import WAYS
from toptail.lab.judges.ideals import knows_ideals
from toptail.lab.judges.point import EUCLIDEAN, EXACT, knows_ways
from toptail.lab.judges.reference import REFERENCE_CRITIC
from toptail.lab.scorers.base import Scorer, critics_in
from toptail.lab.scorers.user import user_scorers
from toptail.lab.store.units import one_of
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.names import OGBENCH_NAMES, parse_name
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.training.config import keep_compiled
from toptail.lab.training.run_files import RECORD, run_folder
from toptail.report.text import join
from toptail_paper.selection.config import IDEALS_STAGE, STAGES
from toptail_paper.selection.files import REFERENCE, SIMULATED
from toptail_paper.selection.pools import CandidatePools, file_proposal
from toptail_paper.selection.rollout_design import RESERVED, TRAINING_SEED
from toptail_paper.selection.stages import (
    add_values,
    critic_scorers,
    judge_reference,
    judge_ways,
    make_pools,
    make_queries,
    runs_in_training,
    score_critics,
)
from toptail_paper.selection.study import Selection
from toptail_paper.study.ideals import ideal_scorers
from toptail_paper.study.scale import note

if TYPE_CHECKING:
    from toptail_paper.selection.rollout_stage import Place

_JUDGE = re.compile(r"[A-Za-z0-9_-]+")
_TAKEN = ("rollouts", "split_half", SIMULATED)
"""Rows of the table of judges, and files, that no judge of every candidate may take."""


@dataclass(frozen=True)
class Brought:
    """What a user brings instead of, or beside, what the stages make."""

    pools: Path | None = None
    """An npz file with ``actions [Q, P, N, a]`` in place of a behaviour model's candidates."""
    judges: tuple[str, ...] = ()
    """``NAME=FILE.npz`` with ``values [members, Q, P, N + 1]``, one more judge each."""
    critics: tuple[str, ...] = ()
    """``[NAME=]FILE.py:FUNCTION``, one more scorer each."""
    env: str | None = None
    """``FILE.py:make``, ``gymnasium:ID`` or ``ogbench:NAME``: where to simulate, if not in the maze
    of an OGBench task."""


@dataclass(frozen=True)
class Stages:
    """The stages of one study."""

    study: Selection
    """Folder, settings, runs and progress."""
    dataset: Dataset
    """Both splits of the task's data."""
    brought: Brought = Brought()
    """What the user brings."""

    deployed: tuple[str, ...] = ()
    """Critics whose deployment is checked; the paper's four that are trained where empty."""

    deployment: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of actors and episodes that are not the task's own: ``{"actor": {"steps": 9}}``."""

    planned: int | None = None
    """Roll out at most so many planned candidates, in place of picks and random candidates."""

    def run(self, stages: Sequence[str] = STAGES) -> list[str]:
        """Make the stages that are asked for; returns sentences about those that were left out.

        The user's scorers are loaded, the queries frozen and the criteria declared in any case,
        before anything is scored. A stage whose file is there and fits is not made again.
        """
        steps: Mapping[str, Callable[[], str]] = {
            "queries": lambda: self._use(self.queries),
            "pools": lambda: self._use(self.pools),
            "reference": self._reference,
            EXACT: partial(self._ways, EXACT),
            EUCLIDEAN: partial(self._ways, EUCLIDEAN),
            "scores": self._scores,
            IDEALS_STAGE: self._ideals,
            "rollouts": self._rollouts,
            "deployment": self._deployment,
        }
        unknown = [stage for stage in stages if stage not in steps]
        if unknown:
            raise InputError(
                f"There is no stage '{unknown[0]}': they are {', '.join(steps)} and tables."
            )
        keep_compiled()  # rollouts that another process adds later go on as those of this one
        self._use(self.users)
        self._use(self.place)
        self._use(self.queries)
        self._judges()
        left_out = [step() for name, step in steps.items() if name in stages]
        return [sentence for sentence in left_out if sentence]

    @staticmethod
    def _use(made: object) -> str:
        """Say nothing about what is made by being asked for."""
        del made
        return ""

    @cached_property
    def users(self) -> list[Scorer]:
        """The scorers that were brought."""
        reserved = (*RESERVED, *IDEALS)
        return user_scorers(self.brought.critics, reserved, self.study.folder.columns())

    @cached_property
    def queries(self) -> FrozenQueries:
        """The frozen queries; the criteria are declared with them."""
        return make_queries(self.study, self.dataset.val)

    @cached_property
    def pools(self) -> CandidatePools:
        """The cached candidates."""
        file, settings = self.brought.pools, self.study.config.pools
        proposal = None if file is None else file_proposal(file, settings)
        return make_pools(self.study, self.queries, self.dataset.train, proposal)

    @property
    def simulated(self) -> bool:
        """Whether there is an environment: one that was brought, or a maze of OGBench's."""
        task = self.study.config.task
        maze = task in OGBENCH_NAMES and parse_name(task).has_batches
        return maze or self.brought.env is not None

    @cached_property
    def place(self) -> Place | None:
        """The environment that was brought."""
        if self.brought.env is None:
            return None
        from toptail.lab.check.environments import world_of
        from toptail_paper.selection.rollout_stage import Place

        world = world_of(self.brought.env, self.dataset, goals=True)
        if not world.goals:
            raise InputError(
                f"{option('env', self.brought.env)} does not say when a goal is reached, and this "
                "study is about goals: give it a method reached(goal), or ask 'toptail check', "
                "which looks at returns, too."
            )
        return Place(world, self.dataset.train)

    def _judges(self) -> None:
        """Store the values of the judges that were brought."""
        for text in self.brought.judges:
            name, values, origin = read_judge(text)
            add_values(self.study, self.queries, self.pools, name, values, origin)

    def _reference(self) -> str:
        path = self.study.folder.values(REFERENCE)
        seeds = self.study.config.reference.seeds
        whole = all(self._trained((REFERENCE_CRITIC,), (seed,)) for seed in seeds)
        others = set(self.study.folder.judges()) - {SIMULATED}
        another = others or knows_ways(self.study.config.task)
        if whole or path.is_file() or not (another or self.place):
            judge_reference(self.study, self.queries, self.pools)
            return ""
        left = (
            "No reference ensemble: it needs trained runs of "
            f"{REFERENCE_CRITIC} with the seeds {join(seeds)}, and "
        )
        if another or self.place is None:
            return f"{left}another judge is there."
        from toptail_paper.selection.rollout_stage import value_every_candidate

        given = self.study, self.queries, self.pools, self.dataset.val
        value_every_candidate(*given, self.place)
        return f"{left}the environment values every candidate instead."

    def _ways(self, judge: str) -> str:
        if not knows_ways(self.study.config.task):
            return f"No {judge} judge: it knows PointMaze alone, without teleports."
        judge_ways(self.study, self.queries, self.pools, WAYS[judge])
        return ""

    def _scores(self) -> str:
        scorers, waiting = list(self.users), ""
        runs, task = self.study.runs, self.study.config.task
        critics = [] if runs is None else critics_in(runs / task)
        if runs is not None and (not scorers or self._trained(critics)):
            scorers += critic_scorers(self.study, critics)
            left = [f"{critic}@{seed}" for critic, seed in runs_in_training(self.study, critics)]
            if left:
                waiting = (
                    f"Not scored yet, because they are in training: {', '.join(left)}. Ask for "
                    "the scores again when they are finished."
                )
        if scorers:
            score_critics(self.study, self.queries, self.pools, scorers)
        elif not self.study.folder.columns():
            raise InputError(
                "There is nothing to score with: name the folder of trained critics with "
                f"{option('runs')}, or a critic of your own with {option('scorer')}."
            )
        return waiting

    def _ideals(self) -> str:
        task = self.study.config.task
        if not knows_ideals(task):
            return "No ideal critics: they are known of PointMaze's navigate data alone."
        scorers = ideal_scorers(task, self.study.config.rollouts.gamma)
        score_critics(self.study, self.queries, self.pools, scorers)
        return ""

    def _trained(self, critics: Sequence[str], seeds: Sequence[int] = ()) -> list[str]:
        """Those critics that have a run of one of the seeds."""
        if self.study.runs is None:
            return []
        home, config = self.study.runs / self.study.config.task, self.study.config
        return [
            critic
            for critic in critics
            if any(
                (run_folder(home / critic, seed) / RECORD).is_file()
                for seed in (seeds or config.seeds)
            )
        ]

    def _rollouts(self) -> str:
        if not self.simulated:
            return (
                "No rollouts: of OGBench's tasks they are made in mazes alone, without teleports, "
                f"and of others in the environment that {option('env')} names."
            )
        folder = self.study.folder
        file = folder.rollouts if self.planned is None else folder.planned
        if self.study.runs is None and self.place is None and not file.is_file():
            return "No rollouts: they need trained runs with the behaviour model that goes on."
        from toptail_paper.selection.rollout_stage import (
            make_planned_rollouts,
            make_rollouts,
        )

        given = self.study, self.queries, self.pools, self.dataset.val
        if self.planned is None:
            make_rollouts(*given, place=self.place)
        else:
            make_planned_rollouts(*given, self.planned, self.place)
        return ""

    def roll_out(self, piece: int, pieces: int) -> None:
        """One of so many pieces of the rollouts, once everything before them is there."""
        if self.simulated and (self.study.runs is not None or self.place is not None):
            from toptail_paper.selection.rollout_stage import make_rollout_piece

            keep_compiled()
            given = self.study, self.queries, self.pools, self.dataset.val
            make_rollout_piece(*given, piece, pieces, self.place)

    def _deployment(self) -> str:
        if not self.simulated:
            return (
                "No deployment checks: of OGBench's tasks they are made in mazes alone, without "
                f"teleports, and of others in the environment that {option('env')} names."
            )
        study, seeds = self.study, (TRAINING_SEED,)
        critics = list(self.deployed) or self._trained(MAIN, seeds)
        if study.runs is None or not critics:
            return "No deployment checks: they need trained runs of critics."
        from toptail_paper.selection.deployment import DeploymentConfig, run_deployment

        task, out = study.config.task, study.folder.path.parent
        config = DeploymentConfig.for_task(task).resized(self.deployment)
        note(study.folder.path, deployment=config.size)
        more: dict[str, Any] = {}
        if self.place is not None:
            more = {"world": self.place.world, "queries": self.queries}
        given = task, study.runs, out, critics, seeds, study.tick, config
        run_deployment(*given, dataset=self.dataset, **more)
        return ""


def read_judge(text: str) -> tuple[str, Any, dict[str, Any]]:
    """A judge's name, its values and where they come from, of ``NAME=FILE.npz``.

    ``values`` are [members, Q, P, N + 1], or [Q, P, N + 1] for a judge of one member.
    """
    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise InputError(f"{option('judge', text)}: expected NAME=FILE.npz.")
    if not _JUDGE.fullmatch(name) or name in _TAKEN:
        raise InputError(
            f"{option('judge', text)}: '{name}' cannot name a judge; use letters, digits, '_' and "
            f"'-', and not {' or '.join(_TAKEN)}, which tables use for something else."
        )
    path = Path(file).expanduser()
    values = one_of(path, read_arrays(path), "values")
    if values.dtype.kind not in "fiu":
        raise InputError(f"{path}: 'values' must hold numbers, not {values.dtype}.")
    stack = values[None] if values.ndim == 3 else values
    return name, stack, {"file": path.name, "sha256": sha256(path)}
