"""The command line of the reproduction."""

from __future__ import annotations

from collections.abc import Sequence

from toptail import cli
from toptail.cli import Command

_AT = "toptail_paper.commands"

PAPER = cli.Program(
    "toptail-paper",
    """The reproduction of 'Good Rankers, Bad Objectives'.

  toptail-paper show tab:main           a table of the paper beside what was measured
  toptail-paper study controlled        measure the paper's 2-D world again""",
    {
        "study": Command(
            "Run a study; results that exist in its folder are not computed again.",
            parts={
                "controlled": Command(
                    "The paper's 2-D world.", f"{_AT}.study_controlled:StudyControlled"
                ),
                "selection": Command(
                    "Frozen queries, the same candidates for all critics, independent judges.",
                    f"{_AT}.study_selection:StudySelection",
                ),
                "semantics": Command(
                    "What a learned score means, on recorded triples.",
                    f"{_AT}.study_semantics:StudySemantics",
                ),
            },
        ),
        "show": Command("Show a table or figure beside what was measured.", f"{_AT}.show:Show"),
        "ledger": Command("Decide every statement of the paper again.", f"{_AT}.ledger:Ledger"),
        "grid": Command("Answer a question by a declared grid of trainings.", f"{_AT}.grid:Grid"),
        "all": Command("Run everything about whole tasks.", f"{_AT}.all:All"),
        "zoo": Command("Ask of many critics whether they are safe to maximize.", f"{_AT}.zoo:Zoo"),
        "train-walker": Command(
            "Train a walker that collects data.", f"{_AT}.train_walker:TrainWalker"
        ),
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    return cli.main(argv, PAPER)


def run() -> None:
    """Entry point of the console script."""
    cli.run(PAPER)
