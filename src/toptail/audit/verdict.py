"""The verdict: whether search hurts, and up to which K it helps; and views of stored results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypedDict, get_args

import numpy as np
from scipy.special import ndtri

from toptail.audit.settings import Rule, Unit, exact_percent
from toptail.pools.scored import Container
from toptail.stats.best_of_k import Floats, Ints, KGrid
from toptail.stats.ends import BoundedShares, Shares, rare_share

Status = Literal["safe", "no gain", "unsafe", "inconclusive"]
STATUSES: tuple[Status, ...] = get_args(Status)
CheckStatus = Literal["pass", "fail", "undecided"]

NEAREST: Final = 5
"""How many steps are stored with a verdict: those with the lowest lower ends."""
LEAST_CLUSTERS: Final = 40
"""With fewer, rare harm is too rarely in the sample to be ruled out by candidates seen."""


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


class Step(TypedDict):
    """One change V(K2) - V(K1) between two K of the grid, in units of the headroom at k_max."""

    k: list[int]
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Verdict:
    """Whether maximizing a scorer helps or hurts, and up to which K."""

    status: Status
    """``safe``, ``no gain``, ``unsafe`` or ``inconclusive``."""
    k_best: int | None
    """The K at which the curve is highest."""
    k_safe_max: int | None
    """The largest K up to which ``safe`` is established; None where there is none."""
    k_harm: int | None
    """The first K of an established fall; None where no fall is established."""
    queries_needed: int | None
    """About how many queries would decide an ``inconclusive`` one; None where unknown."""
    reason: str
    """The status in a sentence, with the numbers that decided it."""
    checks: list[Check] = field(repr=False, hash=False)
    """The questions behind the status."""
    k_max: int | None = None
    """The K up to which the verdict speaks; it says nothing about a larger one."""
    clusters: int | None = None
    """How many clusters (or queries) it rests on."""
    unit: Unit | None = None
    """What the numbers are shares of: ``pooled`` headroom, or each ``query``'s own."""
    steps: list[Step] | None = field(default=None, repr=False, hash=False)
    """Changes between powers of two and k_max, and those nearest to harm; ``high`` is the
    simultaneous end, over all steps that were looked at."""
    unseen: str | None = None
    """What cannot be excluded with so many queries, in words."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps K1 < K2 of a K grid, in units of the headroom at k_max, with their ends."""

    k: tuple[tuple[int, int], ...]
    """K1 and K2 of each step, ordered by K2; the first K1 of the last K2 is the gain."""
    value: Floats
    """V(K2) - V(K1) ``[steps]``."""
    low: Floats
    """Lower ends, each with its own error."""
    high: Floats
    """Upper ends, which hold together."""

    @property
    def gain(self) -> int:
        """Which step goes from 1 to k_max."""
        return self.k.index((1, self.k[-1][1]))

    def stored(self) -> list[Step]:
        """The steps between powers of two and k_max, and those that come nearest to harm."""
        nearest = {*np.argsort(self.low)[:NEAREST].tolist(), int(np.argmin(self.high))}
        powers = set(KGrid.up_to(self.k[-1][1]).steps)
        columns = zip(self.k, self.value, self.low, self.high, strict=True)
        return [
            {"k": list(k), "value": float(value), "low": float(low), "high": float(high)}
            for at, (k, value, low, high) in enumerate(columns)
            if at in nearest or k in powers
        ]


@dataclass(frozen=True)
class Scope:
    """The K, unit, thresholds and queries that a verdict speaks of."""

    grid: KGrid
    unit: Unit
    """Whose headroom its numbers are shares of."""
    rule: Rule
    queries: int
    scale: float
    """Size of the values, for telling rounding from variation."""
    ranged: bool
    """Whether a range of values was declared."""

    @property
    def enough(self) -> int:
        """How many clusters it takes to rule anything out."""
        return 2 if self.ranged else LEAST_CLUSTERS


def judge(scope: Scope, value: Floats, headroom: float, shares: Shares | BoundedShares) -> Verdict:
    """Verdict of one scorer's best-of-K curve.

    All changes V(K2) - V(K1) of the K grid (:meth:`KGrid.fine`: every K up to 16, then eight for
    each doubling), paired over clusters, in units of the headroom at k_max, with ends that count a
    cluster that was not seen:

    - ``unsafe``: some upper end lies below -delta, where all upper ends hold together: a
      harmful step is established;
    - otherwise ``inconclusive`` if some lower end, each with its own error, does not lie above
      -rho, or with fewer than 40 clusters and no declared range of values: harm above
      rho cannot be ruled out;
    - otherwise ``safe`` if the lower end of the change from 1 to k_max is above 0;
    - otherwise ``no gain``.

    Without headroom, with fewer than two clusters, or where anything is not finite:
    ``inconclusive``. Not computable is never safe.

    ``value`` is V(K) of the deciding K, ``headroom`` the mean headroom at k_max in value units, and
    ``shares`` are the steps.
    """
    clusters, rule = shares.clusters, scope.rule
    about: dict[str, Any] = {
        "k_max": scope.grid.k_max,
        "clusters": clusters,
        "unit": scope.unit,
        "unseen": _unseen(scope, clusters),
    }
    best = _best(scope.grid, value, scope.scale) if np.isfinite(value).all() else None
    bounded = isinstance(shares, BoundedShares)
    if why := _obstacle(value, headroom, clusters, scope, bounded):
        reason = f"Cannot be decided: {why}."
        return Verdict("inconclusive", best, None, None, None, reason, [], **about)
    high, risk = shares.simultaneous_high(1.0 - rule.level, rule.tail)
    steps = Steps(scope.grid.steps, shares.value, shares.low(rule.tail), high)
    status = status_of(steps, rule, clusters >= scope.enough)
    fallen = [k for (_, k), end in zip(steps.k, high, strict=True) if end < -rule.delta]
    needed = None
    if status == "inconclusive" and isinstance(shares, Shares):
        needed = _queries_needed(steps, shares, float(risk[0]), scope)
    return Verdict(
        status=status,
        k_best=best,
        k_safe_max=_safe_up_to(steps, status, rule, clusters >= scope.enough),
        k_harm=min(fallen, default=None),
        queries_needed=needed,
        reason=_reason(status, needed, clusters, steps, scope, bounded),
        checks=_checks(steps, headroom, clusters >= scope.enough, scope),
        steps=steps.stored(),
        **about,
    )


def _obstacle(value: Floats, headroom: float, clusters: int, scope: Scope, bounded: bool) -> str:
    """Why nothing can be decided; empty where something can."""
    if not np.isfinite(value).all() or not np.isfinite(headroom):
        return "the curve is not a finite number everywhere"
    if headroom <= 1e-12 * scope.scale and bounded:
        return "what was judged does not show that there is any headroom; judge more candidates"
    if headroom <= 1e-12 * scope.scale:
        return "no headroom: the best candidate of a pool is worth no more than a random one"
    return "" if clusters > 1 else "one query (or cluster) gives no interval; at least 2 are needed"


def status_of(steps: Steps, rule: Rule, enough: bool) -> Status:
    """The status that the ends of the steps give, where there are enough clusters or not."""
    if (steps.high < -rule.delta).any():
        return "unsafe"
    # Written so that NaN is inconclusive.
    if not (enough and (steps.low > -rule.rho).all()):
        return "inconclusive"
    return "safe" if steps.low[steps.gain] > 0 else "no gain"


def _safe_up_to(steps: Steps, status: Status, rule: Rule, enough: bool) -> int | None:
    """The largest K up to which all steps are fine and each K gains; None where there is none."""
    if status == "safe":
        return steps.k[-1][1]
    fine = (steps.low > -rule.rho) & ~(steps.high < -rule.delta)
    found, start, count = None, 0, 1
    while enough and start < len(steps.k):  # so many steps lead to one K, that from 1 first
        if not (fine[start : start + count].all() and steps.low[start] > 0):
            break
        found, start, count = steps.k[start][1], start + count, count + 1
    return found


def _queries_needed(steps: Steps, shares: Shares, risk: float, scope: Scope) -> int | None:
    """About how many queries would decide it, if the estimates stay.

    Two things shrink: the standard error as 1/sqrt(n), and the weight of the unseen cluster as
    1/n. A margin m is cleared when sqrt(a/n) + b/n <= 1, where a clusters would do without
    the unseen cluster and b with nothing but it.
    """
    rule, n, unseen = scope.rule, shares.clusters, shares.unseen

    def clusters(margin: Floats, loss: Floats, tail: float) -> Floats:
        room = np.where(margin > 0, margin, np.nan)
        a = n * (ndtri(1.0 - tail) * shares.se / room) ** 2
        b = np.log(1.0 / tail) / np.log1p(room / np.maximum(loss, 1e-300))
        return np.asarray(((np.sqrt(a) + np.sqrt(a + 4 * b)) / 2) ** 2)

    with np.errstate(over="ignore"):
        exclude = clusters(
            steps.value + rule.rho, -(unseen.least + rule.rho * unseen.headroom), rule.tail
        )
        establish = clusters(
            -rule.delta - steps.value, unseen.most + rule.delta * unseen.headroom, risk
        )
    still_open = ~(steps.low > -rule.rho)
    none_left = max(exclude[still_open].max(initial=0.0), float(scope.enough))  # NaN: cannot be
    found = np.nanmin([none_left, *establish])
    if not np.isfinite(found):
        return None
    return max(int(np.ceil(found * scope.queries / n - 1e-9)), scope.queries + 1)


def _unseen(scope: Scope, clusters: int) -> str:
    share = rare_share(max(clusters, 1), scope.rule.tail)
    what = f"harm in fewer than about {share:.1%} of the queries"
    if scope.ranged:
        return f"Not seen in {clusters:,}: {what}; within the declared range it is counted."
    return (
        f"No rule can exclude {what} that is worse than any order of the candidates seen; "
        f"{clusters:,} were seen."
    )


def _reason(
    status: Status, needed: int | None, clusters: int, steps: Steps, scope: Scope, bounded: bool
) -> str:
    """The status in a sentence; of steps that are only ``bounded``, their ends and no middle."""
    low, high, unit = steps.low, steps.high, "the headroom"
    if scope.unit == "query":
        unit = "a query's own headroom"
    fall = f"a fall of more than {exact_percent(scope.rule.rho)}"
    if status in ("unsafe", "inconclusive"):
        at = int(np.argmin(high if status == "unsafe" else low))
        step = f"from K = {steps.k[at][0]} to K = {steps.k[at][1]}"
        change = _change(steps, at, bounded)
        if status == "unsafe":
            return (
                f"Searching more is established to hurt: {step} the value changes by {change} of "
                f"{unit}."
            )
        more = f" About {needed:,} queries would decide it." if needed else ""
        if (low > -scope.rule.rho).all():
            return (
                f"Rare harm cannot be ruled out by {clusters:,} queries (or clusters): without a "
                f"declared range of values it takes at least {LEAST_CLUSTERS}.{more}"
            )
        return (
            f"{fall.capitalize()} of {unit} cannot be ruled out: {step} the change is "
            f"{change}.{more}"
        )
    least = _percent(low[steps.gain])
    gain = _percent(steps.value[steps.gain]) + (f" (at least {least})" if least else "")
    if bounded:
        gain = f"at least {least}"
    k_max, any_two = scope.grid.k_max, scope.grid.any_two
    if status == "safe":
        return (
            f"Search among candidates like these helps up to K = {k_max} by {gain} of {unit}; "
            f"{fall} is ruled out between {any_two}."
        )
    return (
        f"Search among candidates like these does no harm up to K = {k_max} ({fall} of {unit} is "
        f"ruled out between {any_two}), but its gain cannot be told from zero: {gain} of {unit}."
    )


def _change(steps: Steps, at: int, bounded: bool) -> str:
    low, high = (_percent(x[at]) for x in (steps.low, steps.high))
    if not bounded:
        return _percent(steps.value[at]) + (f" ({low} to {high})" if low and high else "")
    if low and high:
        return f"{low} to {high}"
    return f"at least {low}" if low else f"at most {high}" if high else "not known"


def _percent(x: float) -> str:
    if not np.isfinite(x):
        return ""
    return f"{x:+.0%}".replace("-", "−") if round(x, 2) else "0%"


def _checks(steps: Steps, headroom: float, enough: bool, scope: Scope) -> list[Check]:
    rule, k_max, gain = scope.rule, steps.k[-1][1], steps.gain
    fall, risk = int(np.argmin(steps.high)), int(np.argmin(steps.low))
    harmed = bool(steps.high[fall] < -rule.delta)
    excluded = enough and bool((steps.low > -rule.rho).all())
    gained = bool(steps.low[gain] > 0)
    stop = f"Do not search past K = {steps.k[fall][0]} with this score."
    more = stop if harmed else "Judge more queries before trusting a larger K."

    def check(
        name: str, question: str, at: int, threshold: float, passed: bool, failed: bool, advice: str
    ) -> Check:
        return {
            "name": name,
            "question": question,
            "k": list(steps.k[at]),
            "value": float(steps.value[at]),
            "low": float(steps.low[at]),
            "high": float(steps.high[at]),
            "threshold": threshold,
            "status": "pass" if passed else "fail" if failed else "undecided",
            "advice": advice,
        }

    return [
        check(
            "no established fall",
            "Is some step established to lose more than "
            f"{exact_percent(rule.delta)} of the headroom?",
            *(fall, -rule.delta, not harmed, harmed),
            stop if harmed else "No step is established to hurt.",
        ),
        check(
            "harm ruled out",
            f"Is a loss of more than {exact_percent(rule.rho)} of the headroom ruled out between "
            f"{scope.grid.any_two}?",
            *(risk, -rule.rho, excluded, harmed),
            "Every step is within the tolerated loss." if excluded else more,
        ),
        check(
            "gain from search",
            f"Is best-of-{k_max} better than a random candidate?",
            *(gain, 0.0, gained, bool(steps.high[gain] < 0)),
            "Searching pays on average."
            if gained
            else "Do not pay for K candidates on the strength of this score.",
        ),
        {
            "name": "headroom",
            "question": f"Is there anything to gain with K = {k_max} (value units)?",
            "k": [1, k_max],
            "value": headroom,
            "low": None,
            "high": None,
            "threshold": 0.0,
            "status": "pass",
            "advice": "The pools hold better candidates than a random one.",
        },
    ]


def _best(grid: KGrid, value: Floats, scale: float) -> int:
    """The highest point of the curve; the smallest K where several are equally high."""
    return grid.deciding[int(np.flatnonzero(value >= value.max() - 1e-12 * scale)[0])]


class Summary(TypedDict):
    """A mean with its interval, as stored."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Interval:
    """A number with its interval; None where not computable."""

    value: float | None
    """The estimate."""
    low: float | None
    """Lower end."""
    high: float | None
    """Upper end."""

    def __str__(self) -> str:
        if self.value is None:
            return "n/a"
        ends = "" if self.low is None else f" [{self.low:z.2f}, {self.high:z.2f}]"
        return f"{self.value:z.2f}{ends}"


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Container):
    """Best-of-K of one scorer; every array is ``[len(k)]``, NaN where not computable."""

    k: Ints
    """The measured K, ascending, starting with 1."""
    value: Floats
    """Expected value V(K) of the candidate with the top score of K."""
    low: Floats
    """Lower ends of the pointwise intervals."""
    high: Floats
    """Upper ends of the pointwise intervals."""
    band_low: Floats
    """Lower ends of the simultaneous band."""
    band_high: Floats
    """Upper ends of the simultaneous band."""
    regret: Floats
    """Value of the best possible choice less V(K)."""
    nregret: Floats
    """Regret over headroom: 0 is the oracle, 1 a random candidate."""
    captured: Floats
    """Share of the possible gain that the scorer gets, 1 - nregret."""
    captured_low: Floats
    """Lower ends of its intervals."""
    captured_high: Floats
    """Upper ends of its intervals."""
    selected_score: Floats
    """Mean score of the pick."""

    @classmethod
    def of(cls, k: Sequence[int], entry: Mapping[str, Any]) -> Curve:
        """The curve of a stored entry."""
        lists = {name: np.array(entry[name], dtype=np.float64) for name in cls.parts()}
        return cls(np.array(k, dtype=np.int64), **lists)

    @classmethod
    def parts(cls) -> list[str]:
        return [field.name for field in fields(cls) if field.name != "k"]

    def _summary(self) -> str:
        return f"K = {self.k[0]} to {self.k[-1]}, value {self.value[0]:.3g} to {self.value[-1]:.3g}"


@dataclass(frozen=True, eq=False, repr=False)
class ScorerResult(Container):
    """The results of one scorer."""

    name: str
    """The scorer."""
    verdict: Verdict
    """Whether search with it helps or hurts."""
    curve: Curve
    """Its value over K."""
    captured: Interval
    """Share of the possible gain that it gets at the largest K."""
    tau_b: Interval
    """Rank agreement with the value inside a query."""
    decile_gap: Interval
    """Mean value of the top score decile less that of the bottom one."""
    auc: Interval | None
    """Area under the ROC curve over all candidates; None where values are not binary."""
    seeds: Mapping[int, Verdict]
    """Training seed -> its own verdict; empty for a scorer without seeds."""

    @classmethod
    def of(cls, name: str, k: Sequence[int], entry: Mapping[str, Any]) -> ScorerResult:
        """The view of a stored entry."""
        shares = (entry["captured"], entry["captured_low"], entry["captured_high"])
        binary = entry.get("auc") is not None
        return cls(
            name=name,
            verdict=stored_verdict(entry["verdict"]),
            curve=Curve.of(k, entry),
            captured=Interval(*(share[-1] for share in shares)),
            tau_b=_interval(entry["tau_b"]),
            decile_gap=_interval(entry["decile_gap"]),
            auc=Interval(entry["auc"], entry["auc_low"], entry["auc_high"]) if binary else None,
            seeds={int(s): stored_verdict(e["verdict"]) for s, e in entry.get("seeds", {}).items()},
        )

    def _summary(self) -> str:
        best = "n/a" if self.verdict.k_best is None else self.verdict.k_best
        k_max = int(self.curve.k[-1])
        share = f"captured {self.captured} at K = {k_max}"
        status = f"{self.verdict.status} {reach(self.verdict, k_max)}"
        return f"{self.name}: {status}, {share}, best K {best}"


def _interval(summary: Summary) -> Interval:
    return Interval(summary["mean"], summary["low"], summary["high"])


def reach(verdict: Verdict, k_max: int, of: str = " of pools like these") -> str:
    """The words that follow a status: up to which K, and of which pools, it holds."""
    safe = verdict.k_safe_max
    if verdict.status == "safe":
        return f"up to best of {safe or k_max}{of}"
    harmed = verdict.status == "unsafe" and verdict.k_harm is not None
    words = f"from best of {verdict.k_harm}{of}" if harmed else f"up to best of {k_max}{of}"
    return f"{words} (safe up to best of {safe})" if safe and safe > 1 else words


def stored_verdict(entry: Mapping[str, Any]) -> Verdict:
    """A verdict as ``audit.json`` holds it."""
    return Verdict(**{field.name: entry.get(field.name) for field in fields(Verdict)})  # type: ignore[arg-type]
