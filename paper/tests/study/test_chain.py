"""A chain: which pieces, in which order, and what becomes of it when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import tyro

from toptail.cli import TOPTAIL
from toptail.commands.parent import end_with_parent
from toptail.lab.critics.registry import MAIN, names
from toptail_paper.cli import PAPER, main
from toptail_paper.commands.chain import ChainConfig, Piece, chain
from toptail_paper.commands.chain_run import ChainRun, as_lines, program
from toptail_paper.study.naming import PAPER_TASKS

PROGRAMS = {each.name: each.commands for each in (TOPTAIL, PAPER)}
LANES: Any = {"accelerator": 2, "simulator": 1}


def pieces(tmp_path: Path, *tasks: str, **changes: Any) -> dict[str, Piece]:
    config = ChainConfig(tmp_path / "data", tmp_path / "runs", tmp_path / "out", **changes)
    return {piece.name: piece for piece in chain(config, tasks)}


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_every_piece_is_a_command_that_waits_for_others(task: str, tmp_path: Path) -> None:
    found = pieces(tmp_path, task)
    for piece in found.values():
        command: Any = tyro.cli(
            PROGRAMS[program(piece)], args=list(piece.command)
        )  # parses, or exits
        assert hasattr(command, "run")
        assert set(piece.after) <= found.keys()
        assert piece.leaves
    trained = {name.split()[-1] for name in found if name.startswith("train")}
    maze = "Maze" in task or "Soccer" in task
    assert set(MAIN) <= trained
    assert (set(names("two_head")) <= trained) == maze
    assert (set(names("control")) <= trained) == (task == "PointMaze")
    assert ("diffusion" in trained) == maze
    semantics = found[f"semantics {task}"]
    assert {f"train {task} {critic}" for critic in trained} <= set(semantics.after)


def test_nothing_waits_in_a_circle_and_rollouts_wait_for_scores_alone(tmp_path: Path) -> None:
    found = pieces(tmp_path, "AntMaze", "HumanoidMaze")
    done: set[str] = set()
    while len(done) < len(found):
        ready = {n for n, p in found.items() if n not in done and set(p.after) <= done}
        assert ready
        done |= ready
    assert found["rollouts AntMaze"].after == ("selection AntMaze",)
    first = found["selection AntMaze"].after
    assert {name.split()[-1] for name in first} == {*MAIN, "diffusion"}
    assert "semantics AntMaze" in found["semantics HumanoidMaze"].after, "they share a folder"
    order = list(found)
    heads = [order.index(f"train AntMaze {critic}") for critic in names("two_head")]
    assert order.index("selection AntMaze") < min(heads), "scores are wanted first"


def test_seeds_steps_and_what_is_left_out(tmp_path: Path) -> None:
    found = pieces(tmp_path, "HumanoidMaze", two_heads=False, deployment=False)
    tdq = " ".join(found["train HumanoidMaze tdq"].command)
    assert "--seeds 42,43,44,7,101,102,103 --steps 100000" in tdq
    assert not any("two_head" in name or "deployment" in name for name in found)
    play = pieces(tmp_path, "Scene")
    assert "--steps 50000" in " ".join(play["train Scene raw"].command)
    asked = pieces(tmp_path, "Scene", steps=7)
    assert "--steps 7" in " ".join(asked["train Scene raw"].command)


WORKER = """
import pathlib, sys, time
kind, out, *rest = sys.argv[1:]
log = pathlib.Path(out).parent / "calls"
with log.open("a") as file:
    file.write(pathlib.Path(out).name + "\\n")
if kind == "slow":
    time.sleep(60)
if kind == "fail":
    sys.exit("it went wrong")
if kind != "nothing":
    pathlib.Path(out).write_text("done")
"""


def run_of(tmp_path: Path, *lines: tuple[str, str, tuple[str, ...]]) -> tuple[ChainRun, list[str]]:
    """A run of made-up pieces (kind, name, after), and what it tells."""
    told: list[str] = []
    made = [
        Piece(name, (kind, str(tmp_path / name)), "simulator", after, (tmp_path / name,))
        for kind, name, after in lines
    ]
    program = (sys.executable, "-c", WORKER)
    home = tmp_path / "chain"
    return ChainRun(made, home, LANES, tell=told.append, program=program), told


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().split()


def test_a_chain_runs_in_order_and_is_not_repeated(tmp_path: Path) -> None:
    lines = (("do", "b", ("a",)), ("do", "a", ()), ("do", "c", ("a", "b")))
    run, told = run_of(tmp_path, *lines)
    run.run()
    assert calls(tmp_path) == ["a", "b", "c"]
    assert run.left() == []
    assert run.failed == []
    assert [line.split(":")[0] for line in told] == ["a", "a", "b", "b", "c", "c"]
    again, _ = run_of(tmp_path, *lines)
    again.run()
    assert calls(tmp_path) == ["a", "b", "c"]
    (tmp_path / "b").unlink()  # what it left is gone: it is made again
    run_of(tmp_path, *lines)[0].run()
    assert calls(tmp_path) == ["a", "b", "c", "b"]


def test_a_failed_piece_is_shown_and_stops_only_what_waits_for_it(tmp_path: Path) -> None:
    run, told = run_of(tmp_path, ("fail", "a", ()), ("do", "b", ("a",)), ("do", "c", ()))
    run.run()
    assert run.failed == ["a"]
    assert run.left() == ["a", "b"]
    assert calls(tmp_path) == ["a", "c"]
    assert any("ended with code 1" in line and "it went wrong" in line for line in told)


def test_a_piece_that_leaves_nothing_has_failed(tmp_path: Path) -> None:
    run, told = run_of(tmp_path, ("nothing", "a", ()))
    run.run()
    assert run.failed == ["a"]
    assert any(f"left no {tmp_path / 'a'}" in line for line in told)


def test_time_is_up_and_the_same_chain_goes_on(tmp_path: Path) -> None:
    run, told = run_of(tmp_path, ("do", "a", ()), ("slow", "b", ("a",)))
    run.run(seconds=3.0)
    assert run.left() == ["b"]
    assert run.failed == []
    assert told[-1] == "b: stopped; the same command goes on with it"
    again, _ = run_of(tmp_path, ("do", "a", ()), ("do", "b", ("a",)))
    again.run()
    assert again.left() == []
    assert calls(tmp_path) == ["a", "b", "b"]


def test_no_process_survives_an_interrupt(tmp_path: Path) -> None:
    run, _ = run_of(tmp_path, ("slow", "a", ()))

    def interrupt(line: str) -> None:
        if line == "a: begun":
            while not (tmp_path / "calls").exists():
                time.sleep(0.05)
            raise KeyboardInterrupt

    run.tell = interrupt
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert run._live == []


KILLED = """
import pathlib, sys
from toptail_paper.commands.chain import Piece
from toptail_paper.commands.chain_run import ChainRun
home = pathlib.Path(sys.argv[1])
piece = Piece("a", ("-c", sys.argv[2], str(home)), "simulator")
ChainRun([piece], home / "chain", {}, program=(sys.executable,)).run()
"""
ENDLESS = """
import os, pathlib, subprocess, sys, time
import toptail.cli
def work(program=None):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    staged = pathlib.Path(sys.argv[1]) / "staged"
    staged.write_text(f"{os.getpid()} {child.pid}")
    staged.rename(staged.with_name("processes"))
    time.sleep(600)
toptail.cli.main = work
toptail.cli.run()
"""


def test_a_killed_chain_takes_its_pieces_and_their_workers_along(tmp_path: Path) -> None:
    chain = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), ENDLESS])
    try:
        while not (tmp_path / "processes").exists():
            assert chain.poll() is None
            time.sleep(0.05)
        piece, worker = map(int, (tmp_path / "processes").read_text().split())
        assert is_running(piece)
        assert is_running(worker)
    finally:
        chain.kill()
        chain.wait()
    for _ in range(1200):  # a minute is patience: they would work for ten
        if not is_running(piece) and not is_running(worker):
            return
        time.sleep(0.05)
    os.killpg(piece, signal.SIGKILL)
    pytest.fail("a piece goes on without its chain")


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("said", ["", "x", "-1", "987654", "99999999999999999999"])
def test_a_variable_that_nobody_meant_ends_nothing(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPTAIL_PARENT", said)
    end_with_parent()
    assert "TOPTAIL_PARENT" not in os.environ
    for thread in threading.enumerate():
        if thread.name.endswith("(_watch)"):
            thread.join()


def test_the_command_lists_pieces_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [f"--{name}={tmp_path / name}" for name in ("out", "runs", "data")]
    assert main(["study", "chain", "--task", "AntSoccer", *folders, "--list"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["name"] == "collect AntSoccer"
    assert {line["state"] for line in lines} == {"missing"}
    assert {line["lane"] for line in lines} == {"accelerator", "simulator"}
    run, _ = run_of(tmp_path, ("do", "a", ()))
    run.run()
    assert json.loads(as_lines(run)[0])["state"] == "done"


def test_what_cannot_be_chained_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [f"--{name}={tmp_path / name}" for name in ("out", "runs", "data")]
    assert main(["study", "chain", "--task", "antmaze-teleport-stitch-v0", *folders]) == 2
    assert "a maze without teleports" in capsys.readouterr().err
    assert main(["study", "chain", "--task", "AntMaze", *folders, "--minutes", "0"]) == 2
