"""The value head: its loss, and runs on the frozen parameters of another or on embeddings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.facts import TD, Facts, V, network_size, of_members
from tests.critics.full_cases import SLOW
from tests.training.toy import toy_config, toy_data, toy_dataset, toy_file
from toptail.commands.train import Train
from toptail.errors import InputError
from toptail.lab.critics.base import FROZEN, trained_only
from toptail.lab.critics.value_head import ValueHead
from toptail.lab.foreign.ogbench import read_ogbench
from toptail.lab.scorers.embeddings import Embedding
from toptail.lab.scorers.runs import of_runs
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.config import RunConfig, base_config
from toptail.lab.training.runs import METRICS, PARAMS, invalidate, load_run, read_lines, read_run
from toptail.lab.training.session import BatchProgress, train_runs


def slow_q(params: slow.Tree, frozen: slow.Tree, s: Any, a: Any, g: Any, **how: bool) -> Any:
    """The heads [members, rows, out] of every row's embeddings, scaled one by one."""
    phi, psi = slow.embed(frozen, SLOW, s, a, g)
    rows = [
        (np.concatenate([*phi[:, i], *psi[:, i]]) - frozen["mean"]) / frozen["spread"]
        for i in range(len(s))
    ]
    return np.array(
        [[slow.mlp(params, "kernel_q", 0, j, x, **how) for x in rows] for j in range(SLOW.members)]
    )


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    at = (rows.states, rows.actions, rows.value_goals)
    q = slow_q(params, frozen["frozen"], *at)[..., 0]
    target_q = slow_q(frozen["target"], frozen["frozen"], *at)[..., 0]
    v = slow.value(params, set_.members, rows.states, rows.value_goals)
    next_v = slow.value(frozen["target"], set_.members, rows.next_states, rows.value_goals)
    loss, info = slow.iql(q, v, target_q, next_v, rows, set_)
    return {"loss": loss, **info}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    hidden = slow_q(params, params["frozen"], s, a, g, features=True)
    found = of_members("q", slow_q(params, params["frozen"], s, a, g)[..., 0])
    return found | {"feature_norm": np.sqrt((hidden**2).sum(axis=-1)).mean(0)}


WIDTH = 2 * SLOW.members * SLOW.embed_dim
FACTS = Facts(TD, "q", 2 * network_size(WIDTH, 1) + V, slow_loss, slow_reads, target=True)


@pytest.fixture
def below(tmp_path: Path) -> Path:
    """Runs of a raw critic."""
    train_runs(toy_config(), toy_data(), [1, 2], tmp_path)
    return tmp_path / "walks" / "raw"


def on(below: Path, **changes: Any) -> RunConfig:
    """The configuration of a head on these runs."""
    return toy_config(critic="value_head", base=base_config(below), on=below, **changes)


class StoppedError(Exception):
    pass


def stop_at_six(at: BatchProgress) -> None:
    if at.step == 6:
        raise StoppedError


def test_every_seed_reads_the_frozen_parameters_of_its_own_run(below: Path, tmp_path: Path) -> None:
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
        for name, value in expected.items():
            np.testing.assert_array_equal(params[FROZEN][name], value)
        assert params[FROZEN].keys() - expected.keys() == {"mean", "spread"}
        heads = sum(leaf.size for leaf in jax.tree.leaves(trained_only(params)))
        assert run.record["parameter_count"] == heads
    # What was trained needs nothing of the other run any more.
    below.rename(tmp_path / "elsewhere")
    assert load_run(runs[0].folder).critic == on(tmp_path / "elsewhere").build()
    one, two = of_runs(tmp_path / "walks", ["value_head"], (1, 2), "walks")
    rows = [np.ones((3, 2), np.float32)] * 3
    assert np.isfinite(one.score(*rows)).all()
    assert (one.score(*rows) != two.score(*rows)).all()


def test_stopped_and_resumed_it_ends_with_the_same_bits(below: Path, tmp_path: Path) -> None:
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
    train_runs(on(below), toy_data(), [1], tmp_path)
    train_runs(toy_config(learning_rate=0.02), toy_data(), [1], tmp_path / "other")
    other = on(tmp_path / "other" / "walks" / "raw")
    with pytest.raises(InputError, match=r"other settings, base\.learning_rate"):
        train_runs(other, toy_data(), [1], tmp_path)
    invalidate(below / "seed-1", "a bug")
    with pytest.raises(InputError, match="not a valid run"):
        train_runs(on(below), toy_data(), [1], tmp_path)
    train_runs(toy_config(), toy_data(), [1], tmp_path)
    record = read_run(tmp_path / "walks" / "value_head" / "seed-1").record
    base = read_run(below / "seed-1").record
    assert record["frozen"]["params_sha256"] == base["params_sha256"]  # repeated, same bits


def test_what_cannot_be_trained_on_is_refused(below: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trained on the frozen parameters of another run"):
        train_runs(toy_config(critic="value_head"), toy_data(), [1], tmp_path)
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
    on = out / "walks" / "raw"
    assert Train(critics=("value_head",), on=on, set=(sizes,), **how).run() == 0
    assert "head" in capsys.readouterr().out
    base = read_run(out / "walks" / "value_head" / "seed-1").config["base"]
    assert base["critic"] == "raw"


def test_embeddings_are_scaled_to_unit_variance_over_the_data(below: Path) -> None:
    head, raw = on(below).build(), load_run(below / "seed-1")
    assert isinstance(head, ValueHead)
    frozen = head.frozen(raw.params, toy_data().rows)
    train = toy_dataset().train
    states, actions = (x[train.transitions] for x in (train.observations, train.actions))
    rows = (jnp.asarray(x, jnp.float32) for x in (states, actions, states))
    x = np.asarray(head.q_inputs({FROZEN: frozen}, *rows), np.float64)
    assert x.shape == (len(states), 2 * 4)
    np.testing.assert_allclose(x.mean(axis=0), 0.0, atol=1e-4)
    spread = x.std(axis=0)
    np.testing.assert_allclose(spread[spread > 1e-3], 1.0, rtol=1e-3)


EMBED = """
import numpy as np
from toptail.lab.training.runs import load_run

run = load_run({run!r})


def embed(states, actions, goals):
    phi, psi = run.critic.embed(run.params, states, actions, goals)
    return np.asarray(phi[0]), np.asarray(psi[0])
"""


def test_embeddings_of_a_users_function_give_the_head_of_the_run(
    below: Path, tmp_path: Path
) -> None:
    """A function that returns a run's own embeddings, and that run, are cured alike."""
    (tmp_path / "mine.py").write_text(EMBED.format(run=str(below / "seed-1")))
    file, text = toy_file(tmp_path), f"{tmp_path / 'mine.py'}:embed"
    sizes = ("batch_size=16,log_every=3,hidden=8,depth=1,ensemble=1,learning_rate=0.01",)
    how: dict[str, Any] = {"task": str(file), "seeds": ("1",), "steps": 14, "set": sizes}
    head = ("value_head",)
    assert Train(critics=head, embed=text, out=tmp_path / "embedded", **how).run() == 0
    assert Train(critics=head, embed=text, out=tmp_path / "embedded", **how).run() == 0  # done
    (whole,) = train_runs(on(below), toy_data(), [1], tmp_path / "runs")
    (ours,) = of_runs(tmp_path / "embedded" / "walks", head, (1,), "walks")
    (theirs,) = of_runs(tmp_path / "runs" / "walks", head, (1,), "walks")
    rows = [np.random.default_rng(0).normal(size=(600, 2)).astype(np.float32) for _ in range(3)]
    np.testing.assert_allclose(ours.score(*rows), theirs.score(*rows), rtol=1e-3, atol=1e-3)
    lines = [read_lines(f / METRICS) for f in (whole.folder, read_run(
        tmp_path / "embedded" / "walks" / "value_head" / "seed-1").folder)]  # fmt: skip
    assert lines[0][-1]["tau"] == pytest.approx(lines[1][-1]["tau"], abs=0.02)
    with (tmp_path / "mine.py").open("a") as more:
        more.write("# changed\n")
    with pytest.raises(InputError, match=r"mine.py has changed since"):
        of_runs(tmp_path / "embedded" / "walks", head, (1,), "walks")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return states, goals[:3]", r"a psi of shape \(3, 2\) for 8 rows"),
        ("return states + float('nan'), goals", "expected finite numbers"),
        ("return states", "failed on 8 rows"),
    ],
)
def test_embeddings_that_are_none_are_refused(body: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"def embed(states, actions, goals):\n    {body}\n")
    train = Train(
        task=str(toy_file(tmp_path)),
        critics=("value_head",),
        embed=f"{tmp_path / 'mine.py'}:embed",
        steps=2,
        out=tmp_path / "runs",
    )
    with pytest.raises(InputError, match=message):
        train.run()
    with pytest.raises(InputError, match="value_head alone"):
        replace(train, critics=("raw",)).run()


def test_embeddings_of_an_ogbench_checkpoint() -> None:
    """CRL's phi and psi make its score; agents without embeddings are refused."""
    home = Path("tests/fixtures/foreign/ogbench")
    (path,) = home.glob("crl/sd*/params_*.pkl")
    embedding, critic = Embedding.load(f"ogbench:{path}"), read_ogbench(path)
    rows = list(np.random.default_rng(0).normal(size=(3, 5, 2)).astype(np.float32))
    phi, psi = embedding(*rows)
    halves = [np.split(x, 2, axis=1) for x in (phi, psi)]
    scores = [(p * q).sum(axis=1) / np.sqrt(p.shape[1]) for p, q in zip(*halves, strict=True)]
    np.testing.assert_allclose(np.min(scores, axis=0), critic.score(*rows), rtol=1e-4, atol=1e-4)
    (other,) = home.glob("gciql/sd000*/params_*.pkl")
    with pytest.raises(InputError, match=r"gciql has no phi\(s, a\) and psi\(g\)"):
        Embedding.load(f"ogbench:{other}")
