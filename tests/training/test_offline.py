"""Transitions and goals drawn in the step, against tables of their exact probabilities."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from toptail.errors import InputError
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.training.data import GoalSampling, OfflineData, device_data

LENGTHS = (2, 7, 1, 12, 4)  # one trajectory has no transition at all
ROWS = sum(LENGTHS)
DRAWS = 200_000
Table = NDArray[np.float64]


@cache
def trajectories() -> Trajectories:
    """Observations and actions name their row: 10 r and 10 r + 1."""
    terminals = np.zeros(ROWS, dtype=bool)
    terminals[np.cumsum(LENGTHS) - 1] = True
    names = 10 * np.arange(ROWS, dtype=np.float32)
    return Trajectories(names[:, None], names[:, None] + 1, terminals)


def last_rows() -> list[int]:
    """The last row of each row's trajectory."""
    return [end for end, n in zip(np.cumsum(LENGTHS) - 1, LENGTHS, strict=True) for _ in range(n)]


def transition_rows() -> list[int]:
    return [row for row, last in enumerate(last_rows()) if row < last]


def geometric(row: int, gamma: float) -> Table:
    """Probability of each row as the future goal of ``row``; beyond the end means the end."""
    table, last = np.zeros(ROWS), last_rows()[row]
    for distance in range(1, last - row):
        table[row + distance] = (1 - gamma) * gamma ** (distance - 1)
    table[last] = 1 - table.sum()
    return table


def uniform(row: int) -> Table:
    table, last = np.zeros(ROWS), last_rows()[row]
    table[row + 1 : last + 1] = 1 / (last - row)
    return table


def value_table(sampling: GoalSampling, row: int) -> Table:
    """Probability of each row as the value goal of ``row``."""
    far = uniform(row) if sampling.uniform_future else geometric(row, sampling.gamma)
    random = 1 - sampling.current - sampling.future
    own = np.eye(ROWS)[row]
    return np.asarray(sampling.current * own + sampling.future * far + random / ROWS)


def check(rows: NDArray[Any], goals: NDArray[Any], tables: dict[int, Table]) -> None:
    """Chi-square of the (row, goal) counts; what has no probability must not occur."""
    counts = np.zeros((ROWS, ROWS))
    np.add.at(counts, (rows, goals), 1)
    expected = np.zeros((ROWS, ROWS))
    for row, table in tables.items():
        expected[row] = table * len(rows) / len(tables)
    assert not counts[expected < 1e-9].any()
    cells = expected > 1e-9
    assert expected[cells].min() > 5
    assert chisquare(counts[cells], expected[cells]).pvalue > 1e-3


SAMPLINGS = {
    "geometric": GoalSampling(gamma=0.8, current=0.2, future=0.5),
    "uniform": GoalSampling(gamma=0.7, current=0.1, future=0.3, uniform_future=True),
    "future only": GoalSampling(gamma=0.9, current=0.0, future=1.0),
    "random only": GoalSampling(gamma=0.6, current=0.0, future=0.0),
}


@cache
def drawn(name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows of transitions, contrastive goals and value goals."""
    data, sampling = device_data(trajectories()), SAMPLINGS[name]
    draw = jax.jit(lambda key: sampling.rows(key, data, DRAWS))
    row, goal, value, _ = (np.asarray(x) for x in draw(jax.random.key(5)))
    return row, goal, value


def test_device_data() -> None:
    data = device_data(trajectories())
    assert data.last.tolist() == last_rows()
    assert data.transitions.tolist() == transition_rows()
    assert (data.last.dtype, data.transitions.dtype) == (jnp.int32, jnp.int32)
    assert (data.observations.dtype, data.actions.dtype) == (jnp.float32, jnp.float32)
    assert data.states is data.observations
    assert data.goals is data.observations


@pytest.mark.parametrize("name", SAMPLINGS)
def test_transitions_are_uniform(name: str) -> None:
    row, _, _ = drawn(name)
    counts = np.bincount(row, minlength=ROWS)
    assert set(np.flatnonzero(counts)) == set(transition_rows())  # never a last row
    assert chisquare(counts[transition_rows()]).pvalue > 1e-3


@pytest.mark.parametrize("name", SAMPLINGS)
def test_contrastive_goals(name: str) -> None:
    """Geometric and never across an end, whichever way the value goals are drawn."""
    row, goal, _ = drawn(name)
    gamma = SAMPLINGS[name].gamma
    check(row, goal, {r: geometric(r, gamma) for r in transition_rows()})


@pytest.mark.parametrize("name", SAMPLINGS)
def test_value_goals(name: str) -> None:
    """The shares of current, future and random goals; random ones cover every row."""
    row, _, value = drawn(name)
    check(row, value, {r: value_table(SAMPLINGS[name], r) for r in transition_rows()})
    if name == "random only":
        assert set(value) == set(range(ROWS))


def long_data(rows: int) -> OfflineData:
    """One trajectory, of which only the first row is drawn."""
    nothing = jnp.zeros((rows, 1))
    last = jnp.full(rows, rows - 1, jnp.int32)
    return OfflineData(nothing, nothing, last, jnp.zeros(1, jnp.int32))


def test_random_goals_have_no_regard_to_the_row() -> None:
    """Every row of the data set, one as often as another, whatever the transition."""
    data = device_data(trajectories())
    draw = jax.jit(lambda key: SAMPLINGS["geometric"].rows(key, data, DRAWS))
    row, _, _, anywhere = (np.asarray(x) for x in draw(jax.random.key(6)))
    check(row, anywhere, dict.fromkeys(transition_rows(), np.full(ROWS, 1 / ROWS)))


def test_long_distances() -> None:
    """At the default discount of 0.99: distances of 1 to 600 one by one, then the rest."""
    sampling = GoalSampling(current=0.0, future=1.0)
    data = long_data(5000)
    _, goal, value, _ = jax.jit(lambda key: sampling.rows(key, data, DRAWS))(jax.random.key(2))
    distance = np.arange(1, 601)
    expected = DRAWS * np.append(0.01 * 0.99 ** (distance - 1), 0.99**600)
    for draws in (np.asarray(goal), np.asarray(value)):
        counts = np.bincount(np.minimum(draws, 601), minlength=602)
        assert counts[0] == 0
        # Chi-square wants at least 5 per cell.
        cells = expected[:-1] > 5
        tail = counts[1:-1][~cells].sum() + counts[-1]
        observed = np.append(counts[1:-1][cells], tail)
        wanted = np.append(expected[:-1][cells], expected[:-1][~cells].sum() + expected[-1])
        assert chisquare(observed, wanted).pvalue > 1e-3


def test_draws_are_independent() -> None:
    """The positive's distance says nothing of the value goal's, nor of its kind."""
    for uniform_future in (False, True):
        sampling = GoalSampling(0.9, 0.3, 0.4, uniform_future=uniform_future)
        draw = jax.jit(partial(sampling.rows, data=long_data(2000), size=DRAWS))
        _, goal, value, _ = (np.asarray(x) for x in draw(jax.random.key(3)))
        bound = 4.5 / np.sqrt(DRAWS)
        # Random goals are nearly all beyond 100; uncut they would hide the future ones.
        for other in (np.minimum(value, 100), value == 0, value > 100):
            assert abs(np.corrcoef(goal, other)[0, 1]) < bound


def test_keys_decide() -> None:
    data, sampling = device_data(trajectories()), SAMPLINGS["geometric"]
    first, again, other = (sampling(jax.random.key(k), data, 64) for k in (0, 0, 1))
    same = jax.tree.map(np.array_equal, first, again)
    assert all(jax.tree.leaves(same))
    assert not np.array_equal(first.states, other.states)


@pytest.mark.parametrize(("reward", "reached", "on_the_way"), [("-1/0", 0, -1), ("0/1", 1, 0)])
def test_batch(reward: Any, reached: float, on_the_way: float) -> None:
    """Columns belong to one row; reward and end of episode come exactly at the value goal."""
    sampling = GoalSampling(gamma=0.8, current=0.2, future=0.5, reward=reward)
    data, key = device_data(trajectories()), jax.random.key(9)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        batch = jax.jit(lambda key: sampling(key, data, 4096))(key)
        row, goal, value, anywhere = (np.asarray(x) for x in sampling.rows(key, data, 4096))
    assert batch.rows is not None
    assert batch.goal_rows is not None
    assert batch.value_goal_rows is not None
    np.testing.assert_array_equal(batch.rows, row)
    np.testing.assert_array_equal(batch.goal_rows, goal)
    np.testing.assert_array_equal(batch.value_goal_rows, value)
    others = batch._replace(rows=None, goal_rows=None, value_goal_rows=None)
    assert all(column.dtype == jnp.float32 for column in jax.tree.leaves(others))
    for column, name in (
        (batch.states, 10 * row),
        (batch.actions, 10 * row + 1),
        (batch.next_states, 10 * (row + 1)),
        (batch.goals, 10 * goal),
        (batch.value_goals, 10 * value),
        (batch.next_goals, 10 * (row + 1)),
        (batch.random_goals, 10 * anywhere),
    ):
        np.testing.assert_array_equal(column[:, 0], name)
    np.testing.assert_array_equal(batch.offsets, goal - row)
    there = row == value
    assert 0.15 < there.mean() < 0.35  # the current goals, and a few random ones
    np.testing.assert_array_equal(batch.rewards, np.where(there, reached, on_the_way))
    np.testing.assert_array_equal(batch.masks, np.where(there, 0.0, 1.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": 1.0}, "gamma must lie between 0 and 1"),
        ({"gamma": 0.0}, "gamma must lie between 0 and 1"),
        ({"current": -0.1}, "must not be negative"),
        ({"future": -0.1}, "must not be negative"),
        ({"current": 0.7}, r"0\.7 \(current\) and 0\.5 \(future\) add up to more than 1"),
    ],
)
def test_bad_settings(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GoalSampling(**settings)  # type: ignore[arg-type]
