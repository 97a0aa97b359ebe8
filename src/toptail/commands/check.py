"""``toptail check``: from a critic to its verdict, in one command."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from toptail.audit.verdict import STATUSES
from toptail.commands.engine import EngineFlags
from toptail.commands.lists import names, statuses
from toptail.commands.options import Flag, Words, command_line, flags_of, with_given
from toptail.commands.progress import progress_bar
from toptail.commands.terminal import say
from toptail.errors import Exit
from toptail.io.files import check_folder
from toptail.lab.check.inputs import NEAREST, UNIFORM, CheckConfig
from toptail.progress import Caller, called_by

if TYPE_CHECKING:
    Settings = Any
else:
    _SIZES = [f.name for f in fields(CheckConfig) if f.type != "bool"]
    Settings = flags_of(CheckConfig(), _SIZES)


@dataclass(frozen=True)
class CheckCommand(EngineFlags):
    """Tell whether the best of K by a critic is safe: for one step, and when it is followed.

    Draws candidates at states of the data, lets the best judge that the task has say what they are
    worth, audits the critic's picks, and follows it through the environment, best of K at every
    step against a random candidate. Nothing is trained. OUT/check.json has the verdicts.
    """

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """A data set: an OGBench name, one of the paper's names, or the path of a training file."""

    scorer: Annotated[Words, tyro.conf.arg(metavar="[NAME=]FILE.py:FUNCTION|[NAME=]RUN")]
    """The critic: a function of states, actions and goals (or of states and actions), one that
    returns such a function, or the folder of a trained run; may be repeated, RUNS/TASK/*/seed-*
    takes all that fit. Arguments with these names get what they are called, in any order."""

    pools: Annotated[Words, tyro.conf.arg(metavar="nearest|uniform|behaviour|ascent|FILE.npz")] = ()
    """Candidates: the data's actions at near states, the whole action box, a trained behaviour
    model's, the box with the action that maximizes the score in it (a stronger search than best of
    K), or those of a file; nearest,uniform unless given."""

    judge: Annotated[
        str | None, tyro.conf.arg(metavar="exact|rollouts|reference|none|FILE.npz")
    ] = None
    """Who says what a candidate is worth; the best that the task has unless given."""

    env: Annotated[str | None, tyro.conf.arg(metavar="FILE.py:make|gymnasium:ID|ogbench:NAME")] = (
        None
    )
    """The environment, where it is not that of an OGBench data set."""

    goal_free: Flag = False
    """The task has no goals: for data without an environment, which would say so."""

    follow_ascent: Flag = False
    """For the candidates 'ascent', also follow the maximizer of the score at every step: this takes
    about 2,000 scores a step."""

    runs: Path | None = None
    """Folder of trained runs: behaviour model and reference ensemble."""

    out: Path = Path("toptail-check")
    """Folder for check.json, report.html and what they were made of."""

    fail_on: Annotated[Words, tyro.conf.arg(metavar="STATUS,...")] = ()
    """Exit with code 1 if a verdict, of all queries or of a group, has such a status, or could not
    be made."""

    settings: tyro.conf.OmitArgPrefixes[Settings] = field(default_factory=Settings)
    """How much is looked at."""

    def run(self) -> int:
        """Check, write, and print the verdicts."""
        fail_on = statuses(self.fail_on, STATUSES)
        self.check_engine()
        check_folder(self.out)
        from toptail.lab.check.result import check_lines
        from toptail.lab.check.run import check
        from toptail.lab.check.verdicts import failures

        with progress_bar() as tick:
            mapped = map if self.engine == "local" else self.mapped()
            with called_by(Caller(command_line(), tick, mapped)):
                result = check(
                    self.task,
                    self.scorer,
                    env=self.env,
                    pools=names(self.pools) or (NEAREST, UNIFORM),
                    judge=self.judge,
                    goals=not self.goal_free,
                    runs=self.runs,
                    config=with_given(
                        CheckConfig(), self.settings, follow_ascent=self.follow_ascent
                    ),
                )
            tick("page", 0.0)
            report = result.write(self.out)
        say("\n".join(check_lines(result.content)))
        say(f"\nReport: {report}")
        failed = failures(result.content, fail_on)
        for sentence in failed:
            say(f"--fail-on: {sentence}")
        return Exit.FAILED if failed else Exit.FINE
