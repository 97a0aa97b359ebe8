"""Two tables against each other: is a scorer's pick worth less than it was in an older table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from toptail.audit.paired import Shared, Side
from toptail.audit.record import jsonable
from toptail.audit.settings import Settings
from toptail.audit.standing import Baseline, Terms, compared
from toptail.errors import InputError, check_share, option
from toptail.pools import ScoredPools
from toptail.pools.scored import named, queries

MARGIN: Final = 0.02
"""A loss of at most this share of the old headroom counts as no loss, unless told otherwise."""
_SCALES: Final = 5.0
"""Values whose ranges differ by more than this factor are pointed out."""


def baseline_content(
    new: ScoredPools,
    old: ScoredPools,
    settings: Settings,
    *,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    scores: Mapping[str, str] | None = None,
    margin: float = MARGIN,
) -> tuple[dict[str, Any], list[str]]:
    """The part ``baseline`` of ``audit.json``: each scorer of ``new`` against that of ``old``.

    At the queries of the same label in both tables, V(K) of the new one less V(K) of the old one,
    in units of the old table's headroom at that K: the largest that both pools of each query allow,
    small pools apart (:meth:`toptail.audit.paired.Shared.of`). Each end is one-sided:

    - ``better``: the lower end is above 0;
    - ``not worse``: it is above ``-margin``;
    - ``worse``: the upper end is below ``-margin``;
    - ``inconclusive``: a loss beyond the margin is neither ruled out nor established.

    ``scores`` maps the name of a scorer in the old table to its name in the new one, by default
    each name that both have to itself. ``values`` and ``replicates`` hold for both tables. Returns
    warnings, too.
    """
    check_share("margin", margin)
    names = _scorers(new, old, scores)
    newer, older = (Side.of(pools, settings, values, replicates) for pools in (new, old))
    shared = Shared.of(newer, older, settings.min_pool)
    pairs = shared.pairs(names, settings)
    at = Terms(shared.k, len(shared.new_at), len(pairs.headroom), margin)
    if at.clusters < 2:
        raise InputError(
            f"{new.source}: the queries that {old.source} has too lie in one cluster; a comparison "
            "needs at least two."
        )
    rng = np.random.default_rng(settings.seed)
    ends = pairs.ends(rng, settings.resamples, settings.rule.tail)
    baseline = Baseline(
        source=old.source,
        sha256=old.sha256,
        shared_queries=at.queries,
        left_out=shared.labels - at.queries,
        only_new=new.queries - shared.labels,
        only_old=old.queries - shared.labels,
        clusters=at.clusters,
        margin=margin,
        scorers={
            name: compared(end, names[name], at) for name, end in zip(names, ends, strict=True)
        },
    )
    alone = [name for name in new.scorers if name not in names]
    return jsonable(baseline), _warnings(shared, alone)


def _scorers(
    new: ScoredPools, old: ScoredPools, scores: Mapping[str, str] | None
) -> dict[str, str]:
    """Scorer of the new table -> its name in the old one."""
    if scores is None:
        names = {name: name for name in new.scorers if name in old.scorers}
        if names:
            return names
        raise InputError(
            f"{new.source} and {old.source} have no scorer in common ({named(new.scorers)}; "
            f"{named(old.scorers)}); say which is which with {option('baseline_scores')}."
        )
    for pools, wanted in ((old, scores.keys()), (new, scores.values())):
        for name in wanted:
            if name not in pools.scorers:
                raise InputError(
                    f"{pools.source}: there is no scorer '{name}', which "
                    f"{option('baseline_scores')} names; they are {', '.join(pools.scorers)}."
                )
    if len(set(scores.values())) < len(scores):
        raise InputError(f"{option('baseline_scores')} names a scorer of the new table twice.")
    return {name: older for older, name in scores.items()}


def _warnings(shared: Shared, alone: list[str]) -> list[str]:
    """What to look at before trusting the comparison; ``alone`` are scorers without an older."""
    new, old, warnings = shared.new, shared.old, []
    if new.value != old.value:
        warnings.append(
            f"The new table is judged by '{new.value}' and the old one by '{old.value}': the "
            "difference is one of judges, too."
        )
    ends = [(side.judged.value.min(), side.judged.value.max()) for side in (new, old)]
    widths = sorted(high - low for low, high in ends)
    apart = max(low for low, _ in ends) > min(high for _, high in ends)
    if apart or widths[1] > _SCALES * widths[0]:
        (a, b), (c, d) = ends
        warnings.append(
            f"Values lie in {a:.3g} to {b:.3g} in the new table and in {c:.3g} to {d:.3g} in the "
            "old one: are they on one scale?"
        )
    small = shared.labels - len(shared.new_at)
    if small:
        warnings.append(
            f"{small:,} of {queries(shared.labels)} in both tables have fewer than {shared.k} "
            "candidates in one of them and are left out of the comparison."
        )
    if alone:
        warnings.append(f"Not compared with the old table: {named(alone)}.")
    return warnings
