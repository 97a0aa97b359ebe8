"""What the readers of logs share: lines of JSON, and labels of candidates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from toptail.errors import InputError, refusing


def lines_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file, with the numbers of their lines."""
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


def labels(texts: Sequence[str]) -> list[str]:
    """The candidates' texts, shortened, as labels; their numbers where two texts are the same."""
    short = [text.strip()[:80] for text in texts]
    return short if len(set(short)) == len(short) else [str(i) for i in range(len(short))]
