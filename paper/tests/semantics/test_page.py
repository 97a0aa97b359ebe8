"""The page of the semantics study, from stored tables alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from paper.tests.semantics.made_up import MAIN, cell, table, write_folder
from toptail.lab.critics.cosine import Cosine
from toptail_paper.semantics.page import (
    memory_lines,
    not_chosen_lines,
    summary,
    temperature_lines,
    trained_lines,
)
from toptail_paper.semantics.results import SemanticsResults, read_semantics
from toptail_paper.semantics.specs import TABLES
from toptail_paper.semantics.study import STUDY
from toptail_paper.study.show import show, shown_notes, shown_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two mazes, one play task, the paper's four critics and a user's."""
    path = write_folder(tmp_path_factory.mktemp("semantics") / "run", scorers=(*MAIN, "mine"))
    assert STUDY.page(path) == path / "report.html"
    return path


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def with_tables(folder: Path, **tables: Any) -> SemanticsResults:
    return replace(read_semantics(folder), tables=tables)


class TestPage:
    def test_text_from_the_files_is_escaped(self, page: str) -> None:
        assert "toptail &lt;made up&gt;" in page
        assert "Statement &lt;1&gt;." in page
        assert "<made up>" not in page

    def test_the_summary_names_the_range_over_tasks(self, folder: Path) -> None:
        tau, auc, regret, by_heart = summary(read_semantics(folder))
        assert "on PointMaze and AntMaze: TD-Q 0.61 to 0.63" in tau
        assert "mine −0.05 to −0.03" in tau
        assert "Cube-single: TD-Q 0.88;" in auc
        assert "Raw bilinear 0.51" in regret
        assert "by heart on Cube-single" in by_heart
        assert "Raw bilinear 0.720 and 0.500" in by_heart
        assert "TD-Q" not in by_heart

    def test_the_summary_says_who_was_measured_where(self, folder: Path) -> None:
        rows = {
            "PointMaze": {"tdq": {"nregret_euclidean": cell(0.1)}, "raw": {}},
            "AntMaze": {"tdq": {"nregret_gamma": cell(0.2)}},
        }
        tau = {"PointMaze": {"raw": {"tau": cell(0.3)}, "tdq": {"tau": cell(0.6)}}}
        tau["AntMaze"] = {"tdq": {"tau": cell(0.7)}}
        study = with_tables(folder, **{"value-oracle": {"rows": rows}, "main": {"rows": tau}})
        order, regret = summary(study)
        assert "on PointMaze and AntMaze: TD-Q 0.60 to 0.70; Raw bilinear 0.30 (PointMaze)" in order
        assert "shortest way on PointMaze: TD-Q 0.10." in regret

    def test_a_small_fall_is_not_called_learned_by_heart(self, folder: Path) -> None:
        stored = read_semantics(folder).tables["seen"]
        assert len(memory_lines(stored)) == 1
        small = {t: {s: cell(0.06) for s in row} for t, row in stored["falls"].items()}
        assert memory_lines({**stored, "falls": small}) == []  # from 0.04 on


class TestTemperature:
    RANGE: ClassVar = {
        "settings": 12,
        "lowest": 0.093,
        "lowest_at": "symmetric_info_nce@1",
        "highest": 0.294,
        "highest_at": "symmetric_info_nce@0.02",
    }

    def test_which_rows_were_trained_at_which_temperature(self) -> None:
        one: dict[str, list[float | str]] = {
            "cosine": [0.05],
            "two_head_joint.f_cos": [0.05],
            "mine": [0.1, "learned"],
        }
        assert trained_lines({"PointMaze": one, "Puzzle": {"cosine": [0.05]}}) == [
            "Trained at temperature 0.05: Cosine on PointMaze and Puzzle.",
            "Trained at temperature 0.1 and learned: mine on PointMaze.",
        ]
        assert trained_lines({"PointMaze": {"two_head_joint.f_cos": [0.05]}}) == [
            "Trained at temperature 0.05: Two heads, joint: f_cos on PointMaze."
        ]

    def test_another_temperature_than_the_chosen_one_is_named(self, folder: Path) -> None:
        at = {"PointMaze": {"cosine": [0.05], "hybrid": [0.1]}, "Puzzle": {"cosine": [0.05]}}
        tables: dict[str, dict[str, Any]] = {
            "retrieval": {"trained_at": at},
            "temperature": {"chosen": 0.1},
        }
        *_, line = temperature_lines(replace(read_semantics(folder), tables=tables))
        assert line == (
            "Not trained at the temperature that the sweep chooses, 0.1 (the highest retrieval AUC "
            "under binary NCE): Cosine on PointMaze and Puzzle."
        )
        mixed: dict[str, dict[str, list[float | str]]] = {"Puzzle": {"cosine": [0.1, "learned"]}}
        assert not_chosen_lines(mixed, 0.1)[0].endswith("binary NCE): Cosine on Puzzle.")
        assert not_chosen_lines({"Puzzle": {"cosine": [0.1]}}, 0.1) == []
        assert not_chosen_lines(mixed, None) == []

    def test_the_default_is_what_the_stored_sweep_chooses(self) -> None:
        stored = Path(__file__).parents[2] / "results" / "semantics" / "tables" / "temperature.json"
        assert json.loads(stored.read_text())["chosen"] == Cosine.temperature

    def test_what_it_decides(self, folder: Path) -> None:
        study = read_semantics(folder)
        ranges = {"sound": self.RANGE, "as_good": self.RANGE | {"settings": 6, "lowest": 0.2}}
        sweep = {"tau_ranges": {"PointMaze": ranges}, "as_good_within": 0.005}
        (line,) = temperature_lines(replace(study, tables={"temperature": sweep}))
        assert "the 12 settings of the sweep that do not collapse" in line
        assert "from 0.093 (symmetric InfoNCE, T = 1) to 0.294 (symmetric InfoNCE" in line
        assert "the 6 whose retrieval AUC is within 0.005 of the best, from 0.200" in line

    def test_a_sweep_that_collapsed_as_a_whole_decides_nothing(self, folder: Path) -> None:
        sweep = {"tau_ranges": {"PointMaze": {"all": self.RANGE, "sound": None, "as_good": None}}}
        assert (
            temperature_lines(replace(read_semantics(folder), tables={"temperature": sweep})) == []
        )


class TestPartialRuns:
    def test_only_manipulation(self, tmp_path: Path) -> None:
        path = write_folder(tmp_path / "run", mazes=(), ledger=False)
        text = STUDY.page(path).read_text()
        assert 'id="tab:retrieval"' in text
        for judge in ("Independent value", "Behaviour models", "Support pools"):
            assert judge not in text
        for absent in ("tab:main", "progress", "search", "claims", "calibration"):
            assert f'id="{absent}"' not in text
        assert [p.name for p in sorted((path / "figures").iterdir())] == [
            "retrieval.png",
            "retrieval.svg",
            "seen.png",
            "seen.svg",
        ]

    def test_one_task_has_no_column_for_the_task(self, tmp_path: Path) -> None:
        path = write_folder(tmp_path / "run", mazes=("PointMaze",), play=(), sweep=False)
        stored = read_semantics(path).tables["retrieval"]
        shown = show(TABLES["retrieval"], stored)
        assert [c.label for c in shown.columns[:2]] == ["Critic", "AUC"]
        assert shown.caption.startswith("PointMaze. ")
        assert 'id="temperature-study"' not in STUDY.page(path).read_text()

    def test_a_folder_without_any_table(self, tmp_path: Path) -> None:
        path = write_folder(tmp_path / "run", mazes=(), play=(), ledger=False)
        (path / "curves.json").unlink()
        text = STUDY.page(path).read_text()
        assert "What does a learned score mean?" in text
        assert "<table" not in text


class TestTables:
    def test_one_metric_has_a_column_per_task(self, folder: Path) -> None:
        shown = show(TABLES["main"], read_semantics(folder).tables["main"])
        assert [c.label for c in shown.columns] == ["Critic", "PointMaze", "AntMaze"]
        assert [row[0].text for row in shown.rows][-1] == "mine"

    def test_several_metrics_have_a_row_per_task_and_critic(self, folder: Path) -> None:
        shown = show(TABLES["bellman"], read_semantics(folder).tables["bellman"])
        assert [c.label for c in shown.columns][:2] == ["Task", "Critic"]
        assert len(shown.rows) == 2 * 5
        assert [cell.text for cell in shown.rows[5][:2]] == ["AntMaze", "TD-Q"]

    def test_notes_call_columns_as_the_reader_sees_them(self) -> None:
        stored = table("bellman", {}, notes=["rmse: the paper's.", "Other: kept.", "No colon."])
        assert shown_notes(TABLES["bellman"], stored) == [
            "RMSE(δ) / std(f): the paper's.",
            "Other: kept.",
            "No colon.",
        ]

    def test_controls_stand_apart_and_a_users_critic_does_not(self, folder: Path) -> None:
        scorers = ("td_bilinear", "raw", "two_head_joint.f_cos", "mine")
        stored = table("main", {"PointMaze": {s: {"tau": cell(0.1)} for s in scorers}})
        first, controls = shown_tables(TABLES["main"], with_tables(folder, main=stored))
        assert [row[0].text for row in first.rows] == ["Raw bilinear", "mine"]
        assert [row[0].text for row in controls.rows] == [
            "TD, bilinear network",
            "Two heads, joint: f_cos",
        ]

    def test_what_every_critic_shares_is_a_note(self, folder: Path) -> None:
        stored = read_semantics(folder).tables["ogbench-curse"]
        labels = [column.label for column in show(TABLES["ogbench-curse"], stored).columns]
        assert not {"Best of K", "Random"} & set(labels)
        best = stored["rows"]["PointMaze"]["tdq"]["oracle"]["mean"]
        assert any(
            f"a mean γ^d of {best:.3f}" in note
            for note in shown_notes(TABLES["ogbench-curse"], stored)
        )
