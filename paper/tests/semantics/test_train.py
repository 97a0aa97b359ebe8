"""What ``--train`` asks the trainer for, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paper.tests.semantics.fake_runs import write_run
from paper.tests.semantics.small import small_config, walks_file
from tests.training.toy import SMALL
from toptail.errors import InputError
from toptail.lab.training.config import RunConfig
from toptail.lab.training.runs import Run, read_run
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
