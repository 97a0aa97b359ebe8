"""Plans of judging: which candidates to judge, as a table with the chances of the draw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from toptail.errors import InputError, check_whole, option, refusing
from toptail.io.files import atomic
from toptail.io.tables import as_table, file_format, read_table, write_table
from toptail.judging.design import (
    Assumptions,
    Contrasts,
    Design,
    Draw,
    assumptions_from,
    design,
    drawn_within,
)
from toptail.judging.ids import (
    are_numbered,
    candidate_labels,
    check_order,
    keys_of,
    marks,
    row_of_key,
    rows_of,
)
from toptail.pools.columns import Columns
from toptail.pools.read import to_pools

PLAN = b"toptail-plan"
"""Key of the metadata in which a plan's file records how the plan was drawn."""


@dataclass(frozen=True, eq=False)
class JudgingPlan:
    """Candidates to judge, with the chances by which they were drawn."""

    table: pa.Table
    """One row per candidate: its ids, ``p_judged``, ``p_whole``, ``own`` and ``batch``; and
    ``mark:SCORER``, by which an audit checks the order of the rows, where candidates have no label
    but their row in the query."""
    half_width: float
    """Expected half-width of the captured share at the largest K."""
    whole: int
    """How many queries are judged as a whole."""
    candidates: int
    """How many candidates the table has."""

    @property
    def labels(self) -> int:
        """How many candidates are to be judged, earlier batches included."""
        return int(self.table.num_rows)

    @property
    def numbered(self) -> bool:
        """Whether ``candidate`` is the number of the row in the query, from 0."""
        return are_numbered(self.table)

    @property
    def fresh(self) -> int:
        """How many candidates the latest batch adds."""
        batch = self.table["batch"].to_numpy()
        return int((batch == batch.max()).sum())

    def write(self, path: str | PathLike[str]) -> None:
        """Write the table as Parquet, CSV, JSON, JSON Lines or Arrow by the name's ending."""
        where = Path(path)
        kind = file_format(where)
        if kind == "npz":
            raise InputError(f"{where}: a plan is a table with ids; use .parquet or .csv.")
        atomic(where, lambda target: write_table(self.table, target, kind))

    def __repr__(self) -> str:
        return f"JudgingPlan({self.summary()})"

    def summary(self) -> str:
        return (
            f"{self.labels:,} of {self.candidates:,} candidates, {self.whole:,} queries as a "
            f"whole; expected half-width of the captured share {self.half_width:.3f}"
        )


def make_plan(
    source: Any,
    columns: Columns,
    *,
    values: str | None,
    cheap: str | None,
    labels: int | None,
    half_width: float | None,
    spread: float | None,
    min_pool: int | None,
    seed: int,
    looks: int,
    extend: Any,
) -> JudgingPlan:
    """The plan of :func:`toptail.plan`; ``columns`` are those of the table."""
    check_whole("seed", seed, 0)
    check_whole("looks", looks, 1)
    if (labels is None) == (half_width is None):
        raise InputError(f"Give either {option('labels')} or {option('half_width')}.")
    before = None if extend is None else table_of(extend)
    record: Mapping[str, Any] = {} if before is None else _record_to_extend(before)
    named = [name for name in (values, cheap) if name is not None]
    columns = columns | Columns(values=named or None, missing_values=True)
    columns["scores"] = record.get("scores", columns.get("scores"))
    pools = to_pools(source, columns)
    if pools.rows != record.get("candidates", pools.rows):
        raise InputError(
            f"{pools.source}: the plan to extend is of a table with {record['candidates']:,} "
            f"candidates, and this one has {pools.rows:,}."
        )
    if before is not None:
        where = str(extend) if isinstance(extend, (str, PathLike)) else "The plan to extend"
        check_order(pools, rows_of(before, row_of_key(pools), where, "the table"), before, where)
    contrasts = Contrasts.of(pools, record.get("min_pool", min_pool))
    known = {name: pools.values.get(name) for name in named}
    for name, column in known.items():
        if column is None:
            raise InputError(
                f"{pools.source}: there is no value column '{name}'; the value columns are "
                f"{', '.join(pools.values)}."
            )
    guess = assumptions_from(contrasts, known.get(values or ""), known.get(cheap or ""), spread)
    guess = Assumptions(**record["guess"]) if record else guess
    seed, share = int(record.get("seed", seed)), record.get("share")
    if labels is None:
        labels = _labels_for(contrasts, float(half_width or 0.0), guess, share)
    check_whole("labels", labels, 1)
    found, drawn = drawn_within(contrasts, labels, guess, seed, share)
    facts = {
        "seed": seed,
        "share": found.p_whole * float(contrasts.rows.sum()) / labels if share is None else share,
        "scores": list(pools.scores),
        "min_pool": record.get("min_pool", min_pool),
        "candidates": pools.rows,
        "guess": asdict(guess),
        "looks": record.get("looks", looks),
        "sha256": pools.sha256,
    }
    table = _plan_table(found, drawn, before)
    batch = _batch_of(table)
    if facts["looks"] > 1 and batch > facts["looks"]:
        raise InputError(
            f"{pools.source}: the plan declared {facts['looks']} looks, and this would be batch "
            f"{batch}; what was to be decided with it is decided."
        )
    table = table.replace_schema_metadata({PLAN: json.dumps(facts)})
    return JudgingPlan(table, found.half_width(guess), found.whole, pools.rows)


def level_at(level: float, at: int, of: int) -> float:
    r"""Confidence of intervals at look ``at`` of ``of``, so that all looks together err as one.

    One end may err with :math:`\alpha = (1 - level)/2`. Up to look j it has spent
    :math:`\alpha(t) = 2 - 2\Phi(z_{1 - \alpha/2}/\sqrt t)` of that, t = j/of (the spending function
    of Lan and DeMets, 1983, that is like O'Brien and Fleming's): little at first, most at the end.
    Each look errs with what it spends anew; these add up to alpha, whatever the looks have to do
    with each other.

    Examples
    --------
    >>> level_at(0.95, 1, 1)
    0.95
    >>> [round(1 - level_at(0.95, look, 3), 4) for look in (1, 2, 3)]
    [0.0002, 0.0119, 0.0379]
    """
    tail = (1.0 - level) / 2
    if of == 1:
        return level
    share = np.array([at - 1, at]) / of
    with np.errstate(divide="ignore"):
        spent = 2.0 - 2.0 * ndtr(ndtri(1.0 - tail / 2) / np.sqrt(share))
    return float(1.0 - 2.0 * (spent[1] - spent[0]))


def _batch_of(table: pa.Table) -> int:
    return max(table["batch"].to_pylist(), default=1) if "batch" in table.column_names else 1


def look_of(plan: Any) -> tuple[int, int]:
    """The number of this look at a plan's answers, and how many looks were declared (or 1)."""
    table = table_of(plan)
    with refusing("The plan", "does not say which look it is", "use the file as it was written"):
        return int(_batch_of(table)), int(_record(table).get("looks", 1))


def _record(table: pa.Table) -> dict[str, Any]:
    """The settings of a plan that its file records; empty where it does not."""
    stored = (table.schema.metadata or {}).get(PLAN, b"{}")
    with refusing("The plan", "does not say how it was made", "use the file as it was written"):
        return dict(json.loads(stored))


def _labels_for(
    contrasts: Contrasts, target: float, guess: Assumptions, share: float | None
) -> int:
    """The fewest labels whose expected half-width is at most ``target``."""
    rows = int(contrasts.rows.sum())
    best = design(contrasts, rows, guess, share).half_width(guess)
    if not best <= target:
        raise InputError(
            f"{contrasts.pools.source}: {option('half_width', target)} is out of reach: with all "
            f"{rows:,} candidates judged about {best:.3f} is to be expected; it takes more queries."
        )
    low, high = 0, rows
    while high - low > max(1, rows // 1000):
        middle = (low + high) // 2
        try:
            reached = design(contrasts, middle, guess, share).half_width(guess) <= target
        except InputError:  # too few for the queries that are judged whole
            reached = False
        low, high = (low, middle) if reached else (middle, high)
    return high


def _plan_table(found: Design, drawn: Draw, before: pa.Table | None) -> pa.Table:
    """The plan's table; candidates of an earlier plan keep their batch."""
    pools = found.contrasts.pools
    at = np.flatnonzero(drawn.judged)
    query = pools.query.take(pa.array(np.searchsorted(pools.offsets, at, side="right") - 1))
    candidate = candidate_labels(pools).take(pa.array(at))
    batch = np.ones(at.size, dtype=np.int64)
    if before is not None:
        earlier = dict(zip(keys_of(before, "plan"), before["batch"].to_pylist(), strict=True))
        ids = keys_of(pa.table({"query": query, "candidate": candidate}), "plan")
        if set(earlier) - set(ids):
            raise InputError(
                f"{pools.source}: the plan to extend asked for candidates that a plan of so many "
                "labels of this table does not; extend it with more labels, and the same table."
            )
        latest = max(earlier.values(), default=0) + 1
        batch = np.array([earlier.get(key, latest) for key in ids])
    return pa.table(
        {
            "query": query,
            "candidate": candidate,
            "p_judged": found.p_judged[at],
            "p_whole": np.full(at.size, found.p_whole),
            "own": drawn.own[at].astype(np.int64),
            "batch": batch,
            **marks(pools, at),
        }
    )


def table_of(data: Any, what: str = "plan") -> pa.Table:
    """The table of a plan, of a file, or of any data frame."""
    if isinstance(data, JudgingPlan):
        return data.table
    if isinstance(data, (str, PathLike)):
        return read_table(Path(data))
    return as_table(data, what)


def _record_to_extend(table: pa.Table) -> Mapping[str, Any]:
    record = _record(table)
    if not record:
        raise InputError(
            f"{option('extend')} needs the plan's Parquet or Arrow file, which records how it was "
            "made; other files do not."
        )
    return record
