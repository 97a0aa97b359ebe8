"""Pages that quote stored results are what the command makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toptail.io.json_files import write_json
from toptail_paper.claims import pages
from toptail_paper.claims.pages import EVERY, LEDGERS, PAGES, PARTS, ROOT, ledger, made

RESULTS = ROOT / "paper" / "results"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_is_made(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert made(text) == text, "run python -m toptail_paper.claims.pages"


def test_every_part_stands_on_a_page_and_every_ledger_is_counted() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"<!-- made: (\w+) -->", texts)) == set(PARTS)
    stored = {path.parent.relative_to(RESULTS).as_posix() for path in RESULTS.rglob("claims.json")}
    assert set(LEDGERS) == {name for name in stored if not name.startswith("variants/")}


def test_a_variant_stands_beside_the_main_settings_where_they_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in EVERY:
        entries = [{**entry, "depends_on": None} for entry in ledger(name)[:3]]
        changed = [{**entry, "status": "seen"} for entry in entries]
        changed[0]["status"] = "not seen"
        entries[0]["status"], entries[1]["status"] = "depends", "seen"
        entries[2]["status"] = "seen"
        write_json(tmp_path / name / "claims.json", entries)
        write_json(tmp_path / "variants" / "old walkers" / name / "claims.json", changed)
    monkeypatch.setattr(pages, "published", lambda: tmp_path)
    lines = pages.variants().splitlines()
    assert lines[0] == "| entry | ledger | main settings | old walkers |"
    assert len(lines) == 2 + len(EVERY)
    assert all(line.endswith("| depends | not seen |") for line in lines[2:])


def test_a_part_is_replaced_between_its_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PARTS", {"x": lambda: "new\n"})
    page = "a\n<!-- made: x -->\nold\nlines\n<!-- end: x -->\nb\n"
    assert made(page) == "a\n<!-- made: x -->\nnew\n<!-- end: x -->\nb\n"
