"""Rollouts in pieces, by whoever has time, are the rollouts of the stage."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from paper.tests.selection.test_rollouts_stage import CONFIG, DATA, begin, runs, scorer
from toptail_paper.cli import main
from toptail_paper.selection.rollouts import RolloutWorld, make_rollout_piece, make_rollouts
from toptail_paper.selection.stages import Selection, score_critics

__all__ = ["runs"]


def test_pieces_in_any_order_are_the_stage(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, pieces = (Selection.at(tmp_path / name, CONFIG, runs) for name in ("whole", "pieces"))
    for study in (whole, pieces):
        queries, pools = begin(study)
        score_critics(study, queries, pools, [scorer("right@42", 1.0), scorer("left", -1.0)])
    given = queries, pools, DATA.val
    make_rollouts(whole, *given, most_per_group=2)
    for piece in (2, 0, 1, 0):  # one of them twice, as after a lost worker
        make_rollout_piece(pieces, *given, piece, 3)

    def again(*_: object) -> None:
        raise AssertionError("something is rolled out twice")

    monkeypatch.setattr(RolloutWorld, "judge", again)
    make_rollout_piece(pieces, *given, 1, 3)
    make_rollouts(pieces, *given, most_per_group=2)
    assert whole.folder.rollouts.read_bytes() == pieces.folder.rollouts.read_bytes()
    assert not (pieces.folder.path / "rollouts.parts").exists()


def test_the_study_lists_its_rollouts_between_scores_and_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study", "selection", "--task", "pointmaze-medium-navigate-v0", "--per-group", "20"]
    words += ["--runs", str(tmp_path), "--out", str(tmp_path / "out"), "--list-jobs"]
    words += ["--stage", "scores,rollouts,tables"]
    monkeypatch.setattr(sys, "argv", ["toptail", *words])
    assert main() == 0
    scores, *pieces, stage, _tables = map(json.loads, capsys.readouterr().out.splitlines())
    assert [line["name"].split(" of ")[0] for line in pieces] == [
        *("rollouts 1", "rollouts 2", "rollouts 3")
    ]
    assert all(line["needs"] == [scores["id"]] for line in pieces)
    assert len({line["id"] for line in pieces}) == 3
    assert stage["needs"] == [scores["id"], *(line["id"] for line in pieces)]
    sys.argv.extend(("--planned-rollouts", "9"))
    assert main() == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
