"""What of a task's folder ships with its results."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from toptail.lab.store.compact import InOrder
from toptail_paper.selection.files import SelectionFolder
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import pools_sha256
from toptail_paper.study.kept import Keeping, Keepsake, KeptFile

ACTIONS: Final = "actions"
"""What is kept when asked for: the candidates themselves."""

_SCORES = InOrder(8, exact_last=1)
"""Within a pool the order decides, and the highest score, which is exact; the logged action is an
anchor beside the pool."""
_DISTANCE = InOrder(8)
"""Local support is kept as it was decided; of the distances their order within a pool counts."""


def keepsake(folder: Path, keeping: Keeping) -> Keepsake:
    """Scores of the paper's critics and of a user's own, all judges, and pools.

    Values are exact: members of an ensemble are averaged, which keeps no order.
    """
    files = SelectionFolder(folder)
    columns = files.columns()
    keeping.require(columns, (ACTIONS,))
    kept = [column for column in columns if keeping.wants(column)]
    found = [_pools(files, keeping)] if files.pools.is_file() else []
    found += [KeptFile(_name(files, path)) for path in files.judges().values()]
    found += [KeptFile(_name(files, columns[c]), {"scores": _SCORES}) for c in kept]
    rolled_out = [path for path in (files.rollouts, files.planned) if path.is_file()]
    found += [KeptFile(_name(files, path)) for path in rolled_out]
    gone = [_name(files, path) for column, path in columns.items() if column not in kept]
    return Keepsake(found, gone)


def _pools(files: SelectionFolder, keeping: Keeping) -> KeptFile:
    pools = CandidatePools.read(files.pools)
    left_out = frozenset() if ACTIONS in keeping.also else frozenset({"actions"})
    more = {"candidates": pools_sha256(pools)}
    return KeptFile(_name(files, files.pools), {"support_distance": _DISTANCE}, left_out, more)


def _name(files: SelectionFolder, path: Path) -> str:
    return path.relative_to(files.path).as_posix()
