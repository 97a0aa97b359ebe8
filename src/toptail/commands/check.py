"""``toptail check``: from a critic to its verdict, in one command."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from toptail.audit.verdict import STATUSES
from toptail.commands.flags import (
    OUTPUT,
    SCALE,
    RayFlag,
    Statuses,
    Words,
    command_line,
    names,
    statuses,
)
from toptail.commands.terminal import progress_bar, say
from toptail.errors import Exit
from toptail.io.files import check_folder
from toptail.lab.check.inputs import EXACT, NEAREST, UNIFORM, CheckConfig
from toptail.lab.tasks.files import find, task_of
from toptail.progress import Caller, called_by


class _Sizes(CheckConfig):
    """The sizes as they were typed; `CheckConfig` refuses those that cannot be used."""

    def __post_init__(self) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class CheckCommand(RayFlag):
    """Tell whether the best of K by a critic is safe: for one step, and when it is followed.

      toptail check --task PointMaze --scorer critic.py:score
      toptail check --task data.npz --scorer critic.py:score --env gymnasium:ID

    Draws candidates at states of the data, lets the best judge that the task has say what they are
    worth, audits the critic's picks, and follows it through the environment, best of K at every
    step against a random candidate. Nothing is trained. OUT/check.json has the verdicts.
    """

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """A data set: an OGBench name, one of the paper's names, or the path of a training file."""
    scorer: Annotated[Words, tyro.conf.arg(metavar="[NAME=]FILE.py:FUNCTION|RUN")]
    """The critic: a function of states, actions and goals (or of states and actions), one that
    returns such a function, or the folder of a trained run, also RUN:READOUT, such as
    runs/PointMaze/tdq/seed-42:q_min; may be repeated."""
    env: Annotated[str | None, tyro.conf.arg(metavar="FILE.py:make|gymnasium:ID|ogbench:NAME")] = (
        None
    )
    """The environment, where it is not that of an OGBench data set."""
    goal_free: bool = False
    """The task has no goals: for data without an environment, which would say so."""
    runs: Path | None = None
    """Folder of trained runs: behaviour model and reference ensemble."""
    pools: Annotated[Words, tyro.conf.arg(metavar="nearest|uniform|behaviour|ascent|FILE.npz")] = ()
    """Candidates: the data's actions at near states, the whole action box, a trained behaviour
    model's, the box with the action that maximizes the score in it (a stronger search than best of
    K), or those of a file; nearest,uniform unless given."""
    judge: Annotated[
        str | None, tyro.conf.arg(metavar="exact|rollouts|reference|none|FILE.npz")
    ] = None
    """Who says what a candidate is worth; the best that the task has unless given."""
    fail_on: Statuses = ()
    """Exit with code 1 if a verdict, of all queries or of a group, has such a status, or could not
    be made."""
    out: Annotated[Path, OUTPUT] = Path("toptail-check")
    """Folder for check.json, report.html and what they were made of."""
    beside: Annotated[Literal["zoo"] | None, OUTPUT] = None
    """Put the critic among those that this project measured: on PointMaze, by the exact judge, with
    64 candidates."""
    sizes: Annotated[_Sizes, SCALE] = field(default_factory=_Sizes)
    """How much is looked at."""

    def run(self) -> int:
        fail_on, config = statuses(self.fail_on, STATUSES), CheckConfig(**vars(self.sizes))
        check_folder(self.out)
        from toptail.lab.check.beside import comparable_zoo
        from toptail.lab.check.page import check_lines
        from toptail.lab.check.run import check
        from toptail.lab.check.verdicts import failures

        pools, judge = names(self.pools) or (NEAREST, UNIFORM), self.judge
        if self.beside:
            path, judge = find(self.task), judge or EXACT
            task = task_of(path)
            name = path.stem if task is None else task.name
            comparable_zoo(name, judge, pools, config.size(judge), config.gamma)
        with progress_bar() as tick:
            with called_by(Caller(command_line(), tick, self.mapped())):
                result = check(
                    self.task,
                    self.scorer,
                    env=self.env,
                    pools=pools,
                    judge=judge,
                    goals=not self.goal_free,
                    runs=self.runs,
                    config=config,
                )
            if self.beside:
                result = replace(result, content={**result.content, "beside": result.beside()})
            tick("page", 0.0)
            report = result.write(self.out)
        say("\n".join(check_lines(result.content)))
        say(f"\nReport: {report}")
        failed = failures(result.content, fail_on)
        for sentence in failed:
            say(f"--fail-on: {sentence}")
        return Exit.FAILED if failed else Exit.FINE
