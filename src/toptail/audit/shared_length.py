"""A warning where score and value both follow length: the judge may share the score's bias."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import stdtrit

from toptail.judging.values import Judgement
from toptail.pools import ScoredPools
from toptail.pools.scored import BLOCK
from toptail.stats.best_of_k import Floats
from toptail.stats.rank import kendall_tau_b
from toptail.stats.resample import cluster_sums

LEAST: Final = 0.2
"""A mean tau_b nearer to 0 is not worth a warning."""
_MOST_QUERIES: Final = 2_000
"""Of more queries, so many in equal steps are used."""


def shared_length(pools: ScoredPools, judged: Judgement, level: float) -> list[str]:
    """A warning for each length that scorers and the value clearly follow in one direction."""
    if not pools.lengths or not judged.exact:
        return []
    keep = np.zeros(pools.queries, dtype=bool)
    keep[np.linspace(0, pools.queries - 1, _MOST_QUERIES).astype(np.int64)] = True
    value, some = judged.value[np.repeat(keep, pools.sizes)], pools.select(keep)
    warnings = []
    for name, length in some.lengths.items():
        of_value = _followed(some, length, [value], level)
        found = {
            scorer: tau
            for scorer, members in some.scorers.items()
            if (tau := _followed(some, length, [some.scores[c] for c in members.values()], level))
            * of_value
            > 0
        }
        if found:
            scorers = ", ".join(f"'{scorer}' ({tau:.2f})" for scorer, tau in found.items())
            warnings.append(
                f"{scorers} and the value ({of_value:.2f}) both follow '{name}' within queries "
                "(mean tau_b): a judge that likes length would call a score that seeks length "
                "safe. Judge some candidates of equal length, or by a judge that is blind to it."
            )
    return warnings


def _followed(pools: ScoredPools, length: Floats, columns: list[Floats], level: float) -> float:
    """The mean tau_b of columns with length within queries; 0 where that is small or unclear."""
    tau = np.zeros(pools.queries)
    for block in pools.blocks(BLOCK):
        of_block = block.take(length)
        each = [kendall_tau_b(of_block, block.take(column)) for column in columns]
        unknown = np.isnan(of_block).any(axis=1)
        tau[block.queries] = np.where(unknown, np.nan, np.mean(each, axis=0))
    known = ~np.isnan(tau)
    cluster = None
    if pools.cluster is not None:
        labels = pools.cluster.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        cluster = np.unique(labels[known], return_inverse=True)[1]
    sums = cluster_sums(np.stack([tau[known], np.ones(int(known.sum()))], axis=1), cluster)
    n = len(sums)
    if n < 2:
        return 0.0
    mean = float(sums[:, 0].sum() / sums[:, 1].sum())
    rest = sums[:, 0] - mean * sums[:, 1]
    error = np.sqrt(n / (n - 1) * float(rest @ rest)) / sums[:, 1].sum()
    clear = abs(mean) >= max(LEAST, float(stdtrit(n - 1, (1 + level) / 2)) * error)
    return mean if clear else 0.0
