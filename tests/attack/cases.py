"""Every command that writes, small: what it needs, and how it is called."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from tests.attack.world import CUBE, POINT, almost_finished_chain
from toptail import cli
from toptail_paper.cli import PAPER

_SMALL_STUDY: Final = (
    "--scorer mine=critic.py:score --triples 300 --negatives 4 --support-queries 10 "
    "--n-near 4,8 --resamples 20 --workers 1"
)
SEMANTICS: Final = f"study semantics --task data/{POINT}.npz {_SMALL_STUDY} --out semantics"
SELECTION: Final = (
    "study selection --task data/walks.npz --per-group 2 --pool-count 1 --pool-size 4 "
    "--pools mine.npz --judge mine=judge.npz --scorer mine=critic.py:score --out selection"
)
CHECK: Final = (
    f"check --task data/{POINT}.npz --scorer critic.py:score --pools uniform --per-group 4 "
    "--pool-size 4 --near 20 --starts 2 --follow-k 1,4 --horizon 5 --resamples 100 --out out"
)
TRAIN: Final = (
    "train --task data/walks.npz --steps 6 --batch-size 16 --log-every 2 --checkpoint-every 2 "
    "--hidden 8 --depth 1 --embed-dim 4 --ensemble 1 --critics cosine --seeds 42,43 --out runs"
)
_CONTROLLED: Final = "study controlled --radii none --out two-d"
_CHOICE: Final = "--scores b --k-max 4 --resamples 100 --repeats 1 --selectors rank"
_TINY: Final = "tests.attack.world:tiny_controlled"


@dataclass(frozen=True)
class Case:
    """A command line that is attacked."""

    name: str
    """What it is called in the figures."""
    command: str
    """The command, as the command line knows it."""
    line: str
    """What is typed after ``toptail``."""
    before: tuple[str, ...] = ()
    """Command lines that were typed before."""
    prepare: Callable[[Path], None] | None = None
    """What else happened in the folder before."""
    whole: tuple[str, ...] = ()
    """Folders that at any moment are as they were or as they become, whatever else is in them."""
    first: str = ""
    """A function, ``module:name``, that makes the command small in its process."""
    again: bool = True
    """Whether the same line twice gives the same bits; not so where time decides."""
    slow: bool = False
    """Whether it takes half a minute or more: its disk fails less often."""

    @property
    def words(self) -> list[str]:
        """The line, word by word."""
        return shlex.split(self.line)


CASES: Final = (
    Case("audit", "audit", "audit scores.csv --resamples 100 --out out", whole=("out",)),
    Case(
        "audit-again",
        "audit",
        "audit scores.csv --resamples 100 --scores b --baseline older.csv --out out",
        before=("audit older.csv --resamples 100 --out out",),
        prepare=lambda folder: _note(folder / "out"),
        whole=("out",),
    ),
    Case("picks", "audit", "audit --picks picks.csv --resamples 100 --out out", whole=("out",)),
    Case(
        "report",
        "report",
        "report out",
        before=("audit scores.csv --resamples 100 --out out",),
        prepare=lambda folder: _note(folder / "out"),
        whole=("out",),
    ),
    Case("choose-table", "choose", f"choose scores.csv {_CHOICE} --out out", whole=("out",)),
    Case("critic", "check", CHECK, whole=("out",)),
    Case("plan", "plan", "plan scores.csv --labels 150 --out to_judge.csv"),
    Case("demo", "demo", "demo --out out", whole=("out",)),
    Case("get", "data get", f"data get {POINT} --folder got"),
    Case(
        "collect",
        "data collect",
        f"data collect {POINT} --episodes 3 --val-episodes 2 --rows 20 --workers 1 "
        f"--out own/{POINT}.npz",
    ),
    Case(
        "import",
        "data import",
        f"data import ogbench:data/{POINT}.npz --out own/imported.npz --val-share 0.5",
    ),
    Case(
        "check",
        "data check",
        f"data check data/{POINT}.npz --reference-episodes 0 --restore-rows 0 --picture maze.png",
    ),
    Case(
        "train-walker",
        "train-walker",
        "train-walker ant --minutes 0.02 --envs 4 --threads 1 --out walker",
        again=False,
        slow=True,
    ),
    Case("train", "train", TRAIN),
    Case("run-job", "run-job", "run-job @1", prepare=lambda folder: _listed(folder)),
    Case(
        "invalidate",
        "runs",
        "runs --invalidate runs/walks/cosine/seed-42 --reason bug",
        before=(TRAIN,),
    ),
    Case("controlled", "study controlled", _CONTROLLED, first=_TINY, slow=True),
    Case("choose", "study controlled", f"{_CONTROLLED} --choose", first=_TINY, slow=True),
    Case("semantics", "study semantics", SEMANTICS),
    Case("selection", "study selection", SELECTION),
    Case("declare", "study selection", f"{SELECTION} --declare"),
    Case("keep", "study keep", "study keep selection/walks --out kept", (SELECTION,)),
    Case(
        "keep-again",
        "study keep",
        "study keep selection/walks --replace --out kept",
        before=(SELECTION, "study keep selection/walks --also actions --out kept"),
    ),
    Case(
        "chain",
        "study chain",
        f"study chain --task {CUBE} --data data --runs runs --out studies",
        before=(f"study semantics --task data/{CUBE}.npz {_SMALL_STUDY} --out studies/semantics",),
        prepare=almost_finished_chain,
        slow=True,
    ),
    Case(
        "settle",
        "grid",
        "grid plan.json --out settled",
        prepare=lambda folder: _plan(folder / "plan.json"),
        slow=True,
    ),
    Case(
        "reproduce",
        "reproduce",
        "reproduce tab:main --out semantics",
        before=(SEMANTICS,),
    ),
)
"""One case at least of every command that writes."""

READING: Final[Mapping[str, str]] = {
    "data list": "data list",
    "data info": f"data info data/{POINT}.npz",
    "show": "show tab:main",
}
"""Commands that write nothing, and a line that shows it."""


def _plan(path: Path) -> None:
    """A question that four steps of a tiny critic answer."""
    small = {"hidden": 8, "depth": 1, "embed_dim": 4, "ensemble": 1, "batch_size": 16}
    answer = {"rule": "any", "conditions": [{"metric": "auc", "low": 0}], "yes": "Y.", "no": "N."}
    plan = {
        "question": "Does it end?",
        "data": ["data/walks.npz"],
        "critics": ["raw"],
        "grid": {"positive_weight": [1, 16]},
        "seeds": [0],
        "steps": [2, 4],
        "reads": ["triples"],
        "shared": small,
        "sizes": {"triples": 40, "negatives": 4, "max_offset": 6, "k": 8, "resamples": 20},
        "answer": answer,
    }
    path.write_text(json.dumps(plan))


def _note(folder: Path) -> None:
    """A file of the user's own among the results."""
    (folder / "my-notes.txt").write_text("mine\n")


def _listed(folder: Path) -> None:
    """The pieces of a training, as the command lists them."""
    listing = [sys.executable, "-m", "toptail", *shlex.split(TRAIN), "--list-jobs"]
    with (folder / "jobs.jsonl").open("w") as file:
        subprocess.run(listing, cwd=folder, stdout=file, check=True)


def commands() -> Iterator[tuple[str, type]]:
    """Every command of the command line, as typed, with the class that holds its flags."""
    yield from _commands(cli.TOPTAIL.commands, "")
    known = {"demo", "run-job"}  # of both programs
    yield from ((n, c) for n, c in _commands(PAPER.commands, "") if n not in known)


def _commands(kind: Any, typed: str) -> Iterator[tuple[str, type]]:
    for member in get_args(kind):
        owner, about = get_args(member)
        inner = get_type_hints(owner, include_extras=True).get("what")
        while get_origin(inner) is Annotated:
            inner = get_args(inner)[0]
        if get_origin(inner) in (Union, UnionType):
            yield from _commands(inner, f"{typed}{about.name} ")
        else:
            yield f"{typed}{about.name}", owner
