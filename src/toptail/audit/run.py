"""The audit of pools: which pools and K count, what is measured, groups, warnings, the content."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from scipy.special import fdtrc, stdtrit

from toptail.audit.measure import Measured, measure
from toptail.audit.per_query import picked_values
from toptail.audit.settings import Rule, Settings
from toptail.errors import InputError, option
from toptail.io.json_files import jsonable
from toptail.judging.values import JudgedPools, Judgement
from toptail.pools import ScoredPools
from toptail.pools.columns import codes
from toptail.pools.scored import BLOCK, CANNOT_CHOOSE
from toptail.progress import Tick
from toptail.provenance import record_of
from toptail.stats import bootstrap_p, holm
from toptail.stats.best_of_k import Floats, KGrid, smallest_pool
from toptail.stats.rank import kendall_tau_b
from toptail.stats.resample import Estimate, cluster_sums

FORMAT = "toptail-audit-2"
LEAST: Final = 0.2
"""A mean tau_b with length nearer to 0 than this is not worth a warning."""
_MOST_QUERIES: Final = 2_000
"""Of more queries, so many in equal steps are compared with length."""
_WORTH_NAMING: Final = 1.25
"""A warning says that K could be so many times larger for half of the pools."""
_CONSTANT: Final = {"reason": f"It gives {CANNOT_CHOOSE}.", "queries_needed": None}
"""What the verdict of a constant score says: no number of queries would change it."""
_MOST_GROUPS = 50
_MOST_TESTED = 12
"""With more groups, pairs of groups are not tested."""


def pools_content(
    judged: JudgedPools, settings: Settings, *, command: str | None = None, tick: Tick | None = None
) -> dict[str, Any]:
    """The content of ``audit.json``: whether each scorer of the pools is safe to maximize.

    Plain lists, numbers and strings, with None for what is not computable. ``scorers`` has each
    scorer's curve, intervals, diagnostics and ``verdict``. ``judged`` is made by
    :func:`toptail.judging.values.judged_pools`; ``command`` is recorded, and ``tick`` is called
    with the progress.

    Examples
    --------
    >>> from toptail.judging.values import judged_pools
    >>> pools = ScoredPools.from_arrays({"good": [[1, 2], [3, 4]]}, [[0.0, 1.0], [0.0, 1.0]])
    >>> content = pools_content(judged_pools(pools), Settings(resamples=100))
    >>> content["scorers"]["good"]["value"]
    [0.5, 1.0]
    """
    settings.check_values(judged.pools.source, judged.values)
    alone = None if judged.cheap is None else pools_content(judged.cheap, settings)
    chosen = population(judged, settings)
    pools, values = chosen.judged.pools, chosen.judged.values
    grid = values.k_grid(KGrid.fine(chosen.k_max, _extra_k(pools, settings, chosen.k_max)))
    rng = np.random.default_rng(settings.seed)
    found = measure(pools, values, grid, settings, rng, tick)
    left_out = {"single": chosen.single, "small": chosen.small, "no_headroom": 0}
    if settings.unit == "query":
        left_out["no_headroom"] = found.no_headroom
    result = found.content | {
        "format": FORMAT,
        "kind": "pools",
        "k_grid": list(grid.deciding),
        "k_max": grid.k_max,
        "unit": settings.unit,
        "min_pool": chosen.min_pool,
        "left_out": left_out,
        "populations": chosen.compared,
        "headroom_spread": found.headroom_spread,
        "other_unit": found.other_unit,
        "value_range": settings.value_range,
        "skipped_columns": [{"name": name, "why": why} for name, why in pools.skipped.items()],
        "constant_scores": pools.constant_scorers,
        "value": judged.name,
        "binary": values.binary,
        "cluster_column": None if pools.cluster is None else pools.called.get("cluster", "cluster"),
        "replicates": judged.replicates,
        "single_candidate_pools": chosen.single,
        "notes": _notes(values, len(pools.values) > 1, settings.rule),
        "warnings": [
            *(*judged.notes, *chosen.warnings, *found.warnings),
            *shared_length(pools, values, settings.rule.level),
        ],
        "thresholds": {**vars(settings.rule), "resamples": settings.resamples},
        "record": record_of(pools, settings.seed, command or "toptail.audit(...)"),
    }
    if not values.exact or alone is not None:
        ranged = settings.value_range is not None
        result["judging"] = {
            **values.labels_content(pools),
            "how": values.how(ranged),
            "cheap": None if alone is None else _cheap_judge(alone, result["scorers"]),
        }
    result |= groups(pools, values, grid, settings, result["warnings"])
    clean: dict[str, Any] = jsonable(result)
    for part in (clean, *clean.get("groups", {}).values()):
        for name in clean["constant_scores"]:
            verdict = part["scorers"][name]["verdict"]
            if verdict["checks"]:
                verdict.update(_CONSTANT)
    return clean


def _cheap_judge(alone: dict[str, Any], scorers: dict[str, Any]) -> dict[str, Any]:
    """What the audit by the cheap judge alone claims of each scorer, and how far off that is."""
    beside = {}
    for name, entry in alone["scorers"].items():
        claimed, real = (np.asarray(x["deciles_within"], float) for x in (entry, scorers[name]))
        beside[name] = {
            "status": entry["verdict"]["status"],
            "gain": {end: entry["gain"][end][-1] for end in ("value", "low", "high")},
            "value": entry["value"],
            "too_high_by_decile": claimed - real,
        }
    return {"name": alone["value"], "scorers": beside}


def _extra_k(pools: ScoredPools, settings: Settings, k_max: int) -> list[int]:
    more = sorted(int(count) for count in settings.k or ())
    if more and more[-1] > k_max:
        at = int(np.flatnonzero(pools.sizes < more[-1])[0])
        raise InputError(
            f"{pools.source}: K = {more[-1]} is larger than the pool of query "
            f"'{pools.query[at]}', which has {int(pools.sizes[at])} candidates; "
            f"the largest K that every pool allows is {k_max}."
        )
    return more


def _notes(judged: Judgement, several: bool, rule: Rule) -> list[str]:
    """How to read the headroom where the judge is noisy, or may be."""
    margins = f"The margins δ = {rule.delta:g} and ρ = {rule.rho:g} are shares of the"
    if judged.replicates is not None:
        return [
            "The oracle is chosen on one half of the replicates and valued on the other, both "
            f"ways round: it errs downward, never upward. {margins} headroom corrected in this way."
        ]
    if not several:
        return []
    return [
        "If the judged value is itself noisy, a single judge biases the oracle upward (it is "
        "credited with lucky noise), and the captured share downward; judge candidates at "
        f"least twice and name the columns with --replicates to remove this. {margins} judged "
        "headroom."
    ]


@dataclass(frozen=True, eq=False)
class Population:
    """The pools of an audit: those that are large enough."""

    judged: JudgedPools
    min_pool: int
    """The smallest size that is audited."""
    single: int
    """How many pools of one candidate are left out."""
    small: int
    """How many other pools are left out."""
    compared: dict[str, Any] | None
    """Scorers on the audited pools and on all, where pools are left out for their size."""
    warnings: list[str]
    """Sentences about pools that are left out."""

    @property
    def k_max(self) -> int:
        """The largest K that every pool allows."""
        return int(self.judged.pools.sizes.min())


def population(judged: JudgedPools, settings: Settings) -> Population:
    """Leave out pools of one candidate, and small pools that would cap K for all."""
    pools, warnings = judged.pools, []
    sizes = pools.sizes
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
    least = smallest_pool(sizes[~single], settings.min_pool)
    if settings.min_pool is None and settings.pools_per_query > 1:
        least = int(sizes.min())  # the pools of a query stay together
    if (sizes < least).all():
        raise InputError(
            f"{pools.source}: {option('min_pool', least)} leaves no pool; the largest has "
            f"{int(sizes.max())} candidates."
        )
    several, kept = judged.select(~single), judged.select(sizes >= least)
    small, compared = several.pools.queries - kept.pools.queries, None
    smallest = int(kept.pools.sizes.min())
    larger = int(np.quantile(kept.pools.sizes, 0.5, method="higher"))
    if small:
        warnings.append(
            f"{small:,} of {pools.queries:,} pools have fewer than {least} candidates and are left "
            f"out, so that K can go up to {smallest}."
        )
        common = int(several.pools.sizes.min())
        if judged.values.exact:  # a plan asks nothing of pools that are left out
            both = (("audited", kept), ("all", several))
            compared = {name: _described(part, common) for name, part in both}
    if larger >= _WORTH_NAMING * smallest:
        warnings.append(
            f"K stops at {smallest}, the size of the smallest pool, and half of the pools have "
            f"{larger} candidates or more: --min-pool {larger} (in Python min_pool={larger}) "
            f"searches up to {larger}, in the {int((sizes >= larger).sum()):,} of "
            f"{pools.queries:,} pools that have as many."
        )
    return Population(kept, least, alone, small, compared, warnings)


def _described(judged: JudgedPools, k: int) -> dict[str, Any]:
    """The size of a population, and the value of each scorer's pick of K in it."""
    pools = judged.pools
    scorers = {
        name: float(picked_values(pools, judged.values, list(members.values()), k).mean())
        for name, members in pools.scorers.items()
    }
    smallest = int(pools.sizes.min())
    return {"queries": pools.queries, "smallest_pool": smallest, "k": k, "value": scorers}


def groups(
    pools: ScoredPools, judged: Judgement, grid: KGrid, settings: Settings, warnings: list[str]
) -> dict[str, Any]:
    """The groups' parts of ``audit.json``; empty without groups.

    Every group is resampled on its own, so that the draws of two groups are independent.
    """
    if pools.group is None:
        return {}
    code, labels = codes(pools.source, "group", pools.group)
    if len(labels) > _MOST_GROUPS:
        warnings.append(
            f"The group column has {len(labels)} different labels; groups are reported for at most "
            f"{_MOST_GROUPS}."
        )
        return {}
    parts: dict[str, Measured] = {}
    for at, label in enumerate(labels.to_pylist()):
        member = code == at
        values = judged.of_queries(member, pools.sizes)
        rng = np.random.default_rng([settings.seed, at])
        part = pools.select(member)
        parts[str(label)] = measure(part, values, values.k_grid(grid), settings, rng)
        parts[str(label)].content.pop("comparisons")
    if len(parts) > _MOST_TESTED:
        warnings.append(
            f"The {len(parts)} groups are tested together, not in pairs: pairs are compared for at "
            f"most {_MOST_TESTED} groups."
        )
    return {
        "groups": {label: part.content for label, part in parts.items()},
        "group_column": pools.called.get("group", "group"),
        "group_tests": _pairs(parts, settings) if len(parts) <= _MOST_TESTED else [],
        "group_heterogeneity": {
            name: _heterogeneity(
                [(part.gains[name], part.content["clusters"]) for part in parts.values()]
            )
            for name in pools.scorers
        },
    }


def _pairs(parts: dict[str, Measured], settings: Settings) -> list[dict[str, Any]]:
    """Differences of the gain at k_max between every two groups, with Holm's correction."""
    rows: list[dict[str, Any]] = []
    for name in next(iter(parts.values())).gains:
        found: list[dict[str, Any]] = []
        for a, b in combinations(parts, 2):
            difference = parts[a].gains[name] - parts[b].gains[name]
            low, high = difference.interval(settings.rule.level)
            found.append(
                {"scorer": name, "groups": [a, b], "difference": difference.point}
                | {"low": low, "high": high, "p": float(bootstrap_p(difference.draws))}
            )
        for row, adjusted in zip(found, holm([row["p"] for row in found]), strict=True):
            row["p_holm"] = adjusted
        rows += found
    return rows


def _heterogeneity(gains: list[tuple[Estimate, int]]) -> float | None:
    """P-value of Welch's test that all groups have the same gain; None where no group varies."""
    usable = [(gain, n) for gain, n in gains if n > 1 and np.isfinite(gain.draws).all()]
    if len(usable) < 2:
        return None
    mean = np.array([float(gain.point) for gain, _ in usable])
    n = np.array([clusters for _, clusters in usable], dtype=np.float64)
    # Weighted sums vary by 1/(n + 1) of the spread, an unbiased variance by 1/(n - 1).
    variance = np.array([gain.draws.var() for gain, _ in usable]) * (n + 1) / (n - 1)
    if not (variance > 0).any():
        return None
    weight = 1.0 / np.maximum(variance, 1e-9 * variance.max())  # a gain that does not vary is known
    share, groups = weight / weight.sum(), len(usable)
    among = float((weight * (mean - (share * mean).sum()) ** 2).sum()) / (groups - 1)
    lack = float(((1.0 - share) ** 2 / (n - 1)).sum())
    ratio = among / (1.0 + 2.0 * (groups - 2) / (groups**2 - 1) * lack)
    return float(fdtrc(groups - 1, (groups**2 - 1) / (3.0 * lack), ratio))


def shared_length(pools: ScoredPools, judged: Judgement, level: float) -> list[str]:
    """A warning for each length that scorers and the value clearly follow in one direction."""
    if not pools.lengths or not judged.exact:
        return []
    keep = np.zeros(pools.queries, dtype=bool)
    keep[np.linspace(0, pools.queries - 1, _MOST_QUERIES).astype(np.int64)] = True
    value, some = judged.value[np.repeat(keep, pools.sizes)], pools.select(keep)
    warnings = []
    for name, length in some.lengths.items():
        of_value = _length_tau(some, length, [value], level)
        found = {
            scorer: tau
            for scorer, members in some.scorers.items()
            if (tau := _length_tau(some, length, [some.scores[c] for c in members.values()], level))
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


def _length_tau(pools: ScoredPools, length: Floats, columns: list[Floats], level: float) -> float:
    """Mean tau_b between length and the columns within queries; 0 unless clearly not small."""
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
