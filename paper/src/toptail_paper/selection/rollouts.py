"""The simulator's audit: which candidates are rolled out, and how many queries it takes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail.lab.check.environments import TaskWorld, maze_world
from toptail.lab.environments.walks import Maker, WalkRules
from toptail.lab.judges.rollouts import GoesOn, ModelGoesOn, Starts, rollout_returns
from toptail.lab.proposals.diffusion import load_policy
from toptail.lab.proposals.untrained import NearData
from toptail.lab.store.units import Stored, fitting
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.lab.training.run_files import RECORD, read_run, run_folder
from toptail.progress import Tick, no_tick
from toptail_paper.selection.config import RolloutSettings
from toptail_paper.selection.files import REFERENCE, SIMULATED
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.planned_rollouts import PlannedRollouts, cheap_judge, planned
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import (
    LOGGED,
    NOISE,
    PLAN,
    POOL,
    RolloutAudit,
    audited_queries,
    candidates_sha256,
    pools_sha256,
    power,
    random_candidates,
    selector_picks,
    stream,
)
from toptail_paper.selection.stages import Selection, add_values

Returns32: TypeAlias = NDArray[np.float32]
Judge: TypeAlias = Callable[[IntArray, IntArray, Callable[[int], None]], Returns32]
"""(query [m], candidate [m], called with how many rollouts have ended) -> returns [m, repeats]."""

PAIRS_PER_PART = 512
"""Pairs that are rolled out and stored together: what an interrupted run may lose. Fewer would
leave slots empty more often, when the last rollouts of a part are not over yet."""


class RolloutStore:
    """A table of returns that fills up.

    Finished parts lie in a folder until :meth:`clear`, those that others made in folders of their
    own below it. The returns depend on ``made_from``, and on
    query, candidate (the logged action is the last) and repetition, whose numbers are the shape.
    """

    def __init__(
        self, folder: Path, made_from: Mapping[str, Any], shape: tuple[int, int, int]
    ) -> None:
        self._folder, self._made_from = folder, dict(made_from)
        self._returns = np.full(shape, np.nan, np.float32)
        self._parts = len(entries(folder, "part-*.npz"))
        for path in entries(folder, "**/part-*.npz"):
            if (stored := fitting(path, self._made_from)) is not None:
                arrays = stored.arrays
                self.add(arrays["query"], arrays["candidate"], arrays["returns"])

    def add(self, query: IntArray, candidate: IntArray, returns: Returns32) -> None:
        """Enter known returns, ``[m, repeats]``."""
        self._returns[query, candidate] = returns

    def get(self, query: IntArray, candidate: IntArray) -> Returns32:
        """Returns of pairs ``[...]``: ``[..., repeats]``."""
        return self._returns[query, candidate]

    def fill(self, query: IntArray, candidate: IntArray, judge: Judge, tick: Tick) -> None:
        """Roll out the pairs (``[m]`` each) that are not known yet, part by part.

        The order of the pairs is kept; a pair that appears twice is rolled out once.
        """
        pair = query * self._returns.shape[1] + candidate
        _, first = np.unique(pair, return_index=True)
        first = np.sort(first)
        missing = first[np.isnan(self.get(query[first], candidate[first])).any(axis=-1)]
        repeats = self._returns.shape[2]
        total = len(missing) * repeats

        def told(before: int, ended: int) -> None:
            """Tell the progress after ``ended`` rollouts of a part, with ``before`` ahead of it."""
            tick(f"rollouts: {before + ended:,} of {total:,}", (before + ended) / total)

        for start in range(0, len(missing), PAIRS_PER_PART):
            part = missing[start : start + PAIRS_PER_PART]
            returns = judge(query[part], candidate[part], partial(told, start * repeats))
            arrays = {"query": query[part], "candidate": candidate[part], "returns": returns}
            Stored(self._made_from, arrays).write(self._path(self._parts))
            self._parts += 1
            self.add(**arrays)

    def clear(self) -> None:
        """Delete the parts: what they held is in the study's own file now."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, part: int) -> Path:
        return self._folder / f"part-{part:04d}.npz"


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
    make: Maker
    """Makes the simulations."""
    goes_on: GoesOn
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
        starts = Starts(
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
            WalkRules(settings.horizon, settings.gamma),
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


@dataclass(frozen=True, eq=False)
class Place:
    """An environment that was named, in place of the maze of an OGBench task."""

    world: TaskWorld
    """The environment, which has goals."""
    train: Trajectories
    """What the data does, if neither the environment nor a trained model has a policy."""


def make_rollouts(
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    most_per_group: int | None = None,
    place: Place | None = None,
) -> RolloutAudit:
    """The rollout stage of a study: `judge_by_rollouts` with the picks of its stored scores.

    The continuation is the diffusion run that proposes candidates,
    ``RUNS/TASK/diffusion/seed-N``. In a ``place`` of its own it is the environment's policy where
    it has one, and what the data does where nothing was trained. Where neither runs nor a place are
    named, stored rollouts are read.
    """
    if study.runs is None and place is None:
        expected = {
            "queries": queries.sha256,
            "candidates": pools_sha256(pools),
            **rules_of(study.config.rollouts),
        }
        stored = fitting(study.folder.rollouts, expected)
        if stored is not None:
            return RolloutAudit.of(stored)
    world = _world(study, queries, pools, val, place)
    picks, settings = _picks(study, queries, pools), study.config.rollouts
    return judge_by_rollouts(
        study.folder.path, world, picks, settings, most_per_group=most_per_group, tick=study.tick
    )


def make_rollout_piece(
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    piece: int,
    pieces: int,
    place: Place | None = None,
) -> None:
    """One of so many pieces of what the stage begins with; the stage puts them together."""
    world, picks = _world(study, queries, pools, val, place), _picks(study, queries, pools)
    roll_out_piece(study.folder.path, world, picks, study.config.rollouts, piece, pieces)


def _picks(study: Selection, queries: FrozenQueries, pools: CandidatePools) -> dict[str, IntArray]:
    """What the stored scores and the reference ensemble pick."""
    made_from = study.made_from(queries, pools)

    def read(path: Path, name: str) -> NDArray[Any]:
        return Stored.read(path, made_from).array(path, name)

    scores = {column: read(path, "scores") for column, path in study.folder.columns().items()}
    reference = study.folder.judges().get(REFERENCE)
    picks = selector_picks(scores, None if reference is None else read(reference, "values"))
    if not picks:
        raise InputError(
            f"{study.folder.path} has neither scores nor values of a reference ensemble: score the "
            "candidates first, then roll out what is picked."
        )
    return picks


def make_planned_rollouts(
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    labels: int,
    place: Place | None = None,
) -> PlannedRollouts:
    """Roll out at most ``labels`` candidates that a plan chooses for all scorers together.

    ``planned_rollouts.npz`` is written; what other rollouts of the study know is not repeated.
    """
    path, settings = study.folder.planned, study.config.rollouts
    data = read_selection(study.folder.path)
    asked = {"labels": labels, "cheap": cheap_judge(data.values)}
    expected = {"queries": queries.sha256, **rules_of(settings), **asked}
    expected |= {} if place is None else dict(place.world.origin)
    if (stored := fitting(path, expected)) is not None:
        return PlannedRollouts.of(stored, path)
    world = _world(study, queries, pools, val, place)
    found = planned(data, labels, stream(queries, PLAN))
    made_from = world.made_from(settings)
    shape = (*world.candidates.shape[:2], settings.repeats)
    store = RolloutStore(study.folder.path / "planned_rollouts.parts", made_from, shape)
    if (earlier := fitting(study.folder.rollouts, made_from)) is not None:
        enter(RolloutAudit.of(earlier), store)
    roll_out(world, store, settings, found.query, found.candidate, study.tick)
    returns = store.get(found.query, found.candidate)
    result = replace(found, returns=returns.astype(np.float64))
    result.stored({**made_from, **asked}).write(path)
    store.clear()
    return result


def value_every_candidate(
    study: Selection, queries: FrozenQueries, pools: CandidatePools, val: Trajectories, place: Place
) -> None:
    """Let the environment be a judge of every candidate, where there is no other: `SIMULATED`.

    A candidate is rolled out once, or twice where a behaviour model goes on, which draws.
    """
    count, size = pools.scored_shape[1:]
    settings = replace(study.config.rollouts, repeats=1 if _untrained(study, place) else 2)
    whole = pools.with_logged().reshape(len(queries), count * size, -1)
    world = replace(_world(study, queries, pools, val, place), candidates=whole)
    origin, shape = world.made_from(settings), (len(queries), count * size, settings.repeats)
    if fitting(study.folder.values(SIMULATED), {"origin": origin}) is not None:
        return
    store = RolloutStore(study.folder.path / "simulated.parts", origin, shape)
    query, candidate = np.indices(shape[:2])
    roll_out(world, store, settings, query, candidate, study.tick)
    values = store.get(query, candidate).reshape(len(queries), count, size, -1)
    add_values(study, queries, pools, SIMULATED, np.moveaxis(values, -1, 0), origin)
    store.clear()


def _untrained(study: Selection, place: Place) -> bool:
    """Whether somebody goes on who was not trained: the environment's own policy, or the data."""
    return place.world.act is not None or not _has_model(study)


def _world(
    study: Selection,
    queries: FrozenQueries,
    pools: CandidatePools,
    val: Trajectories,
    place: Place | None,
) -> RolloutWorld:
    """What rollouts start from and go on with."""
    if place is not None and _untrained(study, place):
        nearest = study.config.support.nearest
        goes_on = place.world.goes_on(NearData(place.train), queries.goals, nearest)
        who = {"policy": place.world.who_goes_on, "data": place.train.sha256}
    else:
        goes_on, who = _model(study, queries, pools)
    world = maze_world(study.config.task) if place is None else place.world
    assert world.make is not None
    return RolloutWorld(
        study.config.task,
        val,
        queries,
        pools.with_logged()[:, POOL],
        world.make,
        goes_on,
        {**who, **world.origin},
    )


def _model(
    study: Selection, queries: FrozenQueries, pools: CandidatePools
) -> tuple[GoesOn, dict[str, Any]]:
    """The behaviour model goes on, which must be the one that proposed the candidates."""
    run = _model_run(study)
    policy_hash = read_run(run).record.get("params_sha256")
    if pools.header["proposal"].get("params_sha256", policy_hash) != policy_hash:
        raise InputError(
            f"{run} is not the behaviour model that proposed the candidates of "
            f"{study.folder.pools} (the hashes of their parameters differ): name the runs that the "
            "pools were drawn with."
        )
    seed, policy = stream(queries, NOISE), load_policy(run, study.config.task)
    return ModelGoesOn(policy, jax.random.key(seed), study.config.rollouts.ddim_steps), {
        "policy": str(policy_hash),
        "noise": "row_keys(key(seed), query, repeat, step), step = 2, 3, …",
        "seed": seed,
    }


def _model_run(study: Selection) -> Path:
    home = study.needed_runs("Rolling out") / study.config.task / "diffusion"
    return run_folder(home, study.config.pools.policy_seed)


def _has_model(study: Selection) -> bool:
    return study.runs is not None and (_model_run(study) / RECORD).is_file()
