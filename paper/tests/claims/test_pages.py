"""Pages that quote stored results are what the command makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toptail_paper.claims import pages
from toptail_paper.claims.pages import LEDGERS, PAGES, PARTS, ROOT, made

RESULTS = ROOT / "paper" / "results"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_is_made(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert made(text) == text, "run python -m toptail_paper.claims.pages"


def test_every_part_stands_on_a_page_and_every_ledger_is_counted() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"<!-- made: (\w+) -->", texts)) == set(PARTS)
    stored = {path.parent.relative_to(RESULTS).as_posix() for path in RESULTS.rglob("claims.json")}
    assert set(LEDGERS) == stored


def test_a_part_is_replaced_between_its_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PARTS", {"x": lambda: "new\n"})
    page = "a\n<!-- made: x -->\nold\nlines\n<!-- end: x -->\nb\n"
    assert made(page) == "a\n<!-- made: x -->\nnew\n<!-- end: x -->\nb\n"
