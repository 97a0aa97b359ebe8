"""The stages of a study in their order, with the scorers and candidates that a user gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toptail.errors import InputError, option
from toptail.lab.critics.registry import MAIN, names
from toptail.lab.judges.point import is_point_maze
from toptail.lab.judges.reference import REFERENCE_CRITIC
from toptail.lab.scorers.base import Scorer
from toptail.lab.scorers.runs import critics_in
from toptail.lab.scorers.user import user_scorers
from toptail.lab.tasks.files import Dataset, TaskDataset
from toptail.lab.tasks.names import OGBENCH_NAMES, parse_name
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.training.config import keep_compiled
from toptail.lab.training.runs import RECORD, Run, run_folder
from toptail.lab.training.session import TrainingJob, Watch
from toptail.report.text import join
from toptail_paper.selection.config import EXPERT_STAGE, IDEALS_STAGE, STAGES, SelectionConfig
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.pools import CandidatePools, file_proposal
from toptail_paper.selection.rollout_data import RESERVED, TRAINING_SEED
from toptail_paper.selection.stages import (
    Selection,
    critic_scorers,
    judge_by_maze,
    judge_reference,
    make_pools,
    make_queries,
    runs_in_training,
    score_critics,
    score_trivial,
)
from toptail_paper.selection.study import UserInputs
from toptail_paper.study.ideals import ideal_scorers, knows_ideals
from toptail_paper.study.naming import IDEALS, TRIVIAL
from toptail_paper.study.point_judges import POINT_JUDGES
from toptail_paper.study.results import note
from toptail_paper.study.training import TrainingSettings, train_missing

if TYPE_CHECKING:
    from toptail_paper.selection.expert_rollouts import ExpertStage
    from toptail_paper.selection.rollouts import RolloutStage


def train_selection(
    task: str,
    config: SelectionConfig,
    training: TrainingSettings,
    runs: Path,
    critics: Sequence[str] = (),
    command: str = "",
    watch: Watch | None = None,
) -> list[Run]:
    """Train what the study needs and ``runs`` does not hold: `train_missing`."""
    jobs_of = partial(selection_jobs, config, training, runs, critics)
    return train_missing((task,), jobs_of, command, watch)


def selection_jobs(
    config: SelectionConfig,
    training: TrainingSettings,
    runs: Path,
    critics: Sequence[str],
    data: TaskDataset,
) -> Iterator[TrainingJob]:
    """Trainings of the study, in their order; all critics of the paper where none are named."""
    reference = training.critic(data.name, REFERENCE_CRITIC)
    yield TrainingJob(reference, config.reference.seeds, runs)
    for critic in critics or names("main", "two_head", "control"):
        yield TrainingJob(training.critic(data.name, critic), config.seeds, runs)
    if training.diffusion_steps:
        model = training.behaviour_model(data.name)
        yield TrainingJob(model, (config.pools.policy_seed,), runs)


_MAZES: Final = "they are made in OGBench's mazes without teleports alone."


@dataclass(frozen=True)
class Stages:
    """The stages of one study."""

    study: Selection
    dataset: Dataset
    inputs: UserInputs = field(default_factory=UserInputs)
    deployed: tuple[str, ...] = ()
    """Critics whose deployment is checked; the paper's four that are trained where empty."""
    deployment: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of actors and episodes that are not the task's own: ``{"actor": {"steps": 9}}``."""

    def run(self, stages: Sequence[str] = STAGES) -> list[str]:
        """Make the stages that are asked for; returns sentences about those that were left out.

        The user's scorers are loaded, the queries frozen and the criteria declared in any case,
        before anything is scored. A stage whose file exists and fits is not made again.
        """
        steps: Mapping[str, Callable[[], str]] = {
            "queries": self._queries,
            "pools": self._pools,
            "reference": self._reference,
            **{judge: partial(self._judge_by_maze, judge) for judge in POINT_JUDGES},
            "scores": self._scores,
            IDEALS_STAGE: self._ideals,
            "rollouts": self._rollouts,
            EXPERT_STAGE: self._rollouts_expert,
            "deployment": self._deployment,
        }
        unknown = [stage for stage in stages if stage not in steps]
        if unknown:
            raise InputError(
                f"There is no stage '{unknown[0]}': they are {', '.join(steps)} and tables."
            )
        keep_compiled()  # so that rollouts which a later process adds have the same bits
        _ = self.user_scorers, self.queries  # wrong input is refused at once
        left_out = [step() for name, step in steps.items() if name in stages]
        return [sentence for sentence in left_out if sentence]

    @cached_property
    def user_scorers(self) -> list[Scorer]:
        reserved = (*RESERVED, *IDEALS, *TRIVIAL)
        return user_scorers(self.inputs.scorers, reserved, self.study.folder.columns())

    @cached_property
    def queries(self) -> FrozenQueries:
        """The frozen queries; the criteria are declared with them."""
        return make_queries(self.study, self.dataset.val)

    @cached_property
    def pools(self) -> CandidatePools:
        file, settings = self.inputs.pools, self.study.config.pools
        proposal = None if file is None else file_proposal(file, settings)
        return make_pools(self.study, self.queries, self.dataset.train, proposal)

    @property
    def simulated(self) -> bool:
        """Whether the task is a maze in which candidates can be rolled out."""
        task = self.study.config.task
        return task in OGBENCH_NAMES and parse_name(task).has_batches

    @cached_property
    def rollouts(self) -> RolloutStage:
        from toptail_paper.selection.rollouts import RolloutStage

        return RolloutStage(self.study, self.queries, self.pools, self.dataset.val)

    @cached_property
    def rollouts_expert(self) -> ExpertStage:
        from toptail_paper.selection.expert_rollouts import ExpertStage

        return ExpertStage(self.study, self.queries, self.pools, self.dataset.val)

    def _queries(self) -> str:
        _ = self.queries
        return ""

    def _pools(self) -> str:
        _ = self.pools
        return ""

    def _reference(self) -> str:
        path = self.study.folder.values(REFERENCE)
        seeds = self.study.config.reference.seeds
        complete = all(self._trained((REFERENCE_CRITIC,), (seed,)) for seed in seeds)
        another = self.study.folder.judges() or is_point_maze(self.study.config.task)
        if complete or path.is_file() or not another:
            judge_reference(self.study, self.queries, self.pools)
            return ""
        return (
            "No reference ensemble: it needs trained runs of "
            f"{REFERENCE_CRITIC} with the seeds {join(seeds)}, and another judge is there."
        )

    def _judge_by_maze(self, judge: str) -> str:
        if not is_point_maze(self.study.config.task):
            return f"No {judge} judge: it knows PointMaze alone, without teleports."
        judge_by_maze(self.study, self.queries, self.pools, POINT_JUDGES[judge])
        return ""

    def _scores(self) -> str:
        scorers, waiting = list(self.user_scorers), ""
        runs, task = self.study.runs, self.study.config.task
        critics = [] if runs is None else critics_in(runs / task)
        if runs is not None and (not scorers or self._trained(critics)):
            scorers += critic_scorers(self.study, critics)
            left = [f"{critic}@{seed}" for critic, seed in runs_in_training(self.study, critics)]
            if left:
                waiting = (
                    f"Not scored yet, because they are in training: {', '.join(left)}. Repeat the "
                    "stage scores when they are finished."
                )
        if scorers:
            score_critics(self.study, self.queries, self.pools, scorers)
        elif not self.study.folder.columns():
            raise InputError(
                "There is nothing to score with: name the folder of trained critics with "
                f"{option('runs')}, or a critic of your own with {option('scorer')}."
            )
        score_trivial(self.study, self.queries, self.pools)
        return waiting

    def _ideals(self) -> str:
        task = self.study.config.task
        if not knows_ideals(task):
            return "No ideal critics: they are known of PointMaze's navigate data alone."
        scorers = ideal_scorers(task, self.study.config.rollouts.gamma)
        score_critics(self.study, self.queries, self.pools, scorers)
        return ""

    def _trained(self, critics: Sequence[str], seeds: Sequence[int] = ()) -> list[str]:
        """Those critics that have a run of one of the seeds, the study's own by default."""
        if self.study.runs is None:
            return []
        home, wanted = self.study.runs / self.study.config.task, seeds or self.study.config.seeds
        return [
            critic
            for critic in critics
            if any((run_folder(home / critic, seed) / RECORD).is_file() for seed in wanted)
        ]

    def _rollouts(self) -> str:
        if not self.simulated:
            return f"No rollouts: {_MAZES}"
        if self.study.runs is None and not self.study.folder.rollouts.is_file():
            return "No rollouts: they need the trained behaviour model, the continuation policy."
        self.rollouts.audit()
        return ""

    def _rollouts_expert(self) -> str:
        self.rollouts_expert.audit()
        return ""

    def roll_out(self, stage: str, part: int, parts: int) -> None:
        """One of so many parts of a stage of rollouts, once everything before it is stored."""
        if stage == EXPERT_STAGE:
            self.rollouts_expert.part(part, parts)
        elif self.simulated and self.study.runs is not None:
            keep_compiled()
            self.rollouts.part(part, parts)

    def _deployment(self) -> str:
        if not self.simulated:
            return f"No deployment checks: {_MAZES}"
        study, seeds = self.study, (TRAINING_SEED,)
        critics = list(self.deployed) or self._trained(MAIN, seeds)
        if study.runs is None or not critics:
            return "No deployment checks: they need trained runs of critics."
        from toptail_paper.selection.deployment import Deployment, DeploymentConfig

        config = DeploymentConfig.for_task(study.config.task).resized(self.deployment)
        note(study.folder.path, deployment=config.size)
        where = study.config.task, study.runs, study.folder.path / "deployment", self.dataset
        Deployment(*where, config, study.tick).run(critics, seeds)
        return ""
