"""A check from end to end: data, environment, queries, candidates, judge, audits, episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.audit.record import versions
from toptail.errors import InputError, option
from toptail.lab.check.closed_loop import BASELINE, Episodic, follow
from toptail.lab.check.config import JUDGES, NEAREST, NOBODY, SOURCES, UNIFORM, CheckConfig
from toptail.lab.check.judge import Judge, JudgeInputs, best_judge, judge_of, score_pools
from toptail.lab.check.queries import check_queries
from toptail.lab.check.scorers import check_scorers
from toptail.lab.check.sources import Source, source_of
from toptail.lab.check.verdicts import (
    CLOSED_LOOP_RULE,
    closed_loop,
    headline,
    one_step,
    overall,
    warnings,
)
from toptail.lab.environments.walks import WalkRules
from toptail.lab.proposals.support import local_rows, support_distance
from toptail.lab.proposals.untrained import NearData
from toptail.lab.studies.datasets import TaskDataset
from toptail.lab.studies.scorers import Scorer
from toptail.lab.studies.worlds import TaskWorld, world_of
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


@dataclass(frozen=True, eq=False)
class CheckRequest:
    """What is to be checked, by whom, and among which candidates."""

    task: str
    """An OGBench name, one of the paper's names, or the path of a training file."""
    scorers: tuple[str, ...]
    """Critics: functions of files, or folders of trained runs, with patterns."""
    pools: tuple[str, ...] = (NEAREST, UNIFORM)
    """Where candidates come from."""
    judge: str | None = None
    """Who judges; the best judge that the task has unless given."""
    env: str | None = None
    """The environment; that of an OGBench data set unless given."""
    goals: bool = True
    """Whether the task has goals where no environment says so."""
    runs: Path | None = None
    """Folder of trained runs: behaviour model and reference ensemble."""
    config: CheckConfig = field(default_factory=CheckConfig)
    """Sizes, horizon, discount, seed."""
    command: str = "toptail.lab.check.run.check(...)"
    """What made it, for the record."""


@dataclass(frozen=True, eq=False)
class SourceResult:
    """What was found among the candidates of one source."""

    source: Source
    """Where they come from."""
    pools: Mapping[str, np.ndarray]
    """``actions [Q, N, a]``, ``support_distance``, ``on_support``, and ``scores/COLUMN``."""
    table: ScoredPools | None
    """Scores and values as the audit reads them; None where nobody judged."""
    audit: AuditResult | None
    """The audit of one step; None where nobody judged."""
    followed: Mapping[str, PicksResult]
    """Scorer -> the audit of its episodes; empty where there are none."""
    doubts: tuple[str, ...]
    """Why the judge may not be believed; then the audit decides nothing."""


@dataclass(frozen=True, eq=False)
class CheckResult:
    """Everything that a check found."""

    content: dict[str, Any]
    """``check.json``."""
    queries: FrozenQueries
    """States and goals that were asked about."""
    sources: tuple[SourceResult, ...]
    """One for each source of candidates."""


def check(request: CheckRequest, tick: Tick = no_tick) -> CheckResult:
    """Check critics: one step by a judge, and every step by following them."""
    return _Check(request, tick).result()


class _Check:
    """What the parts of one check share, each made when it is first needed."""

    def __init__(self, request: CheckRequest, tick: Tick) -> None:
        self.request, self.config, self.tick = request, request.config, tick
        self.not_done: list[dict[str, str]] = []
        files = [each for each in request.pools if each not in SOURCES]
        if not request.pools or len(set(request.pools)) < len(request.pools) or len(files) > 1:
            raise InputError(
                f"{option('pools', request.pools)}: name each kind once, and one file at most."
            )
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
        made = []
        for text in self.request.pools:
            source = source_of(
                text, self.given.near, self.task.name, self.request.runs, self.config
            )
            made.append(self._source(source))
        return CheckResult(self._content(made), self.queries, tuple(made))

    def _source(self, source: Source) -> SourceResult:
        """Candidates of one source: scored, judged, audited, followed."""
        queries, say = self.queries, partial(self._tick, source)
        say("candidates", 0.0)
        candidates = source.pool(queries, self.config.size(self.judge.name))
        pools = {"actions": candidates, **self._support(candidates)}
        for i, scorer in enumerate(self.scorers):
            say("scores", i / len(self.scorers))
            pools[f"scores/{scorer.column}"] = score_pools(scorer.score, queries, candidates)
        if self.judge.value is None:
            return SourceResult(source, pools, None, None, self._follow(source), ())
        judged = self.judge.value(queries, candidates, partial(say, f"judge: {self.judge.name}"))
        for doubt in judged.doubts:
            self._left(f"one step ({source.name})", doubt, "another judge")
        table = self._table(source, pools, judged.values)
        followed = self._follow(source)
        found = self._audit(source, table)
        return SourceResult(source, pools, table, found, followed, judged.doubts)

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
        if source.along is None:
            needed = f"--pools {NEAREST} or {UNIFORM}, which are there at every state"
            why = "a file has candidates at the queries alone"
            self._left(f"closed loop ({source.name})", why, needed)
            return {}
        config = self.config
        episodes = Episodic(
            self.world,
            self.task.data.val,
            self.starts,
            source.along,
            config.follow_k,
            WalkRules(config.horizon, config.gamma),
        )
        picks = follow(episodes, self.scorers, partial(self._tick, source, "every step"))
        return {n: audit_picks(p, baseline=BASELINE, **self._how()) for n, p in picks.items()}

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
            "judge": {"name": self.judge.name, "says": self.judge.says},
            "environment": self.world.name or None,
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
        audited, followed = made.audit, made.followed.get(name)
        return {
            "pools": made.source.name,
            "one_step": None if audited is None else one_step(audited.to_dict(), name, made.doubts),
            "closed_loop": None
            if followed is None
            else closed_loop(followed.to_dict(), success=self.world.goals),
        }
