"""Spectrally normalized encoders: loss slowly, and that they stretch nothing once trained."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from tests.critics import slow_full as slow
from tests.critics.facts import EMBEDDED, ENCODERS, LN2, OF_RAW, Facts, of_members
from tests.critics.full_cases import SLOW
from tests.training.toy import toy_config, toy_data
from toptail.lab.critics.spectral import Spectral
from toptail.lab.training.loop import init_state, run_steps


def network(params: slow.Tree, kernel: str, first: int, member: int, x: Any) -> Any:
    """One network without LayerNorm, each matrix over its largest singular value."""
    depth = sum(name.startswith("bias_") for name in params) - 1
    names = [kernel, *(f"kernel_{i + 1}" for i in range(depth))]
    for i, name in enumerate(names):
        at = member if i == 0 else first + member
        w = params[name][at]
        right = params["target"][name.replace("kernel", "vector")][at]
        left = params["left"][name][at]
        x = x @ w / (left @ w @ right) + params[f"bias_{i}"][first + member]
        x = slow.gelu(x) if i < depth else x
    return x


def embed(params: slow.Tree, frozen: slow.Tree, s: Any, a: Any, g: Any) -> Any:
    """phi and psi; the singular vectors carry no gradient."""
    left = {}
    for name, kernels in frozen.items():
        if name.startswith("kernel"):
            right = frozen["target"][name.replace("kernel", "vector")]
            left[name] = [slow.unit(w @ u) for w, u in zip(kernels, right, strict=True)]
    own = {**params, "target": frozen["target"], "left": left}
    members = range(SLOW.members)
    pairs = [np.concatenate(x) for x in zip(s, a, strict=True)]
    phi = [[network(own, "kernel_phi", 0, j, x) for x in pairs] for j in members]
    psi = [[network(own, "kernel_psi", SLOW.members, j, x) for x in g] for j in members]
    return np.array(phi), np.array(psi)


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    phi, psi = embed(params, frozen, rows.states, rows.actions, rows.goals)
    scale = float(np.exp(params["log_scale"][0]))
    logits = [scale * p @ q.T / np.sqrt(set_.embed_dim) for p, q in zip(phi, psi, strict=True)]
    loss, info = slow.contrast(np.array(logits), set_.contrast)
    return {"loss": loss, **info, "scale": scale}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    phi, psi = embed(params, params, s, a, g)
    found = {
        "f_cos": slow.cosines(phi, psi).mean(0),
        "phi_norm": np.sqrt((phi**2).sum(axis=-1)).mean(0),
    }
    assert found.keys() | {"f_raw"} == EMBEDDED
    return found | of_members("f_raw", (phi * psi).sum(axis=-1))


LAYER_NORMS = 4 * 2 * 2 * 16  # a scale and a shift in two layers of four networks
FACTS = Facts(
    LN2,
    "f_raw",
    ENCODERS - LAYER_NORMS + 1,
    slow_loss,
    slow_reads,
    OF_RAW,
    embeds=True,
    target=True,
)


def test_every_matrix_has_the_largest_singular_value_one_after_training() -> None:
    config = toy_config(critic="spectral", learning_rate=1e-3).training
    critic, data = config.learner, toy_data().rows
    assert isinstance(critic, Spectral)
    state = init_state(config, jax.random.key(0), data)
    state, _ = jax.jit(lambda s: run_steps(config, s, data, 200))(state)
    kernels = critic.encoders.normalized(state.params)
    for name, kernel in kernels.items():
        if name.startswith("kernel"):
            largest = np.linalg.svd(np.asarray(kernel), compute_uv=False).max(axis=-1)
            # A step of power iteration lags a little behind the step of training.
            assert (largest > 1 - 1e-5).all(), name
            assert (largest < 1.1).all(), name
