"""What is drawn, against the definition written out row by row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.semantics.small import WALKS, small_config, walks_file
from toptail.errors import InputError
from toptail.lab.tasks.files import TaskDataset, is_navigation
from toptail.lab.tasks.names import parse_name
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.draws import _random_rows, draw

VAL = WALKS.data.val


def nearest(anchor: int, count: int, exclusion: str) -> list[int]:
    """The nearest rows that have an action, by a plain sort."""
    own = VAL.trajectory[anchor]
    allowed = [
        row
        for row in range(len(VAL))
        if not VAL.terminals[row]
        and (row != anchor if exclusion == "row" else VAL.trajectory[row] != own)
    ]
    distance = {
        row: float(((VAL.observations[row].astype(float) - VAL.observations[anchor]) ** 2).sum())
        for row in allowed
    }
    return sorted(allowed, key=lambda row: (distance[row], row))[:count]


@pytest.mark.parametrize("exclusion", ["row", "trajectory"])
@pytest.mark.parametrize("n_near", [2, 12])
def test_support_pools_are_half_near_and_half_random(exclusion: str, n_near: int) -> None:
    drawn = draw(small_config(), WALKS).arrays
    pools, on = (drawn[f"{kind}/{exclusion}/{n_near}"] for kind in ("support", "on_support"))
    assert pools.shape == on.shape == (8, 6)
    for anchor, pool, labels in zip(drawn["rows"], pools, on, strict=False):
        near = nearest(int(anchor), n_near, exclusion)
        assert set(pool[:3]) <= set(near)
        # Two near states cannot fill three places without a repetition; twelve must not repeat.
        assert (len(set(pool[:3])) == 3) == (n_near >= 3)
        assert len(set(pool[3:])) == 3
        assert not VAL.terminals[pool].any()
        assert anchor not in pool
        if exclusion == "trajectory":
            assert (VAL.trajectory[pool] != VAL.trajectory[anchor]).all()
        np.testing.assert_array_equal(labels, [row in near for row in pool])


def test_only_the_near_half_differs_between_numbers_of_near_states() -> None:
    drawn = draw(small_config(), WALKS)
    for exclusion in ("row", "trajectory"):
        pools = [drawn.arrays[f"support/{exclusion}/{n}"] for n in (2, 12)]
        np.testing.assert_array_equal(pools[0][:, 3:], pools[1][:, 3:])
        assert (pools[0][:, :3] != pools[1][:, :3]).any()


@pytest.mark.parametrize("by_trajectory", [False, True])
def test_random_rows_are_any_but_those_left_out(by_trajectory: bool) -> None:
    """As many as there are: each must come exactly once."""
    group = VAL.trajectory if by_trajectory else np.arange(len(VAL))
    anchors = VAL.transitions[[0, 5, 30, 75]]
    others = len(VAL.transitions) - (19 if by_trajectory else 1)
    rows = _random_rows(VAL, anchors, others, group, np.random.default_rng(0))
    for anchor, line in zip(anchors, rows, strict=True):
        allowed = VAL.transitions[group[VAL.transitions] != group[anchor]]
        np.testing.assert_array_equal(np.sort(line), allowed)


def test_goals_follow_their_rules() -> None:
    drawn = draw(small_config(triples=300), WALKS).arrays
    rows, goals, trajectory = (drawn[name] for name in ("rows", "goal_rows", "trajectory"))
    assert not VAL.terminals[rows].any()
    for goal in (goals, np.where(drawn["second_goal_rows"] < 0, goals, drawn["second_goal_rows"])):
        assert ((goal - rows >= 1) & (goal - rows <= 6)).all()
        np.testing.assert_array_equal(VAL.trajectory[goal], trajectory)
    without = drawn["second_goal_rows"] < 0
    np.testing.assert_array_equal(without, VAL.remaining(rows) == 1)
    assert 0 < without.sum() < 300
    assert (drawn["second_goal_rows"] != goals).all()
    assert (VAL.trajectory[drawn["negative_rows"]] != trajectory[:, None]).all()
    assert (VAL.trajectory[drawn["hard_negative_rows"]] != trajectory).all()


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({"negatives": 3}, ("negative_rows",)),
        ({"n_near": (2, 20)}, ()),  # but there are pools of 20 instead of 12
        ({"support_queries": 4}, ("support", "on_support")),
        ({"behaviour_actions": 9, "resamples": 3, "k": (1,)}, ()),
    ],
)
def test_a_setting_changes_no_other_draw(change: dict[str, Any], moved: tuple[str, ...]) -> None:
    before = draw(small_config(), WALKS).arrays
    after = draw(small_config(**change), WALKS).arrays
    same = [name for name in before.keys() & after.keys() if not name.startswith(moved or "-")]
    assert {"rows", "goal_rows", "second_goal_rows", "hard_negative_rows"} <= set(same)
    assert ("support/row/2" in same) == ("support" not in moved)
    for name in same:
        np.testing.assert_array_equal(before[name], after[name])


def test_draws_follow_from_the_seed_and_the_sweep_has_triples_of_its_own() -> None:
    config = small_config()
    first, again = draw(config, WALKS), draw(config, WALKS)
    assert first.sha256 == again.sha256
    sweep = draw(config, WALKS, "temperature")
    assert set(sweep.arrays) == {"rows", "goal_rows", "trajectory", "negative_rows"}
    assert (sweep.arrays["rows"] != first.arrays["rows"]).any()
    next_seed = draw(replace(config, draw_seed=1), WALKS)
    np.testing.assert_array_equal(sweep.arrays["rows"], next_seed.arrays["rows"])


def test_play_data_has_no_support_pools() -> None:
    drawn = draw(small_config(n_near=(10_000,)), replace(WALKS, navigation=False))
    assert not any(name.startswith("support") for name in drawn.arrays)
    assert "support_pool" not in drawn.header


def test_too_many_near_states_are_refused() -> None:
    draw(small_config(n_near=(57,)), WALKS)  # 3 other walks of 19 transitions
    with pytest.raises(InputError, match=r"57 states .* trajectory is left out, but n_near .* 58"):
        draw(small_config(n_near=(58,)), WALKS)


def test_a_data_set_is_known_by_its_name(tmp_path: Path) -> None:
    task = TaskDataset.load(walks_file(tmp_path))
    assert (task.name, task.key, task.navigation) == ("walks", "walks", True)
    assert task.split("val") is task.data.val
    assert task.split("train") is task.data.train
    maze, stitch, play = (
        parse_name(name)
        for name in ("PointMaze", "pointmaze-medium-stitch-v0", "cube-single-play-v0")
    )
    assert maze.title == "PointMaze"
    assert stitch.title == "pointmaze-medium-stitch-v0"
    assert [is_navigation(name) for name in (maze, stitch, play, None)] == [True, True, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"triples": 0}, "triples=0 must be a whole number"),
        ({"support_pool": 5}, "support_pool is 5: expected an even number"),
        ({"support_queries": 41}, "only 40 triples"),
        ({"n_near": ()}, "n_near is"),
        ({"k": (0, 1)}, "k is .* expected 1 or more"),
        ({"seeds": (42, 42)}, "different entries"),
        ({"gamma": 1.0}, r"gamma=1\.0 must lie between 0 and 1"),
        ({"split": "test"}, "no split 'test'"),
        ({"draw_seed": -1}, "draw_seed=-1 must be"),
        ({"seeds": (7,)}, "The oracle's seed 7 is among"),
    ],
)
def test_impossible_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small_config(**change)


def test_the_configuration_is_described_as_json_has_it() -> None:
    described = SemanticsConfig(tasks=("PointMaze",)).described()
    assert described["n_near"] == [50, 200, 800]
    assert described["tasks"] == ["PointMaze"]
