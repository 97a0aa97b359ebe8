"""The seed policy: what makes a run invalid, what does not, and what happens then."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.training.toy import toy_config, toy_data
from toptail.commands.runs import Runs, state_of
from toptail.errors import BusyError, InputError
from toptail.io.files import sha256
from toptail.lab.training.checkpoints import load_params, save_params
from toptail.lab.training.runs import (
    Run,
    digest,
    find_fault,
    find_runs,
    invalid_reason,
    invalidate,
    load_run,
    read_run,
)
from toptail.lab.training.session import BatchProgress, train_runs

HOME = Path("walks/raw")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    train(out)
    return out


def train(out: Path) -> Run:
    return train_runs(toy_config(), toy_data(), [42], out, command="toptail train ...")[0]


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """The folder of a valid run."""
    shutil.copytree(trained, tmp_path / "out")
    return tmp_path / "out" / HOME / "seed-42"


def change(path: Path, **entries: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def test_a_record_says_where_a_run_came_from(run: Path) -> None:
    record = read_run(run).record
    assert record["state"] == "finished"
    assert (record["task"], record["critic"], record["seed"]) == ("walks", "raw", 42)
    assert record["command"] == "toptail train ..."
    assert record["config_hash"] == toy_config().hash == digest(read_run(run).config)
    assert record["data"]["train"] == toy_data().sha256
    assert {"python", "toptail", "jax", "numpy"} <= record["versions"].keys()
    assert record["finished_step"] == 14
    assert record["machine"]
    assert "commit" in record
    assert record["params_sha256"] == sha256(run / "params.safetensors")


def test_a_valid_run_loads_with_the_bits_that_were_trained(run: Path) -> None:
    loaded = load_run(run, task="walks", config_hash=toy_config().hash)
    assert loaded.critic == toy_config().build()
    probe = toy_data().probe
    scores = loaded.score(probe.states, probe.actions, probe.goals)
    again = load_run(run).score(probe.states, probe.actions, probe.goals)
    np.testing.assert_array_equal(scores, again)
    tau = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["tau"]
    from toptail.stats import kendall_tau_b

    assert float(kendall_tau_b(scores, probe.value)) == pytest.approx(tau, rel=1e-5)


def not_finite(run: Path) -> None:
    params = load_params(run / "params.safetensors")
    leaves, tree = jax.tree.flatten(params)
    leaves[0] = np.full_like(leaves[0], np.inf)
    save_params(run / "params.safetensors", jax.tree.unflatten(tree, leaves))
    change(run / "record.json", params_sha256=sha256(run / "params.safetensors"))


def edit_line(run: Path, **entries: Any) -> None:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | entries)
    (run / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def drop_last_line(run: Path) -> None:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text("\n".join(lines[:-1]) + "\n")


def edit_config(run: Path) -> None:
    stored = json.loads((run / "config.json").read_text())
    stored["config"]["learning_rate"] = 1.0
    (run / "config.json").write_text(json.dumps(stored))


def replace_config(run: Path) -> None:
    """A whole configuration, in itself consistent, that is not the one the record names."""
    content = toy_config(steps=15).content
    (run / "config.json").write_text(json.dumps({"hash": digest(content), "config": content}))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "lines": (drop_last_line, "steps missing: metrics.jsonl has 4 of 5 lines"),
    "state": (lambda run: change(run / "record.json", state="running"), "steps missing"),
    "loss": (lambda run: edit_line(run, loss=None), "non-finite parameters or losses: a loss"),
    "params": (not_finite, "non-finite parameters or losses: params.safetensors"),
    "gone": (lambda run: (run / "params.safetensors").unlink(), "unreadable checkpoint: .*missing"),
    "bytes": (
        lambda run: (run / "params.safetensors").write_bytes(b"x"),
        "unreadable checkpoint: .*not the file",
    ),
    "config": (edit_config, "wrong task or configuration: config.json does not"),
    "other": (replace_config, "wrong task or configuration: record.json and config.json"),
    "no config": (lambda run: (run / "config.json").unlink(), "wrong task or configuration"),
    "record": (
        lambda run: (run / "record.json").write_text("{"),
        "wrong task or configuration: record.json cannot be read",
    ),
    "seed": (lambda run: change(run / "record.json", seed=7), "wrong .*: record.json is .* seed 7"),
    "task": (lambda run: change(run / "record.json", task="x"), "wrong .* names of the task"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_every_fault_is_found_refused_and_repeated_with_the_same_seed(
    what: str, run: Path, trained: Path
) -> None:
    damage, reason = DAMAGE[what]
    assert invalid_reason(read_run(run)) is None
    damage(run)
    found = invalid_reason(read_run(run))
    assert found is not None
    with pytest.raises(InputError, match=reason):
        load_run(run)
    if what == "state":  # stopped at its end: nothing to repeat, only to finish
        return
    repeated = train(run.parents[2])
    assert (repeated.attempt, invalid_reason(repeated)) == (2, None)
    params = "params.safetensors"
    assert (run / params).read_bytes() == (trained / HOME / "seed-42" / params).read_bytes()
    history = json.loads((run / "history/1/record.json").read_text())
    assert f"{history['invalid']['cause']}: {history['invalid']['detail']}" == found


@pytest.mark.parametrize(
    "entries", [{"tau": None}, {"tau": -1.0}, {"loss": 1e30}, {"logit_gap": -50.0}]
)
def test_results_never_decide(entries: dict[str, Any], run: Path) -> None:
    edit_line(run, **entries)
    assert invalid_reason(read_run(run)) is None
    assert train(run.parents[2]).attempt == 1


def test_a_run_of_another_task_or_configuration_is_refused(run: Path) -> None:
    with pytest.raises(InputError, match="it was trained on walks, not on antmaze"):
        load_run(run, task="antmaze")
    with pytest.raises(InputError, match=r"its configuration is \w+, not 0123"):
        load_run(run, config_hash="0123")


def test_settings_that_this_version_reads_differently_are_refused(run: Path) -> None:
    stored = json.loads((run / "config.json").read_text())
    stored["config"]["sampler_fields"]["future"] = 0.4
    stored["hash"] = digest(stored["config"])
    (run / "config.json").write_text(json.dumps(stored))
    change(run / "record.json", config_hash=stored["hash"])
    assert invalid_reason(read_run(run)) is None
    with pytest.raises(InputError, match=r"other settings, sampler_fields.future \(0.4 and 0.5\)"):
        load_run(run)


def test_a_recorded_bug_is_archived_and_the_seed_repeated(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Runs(invalidate=(str(run),), reason="goals crossed episode ends").run() == 0
    assert "repeat the same seed" in capsys.readouterr().out
    reason = invalid_reason(read_run(run))
    assert reason == "confirmed bug: goals crossed episode ends"
    with pytest.raises(InputError, match="goals crossed episode ends"):
        load_run(run)
    assert (run / "params.safetensors").is_file()
    assert train(run.parents[2]).attempt == 2
    kept = json.loads((run / "history/1/record.json").read_text())
    assert kept["invalid"]["detail"] == "goals crossed episode ends"
    assert kept["invalid"]["at"]
    assert (run / "history/1/params.safetensors").is_file()
    assert invalidate(run, "again").state == "invalid"
    assert train(run.parents[2]).attempt == 3


def test_recording_a_bug_takes_a_run_and_a_reason(run: Path, tmp_path: Path) -> None:
    folder = (str(run),)
    for wrong, says in (
        (Runs(invalidate=folder), "are given together"),
        (Runs(folder, reason="x"), "are given together"),
        (Runs(folder, invalidate=folder, reason="x"), "Give folders to list, or --invalidate"),
        (Runs(), "Give folders to list, or --invalidate"),
        (Runs(invalidate=folder, reason="  "), "for a reason"),
        (Runs(invalidate=(str(tmp_path),), reason="x"), "is not the folder of a run"),
    ):
        with pytest.raises(InputError, match=says):
            wrong.run()


def test_a_run_in_training_is_listed_as_running_and_cannot_be_invalidated(tmp_path: Path) -> None:
    seen = []

    def watch(tick: BatchProgress) -> None:
        if tick.step == 6:
            run = read_run(tmp_path / HOME / "seed-42")
            seen.append(state_of(run))
            with pytest.raises(BusyError, match="is being trained"):
                invalidate(run.folder, "x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_runs(toy_config(), toy_data(), [42], tmp_path, checkpoint_every=3, watch=watch)
    assert seen == [("running", "")]
    run = read_run(tmp_path / HOME / "seed-42")
    assert state_of(run) == ("stopped", "its train command goes on from step 6")
    fault = find_fault(run)
    assert fault is not None
    assert fault.cause == "steps missing"


def test_the_list_of_runs(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = run.with_name("seed-7")
    shutil.copytree(run, other)
    change(other / "record.json", seed=7)
    invalidate(run, "a bug")
    train(run.parents[2])
    invalidate(run, "another bug")
    assert [found.folder.name for found in find_runs(run.parents[2])] == ["seed-7", "seed-42"]
    assert Runs((str(run.parents[2]),)).run() == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "walks" in line]
    assert lines[0] == ["walks", "raw", "7", "14/14", "1", "finished"]
    assert lines[1][:6] == ["walks", "raw", "42", "14/14", "2", "invalid"]
    assert " ".join(lines[1][6:]) == "confirmed bug: another bug"


def test_a_list_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Runs((str(tmp_path),)).run() == 0
    assert capsys.readouterr().out == "No runs there.\n"
    with pytest.raises(InputError, match="is not a folder"):
        Runs((str(tmp_path / "none"),)).run()
