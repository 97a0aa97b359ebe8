"""``toptail-paper study chain``: everything about a task, on one machine, stopped and continued."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.commands.lists import names
from toptail.commands.options import Flag, Words
from toptail.commands.requirements import need_training
from toptail.commands.terminal import say
from toptail.errors import Exit, InputError, NotDoneError


@dataclass(frozen=True)
class StudyChain:
    """Collect, train, score, roll out and tabulate whole tasks, side by side where it can be.

    Training and scoring share the accelerator; collecting and rollouts use the cores meanwhile.
    Stopped at any moment, the same command goes on. What it did stands in OUT/chain.
    """

    task: Annotated[Words, tyro.conf.arg(metavar="A,B,...")]
    """Data sets that can be collected here: OGBench names, or the paper's."""

    out: Path
    """Folder of the studies: OUT/semantics and OUT/selection/TASK."""

    runs: Path
    """Folder of the trained runs: the networks stay there."""

    data: Path
    """Folder of the collected data sets."""

    steps: int | None = None
    """Optimizer steps of every critic and behaviour model; the studies' own unless given."""

    minutes: float | None = None
    """Stop after so many minutes; the same command goes on. Until all is done unless given."""

    accelerator: int = 2
    """Pieces that share the accelerator: while one compiles, another trains."""

    no_two_heads: Flag = False
    """Leave the two-head critics out."""

    no_deployment: Flag = False
    """Leave actors and closed loops out."""

    list: Flag = False
    """Only print the pieces, one line of JSON each, with what is done."""

    def run(self) -> int:
        """Run the chain; the exit code is 1 if a piece failed, 3 if time was up before the end."""
        need_training("study chain")
        if not hasattr(os, "killpg"):
            raise NotDoneError(
                "'toptail-paper study chain' needs groups of processes, which this system does "
                "not have: "
                "use Linux, macOS or WSL, or run the commands that --list prints elsewhere."
            )
        from toptail_paper.commands.chain import ChainConfig, chain
        from toptail_paper.commands.chain_run import ChainRun, as_lines

        if self.accelerator < 1 or (self.minutes is not None and not self.minutes > 0):
            raise InputError("--accelerator and --minutes must be more than 0.")
        config = ChainConfig(
            self.data,
            self.runs,
            self.out,
            steps=self.steps,
            two_heads=not self.no_two_heads,
            deployment=not self.no_deployment,
        )
        work = ChainRun(
            chain(config, names(self.task)),
            self.out / "chain",
            {"accelerator": self.accelerator, "simulator": 1},
            {"TOPTAIL_DATA": str(self.data.resolve()), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
            say,
        )
        if self.list:
            say("\n".join(as_lines(work)))
            return 0
        work.run(None if self.minutes is None else 60 * self.minutes)
        left = work.left()
        say(f"{len(work.pieces) - len(left)} of {len(work.pieces)} pieces are finished.")
        if work.failed:
            return Exit.FAILED
        return Exit.NOT_DONE if left else Exit.FINE
