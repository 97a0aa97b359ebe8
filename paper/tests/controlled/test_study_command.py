"""The command line of the study, and its benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.asked import asked
from toptail.errors import InputError
from toptail_paper.commands.study_controlled import StudyControlled
from toptail_paper.controlled import run
from toptail_paper.controlled import run as choice
from toptail_paper.controlled.config import SWEEPS, StudyConfig
from toptail_paper.controlled.theory import battery as trained
from toptail_paper.study.store import RunFolder
from toptail_paper.study.study import Study


def test_flags_become_the_configuration() -> None:
    flags = {"radii": "0.25, 0.55", "seeds": "7,8", "sweep": "loss,bias", "steps": 20}
    config = asked(StudyControlled, **flags).config()
    assert config.radii == (0.25, 0.55)
    assert config.seeds == (7, 8)
    assert config.sweeps == ("loss", "bias")
    assert config.steps == 20


def test_every_size_has_a_flag() -> None:
    sizes = {"batch_size": 8, "data_size": 64, "queries": 12, "pool": 16}
    config = asked(StudyControlled, hidden="4,4", **sizes).config()
    assert config.critics.hidden == (4, 4)
    assert {name: getattr(config, name) for name in sizes} == sizes


def test_defaults_are_the_paper_and_none_leaves_parts_out() -> None:
    config = StudyControlled().config()
    assert config.radii == (0.25, 0.40, 0.55)
    assert config.seeds == StudyConfig().seeds == (42, 43, 44, 45, 46)
    assert config.sweeps == ()
    assert asked(StudyControlled, radii="none").config().radii == ()
    assert asked(StudyControlled, sweep="all").config().sweeps == SWEEPS


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
        asked(StudyControlled, **flags).config()


def test_the_command_runs_and_finishes_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[StudyConfig] = []

    def run_controlled(config: StudyConfig, out: Path, *_: Any) -> RunFolder:
        seen.append(config)
        return RunFolder(out, asked=5, made=3)

    monkeypatch.setattr(run, "run_controlled", run_controlled)
    monkeypatch.setattr(trained, "write_theory", lambda *_: [])
    monkeypatch.setattr("toptail_paper.claims.annotate", lambda *_: [])
    monkeypatch.setattr(Study, "page", lambda _, out: out / "report.html")
    monkeypatch.setattr(Study, "tables", lambda *_: [])
    assert asked(StudyControlled, out=tmp_path, seeds="9").run() == 0
    assert seen[0].seeds == (9,)
    said = capsys.readouterr().out
    assert "Trained 3 critics; 2 were finished already." in said
    assert str(tmp_path / "report.html") in said


def test_the_rule_is_applied_instead_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(choice, "choose_default", lambda *_: {"steps": 3_000})
    assert StudyControlled(out=tmp_path, choose=True).run() == 0
    assert "3000" in capsys.readouterr().out
