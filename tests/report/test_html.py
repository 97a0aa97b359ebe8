"""The page as text, and the files of a report; ``test_browser.py`` opens the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from toptail.audit.verdict import STATUSES
from toptail.report.documents import render_latex, render_markdown, summary_lines
from toptail.report.html import MOST_ROWS, render_html
from toptail.report.page import breakable
from toptail.report.text import status_lines
from toptail.results import write_report

HOSTILE = "</script><img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """Collects tags, attributes, and the text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style", "title"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open[-1:] == [tag]:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.words.append(data)


def embedded(html: str) -> Any:
    found = re.search(r'<script type="application/json" id="audit-data">(.*?)</script>', html, re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("name", ["audit", "fifteen", "picks", "hostile", "all_null", "alone"])
def test_page_is_light_and_loads_nothing(name: str, request: pytest.FixtureRequest) -> None:
    html = render_html(request.getfixturevalue(name))
    assert len(html.encode()) < 300_000
    loading = {
        (tag, key, value)
        for tag, attributes in Page(html).tags
        for key, value in attributes.items()
        if key in ("src", "href", "srcset", "data", "action", "poster", "background")
        and not (value or "").startswith("#")
    }
    assert loading == {("link", "href", "data:,")}
    assert not re.search(r"@import|url\(", html)


def test_policy_admits_the_page_s_own_script_and_no_other(hostile: dict[str, Any]) -> None:
    html = render_html(hostile)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', html, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        f"script-src &#39;sha256-{digest}&#39;" in html or f"script-src 'sha256-{digest}'" in html
    )
    assert "default-src 'none'" in html


def test_hostile_names_do_not_become_markup(hostile: dict[str, Any]) -> None:
    html = render_html(hostile)
    page = Page(html)
    assert "img" not in {tag for tag, _ in page.tags}
    assert not {key for _, attributes in page.tags for key in attributes if key.startswith("on")}
    assert html.count("</script>") == 2  # one for the numbers, one for the script
    assert HOSTILE in page.text.replace("</ script>", "</script>")
    assert embedded(html)["scorers"][0]["name"] == HOSTILE


def test_sections_come_in_the_order_of_the_questions(compared: dict[str, Any]) -> None:
    html = render_html(compared)
    anchors = [
        *("<h1>", 'class="tally"', 'class="remark warning">“perfect” is safe', 'id="curves"'),
        *('id="chart-best-of-k"', 'class="about"', 'id="baseline"', 'id="verdicts"'),
        *('class="basis"', 'class="remark warning"><strong>', 'id="gain"', 'id="chart-gain"'),
        *('id="scorers"', 'id="values"', 'id="captured"', 'id="deciles"', 'id="ordering"'),
        *('id="off-support"', 'id="seeds"', 'id="groups"', 'id="group-tests"', 'id="comparisons"'),
        'id="method"',
    ]
    body = html[html.index("<body>") :]
    places = [body.index(anchor) for anchor in anchors]
    assert places == sorted(places)


def test_each_status_means_what_the_rule_says(audit: Any) -> None:
    audit["thresholds"] |= {"delta": 0.03, "rho": 0.25}
    meanings = dict(status_lines(audit))
    assert tuple(meanings) == STATUSES
    assert "δ = 3%" in meanings["unsafe"]
    assert all("ρ = 25%" in text for status, text in meanings.items() if status != "unsafe")
    assert "one-sided 2.5 %" in meanings["safe"]


def test_absent_parts_have_no_section(fifteen: dict[str, Any]) -> None:
    html = render_html(fifteen)
    assert not re.search(r'id="(off-support|seeds|groups|chart-off-support)"', html)
    assert "All 105 rows" in html


def test_every_scorer_has_a_row_that_leads_to_its_card(thirty: dict[str, Any]) -> None:
    html = render_html(thirty)
    targets = re.findall(r'<a class="fit" href="#(.*?)">', html)
    assert targets == [f"scorer-{rank}" for rank in range(1, 31)]
    assert all(html.count(f'id="{target}"') == 1 for target in targets)
    # Cards and what is in them need no script, and are folded.
    assert html.count('<details class="card') == 30
    assert "<summary>All 30 scorers</summary>" in html
    assert not re.search(r'<details class="card[^>]* open', html)


def test_the_card_of_a_single_scorer_is_open(alone: dict[str, Any]) -> None:
    html = render_html(alone)
    assert re.search(r'<details class="card is-safe" open>', html)
    assert 'class="tally"' not in html
    header = html[html.index("<header>") : html.index("</header>")]
    assert "badge is-safe" in header


def test_charts_get_the_audit_s_numbers(audit: dict[str, Any]) -> None:
    data = embedded(render_html(audit))
    assert [scorer["name"] for scorer in data["scorers"]] == [
        *("perfect", "noisy", "uncertain", "constant", "cursed"),
    ]
    cursed = data["scorers"][-1]
    assert cursed["value"] == pytest.approx(audit["scorers"]["cursed"]["value"], rel=1e-5)
    assert cursed["k_harm"] == 8
    assert cursed["gain"]["low"][-1] == pytest.approx(-0.38)
    assert (data["delta"], data["rho"]) == (0.02, 0.1)
    assert data["oracle"] == pytest.approx(audit["oracle"], rel=1e-5)


def test_page_of_picks(picks: dict[str, Any]) -> None:
    html = render_html(picks)
    text = Page(html).text
    assert "Which selector picks better?" in text
    assert "+0.070 [0.050, 0.090]" in text
    assert embedded(html)["comparisons"][2]["difference"] == pytest.approx(-0.06)


def test_a_very_long_table_is_cut_and_says_so(audit: dict[str, Any]) -> None:
    audit["comparisons"] *= MOST_ROWS // 10 + 1
    html = render_html(audit)
    assert "The first 1,000 of 1,010 rows; all are in audit.json." in html
    assert len(html.encode()) < 3_000_000


def test_names_wrap_after_joining_marks_and_stay_escaped() -> None:
    assert breakable("a_b__c.d") == "a_<wbr>b__<wbr>c.<wbr>d"
    assert breakable("<b>_x") == "&lt;b&gt;_<wbr>x"


FIGURES = {"pools": ("gain", "best_of_k", "deciles"), "picks": ("differences",)}


def visible(audit: dict[str, Any]) -> str:
    """All text of all renderings; of the page, without scripts and styles."""
    html = re.sub(r"<(script|style).*?</\1>", "", render_html(audit), flags=re.S)
    parts = [html, render_markdown(audit), render_latex(audit), *summary_lines(audit)]
    return "\n".join(parts)


@pytest.mark.parametrize("name", ["audit", "picks", "hostile", "all_null"])
def test_a_report_has_the_promised_files(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    audit = request.getfixturevalue(name)
    out = tmp_path / "out"
    figures = [
        f"figures/{figure}.{kind}" for figure in FIGURES[audit["kind"]] for kind in ("svg", "png")
    ]
    texts = ("audit.json", "audit.md", "audit.tex", "report.html")
    expected = [out / path for path in (*texts, *figures)]
    assert write_report(audit, out) == out / "report.html"
    assert sorted(p for p in out.rglob("*") if p.is_file()) == sorted(expected)
    assert all(path.stat().st_size > 0 for path in expected)


@pytest.mark.slow
def test_a_missing_number_never_shows_as_nan_or_none(one_null_each: dict[str, Any]) -> None:
    assert len(one_null_each) > 50
    for place, audit in one_null_each.items():
        found = re.search(r"\b(nan|NaN|None|null|inf|Infinity)\b", visible(audit))
        assert found is None, f"{place}: {found}"


def test_nothing_computable_still_renders(all_null: dict[str, Any]) -> None:
    text = visible(all_null)
    assert "not available" in text
    assert "n/a" in text
    assert not re.search(r"\b(nan|NaN|None|inf)\b", text)
