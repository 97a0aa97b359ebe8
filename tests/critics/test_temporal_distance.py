"""The temporal distance: its loss slowly, its distance, and that a wrong gradient is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.facts import EMBEDDED, ENCODERS, Facts, embedded, network_size
from tests.critics.full_cases import BATCH, DIMS, SLOW, Case, gradient_gap, make, random_batch
from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.temporal_distance import TemporalDistance, mrn_distance, pair_distances


def slow_distance(x: Any, y: Any) -> float:
    """One pair, coordinate by coordinate."""
    half = len(x) // 2
    further = max(max(a - b, 0.0) for a, b in zip(x[half:], y[half:], strict=True))
    return float(further + np.sqrt(sum((x[:half] - y[:half]) ** 2)))


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    del frozen
    phi, psi = slow.embed(params, set_, rows.states, rows.actions, rows.goals)
    c = [[slow.mlp(params["potential"], "kernel_c", 0, j, g)[0] for g in rows.goals]
         for j in range(set_.members)]  # fmt: skip
    logits = [
        [[c[j][k] - slow_distance(x, y) for k, y in enumerate(psi[j])] for x in phi[j]]
        for j in range(set_.members)
    ]
    loss, info = slow.contrast(np.array(logits), "symmetric_info_nce")
    return {"loss": loss, **info}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    phi, psi = slow.embed(params, SLOW, s, a, g)
    each = [
        [-slow_distance(x, y) for x, y in zip(p, q, strict=True)]
        for p, q in zip(phi, psi, strict=True)
    ]
    return embedded(params, s, a, g) | {"minus_distance": np.mean(each, axis=0)}


FACTS = Facts(
    float(np.log(BATCH)),  # all distances are equal: the logarithm of the number of goals
    "minus_distance",
    ENCODERS + 2 * network_size(DIMS[2], 1),
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


@pytest.mark.parametrize("size", [2, 7, 8])
def test_distances_of_all_pairs_and_their_gradient_are_those_of_each_pair(size: int) -> None:
    """Values of few digits: several coordinates have the largest gap, and some pairs have none."""
    rng = np.random.default_rng(size)
    x = jnp.asarray(rng.integers(-2, 2, (2, 5, size)), jnp.float32)
    y, weight = jnp.asarray(rng.integers(-2, 2, (2, 4, size)), jnp.float32), rng.random((2, 5, 4))

    def each(x: jax.Array, y: jax.Array) -> jax.Array:
        return mrn_distance(x[:, :, None], y[:, None])

    np.testing.assert_allclose(pair_distances(x, y), each(x, y), rtol=1e-6)
    own, slowly = (
        jax.grad(lambda x, y, of=of: jnp.sum(weight * of(x, y)), argnums=(0, 1))(x, y)
        for of in (pair_distances, each)
    )
    for one, other in zip(own, slowly, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@dataclass(frozen=True)
class Broken(TemporalDistance):
    """The right loss with a wrong gradient: the goals' encoder is forgotten in one term."""

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        loss, info = super().loss(params, batch, key)
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        lost = 1e-3 * jnp.mean(e.psi**2)
        return loss + lost - jax.lax.stop_gradient(lost), info


def test_the_gradient_test_finds_a_wrong_gradient() -> None:
    right = make("temporal_distance")
    wrong = Broken(encoders=right.encoders)  # type: ignore[attr-defined]
    gaps = [gradient_gap(Case(c), slow_loss, random_batch()) for c in (right, wrong)]
    assert gaps[0] < 1e-4 < gaps[1]
