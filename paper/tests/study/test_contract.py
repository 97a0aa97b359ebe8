"""The contract of a study: found by name, run to the page, and whole without the paper."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.light import run_light
from toptail.io.json_files import write_json
from toptail.progress import Tick, no_tick
from toptail_paper.claims import annotate
from toptail_paper.study.compare import where_compared
from toptail_paper.study.page import Part, Texts, study_page
from toptail_paper.study.results import StudyResults, common_parts
from toptail_paper.study.study import Request, Study, studies
from toptail_paper.study.tables import TableSpec, cell

RESULTS = Path(__file__).parents[2] / "results"
FOLDERS = {
    "controlled": RESULTS / "controlled",
    "semantics": RESULTS / "semantics",
    "selection": RESULTS / "selection" / "pointmaze-medium-navigate-v0",
}


ABOUT_PAPER = (
    *("▲", "▼", "paper 0.", "the paper's below", "are the paper's", "the paper's cell"),
    *("No cell differs", "Of the paper's statements"),
)


def words(page: str) -> str:
    """What a reader sees."""
    text = re.sub(r"<style>.*?</style>|data:image/[^\"]+", "", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def read(study: Study, folder: Path) -> str:
    """The words of a page, and below it those of its figures, which take longest to draw."""
    results = study.read(folder)
    page = study_page(study, results, [])
    captions = [
        where_compared(drawing.caption, compared=results.has_paper)
        for drawing in study.drawings(results)
    ]
    return " ".join([words(page), *captions])


@pytest.fixture
def without_paper(tmp_path: Path, name: str) -> Path:
    """A stored folder as the study alone leaves it."""
    path = tmp_path / name
    kept = ("*.npz", "*.parquet", "claims.*", "figures", "report.html")
    shutil.copytree(FOLDERS[name], path, ignore=shutil.ignore_patterns(*kept))
    for file in (path / "tables").glob("*.json"):
        write_json(file, json.loads(file.read_text(encoding="utf-8")) | {"paper": {}})
    return path


@pytest.mark.parametrize("name", FOLDERS)
def test_a_page_without_the_paper_says_nothing_of_its_numbers(
    name: str, without_paper: Path
) -> None:
    study = studies()[name]
    alone = read(study, without_paper)
    for absent in (*ABOUT_PAPER, "⟦"):
        assert absent not in alone, absent
    annotate(without_paper, name)
    beside = read(study, without_paper)
    assert "Of the paper's statements" in beside
    assert "▲" in beside
    assert "paper 0." in beside
    assert "⟦" not in beside


def test_every_stored_table_has_a_spec_that_knows_its_metrics() -> None:
    for name, folder in FOLDERS.items():
        listed = (s for s in studies()[name].content if isinstance(s, TableSpec))
        specs = {spec.name: spec for spec in listed if not spec.of}
        for path in (folder / "tables").glob("*.json"):
            stored = json.loads(path.read_text(encoding="utf-8"))
            specs[path.stem].columns(stored["rows"])
            assert stored["label"] == specs[path.stem].anchor


def test_every_part_of_a_page_is_one_that_the_study_has() -> None:
    for study in studies().values():
        parts = {part.anchor for part in study.parts}
        assert {entry.part for entry in study.content} - {""} <= parts


def test_studies_are_found_and_read_without_the_packages_that_train() -> None:
    code = "from toptail_paper.study.study import studies\nprint(*studies())"
    assert set(run_light(code).split()) == set(FOLDERS)


@dataclass(frozen=True)
class Weather:
    """The configuration of a fourth study."""

    numbers: tuple[float, ...] = (20.0, 22.0)
    """What was measured."""


SPEC = TableSpec("weather", "The weather", "Degrees.", {"warmth": "Warmth"}, part="sky")


def make(request: Request, tick: Tick) -> list[str]:
    tick("measuring", 1.0)
    write_json(request.folder / "numbers.json", list(request.config.numbers))
    return [f"Measured {len(request.config.numbers)} days."]


def write(folder: Path, _: Tick, *, scale: float = 1.0) -> list[str]:
    numbers = json.loads((folder / "numbers.json").read_text())
    rows = {"Here": {"raw": {"warmth": cell({i: scale * x for i, x in enumerate(numbers)})}}}
    write_json(folder / "tables" / "weather.json", SPEC.table("Made up", rows))
    return ["weather"]


FOURTH = Study(
    name="fourth",
    steps=make,
    write=write,
    parts=(Part("sky", "The sky"), Part("sea", "The sea")),
    content=(SPEC,),
    read=lambda folder: StudyResults(**common_parts(folder)),
    drawings=lambda _: [],
    texts=lambda _: Texts("Title", "brand", "Heading", "Lead.", ["Warm."], [("Code", None)]),
)


def test_a_fourth_study_runs_to_its_page(tmp_path: Path) -> None:
    noted: list[tuple[Path, str]] = []
    stages: list[str] = []
    report, sentences = FOURTH.run(
        Request(Weather(), tmp_path, "made up"),
        lambda stage, _: stages.append(stage),
        lambda folder, name: noted.append((folder, name)),
        scale=2.0,
    )
    assert sentences == ["Measured 2 days."]
    assert noted == [(tmp_path, "fourth")]
    assert stages == ["measuring", "writing the report"]
    page = words(report.read_text(encoding="utf-8"))
    assert "42.000 ± 2.828" in page
    assert "The sky" in page
    assert "The sea" not in page  # nothing to show there
    assert FOURTH.labels == ()


def test_a_study_is_whole_without_the_paper(tmp_path: Path) -> None:
    make(Request(Weather((20.0,)), tmp_path, "made up"), no_tick)
    assert "20.000" in words(FOURTH.finish(tmp_path).read_text(encoding="utf-8"))
    (table,) = FOURTH.tables(tmp_path, ["weather"])
    assert table.rows[0][1].text == "20.000"
