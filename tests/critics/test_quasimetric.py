"""The quasimetric example: another network, a loss with kinks, and an entry of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.contract import gradient_gap
from tests.critics.examples import EXAMPLES, example_entry, registered
from tests.critics.examples.quasimetric import Quasimetric, mrn_distance
from tests.critics.facts import EMBEDDED, ENCODERS, Facts, embedded
from tests.critics.full_cases import BATCH, SLOW, Case, make, random_batch
from tests.quick import quick
from tests.training.toy import toy_config, toy_data
from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.registry import CRITICS, names
from toptail.lab.critics.registry import entry as entry_of
from toptail.lab.scorers.runs import of_runs
from toptail.lab.training.session import train_runs


def slow_distance(x: Any, y: Any) -> float:
    """One pair, coordinate by coordinate."""
    half = len(x) // 2
    further = max(max(a - b, 0.0) for a, b in zip(x[:half], y[:half], strict=True))
    return float(further + np.sqrt(sum((x[half:] - y[half:]) ** 2)))


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    del frozen
    phi, psi = slow.embed(params, set_, rows.states, rows.actions, rows.goals)
    logits = [[[-slow_distance(x, y) for y in q] for x in p] for p, q in zip(phi, psi, strict=True)]
    loss, info = slow.contrast(np.array(logits), "symmetric_info_nce")
    return {"loss": loss, **info}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    phi, psi = slow.embed(params, SLOW, s, a, g)
    each = [
        [-slow_distance(x, y) for x, y in zip(p, q, strict=True)]
        for p, q in zip(phi, psi, strict=True)
    ]
    return embedded(params, s, a, g) | {"minus_distance": np.mean(each, axis=0)}


# All distances are equal: the logarithm of the number of goals.
FACTS = Facts(
    float(np.log(BATCH)),
    "minus_distance",
    ENCODERS,
    slow_loss,
    slow_reads,
    EMBEDDED | {"minus_distance"},
    embeds=True,
)


def test_the_distance_is_a_quasimetric() -> None:
    x, y, z = jnp.asarray(np.random.default_rng(0).normal(size=(3, 50, 6)), jnp.float32)
    there, back, through = mrn_distance(x, y), mrn_distance(y, x), mrn_distance(x, z)
    assert (np.asarray(there) >= 0).all()
    assert np.abs(np.asarray(there - back)).max() > 0.1
    assert (np.asarray(through + mrn_distance(z, y) - there) >= -1e-5).all()


@dataclass(frozen=True)
class Broken(Quasimetric):
    """The right loss with a wrong gradient: the goals' encoder is forgotten in one term."""

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        loss, info = super().loss(params, batch, key)
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        lost = 1e-3 * jnp.mean(e.psi**2)
        return loss + lost - jax.lax.stop_gradient(lost), info


def test_the_gradient_test_finds_a_wrong_gradient() -> None:
    right = make("quasimetric")
    wrong = Broken(encoders=right.encoders)  # type: ignore[attr-defined]
    gaps = [gradient_gap(Case(c), slow_loss, random_batch()) for c in (right, wrong)]
    assert gaps[0] < 1e-4 < gaps[1]


@pytest.mark.parametrize("name", quick(EXAMPLES, ["quasimetric"]))
def test_a_critic_of_another_kind_is_trained_scored_and_named(name: str, tmp_path: Path) -> None:
    assert name not in CRITICS
    with registered(name) as entry:
        assert entry == example_entry(name)
        assert name in names("other")
        assert entry_of(f"{name}[hidden=8]") is entry
        config = toy_config(critic=name)
        (run,) = train_runs(config, toy_data(), [42], tmp_path)
        assert run.state == "finished"
        (scorer,) = of_runs(tmp_path / "walks", [name], (42,), "walks")
        assert scorer.column == f"{name}@42"
    assert name not in CRITICS
