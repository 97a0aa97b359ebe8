"""Below the declared scale a run shows its numbers, says how large it is, and decides nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.claims.test_ledger import RESULTS, STORED, read
from paper.tests.controlled.synthetic import write_folder
from toptail.errors import InputError
from toptail.lab.tasks.trajectories import Trajectories
from toptail_paper.claims import annotate
from toptail_paper.claims.scale import DECLARED, shortfalls, stated
from toptail_paper.controlled.study import STUDY
from toptail_paper.study.results import (
    hidden_layers,
    note_critics,
    note_data,
    read_scale,
    scale_rows,
    short_words,
)
from toptail_paper.study.study import study_in

POINT, CUBE = "pointmaze-medium-navigate-v0", "cube-single-play-v0"
FULL = {"steps": 100_000, "batch_size": 1024, "hidden": [512, 512, 512]}
SMALL = {"steps": 400, "batch_size": 1024, "hidden": [64, 64]}


@pytest.mark.parametrize("stored", STORED)
def test_the_stored_results_are_at_the_declared_scale(stored: str) -> None:
    config = read(RESULTS / stored / "config.json")["config"]
    assert shortfalls(study_in(RESULTS / stored).name, config, read_scale(RESULTS / stored)) == []


def entry(critics: dict[str, Any], transitions: int = 1_000_000) -> dict[str, Any]:
    return {"data": {"transitions": transitions, "trajectories": 60}, "critics": critics}


def test_what_is_too_small_is_named() -> None:
    scale = {"tasks": {POINT: entry({"raw": SMALL, "tdq": SMALL, "cosine": FULL}, 60_000)}}
    assert shortfalls("semantics", {"triples": 300, "seeds": [42]}, scale) == [
        "triples, 300 of 3,000",
        "seeds, 1 of 3",
        f"transitions, 60,000 of 1,000,000 on {POINT}",
        f"steps, 400 of 100,000 (raw and tdq) on {POINT}",
        f"hidden layers, 64×64 of 512×512×512 (raw and tdq) on {POINT}",
    ]


def test_what_the_paper_does_not_speak_of_may_be_of_any_size() -> None:
    half = {**FULL, "steps": 50_000}
    fine = {"mine": entry({"raw": SMALL}, 10), CUBE: entry({"raw": half, "td_mean": SMALL})}
    assert shortfalls("semantics", {}, {"tasks": fine}) == []
    assert shortfalls("semantics", {}, {"tasks": {POINT: entry({"raw": half})}}) != []
    assert shortfalls("selection", {}, {"tasks": {POINT: {}}}) == []  # sizes that were not noted
    larger = {"steps": 30_000, "seeds": list(range(20)), "critics": {"hidden": [64, 64, 64]}}
    assert shortfalls("controlled", larger, {}) == []
    assert shortfalls("controlled", {"critics": {"hidden": [64]}}, {}) != []


def test_every_declared_size_is_a_setting_of_its_study() -> None:
    for stored in STORED:
        study = study_in(RESULTS / stored).name
        said = stated(study, read(RESULTS / stored / "config.json")["config"])
        assert len(said.split(", ")) == len(DECLARED[study])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A run of 400 steps, with a ledger that an earlier version wrote."""
    folder = write_folder(tmp_path / "run")
    config = read(folder / "config.json")
    config["config"] |= {"steps": 400}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "claims.json").write_text('[{"status": "not seen"}]', encoding="utf-8")
    return folder


def test_a_small_run_decides_nothing_and_its_page_says_why(small: Path) -> None:
    assert annotate(small, "controlled") == []
    assert read(small / "claims.json") == []
    assert "- steps, 400 of 3,000\n" in (small / "claims.md").read_text(encoding="utf-8")
    page = STUDY.page(small).read_text(encoding="utf-8")
    assert "Numbers without a ledger: " in page
    assert "steps, 400 of 3,000." in page
    assert "Of the paper's statements" not in page
    assert 'id="claims"' not in page
    assert "paper 0.078" in page  # what the paper reports stays beside the numbers


@pytest.mark.parametrize("content", ["[1]", '{"tasks": 3}', "{"])
def test_a_damaged_note_of_the_scale_is_a_sentence(small: Path, content: str) -> None:
    (small / "scale.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"run the study again|delete it"):
        annotate(small, "controlled")


def test_a_run_that_became_large_enough_decides_again(small: Path) -> None:
    annotate(small, "controlled")
    config = read(small / "config.json")
    config["config"] |= {"steps": 3000}
    (small / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert annotate(small, "controlled") != []
    assert short_words(read_scale(small)) == ""


def test_sizes_are_noted_and_said(tmp_path: Path) -> None:
    terminals = np.zeros(12, dtype=bool)
    terminals[[5, 11]] = True
    rows = Trajectories(np.zeros((12, 2), np.float32), np.zeros((12, 1), np.float32), terminals)
    note_data(tmp_path, "mine", rows)
    fields = {"gamma": 0.9, "encoders": {"hidden": (8, 8)}}
    own: dict[str, Any] = {"critic": "raw", "batch_size": 4, "critic_fields": fields}
    origins: list[dict[str, Any]] = [
        {**own, "steps": 20},
        {**own, "steps": 10},
        {"file": "mine.py"},
    ]
    note_critics(tmp_path, "mine", origins)
    note_critics(tmp_path, "mine", [{**own, "critic": "tdq", "steps": 10}])
    assert dict(scale_rows(read_scale(tmp_path))) == {
        "Training data": "mine: 10 transitions of 2 trajectories",
        "Training": "10 steps, batch 4, hidden layers 8×8 (raw and tdq)",
    }
    assert scale_rows({}) == []
    assert hidden_layers({"gamma": 1}) == []
