"""Outputs of RewardBench: the scores of its second version, and the pairs of its first.

The second version (``run_v2.py``, ``eval-set-scores/MODEL.json``) writes one object of columns:
lists of scores, of which the first ``num_correct`` are of right answers. The first one writes a
line per prompt with the scores of the chosen and of the rejected answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from toptail.errors import InputError
from toptail.io.logs.rows import lines_of
from toptail.io.roles import with_roles

_COLUMNS: Final = ("id", "scores", "num_correct", "subset")
_PAIR: Final = ("scores_chosen", "scores_rejected")


def is_scores(data: object) -> bool:
    """Whether a JSON value holds the scores of RewardBench 2."""
    return isinstance(data, dict) and all(isinstance(data.get(c), list) for c in _COLUMNS)


def is_pair(line: object) -> bool:
    """Whether a line is one of RewardBench 1."""
    return isinstance(line, dict) and all(name in line for name in _PAIR)


def scores_table(data: Mapping[str, Any], where: str) -> pa.Table:
    """A query per prompt, a candidate per answer, with the subset as its group."""
    lengths = {name: len(data[name]) for name in _COLUMNS}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(f"{where}: the columns are not of one length ({sizes}).")
    model = str(data.get("model") or "score")
    columns: dict[str, list[Any]] = {n: [] for n in ("query", "group", "candidate")}
    columns |= {model: [], "correct": []}
    for row, (name, scores, right, subset) in enumerate(
        zip(*(data[column] for column in _COLUMNS), strict=True), start=1
    ):
        answers = _numbers(scores, f"{where}: row {row}")
        count = _count(right, len(answers), f"{where}: row {row}")
        columns["query"] += [f"{subset}/{name}"] * len(answers)
        columns["group"] += [str(subset)] * len(answers)
        columns["candidate"] += range(len(answers))
        columns[model] += answers
        columns["correct"] += [i < count for i in range(len(answers))]
    return with_roles(pa.table(columns), [model], ["correct"])


def _numbers(scores: Any, where: str) -> list[float]:
    """Scores as numbers; each may be wrapped in a list."""
    flat = [s[0] if isinstance(s, list) and len(s) == 1 else s for s in _list(scores, where)]
    if not all(isinstance(s, int | float) for s in flat):
        raise InputError(f"{where} has scores that are no numbers.")
    return [float(s) for s in flat]


def _list(scores: Any, where: str) -> list[Any]:
    if not isinstance(scores, list) or not scores:
        raise InputError(f"{where} has no list of scores.")
    return scores


def _count(right: Any, most: int, where: str) -> int:
    """The number of right answers, which may be written as 2.0."""
    if not isinstance(right, int | float) or right != int(right) or not 0 <= right <= most:
        raise InputError(f"{where} has {str(right)[:40]} right answers of {most}.")
    return int(right)


def read_pairs(path: Path) -> pa.Table:
    """A query per prompt, with two candidates: chosen, which is right, and rejected."""
    columns: dict[str, list[Any]] = {n: [] for n in ("query", "candidate", "score", "correct")}
    for number, line in lines_of(path):
        if not is_pair(line):
            raise InputError(f"{path}: line {number} has no {' and '.join(_PAIR)}.")
        columns["query"] += [str(number)] * 2
        columns["candidate"] += ["chosen", "rejected"]
        where = f"{path}: line {number}"
        columns["score"] += _numbers([line[name] for name in _PAIR], where)
        columns["correct"] += [True, False]
    return with_roles(pa.table(columns), ["score"], ["correct"])
