"""The study's verdicts: its pools and picks through the same audit that any table goes through."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from toptail.audit.picks import picks_content
from toptail.audit.run import pools_content
from toptail.audit.settings import Settings
from toptail.errors import InputError
from toptail.io.files import staged_folder
from toptail.io.json_files import write_json
from toptail.io.tables import with_roles
from toptail.judging.values import judged_pools
from toptail.lab.critics.registry import MAIN
from toptail.pools import ScoredPools
from toptail.pools.columns import split_seed
from toptail.progress import Tick, no_tick
from toptail.results import write_report
from toptail_paper.selection.config import EXPERT_STAGE
from toptail_paper.selection.files import REFERENCE, SelectionFolder
from toptail_paper.selection.judge_tables import (
    deployment_table,
    expert_table,
    judges_table,
    rollout_cells,
    rollout_draws,
)
from toptail_paper.selection.load import TaskSelection, read_selection
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import RANDOM
from toptail_paper.selection.tables import (
    PICK_NORM,
    RESAMPLES,
    MeasuredPicks,
    factored_table,
    fixed_query_table,
    function_class_table,
    pick_norm_table,
    search_error_table,
)
from toptail_paper.study.naming import IDEALS, TRIVIAL
from toptail_paper.study.search_error import LABEL
from toptail_paper.study.tables import write_tables

AUDIT = "audit"
"""Folder of the audit under the first judge; the others are in ``audit_JUDGE``."""
PICKS_RESAMPLES = 20_000
"""Resamples of the rollouts' audit, at least; there are few queries and many selectors."""


def to_pools(folder: str | Path | TaskSelection, judge: str) -> ScoredPools:
    """The pools of a task as the audit reads them, with one judge's values.

    A row is one pool of one query (label ``QUERY/POOL``); its cluster is the query's trajectory,
    in which pools and queries are nested, and its group the distance group. A judge with several
    members gives one value column for each (``value_reference_0``, ...): independent replicates
    of one noisy judge. The logged action is not part of a pool, and ideal critics are not audited.
    """
    data = folder if isinstance(folder, TaskSelection) else read_selection(folder)
    queries, pools, size = data.on_support.shape
    flat = (queries * pools, size)
    members = data.members(judge)
    values = {
        name: member.reshape(flat)
        for name, member in zip(value_columns(judge, len(members)), members, strict=True)
    }
    labels = _labels(data)
    result = ScoredPools.from_arrays(
        {c: data.candidate_scores(c).reshape(flat) for c in data.scores if c not in IDEALS},
        values,
        support=data.on_support.reshape(flat),
        query=labels["query"],
        cluster=labels["cluster"],
        group=labels["group"],
        source=f"{data.task}, judged by {judge}",
    )
    return replace(result, called={"group": "distance group", "cluster": "trajectory"})


def _labels(data: TaskSelection) -> dict[str, NDArray[Any]]:
    queries, pools, _ = data.on_support.shape
    return {
        "query": np.array([f"{q}/{p}" for q in range(queries) for p in range(pools)]),
        "cluster": np.repeat(data.trajectory, pools),
        "group": np.repeat(data.group, pools),
    }


STORED_SCORERS = (*MAIN[:3], *IDEALS, *TRIVIAL)
"""Scorers of which stored results keep the scores."""


PART_BYTES = 4_000_000
"""Bytes of the numbers of one stored part before compression: no stored file is above 5 MB."""


def write_scored_pools(folder: str | Path, scorers: Collection[str] = STORED_SCORERS) -> Path:
    """Write ``scored_pools/``: scores, all values, support and actions in 16-bit floats.

    What stored results keep of the stages' files, so that judges and scores that need no training
    can be made again. Any audit reads the folder.
    """
    data = read_selection(folder)
    pools = CandidatePools.read(SelectionFolder(data.folder).pools)
    scores = {
        column: data.candidate_scores(column)
        for column in data.scores
        if split_seed(column)[0] in scorers
    }
    values = {
        name: member
        for judge in data.judges
        for name, member in zip(
            value_columns(judge, len(data.values[judge])), data.members(judge), strict=True
        )
    }
    actions = {f"action_{i}": pools.actions[..., i] for i in range(pools.actions.shape[-1])}
    numbers = scores | values | actions
    large = [name for name, x in numbers.items() if np.abs(x).max() > np.finfo(np.float16).max]
    if large:
        raise InputError(f"{data.folder}: '{large[0]}' has numbers too large for 16 bits.")
    columns: dict[str, NDArray[Any]] = {
        **{name: np.repeat(x, data.size) for name, x in _labels(data).items()},
        "support": data.on_support.reshape(-1),
        **{name: x.reshape(-1).astype(np.float16) for name, x in numbers.items()},
    }
    path = data.folder / "scored_pools"
    write_parts(path, with_roles(pa.table(columns), scores, values, actions), data.size)
    return path


def write_parts(folder: Path, table: pa.Table, size: int) -> None:
    """Write a table as a folder of Parquet files, each of whole pools of ``size`` rows."""
    half = [name for name in table.column_names if table.schema.field(name).type == pa.float16()]
    rows = PART_BYTES // (2 * len(half) * size) * size
    with staged_folder(folder) as stage:
        for part, start in enumerate(range(0, table.num_rows, rows)):
            pq.write_table(
                table.slice(start, rows),
                stage / f"part-{part}.parquet",
                compression="zstd",
                use_dictionary=[name for name in table.column_names if name not in half],
                column_encoding=dict.fromkeys(half, "BYTE_STREAM_SPLIT"),
            )


def value_columns(judge: str, members: int) -> list[str]:
    """Names of a judge's value columns: one, or one for each member."""
    if members == 1:
        return [f"value_{judge}"]
    return [f"value_{judge}_{member}" for member in range(members)]


def audit_pools(data: TaskSelection, judge: str, resamples: int = 10_000) -> dict[str, Any]:
    """Audit every scorer under one judge; members of an ensemble are its replicates."""
    columns = value_columns(judge, len(data.values[judge]))
    values, replicates = (columns[0], None) if len(columns) == 1 else (None, columns)
    return pools_content(
        judged_pools(to_pools(data, judge), values, replicates),
        Settings(k=data.k, resamples=resamples, pools_per_query=data.on_support.shape[1]),
        command=f"toptail-paper study selection --task {data.task}",
    )


def write_audits(data: TaskSelection, resamples: int = 10_000) -> dict[str, dict[str, Any]]:
    """Write the audit of every judge into the task's folder; return those written, by judge.

    The first judge's report is ``audit/``, another's ``audit_JUDGE/``, and that of the simulator's
    picks ``audit_rollouts/``; ``audit_rollouts_expert/`` is of picks that a policy which reaches
    goals continued.
    """
    results: dict[str, dict[str, Any]] = {}
    for judge in data.judges if data.scores else []:
        results[judge] = audit_pools(data, judge, resamples)
        folder = AUDIT if judge == data.judges[0] else f"{AUDIT}_{judge}"
        write_report(results[judge], data.folder / folder)
    by_expert = None if data.rollouts_expert is None else data.rollouts_expert.picks()
    for name, picks in (("rollouts", data.picks), (EXPERT_STAGE, by_expert)):
        if picks is None:
            continue
        results[name] = picks_content(
            picks,
            baseline=RANDOM,
            # Dozens of pairs are compared: fewer resamples could not give a small p-value.
            resamples=max(resamples, PICKS_RESAMPLES),
            command=f"toptail-paper study selection --task {data.task}",
        )
        write_report(results[name], data.folder / f"{AUDIT}_{name}")
    return results


def write_results(
    folder: str | Path, tick: Tick | None = None, resamples: int = RESAMPLES
) -> list[str]:
    """Store the audits, ``tables/*.json`` and ``curves.json`` in ``OUT/TASK``; returns the tables.

    Every interval has so many resamples of whole trajectories.
    """
    data, tick = read_selection(folder), tick or no_tick
    if not data.scores or not data.values:
        missing = "scores" if not data.scores else "values"
        raise InputError(
            f"{data.folder / missing} holds no file: there is nothing to tabulate before some "
            "critic has scored and some judge has valued the candidates."
        )
    measured = MeasuredPicks(data, resamples=resamples, tick=tick)
    tick("auditing", 0.1)
    audits = write_audits(data, resamples)
    gains = None if data.rollouts is None else data.rollouts.gains()
    deltas = rollout_cells(audits.get("rollouts"), gains)
    if data.picks is not None:
        deltas = rollout_draws(data.picks, deltas, resamples)
    judges = judges_table(data, measured.means, deltas)
    admitted = judges["statuses"].get(REFERENCE, {}).get("admitted", False)
    tables: dict[str, dict[str, Any] | None] = {
        "fixed-query": fixed_query_table(measured, deltas, reliable=admitted),
        "function-class": function_class_table(measured),
        "factored": factored_table(measured),
        "judges": judges,
        "rollouts-expert": expert_table(data, audits.get(EXPERT_STAGE), resamples),
        "deployment": deployment_table(data),
        LABEL: search_error_table(measured),
        PICK_NORM: pick_norm_table(measured),
    }
    stored = {name: content for name, content in tables.items() if content is not None}
    write_tables(data.folder / "tables", stored)
    write_json(data.folder / "curves.json", measured.curves())
    return sorted(stored)
