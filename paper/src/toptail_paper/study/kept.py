"""Keeping a study: what of its folder ships, and what stays as it is where scores did not ship.

A kept folder holds everything that a reader sees, and scores that were made small, from which
tables, curves and claims can be made again. `MANIFEST` says what was kept and what was not. Where
columns or arrays were left behind, whatever was made of them stays as it was kept.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toptail.errors import InputError, option
from toptail.io.files import entries, staged_folder
from toptail.io.json_files import read_json, read_json_if_exists, write_json
from toptail.lab.critics.registry import CRITICS, split_readout
from toptail.lab.store.compact import Way
from toptail.lab.store.units import KEPT, Stored
from toptail.lab.tasks.names import PAPER_TASKS
from toptail.pools.columns import split_seed

MANIFEST = "kept.json"
"""File of a kept folder: its other files with their sizes and arrays, and what was left behind."""

LARGEST = 5_000_000
"""Bytes of a file, at most: larger ones do not belong into a repository."""

TWO_HEADS = "two-heads"
"""What is kept when asked for: scores of critics with two heads."""

_RESULTS = (
    *("*.json", "*.md", "tables/*.json", "deployment/*.json"),
    *("audit*/audit.json", "audit*/audit.md", "picks.parquet", "queries.npz"),
)
"""Files that ship as they are, whichever study made them; audits without the space for eyes."""

_TASKS = tuple(PAPER_TASKS)


@dataclass(frozen=True)
class Keeping:
    """What is asked for."""

    critics: tuple[str, ...] = ()
    """Critics whose scores are kept; unless given, the paper's four and a user's own."""

    also: tuple[str, ...] = ()
    """What else is kept, though it takes much room: `TWO_HEADS`, and what a study names."""

    def wants(self, column: str) -> bool:
        """Whether a column is kept."""
        critic = critic_of(column)
        if self.critics:
            return critic in self.critics
        groups = ("main", "two_head") if TWO_HEADS in self.also else ("main",)
        return critic not in CRITICS or CRITICS[critic].group in groups

    def require(self, columns: Iterable[str], also: Sequence[str] = ()) -> None:
        """Refuse to keep what is not there; ``also`` is what the study names."""
        for what, asked, known in (
            ("critics", self.critics, tuple(dict.fromkeys(map(critic_of, columns)))),
            ("also", self.also, (TWO_HEADS, *also)),
        ):
            for name in asked:
                if name not in known:
                    there = ", ".join(known) or "nothing"
                    raise InputError(f"{option(what, name)}: there is {there} to be kept.")


def critic_of(column: str) -> str:
    """The critic of a column: ``two_head_joint`` of ``two_head_joint.f_cos@42``."""
    return split_readout(split_seed(column)[0])[0]


@dataclass(frozen=True)
class KeptFile:
    """One file of arrays, and how it is kept."""

    name: str
    """Where it lies in the study's folder, and in the kept one."""
    ways: Mapping[str, Way] = field(default_factory=dict)
    """Arrays that are not kept exactly."""
    left_out: frozenset[str] = frozenset()
    """Arrays that are not kept."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What its header says beside."""


@dataclass(frozen=True)
class Keepsake:
    """What a study keeps beside the files that ship as they are."""

    files: Sequence[KeptFile] = ()
    """Files of arrays."""
    left_behind: Sequence[str] = ()
    """Names of the files that are not kept, though results were made of them."""

    @classmethod
    def none(cls, folder: Path, keeping: Keeping) -> Keepsake:
        """Of a study that keeps no arrays."""
        del folder
        keeping.require(())
        return cls()


def keep(
    folder: Path, out: Path, keepsake: Keepsake, *, largest: int = LARGEST, replace: bool = False
) -> dict[str, int]:
    """Write a kept folder, whole or not at all; returns the size of each of its files.

    A folder that was kept before, and has anything that this one would not have, is refused unless
    it is to be replaced.
    """
    if folder.resolve() == out.resolve():
        raise InputError(f"{out} is the study's own folder: name another one to keep it in.")
    source = read_json_if_exists(folder / MANIFEST) or {}
    before = read_json_if_exists(out / MANIFEST) or {"files": {}}
    gone: set[str] = set()
    with staged_folder(out, gone) as stage:
        written = _written(folder, stage, keepsake)
        for name, entry in written.items():
            if entry["bytes"] > largest:
                raise InputError(
                    f"{name} would have {entry['bytes'] / 1e6:.1f} MB, and a kept file has at most "
                    f"{largest / 1e6:.1f}: keep less of it, or fewer candidates."
                )
        if not replace:
            _require_more(out, stage, before["files"], written)
        behind = {*source.get("left_behind", ()), *keepsake.left_behind} - written.keys()
        write_json(stage / MANIFEST, {"files": written, "left_behind": sorted(behind)})
        gone |= before["files"].keys() - written.keys() if replace else set()
    return {name: entry["bytes"] for name, entry in written.items()}


def _written(folder: Path, stage: Path, keepsake: Keepsake) -> dict[str, dict[str, Any]]:
    """Write everything but the manifest; returns what that says of each file."""
    written: dict[str, dict[str, Any]] = {}
    found = {path for pattern in _RESULTS for path in entries(folder, pattern)}
    for path in sorted(found - {folder / MANIFEST}):
        name = path.relative_to(folder).as_posix()
        written[name] = {"bytes": _shipped(path, stage / name)}
    for file in keepsake.files:
        source, target = folder / file.name, stage / file.name
        stored = Stored.read(source)
        arrays = sorted(stored.arrays.keys() - file.left_out)
        if KEPT in stored.header and len(arrays) == len(stored.arrays):
            _copied(source, target)
        else:
            stored.keep(target, file.ways, file.left_out, **file.more)
        written[file.name] = {"bytes": target.stat().st_size, "arrays": arrays}
    if not written:
        raise InputError(f"{folder} holds no results of a study: there is nothing to keep.")
    return written


def _shipped(source: Path, target: Path) -> int:
    """Copy a result; of an audit the numbers, since its indentation is half of it."""
    if source.name != "audit.json":
        return _copied(source, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(read_json(source), separators=(",", ":")) + "\n")
    return target.stat().st_size


def _copied(source: Path, target: Path) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return target.stat().st_size


def _require_more(
    out: Path, stage: Path, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Refuse to lose a file of arrays, an array, or a row of a table that were kept before."""
    lost = [
        name if name not in after else f"'{array}' of {name}"
        for name, entry in before.items()
        for array in entry.get("arrays", ())
        if array not in after.get(name, {}).get("arrays", ())
    ]
    for path in entries(out / "tables", "*.json"):
        new = stage / "tables" / path.name
        rows = read_json(new)["rows"] if new.is_file() else {}
        lost += [
            f"'{row}' on {task} of tables/{path.name}"
            for task, row_cells in read_json(path)["rows"].items()
            for row in row_cells
            if row not in rows.get(task, {})
        ]
    if lost:
        raise InputError(
            f"{out} has more than would be kept now, first of all {lost[0]}: keep that, too, keep "
            f"this elsewhere, or ask for it with {option('replace')}."
        )


def is_kept(folder: Path) -> bool:
    """Whether a folder was kept, so that its scores are not all, or not exactly, the study's."""
    return (folder / MANIFEST).is_file()


def columns_left_behind(scores: Path) -> list[str]:
    """The columns of a folder of scores, directly in a kept one, whose files it does not have."""
    manifest = read_json_if_exists(scores.parent / MANIFEST) or {"left_behind": []}
    gone = [scores.parent / name for name in manifest["left_behind"]]
    return [path.stem for path in gone if path.parent == scores]


def with_kept_tables(
    folder: Path, tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Tables, and in a kept folder whatever those that it has say beyond them."""
    found = {name: dict(table) for name, table in tables.items()}
    if not is_kept(folder):
        return found
    before = {path.stem: read_json(path) for path in entries(folder / "tables", "*.json")}
    return {name: merged(before.get(name, {}), found.get(name, {})) for name in {**before, **found}}


def with_kept(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a JSON file of a kept folder, and what the one there says beyond it."""
    before = read_json_if_exists(path) if is_kept(path.parent) else None
    return merged(before or {}, content)


def merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What was made anew, and from before what could not be made.

    A cell or curve is made of all its seeds or not at all. A list of names that has become shorter
    names what was made anew alone, so that the longer one stays.
    """
    result = dict(after)
    for name, old in before.items():
        new = after.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            fewer = "seeds" in old and old["seeds"].keys() - new.get("seeds", {}).keys()
            result[name] = old if fewer else new if "seeds" in old else merged(old, new)
        elif isinstance(old, list) and isinstance(new, list):
            shorter = len(new) < len(old) and all(isinstance(x, str) and x in old for x in new)
            result[name] = old if shorter else new
        elif name not in after:
            result[name] = old
    return {name: result[name] for name in sorted(dict.fromkeys((*before, *after)), key=_place)}


def _place(name: str) -> int:
    """Where a name stands among others: the paper's tasks in its order, whichever came first."""
    return _TASKS.index(name) if name in _TASKS else len(_TASKS)
