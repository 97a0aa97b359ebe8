"""Fits to a critic's values: what the inputs hold is found, what they lack is not."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.critics.networks import join
from toptail.lab.tasks.files import load_file
from toptail.lab.training.data import device_data
from toptail_paper.zoo.fitted import fit, write_fitted

FILES = Path(__file__).parents[3] / "tests" / "tasks" / "data"


def values(states: jax.Array, actions: jax.Array, goals: jax.Array) -> jax.Array:
    return ((goals - states) / 10 * actions).sum(axis=-1)


def without_actions(states: jax.Array, _: jax.Array, goals: jax.Array) -> jax.Array:
    return join(states, goals)


@pytest.mark.usefixtures("usual_compiler")
def test_a_fit_orders_actions_by_what_its_inputs_hold() -> None:
    data = device_data(load_file(FILES / "pointmaze-medium-navigate-v0.npz"))
    sizes = {"hidden": (32, 32), "steps": 1500, "batch_size": 128, "learning_rate": 3e-3}
    rng = np.random.default_rng(0)
    at = rng.integers(len(data.observations), size=(2, 200))
    states, goals = (jnp.asarray(data.observations)[rows] for rows in at)
    actions = jnp.asarray(rng.uniform(-1, 1, (200, 2)), dtype=jnp.float32)
    wanted = np.asarray(values(states, actions, goals))
    found = {
        read.__name__: np.asarray(
            fit(read, values, data, jax.random.key(0), **sizes)(states, actions, goals)  # type: ignore[arg-type]
        )
        for read in (join, without_actions)
    }
    assert np.corrcoef(found["join"], wanted)[0, 1] > 0.9
    assert abs(np.corrcoef(found["without_actions"], wanted)[0, 1]) < 0.4


def test_there_must_be_a_check_of_tdq(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no check of TD-Q"):
        write_fitted(tmp_path, "antmaze-medium-navigate-v0")
