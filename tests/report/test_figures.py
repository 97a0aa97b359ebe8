"""Figures: deterministic, complete, and without global state."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from toptail.report.figures import (
    best_of_k_figure,
    draw,
    gain_figure,
    save_figures,
    spread,
)


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.slow
@pytest.mark.usefixtures("rendered_figures")
def test_svg_is_the_same_every_time(audit: dict[str, Any], tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        save_figures(audit, folder)
    for path in first.glob("*.svg"):
        assert path.read_bytes() == (second / path.name).read_bytes()
        assert b"<dc:date>" not in path.read_bytes()


def test_best_of_k_shows_every_curve_and_where_search_hurts(audit: dict[str, Any]) -> None:
    figure = best_of_k_figure(audit)
    (axes,) = figure.axes
    curves = [list(line.get_ydata()) for line in axes.lines]  # type: ignore[arg-type]
    for scorer in audit["scorers"].values():
        assert scorer["value"] in curves
    assert len(axes.collections) == 5  # one band each
    assert {"hurts from K = 8", "oracle", "random", "5 cursed"} <= set(labels(figure))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "4", "8", "16"]


def test_gains_are_drawn_first_with_what_the_verdicts_ask(audit: dict[str, Any]) -> None:
    figure = gain_figure(audit)
    (axes,) = figure.axes
    assert axes.get_ylabel() == draw(audit).axes[0].get_ylabel()  # the first by default
    lines = [list(line.get_ydata()) for line in axes.lines]  # type: ignore[arg-type]
    for scorer in audit["scorers"].values():
        assert scorer["gain"]["value"] in lines
    assert lines[:3] == [[0.0, 0.0], [-0.02, -0.02], [-0.1, -0.1]]
    assert {"random pick", "−δ = −2%", "−ρ = −10%", "hurts from K = 8"} <= set(labels(figure))
    rings = [list(line.get_xdata()) for line in axes.lines if line.get_markersize() == 9]  # type: ignore[arg-type]
    assert rings == [[4.0], [4.0], [1.0]]  # two are safe up to 16, one up to 2
    bands = [c for c in axes.collections if c.get_paths()]
    assert len(bands) == 5


def test_thirty_scorers_have_room_for_their_names_and_no_bands(thirty: dict[str, Any]) -> None:
    figure = gain_figure(thirty)
    (axes,) = figure.axes
    assert len(axes.collections) == 0
    assert "interval" not in axes.get_title(loc="left")
    figure.canvas.draw()
    names = [t for t in axes.texts if isinstance(t, Annotation) and "hurts" not in t.get_text()]
    assert len(names) == 33
    heights = sorted(axes.transData.transform((0, name.xyann[1]))[1] for name in names)
    assert min(b - a for a, b in pairwise(heights)) >= 8 * figure.dpi / 72  # set in 8 points


@pytest.mark.usefixtures("rendered_figures")
def test_names_with_dollars_are_not_formulas(audit: dict[str, Any], tmp_path: Path) -> None:
    audit["scorers"]["$broken_{formula$"] = audit["scorers"].pop("noisy")
    audit["value"] = "$x^$"
    assert "2 $broken_{formula$" in labels(best_of_k_figure(audit))
    save_figures(audit, tmp_path)  # a formula this broken would raise here


def test_no_global_state() -> None:
    code = "import toptail.report, sys; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(
    heights=st.lists(st.floats(0, 100), min_size=1, max_size=20).map(sorted),
    gap=st.floats(0.1, 5),
)
def test_labels_keep_their_distance_inside_the_axis(heights: list[float], gap: float) -> None:
    moved = spread(heights, gap, 0, 100)  # 20 labels with a gap of 5 just fit
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(moved))
    assert moved[0] >= -1e-9
    assert moved[-1] <= 100 + 1e-9


def test_marks_between_the_shown_k_stand_on_the_line(audit: dict[str, Any]) -> None:
    """Verdicts look at more K than are shown; a mark must not vanish for that."""
    audit["thresholds"]["rho"] = 0.025
    verdict = audit["scorers"]["cursed"]["verdict"]
    verdict["k_harm"] = 7
    assert 7 not in audit["k"]
    figure = gain_figure(audit)
    assert "−ρ = −2.5%" in labels(figure)
    (mark,) = (
        text
        for text in figure.axes[0].texts
        if isinstance(text, Annotation) and text.get_text() == "hurts from K = 7"
    )
    before, after = (audit["scorers"]["cursed"]["gain"]["value"][at] for at in (2, 3))
    assert mark.xy == pytest.approx((np.log2(7), before + (np.log2(7) - 2) * (after - before)))
