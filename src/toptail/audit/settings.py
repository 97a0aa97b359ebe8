"""How an audit is computed: thresholds of the verdict, unit, K, and resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from toptail.errors import InputError, check_not_negative, check_share, check_whole, option

if TYPE_CHECKING:
    from toptail.judging.values import Judgement

_SMALLEST: Final = 2.0**-400
"""Differences of smaller values would be 0 when squared."""
_LARGEST: Final = 1e100
"""Sums of larger values could overflow."""

Unit = Literal["pooled", "query"]
UNITS: tuple[Unit, ...] = get_args(Unit)


NOT_MEANT: Final = (
    "Safe here is about taking the best of K of pools like these: not about AI safety, and not "
    "about training against the score."
)
"""Said once at the top of every page that calls something safe, and in the command's help."""


def exact_percent(share: float) -> str:
    """A threshold as it is tested, without rounding.

    >>> exact_percent(0.025), exact_percent(0.1)
    ('2.5%', '10%')
    """
    return f"{100 * share:.12g}%"


@dataclass(frozen=True)
class Rule:
    """Thresholds of the verdict; all in units of the headroom at k_max."""

    delta: float = 0.02
    """A fall is established when its upper end lies below -delta."""
    rho: float = 0.10
    """A harm above rho must be ruled out before a scorer is called safe."""
    level: float = 0.95
    """Confidence of two-sided intervals; each end errs with half of the rest."""

    def __post_init__(self) -> None:
        check_not_negative("delta", self.delta)
        check_not_negative("rho", self.rho)
        check_share("level", self.level)
        for name in ("delta", "rho"):
            if getattr(self, name) > 1:
                raise InputError(
                    f"{option(name, getattr(self, name))} must be at most 1: it is a share of the "
                    "headroom."
                )

    @property
    def tail(self) -> float:
        """The error of one end."""
        return (1.0 - self.level) / 2


@dataclass(frozen=True)
class Settings:
    """How an audit of pools is computed; unusable settings raise an :class:`InputError`."""

    rule: Rule = Rule()
    """Thresholds of the verdict."""
    k: Sequence[int] | None = None
    """Candidate counts to show beside 1, 2, 4, ... and k_max; they do not change the verdict."""
    seed: int = 0
    """Seed of the bootstrap."""
    resamples: int = 10_000
    """Resamples of whole queries (or clusters), shared by all scorers."""
    pools_per_query: int = 1
    """How many consecutive pools, each with a label of its own, belong to one query. They are not
    independent and must lie in one cluster."""
    unit: Unit = "pooled"
    """What a gain is a share of: ``pooled``, the headroom of all queries together; ``query``, each
    query's own."""
    min_pool: int | None = None
    """Leave out smaller pools; by default those below the 5 % quantile of sizes."""
    value_range: tuple[float, float] | None = None
    """The lowest and the highest value that a candidate can have; None: not declared."""

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0)
        check_whole("resamples", self.resamples, 1)
        if self.k is not None:
            counts = () if isinstance(self.k, str) or not np.iterable(self.k) else tuple(self.k)
            if not counts:
                raise InputError(f"{option('k', self.k)} must list whole numbers, as in 1, 2, 4.")
            for count in counts:
                check_whole("k", count, 1)
            object.__setattr__(self, "k", counts)
        if self.unit not in UNITS:
            raise InputError(f"{option('unit', self.unit)} must be 'pooled' or 'query'.")
        if self.min_pool is not None:
            check_whole("min_pool", self.min_pool, 2)
        self._check_range()

    def _check_range(self) -> None:
        if self.value_range is None:
            return
        given = option("value_range", self.value_range)
        ends = () if not np.iterable(self.value_range) else tuple(self.value_range)
        numbers = [x for x in ends if isinstance(x, Real) and not isinstance(x, bool)]
        if len(ends) != 2 or len(numbers) != 2 or not -np.inf < numbers[0] < numbers[1] < np.inf:
            raise InputError(f"{given} must be the lowest and the highest value, as in 0,1.")
        if self.unit == "query":
            raise InputError(
                f"{given} says nothing with {option('unit', self.unit)}: no range of values "
                "bounds a loss in a query's own headroom."
            )
        object.__setattr__(self, "value_range", (float(numbers[0]), float(numbers[1])))

    def check_values(self, source: str, judged: Judgement) -> None:
        """Raise an :class:`InputError` where the values cannot be used with these settings."""
        largest = judged.largest
        if largest > _LARGEST:
            raise InputError(
                f"{source}: values as large as {largest:g} cannot be averaged; rescale them."
            )
        if 0 < largest < _SMALLEST:
            raise InputError(
                f"{source}: no value is larger than {largest:g} in size, and the variance of such "
                "values cannot be computed; rescale them."
            )
        if self.unit == "query" and judged.replicates is not None:
            raise InputError(
                f"{option('unit', self.unit)} cannot be used with {option('replicates')}: a single "
                "query's headroom is too noisy to divide by."
            )
        if self.unit == "query" and not judged.exact:
            raise InputError(
                f"{option('unit', self.unit)} needs every candidate's value: a query's own "
                "headroom is not known from some of them."
            )
        if self.value_range is not None:
            outside = judged.outside(*self.value_range)
            if outside.size:
                raise InputError(
                    f"{source}: the value {outside[0]:g} lies outside "
                    f"{option('value_range', self.value_range)}."
                )
