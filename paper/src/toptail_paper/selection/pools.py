"""The cached candidates of the frozen queries: where they come from, and their local support."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.arrays import one_of, read_arrays
from toptail.io.files import sha256
from toptail.lab.proposals.untrained import local_rows, support_distance
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, Trajectories
from toptail.lab.training.runs import read_run
from toptail_paper.selection.config import PoolSettings, SupportSettings
from toptail_paper.selection.files import check_shape
from toptail_paper.study.store import Stored

USER = "user"
"""Kind of a proposal whose candidates come from a user's file."""


@dataclass(frozen=True)
class Proposal:
    """Where candidates come from."""

    origin: dict[str, Any]
    """What the header of the pools says about it; decides whether stored pools fit."""
    draw: Callable[[FrozenQueries, int], FloatArray]
    """(queries, number of the pool) -> candidates ``[queries, size, a]``."""


def diffusion_proposal(folder: Path, task: str, settings: PoolSettings) -> Proposal:
    """A trained behaviour model, the run in a folder, sampled ancestrally.

    The model is loaded when the first pool is drawn, so that stored pools need no network.
    """
    run = read_run(folder)
    origin = {
        "kind": "diffusion",
        "critic": "diffusion",
        "config_hash": run.config_hash,
        "params_sha256": run.record.get("params_sha256"),
        "seed": settings.policy_seed,
        "sampler": "ancestral",
        "key": settings.seed,
    }

    @cache
    def policy() -> Any:
        from toptail.lab.proposals.diffusion import load_policy

        return load_policy(folder, task)

    def draw(queries: FrozenQueries, pool: int) -> FloatArray:
        import jax

        key = jax.random.fold_in(jax.random.key(settings.seed), pool)
        actions: FloatArray = policy().sample(key, queries.states, queries.goals, settings.size)
        return actions

    return Proposal(origin, draw)


def file_proposal(path: Path, settings: PoolSettings) -> Proposal:
    """Candidates of a user's npz file with ``actions [queries, pools, size, a]``."""
    actions = one_of(path, read_arrays(path), "actions").astype(np.float32)

    def draw(queries: FrozenQueries, pool: int) -> FloatArray:
        shape = (len(queries), settings.count, settings.size, queries.actions.shape[-1])
        check_shape(path, "actions", actions, shape)
        return actions[:, pool]

    return Proposal({"kind": USER, "file": path.name, "sha256": sha256(path)}, draw)


@dataclass(frozen=True, eq=False)
class CandidatePools:
    """What ``pools.npz`` holds: Q queries, P pools each, N candidates of a numbers."""

    actions: FloatArray
    """Candidates, ``[Q, P, N, a]``."""
    logged: FloatArray
    """The data's own action at each query: an anchor, not a candidate, ``[Q, a]``."""
    support_distance: FloatArray
    """Distance of each candidate to the nearest action of nearby data states, ``[Q, P, N]``."""
    on_support: NDArray[np.bool_]
    """Whether that distance is at most the threshold, ``[Q, P, N]``."""
    logged_support_distance: FloatArray
    """The same distance of the logged actions, ``[Q]``."""
    header: dict[str, Any]
    """Query hash, proposal, support rule and ``threshold``."""
    sha256: str
    """Hash of everything above: equal hashes are the same candidates."""

    @property
    def scored_shape(self) -> tuple[int, int, int]:
        """(Q, P, N + 1): what every candidate's score or value has, and the logged action's."""
        queries, pools, size = self.on_support.shape
        return queries, pools, size + 1

    def with_logged(self) -> FloatArray:
        """Candidates with the logged action behind them, ``[Q, P, N + 1, a]``."""
        anchor = np.repeat(self.logged[:, None, None], self.actions.shape[1], axis=1)
        return np.concatenate([self.actions, anchor], axis=2)

    @classmethod
    def of(cls, path: Path, stored: Stored) -> CandidatePools:
        """The pools of a stage file, if its arrays have the layout."""
        arrays: dict[str, Any] = {n: stored.arrays[n] for n in _ARRAYS if n in stored.arrays}
        missing = [name for name in _ARRAYS if name not in arrays]
        if missing:
            raise InputError(f"{path}: there is no array '{missing[0]}', which pools have.")
        queries, pools, size, width = (*arrays["actions"].shape, -1, -1, -1, -1)[:4]
        shapes = {
            "actions": (queries, pools, size, width),
            "logged": (queries, width),
            "support_distance": (queries, pools, size),
            "on_support": (queries, pools, size),
            "logged_support_distance": (queries,),
        }
        for name, shape in shapes.items():
            check_shape(path, name, arrays[name], shape)
        return cls(**arrays, header=dict(stored.header), sha256=stored.sha256)

    @classmethod
    def read(cls, path: Path) -> CandidatePools:
        """Read ``pools.npz``, and refuse one that was changed after it was written."""
        return cls.of(path, Stored.read(path))


_ARRAYS = ("actions", "logged", "support_distance", "on_support", "logged_support_distance")


def pools_header(
    queries: FrozenQueries, data: Trajectories, pools: PoolSettings, support: SupportSettings
) -> dict[str, Any]:
    """What stored pools must have been made from, besides the proposal."""
    return {
        "queries": queries.sha256,
        "data": data.sha256,
        "count": pools.count,
        "size": pools.size,
        "support": asdict(support),
    }


def draw_pools(
    queries: FrozenQueries,
    data: Trajectories,
    proposal: Proposal,
    pools: PoolSettings,
    support: SupportSettings,
    tick: Callable[[float], None],
) -> Stored:
    """Draw all candidates and label their local support.

    The threshold is the ``support.quantile`` quantile of the distances of the queries' own logged
    actions, so that it depends on the data alone, not on any candidate or score.
    """
    drawn = []
    for pool in range(pools.count):
        drawn.append(np.asarray(proposal.draw(queries, pool), dtype=np.float32))
        tick(0.7 * (pool + 1) / pools.count)
    actions = np.stack(drawn, axis=1)
    local = data.actions[local_rows(data, queries.states, support.nearest)]
    flat = actions.reshape(len(queries), -1, actions.shape[-1])
    both = np.concatenate([flat, queries.actions[:, None]], axis=1)
    distance = support_distance(local, both, lambda share: tick(0.8 + 0.2 * share))
    logged = distance[:, -1]
    threshold = float(np.quantile(logged, support.quantile))
    candidates = distance[:, :-1].reshape(actions.shape[:3])
    header = pools_header(queries, data, pools, support) | {
        "proposal": proposal.origin,
        "threshold": threshold,
    }
    arrays: dict[str, NDArray[Any]] = {
        "actions": actions,
        "logged": queries.actions,
        "support_distance": candidates,
        "on_support": candidates <= np.float32(threshold),
        "logged_support_distance": logged,
    }
    return Stored(header, arrays)
