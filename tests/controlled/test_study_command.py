"""The command line of the study, and its benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toptail.lab.studies.controlled as study_module
import toptail.lab.studies.finish as finish_module
from tests.controlled.tiny import TINY
from toptail.bench.controlled import bench
from toptail.commands.study_controlled import StudyControlled
from toptail.errors import InputError
from toptail.lab.studies.controlled import SWEEPS, StudyConfig
from toptail.lab.studies.folder import RunFolder


def test_flags_become_the_configuration() -> None:
    study = StudyControlled(radii="0.25, 0.55", seeds="7,8", sweep="loss,bias", steps=20)
    config = study.config()
    assert config.radii == (0.25, 0.55)
    assert config.seeds == (7, 8)
    assert config.sweeps == ("loss", "bias")
    assert config.steps == 20


def test_defaults_are_the_paper_and_none_leaves_parts_out() -> None:
    config = StudyControlled().config()
    assert config.radii == (0.25, 0.40, 0.55)
    assert config.seeds == StudyConfig().seeds == (42, 43, 44, 45, 46)
    assert config.sweeps == ()
    assert StudyControlled(radii="none").config().radii == ()
    assert StudyControlled(sweep="all").config().sweeps == SWEEPS


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ({"seeds": "1,x"}, "--seeds"),
        ({"radii": "wide"}, "--radii"),
        ({"sweep": "weather"}, "weather"),
        ({"seeds": "none"}, "Seeds"),
    ],
)
def test_bad_flags_are_refused_in_one_sentence(flags: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        StudyControlled(**flags).config()


def test_the_command_runs_and_finishes_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[StudyConfig] = []

    def run(config: StudyConfig, out: Path, *_: Any) -> RunFolder:
        seen.append(config)
        return RunFolder(out, asked=5, made=3)

    monkeypatch.setattr(study_module, "run_controlled", run)
    monkeypatch.setattr(finish_module, "finish_controlled", lambda _, out: out / "report.html")
    assert StudyControlled(out=tmp_path, seeds="9").run() == 0
    assert seen[0].seeds == (9,)
    said = capsys.readouterr().out
    assert "Trained 3 critics, found 2 finished." in said
    assert str(tmp_path / "report.html") in said


def test_the_rule_is_applied_instead_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study_module, "choose_default", lambda *_: {"steps": 3_000})
    assert StudyControlled(out=tmp_path, choose=True).run() == 0
    assert "3000" in capsys.readouterr().out


def test_the_benchmark_measures_every_critic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_module, "StudyConfig", lambda: TINY)
    rows = list(bench(steps=2, critics=("tdq", "raw")))
    assert [row.what.split(",")[0] for row in rows[:2]] == ["tdq", "raw"]
    assert all("step by step" in row.against for row in rows[:2])
    assert rows[2].what == "tdq and raw in two threads"
