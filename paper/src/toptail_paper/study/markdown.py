"""Markdown of pages that are partly made of stored results.

A page has a part between two markers, ``<!-- made: NAME -->`` and ``<!-- end: NAME -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cleaned = ([text.replace("|", "\\|").replace("\n", " ") for text in row] for row in rows)
    lines = [f"| {' | '.join(row)} |" for row in cleaned]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) + "\n"


def with_parts(page: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """A page with its parts made anew, by their names."""

    def part(match: re.Match[str]) -> str:
        return f"{match[1]}\n{parts[match[2]]()}{match[3]}"

    return re.sub(r"(<!-- made: (\w+) -->)\n.*?(<!-- end: \2 -->)", part, page, flags=re.DOTALL)
