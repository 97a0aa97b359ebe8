"""What trackers are told is what ``metrics.jsonl`` gets, and a missing package is a sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.training.toy import toy_config, toy_data, toy_file
from toptail.cli import main
from toptail.errors import InputError
from toptail.lab.training.reports import tracking
from toptail.lab.training.runs import read_lines
from toptail.lab.training.session import train_runs
from toptail.report.trackers import require_trackers

Told = dict[str, list[tuple[int, dict[str, float]]]]


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> dict[str, Told]:
    """The three packages, as far as they are used: what each run was told, by package."""
    told: dict[str, Told] = {"tensorboard": {}, "trackio": {}, "wandb": {}}

    class Writer:
        def __init__(self, folder: str) -> None:
            self.name = "/".join(Path(folder).parts[-3:])
            self.lines = told["tensorboard"].setdefault(self.name, [])

        def add_scalar(self, tag: str, data: float, step: int) -> None:
            if not self.lines or self.lines[-1][0] != step:
                self.lines.append((step, {}))
            self.lines[-1][1][tag] = data

        def flush(self) -> None: ...

        def close(self) -> None:
            self.lines.append((-1, {}))

    def init(kind: str) -> Any:
        def start(*, name: str, **about: Any) -> Any:
            assert about["config"]["task"] == "walks"
            lines = told[kind].setdefault(name, [])
            return SimpleNamespace(
                log=lambda scalars, step: lines.append((step, scalars)),
                finish=lambda: lines.append((-1, {})),
            )

        return SimpleNamespace(init=start)

    monkeypatch.setitem(sys.modules, "tensorboard", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tensorboard.summary", SimpleNamespace(Writer=Writer))
    for kind in ("trackio", "wandb"):
        monkeypatch.setitem(sys.modules, kind, init(kind))
    return told


def test_trackers_are_told_every_line_once(tmp_path: Path, packages: dict[str, Told]) -> None:
    kinds = ("tensorboard", "trackio", "wandb")
    with tracking(kinds, tmp_path, "walks", lambda _: None) as watch:
        runs = train_runs(toy_config(), toy_data(), [42, 43], tmp_path, watch=watch)
    for run in runs:
        lines = [
            (line["step"], {k: x for k, x in line.items() if k != "step" and x is not None})
            for line in read_lines(run.folder / "metrics.jsonl")
        ]
        assert {"loss", "auc", "tau"} <= lines[-1][1].keys()
        assert any(name.startswith("regret_") for name in lines[-1][1])
        for kind in kinds:
            assert packages[kind][f"walks/raw/{run.folder.name}"] == [*lines, (-1, {})]


def test_tracking_changes_no_parameter(tmp_path: Path, packages: dict[str, Told]) -> None:
    (plain,) = train_runs(toy_config(), toy_data(), [42], tmp_path / "plain")
    with tracking(("wandb",), tmp_path, "walks", lambda _: None) as watch:
        (told,) = train_runs(toy_config(), toy_data(), [42], tmp_path / "told", watch=watch)
    assert packages["wandb"]
    assert plain.record["params_sha256"] == told.record["params_sha256"]


def test_a_package_that_is_missing_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)  # as if it were not installed
    words = ["train", "--task", str(toy_file(tmp_path)), "--steps", "2", "--critics", "raw"]
    assert main([*words, "--out", str(tmp_path / "runs"), "--log", "wandb"]) == 2
    assert "--log wandb needs the package 'wandb'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    with pytest.raises(InputError, match="there is no such tracker; they are tensorboard, trackio"):
        require_trackers(["mlflow"])


def test_runs_are_listed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_runs(toy_config(), toy_data(), [42], tmp_path, command="toptail train")
    assert main(["runs", str(tmp_path), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["task"], run["critic"], run["seed"]) == ("walks", "raw", 42)
    assert (run["state"], run["steps"], run["steps_logged"]) == ("finished", 14, 14)
    assert run["metrics"]["step"] == 14
    assert run["config"]["batch_size"] == 16
    (tmp_path / "none").mkdir()
    assert main(["runs", str(tmp_path / "none"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
