"""What the readers of logs share: lines of JSON, and tables that say which columns are what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from toptail.errors import InputError
from toptail.io.guard import refusing
from toptail.pools.columns import METADATA


def lines_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object of a file of JSON Lines, with the number of its line."""
    with pa.input_stream(str(path)) as file:
        text = file.read().decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        with refusing(path, f"cannot be read in line {number}"):
            content = json.loads(line)
        if not isinstance(content, dict):
            raise InputError(f"{path}: line {number} is no JSON object; expected one on each line.")
        yield number, content


def stated(
    columns: Mapping[str, Sequence[Any]], scores: Sequence[str], values: Sequence[str]
) -> pa.Table:
    """A table that says which of its columns are scores and which are values."""
    table = pa.table(dict(columns))
    roles = json.dumps({"scores": list(scores), "values": list(values)})
    return table.replace_schema_metadata({METADATA: roles})


def labels(texts: Sequence[str]) -> list[str]:
    """The candidates' texts as labels, or their numbers where two are the same."""
    short = [text.strip()[:80] for text in texts]
    return short if len(set(short)) == len(short) else [str(i) for i in range(len(short))]
