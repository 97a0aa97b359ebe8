"""The figures of the semantics study show the stored numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes

from paper.tests.semantics.made_up import (
    AUC,
    MAIN,
    TAU,
    K,
    curve,
    temperature,
    write_folder,
)
from toptail_paper.semantics.figures import (
    calibration_figure,
    curse_figure,
    drawings,
    rankers_figure,
    retrieval_figure,
    temperature_caption,
    temperature_figure,
)
from toptail_paper.semantics.results import SemanticsResults, read_semantics
from toptail_paper.semantics.specs import TemperatureSetting, setting_name
from toptail_paper.study.figures import svg_and_png

SCORERS = (*MAIN, "mine")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> SemanticsResults:
    path = tmp_path_factory.mktemp("semantics") / "run"
    return read_semantics(write_folder(path, scorers=SCORERS))


def lines(panel: Axes) -> list[list[float]]:
    """The heights of every line of a panel that has more than one point."""
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in panel.lines]
    return [y.tolist() for y in drawn if y.size > 2]


def points(panel: Axes) -> set[tuple[float, float]]:
    """Every single point of a panel."""
    found = set()
    for line in panel.lines:
        x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
        if y.size == 1:
            found.add((round(float(x[0]), 6), round(float(y[0]), 6)))
    return found


def test_every_figure_of_the_paper_is_drawn(study: SemanticsResults) -> None:
    found = {drawing.name: "".join(drawing.labels[:1]) for drawing in drawings(study)}
    assert found == {
        "calibration": "fig:calibration",
        "good_rankers": "fig:good-rankers",
        "retrieval": "tab:retrieval",
        "seen": "",
        "readout": "tab:readout",
        "ogbench_curse": "fig:ogbench-curse",
        "temperature_sweep": "",
    }


@pytest.mark.usefixtures("rendered_figures")
def test_the_same_files_give_the_same_bytes_whatever_the_process_has_set(
    study: SemanticsResults,
) -> None:
    drawing = next(d for d in drawings(study) if d.name == "good_rankers")
    once = svg_and_png(drawing)
    with mpl.rc_context({"font.size": 30}):
        assert svg_and_png(drawing)[0] == once[0]
    assert once[0].startswith(b"<?xml")
    assert once[1][1:4] == b"PNG"


def test_calibration_draws_the_deciles(study: SemanticsResults) -> None:
    panels = calibration_figure(study.curve("deciles")).axes
    assert [panel.get_title(loc="left") or panel.get_title() for panel in panels] == [
        "PointMaze",
        "AntMaze",
    ]
    stored = [study.curve("deciles")["PointMaze"][s]["mean"] for s in SCORERS]
    assert lines(panels[0]) == stored


def test_rankers_draw_both_numbers_and_the_papers(study: SemanticsResults) -> None:
    left, right = rankers_figure(study).axes
    for scorer in SCORERS:
        assert (round(TAU[scorer], 6), AUC[scorer]) in points(left)
    assert (0.266, 0.967) in points(left)
    texts = [text.get_text() for text in left.texts]
    assert texts.count("PM") == texts.count("AM") == len(SCORERS)
    drawn = lines(right)
    assert drawn[0] == pytest.approx(study.curve("profile")["PointMaze"]["tdq"]["mean"])
    x = np.asarray(right.lines[0].get_xdata(), dtype=float)
    assert x[:2].tolist() == [3.0, 8.0]  # the middles of 1..5 and 6..10


def test_the_profile_is_a_mean_over_the_tasks_that_have_one(tmp_path: Path) -> None:
    study = read_semantics(write_folder(tmp_path / "run", play=(), scorers=("raw", "mine")))
    tasks = study.curves["tasks"]
    tasks["AntMaze"]["raw"]["profile"] = curve([None] * 12)
    tasks["PointMaze"]["mine"]["profile"] = curve([1.0] * 12)
    tasks["AntMaze"]["mine"]["profile"] = curve([0.5] * 12)
    _, right = rankers_figure(study).axes
    raw, mine = lines(right)
    assert raw == pytest.approx(tasks["PointMaze"]["raw"]["profile"]["mean"])
    assert mine == [0.75] * 12


def test_best_of_k_draws_value_oracle_random_and_preference(study: SemanticsResults) -> None:
    top, _, bottom, _ = curse_figure(study).axes
    stored = study.curves["tasks"]["PointMaze"]
    assert lines(top) == [*(stored[s]["value"]["mean"] for s in SCORERS), stored["tdq"]["oracle"]]
    assert any(np.array_equal(np.asarray(line.get_ydata()), [0.75, 0.75]) for line in top.lines)
    assert lines(bottom) == [stored[s]["excess_off_support"]["mean"] for s in SCORERS]
    assert np.asarray(top.lines[0].get_xdata()).tolist() == list(K)


def test_retrieval_draws_every_task(study: SemanticsResults) -> None:
    (panel,) = retrieval_figure(study.tables["retrieval"]).axes
    heights = [y for _, y in points(panel)]
    assert heights.count(AUC["raw"]) == 3
    assert heights.count(0.967) == 3
    assert [t.get_text() for t in panel.get_xticklabels()][-1] == "Cube single"


class TestTemperature:
    def test_numbers_lie_on_a_line_and_learned_beside_it(self) -> None:
        rows = temperature(["PointMaze"])
        figure = temperature_figure({"rows": rows, "chosen": 0.1})
        assert len(figure.axes) == 3
        panel = figure.axes[0]
        assert [t.get_text() for t in panel.get_xticklabels()] == ["0.02", "0.1", "1", "learned"]
        assert lines(panel) == [pytest.approx([0.3, 0.2, 0.1])] * 2
        assert {(2.96, 0.0), (3.04, 0.0)} <= points(panel)
        assert len(panel.patches) == 1  # where the choice is marked

    def test_what_is_not_computable_is_left_out(self) -> None:
        rows: dict[str, Any] = temperature(["PointMaze"])
        for cells in rows["PointMaze"].values():
            cells["gap"] = {"mean": None, "std": None, "seeds": {}}
        figure = temperature_figure({"rows": rows})
        assert len(figure.axes) == 2
        assert not figure.axes[0].patches

    def test_names(self) -> None:
        assert TemperatureSetting.of("binary_nce@0.05") == ("binary_nce", 0.05)
        assert setting_name("symmetric_info_nce@learned") == "symmetric InfoNCE, learned"
        assert setting_name("binary_nce@0.05") == "binary NCE, T = 0.05"
        assert "under binary NCE, 0.1." in temperature_caption({"chosen": 0.1})
        assert "Marked" not in temperature_caption({"chosen": None})
