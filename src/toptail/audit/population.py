"""Which pools are audited: those that are large enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.audit.per_query import values_at
from toptail.audit.settings import Settings
from toptail.errors import InputError, option
from toptail.judging.values import Judgement
from toptail.pools import ScoredPools
from toptail.stats.k_grid import smallest_pool


@dataclass(frozen=True, eq=False)
class Population:
    """The pools of an audit."""

    pools: ScoredPools
    judged: Judgement
    min_pool: int
    """The smallest size that is audited."""
    single: int
    """How many pools of one candidate are left out."""
    small: int
    """How many other pools are left out."""
    compared: dict[str, Any] | None
    """Scorers on the audited pools and on all, where pools are left out for their size."""
    warnings: list[str]
    """What is left out, in words."""

    @property
    def k_max(self) -> int:
        """The largest K that every pool allows."""
        return int(self.pools.sizes.min())


def population(pools: ScoredPools, judged: Judgement, settings: Settings) -> Population:
    """Leave out pools of one candidate, and small pools that would cap K for all."""
    sizes, warnings = pools.sizes, []
    single = sizes == 1
    alone = int(single.sum())
    if single.all():
        raise InputError(
            f"{pools.source}: every pool has one candidate, so there is nothing to select from."
        )
    if alone and settings.pools_per_query > 1:
        raise InputError(
            f"{pools.source}: {alone:,} pools have one candidate: with several "
            "pools per query every pool needs at least two."
        )
    if alone:
        warnings.append(
            f"{alone:,} of {pools.queries:,} pools have one candidate; "
            "they cannot be searched and are left out."
        )
    least = _least(sizes[~single], settings)
    if (sizes < least).all():
        raise InputError(
            f"{pools.source}: {option('min_pool', least)} leaves no pool; the largest has "
            f"{int(sizes.max())} candidates."
        )
    several, kept = _select(pools, judged, ~single), _select(pools, judged, sizes >= least)
    small = int((several[0].sizes < least).sum())
    compared = None
    if small:
        warnings.append(
            f"{small:,} of {pools.queries:,} pools have fewer than {least} candidates and are left "
            f"out, so that K can go up to {int(kept[0].sizes.min())}."
        )
        common = int(several[0].sizes.min())
        if judged.exact:  # a plan asks nothing of pools that are left out
            both = (("audited", kept), ("all", several))
            compared = {name: _described(*part, common) for name, part in both}
    smallest, middle = int(kept[0].sizes.min()), float(np.median(kept[0].sizes))
    if smallest < middle / 2:
        warnings.append(
            f"K stops at {smallest}, the smallest pool, and half of the pools have {middle:g} "
            f"candidates or more; leave out the small ones (--min-pool {middle:.0f}, in Python "
            f"min_pool={middle:.0f}) to search further."
        )
    return Population(*kept, least, alone, small, compared, warnings)


def _least(sizes: NDArray[np.int64], settings: Settings) -> int:
    if settings.min_pool is None and settings.pools_per_query > 1:
        return int(sizes.min())  # the pools of a query stay together
    return smallest_pool(sizes, settings.min_pool)


def _select(
    pools: ScoredPools, judged: Judgement, keep: NDArray[np.bool_]
) -> tuple[ScoredPools, Judgement]:
    if keep.all():
        return pools, judged
    return pools.select(keep), judged.of_queries(keep, pools.sizes)


def _described(pools: ScoredPools, judged: Judgement, k: int) -> dict[str, Any]:
    """The size of a population, and the value of each scorer's pick of K in it."""
    scorers = {
        name: float(values_at(pools, judged, list(members.values()), k).mean())
        for name, members in pools.scorers.items()
    }
    sizes = pools.sizes
    return {"queries": pools.queries, "smallest_pool": int(sizes.min()), "k": k, "value": scorers}
