"""The quasimetric critic: its loss slowly, its distance, and OGBench's own numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.facts import Facts, network_size
from tests.critics.full_cases import DIMS, SLOW, quick_jit, random_batch
from toptail.errors import InputError
from toptail.lab.critics.base import Batch
from toptail.lab.critics.quasimetric import Quasimetric, iqe_distance
from toptail.lab.foreign.pickled import read_pickle

GROUP = 8


def union(starts: Any, ends: Any) -> float:
    """Length of the union of intervals, from the left to the right."""
    length, reached = 0.0, -np.inf
    for start, end in sorted(zip(starts, ends, strict=True)):
        if start < end:
            length += max(0.0, end - max(start, reached))
            reached = max(reached, end)
    return length


def slow_distance(x: Any, y: Any, alpha: float, group: int = SLOW.group) -> float:
    parts = [union(x[i : i + group], y[i : i + group]) for i in range(0, len(x), group)]
    weight = 1 / (1 + np.exp(-alpha))
    return float(weight * np.mean(parts) + (1 - weight) * max(parts))


def latent(params: slow.Tree, member: int, row: Any) -> Any:
    width = params["phi"]["kernel_phi"].shape[1]
    filled = np.concatenate([row, np.zeros(width - len(row))])
    return slow.mlp(params["phi"], "kernel_phi", 0, member, filled)


def after(params: slow.Tree, member: int, z: Any, action: Any) -> Any:
    return z + slow.mlp(params["step"], "kernel_step", 0, member, np.concatenate([z, action]))


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    """OGBench's value loss and dynamics loss, row by row, for each member."""
    losses, info = [], []
    for j in range(set_.members):
        alpha = params["alpha"][j]

        def d(x: Any, y: Any, alpha: float = alpha) -> float:
            return slow_distance(x, y, alpha)

        far, step, model = [], [], []
        columns = (rows.states, rows.actions, rows.next_states, rows.random_goals)
        for state, action, following, goal in zip(*columns, strict=True):
            z, there = latent(params, j, state), latent(params, j, following)
            predicted = after(params, j, z, action)
            far.append(d(z, latent(params, j, goal)))
            step.append(d(z, there))
            model.append((d(there, predicted) + d(predicted, there)) / 2)
        spread = np.mean([100 * np.log1p(np.exp(5 - x / 100)) for x in far])
        excess = np.mean([max(x - 1, 0) ** 2 for x in step])
        # The multiplier is read twice: with a gradient in the dual, without one in the loss.
        dual = np.exp(params["log_multiplier"][j]) * (0.05 - _stopped(frozen, rows, set_, j))
        held = np.exp(frozen["log_multiplier"][j]) * excess
        losses.append(spread + held + dual + np.mean(model))
        multiplier = np.exp(params["log_multiplier"][j])
        info.append((np.mean(far), np.mean(step), multiplier, np.mean(model)))
    names = ("far", "step_length", "multiplier", "model_loss")
    means = np.mean(info, axis=0)
    return {"loss": float(np.mean(losses)), **dict(zip(names, map(float, means), strict=True))}


def _stopped(frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings, j: int) -> float:
    """The mean squared excess of the unmoved parameters, for the dual."""
    del set_
    lengths = [
        slow_distance(latent(frozen, j, s), latent(frozen, j, n), frozen["alpha"][j])
        for s, n in zip(rows.states, rows.next_states, strict=True)
    ]
    return float(np.mean([max(x - 1, 0) ** 2 for x in lengths]))


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    members = [
        [
            -slow_distance(
                after(params, j, latent(params, j, state), action),
                latent(params, j, goal),
                params["alpha"][j],
            )
            for state, action, goal in zip(s, a, g, strict=True)
        ]
        for j in range(SLOW.members)
    ]
    return {"minus_distance": np.mean(members, axis=0)}


D = SLOW.embed_dim
FACTS = Facts(
    float(100 * np.log1p(np.exp(5)) + 0.05),  # every distance is 0
    "minus_distance",
    2 * (network_size(DIMS[0], D) + network_size(D + DIMS[1], D) + 2),
    slow_loss,
    slow_reads,
    frozenset({"minus_distance"}),
)


def test_the_distance_is_a_quasimetric() -> None:
    x, y, z = jnp.asarray(np.random.default_rng(0).normal(size=(3, 50, 16)), jnp.float32)

    def d(a: jax.Array, b: jax.Array) -> Any:
        return np.asarray(iqe_distance(a, b, jnp.full(50, 0.3), GROUP))

    assert (d(x, y) >= 0).all()
    np.testing.assert_array_equal(d(x, x), 0.0)
    assert np.abs(d(x, y) - d(y, x)).max() > 0.1
    assert (d(x, z) + d(z, y) - d(x, y) >= -1e-5).all()


HOME = Path("tests/fixtures/foreign/ogbench/qrl/sd000_20250101_000000")


def stacked(params: Any, name: str) -> dict[str, jax.Array]:
    """A perceptron of Flax as a stack with one member."""
    found = {}
    for i in range(3):
        dense = params[f"Dense_{i}"]
        found[f"kernel_{i or name}"] = jnp.asarray(dense["kernel"])[None]
        found[f"bias_{i}"] = jnp.asarray(dense["bias"])[None]
        if i < 2:
            norm = params[f"LayerNorm_{i}"]
            found |= {f"scale_{i}": jnp.asarray(norm["scale"])[None]}
            found |= {f"shift_{i}": jnp.asarray(norm["bias"])[None]}
    return found


def ogbench_critic() -> tuple[Quasimetric, Any]:
    """The weights of OGBench's own QRL agent, in this critic."""
    (path,) = HOME.glob("params_*.pkl")
    modules = read_pickle(path.read_bytes(), path)["agent"]["network"]["params"]
    value = modules["modules_value"]
    params = {
        "phi": stacked(value["phi"], "phi"),
        "step": stacked(modules["modules_dynamics"], "step"),
        "alpha": jnp.asarray(value["alpha"]["value"])[None],
        "log_multiplier": jnp.asarray(modules["modules_lam"]["log_value"])[None],
    }
    return Quasimetric(hidden=(16, 16), embed_dim=16, ensemble=1), params


def test_it_scores_as_ogbenchs_qrl_on_the_same_weights() -> None:
    critic, params = ogbench_critic()
    with np.load(HOME / "outputs.npz") as known:
        rows = (jnp.asarray(known[name]) for name in ("states", "actions", "goals"))
        found = critic.score(params, *rows)
        np.testing.assert_allclose(found, known["scores"], rtol=2e-5, atol=2e-6)


def ogbench_distance(x: jax.Array, y: jax.Array, alpha: jax.Array) -> jax.Array:
    """IQE by sorting all ends and counting how many intervals are open, as OGBench's code does."""
    x, y = (z.reshape(*z.shape[:-1], -1, GROUP) for z in (x, y))
    ends = jnp.concatenate([x, y], axis=-1)
    order = jnp.argsort(ends, axis=-1)
    is_start = order < GROUP
    counts = jnp.take_along_axis(jnp.concatenate([x < y, x < y], axis=-1), order, axis=-1)
    opened = jnp.cumsum(jnp.where(is_start, 1, -1) * counts, axis=-1) > 0
    sorted_ends = jnp.take_along_axis(ends, order, axis=-1)
    gaps = sorted_ends[..., 1:] - sorted_ends[..., :-1]
    components = jnp.sum(jnp.where(opened[..., :-1], gaps, 0.0), axis=-1)
    weight = jax.nn.sigmoid(alpha)
    return weight * components.mean(-1) + (1 - weight) * components.max(-1)


def test_its_loss_and_gradient_are_those_of_ogbenchs_formula_on_the_same_weights() -> None:
    critic, params = ogbench_critic()
    batch = random_batch()
    narrow = {"states": 2, "next_states": 2, "random_goals": 2}
    batch = batch._replace(**{n: getattr(batch, n)[:, :w] for n, w in narrow.items()})

    def published(params: Any, batch: Batch) -> jax.Array:
        def phi(x: jax.Array) -> jax.Array:
            return critic.latent(params, x)[0]

        here, there, goal = (phi(getattr(batch, name)) for name in narrow)
        alpha, lam = params["alpha"][0], jnp.exp(params["log_multiplier"][0])
        d_neg, d_pos = (ogbench_distance(here, x, alpha) for x in (goal, there))
        d_neg_loss = (100 * jax.nn.softplus(5 - d_neg / 100)).mean()
        d_pos_loss = (jax.nn.relu(d_pos - 1) ** 2).mean()
        value = d_neg_loss + d_pos_loss * jax.lax.stop_gradient(lam)
        dual = lam * (0.05 - jax.lax.stop_gradient(d_pos_loss))
        model = critic.after(params, here[None], batch.actions)[0]
        misses = ogbench_distance(there, model, alpha) + ogbench_distance(model, there, alpha)
        return value + dual + misses.mean() / 2

    def own(params: Any, batch: Batch) -> jax.Array:
        return critic.loss(params, batch, jax.random.key(0))[0]

    expected, slope = quick_jit(jax.value_and_grad(published))(params, batch)
    found, ours = quick_jit(jax.value_and_grad(own))(params, batch)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(slope), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="must be a multiple of"):
        Quasimetric(embed_dim=12)
    with pytest.raises(InputError, match="goals that are states"):
        Quasimetric(hidden=(8,), embed_dim=8).init(jax.random.key(0), 2, 1, 3)
