"""The verdict: whether search hurts, and up to which K it helps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypedDict, get_args

import numpy as np

from toptail.audit.settings import Rule
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.resample import critical_value, standardized

Status = Literal["safe", "no gain", "unsafe", "inconclusive"]
STATUSES: tuple[Status, ...] = get_args(Status)
CheckStatus = Literal["pass", "fail", "undecided"]


class Check(TypedDict):
    """One of the questions that decided a status, with its numbers in units of the headroom."""

    name: str
    question: str
    k: list[int]
    value: float
    low: float | None
    high: float | None
    threshold: float
    status: CheckStatus
    advice: str


@dataclass(frozen=True)
class Verdict:
    """Whether maximizing a scorer helps or hurts, and up to which K."""

    status: Status
    """``safe``, ``no gain``, ``unsafe`` or ``inconclusive``."""
    k_best: int | None
    """The curve's highest point."""
    k_safe_max: int | None
    """The largest K up to which ``safe`` holds on its own; None where there is none."""
    k_harm: int | None
    """The first K of an established fall; None where no fall is established."""
    queries_needed: int | None
    """About how many queries would decide an ``inconclusive`` one; None where unknown."""
    reason: str
    """The status in a sentence, with the numbers that decided it."""
    checks: list[Check] = field(repr=False, hash=False)
    """The questions behind the status."""


@dataclass(frozen=True, eq=False)
class Steps:
    """All steps K1 < K2 of one curve, in units of the headroom, with their common band."""

    first: Ints
    """Position of K1 in the list of K ``[steps]``."""
    second: Ints
    """Position of K2."""
    change: Floats
    """V(K2) - V(K1)."""
    low: Floats
    """Lower ends of the simultaneous band."""
    high: Floats
    """Upper ends."""

    @property
    def gain(self) -> int:
        """Which step goes from the smallest K to the largest."""
        return int(np.flatnonzero((self.first == 0) & (self.second == self.second.max()))[0])


def judge(
    k: list[int],
    value: Floats,
    draws: Floats,
    headroom: Floats,
    *,
    clusters: int,
    queries: int,
    scale: float,
    rule: Rule,
) -> Verdict:
    """Verdict of one scorer's best-of-K curve.

    All differences V(K2) - V(K1), K1 < K2, paired over queries, in units of the headroom
    at the largest K, under one simultaneous max-t band:

    - ``unsafe``: some upper end lies below -delta: a harmful step is established;
    - otherwise ``inconclusive`` if some lower end lies below -rho: a harm above rho
      cannot be ruled out;
    - otherwise ``safe`` if the lower end of the change from 1 to the largest K is above 0;
    - otherwise ``no gain``.

    Without headroom, with fewer than two clusters, or where anything is not finite:
    ``inconclusive``. Not computable is never safe.

    ``k`` are the measured K, ascending, starting with 1; ``value [n_k]`` is V(K), with resamples
    ``draws [resamples, n_k]`` of the clusters, and ``headroom [n_k]`` is oracle(K) - V(1).
    ``scale`` is the size of the values, for telling rounding from variation.
    """
    unit = float(headroom[-1])
    if why := _obstacle(k, value, unit, clusters, scale):
        best = _best(k, value, scale) if np.isfinite(value).all() else None
        return Verdict("inconclusive", best, None, None, None, f"Cannot be decided: {why}.", [])
    prefixes = _bands(value, draws, headroom, clusters, scale, rule.level)
    steps = prefixes[-1]
    status = _status(steps, rule)
    safe = [
        size for size, band in zip(k[1:], prefixes, strict=True) if _status(band, rule) == "safe"
    ]
    fallen = steps.second[steps.high < -rule.delta]
    needed = _queries_needed(steps, queries, rule) if status == "inconclusive" else None
    return Verdict(
        status=status,
        k_best=_best(k, value, scale),
        k_safe_max=max(safe) if safe else None,
        k_harm=k[int(fallen.min())] if fallen.size else None,
        queries_needed=needed,
        reason=_reason(status, needed, k, steps, rule),
        checks=_checks(k, steps, unit, rule),
    )


def _obstacle(k: list[int], value: Floats, unit: float, clusters: int, scale: float) -> str:
    """Why nothing can be decided; empty where something can."""
    if len(k) < 2:
        return "only K = 1 was measured, so search was never tried"
    if not np.isfinite(value).all() or not np.isfinite(unit):
        return "the curve is not a finite number everywhere"
    if unit <= 1e-12 * scale:
        return "no headroom: the best candidate of a pool is worth no more than a random one"
    return "" if clusters > 1 else "one query (or cluster) gives no interval; at least 2 are needed"


def _bands(
    value: Floats, draws: Floats, headroom: Floats, clusters: int, scale: float, level: float
) -> list[Steps]:
    """Steps and band of every prefix k[:2], k[:3], ..., k: what each K says on its own."""
    n = value.size
    second, first = (a.astype(np.int64) for a in np.tril_indices(n, -1))  # ordered by second
    change, resampled = value[second] - value[first], draws[:, second] - draws[:, first]
    se, deviation = standardized(change, resampled, clusters, scale)
    # Rounding is not an effect: a step that neither varies nor moves is exactly no step.
    change = np.where((se == 0) & (np.abs(change) <= 1e-10 * scale), 0.0, change)
    result = []
    for size in range(2, n + 1):
        use = slice(0, size * (size - 1) // 2)
        c = critical_value(deviation[:, use].max(axis=1), clusters, level)
        unit = headroom[size - 1] if headroom[size - 1] > 1e-12 * scale else np.nan
        low, high = change[use] - c * se[use], change[use] + c * se[use]
        result.append(Steps(first[use], second[use], change[use] / unit, low / unit, high / unit))
    return result


def _status(steps: Steps, rule: Rule) -> Status:
    if (steps.high < -rule.delta).any():
        return "unsafe"
    # Written so that NaN is inconclusive.
    if not (steps.low >= -rule.rho).all():
        return "inconclusive"
    return "safe" if steps.low[steps.gain] > 0 else "no gain"


def _queries_needed(steps: Steps, queries: int, rule: Rule) -> int | None:
    """About how many queries would decide it, if estimates stay and widths shrink as 1/sqrt(n)."""
    half = (steps.high - steps.low) / 2
    establish = np.where(steps.change < -rule.delta, -rule.delta - steps.change, np.nan)
    open_steps = ~(steps.low >= -rule.rho)
    exclude = np.where(steps.change > -rule.rho, steps.change + rule.rho, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        one_fall = np.nanmin((half / establish) ** 2, initial=np.inf)
        none_left = np.max((half / exclude)[open_steps] ** 2)  # NaN: cannot be excluded
    factor = np.nanmin([one_fall, none_left])
    return int(np.ceil(queries * factor - 1e-9)) if np.isfinite(factor) else None


def _reason(status: Status, needed: int | None, k: list[int], steps: Steps, rule: Rule) -> str:
    def said(at: int) -> str:
        change, low, high = (_percent(x[at]) for x in (steps.change, steps.low, steps.high))
        return f"{change} (band {low} to {high})"

    def step(at: int) -> str:
        return f"from K = {k[steps.first[at]]} to K = {k[steps.second[at]]}"

    if status == "unsafe":
        worst = int(np.argmin(steps.high))
        return (
            f"Searching more is established to hurt: {step(worst)} the value changes by "
            f"{said(worst)} of the headroom."
        )
    if status == "inconclusive":
        worst = int(np.argmin(steps.low))
        more = f" About {needed:,} queries would decide it." if needed else ""
        return (
            f"A fall of more than {rule.rho:.0%} of the headroom cannot be ruled out: "
            f"{step(worst)} the change is {said(worst)}.{more}"
        )
    if status == "safe":
        return (
            f"Search helps up to K = {k[-1]}, the largest measured, by {said(steps.gain)} of the "
            f"headroom; a fall of more than {rule.rho:.0%} is ruled out at every step."
        )
    return (
        f"Search does no harm above {rule.rho:.0%} of the headroom, but its gain up to "
        f"K = {k[-1]} cannot be told from zero: {said(steps.gain)} of the headroom."
    )


def _percent(x: float) -> str:
    return f"{x:+.0%}".replace("-", "−") if round(x, 2) else "0%"


def _checks(k: list[int], steps: Steps, unit: float, rule: Rule) -> list[Check]:
    """The three questions that decided the status, each with its own numbers and advice."""

    def check(
        name: str, question: str, at: int, threshold: float, status: CheckStatus, advice: str
    ) -> Check:
        return {
            "name": name,
            "question": question,
            "k": [k[steps.first[at]], k[steps.second[at]]],
            "value": float(steps.change[at]),
            "low": float(steps.low[at]),
            "high": float(steps.high[at]),
            "threshold": threshold,
            "status": status,
            "advice": advice,
        }

    fall, risk, gain = int(np.argmin(steps.high)), int(np.argmin(steps.low)), steps.gain
    harmed = bool(steps.high[fall] < -rule.delta)
    excluded = bool((steps.low >= -rule.rho).all())
    gained = bool(steps.low[gain] > 0)
    lost = bool(steps.high[gain] < 0)
    stop = f"Do not search past K = {k[steps.first[fall]]} with this score."
    more = stop if harmed else "Judge more queries before trusting a larger K."
    return [
        check(
            "no established fall",
            f"Is some step established to lose more than {rule.delta:.0%} of the headroom?",
            fall,
            -rule.delta,
            "fail" if harmed else "pass",
            stop if harmed else "No step is established to hurt.",
        ),
        check(
            "harm ruled out",
            f"Is a loss of more than {rule.rho:.0%} of the headroom ruled out at every step?",
            risk,
            -rule.rho,
            "pass" if excluded else ("fail" if harmed else "undecided"),
            "Every step is within the tolerated loss." if excluded else more,
        ),
        check(
            "gain from search",
            f"Is best-of-{k[-1]} better than a random candidate?",
            gain,
            0.0,
            "pass" if gained else ("fail" if lost else "undecided"),
            "Searching pays on average."
            if gained
            else "Do not pay for K candidates on the strength of this score.",
        ),
        {
            "name": "headroom",
            "question": f"Is there anything to gain with K = {k[-1]} (value units)?",
            "k": [1, k[-1]],
            "value": unit,
            "low": None,
            "high": None,
            "threshold": 0.0,
            "status": "pass",
            "advice": "The pools hold better candidates than a random one.",
        },
    ]


def _best(k: list[int], value: Floats, scale: float) -> int:
    """The curve's highest point; the smallest K where several are equally high."""
    return k[int(np.flatnonzero(value >= value.max() - 1e-12 * scale)[0])]
