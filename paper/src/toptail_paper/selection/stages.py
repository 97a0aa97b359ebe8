"""The stages of a fixed-query study up to the scores: each is a file, made once.

Every stage looks for its file first. A file that exists and fits is read; one that does not fit is
refused. A user may put a file of their own in the place of any stage's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from toptail.errors import InputError, option
from toptail.lab.judges.reference import REFERENCE_CRITIC, admission
from toptail.lab.scorers.base import Score, Scorer, score_shared
from toptail.lab.scorers.runs import of_run, run_origin
from toptail.lab.scorers.user import require_names
from toptail.lab.tasks.queries import FrozenQueries, freeze_queries, load_queries
from toptail.lab.tasks.trajectories import FloatArray, Trajectories
from toptail.lab.training.runs import RECORD, in_training, read_run, require_data, run_folder
from toptail.progress import Tick, no_tick
from toptail_paper.selection.config import SelectionConfig
from toptail_paper.selection.files import (
    CRITERIA,
    REFERENCE,
    SelectionFolder,
    check_shape,
    declare,
    require_declared,
)
from toptail_paper.selection.pools import (
    USER,
    CandidatePools,
    Proposal,
    diffusion_proposal,
    draw_pools,
    pools_header,
)
from toptail_paper.selection.trivial import trivial_scores
from toptail_paper.study.point_judges import PointJudge
from toptail_paper.study.results import note, note_critics, note_data
from toptail_paper.study.store import Stored, fitting, need, plain, require_fit

BLOCK = 16_384
"""Candidates that are scored in one call."""


@dataclass(frozen=True)
class Selection:
    """One task's study: its folder, its settings, and its trained runs."""

    folder: SelectionFolder
    config: SelectionConfig
    runs: Path | None = None
    """``RUNS`` of ``RUNS/TASK/CRITIC/seed-N``; None where every stage's file is already there."""
    tick: Tick = no_tick

    @classmethod
    def at(
        cls, out: Path, config: SelectionConfig, runs: Path | None = None, tick: Tick = no_tick
    ) -> Selection:
        """The study that lives in ``out/TASK``."""
        return cls(SelectionFolder(out / config.task), config, runs, tick)

    def needed_runs(self, stage: str) -> Path:
        """The folder of trained runs; without one an error says that the stage needs it."""
        if self.runs is None:
            raise InputError(
                f"{stage} needs trained runs: name their folder with {option('runs')}, or put the "
                f"stage's file into {self.folder.path}."
            )
        return self.runs

    def made_from(self, queries: FrozenQueries, pools: CandidatePools) -> dict[str, Any]:
        """What the headers of all files of scores and values name as their inputs.

        Nothing is scored, valued or rolled out against criteria that were not declared.
        """
        declared = require_declared(self.folder, self.config, queries)
        return {"declared": declared["hash"], "queries": queries.sha256, "pools": pools.sha256}


def no_part(_share: float) -> None:
    """Report no progress."""


def score_candidates(
    score: Score,
    queries: FrozenQueries,
    pools: CandidatePools,
    tick: Callable[[float], None] = no_part,
) -> FloatArray:
    """Score every candidate and the logged action, [Q, P, N + 1], in blocks of rows."""
    actions = pools.with_logged()
    per_query = actions.shape[1] * actions.shape[2]
    flat = actions.reshape(-1, actions.shape[-1])
    candidate = np.arange(len(flat))
    query = candidate // per_query
    asked = np.stack([candidate, query], axis=1)
    result = np.empty(len(flat), dtype=np.float32)
    states, goals = queries.states[query], queries.goals
    for at, given in score_shared(score, states, flat, goals, asked, BLOCK):
        scores, count = np.asarray(given), at.stop - at.start
        if scores.shape != (count,):
            raise InputError(
                f"A scorer gave scores of shape {scores.shape} for {count} rows: expected one "
                "number per row."
            )
        result[at] = scores
        tick(at.stop / len(flat))
    return result.reshape(actions.shape[:3])


NORM = "norm"
"""What studies call the readout that is the norm of phi."""


def make_queries(study: Selection, val: Trajectories, *, anew: bool = False) -> FrozenQueries:
    """Freeze the queries, and declare the criteria for them.

    ``anew`` forgets what was declared, and drawn for it, as long as nothing is scored.
    """
    path, config = study.folder.queries, study.config.queries
    study.tick("queries", 0.0)
    if anew and not study.folder.scored():
        study.folder.forget()
    if path.is_file():
        queries = load_queries(path)
        header = {**asdict(queries.config), "data": queries.data_sha256}
        require_fit(path, plain(header), {**asdict(config), "data": val.sha256})
    else:
        queries = freeze_queries(val, config)
        queries.save(path)
    declare(study.folder, study.config, queries)
    study.tick("queries", 1.0)
    return queries


def make_pools(
    study: Selection, queries: FrozenQueries, train: Trajectories, proposal: Proposal | None = None
) -> CandidatePools:
    """Draw the cached candidates, and label their local support by the training split's actions.

    Candidates come from the task's diffusion run unless there is another proposal.
    """
    declare(study.folder, study.config, queries)
    path, settings, support = study.folder.pools, study.config.pools, study.config.support
    study.tick("pools", 0.0)
    made_from = pools_header(queries, train, settings, support)
    stored = fitting(path, made_from)
    if proposal is None and not (stored and stored.header["proposal"]["kind"] == USER):
        proposal = _behaviour_model(study, train.sha256, required=stored is None)
    if proposal is not None:
        made_from["proposal"] = proposal.origin

    def drawn() -> Stored:
        assert proposal is not None  # a model that is required is there
        tick = partial(study.tick, "pools")
        return draw_pools(queries, train, proposal, settings, support, tick)

    stored = need(path, made_from, drawn)
    # As the proposal names itself: a stored file sorts the names, and pools that were drawn by a
    # call that was killed leave the same note as those drawn now.
    note(study.folder.path, candidates=made_from.get("proposal", stored.header["proposal"]))
    note_data(study.folder.path, study.config.task, train)
    study.tick("pools", 1.0)
    return CandidatePools.of(path, stored)


def judge_reference(study: Selection, queries: FrozenQueries, pools: CandidatePools) -> Stored:
    """Value every candidate by each member of the reference ensemble, and decide its admission.

    ``values`` are float32 [members, Q, P, N + 1], the last one the logged action's; the header has
    ``members`` (origins) and ``admission``.
    """
    path, settings = study.folder.values(REFERENCE), study.config.reference
    made_from = study.made_from(queries, pools)
    members = _reference_members(study, required=not path.is_file())
    if members:
        _require_same_data(study, [member.origin for member in members], pools.header["data"])
        made_from["members"] = [dict(member.origin) for member in members]

    def judged() -> Stored:
        values = np.stack(
            [
                score_candidates(member.score, queries, pools, _part(study, REFERENCE, i, members))
                for i, member in enumerate(members)
            ]
        )
        check_shape(path, "values", values, (-1, *pools.scored_shape))
        criteria = {name: getattr(settings, name) for name in CRITERIA}
        rng = np.random.default_rng(0)
        verdict = admission(
            values[..., :-1], queries.group, queries.trajectory, rng=rng, **criteria
        )
        return Stored({**made_from, "admission": verdict}, {"values": values})

    stored = need(path, made_from, judged)
    study.tick(REFERENCE, 1.0)
    return stored


def judge_by_maze(
    study: Selection, queries: FrozenQueries, pools: CandidatePools, judge: PointJudge
) -> Stored:
    """Value every candidate by a judge that knows the maze's shortest paths.

    ``values`` are float32 [1, Q, P, N + 1].
    """
    gamma, shape = study.config.rollouts.gamma, (1, *pools.scored_shape)
    header = study.made_from(queries, pools) | {"origin": judge.origin(gamma)}

    def judged() -> FloatArray:
        actions = pools.with_logged()
        values: FloatArray = judge.values(
            study.config.task,
            queries.states,
            actions.reshape(len(actions), -1, actions.shape[-1]),
            queries.goals,
            gamma,
            partial(study.tick, judge.name),
        )
        return values.reshape(shape)

    stored = _need_array(study.folder.values(judge.name), header, "values", judged, shape)
    study.tick(judge.name, 1.0)
    return stored


def score_critics(
    study: Selection, queries: FrozenQueries, pools: CandidatePools, scorers: Sequence[Scorer]
) -> dict[str, Path]:
    """Score every candidate by every scorer; one file per column.

    The logged action is scored behind the candidates: ``scores`` float32 [Q, P, N + 1]. A scorer
    with embeddings leaves the norms of phi beside them. Returns column to file.
    """
    require_names([scorer.column for scorer in scorers], study.folder.columns())
    _require_same_data(study, [scorer.origin for scorer in scorers], pools.header["data"])
    made_from = study.made_from(queries, pools)
    note_critics(study.folder.path, study.config.task, [scorer.origin for scorer in scorers])
    paths = {}
    for i, scorer in enumerate(scorers):
        path = paths[scorer.column] = study.folder.scores(scorer.column)
        score, shape = partial(score_candidates, queries=queries, pools=pools), pools.scored_shape
        origin, tick = dict(scorer.origin), _part(study, "scores", i, scorers)
        scored: Callable[[], FloatArray] = partial(score, scorer.score, tick=tick)
        if scorer.opaque:  # only its answers tell whether it is the function that was stored
            answers = scored()
            origin["scores_sha256"] = hashlib.sha256(answers.tobytes()).hexdigest()
            scored = partial(np.asarray, answers)
        _need_array(path, {**made_from, "origin": origin}, "scores", scored, shape)
        if NORM in scorer.readouts:
            header = {**made_from, "origin": {**scorer.origin, "readout": NORM}}
            normed = partial(score, scorer.readouts[NORM])
            _need_array(study.folder.norms(scorer.column), header, "norms", normed, shape)
        study.tick("scores", (i + 1) / len(scorers))
    return paths


def score_trivial(study: Selection, queries: FrozenQueries, pools: CandidatePools) -> None:
    """Store the scores that need no training, as columns beside those of critics."""
    made_from = study.made_from(queries, pools)
    for name, (formula, score) in trivial_scores(study.config.task).items():
        header, path = {**made_from, "origin": {"score": formula}}, study.folder.scores(name)
        _need_array(path, header, "scores", partial(score, queries, pools), pools.scored_shape)


def _need_array(
    path: Path,
    header: Mapping[str, Any],
    name: str,
    compute: Callable[[], FloatArray],
    shape: tuple[int, ...],
) -> Stored:
    """A stored file of one array; made where it is missing, and refused if not finite."""

    def made() -> Stored:
        array = compute()
        check_shape(path, name, array, shape)
        return Stored(header, {name: array})

    return need(path, header, made)


def runs_in_training(study: Selection, critics: Sequence[str]) -> list[tuple[str, int]]:
    """Critic and audited seed of the runs that are being trained at this moment."""
    home = study.needed_runs("Scoring") / study.config.task
    busy = [critic for critic in critics if in_training(home / critic)]
    return [
        (critic, seed)
        for critic, seed in product(busy, study.config.seeds)
        if (run_folder(home / critic, seed) / RECORD).is_file()
        and read_run(run_folder(home / critic, seed)).state == "running"
    ]


def critic_scorers(study: Selection, critics: Sequence[str]) -> list[Scorer]:
    """The scorers of every run of the audited seeds that was trained, critic by critic.

    A run that is being trained is left for later; one that was stopped is refused.
    """
    home, task = study.needed_runs("Scoring") / study.config.task, study.config.task
    waiting = runs_in_training(study, critics)
    ready = [pair for pair in product(critics, study.config.seeds) if pair not in waiting]
    found = [scorer for critic, seed in ready for scorer in of_run(home / critic, seed, task)]
    if not found:
        raise InputError(
            f"{home} has no run of the critics {', '.join(critics)} with the seeds "
            f"{', '.join(map(str, study.config.seeds))}: train them with {option('train')} and "
            f"{option('critics')}, or name other {option('seeds')}."
        )
    return found


def _require_same_data(study: Selection, origins: Sequence[Mapping[str, Any]], data: str) -> None:
    """Refuse runs of other training data than the study's; a user's function has none."""
    for origin in origins:
        if "data" in origin:
            require_data(origin["run"], origin["data"], study.config.task, data)


def _behaviour_model(study: Selection, data: str, *, required: bool) -> Proposal | None:
    """The task's diffusion run; None where it is missing and stored pools replace it."""
    settings, task = study.config.pools, study.config.task
    runs = study.needed_runs("Drawing candidates") if required else study.runs
    if runs is None:
        return None
    folder = run_folder(runs / task / "diffusion", settings.policy_seed)
    if not (folder / RECORD).is_file():
        if not required:
            return None
        raise InputError(
            f"Drawing candidates needs the behaviour model {folder}, which was not trained: train "
            f"it with {option('train')}, or with 'toptail train --critics diffusion --seeds "
            f"{settings.policy_seed}'; or give candidates of your own with {option('pools')}."
        )
    _require_same_data(study, [run_origin(read_run(folder))], data)
    return diffusion_proposal(folder, task, settings)


def _reference_members(study: Selection, *, required: bool) -> list[Scorer]:
    """The reference runs; empty where some are missing and stored values replace them."""
    task, seeds = study.config.task, study.config.reference.seeds
    runs = study.needed_runs("The reference ensemble") if required else study.runs
    if runs is None:
        return []
    home = runs / task / REFERENCE_CRITIC
    members = {seed: of_run(home, seed, task) for seed in seeds}
    missing = [seed for seed, found in members.items() if not found]
    if missing and required:
        raise InputError(
            f"The reference ensemble needs {run_folder(home, missing[0])}, which is not there: "
            f"train it with {option('train')}, or with 'toptail train --critics {REFERENCE_CRITIC} "
            f"--seeds {','.join(map(str, seeds))}'."
        )
    return [] if missing else [scorer for found in members.values() for scorer in found]


def _part(study: Selection, stage: str, i: int, of: Sequence[object]) -> Callable[[float], None]:
    return lambda share: study.tick(stage, (i + share) / len(of))
