"""The example of a critic that a user adds: it is found, and draws a further column."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np

from tests.critics import slow_full as slow
from tests.critics.examples import example_entry, registered
from tests.critics.examples.ranked import Ranked
from tests.critics.facts import LN2, Facts, Q, of_members
from tests.critics.full_cases import SLOW, make
from tests.training.toy import toy_config, toy_data, toy_dataset
from toptail.lab.critics.base import Batch, Info, Params, column
from toptail.lab.critics.registry import CRITICS, names
from toptail.lab.critics.registry import entry as entry_of
from toptail.lab.scorers.runs import of_runs
from toptail.lab.training.data import GoalSampling
from toptail.lab.training.loop import TrainConfig, init_state, train_step
from toptail.lab.training.session import train_runs


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    del frozen
    near, far = (
        slow.joint(params, set_, rows.states, rows.actions, goals)[..., 0]
        for goals in (rows.goals, rows.further["later"])
    )
    return {"loss": float(np.log1p(np.exp(far - near)).mean()), "gap": float((near - far).mean())}


def slow_reads(params: slow.Tree, s: slow.Array, a: slow.Array, g: slow.Array) -> slow.Tree:
    return of_members("rank", slow.joint(params, SLOW, s, a, g)[..., 0])


FACTS = Facts(LN2, "rank", 2 * Q, slow_loss, slow_reads, further={"later": 3})


class Seen(Ranked):
    """Logs which rows were drawn."""

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        loss, info = super().loss(params, batch, key)
        drawn = {name: column(batch, name) for name in ("rows", "goal_rows", "goals", "later")}
        return loss, {**info, **drawn, "offsets": column(batch, "offsets")}


def test_a_further_column_is_drawn_from_the_trajectories_of_the_batch() -> None:
    critic = make("ranked")
    assert isinstance(critic, Ranked)
    sampling = GoalSampling(positive_window=3)
    config = TrainConfig(Seen(critic.hidden), batch_size=128, sample=sampling)
    data, train = toy_data().rows, toy_dataset().train
    state = init_state(config, jax.random.key(3), data)
    _, found = jax.jit(lambda s: train_step(config, s, data))(state)
    rows, goals = np.asarray(found["rows"]), np.asarray(found["goal_rows"])
    np.testing.assert_array_equal(goals - rows, found["offsets"])
    np.testing.assert_array_equal(train.trajectory[goals], train.trajectory[rows])
    np.testing.assert_array_equal(train.observations[goals], found["goals"])
    steps = set()
    for goal, later in zip(goals, np.asarray(found["later"]), strict=True):
        row = int(np.flatnonzero((train.observations == later).all(axis=1))[0])
        end = train.ends[train.trajectory[goal]]
        assert goal < row <= end or goal == end == row
        steps.add(row - goal)
    assert max(steps) == critic.furthest


def test_the_key_of_a_further_column_is_not_that_of_the_batch() -> None:
    config = TrainConfig(Seen((8,)), batch_size=64, sample=GoalSampling())
    data = toy_data().rows
    state = init_state(config, jax.random.key(3), data)
    plain = TrainConfig(make("mc_regression"), batch_size=64, sample=GoalSampling())
    key, _ = jax.random.split(jax.random.fold_in(state.key, state.step))
    batch = plain.sample(key, data, 64)
    _, found = jax.jit(lambda s: train_step(config, s, data))(state)
    np.testing.assert_array_equal(found["rows"], column(batch, "rows"))


def test_a_new_critic_is_trained_scored_and_named(tmp_path: Path) -> None:
    assert "ranked" not in CRITICS
    with registered("ranked") as entry:
        assert entry == example_entry("ranked")
        assert "ranked" in names("other")
        assert entry_of("ranked[hidden=8]") is entry
        (run,) = train_runs(toy_config(critic="ranked"), toy_data(), [42], tmp_path)
        assert run.state == "finished"
        (scorer,) = of_runs(tmp_path / "walks", ["ranked"], (42,), "walks")
        assert scorer.column == "ranked@42"
    assert "ranked" not in CRITICS
