"""The data's own episodes, beside which a followed critic stands."""

from __future__ import annotations

import html
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.environments.plane import NEAR, GoalPlane, Plane, records, small, write_plane
from toptail.lab.check.candidates import check_queries
from toptail.lab.check.closed_loop import Episodes, TaskEnvironment, recorded, recorded_returns
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.page import check_html, check_lines
from toptail.lab.check.run import check
from toptail.lab.environments.protocol import Copies, stored_rows
from toptail.lab.environments.rollout import RolloutRules
from toptail.lab.proposals.untrained import UniformActions

DATA = records(12, 15, 3)


def episodes(kind: type[Plane], horizon: int) -> Episodes:
    goals = kind is GoalPlane
    task = TaskEnvironment("plane", partial(Copies, kind), goals)
    queries = check_queries(DATA, 8, 0, goals=goals)
    return Episodes(task, DATA, queries, UniformActions(2), 2, RolloutRules(horizon))


def slow_return(trajectory: int, horizon: int) -> float:
    """Row by row, until the environment ends it."""
    total, env = 0.0, Plane()
    for row in range(DATA.starts[trajectory], DATA.ends[trajectory] + 1)[:horizon]:
        env.restore(stored_rows(DATA, np.array([row]))[0])
        _, reward, ended = env.step(DATA.actions[row])
        total += reward
        if ended:
            break
    return total


@pytest.mark.parametrize("horizon", [4, 10, 200])
def test_returns_are_those_of_the_records_row_by_row(horizon: int) -> None:
    found = recorded_returns(episodes(Plane, horizon), 99, np.random.default_rng(0))
    slow = [slow_return(each, horizon) for each in range(12)]
    np.testing.assert_allclose(found, slow, rtol=1e-6)
    some = recorded_returns(episodes(Plane, horizon), 5, np.random.default_rng(0))
    assert len(some) == 5
    assert all(np.isclose(each, slow).any() for each in some)


def test_an_episode_that_the_environment_ended_counts_no_further() -> None:
    ended = [slow_return(i, 200) for i in range(12)]
    every = []
    for i in range(12):
        after = (
            DATA.observations[DATA.starts[i] : DATA.ends[i] + 1]
            + 0.1 * (DATA.actions[DATA.starts[i] : DATA.ends[i] + 1])
        )
        every.append(-np.linalg.norm(after, axis=1).sum())
    assert not np.allclose(ended, every)  # or the data tests nothing of this
    found = recorded(episodes(Plane, 200), 99, 400, 0)
    assert found.mean == pytest.approx(np.mean(ended))
    assert found.low < found.mean < found.high
    assert found.episodes == 12


def came_slowly(given: Episodes, query: int, horizon: int) -> bool:
    """Row by row, as the environment counts it."""
    row, goal = given.queries.rows[query], given.queries.goals[query]
    path = DATA.observations[row + 1 : DATA.ends[DATA.trajectory[row]] + 1][:horizon]
    return bool((np.linalg.norm(path - goal, axis=1) <= NEAR).any())


def test_success_is_whether_the_record_came_to_the_goal_in_time() -> None:
    for horizon in (2, 4, 200):
        given = episodes(GoalPlane, horizon)
        came = [came_slowly(given, i, horizon) for i in range(len(given.queries))]
        found = recorded(given, 99, 400, 0)
        assert found.mean == pytest.approx(np.mean(came))
        assert "goals are states that the same episode came to later" in found.says
    assert found.mean == 1.0


def test_it_stands_beside_every_closed_loop(tmp_path: Path) -> None:
    plane = write_plane(tmp_path)
    mine = tmp_path / "mine.py"
    config = CheckConfig(**small())
    for env, name, words in (
        ("ActingPlane", "inward", "The return of the data's own episodes is that of their"),
        ("GoalPlane", "towards", "Success of the data's own episodes is how many came to"),
    ):
        content = check(plane, f"{mine}:{name}", env=f"{mine}:{env}", config=config).content
        parts = content["scorers"]["mine"]["parts"]
        data = parts[0]["closed_loop"]["data"]
        assert data == parts[1]["closed_loop"]["data"]
        lines = check_lines(content)
        followed = [line for line in lines if "mine, followed at every step" in line]
        assert len(followed) == 2
        assert all("; the data's own episodes: " in line for line in followed)
        assert "from K = 1 (a random policy) to K = 8" in followed[1]
        assert "safe, better than a random policy" in lines[0]
        assert any(line.startswith(words) for line in lines)
        page = html.unescape(check_html(content))
        assert words in page
        assert "the last column has the data" in page


UNRESTORED = """
class Forgetful(Plane):
    def restore(self, row):
        return super().restore(row) + (row.number % 12 == 11)
"""


def test_rows_that_cannot_be_restored_leave_the_line_out_and_say_so(tmp_path: Path) -> None:
    plane = write_plane(tmp_path)
    mine = tmp_path / "mine.py"
    mine.write_text(mine.read_text() + UNRESTORED)  # the last row of every episode
    config = CheckConfig(**small(per_group=3, starts=3, horizon=20))
    env, scorer = f"{mine}:Forgetful", f"{mine}:inward"
    content = check(plane, scorer, pools="uniform", env=env, config=config).content
    assert content["scorers"]["mine"]["parts"][0]["closed_loop"]["data"] is None
    (left,) = content["not_done"]
    assert left["what"] == "the return of the data's own episodes"
    assert "its state is not restored" in left["why"]
