"""Rollouts that a policy which reaches goals continues, beside those of the behaviour model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from toptail.errors import InputError, option
from toptail.lab.judges.rollouts import ContinuationPolicy, ExpertContinuation
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.names import MAZES, OGBENCH_NAMES, parse_name, seeker_at
from toptail.lab.tasks.simulator import make_env
from toptail.lab.walkers.experts import SoccerExpert, expert_for
from toptail_paper.selection.config import EXPERT_STAGE, RolloutSettings
from toptail_paper.selection.rollouts import RolloutStage
from toptail_paper.study.main_settings import main_settings
from toptail_paper.study.naming import task_title
from toptail_paper.study.store import Stored


class ExpertStage(RolloutStage):
    """The rollouts of the same picks, continued by the policy that collected the data.

    It acts without noise, so that one rollout of each (query, candidate) is enough.
    """

    suffix: ClassVar[str] = "_expert"
    needs_runs: ClassVar[bool] = False

    @property
    def settings(self) -> RolloutSettings:
        """One repetition, at the queries of the behaviour model's rollouts if there are any."""
        own, behaviour = super().settings, self.study.folder.rollouts
        if behaviour.is_file():
            own = replace(own, per_group=Stored.read(behaviour).header["per_group"], most=1)
        return replace(own, repeats=1)

    def _continuation(self) -> tuple[ContinuationPolicy, dict[str, Any]]:
        return expert_continuation(self.study.config.task)


def expert_continuation(task: str) -> tuple[ContinuationPolicy, dict[str, Any]]:
    """The collecting policy of a maze, with the walker of its main settings, and its origin.

    In soccer the player of *navigate* data, without its memory of the episode: it never goes
    elsewhere when it is stuck.
    """
    name = parse_name(task) if task in OGBENCH_NAMES else None
    if name is None or name.family not in MAZES or not name.has_batches:
        raise InputError(
            f"There is no policy that reaches goals for {task}: expected a maze or the soccer "
            f"arena, without teleports. Leave {EXPERT_STAGE} out of {option('stage')}; "
            "the stage rollouts continues by the behaviour model."
        )
    expert = expert_for(name, main_settings(task_title(task)).walkers)
    heads_for = "centre of the next cell of a shortest path; the goal where that cell is its"
    if isinstance(expert, SoccerExpert):
        expert = replace(expert, stitch=False, memory=False)
        heads_for = "the ball, and with it to the goal; without detours"
    maze = Maze.of(make_env(name.environment))
    return ExpertContinuation(maze, expert, seeker_at(name.family)), {
        "continuation": "expert",
        "policy": "the direction itself" if expert is None else expert.describe(),
        "heads_for": heads_for,
    }
