"""Decisions about the best-of-K curves, the landscape and the theory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toptail.lab.paper.controlled_cells import (
    CONTRASTIVE,
    CRITICS,
    NEAR_ZERO,
    clearly_below,
    lowest,
    percent,
    seeds_with,
)
from toptail.lab.paper.ledger import (
    Finding,
    Measured,
    NotMeasuredError,
    Tables,
    from_parts,
    from_seeds,
)


def curve(tables: Tables, critic: str, metric: str) -> dict[str, list[float]]:
    """One critic's curve over K, by seed."""
    try:
        seeds: dict[str, list[float]] = tables["curves"]["critics"][critic][metric]["seeds"]
    except KeyError as missing:
        raise NotMeasuredError(f"curves: {critic}/{metric}") from missing
    if any(value is None for values in seeds.values() for value in values):
        raise NotMeasuredError(f"curves: {critic}/{metric} has gaps")
    return seeds


def _over_seeds(
    tables: Tables, critic: str, metric: str, of: Callable[[list[float]], float]
) -> Measured:
    return from_seeds({seed: of(values) for seed, values in curve(tables, critic, metric).items()})


def _last(tables: Tables) -> int:
    return int(tables["curves"]["k"][-1])


def score_rises(tables: Tables) -> Finding:
    """The selected score rises with every doubling of K, for every contrastive critic and seed."""
    steps = {
        c: _over_seeds(tables, c, "selected_score", lambda v: float(np.diff(v).min()))
        for c in CONTRASTIVE
    }
    name, step = lowest(steps)
    return from_parts(
        {c: min(m.seeds.values()) > 0.0 for c, m in steps.items()},
        step.mean,
        step.interval(),
        "This holds by arithmetic: the largest of more scores is never smaller. The number is the "
        f"smallest rise over one doubling of K, {name}'s, in its own score units.",
    )


def value_falls(tables: Tables) -> Finding:
    """The pick at the largest K is worth less than a random candidate."""
    falls = {c: _over_seeds(tables, c, "value", lambda v: v[-1] - v[0]) for c in CONTRASTIVE}
    name = max(falls, key=lambda c: falls[c].mean)
    text = "; ".join(
        f"{c} {m.mean:+.3f} ({sum(v < 0 for v in m.seeds.values())} of {len(m.seeds)} seeds)"
        for c, m in falls.items()
    )
    return from_parts(
        {c: clearly_below(m, 0.0) for c, m in falls.items()},
        falls[name].mean,
        falls[name].interval(),
        f"Criterion: the value at K = {_last(tables)} is below that of a random candidate (K = 1), "
        f"with the 95 % interval over seeds below zero. Change from K = 1: {text}. The number is "
        f"{name}'s, the least clear.",
    )


def tdq_near_oracle(tables: Tables) -> Finding:
    """TD-Q is within reach of the oracle at every K; at the largest K no other critic is."""
    worst = _over_seeds(tables, "tdq", "regret", max)
    ends = {c: _over_seeds(tables, c, "regret", lambda v: v[-1]) for c in CONTRASTIVE}
    parts = {"TD-Q": worst.mean <= NEAR_ZERO}
    parts |= {c: m.mean > NEAR_ZERO for c, m in ends.items()}
    return from_parts(
        parts,
        worst.mean,
        worst.interval(),
        f"Criterion: TD-Q's regret at most {NEAR_ZERO} at every K, every other critic's above it "
        f"at K = {_last(tables)}. The number is TD-Q's largest regret over K.",
    )


def _norm_ratio(tables: Tables, critic: str) -> Measured:
    return _over_seeds(tables, critic, "phi_norm", lambda v: v[-1] / v[0])


MATERIAL = 0.05
"""A norm that changes by less than this share neither falls nor drifts."""


def raw_norm_stays_high(tables: Tables) -> Finding:
    """The norm of raw's pick does not fall as K grows."""
    ratio = _norm_ratio(tables, "raw")
    reference = tables["curves"].get("phi_norm_in_support", {}).get("raw")
    beside = (
        ""
        if reference is None
        else f" In-support candidates have mean {reference['mean']:.2f} and 99th percentile "
        f"{reference['p99']:.2f}; the picks have mean "
        f"{_over_seeds(tables, 'raw', 'phi_norm', lambda v: v[-1]).mean:.2f}."
    )
    return from_parts(
        {
            f"a norm within {MATERIAL:.0%} of a random candidate's": ratio.mean >= 1 - MATERIAL,
            "a norm not below a random candidate's": ratio.mean >= 1.0,
        },
        ratio.mean,
        ratio.interval(),
        f"The number is the embedding norm of the pick at K = {_last(tables)} relative to that of "
        f"a random candidate; it is at least one in {seeds_with(ratio, lambda v: v >= 1.0)}."
        f"{beside}",
    )


def other_norms_fall(tables: Tables) -> Finding:
    """The norms of the picks of cosine, hybrid and TD-Q fall as K grows."""
    ratios = {c: _norm_ratio(tables, c) for c in ("tdq", "cosine", "hybrid")}
    name = max(ratios, key=lambda c: ratios[c].mean)
    text = ", ".join(f"{c} {m.mean:.3f}" for c, m in ratios.items())
    falls = {c: clearly_below(m, 1.0) and m.mean <= 1 - MATERIAL for c, m in ratios.items()}
    return from_parts(
        falls,
        ratios[name].mean,
        ratios[name].interval(),
        f"Criterion: the norm at K = {_last(tables)} is at least {MATERIAL:.0%} below that at "
        f"K = 1, with the 95 % interval of the ratio over seeds below one. Ratios: {text}. TD-Q "
        "has no phi; its last hidden layer stands in for it.",
    )


def search_finds_them(tables: Tables) -> Finding:
    """Picks are off support more often at the largest K than at random."""
    gains = {c: _over_seeds(tables, c, "off_support", lambda v: v[-1] - v[0]) for c in CONTRASTIVE}
    base = _over_seeds(tables, "raw", "off_support", lambda v: v[0]).mean
    name, gain = lowest(gains)
    text = ", ".join(f"{c} {percent(base + m.mean)}" for c, m in gains.items())
    return from_parts(
        {c: m.mean > 0.0 for c, m in gains.items()},
        gain.mean,
        gain.interval(),
        f"Criterion: the off-support rate at K = {_last(tables)} is above the {percent(base)} of a "
        f"random candidate. At the largest K: {text}. The number is the smallest change, {name}'s.",
    )


def mixed_pools(tables: Tables) -> Finding:
    """The pools hold candidates on and off the support."""
    base = _over_seeds(tables, "raw", "off_support", lambda v: v[0])
    return from_parts(
        {"both sides": 0.05 <= base.mean <= 0.95},
        base.mean,
        base.interval(),
        "Criterion: between 5 % and 95 % of all candidates are off support. The proposal puts "
        "exp(−1/(2·1.2²)) = 71 % of its mass there: most candidates are off support before any "
        "critic chooses.",
    )


def representative_run(tables: Tables) -> Finding:
    """In the drawn run TD-Q picks inside the disk and the three others outside."""
    try:
        landscape = tables["landscape"]
        norms: dict[str, float] = landscape["pick_norm"]
        radius = float(landscape["radius"])
        inside = {c: norms[c] <= radius for c in CRITICS}
    except KeyError as missing:
        raise NotMeasuredError("landscape") from missing
    text = ", ".join(f"{c} {norms[c]:.2f}" for c in CRITICS)
    return from_parts(
        {"TD-Q inside": inside["tdq"], **{f"{c} outside": not inside[c] for c in CONTRASTIVE}},
        float(sum(not inside[c] for c in CONTRASTIVE)),
        None,
        f"One run and one query: the first seed and the first query. Norms"
        f" of the picks: {text}; R = {radius:g}. The number counts contrastive picks outside.",
    )


def theory(name: str) -> Callable[[Tables], Finding]:
    """Return the decision that reads one theory check by its name."""

    def read(tables: Tables) -> Finding:
        checks: list[dict[str, Any]] = list(tables.get("theory", {}).get("checks", ()))
        for check in checks:
            if check["claim"] == name:
                status = "seen" if check["holds"] else "not seen"
                comment = f"{check['statement']} Compared with {check['bound']:.6g}."
                return Finding(status, check["measured"], None, comment)  # type: ignore[arg-type]
        raise NotMeasuredError(f"theory: {name}")

    return read
