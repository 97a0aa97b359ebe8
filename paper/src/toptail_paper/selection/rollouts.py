"""The simulator as a judge: rollouts of picks and random candidates, stored part by part.

`toptail.lab.judges.rollouts` rolls actions out; here is which of them, how many queries the
declared power takes, and where the returns are stored.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail.lab.check.closed_loop import maze_environment
from toptail.lab.environments.rollout import BatchMaker, RolloutRules
from toptail.lab.judges.rollouts import (
    CandidateStarts,
    ContinuationPolicy,
    ModelContinuation,
    rollout_returns,
)
from toptail.lab.proposals.diffusion import load_policy
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.lab.training.runs import read_run, run_folder
from toptail.progress import Tick, no_tick
from toptail_paper.selection.config import RolloutSettings
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import (
    LOGGED,
    NOISE,
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
from toptail_paper.selection.stages import Selection
from toptail_paper.study.store import Stored, fitting

Returns32: TypeAlias = NDArray[np.float32]
Judge: TypeAlias = Callable[[IntArray, IntArray, Callable[[int], None]], Returns32]
"""(query [m], candidate [m], progress in ended rollouts) -> returns [m, repeats]."""

PAIRS_PER_PART: Final = 512
"""(query, candidate) pairs that are rolled out and stored together: what an interrupted run may
lose. With fewer, simulations would idle more often at the end of a part."""
_FORMAT: Final = "toptail-rollouts-1"


def parts_folder(folder: Path, suffix: str) -> Path:
    """Folder of finished parts, until the audit is written."""
    return folder / f"rollouts{suffix}.parts"


class RolloutStore:
    """A table of returns of (query, candidate) pairs that fills up part by part.

    Finished parts lie in a folder until :meth:`clear`; parts of jobs lie in folders below it. The
    returns depend on ``made_from`` and on query, candidate (the last one is the logged action) and
    repetition, whose numbers are the shape.
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
        self._returns[query, candidate] = returns

    def add_audit(self, audit: RolloutAudit) -> None:
        for candidate, returns in (
            (audit.candidate, audit.returns),
            (audit.random_candidate, audit.random_returns),
        ):
            query = np.broadcast_to(audit.query[:, None], candidate.shape)
            self.add(query, candidate, returns.astype(np.float32))

    def get(self, query: IntArray, candidate: IntArray) -> Returns32:
        """Returns of pairs ``[...]``: ``[..., repeats]``."""
        return self._returns[query, candidate]

    def fill(self, query: IntArray, candidate: IntArray, judge: Judge, tick: Tick) -> None:
        """Roll out the pairs (``[m]`` each) that are not known yet, part by part.

        The order of the pairs is preserved; a pair that appears twice is rolled out once.
        """
        pair = query * self._returns.shape[1] + candidate
        _, first = np.unique(pair, return_index=True)
        first = np.sort(first)
        missing = first[np.isnan(self.get(query[first], candidate[first])).any(axis=-1)]
        repeats = self._returns.shape[2]
        total = len(missing) * repeats

        def report(before: int, ended: int) -> None:
            tick(f"rollouts: {before + ended:,} of {total:,}", (before + ended) / total)

        for start in range(0, len(missing), PAIRS_PER_PART):
            part = missing[start : start + PAIRS_PER_PART]
            returns = judge(query[part], candidate[part], partial(report, start * repeats))
            arrays = {"query": query[part], "candidate": candidate[part], "returns": returns}
            path = self._folder / f"part-{self._parts:04d}.npz"
            Stored(self._made_from, arrays).write(path)
            self._parts += 1
            self.add(**arrays)

    def clear(self) -> None:
        """Delete the parts: the study's own file holds the returns now."""
        shutil.rmtree(self._folder, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class RolloutSetup:
    """States, candidates, environment and continuation policy of rollouts."""

    task: str
    val: Trajectories
    """The validation split, with simulator state."""
    queries: FrozenQueries
    candidates: FloatArray
    """Actions of the audited pool, and the logged action as the last: ``[Q, N + 1, action]``."""
    make: BatchMaker
    continuation: ContinuationPolicy
    origin: Mapping[str, Any]
    """The continuation policy and the environment, which a return also depends on."""

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

    def store(self, folder: Path, settings: RolloutSettings) -> RolloutStore:
        """The returns that the parts in a folder hold."""
        shape = (*self.candidates.shape[:2], settings.repeats)
        return RolloutStore(folder, self.made_from(settings), shape)

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
            self.continuation,
            RolloutRules(settings.horizon, settings.gamma),
            lambda share: tick(round(share * len(starts))),
        )
        return returns.reshape(len(query), repeats).astype(np.float32)

    def roll_out(
        self,
        store: RolloutStore,
        settings: RolloutSettings,
        query: IntArray,
        candidate: IntArray,
        tick: Tick,
    ) -> None:
        """Roll out the unknown ones of the candidates of queries, whose shapes broadcast."""
        query, candidate = (each.ravel() for each in np.broadcast_arrays(query, candidate))
        # Far goals first: long rollouts that start last would leave simulations idle at the end.
        far_first = np.argsort(-self.queries.distance[query], kind="stable")
        store.fill(
            query[far_first],
            candidate[far_first],
            lambda q, c, ended: self.judge(q, c, settings, ended),
            tick,
        )


def rules_of(settings: RolloutSettings) -> dict[str, Any]:
    """The settings that a return depends on."""
    names = ("repeats", "horizon", "gamma", "ddim_steps")
    return {name: getattr(settings, name) for name in names}


class Design:
    """What is rolled out at a query: every selector's pick, the logged action, random members."""

    def __init__(
        self, setup: RolloutSetup, picks: Mapping[str, IntArray], settings: RolloutSettings
    ) -> None:
        size = setup.candidates.shape[1] - 1
        count = min(size, max(settings.randoms, settings.candidates))
        self.picks = {**picks, LOGGED: np.full(len(setup.queries), size)}
        self.randoms = random_candidates(setup.queries, size, count)

    def candidates(self, audited: IntArray) -> IntArray:
        """Picks, in the order of their selectors, then random members: ``[A, S + C]``."""
        picked = (chosen[audited] for chosen in self.picks.values())
        return np.column_stack([*picked, self.randoms[audited]])


def judge_by_rollouts(
    folder: Path,
    setup: RolloutSetup,
    picks: Mapping[str, IntArray],
    settings: RolloutSettings,
    *,
    suffix: str = "",
    most_per_group: int | None = None,
    tick: Tick = no_tick,
) -> RolloutAudit:
    """Roll out every selector's picks, logged actions and random candidates, with power.

    It begins with ``settings.per_group`` queries of each group. While some selector's half-width
    is not below ``settings.e_min``, a share ``settings.growth`` of them is added, up to
    ``most_per_group``. Only the widths decide about going on, never the differences.

    ``rollouts.npz`` and ``picks.parquet`` are written into ``folder``. Returns that are known from
    there, or from the parts of an interrupted call, are not rolled out again.

    Parameters
    ----------
    picks
        Selector to the candidate it picks, ``[Q]``: see `selector_picks`. ``logged`` is added.
    suffix
        Added to the names of the files: rollouts by another continuation have files of their own.
    most_per_group
        Where to stop even without power; by default ``settings.most`` times the first number.
    """
    path, design = folder / f"rollouts{suffix}.npz", Design(setup, picks, settings)
    made_from = setup.made_from(settings)
    store = setup.store(parts_folder(folder, suffix), settings)
    if (stored := fitting(path, made_from)) is not None:
        store.add_audit(_same_picks(path, RolloutAudit.of(stored), design.picks))
    most = settings.most * settings.per_group if most_per_group is None else most_per_group

    per_group = settings.per_group
    while True:
        audited = audited_queries(setup.queries, per_group)
        candidate = design.candidates(audited)
        setup.roll_out(store, settings, audited[:, None], candidate, tick)
        result = _audit(setup, store, audited, candidate, tuple(design.picks))
        result.stored({**made_from, "per_group": per_group, "most_per_group": most}).write(path)
        result.picks().write(folder / f"picks{suffix}.parquet")
        store.clear()  # the audit's file has them now
        complete = len(audited) == len(setup.queries)
        if power(result, settings.e_min)["admitted"] or per_group >= most or complete:
            break
        per_group = min(per_group + max(1, int(settings.growth * settings.per_group)), most)
    return result


def _audit(
    setup: RolloutSetup,
    store: RolloutStore,
    audited: IntArray,
    candidate: IntArray,
    selectors: tuple[str, ...],
) -> RolloutAudit:
    picked, drawn = np.split(candidate, [len(selectors)], axis=1)
    return RolloutAudit(
        query=audited,
        trajectory=setup.queries.trajectory[audited],
        group=setup.queries.group[audited],
        selectors=selectors,
        candidate=picked,
        returns=store.get(audited[:, None], picked).astype(np.float64),
        random_candidate=drawn,
        random_returns=store.get(audited[:, None], drawn).astype(np.float64),
    )


def _same_picks(path: Path, earlier: RolloutAudit, picks: Mapping[str, IntArray]) -> RolloutAudit:
    """An earlier audit; selectors may be added to it, but their picks must not have changed."""
    for i, name in enumerate(earlier.selectors):
        before = earlier.candidate[:, i]
        if name not in picks or not np.array_equal(picks[name][earlier.query], before):
            raise InputError(
                f"{path} holds rollouts of other picks of '{name}' than the scores of this study "
                "make: its scores were changed or removed. Choose another "
                f"{option('out')}, or move the file away."
            )
    return earlier


@dataclass(frozen=True, eq=False)
class RolloutStage:
    """The rollouts of one study, of what its stored scores pick.

    The continuation policy is the diffusion run that proposes candidates,
    ``RUNS/TASK/diffusion/seed-N``. `ExpertStage` has another one.
    """

    suffix: ClassVar[str] = ""
    """Added to the names of the files."""
    needs_runs: ClassVar[bool] = True
    """Whether the continuation policy is a trained run."""

    study: Selection
    queries: FrozenQueries
    pools: CandidatePools
    val: Trajectories

    def audit(self, most_per_group: int | None = None) -> RolloutAudit:
        """`judge_by_rollouts`; without runs, the stored rollouts."""
        study, settings = self.study, self.settings
        if study.runs is None and self.needs_runs:
            expected = {
                "queries": self.queries.sha256,
                "candidates": pools_sha256(self.pools),
                **rules_of(settings),
            }
            if (stored := fitting(study.folder.rollouts, expected)) is not None:
                return RolloutAudit.of(stored)
        how = self.setup, self._picks(), settings
        return judge_by_rollouts(
            study.folder.path,
            *how,
            suffix=self.suffix,
            most_per_group=most_per_group,
            tick=study.tick,
        )

    def part(self, number: int, count: int) -> None:
        """One of ``count`` parts of the queries that `audit` begins with, which will read it.

        A return does not depend on what is rolled out beside it.
        """
        settings = self.settings
        design = Design(self.setup, self._picks(), settings)
        audited = audited_queries(self.queries, settings.per_group)[number::count]
        folder = parts_folder(self.study.folder.path, self.suffix) / f"job-{number:04d}"
        candidate, store = design.candidates(audited), self.setup.store(folder, settings)
        self.setup.roll_out(store, settings, audited[:, None], candidate, no_tick)

    @property
    def settings(self) -> RolloutSettings:
        return self.study.config.rollouts

    @cached_property
    def setup(self) -> RolloutSetup:
        study = self.study
        continuation, policy = self._continuation()
        maze = maze_environment(study.config.task)
        assert maze.make is not None
        return RolloutSetup(
            study.config.task,
            self.val,
            self.queries,
            self.pools.with_logged()[:, POOL],
            maze.make,
            continuation,
            {**policy, **maze.origin},
        )

    def _picks(self) -> dict[str, IntArray]:
        """What the stored scores and the reference ensemble pick."""
        folder, made_from = self.study.folder, self.study.made_from(self.queries, self.pools)

        def read(path: Path, name: str) -> NDArray[Any]:
            return Stored.read(path, made_from).array(path, name)

        scores = {column: read(path, "scores") for column, path in folder.columns().items()}
        reference = folder.judges().get(REFERENCE)
        picks = selector_picks(scores, None if reference is None else read(reference, "values"))
        if not picks:
            raise InputError(
                f"{folder.path} has neither scores nor values of a reference ensemble: score the "
                "candidates first, then roll out what is picked."
            )
        return picks

    def _continuation(self) -> tuple[ContinuationPolicy, dict[str, Any]]:
        """The behaviour model, which must be the one that proposed the candidates."""
        config = self.study.config
        home = self.study.needed_runs("Rolling out") / config.task / "diffusion"
        run = run_folder(home, config.pools.policy_seed)
        policy_hash = read_run(run).record.get("params_sha256")
        if self.pools.header["proposal"].get("params_sha256", policy_hash) != policy_hash:
            raise InputError(
                f"{run} is not the behaviour model that proposed the candidates of "
                f"{self.study.folder.pools} (the hashes of their parameters differ): name the runs "
                "that the pools were drawn with."
            )
        seed, policy = stream(self.queries, NOISE), load_policy(run, config.task)
        return ModelContinuation(policy, jax.random.key(seed), config.rollouts.ddim_steps), {
            "policy": str(policy_hash),
            "noise": "row_keys(key(seed), query, repeat, step), step = 2, 3, …",
            "seed": seed,
        }
