"""The simulator as a judge: a world solved by hand, a slow loop, and equal bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from tests.environments.plane import STEP, GoalPlane, Plane, records
from toptail.errors import InputError
from toptail.lab.environments.ogbench import MazeEnvironments
from toptail.lab.environments.protocol import Copies
from toptail.lab.environments.rollout import RolloutRules, RolloutStarts
from toptail.lab.judges import rollouts
from toptail.lab.judges.rollouts import (
    CandidateStarts,
    KeyedPolicy,
    ModelContinuation,
    candidate_returns,
    rollout_returns,
)
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail.lab.tasks.files import load_file
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import Simulator, make_env
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.lab.training import config as defaults

DATA = Path(__file__).parents[1] / "tasks" / "data"
POINT, ANT = "pointmaze-medium-navigate-v0", "antmaze-medium-navigate-v0"
HUMANOID, SOCCER = "humanoidmaze-medium-navigate-v0", "antsoccer-arena-navigate-v0"
BALL = slice(15, 17)
MEDIUM = "pointmaze-medium-v0"
KEY = jax.random.key(5)


@dataclass
class Walker:
    """Walks straight to the goal at full speed times ``speed``; 0 stands still."""

    speed: float
    rows: int = 0
    calls: int = 0

    def sample_rows(
        self, keys: jax.Array, states: ArrayLike, goals: ArrayLike, steps: int | None = None
    ) -> FloatArray:
        assert keys.shape == (len(np.asarray(states)),)
        assert steps == 10
        self.rows += len(np.asarray(states))
        self.calls += 1
        towards = np.asarray(goals, np.float32)[:, :2] - np.asarray(states, np.float32)[:, :2]
        return np.asarray(np.clip(self.speed * 100 * towards, -self.speed, self.speed), np.float32)


class Wanderer:
    """Moves by its keys alone."""

    def __init__(self, actions: int) -> None:
        def draw(key: jax.Array) -> jax.Array:
            return jax.random.uniform(key, (actions,), minval=-1.0)

        self._draw = jax.vmap(draw)

    def sample_rows(
        self, keys: jax.Array, states: ArrayLike, goals: ArrayLike, steps: int | None = None
    ) -> FloatArray:
        del states, goals, steps
        return np.asarray(self._draw(keys), np.float32)


def open_room() -> Trajectories:
    """Two rows in the middle of cell (1, 1) of the medium maze, whose right neighbour is free."""
    maze = Maze.of(make_env(MEDIUM))
    assert not maze.walls[1, 1:3].any()
    zeros = np.zeros((2, 2), np.float32)
    ends = np.array([False, True])
    return Trajectories(zeros, zeros, ends, zeros, zeros, source="the open room")


def starts_at_row_0(goal: tuple[float, float], actions: ArrayLike) -> CandidateStarts:
    first = np.asarray(actions, np.float32)
    n = len(first)
    goals = np.tile(np.array(goal, np.float32), (n, 1))
    zeros = np.zeros(n, np.int64)
    return CandidateStarts(zeros, goals, first, zeros, zeros)


def returns_in(
    environment: str,
    data: Trajectories,
    starts: CandidateStarts,
    policy: KeyedPolicy,
    rules: RolloutRules,
    ddim_steps: int = 10,
    tick: Callable[[float], None] | None = None,
) -> NDArray[np.float64]:
    """Returns in a maze when a policy goes on that draws from keys."""
    goes_on = ModelContinuation(policy, KEY, ddim_steps)
    make = partial(MazeEnvironments, environment)
    return rollout_returns(make, data, starts, goes_on, rules, tick)


def by_hand(policy: Walker, goal: tuple[float, float], horizon: int = 200) -> FloatArray:
    """Returns of first actions that go forth, stay, and go back, divided out of gamma^t."""
    room = open_room()
    starts = starts_at_row_0(goal, [(1, 0), (0, 0), (-1, 0)])
    rules = RolloutRules(horizon, gamma=0.9)
    return returns_in(MEDIUM, room, starts, policy, rules).astype(np.float32)


def test_returns_in_an_open_room_are_known() -> None:
    # A step is 0.2, and 1.0 is near enough: from 3.85 away, 2.85 are left to walk, 15 steps.
    for policy, goal, horizon, steps in (
        (Walker(1.0), (3.85, 0.0), 200, (15, 16, 17)),
        (Walker(1.0), (3.85, 0.0), 15, (15, None, None)),
        (Walker(1.0), (3.85, 0.0), 14, (None, None, None)),
        (Walker(0.5), (3.85, 0.0), 200, (28, 30, 32)),
        (Walker(0.0), (3.85, 0.0), 50, (None, None, None)),
        # The judged action alone, and a state that is already there: both count at t = 1.
        (Walker(0.0), (1.1, 0.0), 50, (1, None, None)),
        (Walker(0.0), (0.9, 0.0), 50, (1, 1, None)),
    ):
        expected = [0.0 if t is None else 0.9**t for t in steps]
        np.testing.assert_allclose(by_hand(policy, goal, horizon), expected, rtol=1e-6)


def slow_return(
    simulator: Simulator,
    data: Trajectories,
    starts: CandidateStarts,
    i: int,
    seeker: slice,
    tolerance: float,
    horizon: int,
) -> float:
    """One rollout in the package's own environment, keys folded in one by one."""
    simulator.restore(data, int(starts.rows[i]))
    action = starts.actions[i]
    for t in range(1, horizon + 1):
        if t > 1:
            key = KEY
            for number in (starts.query[i], starts.repeat[i], t):
                key = jax.random.fold_in(key, int(number))
            width = starts.actions.shape[1]
            action = np.asarray(jax.random.uniform(key, (width,), minval=-1.0), np.float32)
        assert starts.goals is not None
        position = simulator.step(action)[seeker]
        if np.hypot(*(position - starts.goals[i, seeker].astype(np.float64))) <= tolerance:
            return 0.99**t
    return 0.0


@pytest.mark.parametrize(
    ("name", "count", "tolerance", "away", "horizon"),
    [
        (POINT, 14, 1.0, 1.4, 20),
        (ANT, 8, 0.5, 0.53, 12),
        (HUMANOID, 8, 0.5, 0.51, 12),
        (SOCCER, 10, 0.5, 0.7, 12),
    ],
)
def test_returns_are_those_of_the_slow_loop(
    name: str,
    count: int,
    tolerance: float,
    away: float,
    horizon: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Few slots and rows per call: rollouts start while others are on their way.
    monkeypatch.setattr(rollouts, "SLOTS", 3)
    monkeypatch.setattr(rollouts, "BLOCK", 4)
    data, task = load_file(DATA / f"{name}-val.npz"), parse_name(name)
    seeker = BALL if name == SOCCER else slice(0, 2)
    rng = np.random.default_rng(1)
    rows = rng.choice(data.transitions, count)
    goals = data.observations[rows].copy()
    angle = rng.uniform(0, 2 * np.pi, count)
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    goals[:, seeker] += away * direction
    if name == SOCCER:  # nobody touches the ball in so few steps: it rolls, faster and faster
        assert data.qvel is not None
        qvel = data.qvel.copy()
        qvel[rows, -6:-4] = np.linspace(0.5, 5.0, count)[:, None] * direction
        seen = np.hstack([data.observations[:, : -qvel.shape[1]], qvel])
        data = replace(data, observations=seen, qvel=qvel)
    actions = rng.uniform(-1, 1, (count, data.actions.shape[1])).astype(np.float32)
    starts = CandidateStarts(
        rows, goals, actions, rng.permutation(count), rng.integers(0, 3, count)
    )
    policy = Wanderer(actions.shape[1])
    fast = returns_in(task.environment, data, starts, policy, RolloutRules(horizon))
    simulator = Simulator(task)
    slow = [
        slow_return(simulator, data, starts, i, seeker, tolerance, horizon) for i in range(count)
    ]
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    assert 0 < np.count_nonzero(fast) < count  # else this would not see when they end
    assert len(set(fast.tolist())) > 2


@pytest.fixture(scope="module")
def policy() -> DiffusionPolicy:
    model = Diffusion(hidden=(32, 32), levels=20, time_dim=8)
    return DiffusionPolicy(model, jax.jit(model.init, static_argnums=(1, 2, 3))(KEY, 2, 2, 2))


@pytest.fixture(scope="module")
def data() -> Trajectories:
    return load_file(DATA / f"{POINT}-val.npz")


def some_starts(data: Trajectories, queries: int, actions: int, repeats: int) -> CandidateStarts:
    """A few actions of a few queries, each repeated."""
    rng = np.random.default_rng(0)
    query, action, repeat = (i.ravel() for i in np.indices((queries, actions, repeats)))
    rows = rng.choice(40, queries, replace=False)[query]
    drawn = rng.uniform(-1, 1, (queries, actions, 2)).astype(np.float32)
    return CandidateStarts(rows, data.observations[rows + 14], drawn[query, action], query, repeat)


def returns_of(policy: DiffusionPolicy, data: Trajectories, starts: CandidateStarts) -> FloatArray:
    found = returns_in(MEDIUM, data, starts, policy, RolloutRules(horizon=30), ddim_steps=3)
    return found.astype(np.float32)


def test_repeating_gives_the_same_bits_in_any_company(
    policy: DiffusionPolicy, data: Trajectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = some_starts(data, 6, 4, 5)
    first = returns_of(policy, data, starts)
    assert len(np.unique(first)) > 10
    np.testing.assert_array_equal(returns_of(policy, data, starts), first)
    order = np.random.default_rng(2).permutation(len(starts))
    np.testing.assert_array_equal(returns_of(policy, data, starts.take(order)), first[order])
    few = order[:7]
    np.testing.assert_array_equal(returns_of(policy, data, starts.take(few)), first[few])
    monkeypatch.setattr(rollouts, "SLOTS", 17)
    np.testing.assert_array_equal(returns_of(policy, data, starts), first)


def test_random_numbers_are_common_to_the_actions_of_a_query(
    policy: DiffusionPolicy, data: Trajectories
) -> None:
    starts = some_starts(data, 5, 2, 6)
    first = returns_of(policy, data, starts).reshape(5, 2, 6)
    assert (first.std(axis=2) > 0).any()  # repetitions differ
    # The same actions under other numbers of query or repetition see other random numbers.
    for other in (
        CandidateStarts(starts.rows, starts.goals, starts.actions, starts.query + 9, starts.repeat),
        CandidateStarts(starts.rows, starts.goals, starts.actions, starts.query, starts.repeat + 9),
    ):
        assert (returns_of(policy, data, other).reshape(5, 2, 6) != first).mean() > 0.1
    # Whoever picks the first action gets what the first action got.
    swapped = starts.actions.reshape(5, 2, 6, 2)[:, ::-1].reshape(-1, 2)
    second = CandidateStarts(starts.rows, starts.goals, swapped, starts.query, starts.repeat)
    np.testing.assert_array_equal(returns_of(policy, data, second).reshape(5, 2, 6), first[:, ::-1])


def test_equal_rollouts_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "BLOCK", 1)
    room = open_room()
    one = starts_at_row_0((3.85, 0.0), [(1, 0), (0, 0), (-1, 0)])
    twice = one.take(np.array([2, 0, 1, 0, 2, 2]))
    alone, together = Walker(1.0), Walker(1.0)
    rules, ended = RolloutRules(gamma=0.9), list[float]()
    expected = returns_in(MEDIUM, room, one, alone, rules)
    found = returns_in(MEDIUM, room, twice, together, rules, tick=ended.append)
    np.testing.assert_array_equal(found, expected[[2, 0, 1, 0, 2, 2]])
    assert alone.rows == together.rows == 14 + 15 + 16
    assert ended == sorted(ended)
    assert ended[-1] == 1
    kept, which = twice.distinct()
    np.testing.assert_array_equal(kept, [0, 1, 2])
    np.testing.assert_array_equal(which, [0, 1, 2, 1, 0, 0])


def test_the_policy_is_asked_for_all_rollouts_of_a_step_together() -> None:
    policy = Walker(1.0)
    by_hand(policy, (3.85, 0.0))
    assert policy.calls == 16  # the longest takes 17 steps, and the first is the judged action


def test_an_accelerator_is_asked_once_where_a_processor_is_asked_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollouts, "BLOCK", 1)
    calls = []
    for there in (False, True):
        monkeypatch.setattr(defaults, "on_gpu", lambda there=there: there)
        policy = Walker(1.0)
        np.testing.assert_allclose(by_hand(policy, (3.85, 0.0)), 0.9 ** np.array([15, 16, 17]))
        calls.append(policy.calls)
    assert calls == [14 + 15 + 16, 16]


def test_in_soccer_it_is_the_ball_that_must_reach_its_place_in_the_goal() -> None:
    data = load_file(DATA / "antsoccer-arena-navigate-v0-val.npz")
    goals = np.tile(data.observations[5], (3, 1))
    goals[1, :2] += 3  # the agent elsewhere
    goals[2, 15:17] += 3  # the ball elsewhere
    zeros = np.zeros(3, np.int64)
    starts = CandidateStarts(zeros + 5, goals, np.zeros((3, 8), np.float32), np.arange(3), zeros)
    found = returns_in("antsoccer-arena-v0", data, starts, Wanderer(8), RolloutRules(horizon=1))
    np.testing.assert_allclose(found, [0.99, 0.99, 0.0])


def test_no_rollouts_give_no_returns(policy: DiffusionPolicy, data: Trajectories) -> None:
    none: IntArray = np.zeros(0, np.int64)
    assert returns_of(policy, data, some_starts(data, 2, 1, 1).take(none)).shape == (0,)


def test_rollouts_that_cannot_be_made_are_refused(
    policy: DiffusionPolicy, data: Trajectories
) -> None:
    good = some_starts(data, 2, 1, 1)

    def refused(message: str, starts: CandidateStarts, source: Trajectories = data) -> None:
        with pytest.raises(InputError, match=message):
            returns_of(policy, source, starts)

    far = CandidateStarts(good.rows + 1_000, good.goals, good.actions, good.query, good.repeat)
    refused("the queries are of another data set", far)
    large = CandidateStarts(good.rows, good.goals, good.actions * 9, good.query, good.repeat)
    refused("The action of rollout 0 is .* within ±1", large)
    assert good.goals is not None
    short = CandidateStarts(good.rows, good.goals[:1], good.actions, good.query, good.repeat)
    refused(r"different lengths: \[1, 2\] rows", short)
    refused("it is of another task", good, load_file(DATA / f"{ANT}-val.npz"))
    stateless = Trajectories(data.observations, data.actions, data.terminals, source="this")
    refused("no qpos and qvel", good, stateless)
    with pytest.raises(InputError, match="horizon"):
        RolloutRules(horizon=0)


# The judge that walks, against walks by hand.


STORED = records(3, 8, 0)
ROWS = np.array([1, 9, 17])
RULES = RolloutRules(horizon=4, gamma=0.9)
CANDIDATES = np.random.default_rng(0).uniform(-1, 1, (3, 2, 2)).astype(np.float32)


def goes_on(keys: IntArray, seen: FloatArray, goals: None) -> FloatArray:
    """Depends on query, repetition and step."""
    assert goals is None
    turn = keys @ np.array([1.0, 2.0, 3.0])
    chosen: FloatArray = np.stack([np.cos(turn), seen[:, 0]], axis=1).astype(np.float32)
    return chosen.clip(-1, 1)


def test_the_candidate_acts_first_and_the_policy_goes_on() -> None:
    found = candidate_returns(
        partial(Copies, Plane),
        RolloutStarts(STORED, ROWS, None),
        CANDIDATES,
        goes_on,
        RULES,
        repeats=2,
    )
    assert found.shape == (2, 3, 2)
    for repeat in range(2):
        for query, row in enumerate(ROWS.tolist()):
            for i in range(2):
                at, total = STORED.observations[row].astype(np.float64), 0.0
                action = CANDIDATES[query, i]
                for step in range(RULES.horizon):
                    if step:
                        key = np.array([[query, repeat, step]])
                        action = goes_on(key, at.astype(np.float32)[None], None)[0]
                    at = at + STEP * action.astype(np.float64)
                    total -= RULES.gamma**step * float(np.linalg.norm(at))
                assert found[repeat, query, i] == pytest.approx(total, abs=1e-12)


def test_with_goals_a_value_is_the_discounted_success() -> None:
    goals = STORED.observations[ROWS] + np.array([0.3, 0.0], np.float32)
    towards = np.tile(np.array([1.0, 0.0], np.float32), (3, 1, 1))
    found = candidate_returns(
        partial(Copies, GoalPlane),
        RolloutStarts(STORED, ROWS, goals),
        np.concatenate([towards, -towards], axis=1),
        lambda keys, *_: np.tile(np.array([1.0, 0.0], np.float32), (len(keys), 1)),
        RULES,
        repeats=1,
    )
    # 0.3 away and reached within 0.15: two steps of 0.1; one step away first, and four are needed.
    np.testing.assert_allclose(found[0], [[0.9**2, 0.9**4]] * 3)
