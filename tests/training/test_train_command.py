"""``toptail train``: flags, a whole small training, and what it leaves behind."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.toy import toy_file
from toptail.commands.flags import names, parse
from toptail.commands.train import Train, newest, pace, progress
from toptail.errors import InputError
from toptail.lab.training.config import RunOptions, keep_compiled
from toptail.lab.training.reports import save_training_figure, training_figure
from toptail.lab.training.runs import load_run
from toptail.lab.training.session import BatchProgress
from toptail_paper.study.training import TrainingSettings

FLAGS = {field.name for field in fields(Train)}
SMALL = "batch_size=16,log_every=2,hidden=8,depth=1,embed_dim=4,ensemble=1"


@pytest.fixture
def small(tmp_path: Path) -> Train:
    return Train(
        task=str(toy_file(tmp_path)),
        steps=6,
        out=tmp_path / "out",
        critics=("cosine",),
        seeds=("42,43",),
        set=(SMALL, "temperature=0.5"),
    )


def test_a_training_leaves_runs_curves_and_a_list(
    small: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    assert small.run() == 0
    out = capsys.readouterr()
    assert out.out.count("finished") == 2
    assert "cosine 6/6 steps" in out.err
    assert "steps/s × 2 seeds" in out.err
    assert "tau" in out.err
    run = small.out / "walks/cosine/seed-43"
    assert {path.name for path in run.iterdir()} == {
        "config.json", "record.json", "metrics.jsonl", "params.safetensors", "state.safetensors",
        "curves.svg", "curves.png",
    }  # fmt: skip
    config = json.loads((run / "config.json").read_text())["config"]
    assert config["critic_fields"]["temperature"] == 0.5
    assert config["critic_fields"]["encoders"]["hidden"] == [8]
    assert load_run(run).critic.name == "cosine"
    drawn = (run / "curves.png").read_bytes()
    (run / "curves.png").unlink()
    assert small.run() == 0  # nothing to train, but to draw
    assert (run / "curves.png").read_bytes() == drawn
    assert json.loads((run / "record.json").read_text())["resumed"] == []


def test_an_invalid_run_gives_exit_code_1(
    small: Train, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("toptail.lab.training.runs.is_finite", lambda _: False)
    assert small.run() == 1
    assert "non-finite parameters" in capsys.readouterr().out


def configs(train: Train) -> Any:
    return train.chosen()


def test_flags_reach_only_the_critics_that_have_them(small: Train) -> None:
    own = (SMALL.replace("depth=1", "depth=2"), "expectile=0.7,reward=0/1", "alpha=2")
    train = replace(small, critics=("raw,tdq", "hybrid"), set=own)
    raw, tdq, hybrid = configs(train)
    assert [config.critic for config in (raw, tdq, hybrid)] == ["raw", "tdq", "hybrid"]
    assert dict(raw.settings) == {"hidden": (8, 8), "embed_dim": 4, "ensemble": 1}
    assert dict(tdq.settings) == {"hidden": (8, 8), "ensemble": 1, "expectile": 0.7}
    assert dict(hybrid.settings)["alpha"] == 2.0
    assert (raw.reward, tdq.reward) == ("-1/0", "0/1")
    assert tdq.build().bellman.expectile == 0.7
    assert tdq.training.sample.reward == "0/1"
    assert not raw.bfloat16


def test_the_behaviour_model_is_the_one_that_the_studies_train(small: Train) -> None:
    both = replace(small, critics=("raw,diffusion",), steps=70, set=(SMALL,))
    raw, model = both.chosen()
    layers = dict(raw.settings)["hidden"]
    settings = TrainingSettings(
        diffusion_steps=70,
        batch_size=16,
        learning_rate=3e-4,
        diffusion_settings=(("hidden", layers),),
    )
    expected = replace(settings.behaviour_model(model.task), log_every=model.log_every)
    assert model == expected
    assert raw.critic == "raw"
    with pytest.raises(InputError, match="no setting"):
        replace(both, critics=("diffusion",)).chosen()


def test_defaults_depend_on_the_device(small: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    train = replace(small, set=("hidden=8",))
    assert [(c.bfloat16, c.log_every) for c in configs(train)] == [(False, 50)]
    assert [c.bfloat16 for c in configs(replace(train, set=("precision=bfloat16",)))] == [True]
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    assert [(c.bfloat16, c.log_every) for c in configs(train)] == [(True, 500)]
    assert [c.bfloat16 for c in configs(replace(train, set=("precision=float32",)))] == [False]


def test_programs_are_kept_on_a_gpu_unless_the_user_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    updates: dict[str, Any] = {}
    monkeypatch.setattr(jax.config, "update", updates.__setitem__)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_compiled()
    assert updates == {}
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    keep_compiled()
    assert updates["jax_compilation_cache_dir"] == str(tmp_path / "toptail/compiled")
    updates.clear()
    monkeypatch.setattr(type(jax.config), "jax_compilation_cache_dir", "/own", raising=False)
    keep_compiled()
    assert updates == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"critics": ("raw,crl",)}, "There is no critic 'crl'; the critics are tdq, raw, cosine"),
        ({"critics": (",",)}, "--critics names no critic"),
        ({"seeds": ("42,x",)}, r"--seeds takes whole numbers.*not '42,x'"),
        ({"seeds": ("42,42",)}, "--seeds 42,42 must be different whole numbers from 0 to"),
        ({"steps": 0}, "--steps 0"),
        ({"set": ("learning_rate=inf",)}, "--set learning_rate=inf"),
        ({"set": ("embed_dim=0",)}, "--set embed_dim=0"),
        ({"set": ("temperature=0",)}, "--set temperature=0"),
        ({"set": ("temperature=warm",)}, "--set: temperature is 'warm', not a number"),
        ({"set": ("steps=8",)}, "--set: no critic has a setting 'steps'"),
        ({"set": ("hidden=0",)}, "--set hidden=0"),
        ({"checkpoint_every": -5}, "--checkpoint-every -5"),
        ({"critics": ("tdq",)}, "--set (embed_dim|temperature) has no effect on tdq"),
        ({"critics": ("hybrid",), "set": ("expectile=1.5",)}, "--set expectile=1.5"),
        (
            {"critics": ("raw",), "set": ("reward=0/1",)},
            "--set reward has no effect on raw",
        ),
        ({"task": "nowhere/x.npz"}, "nowhere/x.npz does not exist"),
    ],
)
def test_wrong_flags_are_refused(change: dict[str, Any], message: str, small: Train) -> None:
    with pytest.raises(InputError) as raised:
        replace(small, **change).run()
    assert re.search(message, raised.value.for_command(FLAGS))
    assert not small.out.exists()


def test_the_command_line() -> None:
    words = "--task PointMaze --critics raw,tdq --critics cosine --seeds 1,2 --steps 9 --out x"
    flags = "--set precision=float32 --set reward=-1/0,learn_temperature=on"
    train = parse(Train, f"{words} {flags}".split())
    assert names(train.critics) == ("raw", "tdq", "cosine")
    options = RunOptions.written(train.steps, train.set)
    assert (options.reward, options.learn_temperature) == ("-1/0", True)
    assert options.precision == "float32"
    assert (options.batch_size, options.learning_rate) == (1024, 3e-4)


def standing(step: int, **lines: Any) -> BatchProgress:
    return BatchProgress("training", "raw", (1, 2), step, 100, {1: lines, 2: lines}, stored=False)


def test_the_numbers_of_the_progress_bar() -> None:
    line = {"loss": 0.25, "logit_gap": 2.0, "tau": None, "td_rmse": 3.0}
    assert newest(standing(5, **line)) == "loss 0.25 · gap 2 · tau –"
    assert pace(standing(50), 0.0) == "training …"
    assert pace(standing(60), 0.5) == "0.5 steps/s × 2 seeds, 0:01:20 left"


def test_elsewhere_there_are_lines_between_checkpoints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr("toptail.commands.terminal.time.monotonic", lambda: clock[0])
    with progress() as watch:
        watch(replace(standing(0), stage="compiling", lines={}))
        for seconds, step in ((1.0, 10), (6.0, 20), (7.0, 30)):
            clock[0] = seconds
            watch(standing(step))
        watch(replace(standing(40, loss=0.25), stored=True))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == ["0/100", "20/100", "40/100"]
    assert "compiling …" in lines[0]
    assert lines[2] == (
        "raw 40/100 steps · 5.0 steps/s × 2 seeds, 0:00:12 left · loss 0.25: 40% · 7 s"
    )


@pytest.mark.usefixtures("rendered_figures")
def test_the_figure_shows_what_was_logged_and_marks_what_is_not_finite(tmp_path: Path) -> None:
    lines: list[dict[str, float | None]] = [
        {"step": 5, "loss": 2.0, "tau": 0.1, "phi_norm": 1.0, "psi_norm": 2.0},
        {"step": 10, "loss": 1.0, "tau": None, "phi_norm": 1.5, "psi_norm": 2.5},
    ]
    axes = [a for a in training_figure(lines, "a $run").axes if a.get_visible()]
    titles = [each.get_title(loc="left").split(",")[0] for each in axes]
    assert titles == ["Loss", "Kendall τ of the score with γᵈ", "Mean embedding length"]
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), [2.0, 1.0])
    np.testing.assert_array_equal(axes[2].lines[1].get_ydata(), [2.0, 2.5])
    assert len(axes[1].lines) == 2  # the curve, and the mark at step 10
    svg, png = save_training_figure(lines, "a $run", tmp_path)
    first = svg.read_bytes()
    save_training_figure(lines, "a $run", tmp_path)
    assert svg.read_bytes() == first
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_label_is_one_word_of_a_list_and_a_folder(small: Train) -> None:
    listed = replace(small, critics=("raw,hybrid[alpha=2,td_weight=0.5]",), set=(SMALL,))
    assert [config.name for config in listed.chosen()] == ["raw", "hybrid[alpha=2,td_weight=0.5]"]
    with pytest.raises(InputError, match="There is no critic 'rwa'"):
        replace(small, critics=("rwa[alpha=2]",)).chosen()
