"""What ``--train`` asks the trainer for, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from paper.tests.semantics.fake_runs import write_run
from paper.tests.semantics.small import small_config, walks_file
from tests.proposals.test_diffusion import CONFIG
from tests.training.toy import SMALL, toy_dataset, walks
from toptail.errors import InputError
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail.lab.training.config import RunConfig
from toptail.lab.training.data import GoalSampling, device_data
from toptail.lab.training.loop import TrainConfig, make_train
from toptail.lab.training.runs import Run, read_run
from toptail_paper.semantics.draws import RowErrors, held_out_loss, loss_gap
from toptail_paper.semantics.train import SemanticsTraining, setting_name, train_semantics
from toptail_paper.study import training as trained

TRAINING = SemanticsTraining(
    critics=("cosine", "tdq"),
    steps=60,
    diffusion_steps=30,
    batch_size=16,
    settings=SMALL,
    diffusion_settings=(("hidden", (8,)), ("levels", 4)),
    temperatures=(0.05,),
    sweep_steps=20,
    sweep_seeds=(0, 1),
)
Asked = list[tuple[RunConfig, tuple[int, ...], Path]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Every call of the trainer, in whose place untrained runs are written."""
    calls: Asked = []

    def write(
        config: RunConfig, _data: object, seeds: Sequence[int], out: Path, **_: Any
    ) -> list[Run]:
        calls.append((config, tuple(seeds), out))
        homes = {seed: out / config.task / config.critic / f"seed-{seed}" for seed in seeds}
        return [
            read_run(home if home.exists() else write_run(config, seed, out))
            for seed, home in homes.items()
        ]

    monkeypatch.setattr(trained, "train_runs", write)
    return calls


def wanted(calls: Asked) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {config.critic: (config.steps, seeds) for config, seeds, _ in calls}


def test_critics_the_oracle_and_behaviour_models_are_trained_once(
    tmp_path: Path, asked: Asked
) -> None:
    config = small_config(walks_file(tmp_path), seeds=(42, 43))
    done = train_semantics(config, TRAINING, tmp_path / "runs")
    assert wanted(asked) == {
        "cosine": (60, (42, 43)),
        "tdq": (60, (42, 43, 7)),
        "diffusion": (30, (42, 13)),
    }
    assert len(done) == 7
    assert asked[0][0].content["critic_fields"]["encoders"]["hidden"] == [8]
    assert asked[2][0].content["critic_fields"]["levels"] == 4
    asked.clear()
    assert train_semantics(config, TRAINING, tmp_path / "runs") == []
    assert asked == []


def test_complete_critics_stay_and_incomplete_ones_are_asked_for(
    tmp_path: Path, asked: Asked
) -> None:
    config = small_config(walks_file(tmp_path), seeds=(42, 43))
    train_semantics(config, TRAINING, tmp_path / "runs")
    asked.clear()
    longer = SemanticsTraining(**{**vars(TRAINING), "steps": 90, "diffusion_steps": 0})
    assert train_semantics(config, longer, tmp_path / "runs") == []
    record = tmp_path / "runs/walks/cosine/seed-43/record.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"state": "invalid"}))
    train_semantics(config, longer, tmp_path / "runs")
    assert wanted(asked) == {"cosine": (90, (42, 43))}


def test_without_tdq_among_the_critics_the_oracle_is_still_trained(
    tmp_path: Path, asked: Asked
) -> None:
    training = SemanticsTraining(**{**vars(TRAINING), "critics": ("cosine",), "diffusion_steps": 0})
    train_semantics(small_config(walks_file(tmp_path)), training, tmp_path / "runs")
    assert wanted(asked) == {"cosine": (60, (42,)), "tdq": (60, (7,))}


def test_play_data_gets_the_critics_of_retrieval_only(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toptail.lab.tasks.files.is_navigation", lambda _task: False)
    training = SemanticsTraining(
        **{**vars(TRAINING), "play_critics": ("raw", "tdq"), "sweep": True}
    )
    training = SemanticsTraining(**{**vars(training), "play_steps": 50})
    train_semantics(small_config(walks_file(tmp_path)), training, tmp_path / "runs")
    assert wanted(asked) == {"raw": (50, (42,)), "tdq": (50, (42,))}


def test_the_sweep_has_a_folder_per_setting(tmp_path: Path, asked: Asked) -> None:
    training = SemanticsTraining(
        **{**vars(TRAINING), "critics": ("tdq",), "diffusion_steps": 0, "sweep": True}
    )
    config = small_config(walks_file(tmp_path))
    train_semantics(config, training, tmp_path / "runs")
    sweep = {out.name: (run, seeds) for run, seeds, out in asked if run.critic == "cosine"}
    assert list(sweep) == [
        *("binary_nce-0.05", "binary_nce-learned"),
        *("symmetric_info_nce-0.05", "symmetric_info_nce-learned"),
    ]
    for name, (run, seeds) in sweep.items():
        fields = run.content["critic_fields"]
        assert (run.steps, seeds) == (20, (0, 1))
        assert name.startswith(fields["contrast"])
        assert fields["learn_temperature"] == name.endswith("learned")
        assert fields["temperature"] == (0.1 if name.endswith("learned") else 0.05)
        assert (tmp_path / "runs/temperature" / name / "walks/cosine/seed-1").is_dir()
    reported = SemanticsTraining(**{**vars(training), "sweep_seeds": (42,)})
    with pytest.raises(InputError, match="Seed 42 is reported and cannot choose"):
        train_semantics(config, reported, tmp_path / "runs")


def test_every_critic_that_has_a_temperature_gets_the_one_default(
    tmp_path: Path, asked: Asked
) -> None:
    train_semantics(small_config(walks_file(tmp_path)), TRAINING, tmp_path / "runs")
    cosine, tdq, _ = (run for run, _, _ in asked)
    assert cosine.content["critic_fields"]["temperature"] == 0.05
    assert "temperature" not in tdq.content["settings"]


def test_an_unknown_critic_is_refused_before_anything_is_trained() -> None:
    with pytest.raises(InputError, match="There is no critic 'raww'; the critics are "):
        SemanticsTraining(play_critics=("raw", "raww"))


def test_names_of_settings() -> None:
    assert setting_name("binary_nce", 0.05) == "binary_nce-0.05"
    assert setting_name("symmetric_info_nce", 1.0) == "symmetric_info_nce-1"
    assert setting_name("binary_nce", None) == "binary_nce-learned"


# The loss of behaviour models on training and held-out data, and the gap between the two.


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
