"""The simulator's audit: which candidates are rolled out, and how many queries it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.errors import InputError, option
from toptail.lab.environments.rollout import BatchMaker, RolloutRules
from toptail.lab.judges.rollouts import CandidateStarts, ContinuationPolicy, rollout_returns
from toptail.lab.store.units import fitting
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.progress import Tick, no_tick
from toptail_paper.selection.config import RolloutSettings
from toptail_paper.selection.rollout_design import (
    LOGGED,
    audited_queries,
    candidates_sha256,
    random_candidates,
)
from toptail_paper.selection.rollout_results import RolloutAudit, power
from toptail_paper.selection.rollout_store import Returns32, RolloutStore

_FORMAT = "toptail-rollouts-1"
PARTS: Final = "rollouts.parts"
"""Folder of what is rolled out and not yet put together."""


@dataclass(frozen=True, eq=False)
class RolloutWorld:
    """What rollouts start from and go on with."""

    task: str
    """The data set's name."""
    val: Trajectories
    """The validation split, with simulator state."""
    queries: FrozenQueries
    """The frozen queries of that split."""
    candidates: FloatArray
    """Actions of the audited pool, and the logged action as the last: ``[Q, N + 1, action]``."""
    make: BatchMaker
    """Makes the simulations."""
    goes_on: ContinuationPolicy
    """Who goes on after the judged action."""
    origin: Mapping[str, Any]
    """What a return depends on beside: who goes on, and where."""

    def __post_init__(self) -> None:
        if self.queries.data_sha256 != self.val.sha256:
            raise InputError(
                f"The queries were frozen on other data than {self.val.source} (their hashes "
                "differ): rollouts restore states of the very file that was used."
            )
        if len(self.candidates) != len(self.queries):
            raise InputError(
                f"There are candidates for {len(self.candidates)} queries and "
                f"{len(self.queries)} queries: use the pools of these queries."
            )

    def made_from(self, settings: RolloutSettings) -> dict[str, Any]:
        """Everything that a return depends on, besides query, candidate and repetition."""
        return {
            "format": _FORMAT,
            "task": self.task,
            "queries": self.queries.sha256,
            "candidates": candidates_sha256(self.candidates),
            **rules_of(settings),
            **self.origin,
        }

    def judge(
        self,
        query: IntArray,
        candidate: IntArray,
        settings: RolloutSettings,
        tick: Callable[[int], None],
    ) -> Returns32:
        """Returns of every repetition of (query, candidate) pairs: ``[m, repeats]``."""
        repeats = settings.repeats
        pair = np.repeat(np.arange(len(query)), repeats)
        starts = CandidateStarts(
            rows=self.queries.rows[query][pair],
            goals=self.queries.goals[query][pair],
            actions=self.candidates[query, candidate][pair],
            query=query[pair],
            repeat=np.tile(np.arange(repeats), len(query)),
        )
        returns = rollout_returns(
            self.make,
            self.val,
            starts,
            self.goes_on,
            RolloutRules(settings.horizon, settings.gamma),
            lambda share: tick(round(share * len(starts))),
        )
        return returns.reshape(len(query), repeats).astype(np.float32)


def rules_of(settings: RolloutSettings) -> dict[str, Any]:
    """The settings that a return depends on."""
    names = ("repeats", "horizon", "gamma", "ddim_steps")
    return {name: getattr(settings, name) for name in names}


def judge_by_rollouts(
    folder: Path,
    world: RolloutWorld,
    picks: Mapping[str, IntArray],
    settings: RolloutSettings,
    *,
    most_per_group: int | None = None,
    tick: Tick = no_tick,
) -> RolloutAudit:
    """Roll out every selector's picks, logged actions and random candidates, with power.

    It begins with ``settings.per_group`` queries of each group. While some selector's half-width
    is not below ``settings.e_min``, a share ``settings.growth`` of them is added, up to
    ``most_per_group``. Only the widths decide about going on, never the differences.

    ``rollouts.npz`` and ``picks.parquet`` are written into ``folder``. What is known from there,
    or from the parts of an interrupted call, is not rolled out again.

    Parameters
    ----------
    picks
        Selector to the candidate it picks, ``[Q]``: see `selector_picks`. ``logged`` is added.
    most_per_group
        Where to stop even without power; by default ``settings.most`` times the first number.
    """
    picks, randoms = _asked(world, picks, settings)
    made_from, store = world.made_from(settings), _store(folder / PARTS, world, settings)
    _reuse(folder / "rollouts.npz", made_from, picks, store)
    most = settings.most * settings.per_group if most_per_group is None else most_per_group

    per_group = settings.per_group
    while True:
        audited = audited_queries(world.queries, per_group)
        result = _audit(world, picks, randoms, audited, store, settings, tick)
        complete = len(audited) == len(world.queries)
        if power(result, settings.e_min)["admitted"] or per_group >= most or complete:
            break
        per_group = min(per_group + max(1, int(settings.growth * settings.per_group)), most)

    header = {**made_from, "per_group": per_group, "most_per_group": most}
    result.stored(header).write(folder / "rollouts.npz")
    result.picks().write(folder / "picks.parquet")
    store.clear()
    return result


def roll_out_piece(
    folder: Path,
    world: RolloutWorld,
    picks: Mapping[str, IntArray],
    settings: RolloutSettings,
    piece: int,
    pieces: int,
) -> None:
    """Roll out one of so many pieces of what `judge_by_rollouts` begins with, which will find it.

    A return does not depend on what is rolled out beside it.
    """
    picks, randoms = _asked(world, picks, settings)
    audited = audited_queries(world.queries, settings.per_group)[piece::pieces]
    store = _store(folder / PARTS / f"piece-{piece:04d}", world, settings)
    candidate = _candidates(picks, randoms, audited)
    roll_out(world, store, settings, audited[:, None], candidate, no_tick)


def _asked(
    world: RolloutWorld, picks: Mapping[str, IntArray], settings: RolloutSettings
) -> tuple[dict[str, IntArray], IntArray]:
    """The picks, logged actions among them, and each query's random candidates."""
    size = world.candidates.shape[1] - 1
    count = min(size, max(settings.randoms, settings.candidates))
    logged = np.full(len(world.queries), size)
    return {**picks, LOGGED: logged}, random_candidates(world.queries, size, count)


def _store(folder: Path, world: RolloutWorld, settings: RolloutSettings) -> RolloutStore:
    shape = (*world.candidates.shape[:2], settings.repeats)
    return RolloutStore(folder, world.made_from(settings), shape)


def _candidates(picks: Mapping[str, IntArray], randoms: IntArray, audited: IntArray) -> IntArray:
    """What is rolled out at each query: its picks, in their order, and random candidates."""
    return np.column_stack([*(chosen[audited] for chosen in picks.values()), randoms[audited]])


def roll_out(
    world: RolloutWorld,
    store: RolloutStore,
    settings: RolloutSettings,
    query: IntArray,
    candidate: IntArray,
    tick: Tick,
) -> None:
    """Roll out what is not known yet of the candidates of queries, whose shapes broadcast."""
    query, candidate = (each.ravel() for each in np.broadcast_arrays(query, candidate))
    # Far goals first: long rollouts that start last would leave the slots empty at the end.
    far_first = np.argsort(-world.queries.distance[query], kind="stable")
    store.fill(
        query[far_first],
        candidate[far_first],
        lambda q, c, ended: world.judge(q, c, settings, ended),
        tick,
    )


def _audit(
    world: RolloutWorld,
    picks: Mapping[str, IntArray],
    randoms: IntArray,
    audited: IntArray,
    store: RolloutStore,
    settings: RolloutSettings,
    tick: Tick,
) -> RolloutAudit:
    """Roll out what is missing for these queries, and put the returns together."""
    names, candidate = tuple(picks), _candidates(picks, randoms, audited)
    roll_out(world, store, settings, audited[:, None], candidate, tick)
    picked, drawn = np.split(candidate, [len(names)], axis=1)
    return RolloutAudit(
        query=audited,
        trajectory=world.queries.trajectory[audited],
        group=world.queries.group[audited],
        selectors=names,
        candidate=picked,
        returns=store.get(audited[:, None], picked).astype(np.float64),
        random_candidate=drawn,
        random_returns=store.get(audited[:, None], drawn).astype(np.float64),
    )


def _reuse(
    path: Path, made_from: Mapping[str, Any], picks: Mapping[str, IntArray], store: RolloutStore
) -> None:
    """Enter what an earlier call wrote; more selectors may have come, but none has changed."""
    stored = fitting(path, made_from)
    if stored is None:
        return
    earlier = RolloutAudit.of(stored)
    for i, name in enumerate(earlier.selectors):
        if name not in picks or not np.array_equal(
            picks[name][earlier.query], earlier.candidate[:, i]
        ):
            raise InputError(
                f"{path} holds rollouts of other picks of '{name}' than the scores of this study "
                "make: its scores were changed or removed. Choose another "
                f"{option('out')}, or move the file away."
            )
    enter(earlier, store)


def enter(earlier: RolloutAudit, store: RolloutStore) -> None:
    """Enter the returns that an audit holds."""
    for candidate, returns in (
        (earlier.candidate, earlier.returns),
        (earlier.random_candidate, earlier.random_returns),
    ):
        query = np.broadcast_to(earlier.query[:, None], candidate.shape)
        store.add(query, candidate, returns.astype(np.float32))
