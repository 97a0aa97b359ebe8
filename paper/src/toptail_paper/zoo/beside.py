"""Rows of a leaderboard that no check has: further scores of the candidates that were checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.files import staged_folder
from toptail.io.json_files import read_json, write_json
from toptail.lab.tasks.queries import load_queries
from toptail.provenance import commit
from toptail_paper.zoo.answers import TDQ
from toptail_paper.zoo.leaderboard import EVERY
from toptail_paper.zoo.scores import SOURCES

Score = Callable[[Any, Any, Any], Any]
"""(states, actions, goals) ``[n, ...]`` -> scores ``[n]``."""


def checked_folder(out: Path, task: str) -> Path:
    """The check of all critics of a run of the zoo, or that of TD-Q."""
    folders = [out / "check" / task / name for name in (EVERY, TDQ)]
    found = next((each for each in folders if (each / "check.json").is_file()), None)
    if found is None:
        raise InputError(f"{folders[0]} has no check of TD-Q: run 'toptail-paper zoo' first.")
    return found


def write_beside(out: Path, task: str, name: str, scores: Mapping[str, Score]) -> Path:
    """Score the candidates of a check by each column's function, as ``OUT/check/TASK/NAME``.

    The folder is one that the leaderboard reads: the same candidates and values, with the further
    columns, and no verdict of its own.
    """
    checked = checked_folder(out, task)
    queries, check = load_queries(checked / "queries.npz"), read_json(checked / "check.json")
    home = out / "check" / task / name
    with staged_folder(home) as stage:
        for source in SOURCES:
            actions = read_arrays(checked / source / "pools.npz")["actions"]
            count, size = actions.shape[:2]
            states, goals = (np.repeat(x, size, axis=0) for x in (queries.states, queries.goals))
            rows = states, actions.reshape(count * size, -1), goals
            (stage / source).mkdir()
            table = (checked / source / "table.parquet").read_bytes()
            (stage / source / "table.parquet").write_bytes(table)
            found = {
                f"scores/{column}": np.asarray(score(*rows), np.float32).reshape(count, size)
                for column, score in scores.items()
            }
            write_arrays(stage / source / "pools.npz", {"actions": actions, **found})
        (stage / "queries.npz").write_bytes((checked / "queries.npz").read_bytes())
        content = {"record": {"commit": commit()}, "settings": check["settings"], "scorers": {}}
        write_json(stage / "check.json", content)
    return home
