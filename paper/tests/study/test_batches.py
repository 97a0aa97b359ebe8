"""Batches of runs that differ in numbers, against each run alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.training.test_loop import SMALL, assert_trees_equal, config_of, data_of
from tests.training.toy import toy_config, toy_data
from toptail.errors import InputError
from toptail.lab.critics.base import Params
from toptail.lab.critics.raw import Raw
from toptail.lab.training.loop import compile_chunk, fresh_state, make_train, shapes_of, take_row
from toptail_paper.controlled.networks import Encoders
from toptail_paper.study.batches import BatchRun, batches, numbers_of, train_batch, train_seeds

STEPS = 6
TINY = Encoders(hidden=(4,), embed_dim=2)


def of_critic(critic: str, steps: int = STEPS, **settings: Any) -> Any:
    own = {name: settings.pop(name) for name in ("gamma", "reward") if name in settings}
    small = dict(toy_config().settings)
    made = toy_config(
        critic=critic, steps=steps, settings=tuple({**small, **settings}.items()), **own
    )
    return made.training


def alone(training: Any, seed: int, chunk: int = STEPS) -> Params:
    """The same run as `toptail train` runs it."""
    data = toy_data().rows
    state = fresh_state(training, [seed], data)
    for _ in range(0, STEPS, chunk):
        state, _ = compile_chunk(training, chunk, 2, shapes_of(data))(state, data)
    return take_row(jax.tree.map(np.asarray, state.params), 0)


def assert_near(got: Params, wanted: Params) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-6), got, wanted)


@pytest.mark.parametrize(
    ("critic", "variants"),
    [
        ("cosine", [{"temperature": 0.1, "positive_weight": 1.0, "positive_gamma": 0.99},
                    {"temperature": 0.3, "positive_weight": 16.0, "positive_gamma": 0.9}]),
        ("tdq", [{"expectile": 0.9, "gamma": 0.99, "current": 0.2, "future": 0.5},
                 {"expectile": 0.7, "gamma": 0.9, "current": 0.0, "future": 1.0}]),
    ],
)  # fmt: skip
def test_a_run_of_a_batch_is_the_same_run_alone(
    critic: str, variants: list[dict[str, Any]], tmp_path: Path
) -> None:
    trainings = [of_critic(critic, **settings) for settings in variants]
    assert batches(trainings) == [[0, 1]]
    runs = [BatchRun(training, seed) for training, seed in zip(trainings, (3, 4), strict=True)]
    ((step, found),) = train_batch(runs, toy_data().rows, [STEPS], tmp_path, "data")
    assert step == STEPS
    assert_near(found[1], alone(trainings[1], 4))  # the first is what the program is compiled for
    first, second = (jax.tree.leaves(own)[0] for own in found)
    assert not np.allclose(first, second)


def test_what_changes_shapes_or_the_program_is_another_batch() -> None:
    made = [
        of_critic("raw"),
        of_critic("raw", positive_weight=2.0),
        of_critic("raw", layer_norm=False),
        of_critic("raw", contrast="symmetric_info_nce"),
        of_critic("tdq"),
        of_critic("tdq", reward="0/1"),
        of_critic("tdq", gamma=0.9),
        of_critic("raw", hidden=(16,)),
    ]
    assert batches(made) == [[0, 1], [2], [3], [4, 6], [5], [7]]
    assert numbers_of(of_critic("tdq", gamma=0.9))["learner.bellman.gamma"] == 0.9


def test_seeds_have_the_same_bits_and_a_stopped_batch_resumes(tmp_path: Path) -> None:
    training = of_critic("raw")
    runs = [BatchRun(training, 1), BatchRun(training, 2)]
    data, wanted = toy_data().rows, [2, 4, STEPS]
    whole = list(train_batch(runs, data, wanted, tmp_path / "whole", "data"))
    assert [step for step, _ in whole] == wanted
    jax.tree.map(np.testing.assert_array_equal, whole[-1][1][1], alone(training, 2, 2))
    stopped = train_batch(runs, data, wanted, tmp_path / "stopped", "data")
    next(stopped)
    next(stopped)  # which stores what came before
    del stopped
    rest = list(train_batch(runs, data, wanted, tmp_path / "stopped", "data"))
    assert [step for step, _ in rest] == [4, STEPS]
    jax.tree.map(np.testing.assert_array_equal, rest[-1][1], whole[-1][1])
    again = train_batch(runs, data, wanted, tmp_path / "stopped", "other data")
    assert next(again)[0] == 2


@pytest.mark.slow
@pytest.mark.usefixtures("usual_compiler")
def test_seeds_do_not_touch_each_other() -> None:
    config = config_of(Raw(TINY))
    data = {seed: data_of(seed) for seed in (42, 43, 44)}
    (together,) = train_seeds(config, data)
    (alone,) = train_seeds(config, {43: data[43]})
    assert_trees_equal(alone.params[43], together.params[43])
    assert alone.info[43] == together.info[43]
    # And the mapped run is the single run, which XLA compiles differently, up to rounding.
    state, _ = jax.jit(make_train(config))(jax.random.key(43), data[43])
    for a, b in zip(jax.tree.leaves(alone.params[43]), jax.tree.leaves(state.params), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-5)


def test_snapshots_are_shorter_runs_and_progress_adds_up() -> None:
    config, data = config_of(SMALL), {seed: data_of(seed) for seed in (0, 1)}
    done: list[float] = []
    snapshots = list(train_seeds(config, data, [4, 12], lambda _, share: done.append(share)))
    assert [snapshot.step for snapshot in snapshots] == [4, 12]
    assert done == pytest.approx([1 / 3, 2 / 3, 1])
    (short,) = train_seeds(replace(config, steps=4), data)
    assert_trees_equal(snapshots[0].params[1], short.params[1])
    first, second = (jax.tree.leaves(short.params[seed]) for seed in (0, 1))
    assert any(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("wanted", [[5, 4, 12], [0, 12], [4, 8], [4, 4, 12]])
def test_impossible_snapshots_are_refused(wanted: list[int]) -> None:
    with pytest.raises(InputError, match="Snapshots must ascend"):
        list(train_seeds(config_of(SMALL), {0: data_of(0)}, wanted))
