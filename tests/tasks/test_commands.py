from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tasks.conftest import DATA
from toptail.cli import TOPTAIL, parsed
from toptail.errors import InputError
from toptail.lab.tasks.files import load, load_file

POINT = "pointmaze-medium-navigate-v0"


def run(*args: str) -> int:
    command: Any = parsed(["data", *args], TOPTAIL)
    return int(command.run())


def test_list_has_short_names_and_the_files_that_are_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOPTAIL_DATA", str(DATA))
    assert run("list") == 0
    lines = capsys.readouterr().out.splitlines()
    (here,) = (line for line in lines if POINT in line)
    assert "PointMaze" in here
    assert "0.0 MB" in here
    (absent,) = (line for line in lines if "pointmaze-large-stitch-v0" in line)
    assert "–" in absent
    assert not any("visual" in line for line in lines)
    assert run("list", "--all") == 0
    assert "visual-scene-play-v0" in capsys.readouterr().out


def test_info_prints_what_is_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "scene-play-v0.npz"
    assert run("info", str(path)) == 0
    printed = capsys.readouterr().out
    for expected in ("244", "button_states", "(40,)", load_file(path).sha256, "61 rows"):
        assert expected in printed


def test_collect_writes_a_file(tmp_path: Path) -> None:
    out = tmp_path / f"{POINT}.npz"
    options = ("--episodes", "3", "--workers", "1", "--seed", "3", "--out", str(out))
    assert run("collect", POINT, *options) == 0
    assert len(load(out).train.ends) == 3


def test_get_without_a_network_says_how_to_collect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toptail.lab.tasks.download.MIRRORS", ())
    with pytest.raises(InputError, match=r"no mirror is known.*toptail data collect"):
        run("get", "PointMaze", "--out", str(tmp_path))
