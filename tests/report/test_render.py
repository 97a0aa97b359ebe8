"""Everything that ``render`` writes, for full audits and for audits with gaps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from toptail.report.html import render_html
from toptail.report.latex import render_latex
from toptail.report.markdown import render_markdown
from toptail.report.render import render
from toptail.report.summary import summary_lines

FIGURES = {"pools": ("gain", "best_of_k", "deciles"), "picks": ("differences",)}


def visible(audit: dict[str, Any]) -> str:
    """All text of all renderings; of the page, without scripts and styles."""
    html = re.sub(r"<(script|style).*?</\1>", "", render_html(audit), flags=re.S)
    parts = [html, render_markdown(audit), render_latex(audit), *summary_lines(audit)]
    return "\n".join(parts)


@pytest.mark.parametrize("name", ["audit", "picks", "hostile", "all_null"])
def test_render_writes_the_promised_files(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    audit = request.getfixturevalue(name)
    figures = [
        f"figures/{figure}.{kind}" for figure in FIGURES[audit["kind"]] for kind in ("svg", "png")
    ]
    expected = [tmp_path / path for path in ("audit.md", "audit.tex", "report.html", *figures)]
    assert render(audit, tmp_path) == expected
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == sorted(expected)
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
