"""Batches of runs that differ in numbers, against each run alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.training.toy import toy_config, toy_data
from toptail.lab.critics.base import Params
from toptail.lab.training.batches import BatchRun, batches, numbers_of, train_batch
from toptail.lab.training.loop import compile_chunk, fresh_state, shapes_of, take_row

STEPS = 6


def config(critic: str, steps: int = STEPS, **settings: Any) -> Any:
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
    trainings = [config(critic, **settings) for settings in variants]
    assert batches(trainings) == [[0, 1]]
    runs = [BatchRun(training, seed) for training, seed in zip(trainings, (3, 4), strict=True)]
    ((step, found),) = train_batch(runs, toy_data().rows, [STEPS], tmp_path, "data")
    assert step == STEPS
    assert_near(found[1], alone(trainings[1], 4))  # the first is what the program is compiled for
    first, second = (jax.tree.leaves(own)[0] for own in found)
    assert not np.allclose(first, second)


def test_what_changes_shapes_or_the_program_is_another_batch() -> None:
    made = [
        config("raw"),
        config("raw", positive_weight=2.0),
        config("raw", layer_norm=False),
        config("raw", contrast="symmetric_info_nce"),
        config("tdq"),
        config("tdq", reward="0/1"),
        config("tdq", gamma=0.9),
        config("raw", hidden=(16,)),
    ]
    assert batches(made) == [[0, 1], [2], [3], [4, 6], [5], [7]]
    assert numbers_of(config("tdq", gamma=0.9))["learner.bellman.gamma"] == 0.9


def test_seeds_have_the_same_bits_and_a_stopped_batch_resumes(tmp_path: Path) -> None:
    training = config("raw")
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
