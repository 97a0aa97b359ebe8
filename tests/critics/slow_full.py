"""The full-size critics in float64 NumPy, one network and one row at a time.

Written from the definitions, not from the fast code: every network is evaluated by itself, every
loss is a plain loop. ``frozen`` is the parameter tree that carries no gradient, so a finite
difference in ``params`` alone has to agree with the fast code's gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Tree: TypeAlias = dict[str, Any]
Array: TypeAlias = NDArray[np.float64]
Scalars: TypeAlias = dict[str, float]


class Rows(NamedTuple):
    """A batch in float64, with the fields of `Batch`, and the key that the loss draws from."""

    states: Array
    actions: Array
    goals: Array
    rewards: Array
    value_goals: Array
    next_states: Array
    masks: Array
    offsets: Array
    next_goals: Array
    random_goals: Array
    further: dict[str, Array]
    key: Any


@dataclass(frozen=True)
class Settings:
    """What the losses need to know beside the parameters."""

    members: int = 2
    embed_dim: int = 8
    contrast: str = "binary_nce"
    temperature: float = 0.1
    alpha: float = 0.7
    value_range: float = 1.7
    td_weight: float = 1.3
    gamma: float = 0.97
    expectile: float = 0.8
    beta: float = 1.0
    group: int = 4


# Networks ----------------------------------------------------------------------------------


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3))))


def layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    """Of one row [d]."""
    return np.asarray((x - x.mean()) / np.sqrt(x.var() + 1e-6) * scale + shift)


def mlp(
    params: Tree, kernel: str, first: int, member: int, x: Array, *, features: bool = False
) -> Array:
    """One network of a stack for one row; its group starts at network ``first``."""
    n, depth = first + member, sum(name.startswith("scale_") for name in params)
    h = x @ params[kernel][member]
    for i in range(depth):
        h = gelu(h + params[f"bias_{i}"][n])
        h = layer_norm(h, params[f"scale_{i}"][n], params[f"shift_{i}"][n])
        if features and i == depth - 1:
            return h
        h = h @ params[f"kernel_{i + 1}"][n]
    return np.asarray(h + params[f"bias_{depth}"][n])


def embed(params: Tree, set_: Settings, s: Array, a: Array, g: Array) -> tuple[Array, Array]:
    """phi and psi of rows: each [members, rows, d]."""
    m = set_.members
    pairs = [np.concatenate([x, y]) for x, y in zip(s, a, strict=True)]
    phi = [[mlp(params, "kernel_phi", 0, j, x) for x in pairs] for j in range(m)]
    psi = [[mlp(params, "kernel_psi", m, j, x) for x in g] for j in range(m)]
    return np.array(phi), np.array(psi)


def joint(params: Tree, set_: Settings, s: Array, a: Array, g: Array, **how: bool) -> Array:
    """Outputs of the networks that read [s; g; a]: [members, rows, out]."""
    rows = [np.concatenate(x) for x in zip(s, g, a, strict=True)]
    return np.array(
        [[mlp(params, "kernel_q", 0, j, x, **how) for x in rows] for j in range(set_.members)]
    )


def value(params: Tree, first: int, s: Array, g: Array) -> Array:
    """V of rows; the V network is number ``first`` of its stack."""
    rows = [np.concatenate(x) for x in zip(s, g, strict=True)]
    return np.array([mlp(params, "kernel_v", first, 0, x)[0] for x in rows])


def head(params: Tree, phi: Array, psi: Array) -> Array:
    """q_td of unit embeddings: [members, rows]."""
    return np.array(
        [
            [
                mlp(params["head"], "kernel_td", 0, j, np.concatenate([unit(x), unit(y)]))[0]
                for x, y in zip(phi[j], psi[j], strict=True)
            ]
            for j in range(len(phi))
        ]
    )


def unit(x: Array) -> Array:
    return x / np.sqrt(x @ x)


def cosines(phi: Array, psi: Array) -> Array:
    return np.array(
        [
            [unit(x) @ unit(y) for x, y in zip(p, q, strict=True)]
            for p, q in zip(phi, psi, strict=True)
        ]
    )


# Losses ------------------------------------------------------------------------------------


def cross_entropy(logit: float, label: bool) -> float:
    """-log of the probability that the logistic model gives to the label."""
    return float(np.logaddexp(0.0, -logit if label else logit))


def contrast(logits: Array, kind: str) -> tuple[float, Scalars]:
    """Mean loss over members of [members, B, B] logits, positives on the diagonal."""
    losses, own, other = [], [], []
    for x in logits:
        size = len(x)
        pairs = list(itertools.product(range(size), repeat=2))
        own += [x[i, i] for i in range(size)]
        other += [x[i, j] for i, j in pairs if i != j]
        if kind == "binary_nce":
            losses.append(np.mean([cross_entropy(x[i, j], i == j) for i, j in pairs]))
        else:
            rows = [np.log(np.exp(x[i] - x[i, i]).sum()) for i in range(size)]
            columns = [np.log(np.exp(x[:, i] - x[i, i]).sum()) for i in range(size)]
            losses.append((np.mean(rows) + np.mean(columns)) / 2)
    positive = float(np.mean(own))
    return float(np.mean(losses)), {
        "positive_logit": positive,
        "logit_gap": positive - float(np.mean(other)),
    }


def expectile(errors: Array, level: float) -> float:
    return float(np.mean([(level if e > 0 else 1 - level) * e**2 for e in errors]))


def iql(
    q: Array, v: Array, target_q: Array, next_v: Array, rows: Rows, set_: Settings
) -> tuple[float, Scalars]:
    squares = []
    for i, (reward, mask) in enumerate(zip(rows.rewards, rows.masks, strict=True)):
        aim = reward + (set_.gamma * next_v[i] if mask else 0.0)
        squares += [(member[i] - aim) ** 2 for member in q]
    q_loss = float(np.mean(squares))
    v_loss = expectile(np.array([min(x) for x in target_q.T]) - v, set_.expectile)
    return q_loss + v_loss, {
        "q_loss": q_loss,
        "v_loss": v_loss,
        "q_mean": float(q.mean()),
        "td_rmse": float(np.sqrt(q_loss)),
    }


def sampled_nce(params: Tree, rows: Rows, set_: Settings, offsets: Sequence[int]) -> float:
    """The contrastive MLP's loss where row i meets the goals of rows i + offset."""
    size = len(rows.states)

    def logits(offset: int) -> Array:
        goals = np.array([rows.goals[(i + offset) % size] for i in range(size)])
        return joint(params, set_, rows.states, rows.actions, goals)[..., 0]

    positive = np.mean([cross_entropy(x, True) for x in logits(0).ravel()])
    drawn = [cross_entropy(x, False) for k in offsets for x in logits(k).ravel()]
    return float((positive + (size - 1) * np.mean(drawn)) / size)


# Families: (params, frozen, rows, settings) -> the loss and everything that is logged ----------


def raw(params: Tree, frozen: Tree, rows: Rows, set_: Settings) -> Scalars:
    del frozen
    phi, psi = embed(params, set_, rows.states, rows.actions, rows.goals)
    logits = np.array([p @ q.T for p, q in zip(phi, psi, strict=True)]) / np.sqrt(set_.embed_dim)
    loss, info = contrast(logits, set_.contrast)
    return {"loss": loss, **info}


def cosine(params: Tree, frozen: Tree, rows: Rows, set_: Settings) -> Scalars:
    del frozen
    phi, psi = embed(params, set_, rows.states, rows.actions, rows.goals)
    learned = "log_temperature" in params
    temperature = float(np.exp(params["log_temperature"])) if learned else set_.temperature
    logits = np.array(
        [[[unit(x) @ unit(y) for y in q] for x in p] for p, q in zip(phi, psi, strict=True)]
    )
    loss, info = contrast(logits / temperature, set_.contrast)
    return {"loss": loss, **info, **({"temperature": temperature} if learned else {})}


def tdq(params: Tree, frozen: Tree, rows: Rows, set_: Settings) -> Scalars:
    s, a, g = rows.states, rows.actions, rows.value_goals
    q = joint(params, set_, s, a, g)[..., 0]
    target_q = joint(frozen["target"], set_, s, a, g)[..., 0]
    v = value(params, set_.members, s, g)
    next_v = value(frozen["target"], set_.members, rows.next_states, g)
    loss, info = iql(q, v, target_q, next_v, rows, set_)
    return {"loss": loss, **info}


def _with_bellman_head(
    params: Tree, frozen: Tree, rows: Rows, set_: Settings, alpha: float
) -> Scalars:
    """Cosine contrast plus IQL on q_td + alpha f_cos of the same encoders."""

    def prediction(p: Tree) -> Array:
        e = embed(p, set_, rows.states, rows.actions, rows.value_goals)
        return head(p, *e) + alpha * cosines(*e)

    v = value(params["value"], 0, rows.states, rows.value_goals)
    next_v = value(frozen["value"], 0, rows.next_states, rows.value_goals)
    td, info = iql(prediction(params), v, prediction(frozen["target"]), next_v, rows, set_)
    return _sum(cosine(params, frozen, rows, set_), td, info, set_)


def _sum(contrastive: Scalars, td: float, info: Scalars, set_: Settings) -> Scalars:
    first = contrastive["loss"]
    return {**contrastive, **info, "contrast": first, "loss": first + set_.td_weight * td}


def hybrid(params: Tree, frozen: Tree, rows: Rows, set_: Settings) -> Scalars:
    return _with_bellman_head(params, frozen, rows, set_, set_.alpha * set_.value_range)


def two_head_joint(params: Tree, frozen: Tree, rows: Rows, set_: Settings) -> Scalars:
    return _with_bellman_head(params, frozen, rows, set_, 0.0)


def two_head_separate(params: Tree, frozen: Tree, rows: Rows, set_: Settings) -> Scalars:
    td = tdq(params["value"], {"target": frozen["target"]}, rows, set_)
    loss = td.pop("loss")
    return _sum(cosine(params, frozen, rows, set_), loss, td, set_)


def td_bilinear(params: Tree, frozen: Tree, rows: Rows, set_: Settings) -> Scalars:
    def q(p: Tree) -> Array:
        phi, psi = embed(p, set_, rows.states, rows.actions, rows.value_goals)
        return np.asarray((phi * psi).sum(axis=-1) / np.sqrt(set_.embed_dim))

    v = value(params["value"], 0, rows.states, rows.value_goals)
    next_v = value(frozen["value"], 0, rows.next_states, rows.value_goals)
    loss, info = iql(q(params), v, q(frozen["target"]), next_v, rows, set_)
    return {"loss": loss, **info}


def nce_mlp(params: Tree, frozen: Tree, rows: Rows, set_: Settings) -> Scalars:
    """With every other row as a negative: then nothing depends on the draw."""
    del frozen
    size = len(rows.states)
    logits = np.zeros((set_.members, size, size))
    for j in range(size):
        goals = np.repeat(rows.goals[j][None], size, axis=0)
        logits[:, :, j] = joint(params, set_, rows.states, rows.actions, goals)[..., 0]
    loss, info = contrast(logits, "binary_nce")
    return {"loss": loss, **info}
