"""Which columns of a table are scores, values and further columns, as its metadata records it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from toptail.errors import InputError

METADATA: Final = b"toptail"
"""Key of the table's metadata that holds the roles, as JSON."""


def roles_text(scores: Iterable[str], values: Iterable[str], further: Iterable[str] = ()) -> str:
    """The roles as they are stored."""
    roles = {"scores": list(scores), "values": list(values), "further": list(further)}
    return json.dumps({role: names for role, names in roles.items() if names or role != "further"})


def with_roles(
    table: pa.Table, scores: Iterable[str], values: Iterable[str], further: Iterable[str] = ()
) -> pa.Table:
    """The table with metadata that name its scores, values and further columns."""
    return table.replace_schema_metadata({METADATA: roles_text(scores, values, further)})


def stored_roles(where: str, text: bytes | str | None) -> dict[str, list[str]]:
    """The names under ``scores``, ``values`` and ``further``; empty without metadata."""
    if text is None:
        return {}
    try:
        roles = {"further": [], **json.loads(text)}
        if all(isinstance(roles[key], list) for key in ("scores", "values", "further")):
            return {key: [str(n) for n in roles[key]] for key in ("scores", "values", "further")}
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{where}: the 'toptail' metadata of the file is damaged; write it again.")
