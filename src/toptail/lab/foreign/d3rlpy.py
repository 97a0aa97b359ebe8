"""Q-functions of d3rlpy's models (``algo.save("model.d3")``), run with NumPy alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.special import erf

from toptail.errors import InputError, refusing
from toptail.io.files import check_readable
from toptail.lab.foreign.networks import (
    Dense,
    ForeignCritic,
    Layer,
    LayerNorm,
    Rows,
    chain,
    floats,
    relu,
)
from toptail.lab.foreign.pickled import read_pickle, read_torch

_ADVICE: Final = "expected a model of d3rlpy 2 with a continuous Q-function, saved by algo.save"


def _gelu(x: Rows) -> Rows:
    """GELU by the error function, as PyTorch has it."""
    return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(np.float32(2)))), np.float32)


def _swish(x: Rows) -> Rows:
    return np.asarray(x / (1 + np.exp(-x)), np.float32)


_ACTIVATIONS: Final[dict[str, Layer]] = {
    "relu": relu,
    "gelu": _gelu,
    "tanh": np.tanh,
    "swish": _swish,
    "none": lambda x: x,
}


def read_d3rlpy(path: Path) -> ForeignCritic:
    """The critic of a model: the mean of its Q-functions, as ``predict_value`` has it.

    A model of observations scores (s, a), whatever the goal; one whose observations are as wide as
    a state and a goal together gets both, side by side.
    """
    check_readable(path)
    model = read_pickle(path.read_bytes(), path)
    with refusing(path, "holds no Q-function that is known here", _ADVICE):
        settings = json.loads(model["config"])
        params, kind = settings["config"]["params"], str(settings["config"]["type"])
        (observed,), acted = settings["observation_shape"], int(settings["action_size"])
        tensors = read_torch(model["torch"], path)["q_funcs"]
        members = sorted({name.partition(".")[0] for name in tensors})
        encoder = params["critic_encoder_factory"]
        _require("encoder", encoder["type"], ("default", "vector"))
        of_values = params.get("q_func_factory", {"type": "mean"})["type"]  # IQL has no other
        _require("Q-function", of_values, ("mean", "qr"))
        networks = [_network(tensors, member, encoder["params"]) for member in members]
        if any(width != observed + acted for _, width in networks):
            raise ValueError("its Q-function takes no continuous action")
        observations = _scaler(params["observation_scaler"])
        actions = _scaler(params["action_scaler"])

    def score(states: Rows, taken: Rows, goals: Rows) -> Rows:
        seen = _observed(states, goals, int(observed), path)
        if taken.shape[1] != acted:
            raise InputError(f"{path} is of {acted} actions, and is shown {taken.shape[1]}.")
        rows = np.concatenate([observations(seen), actions(taken)], axis=1)
        mean: Rows = np.mean([network(rows).mean(axis=-1) for network, _ in networks], axis=0)
        return mean

    return ForeignCritic(score, kind)


def _require(what: str, kind: object, known: tuple[str, ...]) -> None:
    if kind not in known:
        raise ValueError(f"its {what} is of the type '{kind}', not {' or '.join(known)}")


def _observed(states: Rows, goals: Rows, width: int, path: Path) -> Rows:
    """The model's observations: states, or states and goals."""
    if states.shape[1] == width:
        return states
    both = np.concatenate([states, goals], axis=1)
    if both.shape[1] != width:
        raise InputError(
            f"{path} observes {width} numbers, and is shown states of {states.shape[1]} and goals "
            f"of {goals.shape[1]}: it was trained on another task."
        )
    return both


def _network(
    tensors: Mapping[str, Any], member: str, encoder: Mapping[str, Any]
) -> tuple[Layer, int]:
    """A Q-function's layers, and the width of its input."""
    prefix = f"{member}._encoder._layers."
    places = sorted({int(n.removeprefix(prefix).split(".")[0]) for n in tensors if prefix in n})
    weights, biases = (
        {place: floats(tensors[f"{prefix}{place}.{part}"]) for place in places}
        for part in ("weight", "bias")
    )
    dense = {at: Dense(w.T, biases[at]) for at, w in weights.items() if w.ndim == 2}
    layers: list[Layer] = []
    for place in places:
        if f"{prefix}{place}.running_mean" in tensors:
            raise ValueError("batch normalization is not read")
        if place in dense:
            layers += [dense[place], _activation(encoder, last=place == max(dense))]
        else:
            layers.append(LayerNorm(weights[place], biases[place], 1e-5))
    end = Dense(floats(tensors[f"{member}._fc.weight"]).T, floats(tensors[f"{member}._fc.bias"]))
    return chain([*layers, end]), dense[min(dense)].inputs


def _activation(encoder: Mapping[str, Any], *, last: bool) -> Layer:
    """The activation after a layer; the encoder's last one may have its own, or none."""
    name = encoder["activation"]
    if last and encoder.get("exclude_last_activation"):
        name = "none"
    elif last and encoder.get("last_activation"):
        name = encoder["last_activation"]
    if name not in _ACTIVATIONS:
        raise ValueError(f"the activation '{name}' is not read")
    return _ACTIVATIONS[name]


def _scaler(stored: Mapping[str, Any]) -> Callable[[Rows], Rows]:
    kind, params = stored["type"], stored["params"]
    _require("scaler", kind, ("none", "standard", "min_max"))
    if kind == "standard":
        mean, std = (np.asarray(params[name], np.float32) for name in ("mean", "std"))
        epsilon = np.float32(params["eps"])
        return lambda x: (x - mean) / (std + epsilon)
    if kind == "min_max":
        low, high = (np.asarray(params[name], np.float32) for name in ("minimum", "maximum"))
        return lambda x: (x - low) / (high - low) * 2 - 1
    return lambda x: x
