"""Behaviour models through the critics' training session."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.training.toy import toy_data
from toptail.errors import InputError
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import (
    DiffusionPolicy,
    DiffusionRun,
    load_policy,
)
from toptail.lab.training.checkpoints import load_params
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
