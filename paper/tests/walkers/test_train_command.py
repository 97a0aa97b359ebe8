"""``toptail-paper train-walker``: what it leaves, what stops it, and what it refuses."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

from paper.tests.walkers.tiny import tiny
from toptail.errors import InputError
from toptail.lab.walkers.walker import Walker, shipped_path
from toptail.provenance import commit
from toptail_paper.cli import main
from toptail_paper.commands import train_walker as train_expert
from toptail_paper.walkers import published, train
from toptail_paper.walkers.learner import SAC
from toptail_paper.walkers.settings import DEFAULTS, fitting, small

TINY = tiny("ant")
Clock = Callable[[int], None]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that goes on whenever it is asked, and interrupts at one of its times if told to."""
    times, at = itertools.count(), -1

    def now() -> float:
        time = next(times)
        if time == at:
            os.kill(os.getpid(), signal.SIGINT)
        return 0.05 * time

    def interrupt(after: int) -> None:
        nonlocal at
        at = next(times) + after

    monkeypatch.setattr(train, "monotonic", now)
    monkeypatch.setattr(train, "LINE_SECONDS", 1.0)
    monkeypatch.setattr(train, "fitting", lambda *_: TINY)
    return interrupt


def command(out: Path, *flags: str) -> list[str]:
    return ["train-walker", "ant", "--minutes", "0.1", "--out", str(out), *flags]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_interrupt_that_is_ignored_from_the_start_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with train_expert._interruptible() as asked:
            os.kill(os.getpid(), signal.SIGINT)
            assert not asked()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_ctrl_c_keeps_a_checkpoint_and_the_same_command_goes_on(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "walker"
    same = command(out, "--seed", "3", "--envs", "12", "--threads", "2")
    handler = signal.getsignal(signal.SIGINT)
    clock(50)
    assert main(same) == 130
    assert signal.getsignal(signal.SIGINT) is handler
    *points, last = capsys.readouterr().err.splitlines()
    assert last == f"toptail: interrupted; the same command goes on in {out}"
    assert {path.name for path in out.iterdir()} == {"checkpoint.safetensors", "curve.jsonl"}
    before = lines(out / "curve.jsonl")
    assert len(points) == len(before) > 0

    assert main(same) == 0
    printed = capsys.readouterr()
    record = json.loads((out / "record.json").read_text())
    assert record["parts"] == 2
    assert record["seconds"] == pytest.approx(6.0, abs=0.2)
    assert (record["seed"], record["commit"]) == (3, commit())
    assert record["settings"]["environments"] == 12
    assert record["settings"]["threads"] == 2
    assert record["curve"] == lines(out / "curve.jsonl")
    assert record["curve"][: len(before)] == before
    assert Walker.load(out / "actor.safetensors").body == "ant"
    assert str(out / "actor.safetensors") in printed.out
    assert "falls/1,000" in printed.out
    new = printed.err.splitlines()
    assert len(new) == len(record["curve"]) - len(before)
    assert all(line.startswith("ant 0.") and " m/s · " in line for line in new)


@pytest.mark.smoke
@pytest.mark.slow
def test_a_killed_training_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 2.5)
    seen: list[Any] = []

    def killed(point: Any) -> None:
        seen.append(point)
        if len(seen) == 4:
            raise SystemExit

    with pytest.raises(SystemExit):
        train.train_expert("ant", 0.1, tmp_path, watch=killed)
    assert len(lines(tmp_path / "curve.jsonl")) == 4
    record = train.train_expert("ant", 0.1, tmp_path)
    assert record["parts"] == 2
    assert lines(tmp_path / "curve.jsonl") == record["curve"]
    assert record["curve"][2:4] != seen[2:4]  # those points were after the checkpoint


@pytest.mark.slow
def test_a_training_that_lost_its_numbers_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_self: SAC, state: Any, _replay: Any) -> Any:
        return state, {"critic_loss": jnp.asarray(jnp.nan)}

    monkeypatch.setattr(SAC, "_update", lost)
    with pytest.raises(InputError, match=r"diverged \(critic_loss is nan\)"):
        train.train_expert("ant", 0.1, tmp_path)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (["snake"], "There is no body 'snake': expected one of ant, antball, humanoid."),
        (["--minutes", "0"], "--minutes 0.0 must be a number above 0."),
        (["--minutes", "nan"], "--minutes nan must be a number above 0."),
        (["--envs", "1"], "--envs 1 must be a whole number of at least 2."),
        (["--threads", "0"], "--threads 0 must be a whole number of at least 1."),
        (["--seed", "-1"], "--seed -1 must be a whole number of at least 0."),
        (["--recipe", "published"], "--recipe published has its own numbers of steps and "
         "simulations: leave --minutes and --envs out."),
        (["--envs", "900"], "A replay of 1000 steps is too small for 900 environments: give at "
         "least ten steps for each."),
    ],
)  # fmt: skip
def test_a_bad_argument_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: list[str], sentence: str
) -> None:
    given = command(tmp_path / "walker")
    if changed[0] in given:
        given[given.index(changed[0]) + 1] = changed[1]
    else:
        given = [*given, *changed] if len(changed) > 1 else [*given[:1], *changed, *given[2:]]
    assert main(given) == 2
    assert capsys.readouterr().err == f"toptail: {sentence}\n"
    assert not (tmp_path / "walker").exists()


def test_the_published_recipe_has_its_own_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    numbers = {"episodes": 128, "steps": 1000, "return": 139.5, "speed": 1.41, "falls": 0.14}

    def trained(*given: Any, threads: int, tell: Any) -> dict[str, Any]:
        asked.append((*given, threads))
        tell("a line")
        return {"seconds": 90.0, "acceptance": numbers}

    monkeypatch.setattr(published, "train_published", trained)
    words = ["train-walker", "ant", "--out", str(tmp_path / "walker")]
    assert main([*words, "--recipe", "published", "--threads", "2", "--seed", "1"]) == 0
    assert asked == [("ant", tmp_path / "walker", 1, 2)]
    printed = capsys.readouterr()
    assert "1.41 m/s · 0.14 falls/1,000" in printed.out
    assert printed.err == "a line\n"
    assert main(words) == 2
    assert "The fast recipe needs --minutes" in capsys.readouterr().err
    for flag in ("--seed", "--threads"):
        assert main([*words, "--recipe", "published", flag, "-1"]) == 2
        assert f"{flag} -1 must be a whole number" in capsys.readouterr().err


def test_a_folder_that_cannot_be_taken_up_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = shipped_path("ant")
    walker, file, strange = (tmp_path / name for name in ("walker", "file", "strange"))
    for folder, name in ((walker, "actor.safetensors"), (strange, "checkpoint.safetensors")):
        folder.mkdir()
        (folder / name).write_bytes(shipped.read_bytes())
    file.write_text("")
    for out, sentence in (
        (walker, "holds a trained walker (actor.safetensors) and no checkpoint to go on from"),
        (file, "is a file; give a folder"),
        (strange, "is no checkpoint of a walker's training ('settings')"),
    ):
        assert main(command(out)) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"toptail: {out}")
        assert sentence in error
        assert error.count("\n") == 1
    assert (walker / "actor.safetensors").read_bytes() == shipped.read_bytes()


@pytest.mark.parametrize("body", DEFAULTS)
def test_settings_fit_the_machine(body: str) -> None:
    assert fitting(body, accelerator=True, cores=16) == DEFAULTS[body]
    assert fitting(body, accelerator=False, cores=2) == small(body)
    assert fitting(body, accelerator=False, cores=1).threads == 1
