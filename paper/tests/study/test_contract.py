"""The contract of a study: found by name, run to the page, and whole without the paper."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.light import run_light
from tests.pages import assert_asks_for_nothing
from tests.report.test_browser import browser as browser
from toptail.errors import InputError
from toptail.io.json_files import write_json
from toptail.progress import Tick, no_tick
from toptail_paper.claims import annotate
from toptail_paper.study.page import Part, Texts
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


@pytest.fixture(scope="module", params=FOLDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored folder as the study alone leaves it."""
    path = tmp_path_factory.mktemp("stored") / name
    kept = ("*.npz", "*.parquet", "claims.*", "figures", "report.html")
    shutil.copytree(FOLDERS[name], path, ignore=shutil.ignore_patterns(*kept))
    for file in (path / "tables").glob("*.json"):
        write_json(file, json.loads(file.read_text(encoding="utf-8")) | {"paper": {}})
    return path


def test_a_page_is_whole_without_the_paper_and_beside_it(name: str, folder: Path) -> None:
    study = studies()[name]
    alone = words(study.page(folder).read_text(encoding="utf-8"))
    for absent in (*ABOUT_PAPER, "⟦"):
        assert absent not in alone, absent
    claims = annotate(folder, name)
    page = study.page(folder).read_text(encoding="utf-8")
    beside = words(page)
    for present in ("Of the paper's statements", "▲", "paper 0."):
        assert present in beside
    assert not re.search(r"\bnan\b|\bNone\b|\binf\b|⟦", beside)
    assert_asks_for_nothing(page, 6_000_000)
    anchors = re.findall(r' id="([^"]+)"', page)
    twice = {anchor for anchor in anchors if anchors.count(anchor) > 1}
    assert twice == ({"seen"} if name == "semantics" else set())  # a table and its figure
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)
    results = study.read(folder)
    specs = [spec for spec in study.content if isinstance(spec, TableSpec) and spec.part]
    shown = [s.anchor for s in specs if results.tables.get(s.stored, {}).get("rows")]
    assert len(shown) > 2
    shown += [drawing.name for drawing in study.drawings(results)]
    shown += [f"claim-{claim['id']}" for claim in claims]
    assert set(shown) <= set(anchors)


def test_a_folder_that_is_none_or_damaged_is_named(name: str, folder: Path, tmp_path: Path) -> None:
    missing = rf"config\.json is missing.*toptail-paper study {name}|no tables of a {name} study"
    with pytest.raises(InputError, match=missing):
        studies()[name].page(tmp_path)
    shutil.copytree(folder, tmp_path / "run")
    broken = next(iter(sorted((tmp_path / "run" / "tables").glob("*.json"))))
    broken.write_text("{")
    with pytest.raises(InputError, match=f"{broken.name} cannot be read"):
        studies()[name].page(tmp_path / "run")


@pytest.mark.slow
@pytest.mark.usefixtures("rendered_figures")
def test_in_a_browser_nothing_overflows_and_every_picture_loads(
    name: str, folder: Path, browser: Browser
) -> None:
    report = studies()[name].page(folder)
    trouble: list[str] = []
    requests: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(report.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.images.length") > 1
    assert page.evaluate("[...document.images].filter(i => !i.naturalWidth).length") == 0
    page.close()
    assert trouble == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


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


def test_studies_are_found_and_shown_without_the_packages_that_train() -> None:
    code = """
import sys
from pathlib import Path
from toptail_paper.study.study import studies
for name, folder in zip(sys.argv[1::2], sys.argv[2::2]):
    study = studies()[name]
    assert study.texts(study.read(Path(folder))).summary
    study.drawings(study.read(Path(folder)))[0].draw()
print(*studies(), 'matplotlib.pyplot' in sys.modules)
"""
    given = [str(part) for pair in FOLDERS.items() for part in pair]
    assert set(run_light(code, *given).split()) == {*FOLDERS, "False"}


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
