"""The page, Markdown and LaTeX of a choice among selectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.flat import choose
from tests.report.conftest import HOSTILE, SPECIALS
from tests.report.test_browser import browser as browser
from toptail.report.choice import (
    choice_html,
    choice_latex,
    choice_lines,
    choice_markdown,
    choice_small,
    choice_tables,
    shown_curves,
)
from toptail.report.figures import frontier_figure
from toptail.report.page import LONG
from toptail.results import ChoiceResult


@pytest.fixture(scope="module")
def choice() -> dict[str, Any]:
    """A choice with every part, of columns whose names may hold anything."""
    rng = np.random.default_rng(0)
    value = rng.random((60, 8))
    scores = {
        f"{HOSTILE}": value + rng.normal(0, 0.2, value.shape),
        SPECIALS: rng.normal(size=value.shape),
    }
    result = choose({**scores, "value": value}, abstain=0.1, cost=0.001, resamples=100, repeats=2)
    return result.to_dict()


def test_every_table_is_rendered_everywhere(choice: dict[str, Any]) -> None:
    tables = choice_tables(choice)
    assert [table.name for table in tables] == ["worth", "families", "chosen", "coverage", "curves"]
    page, text, latex = choice_html(choice), choice_markdown(choice), choice_latex(choice)
    for table in tables:
        assert f'id="{table.name}"' in page
        assert rf"\label{{tab:choice-{table.name}}}" in latex
        assert f"## {table.title}" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == sum(len(table.rows) + 2 for table in tables)


def test_names_mean_themselves(choice: dict[str, Any]) -> None:
    page = choice_html(choice)
    assert HOSTILE not in page
    assert page.count("<script") == 2
    assert "default-src 'none'" in page
    text = choice_markdown(choice)
    assert text.count("<img src=x") == text.count("\\<img src=x") > 0


def test_the_page_shows_each_number_once(choice: dict[str, Any]) -> None:
    """Curves as a chart, their numbers folded; KL is a figure of the folder alone."""
    page = choice_html(choice)
    assert page.count('<figure class="chart') == 1
    assert "<img" not in page
    assert len(frontier_figure(choice).axes) == 2
    tables = choice_tables(choice)
    assert len(tables[1].rows) > LONG  # the best ones are a table of their own
    assert page.count('<th scope="row"') == sum(len(table.rows) for table in tables)


def test_the_terminal_has_whole_names(choice: dict[str, Any]) -> None:
    long = {**choice["families"][0], "family": f"pessimistic({'all scorers, ' * 8}standardized)"}
    said = choice_lines({**choice, "families": [long, *choice["families"][1:]]})
    assert any(line.strip().startswith(long["family"]) for line in said)


def test_a_notebook_shows_the_deployed_and_the_plain_curve(choice: dict[str, Any]) -> None:
    html = choice_small(choice)
    assert html.count("<svg") == 2
    assert HOSTILE not in html
    assert html.count("<tr>") == 1 + len(choice_tables(choice)[0].rows)


def test_curves_shown_are_few_and_hold_a_plain_best(choice: dict[str, Any]) -> None:
    names = [each["family"] for each in shown_curves(choice, 3)]
    assert len(names) == 3
    assert any(name.startswith("best(") for name in names)


@pytest.mark.usefixtures("rendered_figures")
def test_files_are_written_and_the_same_each_time(choice: dict[str, Any], tmp_path: Path) -> None:
    for name in "ab":
        ChoiceResult(choice).write(tmp_path / name)
    for file in ("choice.md", "choice.tex", "report.html", "figures/frontier.svg"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a" / "figures" / "frontier.png").stat().st_size > 5_000


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.usefixtures("rendered_figures")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(
    browser: Any,
    choice: dict[str, Any],
    width: int,
    tmp_path: Path,
) -> None:
    path = tmp_path / "report.html"
    path.write_text(choice_html(choice), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(path.as_uri())
    expect(page.locator("#chart-value .series")).to_have_count(len(shown_curves(choice)))
    expect(page.get_by_text(choice["answer"][:40]).first).to_be_visible()
    expect(page.locator("#chart-value .plot svg")).to_be_in_viewport(ratio=1)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert trouble == []
    page.close()
