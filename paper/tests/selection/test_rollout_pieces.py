"""Rollouts as jobs are the rollouts of the stage."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from paper.tests.selection.test_rollouts_stage import CONFIG, DATA, begin, runs, scorer
from toptail_paper.cli import main
from toptail_paper.selection.rollout_judge import RolloutStage
from toptail_paper.selection.rollouts import RolloutSetup
from toptail_paper.selection.stages import Selection, score_critics

__all__ = ["runs"]


def test_parts_in_any_order_are_the_stage(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies = [Selection.at(tmp_path / name, CONFIG, runs) for name in ("whole", "parts")]
    for study in studies:
        queries, pools = begin(study)
        score_critics(study, queries, pools, [scorer("right@42", 1.0), scorer("left", -1.0)])
    whole, parts = (RolloutStage(study, queries, pools, DATA.val) for study in studies)
    whole.audit(most_per_group=2)
    for part in (2, 0, 1, 0):  # one of them twice, as after a lost worker
        parts.part(part, 3)

    def again(*_: object) -> None:
        raise AssertionError("something is rolled out twice")

    monkeypatch.setattr(RolloutSetup, "judge", again)
    parts.part(1, 3)
    parts.audit(most_per_group=2)
    first, second = (study.folder for study in studies)
    assert first.rollouts.read_bytes() == second.rollouts.read_bytes()
    assert not (second.path / "rollouts.parts").exists()


def test_the_study_lists_its_rollouts_between_scores_and_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study", "selection", "--task", "pointmaze-medium-navigate-v0", "--per-group", "20"]
    words += ["--runs", str(tmp_path), "--out", str(tmp_path / "out"), "--list-jobs"]
    words += ["--stage", "scores,rollouts,tables"]
    monkeypatch.setattr(sys, "argv", ["toptail", *words])
    assert main() == 0
    scores, *parts, stage, _tables = map(json.loads, capsys.readouterr().out.splitlines())
    assert [line["name"].split(" of ")[0] for line in parts] == [
        *("rollouts 1", "rollouts 2", "rollouts 3")
    ]
    assert all(line["needs"] == [scores["id"]] for line in parts)
    assert len({line["id"] for line in parts}) == 3
    assert stage["needs"] == [scores["id"], *(line["id"] for line in parts)]
    sys.argv.extend(("--planned-rollouts", "9"))
    assert main() == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
