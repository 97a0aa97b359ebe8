"""Markdown that is written by hand has lines of at most 120 characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST = 120
WRITTEN = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "paper/README.md"),
    *("docs/**/*.md", "paper/docs/**/*.md", "examples/**/*.md"),
)


def pages() -> list[str]:
    found = (path for pattern in WRITTEN for path in ROOT.glob(pattern))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def too_long(lines: Iterable[str]) -> Iterator[str]:
    """Long lines of prose: not those of code, of tables, of images, or of one word, as a link."""
    in_code = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        fence = text.startswith("```")
        in_code ^= fence
        code = in_code or fence or line.startswith("    ")
        whole = text.startswith(("|", "![")) or " " not in text.lstrip("-*> ")
        if len(line) > LONGEST and not code and not whole:
            yield f"line {number} has {len(line)} characters: {text[:60]}..."


def test_the_pages_are_found() -> None:
    assert {"README.md", "docs/index.md", "paper/docs/selection.md"} <= set(pages())


@pytest.mark.parametrize("page", pages())
def test_lines_of_prose_are_short(page: str) -> None:
    assert list(too_long((ROOT / page).read_text(encoding="utf-8").splitlines())) == []


def test_what_may_be_long() -> None:
    long = "word " * 30
    assert len(list(too_long([long, f"- {long}", f"> {long}"]))) == 3
    fine = ["```", long, "```", f"| {long} |", f"![{long}](a.png)", f"    {long}", "- " + "x" * 130]
    assert list(too_long(fine)) == []
