"""Where the stage files of a task's folder lie, and what their arrays must look like.

A stage file is a `Stored`. A stage whose file is there and fits is not repeated; one that does
not fit is refused (see `toptail_paper.study.store`).
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.json_files import read_json, write_json
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.training.runs import differences, digest
from toptail_paper.selection.config import SelectionConfig
from toptail_paper.study.store import columns, plain

REFERENCE = "reference"
"""The judge of every candidate that every task has: the ensemble of reference critics."""


class SelectionFolder:
    """Where each stage of one task's study lies, in ``OUT/TASK``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.declared = path / "declared.json"
        """The criteria that were fixed before anything was scored."""
        self.queries = path / "queries.npz"
        """The frozen queries (`toptail.lab.tasks.queries`)."""
        self.pools = path / "pools.npz"
        """The candidates and their labels of local support."""
        self.rollouts = path / "rollouts.npz"
        """The returns of the simulator's rollouts, which the behaviour model continues."""
        self.rollouts_expert = path / "rollouts_expert.npz"
        """The returns of rollouts which a policy that reaches goals continues."""

    def values(self, judge: str) -> Path:
        return self.path / "values" / f"{judge}.npz"

    def scores(self, column: str) -> Path:
        """One scorer's scores of every candidate; ``raw@42`` is seed 42 of ``raw``."""
        return self.path / "scores" / f"{column}.npz"

    def norms(self, column: str) -> Path:
        """The norm of phi of every candidate, for a scorer that has one."""
        return self.path / "norms" / f"{column}.npz"

    def normed(self) -> dict[str, Path]:
        """The stored norms by column; scorers without embeddings have none."""
        return columns(self.path / "norms")

    def columns(self) -> dict[str, Path]:
        return columns(self.path / "scores")

    def judges(self) -> dict[str, Path]:
        return columns(self.path / "values")

    def forget(self) -> None:
        """Remove the declaration with the queries and candidates that it is about."""
        for path in (self.declared, self.queries, self.pools):
            path.unlink(missing_ok=True)

    def scored(self) -> list[Path]:
        """The files that exist and could not have been made before something was scored."""
        rollouts = [path for path in (self.rollouts, self.rollouts_expert) if path.is_file()]
        return [*self.columns().values(), *self.judges().values(), *rollouts]


def check_shape(path: Path, name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array that has another shape (-1: any length) or a number that is not finite."""
    same = array.ndim == len(shape)
    if not same or any(b not in (-1, a) for a, b in zip(array.shape, shape, strict=True)):
        wanted = ", ".join("any" if n == -1 else str(n) for n in shape)
        raise InputError(f"{path}: '{name}' has the shape {array.shape}, expected ({wanted}).")
    if not np.isfinite(array).all():
        at = [int(i) for i in np.argwhere(~np.isfinite(array))[0]]
        raise InputError(f"{path}: '{name}' is not finite at {at}; every entry must be a number.")


_FORMAT = "toptail-declared-1"

CRITERIA = ("prespecified_group", "resolvability", "spearman")
"""What decides whether the reference ensemble may judge."""


def declaration(config: SelectionConfig, queries: FrozenQueries) -> dict[str, Any]:
    """What ``declared.json`` holds for a study, without its hash."""
    reference, rollouts = asdict(config.reference), asdict(config.rollouts)
    return plain(
        {
            "format": _FORMAT,
            "task": config.task,
            "query_sha256": queries.sha256,
            "groups": queries.config.groups(),
            **{name: reference.pop(name) for name in CRITERIA},
            "e_min": rollouts.pop("e_min"),
            "reference": reference,
            "rollouts": rollouts,
            "support": {**asdict(config.support), "threshold": config.support.rule()},
            "pools": {**asdict(config.pools), "sampler": "ancestral"},
            "k": config.ks,
            "seeds": config.seeds,
            "inclusion": (
                "a task enters through the reference ensemble, the simulator's rollouts, or both; "
                "a task that passes neither is reported as excluded"
            ),
        }
    )


def declare(
    folder: SelectionFolder, config: SelectionConfig, queries: FrozenQueries
) -> dict[str, Any]:
    """Write ``declared.json``, or check that an existing one declares the same.

    Nothing may have been scored without it. Returns the declaration with its ``hash``.
    """
    if folder.declared.is_file():
        return require_declared(folder, config, queries)
    scored = folder.scored()
    if scored:
        raise InputError(
            f"{scored[0]} was there before {folder.declared}: criteria are declared before "
            "anything is scored, so declare in a folder without scores, values and rollouts."
        )
    content = declaration(config, queries)
    content["hash"] = digest(content)
    write_json(folder.declared, content)
    return content


def require_declared(
    folder: SelectionFolder, config: SelectionConfig, queries: FrozenQueries
) -> dict[str, Any]:
    """Read ``declared.json`` if it says what the study is about to do; refuse it otherwise."""
    content = read_declared(folder)
    stated = {name: entry for name, entry in content.items() if name != "hash"}
    changed = differences(stated, declaration(config, queries))
    if changed:
        raise InputError(
            f"{folder.declared} declares other criteria than those asked for (first the declared "
            f"one): {'; '.join(changed)}. Nothing is scored against changed criteria: use the "
            f"declared ones, or declare anew {_where(folder)}."
        )
    return content


def _where(folder: SelectionFolder) -> str:
    return f"in another {option('out')}" if folder.scored() else f"with {option('declare')}"


def read_declared(folder: SelectionFolder) -> dict[str, Any]:
    """Read ``declared.json``, and refuse one that was changed after it was written."""
    path = folder.declared
    if not path.is_file():
        raise InputError(
            f"{path} does not exist: declare the criteria first, with {option('declare')}."
        )
    content = read_json(path)
    sound = isinstance(content, dict) and content.get("format") == _FORMAT
    if not sound or content.get("hash") != digest(
        {name: entry for name, entry in content.items() if name != "hash"}
    ):
        raise InputError(
            f"{path} is not a declaration, or was changed after it was written (its hash does not "
            "fit): put back the file that was declared, or declare anew in another "
            f"{option('out')}."
        )
    declared: dict[str, Any] = content
    return declared
