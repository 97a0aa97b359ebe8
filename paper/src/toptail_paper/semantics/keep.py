"""What of the study's scores ships with its results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from toptail.lab.store.compact import Among, InOrder, Way
from toptail.lab.store.units import Stored, columns
from toptail.pools.columns import split_seed
from toptail_paper.semantics.config import DRAWS, ORACLE, PROPOSALS, SEEN, SWEEP, VALUES
from toptail_paper.semantics.load import stored_columns, task_folders
from toptail_paper.study.kept import Keeping, Keepsake, KeptFile

SUPPORT: Final = "support"
"""What is kept when asked for: scores of the candidates of support pools."""
SEEN_NEGATIVES: Final = "seen-negatives"
"""What is kept when asked for: scores of other goals on trajectories that were trained on."""

_BESIDE_SCORES = ("negatives", "hard_negatives", "second_goals")
"""Compared with the triples' own scores, and with nothing else."""
_ORDERED = ("readout/", "diffusion/")
"""Only the order of all triples counts."""
_SUPPORT_POOL = InOrder(7)
_TRIPLES = InOrder(14)


def keepsake(folder: Path, keeping: Keeping) -> Keepsake:
    """Draws, and scores of the paper's critics, of a user's own, and of all judges.

    The temperature study is left behind. So are rows and actions that were drawn and that nothing
    is measured of: the data set and the settings give them again.
    """
    scores = folder / "scores"
    homes = [(task, task.parent.name == SEEN) for task in _tasks(scores, "", SEEN)]
    critics = {c for task, _ in homes for c in stored_columns(task) if not _judges(c)}
    keeping.require(sorted(critics), (SUPPORT, SEEN_NEGATIVES))
    files: list[KeptFile] = []
    gone = [_name(folder, task, c) for task in _tasks(scores, SWEEP) for c in stored_columns(task)]
    for task, seen in homes:
        found = stored_columns(task)
        kept = [c for c in found if _judges(c) or keeping.wants(c)]
        files += _task(folder, task, kept, keeping, seen=seen)
        gone += [_name(folder, task, c) for c in found if c not in kept]
    return Keepsake(files, gone)


def _tasks(scores: Path, *beside: str) -> list[Path]:
    """The tasks' folders in the study's own folder of scores, or those beside them."""
    return [task for name in beside for task in task_folders(scores / name)]


def _task(
    folder: Path, task: Path, kept: list[str], keeping: Keeping, *, seen: bool
) -> Iterator[KeptFile]:
    """The files of one task, on trajectories that were held out or seen."""
    without = () if SUPPORT in keeping.also else (SUPPORT,)
    if seen and SEEN_NEGATIVES not in keeping.also:
        without = (*without, "negatives")
    for column in (DRAWS, *([PROPOSALS] if (task / f"{PROPOSALS}.npz").is_file() else []), *kept):
        path = task / f"{column}.npz"
        arrays = Stored.read(path).arrays
        ways = {name: way for name in arrays if (way := _way(name)) is not None}
        left_out = {name for name in arrays if _needless(column, name, without, seen=seen)}
        exact = column == DRAWS or _judges(column)
        yield KeptFile(_name(folder, task, column), {} if exact else ways, frozenset(left_out))
    for judge in columns(task / VALUES):
        yield KeptFile(_name(folder, task / VALUES, judge))


def _judges(column: str) -> bool:
    """Whether the column is the independent value's, which is averaged and not only ordered."""
    return split_seed(column)[0] == ORACLE


def _way(array: str) -> Way | None:
    """How an array of a column is kept; None for one whose values count."""
    if array in _BESIDE_SCORES:
        return Among("scores")
    if array.startswith(_ORDERED):
        return _TRIPLES
    return _SUPPORT_POOL if array.startswith(f"{SUPPORT}/") else None


def _needless(column: str, array: str, without: tuple[str, ...], *, seen: bool) -> bool:
    """Whether nothing that is kept is measured of an array."""
    if column == PROPOSALS:
        return True
    if column == DRAWS:
        no_negatives = array == "negative_rows" and "negatives" in without
        return no_negatives or array.startswith(f"{SUPPORT}/")
    if _judges(column):
        return array != "scores" and not array.startswith("diffusion/")
    if seen and (array == "next_scores" or array.startswith("readout/")):
        return True
    return array.partition("/")[0] in without


def _name(folder: Path, home: Path, column: str) -> str:
    return (home / f"{column}.npz").relative_to(folder).as_posix()
