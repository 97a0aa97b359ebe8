"""Behaviour models through the critics' training session, and the gap to held-out data."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.training.toy import toy_data, toy_dataset, walks
from toptail.errors import InputError
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import (
    DiffusionPolicy,
    DiffusionRun,
    RowErrors,
    held_out_loss,
    load_policy,
    loss_gap,
)
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.data import GoalSampling, device_data
from toptail.lab.training.loop import TrainConfig, make_train
from toptail.lab.training.session import train_runs

SETTINGS = (("hidden", (8,)), ("levels", 6), ("time_dim", 4), ("ema_decay", 0.9))
CONFIG = DiffusionRun(
    "walks", "diffusion", 6, 16, learning_rate=1e-2, log_every=3, settings=SETTINGS
)


def test_a_run_is_trained_recorded_and_loaded_as_a_policy(tmp_path: Path) -> None:
    runs = train_runs(CONFIG, toy_data(), [42, 7], tmp_path)
    assert [run.state for run in runs] == ["finished", "finished"]
    folder = tmp_path / "walks" / "diffusion" / "seed-7"
    policy = load_policy(folder, "walks", CONFIG.hash)
    assert policy.model == Diffusion((8,), levels=6, time_dim=4, ema_decay=0.9)
    stored = load_params(folder / "params.safetensors")
    in_memory = DiffusionPolicy(CONFIG.build(), stored)
    query = (np.zeros((2, 2)), np.ones((2, 2)))
    key = jax.random.key(0)
    np.testing.assert_array_equal(policy.sample(key, *query, 3), in_memory.sample(key, *query, 3))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [3, 6]
    assert all(line["loss"] > 0 and line["low_noise_loss"] > 0 for line in lines)
    # Finished runs are left as they are.
    before = (folder / "record.json").read_bytes()
    train_runs(CONFIG, toy_data(), [42, 7], tmp_path)
    assert (folder / "record.json").read_bytes() == before


def test_runs_of_another_task_and_damaged_runs_are_refused(tmp_path: Path) -> None:
    train_runs(CONFIG, toy_data(), [1], tmp_path)
    folder = tmp_path / "walks" / "diffusion" / "seed-1"
    with pytest.raises(InputError, match="trained on walks, not on maze"):
        load_policy(folder, "maze")
    (folder / "params.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="not the file that training wrote"):
        load_policy(folder)


def test_other_critics_and_unknown_settings_are_refused() -> None:
    with pytest.raises(InputError, match="'raw' is not a behaviour model"):
        DiffusionRun("walks", "raw", 7)
    with pytest.raises(InputError, match="no setting 'embed_dim'"):
        DiffusionRun("walks", "diffusion", 7, settings=(("embed_dim", 4),))


def test_the_configuration_comes_back_from_its_content() -> None:
    assert DiffusionRun.from_content(CONFIG.content) == CONFIG
    assert CONFIG.content["critic_fields"]["levels"] == 6


def test_held_out_loss_is_the_training_loss_of_the_average() -> None:
    data, sampling = device_data(toy_dataset().val), GoalSampling()
    model = CONFIG.build()
    params = jax.jit(model.init, static_argnums=(1, 2, 3))(jax.random.key(0), 2, 2, 2)
    # Only the average is read: other parameters would give other errors.
    policy = DiffusionPolicy(model, jax.tree.map(np.zeros_like, params) | {"target": params})
    del policy.params["target"]["target"]
    key = jax.random.key(4)
    rows = held_out_loss(policy, data, key, sampling=sampling, rows=50)
    key_rows, key_level, key_noise = jax.random.split(key, 3)
    batch = jax.jit(sampling, static_argnums=2)(key_rows, data, 50)
    noise = jax.random.normal(key_noise, (50, 2))
    level = model.draw_levels(key_level, 50)
    expected = jax.jit(model.errors)(params, batch.states, batch.actions, batch.goals, level, noise)
    np.testing.assert_allclose(rows.error, expected, rtol=1e-4)
    # Four walks of 20 rows: the trajectory of a row is where its state is.
    row = np.asarray(jax.jit(sampling.rows, static_argnums=2)(key_rows, data, 50)[0])
    assert (np.unique(row // 20, return_inverse=True)[1] == rows.trajectory).all()


def test_the_gap_is_a_difference_of_means_with_a_clustered_interval() -> None:
    rng = np.random.default_rng(0)

    def split(shift: float) -> RowErrors:
        """60 trajectories of 10 rows that are all alike: 60 numbers, not 600."""
        own = rng.normal(shift, 0.5, 60)
        return RowErrors(np.repeat(own, 10), np.repeat(np.arange(60), 10))

    train, held_out = split(1.0), split(2.0)
    gap = loss_gap(train, held_out, np.random.default_rng(1))
    np.testing.assert_allclose(gap.gap, held_out.error.mean() - train.error.mean())
    np.testing.assert_allclose([gap.train, gap.held_out], [1.0, 2.0], atol=0.25)
    standard_error = np.sqrt((train.error.var() + held_out.error.var()) / 60)
    np.testing.assert_allclose((gap.high - gap.low) / 2, 1.96 * standard_error, rtol=0.1)
    assert gap.low < gap.gap < gap.high


@pytest.mark.slow
def test_a_model_that_memorizes_has_a_gap() -> None:
    """120 rows and 1,500 steps: the model knows them, and no others."""
    train, *unseen = (device_data(walks(n, 20, seed)) for n, seed in ((6, 3), (40, 4), (40, 5)))
    model = Diffusion(hidden=(64, 64), levels=20, time_dim=8, ema_decay=0.99)
    config = TrainConfig(model, 1_500, 64, 3e-3, GoalSampling())
    state, _ = jax.jit(make_train(config))(jax.random.key(0), train)
    policy = DiffusionPolicy(model, state.params)
    known, new, other = (
        held_out_loss(policy, data, jax.random.key(i), sampling=GoalSampling(), rows=2_000)
        for i, data in enumerate((train, *unseen))
    )
    gap = loss_gap(known, new, np.random.default_rng(0))
    assert gap.low > 0
    assert gap.held_out > 1.5 * gap.train
    none = loss_gap(other, new, np.random.default_rng(0))
    assert none.low < 0 < none.high
