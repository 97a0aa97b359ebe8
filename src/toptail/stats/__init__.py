"""Arithmetic: arrays in, arrays out. No labels, no files, no plots."""

from toptail.stats.best_of_k import (
    best_of_k,
    divergence_bound,
    normalized_regret,
    oracle,
    selection_weights,
    split_oracle,
)
from toptail.stats.ends import Shares, Unseen, extreme_weights, rare_share, shares, unseen_cluster
from toptail.stats.rank import (
    auc,
    decile_gap,
    decile_means,
    kendall_tau_b,
    paired_win_rate,
    recall_at_k,
    row_auc,
    spearman,
)
from toptail.stats.resample import (
    Band,
    bootstrap_p,
    bootstrap_sums,
    cluster_sums,
    holm,
    max_t_band,
    percentile_interval,
    weighted_sums,
    wilson,
)

__all__ = [
    "Band",
    "Shares",
    "Unseen",
    "auc",
    "best_of_k",
    "bootstrap_p",
    "bootstrap_sums",
    "cluster_sums",
    "decile_gap",
    "decile_means",
    "divergence_bound",
    "extreme_weights",
    "holm",
    "kendall_tau_b",
    "max_t_band",
    "normalized_regret",
    "oracle",
    "paired_win_rate",
    "percentile_interval",
    "rare_share",
    "recall_at_k",
    "row_auc",
    "selection_weights",
    "shares",
    "spearman",
    "split_oracle",
    "unseen_cluster",
    "weighted_sums",
    "wilson",
]
