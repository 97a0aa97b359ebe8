"""Typed views of one scorer's entry in ``audit.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

import numpy as np

from toptail.audit.verdict import Verdict
from toptail.pools.scored import Container
from toptail.stats.best_of_k import Floats, Ints


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
        """Names of the lists over K."""
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
    if verdict.status == "unsafe" and verdict.k_harm is not None:
        return f"from best of {verdict.k_harm}{of}"
    safe = verdict.k_safe_max if verdict.status == "safe" else None
    return f"up to best of {safe or k_max}{of}"


def stored_verdict(entry: Mapping[str, Any]) -> Verdict:
    """A verdict as ``audit.json`` holds it."""
    return Verdict(**{field.name: entry.get(field.name) for field in fields(Verdict)})  # type: ignore[arg-type]
