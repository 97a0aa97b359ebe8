"""Markdown of pages that are partly made of stored results.

A page has a part between two markers, ``<!-- made: NAME -->`` and ``<!-- end: NAME -->``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cleaned = ([text.replace("|", "\\|").replace("\n", " ") for text in row] for row in rows)
    lines = [f"| {' | '.join(row)} |" for row in cleaned]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) + "\n"


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph in lines of a page; all but the first are indented."""
    return textwrap.fill(text, 118, subsequent_indent=indent, break_long_words=False) + "\n"


def with_parts(page: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """A page with its parts made anew, by their names."""

    def part(match: re.Match[str]) -> str:
        return f"{match[1]}\n{parts[match[2]]()}{match[3]}"

    return re.sub(r"(<!-- made: (\w+) -->)\n.*?(<!-- end: \2 -->)", part, page, flags=re.DOTALL)
