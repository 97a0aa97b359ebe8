"""Every setting of the fixed-query selection study, and why the open ones are what they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toptail.errors import InputError, check_whole
from toptail.lab.tasks.names import OGBENCH_NAMES, parse_name
from toptail.lab.tasks.queries import QueryConfig
from toptail_paper.study.naming import data_set

STAGES = (
    *("queries", "pools", "reference", "exact", "exact_continuous", "euclidean"),
    *("scores", "rollouts", "deployment"),
)
"""The stages that leave files for the tables, in their order."""

IDEALS_STAGE = "ideals"
"""The stage of the ideal critics, made after the scores on request: it takes minutes."""

EXPERT_STAGE = "rollouts_expert"
"""The stage of rollouts that a policy which reaches goals continues, made on request."""


@dataclass(frozen=True)
class PoolSettings:
    """The cached pools of candidates."""

    count: int = 5
    """Pools per query."""
    size: int = 64
    """Candidates of a pool; the logged action is an anchor beside them, not one of them."""
    policy_seed: int = 42
    """Seed of the behaviour model's run that proposes the candidates."""
    seed: int = 0
    """Key of the draws; pool p draws from ``fold_in(key(seed), p)``."""

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0)
        if self.count < 1 or self.size < 2:
            raise InputError(
                f"Cannot make {self.count} pools of {self.size} candidates: expected at least one "
                "pool of at least two."
            )


@dataclass(frozen=True)
class SupportSettings:
    """What makes a candidate locally supported by the data."""

    nearest: int = 200
    """How many of the nearest data states give the actions that a candidate is compared with."""
    quantile: float = 0.95
    """Share of the queries' logged actions that the threshold leaves on support."""

    def __post_init__(self) -> None:
        if self.nearest < 1 or not 0 < self.quantile < 1:
            raise InputError(
                f"Local support with {self.nearest} states and the quantile {self.quantile:g} "
                "means nothing: expected at least 1 state and a quantile between 0 and 1."
            )

    def rule(self) -> str:
        """The threshold as a sentence, fixed before any number is known."""
        return (
            f"on support: distance to the nearest of the actions of the {self.nearest} nearest "
            f"training states is at most the {self.quantile:g} quantile of the same distance of "
            "the queries' logged actions"
        )


@dataclass(frozen=True)
class ReferenceSettings:
    """The reference ensemble and when it may judge."""

    seeds: tuple[int, ...] = (101, 102, 103)
    """Seeds of the GCIQL critics that judge; no audited critic may have one of them."""
    resolvability: float = 0.5
    """Smallest share of resolved pools in the prespecified group."""
    spearman: float = 0.7
    """Smallest mean pairwise within-pool Spearman correlation among the members."""
    prespecified_group: str = "near"
    """The group whose resolvability decides: one action moves the value of a near goal most."""

    def __post_init__(self) -> None:
        if len(set(self.seeds)) < max(2, len(self.seeds)):
            raise InputError(
                f"A reference ensemble needs at least two different seeds, not {self.seeds}."
            )


@dataclass(frozen=True)
class RolloutSettings:
    """The simulator rollouts that judge what was picked."""

    per_group: int = 34
    """Audited queries per distance group, to begin with."""
    growth: float = 0.5
    """Share of ``per_group`` by which each group grows while a half-width is not below e_min."""
    most: int = 4
    """Groups grow up to this many times ``per_group``."""
    repeats: int = 16
    """Rollouts of each action, with common random numbers over the actions of a query."""
    randoms: int = 4
    """Random pool members whose mean return is the baseline, at least."""
    candidates: int = 8
    """Random candidates per audited query for the judges' agreement."""
    horizon: int = 200
    """Steps of a rollout, the selected action included."""
    gamma: float = 0.99
    """Discount of the success."""
    ddim_steps: int = 10
    """Steps of the deterministic sampler of the continuation policy."""
    e_min: float = 0.012
    """Smallest effect of interest: every selector's half-width must be below it."""

    def __post_init__(self) -> None:
        counts = ("per_group", "most", "repeats", "randoms", "candidates", "horizon", "ddim_steps")
        for name in counts:
            check_whole(name, getattr(self, name), 1)
        if not self.growth > 0 or not self.e_min > 0:
            raise InputError(
                f"growth is {self.growth:g} and e_min {self.e_min:g}: expected numbers above 0."
            )
        if not 0 < self.gamma <= 1:
            raise InputError(f"gamma is {self.gamma:g}: expected a number above 0, at most 1.")


@dataclass(frozen=True)
class SelectionConfig:
    """One task's study."""

    task: str
    """The data set's name."""
    queries: QueryConfig = field(default_factory=QueryConfig)
    """The frozen queries and the bounds of their distance groups."""
    pools: PoolSettings = PoolSettings()
    """The cached candidates."""
    support: SupportSettings = SupportSettings()
    """The labels of local support."""
    reference: ReferenceSettings = ReferenceSettings()
    """The judge that is an ensemble of value functions."""
    rollouts: RolloutSettings = RolloutSettings()
    """The judge that is the simulator."""
    seeds: tuple[int, ...] = (42, 43, 44)
    """Training seeds of the audited critics."""
    ks: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    """Sizes K of the best-of-K curves."""

    def __post_init__(self) -> None:
        if self.reference.prespecified_group not in self.queries.groups():
            raise InputError(
                f"There is no distance group '{self.reference.prespecified_group}' to prespecify; "
                f"the groups are {', '.join(self.queries.groups())}."
            )
        shared = sorted(set(self.seeds) & set(self.reference.seeds))
        if shared:
            raise InputError(
                f"The seeds {shared} are both audited and judging: the reference ensemble must be "
                "trained apart from every audited critic."
            )
        if not self.ks or list(self.ks) != sorted(set(self.ks)) or self.ks[0] < 1:
            raise InputError(f"The sizes K must rise from at least 1, not {self.ks}.")
        if self.ks[-1] > self.pools.size:
            raise InputError(
                f"K = {self.ks[-1]} needs pools of that many candidates, and they have "
                f"{self.pools.size}."
            )

    @classmethod
    def for_task(cls, task: str, **changes: Any) -> SelectionConfig:
        """The settings of a task, with changes; of a data set of one's own the default ones."""
        name = data_set(task)
        if name in OGBENCH_NAMES and parse_name(name).family == "humanoidmaze":
            changes = {"rollouts": RolloutSettings(per_group=136, most=1), **changes}
        return cls(name, **changes)
