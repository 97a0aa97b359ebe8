"""Logs of other tools, read as tables of scored candidates. The content of a file says its tool.

Each reader returns a long table with the columns ``query`` and ``candidate``. Where the log says
which columns are scores and which are values, the table's metadata does, too
(:mod:`toptail.io.roles`). Otherwise column names decide, as in any other table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from toptail.io.logs.huggingface import data_files, is_data_set, read_data_set
from toptail.io.logs.inspect_ai import EVAL, is_inspect, read_eval, samples_table
from toptail.io.logs.lm_eval import is_sample, read_samples
from toptail.io.logs.rewardbench import is_pair, is_scores, read_pairs, scores_table


def is_log(path: Path) -> bool:
    """Whether a path is a log by its name: an ``.eval`` file, or the folder of a data set."""
    return is_data_set(path) or (path.suffix.lower() == EVAL and path.is_file())


def read_log(path: Path) -> pa.Table:
    """Read a path for which :func:`is_log` is true."""
    return read_data_set(path) if path.is_dir() else read_eval(path)


def log_files(path: Path) -> list[Path]:
    """The files of a log."""
    return data_files(path) if path.is_dir() else [path]


def log_of_json(data: Any, where: str) -> pa.Table | None:
    """The table of a JSON log of Inspect or of RewardBench 2's scores; None for any other JSON."""
    if is_inspect(data):
        return samples_table(data["samples"] or (), where)
    return scores_table(data, where) if is_scores(data) else None


def log_of_lines(path: Path) -> pa.Table | None:
    """The table of a log in JSON Lines, known by its first line; None for any other file."""
    with pa.input_stream(str(path)) as file:  # unpacks by the name's ending
        head = file.read(1 << 22).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    try:
        first = json.loads(head)
    except ValueError:
        return None  # of no line, or of one that the usual reader complains about
    if is_sample(first):
        return read_samples(path)
    return read_pairs(path) if is_pair(first) else None
