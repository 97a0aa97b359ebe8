"""Fits to a critic's values: what the inputs hold is found, what they lack is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paper.tests.zoo.test_zoo import checked
from toptail.cli import main
from toptail.errors import InputError
from toptail.io.arrays import read_arrays
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.critics.networks import StackedEncoders, join
from toptail.lab.critics.raw import Raw
from toptail.lab.tasks.files import load_file
from toptail.lab.tasks.queries import load_queries
from toptail.lab.training.data import device_data
from toptail_paper.zoo.fitted import embedded, fit, fitted_scores, write_fitted
from toptail_paper.zoo.scores import score_table
from toptail_paper.zoo.summary import TASK

FILES = Path(__file__).parents[3] / "tests" / "tasks" / "data"


def values(states: jax.Array, actions: jax.Array, goals: jax.Array) -> jax.Array:
    return ((goals - states) / 10 * actions).sum(axis=-1)


@pytest.mark.usefixtures("usual_compiler")
def test_a_fit_orders_actions_by_what_its_inputs_hold() -> None:
    data = device_data(load_file(FILES / "pointmaze-medium-navigate-v0.npz"))
    sizes = {"hidden": (32, 32), "steps": 1500, "batch_size": 128, "learning_rate": 3e-3}
    rng = np.random.default_rng(0)
    at = rng.integers(len(data.observations), size=(2, 200))
    states, goals = (jnp.asarray(data.observations)[rows] for rows in at)
    actions = jnp.asarray(rng.uniform(-1, 1, (200, 2)), dtype=jnp.float32)
    wanted = np.asarray(values(states, actions, goals))
    found = np.asarray(fit(join, values, data, jax.random.key(0), **sizes)(states, actions, goals))  # type: ignore[arg-type]
    assert np.corrcoef(found, wanted)[0, 1] > 0.9


def test_every_seed_of_both_critics_is_fitted_and_scores_its_query(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").mkdir()
    for split in ("", "-val"):
        shutil.copy(FILES / f"{TASK}{split}.npz", tmp_path / "data")
    for critic, seeds, sizes in (("tdq", "1,2", ""), ("raw", "2,3", ",embed_dim=4")):
        words = ["train", "--task", str(tmp_path / "data" / f"{TASK}.npz"), "--critics", critic]
        words += ["--seeds", seeds, "--steps", "6", "--out", str(tmp_path / "runs")]
        assert main([*words, "--set", f"hidden=8,depth=1,batch_size=16{sizes}"]) == 0
    home = tmp_path / "check" / TASK / "tdq"
    checked(home, "tdq", 0.1)
    made = write_fitted(tmp_path, TASK)
    data = device_data(load_file(tmp_path / "data" / f"{TASK}.npz"))
    again = fitted_scores(tmp_path / "runs", TASK, 2, data)
    queries, pools = load_queries(home / "queries.npz"), read_arrays(made / "uniform" / "pools.npz")
    assert set(pools) == {"actions", "scores/fitted_phi@2", "scores/fitted_inputs@2"}
    for name, score in again.items():
        rows = [np.repeat(x[7:8], 4, axis=0) for x in (queries.states, queries.goals)]
        own = score(jnp.asarray(rows[0]), jnp.asarray(pools["actions"][7]), jnp.asarray(rows[1]))
        np.testing.assert_allclose(pools[f"scores/{name}@2"][7], own, rtol=1e-4, atol=1e-5)
    found = score_table([home, made], "uniform").column_names
    assert {"tdq@1", "fitted_phi@2", "fitted_inputs@2"} <= set(found)


def test_what_is_read_are_all_copies_of_phi_and_psi() -> None:
    critic = Raw(StackedEncoders((8,), embed_dim=3, ensemble=2))
    params = critic.init(jax.random.key(0), 2, 2, 2)
    s, a, g = (jnp.ones((5, 2)) * x for x in (0.1, 0.2, 0.3))
    phi, psi = critic.embed(params, s, a, g)
    read = embedded(TrainedCritic(critic, params))(s, a, g)
    np.testing.assert_allclose(read, np.concatenate([phi[0], phi[1], psi[0], psi[1]], axis=-1))


def test_there_must_be_a_check_of_tdq(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no check of TD-Q"):
        write_fitted(tmp_path, "antmaze-medium-navigate-v0")
