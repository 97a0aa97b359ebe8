"""The critics of a check: functions of a user's, or trained runs by folder or pattern."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail.lab.scorers.base import Scorer, of_run
from toptail.lab.scorers.user import named, require_names, user_scorers
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.training.run_files import RECORD


def check_scorers(texts: Iterable[str], task: TaskDataset) -> list[Scorer]:
    """The scorers that ``--scorer`` names; a pattern stands for all runs that fit it."""
    found = [scorer for text in texts for scorer in _scorers(text, task)]
    if not found:
        raise InputError(f"There is nothing to check: name a critic with {option('scorer')}.")
    require_names([scorer.column for scorer in found])
    return found


def _scorers(text: str, task: TaskDataset) -> list[Scorer]:
    name, folders = _named_runs(text)
    if folders is None:
        return user_scorers([text], ())
    if not folders:
        raise InputError(f"{option('scorer', text)}: no folder of a trained run fits that.")
    from toptail.lab.training.runs import require_data

    scorers = []
    for folder in folders:
        seed = folder.name.removeprefix("seed-")
        found = of_run(folder.parent, int(seed), task.name) if seed.isdecimal() else []
        for scorer in found:
            train = task.data.train
            require_data(scorer.origin["run"], scorer.origin["data"], train.source, train.sha256)
        scorers += [_renamed(scorer, name, folder) for scorer in found] if name else found
    return scorers


def _named_runs(text: str) -> tuple[str, list[Path] | None]:
    """The name that stands before runs, "" for their own, and the folders of the runs.

    Folders of critics with settings have equals signs, too: a name has no brackets and no slash.
    """
    folders = _runs(text)
    name, rest = named(text)
    if folders or name is None or any(sign in name for sign in "/["):
        return "", folders
    folders = _runs(rest)
    if folders and (not name or "@" in name):
        raise InputError(
            f"{option('scorer', text)}: a run has its own seed; give it a name without @, or none."
        )
    return name, folders


def _renamed(scorer: Scorer, name: str, run: Path) -> Scorer:
    """The scorer of a run under a name of the user's, which a second head adds its own to."""
    own, _, seed = scorer.column.rpartition("@")
    label = run.parent.name if "[" in run.parent.name else str(scorer.origin["critic"])
    return replace(scorer, column=f"{name}{own.removeprefix(label)}@{seed}")


def _runs(text: str) -> list[Path] | None:
    """Folders of trained runs that a path or pattern names; None where it names something else."""
    path = Path(text).expanduser()
    if (path / RECORD).is_file():
        return [path]
    parts = path.parts
    wild = next((i for i, part in enumerate(parts) if "*" in part or "?" in part), None)
    if wild is None or ".py:" in text or not path.name.startswith("seed-"):
        return None
    pattern = str(Path(*parts[wild:]))
    return [run for run in entries(Path(*parts[:wild]), pattern) if (run / RECORD).is_file()]
