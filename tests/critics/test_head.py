"""The head example: a critic on the frozen parameters of another run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.examples import registered
from tests.critics.facts import HEADS, Facts
from tests.critics.full_cases import SLOW
from tests.training.toy import toy_config, toy_data, toy_file
from toptail.commands.train import Train
from toptail.errors import InputError
from toptail.lab.critics.base import FROZEN
from toptail.lab.scorers.runs import of_runs
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.config import RunConfig, base_config
from toptail.lab.training.runs import PARAMS, invalidate, load_run, read_run
from toptail.lab.training.session import BatchProgress, train_runs


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    e = slow.embed(frozen["frozen"], set_, rows.states, rows.actions, rows.goals)
    q = slow.head(params, *e)
    error = q - set_.gamma**rows.offsets
    return {"loss": float((error**2).mean()), "q_mean": float(q.mean())}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    return {"q": slow.head(params, *slow.embed(params["frozen"], SLOW, s, a, g)).mean(0)}


# With gamma^0 as the target and every embedding zero.
FACTS = Facts(1.0, "q", HEADS, slow_loss, slow_reads)


@pytest.fixture
def below(tmp_path: Path) -> Path:
    """Runs of a raw critic."""
    train_runs(toy_config(), toy_data(), [1, 2], tmp_path)
    return tmp_path / "walks" / "raw"


def on(below: Path, **changes: Any) -> RunConfig:
    """The configuration of a head on these runs."""
    return toy_config(critic="head", base=base_config(below), on=below, **changes)


class StoppedError(Exception):
    pass


def stop_at_six(at: BatchProgress) -> None:
    if at.step == 6:
        raise StoppedError


def test_every_seed_reads_the_frozen_parameters_of_its_own_run(below: Path, tmp_path: Path) -> None:
    with registered("head"):
        runs = train_runs(on(below), toy_data(), [1, 2], tmp_path)
        assert [run.state for run in runs] == ["finished"] * 2
        for run in runs:
            base = read_run(below / run.folder.name)
            assert run.record["frozen"] == {
                "run": f"walks/raw/{run.folder.name}",
                "params_sha256": base.record["params_sha256"],
            }
            params = load_params(run.folder / PARAMS)
            expected = load_params(base.folder / PARAMS)
            jax.tree.map(np.testing.assert_array_equal, params[FROZEN], expected)
            head = sum(leaf.size for leaf in jax.tree.leaves(params["head"]))
            assert run.record["parameter_count"] == head
        # What was trained needs nothing of the other run any more.
        below.rename(tmp_path / "elsewhere")
        assert load_run(runs[0].folder).critic == on(tmp_path / "elsewhere").build()
        one, two = of_runs(tmp_path / "walks", ["head"], (1, 2), "walks")
        rows = [np.ones((3, 2), np.float32)] * 3
        assert np.isfinite(one.score(*rows)).all()
        assert (one.score(*rows) != two.score(*rows)).all()


def test_stopped_and_resumed_it_ends_with_the_same_bits(below: Path, tmp_path: Path) -> None:
    with registered("head"):
        (whole,) = train_runs(on(below), toy_data(), [1], tmp_path / "whole")
        with pytest.raises(StoppedError):
            train_runs(
                on(below),
                toy_data(),
                [1],
                tmp_path / "parts",
                checkpoint_every=3,
                watch=stop_at_six,
            )
        (parts,) = train_runs(on(below), toy_data(), [1], tmp_path / "parts", checkpoint_every=3)
        assert len(parts.record["resumed"]) == 1
        assert parts.record["params_sha256"] == whole.record["params_sha256"]


def test_a_run_on_other_parameters_is_another_run(below: Path, tmp_path: Path) -> None:
    with registered("head"):
        train_runs(on(below), toy_data(), [1], tmp_path)
        train_runs(toy_config(learning_rate=0.02), toy_data(), [1], tmp_path / "other")
        other = on(tmp_path / "other" / "walks" / "raw")
        with pytest.raises(InputError, match=r"other settings, base\.learning_rate"):
            train_runs(other, toy_data(), [1], tmp_path)
        invalidate(below / "seed-1", "a bug")
        with pytest.raises(InputError, match="not a valid run"):
            train_runs(on(below), toy_data(), [1], tmp_path)
        train_runs(toy_config(), toy_data(), [1], tmp_path)
        record = read_run(tmp_path / "walks" / "head" / "seed-1").record
        base = read_run(below / "seed-1").record
        assert record["frozen"]["params_sha256"] == base["params_sha256"]  # repeated, same bits


def test_what_cannot_be_trained_on_is_refused(below: Path, tmp_path: Path) -> None:
    with registered("head"):
        with pytest.raises(InputError, match="trained on the frozen parameters of another run"):
            train_runs(toy_config(critic="head"), toy_data(), [1], tmp_path)
        with pytest.raises(InputError, match="holds no record"):
            train_runs(on(below), toy_data(), [3], tmp_path)
        data = replace(toy_data(), sha256="0" * 64)
        with pytest.raises(InputError, match="trained on other data"):
            train_runs(on(below), data, [1], tmp_path)
        with pytest.raises(InputError, match="found 0 runs"):
            base_config(tmp_path)
    with pytest.raises(InputError, match="has no effect on raw"):
        toy_config(base=base_config(below), on=below)


@pytest.mark.slow
def test_the_command_trains_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = toy_file(tmp_path), tmp_path / "runs"
    sizes = "batch_size=16,log_every=2,hidden=8,depth=1"
    how: dict[str, Any] = {"task": str(file), "out": out, "seeds": ("1",), "steps": 4}
    assert Train(critics=("raw",), set=(sizes, "embed_dim=4"), **how).run() == 0
    with registered("head"):
        on = out / "walks" / "raw"
        assert Train(critics=("head",), on=on, set=(sizes,), **how).run() == 0
    assert "head" in capsys.readouterr().out
    base = read_run(out / "walks" / "head" / "seed-1").config["base"]
    assert base["critic"] == "raw"
