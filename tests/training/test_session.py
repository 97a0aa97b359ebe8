"""Training sessions: what they compute, and that stopping them anywhere changes nothing."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.training.toy import SMALL, toy_config, toy_data, toy_dataset, walks
from toptail.errors import BusyError, InputError
from toptail.io import files as io_files
from toptail.io.files import sha256
from toptail.io.json_files import write_json
from toptail.lab.critics.cosine import Cosine
from toptail.lab.tasks.files import Dataset
from toptail.lab.training import session as extend
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.data import TaskData
from toptail.lab.training.loop import init_state, train_step
from toptail.lab.training.runs import (
    METRICS,
    Run,
    find_fault,
    invalid_reason,
    invalidate,
    load_run,
    read_lines,
    read_run,
)
from toptail.lab.training.session import BatchProgress, train_runs

SEEDS = (42, 43)
HOME = Path("walks/raw")


class Killed(BaseException):
    """Stands for the end of the process."""


def train(
    out: Path, seeds: tuple[int, ...] = SEEDS, checkpoint_every: int = 6, **changes: Any
) -> list[Run]:
    config = toy_config(**changes)
    return train_runs(config, toy_data(), seeds, out, checkpoint_every=checkpoint_every)


def stop_at(step: int) -> Any:
    def watch(tick: BatchProgress) -> None:
        if tick.step == step and tick.lines:
            raise Killed

    return watch


def train_until(out: Path, step: int, seeds: tuple[int, ...] = SEEDS) -> None:
    with pytest.raises(Killed):
        train_runs(toy_config(), toy_data(), seeds, out, checkpoint_every=6, watch=stop_at(step))


def results(out: Path) -> dict[str, bytes]:
    """Everything in the runs that must not depend on what happened on the way."""
    names = ("params.safetensors", "metrics.jsonl", "config.json")
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("seed-*/*"))
        if path.name in names
    }


@pytest.fixture(autouse=True)
def _no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking git takes longer than a whole training here."""
    monkeypatch.setattr("toptail.lab.training.session.commit", lambda: None)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("uninterrupted")
    assert [invalid_reason(run) for run in train(out)] == [None, None]
    return out


def test_a_run_is_what_a_plain_loop_of_steps_computes(uninterrupted: Path) -> None:
    config = toy_config().training
    step = jax.jit(partial(train_step, config))
    state = init_state(config, jax.random.key(43), toy_data().rows)
    losses = []
    for _ in range(config.steps):
        state, info = step(state, toy_data().rows)
        losses.append(float(info["loss"]))
    found = load_params(uninterrupted / HOME / "seed-43/params.safetensors")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
                 found, state.params)  # fmt: skip
    lines = read_lines(uninterrupted / HOME / "seed-43/metrics.jsonl")
    assert [line["step"] for line in lines] == [3, 6, 9, 12, 14]
    means = [np.mean(losses[start : start + 3]) for start in range(0, 14, 3)]
    np.testing.assert_allclose([line["loss"] for line in lines], means, rtol=1e-4)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.usefixtures("usual_compiler")
def test_a_seed_alone_has_the_bits_of_the_seed_in_company(tmp_path: Path) -> None:
    # No program that another test compiled in a hurry is kept for a network of this size.
    own: dict[str, Any] = {"settings": (*SMALL[1:], ("hidden", (9,)))}
    train(tmp_path / "one", seeds=(43,), **own)
    expected = results(tmp_path / "one")
    assert len(expected) == 3
    for company in ((42, 43), (41, 43, 44)):
        out = tmp_path / f"{len(company)}"
        train(out, seeds=company, **own)
        assert {k: v for k, v in results(out).items() if "seed-43" in k} == expected


def test_a_finished_run_is_left_alone_and_a_new_seed_joins_it(
    uninterrupted: Path, tmp_path: Path
) -> None:
    train(tmp_path, seeds=(42,))
    record = (tmp_path / HOME / "seed-42/record.json").read_bytes()
    runs = train(tmp_path)
    assert [run.state for run in runs] == ["finished", "finished"]
    assert (tmp_path / HOME / "seed-42/record.json").read_bytes() == record
    assert results(tmp_path) == results(uninterrupted)


def test_a_stopped_group_goes_on_with_some_of_its_seeds_and_then_the_rest(
    uninterrupted: Path, tmp_path: Path
) -> None:
    train_until(tmp_path, step=9)
    train(tmp_path, seeds=(43,))
    run = read_run(tmp_path / HOME / "seed-43")
    assert [start["from_step"] for start in run.record["resumed"]] == [6]
    assert list((tmp_path / HOME).glob("checkpoint-*")), "seed 42 still needs the joint one"
    train(tmp_path)
    assert results(tmp_path) == results(uninterrupted)
    assert not list((tmp_path / HOME).glob("checkpoint-*"))


# A run in this process can be ended before any one of its file operations: an audit hook sees
# them all. From then on every operation fails, as nothing runs after a real kill.
_fuse: dict[str, Any] = {"folder": None, "left": 0}
_OPERATIONS = {"open", "os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir"}


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _fuse["folder"] is None or event not in _OPERATIONS:
        return
    path = args[0]
    # rmtree works relative to an open folder, so its names say nothing about where they are.
    relative = isinstance(path, str) and not path.startswith("/") and event in {
        "os.remove", "os.rmdir"
    }  # fmt: skip
    if relative or str(path).startswith(_fuse["folder"]):
        _fuse["left"] -= 1
        if _fuse["left"] < 0:
            raise Killed


@contextmanager
def killed_before(operation: int, folder: Path) -> Iterator[None]:
    if "hooked" not in _fuse:
        sys.addaudithook(_hook)
        _fuse["hooked"] = True
    _fuse.update(folder=str(folder), left=operation)
    try:
        yield
    finally:
        _fuse["folder"] = None


@pytest.mark.smoke
@pytest.mark.slow
def test_stopped_before_any_file_operation_it_ends_with_the_same_bits(
    uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io_files, "_runs", lambda _: False)  # the process that was killed is gone
    operations = 0
    expected = results(uninterrupted)
    while True:
        out = tmp_path / str(operations)
        try:
            with killed_before(operations, out):
                train(out, checkpoint_every=9)
            break
        except Killed:
            operations += 3  # 'make attack' stops before each of them
        io_files._swept.clear()
        runs = train(out)
        assert [invalid_reason(run) for run in runs] == [None, None], operations
        assert results(out) == expected, operations
        left = {path.name for path in out.rglob("*")}
        assert left == {"walks", "raw", ".lock", "seed-42", "seed-43", "record.json"} | {
            "params.safetensors", "state.safetensors", "metrics.jsonl", "config.json"
        }, operations  # fmt: skip
        assert [run.attempt for run in runs] == [1, 1], operations
        shutil.rmtree(out)
    assert operations > 100


@pytest.mark.slow
def test_a_repetition_that_is_stopped_anywhere_keeps_the_history(
    uninterrupted: Path, tmp_path: Path
) -> None:
    finished = tmp_path / "finished"
    train(finished)
    (finished / HOME / "seed-42/params.safetensors").write_bytes(b"damaged")
    expected = results(uninterrupted)
    for operation in range(0, 60, 2):
        out = tmp_path / str(operation)
        shutil.copytree(finished, out)
        with pytest.raises(Killed), killed_before(operation, out):
            train(out)
        runs = train(out)
        assert [run.attempt for run in runs] == [2, 1]
        assert {k: v for k, v in results(out).items() if "history" not in k} == expected
        kept = out / HOME / "seed-42/history/1"
        assert (kept / "params.safetensors").read_bytes() == b"damaged"
        reason = json.loads((kept / "record.json").read_text())["invalid"]
        assert reason["cause"] == "unreadable checkpoint"
        shutil.rmtree(out)


def test_a_damaged_checkpoint_makes_its_runs_invalid_and_they_are_repeated(
    uninterrupted: Path, tmp_path: Path
) -> None:
    train_until(tmp_path, step=9)
    state = next((tmp_path / HOME).glob("checkpoint-*/step-*/state.safetensors"))
    content = bytearray(state.read_bytes())
    content[-1] ^= 1  # a single flipped bit, in a file that can still be parsed
    state.write_bytes(content)
    runs = train(tmp_path)
    assert [run.attempt for run in runs] == [2, 2]
    assert {k: v for k, v in results(tmp_path).items() if "history" not in k} == results(
        uninterrupted
    )
    old = json.loads((tmp_path / HOME / "seed-42/history/1/record.json").read_text())
    assert old["invalid"]["cause"] == "unreadable checkpoint"


def poison(out: Path, rows: list[int]) -> None:
    """Put NaN into the parameters of some seeds, as if their losses had just diverged."""
    state = next((out / HOME).glob("checkpoint-*/step-*/state.safetensors"))
    arrays = {name: np.array(array) for name, array in load_file(state).items()}
    for name in arrays:
        if name.startswith("params/"):
            arrays[name][rows] = np.nan
    save_file(arrays, state)
    header = json.loads((state.parent / "checkpoint.json").read_text())
    header["state_sha256"] = sha256(state)
    (state.parent / "checkpoint.json").write_text(json.dumps(header))


def test_one_seed_that_diverges_does_not_take_the_others_along(
    uninterrupted: Path, tmp_path: Path
) -> None:
    train_until(tmp_path, step=9)
    poison(tmp_path, [1])
    first, second = train(tmp_path)
    assert invalid_reason(first) is None
    reason = invalid_reason(second)
    assert reason == (
        "non-finite parameters or losses: a loss among the steps up to 9 is not finite"
    )
    with pytest.raises(InputError, match=r"not a valid run.*non-finite.*the same seed"):
        load_run(second.folder)
    assert second.record["finished_step"] == 14
    repeated = train(tmp_path)[1]
    assert (repeated.attempt, invalid_reason(repeated)) == (2, None)
    assert {k: v for k, v in results(tmp_path).items() if "history" not in k} == results(
        uninterrupted
    )


def test_training_ends_when_every_seed_has_diverged(tmp_path: Path) -> None:
    train_until(tmp_path, step=9)
    poison(tmp_path, [0, 1])
    runs = train(tmp_path)
    assert [run.state for run in runs] == ["invalid", "invalid"]
    assert [run.record["finished_step"] for run in runs] == [9, 9]
    assert [run.attempt for run in train(tmp_path)] == [2, 2]


def test_other_settings_or_other_data_are_refused_and_nothing_changes(
    uninterrupted: Path, tmp_path: Path
) -> None:
    shutil.copytree(uninterrupted, tmp_path / "out")
    before = results(tmp_path / "out")
    with pytest.raises(InputError, match=r"learning_rate \(0.01 and 0.5\): choose another folder"):
        train(tmp_path / "out", learning_rate=0.5)
    other = TaskData.place(Dataset(walks(10, 20, seed=9), toy_dataset().val, None))
    with pytest.raises(InputError, match="other settings, the data"):
        train_runs(toy_config(), other, SEEDS, tmp_path / "out")
    assert results(tmp_path / "out") == before


def test_a_default_that_is_given_is_the_same_run(tmp_path: Path) -> None:
    given = toy_config(critic="cosine", settings=(*SMALL, ("temperature", Cosine.temperature)))
    assert given == toy_config(critic="cosine")
    hotter = toy_config(critic="cosine", settings=(*SMALL, ("temperature", 0.5)))
    train_runs(given, toy_data(), [42], tmp_path)
    with pytest.raises(InputError, match=r"other settings, critic_fields.temperature"):
        train_runs(hotter, toy_data(), [42], tmp_path)


EVEN: dict[str, Any] = {"steps": 6}
"""A run that ends with a whole line of metrics."""


def test_a_finished_run_is_extended_and_ends_with_the_bits_of_a_longer_one(tmp_path: Path) -> None:
    whole = train_runs(toy_config(), toy_data(), SEEDS, tmp_path / "whole")
    train_runs(toy_config(**EVEN), toy_data(), SEEDS, tmp_path / "parts")
    longer = train_runs(toy_config(), toy_data(), SEEDS, tmp_path / "parts")
    for one, other in zip(longer, whole, strict=True):
        assert find_fault(one) is None
        assert one.record["params_sha256"] == other.record["params_sha256"]
        assert one.record["state_sha256"] == other.record["state_sha256"]
        assert one.config_hash == other.config_hash
        assert (one.folder / METRICS).read_bytes() == (other.folder / METRICS).read_bytes()
        assert [each["from_step"] for each in one.record["extended"]] == [6]
    again = train_runs(toy_config(), toy_data(), SEEDS, tmp_path / "parts")
    assert [run.record for run in again] == [run.record for run in longer]


@pytest.mark.parametrize("at", [0, 1, 2, 3, 4])
def test_an_extension_that_is_killed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    (whole,) = train_runs(toy_config(), toy_data(), [42], tmp_path / "whole")
    train_runs(toy_config(**EVEN), toy_data(), [42], tmp_path / "parts")
    left = [at]

    def write_or_die(path: Path, content: Any) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        write_json(path, content)

    monkeypatch.setattr(extend, "write_json", write_or_die)
    with pytest.raises(Killed):
        train_runs(toy_config(), toy_data(), [42], tmp_path / "parts")
    monkeypatch.undo()
    (run,) = train_runs(toy_config(), toy_data(), [42], tmp_path / "parts")
    assert run.record["params_sha256"] == whole.record["params_sha256"]
    assert run.attempt == 1


def test_what_cannot_be_extended_is_said(tmp_path: Path) -> None:
    train_runs(toy_config(), toy_data(), [42], tmp_path / "odd")
    with pytest.raises(InputError, match="did not end with a whole line of metrics"):
        train_runs(toy_config(steps=30), toy_data(), [42], tmp_path / "odd")
    (run,) = train_runs(toy_config(**EVEN), toy_data(), [42], tmp_path / "even")
    (run.folder / "state.safetensors").unlink()
    with pytest.raises(InputError, match=r"its last state, state\.safetensors, is not there"):
        train_runs(toy_config(), toy_data(), [42], tmp_path / "even")
    with pytest.raises(InputError, match=r"other settings, batch_size .*, steps"):
        train_runs(toy_config(batch_size=8), toy_data(), [42], tmp_path / "even")
    assert find_fault(read_run(run.folder)) is None  # and stays as it is


def test_two_processes_do_not_train_one_folder(tmp_path: Path) -> None:
    def watch(_: BatchProgress) -> None:
        with pytest.raises(BusyError, match="being trained by another process"):
            train(tmp_path)
        raise Killed

    with pytest.raises(Killed):
        train_runs(toy_config(), toy_data(), SEEDS, tmp_path, watch=watch)
    assert [run.state for run in train(tmp_path)] == ["finished", "finished"]


@pytest.mark.parametrize("seeds", [(), (1, 1), (-1,), (2**32,)])
def test_seeds_that_cannot_be(seeds: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be different whole numbers from 0 to"):
        train(tmp_path, seeds=seeds)


def test_a_repeated_seed_does_not_go_on_from_the_state_of_its_first_attempt(
    uninterrupted: Path, tmp_path: Path
) -> None:
    train_until(tmp_path, step=12)
    invalidate(tmp_path / HOME / "seed-42", "a bug")
    poison(tmp_path, [0])  # the first attempt's state of seed 42, which nobody may use any more
    with pytest.raises(Killed):
        train_runs(toy_config(), toy_data(), [42], tmp_path, watch=stop_at(12))
    repeated, other = train(tmp_path)
    assert (repeated.attempt, repeated.record["resumed"]) == (2, [])
    assert [start["from_step"] for start in other.record["resumed"]] == [12]
    current = {k: v for k, v in results(tmp_path).items() if "history" not in k}
    assert current == results(uninterrupted)
