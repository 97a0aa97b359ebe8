"""Which columns of a table are scores and which are values, as its metadata records it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from toptail.errors import InputError

METADATA: Final = b"toptail"
"""Key of the table's metadata that holds the roles, as JSON."""


def roles_text(scores: Sequence[str], values: Sequence[str]) -> str:
    """The roles as they are stored."""
    return json.dumps({"scores": list(scores), "values": list(values)})


def with_roles(table: pa.Table, scores: Sequence[str], values: Sequence[str]) -> pa.Table:
    """The table with metadata that say which of its columns are scores and which are values."""
    return table.replace_schema_metadata({METADATA: roles_text(scores, values)})


def stored_roles(where: str, text: bytes | str | None) -> dict[str, list[str]]:
    """The names under ``scores`` and ``values``; empty without metadata."""
    if text is None:
        return {}
    try:
        roles = json.loads(text)
        if all(isinstance(roles[key], list) for key in ("scores", "values")):
            return {key: [str(name) for name in roles[key]] for key in ("scores", "values")}
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{where}: the 'toptail' metadata of the file is damaged; write it again.")
