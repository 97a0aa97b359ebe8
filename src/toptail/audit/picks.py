"""The audit of picks: paired differences between selectors whose picks were judged."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from toptail.audit.run import FORMAT
from toptail.audit.settings import Rule, Settings
from toptail.errors import InputError, check_share, check_whole
from toptail.io.json_files import jsonable
from toptail.judging.values import judgement
from toptail.pools import JudgedPicks
from toptail.pools.columns import codes
from toptail.provenance import record_of
from toptail.stats import bootstrap_p, holm
from toptail.stats.best_of_k import Floats
from toptail.stats.resample import Sample


def picks_content(
    picks: JudgedPicks,
    *,
    seed: int = Settings.seed,
    resamples: int = Settings.resamples,
    level: float = Rule.level,
    power: float = 0.8,
    baseline: str | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """The content of ``audit.json`` for picks: how those of each selector turned out.

    Where a design chose some picks for judging, means are weighted by its chances and right on
    average. Replicates are averaged inside a query first; a difference between two selectors is
    the mean over the queries that judged both, resampled by whole queries (or clusters).
    ``detectable`` is the smallest true difference that such data would tell from zero
    with probability ``power``: (z_{(1+level)/2} + z_power) standard errors.
    ``variance_ratio`` is the variance of a difference of independent repetitions over that of
    repetitions paired by common random numbers.

    Plain lists, numbers and strings, with None for what is not computable.
    """
    check_whole("seed", seed, 0)
    check_whole("resamples", resamples, 1)
    check_share("level", level)
    check_share("power", power)
    names = [str(name) for name in picks.selector.to_pylist()]
    if len(names) < 2:
        raise InputError(
            f"{picks.source}: only the selector '{names[0]}' appears; a comparison needs two."
        )
    if baseline is None and "random" in names:
        baseline = "random"
    if baseline is not None and baseline not in names:
        raise InputError(
            f"{picks.source}: there is no selector '{baseline}'; they are {', '.join(names)}."
        )
    if baseline is not None:  # differences read as "gain over the baseline"
        names = [name for name in names if name != baseline] + [baseline]

    def measured(part: JudgedPicks) -> dict[str, Any]:
        return _measured(part, names, seed, resamples, level, power)

    whole = measured(picks)
    _adjust(whole["comparisons"])
    result: dict[str, Any] = {
        "format": FORMAT,
        "kind": "picks",
        **whole,
        "baseline": baseline,
        "notes": _notes(picks),
        "warnings": _warnings(picks),
        "thresholds": {"level": level, "resamples": resamples, "power": power},
        "record": record_of(picks, seed, command or "toptail.audit_picks(...)"),
    }
    if picks.group is not None:
        code, labels = codes(picks.source, "group", picks.group)
        groups = {
            str(label): measured(picks.select(code == at))
            for at, label in enumerate(labels.to_pylist())
        }
        _adjust([row for group in groups.values() for row in group["comparisons"]])
        result |= {"groups": groups, "group_column": picks.called.get("group", "group")}
    clean: dict[str, Any] = jsonable(result)
    return clean


def _adjust(rows: list[dict[str, Any]]) -> None:
    """Add p-values that are corrected for all comparisons of one table."""
    for row, adjusted in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = adjusted


def _measured(
    picks: JudgedPicks, names: list[str], seed: int, resamples: int, level: float, power: float
) -> dict[str, Any]:
    """Each selector's mean, and the difference of every two."""
    at = {str(name): code for code, name in enumerate(picks.selector.to_pylist())}
    judged, means = _means(picks, seed)
    counts = _counts(picks)
    sample = _sample(picks, means, [at[name] for name in names])
    sample.resample(np.random.default_rng(seed), resamples)
    spread = _replicate_spread(picks, judged)
    rows = [
        _difference(sample, means, at[a], at[b], level, power, spread) | {"a": a, "b": b}
        for a, b in combinations(names, 2)
    ]
    selectors = {}
    for name in names:
        mean = sample.mean_defined(f"{at[name]}")
        low, high = mean.interval(level)
        judged_times = counts[:, at[name]]
        selectors[name] = {
            "mean": mean.point[0],
            "low": low[0],
            "high": high[0],
            "queries": int((judged_times > 0).sum()),
            "replicates": float(judged_times.sum() / (judged_times > 0).sum())
            if judged_times.any()
            else None,
        }
    return {
        "queries": len(picks.query),
        "clusters": sample.clusters,
        "selectors": selectors,
        "comparisons": rows,
    }


def _means(picks: JudgedPicks, seed: int) -> tuple[Floats, Floats]:
    """Mean judged value of each pick, and its pseudo-value, each ``[queries, selectors]``.

    The two are equal where every pick was judged. Pseudo-values are those of the table that
    :meth:`JudgedPicks.as_pools` makes of the picks. NaN where there is no pick.
    """
    pools = picks.as_pools()
    judged, _ = judgement(pools, "value", seed=seed)
    query = np.repeat(np.arange(pools.queries), pools.sizes)
    selector = np.argmax(list(pools.scores.values()), axis=0)
    result = np.full((2, len(picks.query), len(picks.selector)), np.nan)
    result[:, query, selector] = pools.values["value"], judged.value
    return result[0], result[1]


def _counts(picks: JudgedPicks) -> Floats:
    shape = len(picks.query), len(picks.selector)
    cell = picks.query_at * shape[1] + picks.selector_at
    known = (~np.isnan(picks.value)).astype(np.float64)
    return np.asarray(np.bincount(cell, known, shape[0] * shape[1]).reshape(shape), np.float64)


def _sample(picks: JudgedPicks, means: Floats, selectors: list[int]) -> Sample:
    cluster = None if picks.cluster is None else codes(picks.source, "cluster", picks.cluster)[0]
    sample = Sample(len(picks.query), cluster)
    for a in selectors:
        sample.add_defined(f"{a}", means[:, a])
    for a, b in combinations(selectors, 2):
        sample.add_defined(f"{a}-{b}", means[:, a] - means[:, b])
    return sample


def _difference(
    sample: Sample, means: Floats, a: int, b: int, level: float, power: float, spread: Floats | None
) -> dict[str, Any]:
    difference = sample.mean_defined(f"{a}-{b}")
    low, high = difference.interval(level)
    small_sample = sample.clusters / max(sample.clusters - 1, 1)
    se = difference.draws.std() * np.sqrt(small_sample)
    return {
        "difference": difference.point[0],
        "low": low[0],
        "high": high[0],
        "half_width": (high[0] - low[0]) / 2,
        "detectable": (ndtri((1 + level) / 2) + ndtri(power)) * se,
        "variance_ratio": None if spread is None else _variance_ratio(spread[:, a], spread[:, b]),
        "queries": int((~np.isnan(means[:, a] - means[:, b])).sum()),
        "p": float(bootstrap_p(difference.draws)[0]),
    }


def _replicate_spread(picks: JudgedPicks, means: Floats) -> Floats | None:
    """Values less their (query, selector) mean, as ``[query x replicate, selectors]``."""
    replicate_at, labels = codes(picks.source, "replicate", picks.replicate)
    if len(labels) < 2:
        return None
    slot = picks.query_at * len(labels) + replicate_at
    spread = np.full((len(picks.query) * len(labels), len(picks.selector)), np.nan)
    spread[slot, picks.selector_at] = picks.value - means[picks.query_at, picks.selector_at]
    return spread


def _variance_ratio(a: Floats, b: Floats) -> float | None:
    both = ~np.isnan(a - b)
    paired = float(((a - b)[both] ** 2).sum())
    apart = float((a[both] ** 2 + b[both] ** 2).sum())
    return apart / paired if paired > 0 else None


def _notes(picks: JudgedPicks) -> list[str]:
    notes = [
        "Only the picks were judged: nothing is known about the candidates that no "
        "selector picked, so there is no oracle and no captured share."
    ]
    unknown = int(np.isnan(picks.value).sum())
    if unknown:
        notes.append(
            f"{picks.value.size - unknown:,} of {picks.value.size:,} picks were judged: means are "
            "weighted by the chances of the design, and right on average."
        )
    return notes


def _warnings(picks: JudgedPicks) -> list[str]:
    warnings = []
    there = np.zeros((len(picks.query), len(picks.selector)), dtype=bool)
    there[picks.query_at, picks.selector_at] = True
    missing = int((~there).any(axis=1).sum())
    if missing:
        warnings.append(
            f"{missing:,} of {len(picks.query):,} queries were not judged for every selector; "
            "each difference uses the queries that judged both."
        )
    if picks.key is not None and not _keys_agree(picks):
        warnings.append(
            "The common-random-number key differs between selectors of one (query, replicate): "
            "their repetitions did not see the same randomness and are not paired."
        )
    return warnings


def _keys_agree(picks: JudgedPicks) -> bool:
    key_at, _ = codes(picks.source, "key", picks.key)
    replicate_at, labels = codes(picks.source, "replicate", picks.replicate)
    slot = picks.query_at * len(labels) + replicate_at
    first = np.full(slot.max() + 1, -1, dtype=np.int64)
    first[slot[::-1]] = key_at[::-1]
    return bool((first[slot] == key_at).all())
