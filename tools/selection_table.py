"""The pools of a fixed-query selection as one table, for ``toptail audit`` and ``toptail choose``.

    python tools/selection_table.py FOLDER OUT.parquet [GROUP|all|judging|rollouts [JUDGE]]

FOLDER is ``OUT/TASK`` of ``toptail-paper study selection``. Beside scores, support and the judge's
values (the reference's members as replicates, unless another judge is named), the table has a
number column ``nearness``: minus the distance of a candidate to the nearest action of the data.
GROUP keeps one distance group of the queries.

For ``python -m validation.judging_savings``: ``judging`` keeps every fifteenth pool with the scores
of one seed, the mean of all members but the first as the value and the first as a cheap judge;
``rollouts`` has what was rolled out of each pool, its mean return as the value and the reference as
a cheap judge.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from toptail.pools import ScoredPools
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.load import TaskSelection, read_selection
from toptail_paper.selection.rollout_data import POOL, audited_columns
from toptail_paper.selection.write import to_pools

EVERY = 15
"""Which pools ``judging`` keeps."""


def judging_table(data: TaskSelection) -> ScoredPools:
    """Some pools, judged by one part of the ensemble, with another as a cheap judge."""
    pools = to_pools(data, REFERENCE)
    cheap, *others = pools.values.values()
    kept = {name: pools.scores[column] for name, column in audited_columns(data.scores).items()}
    values = {"value": np.mean(others, axis=0), "cheap": cheap}
    pools = replace(pools, scores=kept, values=values, support=None, group=None)
    return pools.select(np.arange(pools.queries) % EVERY == 0)


def rollouts_table(data: TaskSelection) -> ScoredPools:
    """What was rolled out, each candidate once; the logged action is left out."""
    found = data.rollouts
    assert found is not None, f"{data.folder} has no rollouts"
    candidate = np.concatenate([found.candidate, found.random_candidate], axis=1)
    returns = np.concatenate([found.returns, found.random_returns], axis=1).mean(axis=2)
    query = np.repeat(found.query, candidate.shape[1])
    _, first = np.unique(query * (data.size + 1) + candidate.ravel(), return_index=True)
    first = first[candidate.ravel()[first] < data.size]
    at = query[first], POOL, candidate.ravel()[first]
    columns = audited_columns(data.scores)
    reference = np.asarray(data.values[REFERENCE], np.float64).mean(axis=0)
    table = {"query": at[0], "cluster": data.trajectory[at[0]], "value": returns.ravel()[first]}
    table |= {name: data.scores[column][at] for name, column in columns.items()}
    table |= {"cheap": reference[at]}
    return ScoredPools.from_arrow(table, scores=list(columns), values=["value", "cheap"])


def main(folder: str, out: str, kind: str = "all", judge: str = REFERENCE) -> None:
    """Write the table."""
    data = read_selection(folder)
    tables = {"judging": judging_table, "rollouts": rollouts_table}
    if kind in tables:
        pools = tables[kind](data)
    else:
        pools = to_pools(data, judge)
        nearness = -data.support_distance.reshape(-1)
        pools = replace(pools, scores={**pools.scores, "nearness": nearness})
        if kind != "all":
            assert pools.group is not None
            pools = pools.select(np.array(pools.group.to_pylist()) == kind)
    pools.write(Path(out))
    print(f"{out}: {pools}")


if __name__ == "__main__":
    main(*sys.argv[1:])
