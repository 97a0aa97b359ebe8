"""Figures and page of the controlled study, from stored files alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from paper.tests.controlled.synthetic import MAIN, cell, write_folder
from toptail.errors import InputError
from toptail_paper.claims import annotate
from toptail_paper.commands.study_controlled import StudyControlled
from toptail_paper.controlled.figures import drawings
from toptail_paper.controlled.results import read_controlled
from toptail_paper.controlled.show import reason
from toptail_paper.controlled.specs import TABLES, differences
from toptail_paper.controlled.study import STUDY
from toptail_paper.study.compare import Comparison, comparisons
from toptail_paper.study.naming import setting_text
from toptail_paper.study.show import shown_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with its claims, figures and page."""
    path = write_folder(tmp_path_factory.mktemp("study") / "run")
    annotate(path, "controlled")
    STUDY.page(path)
    return path


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


class TestPage:
    def test_every_part_is_there(self, page: str, folder: Path) -> None:
        for anchor in ("verdicts", "tables", "pictures", "regret", "sweeps", "theory", "claims"):
            assert f'id="{anchor}"' in page
        assert page.index("</header>") < page.index('id="curse"') < page.index('class="about"')
        for drawing in drawings(read_controlled(folder)):
            assert f'id="{drawing.name}"' in page
        for claim in json.loads((folder / "claims.json").read_text()):
            assert f'id="claim-{claim["id"]}"' in page

    def test_a_run_with_only_a_main_table_has_a_page_too(self, tmp_path: Path) -> None:
        path = write_folder(tmp_path / "run", everything=False)
        entries = annotate(path, "controlled")
        assert 0 < len(entries) < 12
        assert "Not decided by this run" in (path / "claims.md").read_text()
        text = STUDY.page(path).read_text()
        assert 'id="tab:toy-support"' in text
        assert 'id="theory"' not in text
        assert 'id="sweeps"' not in text
        assert not (path / "figures").exists()


class TestFigures:
    def test_every_figure_of_the_paper_is_drawn(self, folder: Path) -> None:
        labels = {x for drawing in drawings(read_controlled(folder)) for x in drawing.labels}
        figures = {label for label in STUDY.labels if label.startswith("fig:")}
        assert len(figures) == 4
        assert {*figures, "tab:r-sweep"} <= labels

    def test_the_curves_are_the_stored_ones(self, folder: Path) -> None:
        study = read_controlled(folder)
        drawing = next(d for d in drawings(study) if d.name == "curse")
        *scores, value = drawing.draw().axes
        assert study.curves is not None
        assert len(scores) == len(MAIN)
        for panel, critic in zip(scores, MAIN, strict=True):
            drawn = np.asarray(panel.lines[-1].get_ydata(), dtype=float)
            stored = study.curves.of(critic, "selected_score").mean(axis=0)
            np.testing.assert_allclose(drawn, stored)
        heights = [np.asarray(line.get_ydata(), dtype=float) for line in value.lines]
        assert any(np.array_equal(h, study.curves.oracle) for h in heights)

    def test_setting_text(self) -> None:
        assert [setting_text(x) for x in (30000.0, 0.25, "learned", "binary_nce")] == [
            "30,000",
            "0.25",
            "learned",
            "binary NCE",
        ]


class TestComparison:
    @staticmethod
    def pair(ours: float, paper: float, ours_std: float, paper_std: float | None) -> Comparison:
        reported = {"mean": paper} | ({} if paper_std is None else {"std": paper_std})
        measured = {"mean": ours, "std": ours_std, "seeds": dict.fromkeys("12345", ours)}
        return Comparison("controlled", "raw", "regret", measured, reported)

    @pytest.mark.parametrize("paper_std", [0.05, 0.25, None])
    @pytest.mark.parametrize("ours_std", [0.05, 0.25])
    @pytest.mark.parametrize("paper", [1.05, 1.2, 1.4, 1.6])
    def test_intervals_of_both_that_do_not_overlap(
        self, paper: float, ours_std: float, paper_std: float | None
    ) -> None:
        """Against SciPy: five seeds here, three in the paper, or its number alone."""
        _, high = t.interval(0.95, 4, 1.0, ours_std / 5**0.5)
        low = paper if paper_std is None else t.interval(0.95, 2, paper, paper_std / 3**0.5)[0]
        assert self.pair(1.0, paper, ours_std, paper_std).differs() == (high < low - 0.0005)
        assert self.pair(-1.0, -paper, ours_std, paper_std).differs() == (high < low - 0.0005)

    def test_an_interval_that_reaches_the_papers_number_is_no_difference(self) -> None:
        """The TD-Q of PointMaze: 0.635 [0.579, 0.684] beside 0.627 ± 0.002."""
        pair = self.pair(0.635, 0.627, 0.001, 0.002)
        shown = {**pair.ours, "low": 0.579, "high": 0.684}
        assert not replace(pair, ours=shown).differs()
        assert replace(pair, ours={**shown, "low": 0.633}).differs()

    def test_the_reported_cell_says_how_many_seeds_and_at_most_which_spread(self) -> None:
        pair = self.pair(1.0, 1.05, 0.001, 0.02)
        assert not pair.differs()  # half a width of 0.0497 over three seeds
        assert replace(pair, paper={**pair.paper, "seeds": 5}).differs()  # 0.0248 over five
        assert not replace(pair, paper={"mean": 1.05, "std_at_most": 0.02}).differs()

    def test_the_papers_rounding_is_no_difference(self) -> None:
        assert not self.pair(0.0683, 0.068, 0.0, None).differs()

    def test_a_difference_is_marked_and_explained(self, tmp_path: Path) -> None:
        path = write_folder(tmp_path / "run")
        table = json.loads((path / "tables" / "toy-support.json").read_text())
        table["rows"]["controlled"]["raw"]["regret"] = cell(0.3)
        (path / "tables" / "toy-support.json").write_text(json.dumps(table))
        study = read_controlled(path)
        (shown,) = shown_tables(TABLES["toy-support"], study)
        rows = {row[0].text: row for row in shown.rows}
        assert rows["Raw bilinear"][1].text == "▼ 0.300 ± 0.010"
        assert rows["Cosine"][1].text == "0.640 ± 0.020"
        ((what, text),) = differences(study)[0].rows
        assert what == "Raw bilinear, regret tab:toy-support"
        beside, _, why = text.partition(". ")
        assert beside.endswith("difference −0.678")
        # The made-up sweeps hold raw's regret at 0.98, where the paper has 0.978.
        assert why.startswith("A setting the paper does not state: steps 1,000 gives")

    def test_seeds_that_can_explain_a_difference_are_named(self, folder: Path) -> None:
        study = read_controlled(folder)

        def why(ours: float, paper: float, ours_std: float, paper_std: float) -> str:
            return reason(self.pair(ours, paper, ours_std, paper_std), "Regret", study)

        assert "Seeds alone can do this" in why(0.85, 0.98, 0.11, 0.10)
        assert "Seeds alone" not in why(0.3, 0.98, 0.11, 0.10)
        assert "The paper's seeds disagree" in why(1.09, 0.69, 0.02, 0.36)
        assert "Our seeds disagree" in why(0.3, 0.98, 0.36, 0.02)

    def test_without_sweeps_the_reason_says_what_is_unsaid(self, tmp_path: Path) -> None:
        study = read_controlled(write_folder(tmp_path / "run", everything=False))
        pair = self.pair(0.3, 0.98, 0.11, None)
        assert "The paper states neither the training length" in reason(pair, "Regret", study)

    def test_a_cell_on_which_the_paper_disagrees_with_itself_says_so(self, tmp_path: Path) -> None:
        path = write_folder(tmp_path / "run")
        table = json.loads((path / "tables" / "r-sweep.json").read_text())
        table["paper"]["controlled@R=0.40"]["cosine"]["regret"]["mean"] = 0.927
        (path / "tables" / "r-sweep.json").write_text(json.dumps(table))
        study = read_controlled(path)
        pairs = {(c.critic, c.metric): c for c in comparisons(study.tables["toy-support"])}
        assert "two numbers for this cell, 0.644 and 0.927" in reason(
            pairs["cosine", "regret"], "Regret", study
        )
        assert "two numbers" not in reason(pairs["raw", "regret"], "Regret", study)

    def test_every_table_of_the_paper_is_rendered(self, folder: Path) -> None:
        expected = {label for label in STUDY.labels if label.startswith("tab:")}
        tables = STUDY.tables(folder, expected)
        assert {table.name for table in tables} == expected
        assert len(expected) == 3
        radii = next(t for t in tables if t.name == "tab:r-sweep")
        assert len(radii.rows) == 4
        assert [c.label for c in radii.columns][1:3] == [
            "R = 0.25: regret",
            "R = 0.25: off support",
        ]

    @pytest.mark.parametrize(
        ("label", "title"),
        [
            ("theory", "The theory, checked by running it"),
            ("decomposition", "Where the regret comes from"),
            ("noise", "Transition noise"),
        ],
    )
    def test_what_the_paper_has_no_table_of_has_a_label_too(
        self, folder: Path, label: str, title: str
    ) -> None:
        assert label in STUDY.labels
        assert [table.title for table in STUDY.tables(folder, [label])] == [title]
        drawn = [path.name for path in STUDY.figures(folder, label)]
        assert drawn == (["decomposition"] if label == "decomposition" else [])


class TestInput:
    def test_a_light_install_is_told_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("toptail.commands.flags.find_spec", lambda _name: None)
        with pytest.raises(InputError, match=r"needs jax, .*pip install '\.\[train\]'"):
            StudyControlled().run()
