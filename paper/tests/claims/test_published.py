"""``toptail-paper show``: the paper beside stored results, without running or writing anything."""

from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.light import run_light
from toptail.errors import InputError
from toptail_paper.claims import reported as shipped
from toptail_paper.claims.published import (
    all_cells,
    exhibits,
    find_exhibit,
    measured,
    pairs,
    summary,
    write_cells,
)
from toptail_paper.claims.reported import SHIPPED, WITHOUT_CELLS, cells, labels, published
from toptail_paper.cli import main

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["show", *words]) == 0
    return capsys.readouterr().out


def stamps() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in RESULTS.rglob("*")}


def test_every_table_and_figure_of_the_paper_is_listed_once() -> None:
    assert {each.label for each in exhibits()} == {*labels(), *WITHOUT_CELLS}
    tables = [each.number for each in exhibits() if each.kind == "table"]
    assert tables == [*map(str, range(1, 6)), *(f"S{n}" for n in range(1, 12))]


@pytest.mark.parametrize(
    ("word", "label"),
    [
        ("tab:main", "tab:main"),
        ("2", "tab:main"),
        ("s3", "tab:robustness"),
        ("Table 4", "tab:fixed-query"),
        ("figure S1", "fig:curse"),
    ],
)
def test_one_is_found_by_label_number_and_name(word: str, label: str) -> None:
    assert find_exhibit(word).label == label


def test_another_word_is_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match=r"'9' is no table .* tab:main \(Table 2\)"):
        find_exhibit("9")


def test_the_list_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    before = stamps()
    rows = json.loads(printed(capsys, "--list", "--json"))
    assert [row["label"] for row in rows] == [each.label for each in exhibits()]
    main_row = next(row for row in rows if row["label"] == "tab:main")
    assert main_row["number"] == "Table 2"
    assert main_row["tasks"] == ["PointMaze", "AntMaze", "HumanoidMaze", "AntSoccer"]
    assert "of 16 cells measured" in main_row["status"]
    assert "statements: " in main_row["status"]
    text = printed(capsys, "--list")
    assert all(each.label in text for each in exhibits())
    assert stamps() == before


def test_a_table_shows_paper_here_and_difference(capsys: pytest.CaptureFixture[str]) -> None:
    before = stamps()
    content = json.loads(printed(capsys, "tab:toy-support", "--json"))
    stored = json.loads((RESULTS / "controlled" / "tables" / "toy-support.json").read_text())
    cell = next(c for c in content["cells"] if (c["scorer"], c["metric"]) == ("raw", "regret"))
    ours = stored["rows"]["controlled"]["raw"]["regret"]
    assert cell["here"] == ours
    assert cell["paper"]["mean"] == 0.978
    assert cell["difference"] == ours["mean"] - 0.978
    (run,) = content["runs"]
    assert run["commands"][0].startswith("toptail study controlled")
    assert run["settings"].startswith("steps 3,000, batch size 256, ")
    assert {claim["where"] for claim in content["claims"]} >= {"tab:toy-support"}
    text = printed(capsys, "3")
    for words in ("0.978 ± ", "Paper", "Difference", "Settings: steps 3,000", "Made by: toptail"):
        assert words in text
    assert "Measure it again: toptail-paper study controlled" in text
    assert "where the 95 % intervals of both do not overlap" in " ".join(text.split())
    assert content["claims"][0]["sentence"] in " ".join(text.split())
    assert stamps() == before


def test_a_cell_that_was_not_measured_stands_without_a_number() -> None:
    (found,) = measured("tab:main")
    table = found.tables["main"]
    rows = {task: row for task, row in table["rows"].items() if task != "AntSoccer"}
    short = replace(found, tables={"main": {**table, "rows": rows}})
    found_pairs = pairs("tab:main", [short])
    assert [p.task for p in found_pairs if p.compared is None] == ["AntSoccer"] * 4
    assert all(pair.compared is not None for pair in pairs("tab:main", [found]))


def test_a_figure_has_its_statements(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "fig:curse")
    assert "Figure S1 (fig:curse): Optimizer's curse" in text
    assert "Criterion: " in text


@pytest.mark.parametrize("words", [[], ["tab:main", "--list"]])
def test_one_thing_is_asked_for(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", *words]) == 2
    assert "Name one table or figure" in capsys.readouterr().err


def test_it_works_without_the_packages_that_train() -> None:
    code = "from toptail_paper.cli import main\nprint(main(['show', 'tab:main']))"
    assert run_light(code).split()[-1] == "0"


def test_the_results_ship_inside_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build's own patterns, and the folder that an installed package looks into."""
    build: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = build["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["sources"] == {
        "src/toptail_paper": "toptail_paper",
        "results": f"toptail_paper/{SHIPPED}",
    }
    patterns = [entry.removeprefix("/") for entry in wheel["include"]]
    kept = {p for pattern in patterns if "*" in pattern for p in ROOT.glob(pattern)}
    package = tmp_path / "toptail"
    for path in kept:
        target = package / SHIPPED / path.relative_to(RESULTS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    assert sum(path.stat().st_size for path in kept) < 5_000_000
    exhibits()  # which are read from the real package
    monkeypatch.setattr(shipped, "files", lambda _: package)
    published.cache_clear()
    try:
        assert published() == package / SHIPPED
        for each in exhibits():
            there, here = (measured(each.label, home) for home in (published(), RESULTS))
            assert [x.tables for x in there] == [x.tables for x in here]
            assert [x.claims for x in there] == [x.claims for x in here]
            assert [x.settings for x in there] == [x.settings for x in here]
    finally:
        published.cache_clear()


def test_an_installation_without_results_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "files", lambda _: tmp_path / "lib" / "toptail")
    published.cache_clear()
    try:
        with pytest.raises(InputError, match="has no stored results"):
            published()
    finally:
        published.cache_clear()


def test_every_cell_of_the_paper_is_listed_and_measured() -> None:
    found = all_cells(RESULTS)
    for label in (*labels(), "noise"):
        assert {(p.task, p.scorer, p.metric): p.paper for p in found[label]} == {
            (task, row, metric): cell
            for task, rows in cells(label, {"PointMaze": {}}).items()
            for row, metrics in rows.items()
            for metric, cell in metrics.items()
        }
    for pair in (pair for each in found.values() for pair in each):
        assert pair.compared is not None, pair
    stored = (RESULTS / "cells.md").read_text(encoding="utf-8")
    assert stored.startswith(f"# The paper's numbers, and ours\n\n{summary(found)}.\n")
    assert stored.count("\n| ") - stored.count("| task |") == sum(map(len, found.values()))


def test_a_cell_that_was_not_measured_says_so_on_the_list(tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "controlled", tmp_path / "controlled")
    table = tmp_path / "controlled" / "tables" / "toy-support.json"
    content = json.loads(table.read_text("utf-8"))
    content["rows"]["controlled"]["raw"]["regret"]["mean"] = None
    table.write_text(json.dumps(content), encoding="utf-8")
    assert main(["ledger", "--cells", "--out", str(tmp_path)]) == 0
    missing = [
        pair for each in write_cells(tmp_path).values() for pair in each if not pair.compared
    ]
    assert {p.task for p in missing} >= {"controlled", "PointMaze"}
    text = (tmp_path / "cells.md").read_text("utf-8")
    assert text.count("**not measured**") == len(missing)
    assert "| controlled | raw | regret | 0.978 | **not measured** | – | – |" in text
