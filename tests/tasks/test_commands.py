from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import tyro

from tests.tasks.conftest import DATA
from toptail.commands.data import Data
from toptail.errors import InputError
from toptail.lab.tasks.files import load, load_file
from validation.sim import bench_sim

POINT = "pointmaze-medium-navigate-v0"


def run(*args: str) -> int:
    command: Any = tyro.cli(Data, args=list(args))
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


def test_collect_then_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / f"{POINT}.npz"
    options = ("--episodes", "30", "--workers", "1", "--seed", "3", "--out", str(out))
    assert run("collect", POINT, *options) == 0
    assert len(load(out).train.ends) == 30
    capsys.readouterr()
    checked = run("check", str(out), "--reference-episodes", "5")
    printed = capsys.readouterr().out
    assert checked == 0, printed
    for expected in ("free cells covered", "mean step length", "Goals reached", "restoring 50"):
        assert expected in printed


def test_check_compares_with_the_file_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "cube-single-play-v0"
    shutil.copy(DATA / f"{name}.npz", tmp_path / f"{name}.npz")
    monkeypatch.setenv("TOPTAIL_DATA", str(DATA))
    code = run("check", str(tmp_path / f"{name}.npz"), "--restore-rows", "3")
    printed = capsys.readouterr().out
    assert f"against {DATA / name}" in printed
    assert "restoring 3" in printed
    assert code == 1, "61 rows per trajectory are not the recipe's 1001"


def test_check_wants_to_know_the_task(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    shutil.copy(DATA / f"{POINT}.npz", path)
    with pytest.raises(InputError, match="--task NAME"):
        run("check", str(path))
    quick = ("--reference-episodes", "0", "--restore-rows", "0")
    assert run("check", str(path), "--task", "PointMaze", *quick) == 1


def test_get_without_a_network_says_how_to_collect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toptail.lab.tasks.download.MIRRORS", ())
    with pytest.raises(InputError, match=r"no mirror is known.*toptail data collect"):
        run("get", "PointMaze", "--folder", str(tmp_path))


def test_bench_sim_measures_both_sides() -> None:
    (row,) = bench_sim(("pointmaze-medium-v0",), size=16, rounds=2, seconds=0.02)
    assert "times as fast" in row.result
    assert "one by one" in row.against


@pytest.mark.slow
def test_walked_files_are_compared_without_blame(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "antmaze-medium-stitch-v0"
    for seed, folder in enumerate(("mine", "theirs")):
        out = tmp_path / folder / f"{name}.npz"
        sizes = ["--episodes", "2", "--val-episodes", "1", "--rows", "31", "--workers", "1"]
        assert run("collect", name, *sizes, "--seed", str(seed), "--out", str(out)) == 0
    mine, theirs = (str(tmp_path / folder / f"{name}.npz") for folder in ("mine", "theirs"))
    run("check", mine, "--against", theirs, "--restore-rows", "4")
    printed = " ".join(capsys.readouterr().out.split())
    assert "share of rows flipped" in printed
    assert "Another walker made the other file" in printed
    assert "Goals reached per episode" in printed
