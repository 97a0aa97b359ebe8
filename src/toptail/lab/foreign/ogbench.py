"""Critics of OGBench's reference agents, from their checkpoints ``params_N.pkl``.

The names of the parameters say which agent it is: CRL and GCIQL have a critic Q(s, a, g), QRL a
quasimetric and, trained with DDPG+BC, a model of its latent dynamics; GCIVL, HIQL, and QRL without
that model have V(s, g) only, and score an action by the state after one simulated step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from toptail.errors import InputError, refusing
from toptail.io.files import check_readable
from toptail.io.json_files import read_object
from toptail.lab.environments.ogbench import ogbench_batch
from toptail.lab.environments.protocol import EnvironmentBatch, StoredRow, stored_rows
from toptail.lab.foreign.networks import (
    Embed,
    FlaxMLP,
    ForeignCritic,
    Rows,
    Score,
    floats,
    iqe,
    mrn,
)
from toptail.lab.foreign.pickled import read_pickle
from toptail.lab.tasks.files import find, load_file, split_path
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.trajectories import Trajectories

_WHOLE: Final = {"pointmaze": 2, "antmaze": 15, "antsoccer": 22}
"""Families whose observation is the simulator's whole state -> how many numbers are positions."""
_BLOCK: Final = 1_024
"""Simulations stepped together, where an environment has as many."""


class Stepper:
    """One step of an environment from any state.

    Where the observation is not the simulator's whole state, a state must be an observation of the
    task's data set, whose row has that state.
    """

    def __init__(self, name: str) -> None:
        self.task = parse_name(name)
        if self.task.dimensions is None:
            raise InputError(f"{name} shows images: a step from a state needs states.")

    def next_states(self, states: Rows, actions: Rows) -> Rows:
        """Observations ``[n, s]`` one step after each action; equal rows are stepped once."""
        width = states.shape[1]
        if (width, actions.shape[1]) != self.task.dimensions:
            raise InputError(
                f"{self.task.name} has observations and actions of {self.task.dimensions} numbers, "
                f"not of {(width, actions.shape[1])}: the critic is of another task."
            )
        pairs = np.concatenate([states, actions], axis=1)
        own, back = np.unique(pairs, axis=0, return_inverse=True)
        result, batch = np.empty((len(own), width), np.float32), self._batch
        for start in range(0, len(own), batch.size):
            part = own[start : start + batch.size]
            slots = np.arange(len(part))
            batch.restore(slots, [self._row(state) for state in part[:, :width]])
            batch.step(slots, part[:, width:])
            result[start : start + len(part)] = batch.observations()[slots]
        return result[back]

    @cached_property
    def _batch(self) -> EnvironmentBatch:
        return ogbench_batch(self.task, _BLOCK)

    @cached_property
    def _splits(self) -> list[tuple[Trajectories, dict[bytes, int]]]:
        """The data set's files, with the row of each observation."""
        path = find(self.task.name)
        found = [load_file(p) for p in (path, split_path(path, "val")) if p.exists()]
        return [
            (data, {row.tobytes(): i for i, row in enumerate(data.observations)}) for data in found
        ]

    def _row(self, state: Rows) -> StoredRow:
        if self.task.has_batches and self.task.family in _WHOLE:
            qpos, qvel = np.split(state, [_WHOLE[self.task.family]])
            return StoredRow(0, state, qpos, qvel if qvel.size else np.zeros_like(qpos))
        key = np.ascontiguousarray(state, np.float32).tobytes()
        place = next(((data, rows[key]) for data, rows in self._splits if key in rows), None)
        if place is None:
            raise InputError(
                f"A state that is no observation of {self.task.name}'s data cannot be stepped "
                "from: there its observation does not say the simulator's whole state."
            )
        (row,) = stored_rows(place[0], np.array([place[1]]))
        return row


FLAGS: Final = "flags.json"
"""The file that OGBench's main.py writes beside a checkpoint: agent settings and environment."""

_SEED: Final = re.compile(r"sd(\d+)")
Pairwise: TypeAlias = Callable[[Rows, Rows], Rows]
"""Of states and goals, or of two embeddings: ``[n, s]`` and ``[n, g]`` to ``[n]``."""


@dataclass(frozen=True)
class _Flags:
    """The content of the flags beside a checkpoint; empty without such a file."""

    content: Mapping[str, Any]
    path: Path

    @classmethod
    def beside(cls, checkpoint: Path) -> _Flags:
        path = checkpoint.parent / FLAGS
        advice = "delete it, or bring the one of this run"
        return cls(read_object(path, advice) if path.exists() else {}, path)

    @property
    def agent(self) -> Mapping[str, Any]:
        agent = self.content.get("agent")
        return agent if isinstance(agent, dict) else {}

    @property
    def seed(self) -> int | None:
        """The training seed of the flags, or of the folder's name, ``sd003_...``."""
        seed = self.content.get("seed")
        if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0:
            return seed
        named = _SEED.match(self.path.parent.name)
        return int(named[1]) if named else None

    def environment(self, checkpoint: Path, agent: str) -> str:
        """The environment's name, which V-critics need."""
        name = self.content.get("env_name")
        if not isinstance(name, str):
            raise InputError(
                f"{checkpoint} holds a V-critic ({agent}), which scores an action by one simulated "
                f"step: {self.path} with 'env_name' must say in which environment; put OGBench's "
                f"{FLAGS} of the run there."
            )
        return name


def read_ogbench(path: Path) -> ForeignCritic:
    """The critic of a checkpoint of OGBench's reference implementation."""
    check_readable(path)
    flags = _Flags.beside(path)
    for name in ("encoder", "frame_stack"):
        if flags.agent.get(name) is not None:
            raise InputError(f"{path} is of an agent that sees images; only states are scored.")
    if flags.agent.get("discrete"):
        raise InputError(f"{path} is of an agent with discrete actions, which are not scored.")
    content = read_pickle(path.read_bytes(), path)
    advice = "expected a params_N.pkl of OGBench's CRL, GCIQL, GCIVL, HIQL or QRL agent"
    with refusing(path, "holds no critic that is known here", advice):
        modules = content["agent"]["network"]["params"]
        agent, score = _scored(path, modules, flags)
        embed = _embeddings(modules["modules_critic"]) if agent == "crl" else None
    reward = -1.0 if agent == "qrl" or flags.agent.get("gc_negative", agent != "crl") else 0.0
    return ForeignCritic(score, agent, flags.seed, 0.0 if agent == "crl" else reward, embed)


def _scored(path: Path, modules: Mapping[str, Any], flags: _Flags) -> tuple[str, Score]:
    """Which agent the parameters are of, and its score."""
    critic = modules.get("modules_critic")
    if critic is not None:
        return ("crl", _bilinear(critic)) if "phi" in critic else ("gciql", _joint(critic))
    value = modules["modules_value"]
    if "phi" in value:
        agent, distance = "qrl", _distance(value)
        dynamics = modules.get("modules_dynamics")
        if dynamics is not None:
            return agent, _latent_step(FlaxMLP.of(value["phi"]), FlaxMLP.of(dynamics), distance)
        of_states = _quasimetric(FlaxMLP.of(value["phi"]), distance)
    elif "modules_goal_rep" in modules:
        agent, of_states = "hiql", _represented(value, modules["modules_goal_rep"])
    else:
        agent, of_states = "gcivl", _mean(FlaxMLP.of(value["value_net"]))
    stepper = Stepper(flags.environment(path, agent))
    return agent, lambda s, a, g: of_states(stepper.next_states(s, a), g)


def _bilinear(params: Mapping[str, Any]) -> Score:
    """CRL: phi(s, a) . psi(g) / sqrt(d), the smaller one of two."""
    phi, psi = FlaxMLP.of(params["phi"]), FlaxMLP.of(params["psi"])

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        pairs, targets = joined(phi, states, actions), joined(psi, goals)
        scale = np.float32(np.sqrt(phi.outputs))
        return smallest((phi(pairs) * psi(targets) / scale).sum(axis=-1))

    return score


def _embeddings(params: Mapping[str, Any]) -> Embed:
    """CRL's phi and psi, of both critics side by side."""
    phi, psi = FlaxMLP.of(params["phi"]), FlaxMLP.of(params["psi"])

    def beside(x: Rows) -> Rows:
        return np.concatenate(x, axis=-1) if x.ndim == 3 else x

    return lambda s, a, g: (beside(phi(joined(phi, s, a))), beside(psi(joined(psi, g))))


def _joint(params: Mapping[str, Any]) -> Score:
    """GCIQL: a network of states, goals and actions, in this order; the smaller one of two."""
    network = FlaxMLP.of(params["value_net"])
    return lambda s, a, g: smallest(network(joined(network, s, g, a))[..., 0])


def _latent_step(phi: FlaxMLP, dynamics: FlaxMLP, distance: Pairwise) -> Score:
    """QRL: minus the distance after a step of the latent model, as its actor is trained by."""

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        here, there = phi(joined(phi, states)), phi(joined(phi, goals))
        return -distance(here + dynamics(joined(dynamics, here, actions)), there)

    return score


def _quasimetric(phi: FlaxMLP, distance: Pairwise) -> Pairwise:
    return lambda s, g: -distance(phi(joined(phi, s)), phi(joined(phi, g)))


def _mean(network: FlaxMLP) -> Pairwise:
    """GCIVL: the mean of two values, as its actor is trained by."""
    return lambda s, g: np.asarray(network(joined(network, s, g))[..., 0].mean(axis=0))


def _represented(params: Mapping[str, Any], goal_rep: Mapping[str, Any]) -> Pairwise:
    """HIQL: the mean of two values of a state and a goal's representation of length sqrt(d)."""
    network, encoder = FlaxMLP.of(params["value_net"]), FlaxMLP.of(goal_rep["layers_0"])
    length = np.float32(np.sqrt(encoder.outputs))

    def value(states: Rows, goals: Rows) -> Rows:
        rep = encoder(joined(encoder, states, goals))
        rep = rep / np.linalg.norm(rep, axis=-1, keepdims=True) * length
        mean: Rows = network(joined(network, states, rep))[..., 0].mean(axis=0)
        return mean

    return value


def _distance(params: Mapping[str, Any]) -> Pairwise:
    """The quasimetric on embeddings: IQE where there is a weight ``alpha``, else MRN."""
    if "alpha" not in params:
        return mrn
    weight = 1.0 / (1.0 + np.exp(-float(floats(params["alpha"]["value"]))))
    return lambda x, y: iqe(x, y, weight)


def smallest(scores: Rows) -> Rows:
    """The smallest score of an ensemble ``[members, n]``; of one network its own."""
    lowest: Rows = scores.min(axis=0) if scores.ndim == 2 else scores
    return lowest


def joined(network: FlaxMLP, *parts: Rows) -> Rows:
    """Rows side by side; their width must be that of a network's input."""
    rows = np.concatenate(parts, axis=-1)
    if rows.shape[-1] != network.inputs:
        sizes = " + ".join(str(part.shape[-1]) for part in parts)
        raise InputError(
            f"The checkpoint's network takes {network.inputs} numbers a row, and is shown {sizes}: "
            "it was trained on another task."
        )
    return rows
