"""A check from end to end: data, environment, queries, candidates, judge, audits, episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.audit.record import versions
from toptail.errors import InputError, option
from toptail.lab.check.closed_loop import (
    BASELINE,
    Episodic,
    Recorded,
    follow,
    picks_of,
    recorded,
    walks_of,
    worth_of,
)
from toptail.lab.check.config import JUDGES, NEAREST, NOBODY, SOURCES, UNIFORM
from toptail.lab.check.environments import TaskWorld, world_of
from toptail.lab.check.judge import (
    Judge,
    JudgedValues,
    JudgeInputs,
    best_judge,
    judge_of,
    score_pools,
)
from toptail.lab.check.queries import GROUPS, check_queries
from toptail.lab.check.request import CheckRequest, CheckResult, SourceResult
from toptail.lab.check.scorers import check_scorers
from toptail.lab.check.sources import Source, source_of
from toptail.lab.check.verdicts import (
    CLOSED_LOOP_RULE,
    closed_loop,
    headline,
    one_step,
    one_step_picks,
    overall,
    warnings,
)
from toptail.lab.environments.walks import WalkRules
from toptail.lab.proposals.untrained import NearData, local_rows, support_distance
from toptail.lab.scorers.base import Scorer
from toptail.lab.scorers.user import fresh_modules
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray
from toptail.pools import ScoredPools
from toptail.pools.columns import group_seeds
from toptail.progress import Tick, no_tick
from toptail.provenance import commit
from toptail.results import AuditResult, PicksResult, audit, audit_picks

FORMAT = "toptail-check-1"
SUPPORTED = 0.95
"""Share of the queries' logged actions that the threshold of local support leaves on support."""


Piece: TypeAlias = tuple[str, int]
"""A kind of candidates, and which walk through its episodes, or `JUDGED`."""
JUDGED: Final = -1
"""What the judge says of the candidates at the queries."""
Mapped: TypeAlias = Callable[[Callable[[Piece], Any], Sequence[Piece]], Iterator[Any]]
"""Calls a function for pieces and gives what it returned, in their order, as ``map`` does."""


def check(request: CheckRequest, tick: Tick = no_tick, mapped: Mapped | None = None) -> CheckResult:
    """Check critics: one step by a judge, and every step by following them.

    ``mapped`` calls a function for many pieces of the work, as ``map`` does, in other processes:
    what the judge says of each kind of candidates, and each critic's episodes with each K.
    """
    made = _Check(request, tick)
    if mapped is not None:
        pieces = made.pieces()
        for piece, found in zip(pieces, mapped(partial(_piece, request), pieces), strict=True):
            made.known[piece] = found
            tick(f"{len(made.known)} of {len(pieces)} pieces", len(made.known) / len(pieces))
    return made.result()


def _piece(request: CheckRequest, piece: Piece) -> Any:
    """Do a piece in another process, which reads data and critics once."""
    return _begun(request).piece(piece)


class _Check:
    """What the parts of one check share, each made when it is first needed."""

    def __init__(self, request: CheckRequest, tick: Tick) -> None:
        self.request, self.config, self.tick = request, request.config, tick
        self.not_done: list[dict[str, str]] = []
        self.known: dict[Piece, Any] = {}
        files = [each for each in request.pools if each not in SOURCES]
        if not request.pools or len(set(request.pools)) < len(request.pools) or len(files) > 1:
            raise InputError(
                f"{option('pools', request.pools)}: name each kind once, and one file at most."
            )
        fresh_modules()
        tick("data", 0.0)
        self.task = TaskDataset.load(request.task)
        self.world: TaskWorld = world_of(request.env, self.task.data, goals=request.goals)
        self.scorers: list[Scorer] = check_scorers(request.scorers, self.task)
        data = self.task.data
        self.given = JudgeInputs(
            self.task.name, NearData(data.train), data.val, self.world, request.runs, self.config
        )
        self.judge: Judge = judge_of(request.judge or best_judge(self.given), self.given)
        if self.judge.name not in JUDGES and len(request.pools) > 1:
            raise InputError(
                f"{option('judge', request.judge)} has values of one kind of candidates, and "
                f"{option('pools', request.pools)} are several: name the one that it is about."
            )
        if self.judge.name == NOBODY:
            why = "nobody judges the candidates"
            why += f", as {self.world.lacks}" if self.world.lacks else ""
            self._left("one step", why, self.judge.needs)
        if self.world.make is None:
            needed = "an environment: --env FILE.py:make or gymnasium:ID"
            self._left("closed loop", self.world.lacks, needed)

    def _left(self, what: str, why: str, needed: str) -> None:
        self.not_done.append({"what": what, "why": why, "needed": needed})

    @cached_property
    def queries(self) -> FrozenQueries:
        return self._drawn(self.config.queries(self.judge.name), self.config.seed)

    @cached_property
    def starts(self) -> FrozenQueries:
        """Where episodes start: not at the queries, of which there may be fewer."""
        return self._drawn(self.config.starts, self.config.seed + 1)

    def _drawn(self, count: int, seed: int) -> FrozenQueries:
        return check_queries(self.task.data.val, count, seed, goals=self.world.goals)

    @cached_property
    def local_actions(self) -> FloatArray:
        """Actions of the data near each query, which decide about local support."""
        data = self.given.near.data
        near = min(self.config.near, len(data.transitions))
        return np.asarray(data.actions[local_rows(data, self.queries.states, near)])

    def result(self) -> CheckResult:
        made = [self._source(source) for source in self.sources.values()]
        return CheckResult(self._content(made), self.queries, tuple(made))

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Where candidates come from, by name."""
        given = self.given.near, self.task.name, self.request.runs, self.config
        made = (source_of(text, *given) for text in self.request.pools)
        return {source.name: source for source in made}

    def pieces(self) -> list[Piece]:
        """What can be done apart from the rest."""
        walks = range(len(walks_of(self.scorers, self.config.follow_k)))
        judged = [(name, JUDGED) for name in self.sources if self.judge.value is not None]
        walked = [name for name, source in self.sources.items() if self._episodes(source)]
        return judged + [(name, i) for name in walked for i in walks]

    def piece(self, piece: Piece) -> Any:
        """What comes of a piece."""
        source, number = self.sources[piece[0]], piece[1]
        if number == JUDGED:
            candidates = self._candidates(source)
            return self._judged(source, self._shown(candidates, self._scores(candidates)))
        episodes = self._episodes(source)
        assert episodes is not None  # or there were no such piece
        return worth_of(episodes, *walks_of(self.scorers, self.config.follow_k)[number])

    def _candidates(self, source: Source) -> FloatArray:
        return source.pool(self.queries, self.config.size(self.judge.name))

    def _judged(self, source: Source, candidates: FloatArray) -> JudgedValues:
        found: JudgedValues | None = self.known.get((source.name, JUDGED))
        if found is not None:
            return found
        assert self.judge.value is not None
        say = partial(self._tick, source, f"judge: {self.judge.name}")
        return self.judge.value(self.queries, candidates, say)

    def _source(self, source: Source) -> SourceResult:
        """Candidates of one source: scored, judged, audited, followed."""
        say = partial(self._tick, source)
        say("candidates", 0.0)
        candidates = self._candidates(source)
        say("scores", 0.0)
        scores = self._scores(candidates)
        pools = {"actions": candidates, **self._support(candidates)}
        pools |= {f"scores/{column}": found for column, found in scores.items()}
        if self.judge.value is None:
            return SourceResult(source, pools, None, None, self._follow(source), ())
        judged = self._judged(source, self._shown(candidates, scores))
        if self.picked_k:
            picked = self._audit_picks(judged.values)
            followed = self._follow(source)
            return SourceResult(source, pools, None, None, followed, (), picked)
        for doubt in judged.doubts:
            self._left(f"one step ({source.name})", doubt, "another judge")
        table = self._table(source, pools, judged.values)
        followed = self._follow(source)
        found = self._audit(source, table)
        return SourceResult(source, pools, table, found, followed, judged.doubts)

    def _scores(self, candidates: FloatArray) -> dict[str, FloatArray]:
        """Scores ``[Q, N]`` by column."""
        return {
            scorer.column: score_pools(scorer.score, self.queries, candidates)
            for scorer in self.scorers
        }

    @cached_property
    def picked_k(self) -> tuple[int, ...]:
        """Sizes K whose picks alone are judged; none where all candidates are."""
        return self.config.picked_k(self.judge.name)

    @property
    def _picked_says(self) -> str:
        if not self.picked_k:
            return ""
        ks = ", ".join(map(str, self.picked_k))
        return f"; of {self.picked_k[-1]} candidates only the best of K = {ks} are judged"

    def _picks(self) -> list[tuple[str, int]]:
        """Column and K of the picks: first a random candidate, then the best by each scorer."""
        return [("", 1), *((s.column, k) for s in self.scorers for k in self.picked_k[1:])]

    def _shown(self, candidates: FloatArray, scores: Mapping[str, FloatArray]) -> FloatArray:
        """What the judge is shown: all candidates, or of many the best of the first K alone."""
        if not self.picked_k:
            return candidates
        none = np.zeros((len(candidates), 1))
        at = [scores.get(column, none)[:, :k].argmax(axis=1) for column, k in self._picks()]
        return np.take_along_axis(candidates, np.stack(at, axis=1)[..., None], axis=1)

    def _audit_picks(self, values: NDArray[Any]) -> dict[str, PicksResult]:
        """Audit picks by their values ``[replicates, Q, picks]``."""
        worth = dict(zip(self._picks(), np.moveaxis(values.mean(axis=0), 1, 0), strict=True))
        picks = picks_of(self.queries, self.picked_k, self.scorers, worth, grouped=self.world.goals)
        return {n: audit_picks(p, baseline=BASELINE, **self._how()) for n, p in picks.items()}

    def _support(self, candidates: FloatArray) -> dict[str, np.ndarray]:
        """How far candidates are from what the data does nearby; the logged actions decide."""
        both = np.concatenate([candidates, self.queries.actions[:, None]], axis=1)
        distance = support_distance(self.local_actions, both)
        threshold = np.float32(np.quantile(distance[:, -1], SUPPORTED))
        return {"support_distance": distance[:, :-1], "on_support": distance[:, :-1] <= threshold}

    def _table(
        self, source: Source, pools: Mapping[str, np.ndarray], values: NDArray[Any]
    ) -> ScoredPools:
        """Scores of the candidates, and values ``[replicates, Q, N]`` as columns."""
        queries, members = self.queries, len(values)
        columns = ["value"] if members == 1 else [f"value_{i}" for i in range(members)]
        result = ScoredPools.from_arrays(
            {s.column: pools[f"scores/{s.column}"] for s in self.scorers},
            dict(zip(columns, values, strict=True)),
            support=pools["on_support"],
            cluster=queries.trajectory,
            group=queries.group if self.world.goals else None,
            source=f"{self.task.name}, {source.name} candidates, judged by {self.judge.name}",
        )
        return replace(result, called={"group": "distance group", "cluster": "trajectory"})

    def _audit(self, source: Source, table: ScoredPools) -> AuditResult:
        columns = list(table.values)
        judged = {"values": columns[0]} if len(columns) == 1 else {"replicates": columns}
        return audit(
            table,
            **judged,
            **self._how(),
            tick=lambda stage, share: self._tick(source, stage, share),
        )

    def _how(self) -> dict[str, Any]:
        config = self.config
        command = self.request.command
        return {"seed": config.seed, "resamples": config.resamples, "command": command}

    def _follow(self, source: Source) -> dict[str, PicksResult]:
        """Episodes of every scorer; none without an environment or candidates along the way."""
        if self.world.make is None:
            return {}
        if (episodes := self._episodes(source)) is None:
            needed = f"--pools {NEAREST} or {UNIFORM}, which are there at every state"
            why = "a file has candidates at the queries alone"
            self._left(f"closed loop ({source.name})", why, needed)
            return {}
        known = {i: w for (name, i), w in self.known.items() if name == source.name and i != JUDGED}
        picks = follow(episodes, self.scorers, partial(self._tick, source, "every step"), known)
        return {n: audit_picks(p, baseline=BASELINE, **self._how()) for n, p in picks.items()}

    def _episodes(self, source: Source) -> Episodic | None:
        """What episodes share; None without an environment or candidates along the way."""
        if self.world.make is None or source.along is None:
            return None
        config = self.config
        return Episodic(
            self.world,
            self.task.data.val,
            self.starts,
            source.along,
            config.follow_k,
            WalkRules(config.horizon, config.gamma),
        )

    @cached_property
    def recorded(self) -> Recorded | None:
        """What the data's own episodes are worth in this environment; None if that is not known."""
        episodes = next(filter(None, map(self._episodes, self.sources.values())), None)
        if episodes is None:
            return None
        most, config = GROUPS * self.config.starts, self.config
        try:
            return recorded(episodes, most, config.resamples, config.seed)
        except InputError as error:
            needed = "recorded rows that the environment can be put into"
            self._left("the return of the data's own episodes", str(error), needed)
            return None

    def _tick(self, source: Source, stage: str, share: float) -> None:
        self.tick(f"{source.name}: {stage}", share)

    def _content(self, sources: Sequence[SourceResult]) -> dict[str, Any]:
        """``check.json``: plain lists, numbers and strings."""
        names = list(group_seeds([scorer.column for scorer in self.scorers]))
        return {
            "format": FORMAT,
            "task": self.task.name,
            "goals": self.world.goals,
            "scorers": {name: self._scorer(name, sources) for name in names},
            "judge": {"name": self.judge.name, "says": self.judge.says + self._picked_says},
            "environment": self.world.name or None,
            "goal_free": None if self.world.goals else self.world.goal_free,
            "candidates": {made.source.name: made.source.says for made in sources},
            "not_done": self.not_done,
            "closed_loop_rule": CLOSED_LOOP_RULE,
            "settings": {
                **asdict(self.config),
                "per_group": self.config.queries(self.judge.name),
                "pool_size": self.config.size(self.judge.name),
            },
            "record": {
                "command": self.request.command,
                "versions": versions(),
                "commit": commit(),
                "train": self.given.near.data.sha256,
                "queries": self.queries.sha256,
                "scorers": {scorer.column: dict(scorer.origin) for scorer in self.scorers},
            },
        }

    def _scorer(self, name: str, sources: Sequence[SourceResult]) -> dict[str, Any]:
        parts = [self._part(name, made) for made in sources]
        entries = [part[kind] for part in parts for kind in ("one_step", "closed_loop")]
        return {
            "status": overall(*entries),
            "headline": headline(name, parts),
            "warnings": warnings(name, parts),
            "parts": parts,
        }

    def _part(self, name: str, made: SourceResult) -> dict[str, Any]:
        followed = made.followed.get(name)
        return {
            "pools": made.source.name,
            "one_step": self._one_step(name, made),
            "closed_loop": None
            if followed is None
            else closed_loop(
                followed.to_dict(),
                success=self.world.goals,
                first=made.source.first,
                data=self.recorded,
            ),
        }

    def _one_step(self, name: str, made: SourceResult) -> dict[str, Any] | None:
        if made.audit is not None:
            return one_step(made.audit.to_dict(), name, made.doubts)
        return one_step_picks(made.picked[name].to_dict()) if made.picked else None


@lru_cache(maxsize=1)
def _begun(request: CheckRequest) -> _Check:
    """The check as another process has it."""
    return _Check(request, no_tick)
