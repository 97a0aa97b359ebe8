"""Conditions print what they ask; criteria ask it where it was measured."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.claims.test_ledger import RESULTS, STORED, read
from paper.tests.controlled.synthetic import write_folder
from toptail.errors import InputError
from toptail.lab.tasks.trajectories import Trajectories
from toptail_paper.claims import annotate
from toptail_paper.claims.claim import Claim
from toptail_paper.claims.criteria import (
    HALF,
    ZERO,
    Condition,
    Criterion,
    Words,
    above,
    at_least,
    at_most,
    below,
    between,
    exactly,
    listed,
    near,
    pick,
    short_by_at_most,
    wholly_above,
)
from toptail_paper.claims.numbers import (
    BY_TASK,
    NotMeasuredError,
    Number,
    each,
    least,
    less,
    most,
    number,
    of_curve,
    paired,
    ratio,
    spread,
)
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

TASKS = ("PointMaze", "Puzzle")
HIGH, LOW = Number(0.3, (0.2, 0.4)), Number(0.3, (-0.1, 0.7))


@pytest.mark.parametrize(
    ("condition", "words", "holds", "fails"),
    [
        (at_most(0.09), "at most 0.09", 0.09, 0.091),
        (at_least(HALF), "at least half", 0.5, 0.49),
        (below(ZERO), "below zero", -0.1, 0.0),
        (above(5.0), "above 5", 5.1, 5.0),
        (between(1.45, 2.55), "between 1.45 and 2.55", 2.55, 2.6),
        (near(ZERO, 0.05), "within 0.05 of zero", -0.05, -0.06),
        (short_by_at_most(0.01), "at most 0.01 below", -0.01, -0.02),
        (exactly(0.0), "exactly 0", 0.0, 1e-12),
        (at_least(0.1) & below(Words(1.0, "one")), "at least 0.1 and below one", 0.5, 1.0),
        (wholly_above(ZERO), "above zero with its whole interval", HIGH, LOW),
    ],
)
def test_a_condition_prints_its_limit_and_keeps_it(
    condition: Condition, words: str, holds: float, fails: float
) -> None:
    assert f"{condition}" == words
    assert condition(holds)
    assert not condition(fails)
    assert not condition(math.nan)


def test_limits_are_printed_as_asked() -> None:
    assert f"{at_least(0.9):.2f}" == "at least 0.90"
    assert f"{below(0.005):%}" == "below 0.5 %"


def test_without_an_interval_nothing_is_said_of_it() -> None:
    assert not wholly_above(0.0)(0.1)
    with pytest.raises(NotMeasuredError):
        _ = Number(0.1).low


def cell(mean: float, **more: Any) -> dict[str, Any]:
    seeds = {"1": mean - 0.1, "2": mean + 0.1}
    return {"mean": mean, "seeds": seeds, "low": mean, "high": mean, **more}


def stored() -> dict[str, Any]:
    """Two tasks; hybrid and the second metric are on one of them alone."""
    point = {
        "tdq": {"tau": cell(0.6), "auc": cell(0.9)},
        "raw": {"tau": cell(0.3, low=0.25, high=0.4), "auc": cell(0.8)},
        "hybrid": {"tau": cell(0.1)},
    }
    ant = {"tdq": {"tau": cell(0.5)}, "raw": {"tau": cell(-0.2, low=-0.3, high=-0.1)}}
    paper = {"Puzzle": {"tdq": {"tau": {"mean": 0.4}}, "raw": {"tau": {"mean": 0.5}}}}
    return {"main": {"rows": {"PointMaze": point, "Puzzle": ant}, "paper": paper}}


RAW = Criterion(each("main", "tau", ("raw",)), TASKS, at_most(0.2), "tau of {condition}")


def test_every_number_is_asked_and_the_worst_is_shown() -> None:
    finding = RAW(stored())
    assert (finding.status, finding.number, finding.interval) == ("depends", 0.3, (0.25, 0.4))
    assert finding.comment == (
        "Criterion: tau of at most 0.2. Measured: raw on PointMaze 0.300; raw on Puzzle -0.200; "
        "the number is the highest. Seen on 1 of 2 tasks: Puzzle; not on PointMaze. It does not "
        "hold for: raw on PointMaze."
    )
    assert (finding.on, finding.over) == ("the task", "whole trajectories")


def test_what_is_no_number_decides_nothing() -> None:
    tables = stored()
    tables["main"]["rows"]["PointMaze"]["raw"]["tau"] |= {"mean": math.nan}
    finding = RAW(tables)
    assert finding.status == "inconclusive"
    assert finding.number == -0.2  # the one that there is
    assert "Open, there being no number: raw on PointMaze." in finding.comment
    tables["main"]["rows"]["Puzzle"]["raw"]["tau"] |= {"low": math.nan}
    assert RAW(tables).status == "inconclusive"
    tables["main"]["rows"]["Puzzle"]["raw"]["tau"] = cell(0.5)
    assert RAW(tables).status == "not seen"  # by the task that has one


def test_a_task_may_have_a_condition_of_its_own() -> None:
    said = "tau of {condition}, {PointMaze} on PointMaze"
    numbers = each("main", "tau", ("raw",))
    apart = Criterion(numbers, TASKS, at_most(0.2), said, by_task={"PointMaze": at_most(0.4)})
    assert apart(stored()).status == "seen"
    assert "tau of at most 0.2, at most 0.4 on PointMaze." in apart(stored()).comment


def test_unmeasured_tasks_stay_out_and_are_named_and_none_leaves_it_open() -> None:
    tables = stored()
    del tables["main"]["rows"]["PointMaze"]["raw"]
    finding = RAW(tables)
    assert finding.status == "seen"
    assert finding.comment.endswith("Decided on Puzzle alone; not in this ledger: PointMaze.")
    with pytest.raises(NotMeasuredError):
        RAW({})


def test_joined_criteria_are_asked_on_the_tasks_that_have_both() -> None:
    auc = Criterion(
        each("main", "auc", ("raw",)), TASKS, at_least(0.85), "AUC {condition}", part="AUC of {}"
    )
    finding = (RAW & auc)(stored())
    assert (finding.status, finding.number) == ("not seen", 0.3)
    assert "tau of at most 0.2, and AUC at least 0.85. Measured: raw on" in finding.comment
    assert "not in this ledger: Puzzle" in finding.comment
    tables = stored()
    tables["main"]["rows"]["PointMaze"]["raw"]["auc"] = cell(0.9)
    assert "does not hold for: raw on PointMaze." in (RAW & auc)(tables).comment


def test_the_papers_own_cells_are_asked_the_same() -> None:
    """Its 0.5 on Puzzle misses the limit; a number that may round to it would not."""
    for limit, expected in ((0.2, False), (0.46, None), (0.6, True)):
        parts, missed = Criterion(RAW.numbers, TASKS, at_most(limit), "tau").reported(stored())
        assert parts["raw on Puzzle"] is expected
        assert missed == ("raw on Puzzle 0.500" if expected is False else "")
    own = Claim("x", "X.", "tab:x", Criterion(RAW.numbers, TASKS, at_most(0.2), "tau"))
    finding = own.decide(stored())
    assert finding.status == "overstated"
    assert "The paper's own numbers miss it for raw on Puzzle 0.500." in finding.comment


def test_what_is_seen_here_is_seen_whatever_the_paper_reports() -> None:
    tables = stored()
    for rows in tables["main"]["rows"].values():
        rows["raw"]["tau"] = cell(0.1)
    own = Claim("x", "X.", "tab:x", Criterion(RAW.numbers, TASKS, at_most(0.2), "tau"))
    finding = own.decide(tables)
    assert finding.status == "seen"
    assert "The paper's own numbers miss it" in finding.comment


def test_numbers_beside_a_reference() -> None:
    tau, tdq = each("main", "tau", ("raw",)), each("main", "tau", ("tdq",))
    tables = stored()
    assert ratio(tau, tdq, "").of(tables, "PointMaze")["raw on PointMaze"].mean == 0.5
    assert less(tdq, tau, "").of(tables, "Puzzle")["tdq on Puzzle"].mean == 0.7
    assert paired(tdq, tau, "").of(tables, "Puzzle")["tdq on Puzzle"].mean == pytest.approx(0.7)
    tables["main"]["rows"]["Puzzle"]["tdq"]["tau"] = cell(-0.1)
    assert math.isnan(ratio(tau, tdq, "").of(tables, "Puzzle")["raw on Puzzle"].mean)
    both = each("main", "tau", ("raw", "hybrid"), required=("raw",))
    assert most(both).of(tables, "PointMaze")["PointMaze"].mean == 0.3
    assert least(both).of(tables, "PointMaze")["PointMaze"].mean == 0.1
    assert list(both.of(tables, "Puzzle")) == ["raw on Puzzle"]
    with pytest.raises(NotMeasuredError):
        each("main", "tau", ("hybrid",), required=()).of(tables, "Puzzle")


def test_numbers_on_the_tasks_that_have_others() -> None:
    both = each("main", "tau", ("raw",), BY_TASK).requiring(each("main", "auc", ("raw",)))
    assert listed(both)(stored(), ["PointMaze"]) == " Measured: PointMaze 0.300."
    assert listed(both)(stored(), TASKS) == ""


def test_a_spread_needs_more_than_one_seed() -> None:
    tables = stored()
    stds = spread("main", ("tau", "auc"), ("raw",)).of(tables, "PointMaze")
    assert list(stds) == ["tau of raw on PointMaze", "auc of raw on PointMaze"]
    assert stds["tau of raw on PointMaze"].mean == pytest.approx(0.1 * math.sqrt(2))
    for metric in ("tau", "auc"):
        tables["main"]["rows"]["PointMaze"]["raw"][metric]["seeds"] = {"1": 0.3}
    with pytest.raises(NotMeasuredError):
        spread("main", ("tau", "auc"), ("raw",)).of(tables, "PointMaze")


def test_a_seed_without_a_number_stays_out() -> None:
    tables = stored()
    tables["main"]["rows"]["Puzzle"]["raw"]["tau"]["seeds"]["3"] = None
    assert list(number(tables, "main", "Puzzle", "raw", "tau").seeds) == ["1", "2"]


def test_which_number_is_shown() -> None:
    numbers = {"a": Number(0.4), "b": Number(-0.6), "c": Number(0.9)}
    shown = ("first", "lowest", "highest", "farthest from zero", "farthest from 0.5")
    assert [pick(numbers, which) for which in shown] == ["a", "b", "c", "c", "b"]


def test_a_table_without_an_interval_gives_one_over_seeds() -> None:
    tables = stored()
    tables["main"]["rows"]["Puzzle"]["raw"]["tau"] = cell(0.2, low=None, high=None)
    x = number(tables, "main", "Puzzle", "raw", "tau")
    # t(0.975, 1) = 12.7062; the seeds 0.1 and 0.3 have a standard error of 0.1.
    assert x.interval == pytest.approx((0.2 - 1.27062, 0.2 + 1.27062), abs=1e-5)
    assert (x.over, tables["main"]["rows"]["Puzzle"]["raw"]["tau"]["low"]) == (
        "training seeds",
        None,
    )
    tables["main"]["rows"]["Puzzle"]["raw"]["tau"]["seeds"] = {"1": 0.2}
    alone = number(tables, "main", "Puzzle", "raw", "tau")
    assert (alone.interval, alone.over) == (None, "")


def test_a_number_of_a_curve_has_an_interval_over_the_seeds_curves() -> None:
    shape = {"mean": [0.0, 0.2], "seeds": {"1": [0.0, 0.1], "2": [0.0, 0.3], "3": [None, 0.3]}}
    tables = {"curves": {"tasks": {"Puzzle": {"raw": {"value": shape}}}}}
    x = of_curve(tables, "Puzzle", "raw", "value", lambda y: y[-1] - y[0])
    assert (x.mean, x.over) == (0.2, "training seeds")
    assert x.interval == pytest.approx((0.2 - 1.27062, 0.2 + 1.27062), abs=1e-5)
    shape["mean"] = [None, 0.2]
    with pytest.raises(NotMeasuredError):
        of_curve(tables, "Puzzle", "raw", "value", max)


@pytest.mark.parametrize(
    ("raw", "hybrid", "auc", "on"),
    [(0.3, 0.1, 0.9, "the critic"), (0.1, 0.1, 0.8, "the part of the statement")],
)
def test_a_criterion_says_what_it_depends_on(
    raw: float, hybrid: float, auc: float, on: str
) -> None:
    tables = stored()
    row = tables["main"]["rows"]["PointMaze"]
    row["raw"] = {"tau": cell(raw), "auc": cell(auc)}
    row["hybrid"] = {"tau": cell(hybrid), "auc": cell(auc)}
    critics = ("raw", "hybrid")
    both = Criterion(
        each("main", "tau", critics), ("PointMaze",), at_most(0.2), "tau of {condition}"
    ) & Criterion(
        each("main", "auc", critics), ("PointMaze",), at_least(0.85), "AUC", part="AUC of {}"
    )
    assert (both(tables).status, both(tables).on) == ("depends", on)
    tables["main"]["rows"]["Puzzle"] |= {c: {"tau": cell(0.1), "auc": cell(0.9)} for c in critics}
    row["raw"] = row["hybrid"] = {"tau": cell(0.3), "auc": cell(0.9)}
    on_both = replace(both, tasks=TASKS, joined=(replace(both.joined[0], tasks=TASKS),))
    assert on_both(tables).on == "the part of the statement and the task"
    row["raw"] = row["hybrid"] = {"tau": cell(0.1), "auc": cell(0.9)}
    assert (both(tables).status, both(tables).on) == ("seen", "")


# Below the declared scale a run shows its numbers, says how large it is, and decides nothing.


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
