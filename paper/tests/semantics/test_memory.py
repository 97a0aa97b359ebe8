"""Seen and held-out trajectories: a critic that learned its data by heart is found out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paper.tests.semantics.scored import CONFIG, FAMILIES, manipulation
from paper.tests.triples import world
from toptail_paper.semantics.load import TaskScores
from toptail_paper.semantics.measure import measure, measure_all, measure_each
from toptail_paper.semantics.memory import measure_trained_on, memory_table
from toptail_paper.triples.scored import ScoredTriples

REWARD = {"tdq": 0.0, "raw": 0.0, "mine": 0.0}
BOTH = ("tdq@42", "tdq@43", "raw@42", "raw@43")


def scored(critics: dict[str, str]) -> ScoredTriples:
    """Column -> which critic of the regular world it is."""
    base = world.scored()
    families: dict[str, Any] = {
        name: {column: getattr(base, name)[critic] for column, critic in critics.items()}
        for name in FAMILIES
    }
    return replace(base, **families, readouts={}, query_means={}, values={}, step_reward=REWARD)


def held_out() -> TaskScores:
    columns = dict.fromkeys((*BOTH, "mine"), "exact")
    made_from = {column: f"{column} held out" for column in columns}
    return replace(manipulation(), triples=scored(columns), made_from=made_from)


def seen() -> TaskScores:
    """TD-Q as before; raw knows whose goal it is, and nothing else."""
    columns = {c: "exact" if c.startswith("tdq") else "separator" for c in BOTH}
    made_from = {column: column for column in columns}
    return replace(manipulation(), triples=scored(columns), made_from=made_from)


def test_learned_by_heart_is_perfect_retrieval_without_any_order() -> None:
    table = memory_table(measure_all([held_out()], CONFIG), [seen()], CONFIG)
    assert table is not None
    raw, tdq = (table["rows"]["Cube-single"][scorer] for scorer in ("raw", "tdq"))
    assert raw["auc_seen"]["mean"] == 1.0
    assert raw["nearer_goal_seen"]["mean"] == 0.5  # both goals score alike: half a win each
    assert raw["tau_seen"]["mean"] == pytest.approx(0.0)
    for kind in ("held_out", "seen"):
        assert tdq[f"nearer_goal_{kind}"]["mean"] == 1.0
        assert tdq[f"tau_{kind}"]["mean"] == pytest.approx(1.0)
    assert raw["tau_held_out"] == tdq["tau_held_out"]
    fall = table["falls"]["Cube-single"]["raw"]
    assert (fall["mean"], fall["low"], fall["high"]) == (0.5, 0.5, 0.5)
    assert fall["seeds"] == {"42": 0.5, "43": 0.5}
    assert table["falls"]["Cube-single"]["tdq"]["mean"] == 0.0


def test_only_what_was_scored_on_both_is_compared() -> None:
    table = memory_table(measure_all([held_out()], CONFIG), [seen()], CONFIG)
    assert table is not None
    assert set(table["rows"]["Cube-single"]) == {"tdq", "raw"}  # "mine" was shown one split
    other = replace(seen(), task="scene-play-v0", key="Scene")
    assert memory_table(measure_all([held_out()], CONFIG), [other], CONFIG) is None
    assert memory_table(measure_all([held_out()], CONFIG), [], CONFIG) is None


def test_a_critic_that_was_scored_again_on_one_split_only_is_left_out() -> None:
    origins = {column: {"params": "old", "scores_sha256": "a"} for column in BOTH}
    own = measure_all([replace(held_out(), origins=origins)], CONFIG)
    same = {column: {"params": "old", "scores_sha256": "b"} for column in BOTH}
    assert memory_table(own, [replace(seen(), origins=same)], CONFIG) is not None
    one_new = {**same, "raw@42": {"params": "new", "scores_sha256": "b"}}
    table = memory_table(own, [replace(seen(), origins=one_new)], CONFIG)
    assert table is not None
    assert set(table["rows"]["Cube-single"]["raw"]["auc_seen"]["seeds"]) == {"43"}


def test_the_two_kinds_have_resamples_of_their_own() -> None:
    task = replace(held_out(), triples=world.noisy())
    one = measure(task, "any@7", CONFIG)["auc"]
    other = measure_trained_on(task, "any@7", CONFIG)["auc"]
    assert one.point == other.point
    assert (one.draws != other.draws).any()


def test_what_was_kept_of_another_column_is_not_read(tmp_path: Path) -> None:
    each = partial(measure_each, kept=tmp_path)
    before = memory_table(measure_all([held_out()], CONFIG), [seen()], CONFIG, each)
    assert memory_table(measure_all([held_out()], CONFIG), [seen()], CONFIG, each) == before
    worse = replace(seen(), triples=scored(dict.fromkeys(BOTH, "opposite")))
    changed = replace(worse, made_from={column: f"{column} changed" for column in BOTH})
    table = memory_table(measure_all([held_out()], CONFIG), [changed], CONFIG, each)
    assert table is not None
    assert table["rows"]["Cube-single"]["raw"]["nearer_goal_seen"]["mean"] == 0.0
