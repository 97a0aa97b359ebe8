"""Ideal critics as rows of the leaderboard: what they score, and where there are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paper.tests.zoo.test_zoo import checked
from toptail.errors import InputError
from toptail.io.arrays import read_arrays
from toptail.io.json_files import read_json, write_json
from toptail.lab.tasks.queries import load_queries
from toptail_paper.zoo import ideals
from toptail_paper.zoo.scores import SOURCES, score_table
from toptail_paper.zoo.summary import IDEAL_ROWS, TASK


class Linear:
    """Ideals in closed form: scores that say which rows they were given."""

    def scores(self) -> dict[str, object]:
        return {
            name: lambda s, a, g, n=n: (s + n * a - g).sum(axis=1)
            for n, name in enumerate(("q_star", *IDEAL_ROWS))
        }


def test_every_candidate_is_scored_by_its_own_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "check" / TASK / "tdq"
    checked(home, "tdq", 0.1)
    check = read_json(home / "check.json")
    write_json(home / "check.json", check | {"settings": {"gamma": 0.9}})
    asked: list[tuple[str, float]] = []

    def known(task: str, gamma: float) -> Linear:
        asked.append((task, gamma))
        return Linear()

    monkeypatch.setattr(ideals, "point_ideals", known)
    made = ideals.write_ideals(tmp_path, TASK)
    assert asked == [(TASK, 0.9)]
    queries = load_queries(home / "queries.npz")
    for source in SOURCES:
        pools = read_arrays(made / source / "pools.npz")
        assert set(pools) == {"actions", *(f"scores/{name}" for name in IDEAL_ROWS)}
        s, g = queries.states[7], queries.goals[7]
        wanted = [(s + a - g).sum() for a in pools["actions"][7]]
        np.testing.assert_allclose(pools["scores/log_ratio"][7], wanted, rtol=1e-5)
    joined = score_table([home, made], "nearest").column_names
    assert {"tdq@1", *IDEAL_ROWS} <= set(joined)


def test_ideals_are_known_of_pointmaze_alone_and_need_a_check(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PointMaze navigate alone"):
        ideals.write_ideals(tmp_path, "antmaze-medium-navigate-v0")
    with pytest.raises(InputError, match="no check of TD-Q"):
        ideals.write_ideals(tmp_path, TASK)
