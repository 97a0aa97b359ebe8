"""The page in a real browser: headless Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from toptail.report.html import render_html

pytestmark = pytest.mark.slow

Open = Callable[..., Page]

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing; the page must be tested before a submission.")
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open an audit's page; afterwards nothing may have gone wrong in it."""
    context = browser.new_context()
    context.set_default_timeout(5000)
    trouble: list[str] = []
    requests: list[str] = []

    def open_page(audit: dict[str, Any], width: int = 1280) -> Page:
        path = tmp_path / "report.html"
        path.write_text(render_html(audit), encoding="utf-8")
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
        page.on("requestfailed", lambda request: trouble.append(f"failed: {request.url}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        # Not wait_for_function: it evaluates a string, which the page's own policy forbids.
        page.wait_for_selector(".plot svg, .plot .empty", state="attached")
        return page

    yield open_page
    context.close()
    assert trouble == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


@pytest.mark.smoke
def test_verdicts_are_visible(open_page: Open, audit: dict[str, Any]) -> None:
    page = open_page(audit)
    board = page.locator("table.board")
    statuses = ["safe", "safe", "inconclusive", "no gain", "unsafe"]
    assert board.locator("tbody .badge").all_inner_texts() == statuses
    expect(board.locator("svg.interval")).to_have_count(5)
    cards = page.locator(".card")
    for scorer in audit["scorers"].values():
        reason = cards.get_by_text(scorer["verdict"]["reason"], exact=True).first
        expect(reason).to_be_visible()
    expect(page.locator(".card .icon").first).to_be_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_exceptions_are_on_the_first_screen(open_page: Open, divided: Any, width: int) -> None:
    page = open_page(divided, width=width)
    said = page.locator("header .remark")
    expect(said).to_contain_text("but inconclusive in distance = far")
    expect(said).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["alone", "audit", "fifteen"])
def test_curves_are_on_the_first_screen(
    open_page: Open, name: str, width: int, request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name), width=width)
    expect(page.locator("header")).to_contain_text("not about AI safety")
    expect(page.locator("figure").first).to_have_id("chart-best-of-k")
    expect(page.locator("#chart-best-of-k .plot svg")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("name", ["audit", "thirty"])
def test_a_name_opens_its_card(open_page: Open, name: str, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(name))
    facts = page.locator("#scorer-5")
    expect(facts).to_be_hidden()
    page.locator("table.board a").nth(4).click()
    expect(facts).to_be_visible()
    expect(facts).to_be_in_viewport()


@pytest.mark.parametrize("name", ["alone", "compared", "thirty", "hostile"])
def test_nothing_is_wider_than_a_sheet(
    open_page: Open, name: str, request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.set_viewport_size({"width": 690, "height": 900})  # A4 between its margins
    assert page.evaluate("document.documentElement.scrollWidth") == 690


def test_a_legend_button_hides_the_curve_and_its_band(open_page: Open, audit: Any) -> None:
    page = open_page(audit)
    chart = page.locator("#chart-best-of-k")
    button = chart.get_by_role("button", name="5 cursed")
    curve = chart.locator(".series[data-id=s4] .curve")
    band = chart.locator(".series[data-id=s4] .band")
    expect(curve).to_be_visible()
    expect(band).to_be_visible()
    expect(chart.locator("text.harm")).to_have_count(1)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(curve).to_have_count(0)
    expect(band).to_have_count(0)
    expect(chart.locator("text.harm")).to_have_count(0)
    expect(chart.locator(".series")).to_have_count(4)
    # The other charts follow.
    expect(page.locator("#chart-deciles .series[data-id=s4]")).to_have_count(0)
    button.click()
    expect(curve).to_be_visible()
    chart.get_by_role("button", name="none").click()
    expect(chart.locator(".series")).to_have_count(0)
    chart.get_by_role("button", name="oracle").click()
    expect(chart.locator(".reference.oracle")).to_have_count(1)


@pytest.mark.smoke
def test_hovering_shows_numbers(open_page: Open, audit: dict[str, Any]) -> None:
    page = open_page(audit)
    chart = page.locator("#chart-best-of-k")
    tip = chart.locator(".tip")
    expect(tip).to_be_hidden()
    chart.locator(".plot").scroll_into_view_if_needed()
    point = chart.locator(".series[data-id=s1] circle").nth(3).bounding_box()
    assert point is not None
    page.mouse.move(point["x"] + 3, point["y"] + 3)
    expect(tip).to_be_visible()
    text = " ".join(tip.inner_text().split())
    assert text.startswith("2 noisy K 8 value 0.523")
    assert "[0.493, 0.553]" in text
    assert "captured 0.47" in text
    page.mouse.move(2, 2)
    expect(tip).to_be_hidden()


def test_keys_walk_along_the_curves_and_are_spoken(open_page: Open, audit: Any) -> None:
    page = open_page(audit)
    chart = page.locator("#chart-best-of-k")
    chart.locator(".plot").focus()
    spoken = chart.locator(".spoken")
    for key, expected in [
        ("ArrowLeft", ("1 perfect", "0.695")),
        ("ArrowLeft", ("1 perfect", "0.650")),
        ("ArrowDown", ("2 noisy", "0.523")),
        ("ArrowRight", ("2 noisy", "0.538")),
    ]:
        page.keyboard.press(key)
        for part in expected:
            expect(spoken).to_contain_text(part)
    page.keyboard.press("Escape")
    expect(chart.locator(".tip")).to_be_hidden()


@pytest.mark.smoke
@pytest.mark.parametrize(
    "name", ["alone", "audit", "compared", "fifteen", "thirty", "picks", "hostile", "all_null"]
)
def test_no_sideways_scroll_on_a_phone(
    open_page: Open, name: str, request: pytest.FixtureRequest
) -> None:
    page = open_page(request.getfixturevalue(name), width=390)
    folded = "document.querySelectorAll('details').forEach(d => d.open = true)"
    page.evaluate(folded)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    overflow = """[...document.querySelectorAll('body *')].filter(
        e => !e.closest('.scroll, svg, .spoken') && e.getBoundingClientRect().right > 390.5
    ).map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(overflow) == []


def test_headings_sort_tables(open_page: Open, audit: dict[str, Any]) -> None:
    page = open_page(audit)
    table = page.locator("table.sortable").first
    tau = table.get_by_role("button", name="τ_b")
    tau.click()
    names = table.locator("tbody th .fit")
    assert names.all_inner_texts() == ["cursed", "constant", "uncertain", "noisy", "perfect"]
    tau.click()
    assert names.all_inner_texts() == ["perfect", "noisy", "uncertain", "constant", "cursed"]
    expect(table.locator("th[aria-sort=descending]")).to_have_count(1)


def test_picks_draw_their_intervals(open_page: Open, picks: dict[str, Any]) -> None:
    page = open_page(picks)
    expect(page.locator("#chart-differences .whisker")).to_have_count(3)
    expect(page.locator("#chart-differences .whisker.open")).to_have_count(1)  # crosses 0
