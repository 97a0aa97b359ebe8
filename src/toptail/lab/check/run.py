"""A check from end to end: data, environment, queries, candidates, judge, audits, episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from toptail.api import HowJudged, audit, audit_picks
from toptail.errors import InputError, option
from toptail.lab.check.candidates import (
    GROUPS,
    Judge,
    JudgedValues,
    JudgeInputs,
    Source,
    best_judge,
    check_queries,
    judge_of,
    score_pools,
    source_of,
)
from toptail.lab.check.closed_loop import (
    BASELINE,
    Episodes,
    Recorded,
    Search,
    TaskEnvironment,
    picks_of,
    recorded,
    task_environment,
)
from toptail.lab.check.inputs import (
    ASCENT,
    JUDGES,
    NEAREST,
    NO_JUDGE,
    SOURCES,
    UNIFORM,
    CheckConfig,
    Data,
    Scorers,
    check_scorers,
    task_dataset,
)
from toptail.lab.check.result import CheckResult, SourceResult
from toptail.lab.check.verdicts import (
    CLOSED_LOOP_RULE,
    closed_loop,
    headline,
    one_step,
    one_step_picks,
    overall,
    questions,
    warnings,
)
from toptail.lab.environments.protocol import Floats
from toptail.lab.environments.rollout import RolloutRules
from toptail.lab.proposals.untrained import NearData, local_rows, support_distance
from toptail.lab.scorers.base import Ascent, Scorer
from toptail.lab.scorers.user import fresh_modules
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray
from toptail.pools import ScoredPools
from toptail.pools.columns import group_seeds
from toptail.progress import Caller, Tick, called_by, caller, no_tick
from toptail.provenance import commit, versions
from toptail.results import AuditResult, PicksResult

FORMAT = "toptail-check-1"
SUPPORTED = 0.95
"""Share of the queries' logged actions that the threshold of local support leaves on support."""
_BEGUN: dict[str, _Check] = {}
"""The check whose jobs this process runs, by the request's id."""
_ASCENT = 2
"""Part of the key of the draws of ascent at queries, which must not be those of candidates."""


def check(
    data: Data,
    scorers: Scorers,
    *,
    env: object = None,
    pools: str | Sequence[str] = ("nearest", "uniform"),
    judge: str | None = None,
    goals: bool = True,
    runs: str | PathLike[str] | None = None,
    config: CheckConfig | None = None,
) -> CheckResult:
    """Tell whether the best of K by a critic is safe: for one step, and followed at every step.

    Candidates are drawn at states of the data, the best judge that the task has says what they are
    worth, the critic's picks are audited, and the critic is followed through the environment, best
    of K at every step against a random candidate. Nothing is trained.

    Parameters
    ----------
    data
        A data set's name or path, `Trajectories` or arrays by name (every fifth trajectory is
        validation data), or a pair of these, training and validation.
    scorers
        Name -> ``score(states, actions, goals)`` or ``score(states, actions)`` of NumPy rows, an
        object with such a method ``score``, or a text: ``path/to/file.py:function``,
        ``ogbench:PATH``, ``d3rlpy:PATH``, or the folder of a run. One scorer alone, or a list,
        needs no names: texts and functions have their own. A function with an attribute
        ``gradient`` (d score / d action) is climbed by gradient ascent among the candidates
        ``ascent``.
    env
        An environment (see `toptail.lab.environments.protocol`, gymnasium's are adapted), a
        function that makes one, or a text: ``gymnasium:ID``, ``ogbench:NAME``, ``FILE.py:make``. By
        default the one of an OGBench data set. A function is faster than a single environment.
    pools
        Sources of candidates: ``nearest`` (actions of the data at near states), ``uniform`` (the
        action box), ``behaviour`` (a trained model), ``ascent`` (the box, and the maximizer of the
        score in it), or a file.
    judge
        ``exact``, ``rollouts``, ``reference``, ``none`` or a file; by default the best that there
        is.
    goals
        Whether the task has goals, where no environment says so.
    runs
        Folder of trained runs: behaviour model and reference ensemble.
    config
        Sizes, horizon, discount and seed, :class:`toptail.CheckConfig`.

    Returns
    -------
    CheckResult
        ``verdicts`` for each scorer, ``sources`` (the audits for each source of candidates),
        ``plot()``, and ``write(folder)`` for the report.

    Raises
    ------
    InputError
        If the data, a scorer or the environment cannot be used.

    Examples
    --------
    A critic that prefers small actions, judged by rollouts in the environment of the data::

        def score(states, actions):
            return -(actions**2).sum(axis=1)

        result = toptail.check("mine.npz", {"small": score}, env="gymnasium:Hopper-v5")
        print(result.verdicts["small"].status)
    """
    names = (pools,) if isinstance(pools, str) else tuple(pools)
    request = CheckRequest(
        data,
        scorers,
        names,
        judge,
        env,
        goals,
        None if runs is None else Path(runs),
        config or CheckConfig(),
        caller().command or "toptail.check(...)",
    )
    running = _Check(request, caller().tick)
    if caller().mapped is not map:
        running.run_elsewhere()
    return running.result()


@dataclass(frozen=True, eq=False)
class CheckRequest:
    """The arguments of :func:`check`, which other processes get, too."""

    data: Data
    scorers: Scorers
    pools: tuple[str, ...]
    judge: str | None
    env: object
    goals: bool
    runs: Path | None
    config: CheckConfig
    command: str
    id: str = field(default_factory=lambda: uuid4().hex)


class CheckJob(NamedTuple):
    """A part of a check that can run by itself: judged candidates, or a critic's episodes."""

    source: str
    column: str | None = None
    """The scorer's column, "" for K = 1; None for the judge's values at the queries."""
    search: Search = None
    """Which candidates are taken in the episodes."""


def _run_job(request: CheckRequest, job: CheckJob) -> Any:
    """Run a job in another process, which reads data and critics once."""
    if request.id not in _BEGUN:
        _BEGUN.clear()
        _BEGUN[request.id] = _Check(request, no_tick)
    return _BEGUN[request.id].job_result(job)


class _Check:
    """One check; its parts are made when they are first needed."""

    def __init__(self, request: CheckRequest, tick: Tick) -> None:
        self.request, self.config, self.tick = request, request.config, tick
        self.not_done: list[dict[str, str]] = []
        self.known: dict[CheckJob, Any] = {}
        self._headroom: float | None = None
        """Best less mean value of the uniform candidates, where all of them were judged."""
        self._of_source: dict[str, tuple[FloatArray, dict[str, FloatArray]]] = {}
        files = [each for each in request.pools if each not in SOURCES]
        if not request.pools or len(set(request.pools)) < len(request.pools) or len(files) > 1:
            raise InputError(
                f"{option('pools', request.pools)}: name each kind once, and one file at most."
            )
        fresh_modules()
        tick("data", 0.0)
        self.task = task_dataset(request.data)
        data = self.task.data
        self.environment: TaskEnvironment = task_environment(request.env, data, goals=request.goals)
        self.scorers: list[Scorer] = check_scorers(request.scorers, self.task)
        near = NearData(data.train)
        self.inputs = JudgeInputs(
            self.task.name, near, data.val, self.environment, request.runs, self.config
        )
        self.judge: Judge = judge_of(request.judge or best_judge(self.inputs), self.inputs)
        self._require_judgeable()

    def _require_judgeable(self) -> None:
        """Refuse a file of values for several sources, and note what cannot be done."""
        pools = self.request.pools
        if self.judge.name not in JUDGES and (len(pools) > 1 or ASCENT in pools):
            raise InputError(
                f"{option('judge', self.request.judge)} has values of one kind of candidates, and "
                f"{option('pools', pools)} are several: name the one that it is about."
            )
        if self.judge.name == NO_JUDGE:
            why = "nobody judges the candidates"
            why += f", as {self.environment.missing}" if self.environment.missing else ""
            self._note_not_done("one step", why, self.judge.needs)
        if self.environment.make is None:
            needed = "an environment: --env FILE.py:make or gymnasium:ID"
            self._note_not_done("closed loop", self.environment.missing, needed)

    def _note_not_done(self, what: str, why: str, needed: str) -> None:
        self.not_done.append({"what": what, "why": why, "needed": needed})

    def result(self) -> CheckResult:
        results = [self._source(source) for source in self.sources.values()]
        return CheckResult(self._content(results), self.queries, tuple(results))

    @cached_property
    def queries(self) -> FrozenQueries:
        return self._drawn(self.config.queries(self.judge.name), self.config.seed)

    @cached_property
    def starts(self) -> FrozenQueries:
        """Where episodes start: drawn with another seed than the queries."""
        return self._drawn(self.config.starts, self.config.seed + 1)

    def _drawn(self, count: int, seed: int) -> FrozenQueries:
        return check_queries(self.task.data.val, count, seed, goals=self.environment.goals)

    @cached_property
    def sources(self) -> dict[str, Source]:
        inputs = self.inputs.near, self.task.name, self.request.runs, self.config
        found = (source_of(text, *inputs) for text in self.request.pools)
        return {source.name: source for source in found}

    # Jobs, here or in other processes

    def run_elsewhere(self) -> None:
        """Run all jobs in the caller's other processes, and keep their results."""
        jobs = self.jobs()
        found = caller().mapped(partial(_run_job, self.request), jobs)
        for job, result in zip(jobs, found, strict=True):
            self.known[job] = result
            self.tick(f"{len(self.known)} of {len(jobs)} jobs", len(self.known) / len(jobs))

    def jobs(self) -> list[CheckJob]:
        judged = [CheckJob(name) for name in self.sources if self.judge.value is not None]
        walked = [p for source in self.sources.values() for p in self._episode_jobs(source)]
        return judged + list(dict.fromkeys(walked))

    def job_result(self, job: CheckJob) -> Any:
        if job not in self.known:
            done = self._judged if job.column is None else self._episode_values
            self.known[job] = done(job)
        return self.known[job]

    def _judged(self, job: CheckJob) -> JudgedValues:
        source = self.sources[job.source]
        shown = self._candidates_to_judge(source, *self._scored(source))
        assert self.judge.value is not None
        say = partial(self._tick, source, f"judge: {self.judge.name}")
        return self.judge.value(self.queries, shown, say)

    def _episode_values(self, job: CheckJob) -> Floats:
        episodes = self._episodes(self._source_of_draws(job.source))
        assert episodes is not None
        scores = {scorer.column: scorer.score for scorer in self.scorers}
        return episodes.worth(scores.get(job.column or ""), job.search)

    def _episode_jobs(self, source: Source) -> list[CheckJob]:
        """The episodes with a source: K = 1, then every scorer with every other search."""
        if self._episodes(source) is None:
            return []
        draws = UNIFORM if source.ascends else source.name  # the same candidates
        pairs = [
            ("", 1),
            *((s.column, k) for s in self.scorers for k in self._searches(source)[1:]),
        ]
        return [CheckJob(draws, *pair) for pair in pairs]

    def _searches(self, source: Source) -> tuple[Search, ...]:
        """Searches that are followed at every step."""
        return (*self.config.follow_k, *((None,) if source.ascends else ()))

    def _source_of_draws(self, name: str) -> Source:
        return self.sources[name] if name in self.sources else self.sources[ASCENT]

    # One step

    def _source(self, source: Source) -> SourceResult:
        """Candidates of one source: scored, judged, audited, followed."""
        candidates, scores = self._scored(source)
        pools = {"actions": candidates, **self._support(candidates)}
        pools |= {f"scores/{column}": found for column, found in scores.items()}
        if source.ascends:
            pools |= {f"{ASCENT}/{column}": x for column, x in self._ascended.items()}
        if self.judge.value is None:
            return SourceResult(source, pools, None, None, self._follow(source), ())
        judged: JudgedValues = self.job_result(CheckJob(source.name))
        for doubt in judged.doubts:
            self._note_not_done(f"one step ({source.name})", doubt, "another judge")
        if self._picked_k(source):
            picked = self._audit_picks(source, judged.values)
            followed = self._follow(source)
            return SourceResult(source, pools, None, None, followed, judged.doubts, picked)
        if source.name == UNIFORM:
            values = judged.values.mean(axis=0)
            self._headroom = float((values.max(axis=1) - values.mean(axis=1)).mean())
        table = self._table(source, pools, judged.values)
        followed = self._follow(source)
        found = self._audit(source, table)
        return SourceResult(source, pools, table, found, followed, judged.doubts)

    def _scored(self, source: Source) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Candidates ``[Q, N, a]`` of a source, and their scores ``[Q, N]`` by column."""
        if source.name not in self._of_source:
            self._tick(source, "candidates", 0.0)
            candidates = source.pool(self.queries, self.config.size(self.judge.name))
            self._tick(source, "scores", 0.0)
            scores = {
                scorer.column: score_pools(scorer.score, self.queries, candidates)
                for scorer in self.scorers
            }
            self._of_source = {source.name: (candidates, scores)}  # of one source at a time
        return self._of_source[source.name]

    @cached_property
    def _ascended(self) -> dict[str, FloatArray]:
        """The maximizer of each scorer at each query, ``[Q, a]``, by column."""
        queries, numbers = self.queries, np.arange(len(self.queries))
        keys = np.stack([numbers, np.full_like(numbers, _ASCENT)], axis=1)
        candidates, _ = self._scored(self.sources[ASCENT])
        width, found = queries.actions.shape[1], {}
        for i, scorer in enumerate(self.scorers):
            self.tick(f"{ASCENT}: maximizing the score", i / len(self.scorers))
            ascent = Ascent(scorer.score, queries.goals, width, self.config.seed)
            found[scorer.column] = ascent.best(keys, queries.states, numbers, candidates)
        return found

    def _picked_k(self, source: Source) -> tuple[int, ...]:
        """Sizes K whose picks alone are judged; empty where all candidates are."""
        return self.config.picked_k(source.name, self.judge.name)

    def _picks(self, source: Source) -> list[tuple[str, Search]]:
        """Column and search of the picks: first a random candidate, then those of each scorer."""
        searches: tuple[Search, ...] = self._picked_k(source)[1:]
        searches += (None,) if source.ascends else ()
        return [("", 1), *((s.column, k) for s in self.scorers for k in searches)]

    def _candidates_to_judge(
        self, source: Source, candidates: FloatArray, scores: Mapping[str, FloatArray]
    ) -> FloatArray:
        """What the judge gets: all candidates, or the picks alone."""
        if not self._picked_k(source):
            return candidates
        every, shown = np.arange(len(candidates)), []
        for column, k in self._picks(source):
            if k is None:
                shown.append(self._ascended[column])
            else:
                at = scores[column][:, :k].argmax(axis=1) if column else 0
                shown.append(candidates[every, at])
        return np.stack(shown, axis=1)

    def _audit_picks(self, source: Source, values: NDArray[Any]) -> dict[str, PicksResult]:
        """Audit picks by their values ``[replicates, Q, picks]``."""
        picks = self._picks(source)
        worth = dict(zip(picks, np.moveaxis(values.mean(axis=0), 1, 0), strict=True))
        searches = list(dict.fromkeys(search for _, search in picks))
        return self._audited(self.queries, searches, worth)

    def _audited(
        self,
        queries: FrozenQueries,
        searches: Sequence[Search],
        worth: Mapping[tuple[str, Search], Floats],
    ) -> dict[str, PicksResult]:
        grouped = self.environment.goals
        picks = picks_of(queries, searches, self.scorers, worth, grouped=grouped)
        with called_by(Caller(self.request.command)):
            how = self._sampling()
            return {n: audit_picks(p, baseline=BASELINE, **how) for n, p in picks.items()}

    def _support(self, candidates: FloatArray) -> dict[str, np.ndarray]:
        """Distance of candidates from the data's actions nearby; logged actions set the limit."""
        both = np.concatenate([candidates, self.queries.actions[:, None]], axis=1)
        distance = support_distance(self._local_actions, both)
        threshold = np.float32(np.quantile(distance[:, -1], SUPPORTED))
        return {"support_distance": distance[:, :-1], "on_support": distance[:, :-1] <= threshold}

    @cached_property
    def _local_actions(self) -> FloatArray:
        """Actions of the data near each query, which decide about local support."""
        data = self.inputs.near.data
        near = min(self.config.near, len(data.transitions))
        return np.asarray(data.actions[local_rows(data, self.queries.states, near)])

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
            group=queries.group if self.environment.goals else None,
            source=f"{self.task.name}, {source.name} candidates, judged by {self.judge.name}",
        )
        return replace(result, called={"group": "distance group", "cluster": "trajectory"})

    def _audit(self, source: Source, table: ScoredPools) -> AuditResult:
        columns = list(table.values)
        several = len(columns) > 1
        how = HowJudged(replicates=columns if several else None)
        value = None if several else columns[0]
        with called_by(Caller(self.request.command, partial(self._tick, source))):
            return audit(table, values=value, judged=how, **self._sampling())

    def _sampling(self) -> dict[str, Any]:
        return {"seed": self.config.seed, "resamples": self.config.resamples}

    # Every step

    def _follow(self, source: Source) -> dict[str, PicksResult]:
        """Episodes of every scorer; none without an environment or candidates along the way."""
        if self.environment.make is None or not self._asked_to_follow(source):
            return {}
        jobs = self._episode_jobs(source)
        if not jobs:
            needed = f"--pools {NEAREST} or {UNIFORM}, which are there at every state"
            why = "a file has candidates at the queries alone"
            self._note_not_done(f"closed loop ({source.name})", why, needed)
            return {}
        worth = {}
        for i, job in enumerate(jobs):
            self._tick(source, "every step", i / len(jobs))
            worth[job.column or "", job.search] = self.job_result(job)
        return self._audited(self.starts, self._searches(source), worth)

    def _asked_to_follow(self, source: Source) -> bool:
        return not source.ascends or self.config.follow_ascent

    def _episodes(self, source: Source) -> Episodes | None:
        """What episodes share; None where the source cannot be followed."""
        able = self.environment.make is not None and self._asked_to_follow(source)
        if not able or source.along is None:
            return None
        config = self.config
        return Episodes(
            self.environment,
            self.task.data.val,
            self.starts,
            source.along,
            config.follow_k[-1],
            RolloutRules(config.horizon, config.gamma),
            config.seed,
        )

    @cached_property
    def recorded(self) -> Recorded | None:
        """Value of the data's own episodes in this environment; None if it cannot be measured."""
        episodes = next(filter(None, map(self._episodes, self.sources.values())), None)
        if episodes is None:
            return None
        most, config = GROUPS * self.config.starts, self.config
        try:
            return recorded(episodes, most, config.resamples, config.seed)
        except InputError as error:
            needed = "recorded rows that the environment can be put into"
            self._note_not_done("the return of the data's own episodes", str(error), needed)
            return None

    def _tick(self, source: Source, stage: str, share: float) -> None:
        self.tick(f"{source.name}: {stage}", share)

    # The content of check.json

    def _content(self, sources: Sequence[SourceResult]) -> dict[str, Any]:
        names = list(group_seeds([scorer.column for scorer in self.scorers]))
        return {
            "format": FORMAT,
            "task": self.task.name,
            "goals": self.environment.goals,
            "scorers": {name: self._scorer(name, sources) for name in names},
            "judge": {"name": self.judge.name, "says": self.judge.says + self._picked_says},
            "environment": self.environment.name or None,
            "goal_free": None if self.environment.goals else self.environment.goal_free,
            "candidates": {each.source.name: each.source.says for each in sources},
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
                "train": self.inputs.near.data.sha256,
                "queries": self.queries.sha256,
                "scorers": {scorer.column: dict(scorer.origin) for scorer in self.scorers},
            },
        }

    @property
    def _picked_says(self) -> str:
        """Which picks alone were judged, in words."""
        kinds = [s for s in self.sources.values() if self._picked_k(s) and not s.ascends]
        if not kinds or self.judge.value is None:
            return ""
        *_, most = sizes = self._picked_k(kinds[0])
        ks = ", ".join(map(str, sizes))
        return f"; of {most} candidates only the best of K = {ks} are judged"

    def _scorer(self, name: str, sources: Sequence[SourceResult]) -> dict[str, Any]:
        parts = [self._part(name, each) for each in sources]
        entries = [part[kind] for part in parts for kind in questions(part)]
        return {
            "status": overall(*entries),
            "headline": headline(name, parts),
            "warnings": warnings(name, parts),
            "parts": parts,
        }

    def _part(self, name: str, result: SourceResult) -> dict[str, Any]:
        source, part = result.source, {"one_step": self._one_step(name, result)}
        if self._asked_to_follow(source):
            part["closed_loop"] = self._closed_loop(name, result)
        return {"pools": source.name, **part}

    def _one_step(self, name: str, result: SourceResult) -> dict[str, Any] | None:
        if result.audit is not None:
            return one_step(result.audit.to_dict(), name, result.doubts)
        if not result.picked:
            return None
        headroom = self._headroom if result.source.ascends else None
        return one_step_picks(result.picked[name].to_dict(), result.doubts, headroom)

    def _closed_loop(self, name: str, result: SourceResult) -> dict[str, Any] | None:
        followed = result.followed.get(name)
        if followed is None:
            return None
        first, success = result.source.first, self.environment.goals
        return closed_loop(followed.to_dict(), success=success, first=first, data=self.recorded)
