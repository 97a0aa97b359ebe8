"""Every setting of the controlled study, and how the ones the paper leaves open were fixed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.registry import CRITICS
from toptail.lab.training.config import LARGEST_BATCH
from toptail_paper.controlled.world import ControlledWorld

if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic
    from toptail.lab.critics.losses import Contrast

Sweep: TypeAlias = Literal["steps", "temperature", "loss", "bias", "layer_norm"]

SWEEPS: tuple[Sweep, ...] = get_args(Sweep)
"""Settings whose influence can be swept."""

HERE = {
    "tdq": CRITICS["tdq"],
    "raw": CRITICS["raw"],
    "cosine": CRITICS["cosine"],
    "hybrid": CRITICS["hybrid"],
    "two_head": CRITICS["two_head_joint"],
}
"""The critics of the controlled world, with the critics of the library that they are small
versions of."""

CONTRASTIVE = tuple(name for name, entry in HERE.items() if entry.trained_by != "bellman")
"""What the contrastive loss trains."""

CONTROL = next(name for name in HERE if name not in CONTRASTIVE)
"""The positive control, which the reward alone trains."""

TWO_HEAD = next(name for name, entry in HERE.items() if entry.group == "two_head")
"""The network whose readouts are compared with each other."""

WITHIN = ("f_cos", "q_td", "q_hybrid")
"""The readouts of the two-head network."""

NOISE_SIGMA = 0.05
"""Transition noise of the noisy variant."""


_COUNTS = (
    *("steps", "batch_size", "data_size", "radius_seeds", "queries", "heldout", "resamples"),
    *("grid", "workers"),
)


@dataclass(frozen=True)
class CriticSettings:
    """What all families of the study share, and what each of them adds."""

    hidden: tuple[int, ...] = (64, 64)
    """Width of each hidden layer of every network."""
    embed_dim: int = 16
    """Dimension d of phi and psi."""
    ensemble: int = 2
    """Copies of each encoder pair and of the Q network."""
    layer_norm: bool = True
    """Whether a LayerNorm follows each hidden layer."""
    contrast: Contrast = "binary_nce"
    """The contrastive loss."""
    temperature: float = 0.1
    """Temperature of the cosine logits; the starting point where it is learned."""
    learn_temperature: bool = False
    """Whether the temperature is trained."""
    alpha: float = 1.0
    """Weight of f_cos in Q_hybrid."""
    td_weight: float = 1.0
    """Weight of the TD loss of hybrid and two-head relative to their contrastive loss."""

    def make(self, name: str) -> Critic:
        from toptail_paper.controlled.critics import ONE_STEP
        from toptail_paper.controlled.networks import Encoders

        encoders = Encoders(self.hidden, self.embed_dim, self.ensemble, self.layer_norm)
        known = vars(self) | {"encoders": encoders}
        family: Any = ONE_STEP[name]
        own = {each.name: known[each.name] for each in fields(family) if each.name in known}
        critic: Critic = family(**own)
        return critic


@dataclass(frozen=True)
class StudyConfig:
    """The controlled study.

    What the paper states is as it states it. The rest was fixed on seeds 0-4 and other pools, by
    a rule that never looks at how a contrastive critic selects:

    1. Where the paper is silent, the reference agents that its critics come from decide: GELU and
       LayerNorm, two copies of each network whose mean is the score, logits phi . psi / sqrt(d),
       binary NCE.
    2. Training length: the one of 1,000, 3,000, 10,000 and 30,000 steps at which TD-Q, the
       positive control, comes nearest to the regret that the paper reports for it (0.078). All
       critics get the same.
    3. Temperature: the one with the highest retrieval AUC of the cosine critic on held-out pairs.
    4. Half of the actions are goal-aligned, with noise of a quarter of the radius: round
       numbers, chosen without a run.

    `toptail_paper.controlled.run` is rules 2 and 3 as code. The sweeps show how the
    results move with each of these choices.
    """

    world: ControlledWorld = ControlledWorld()
    """The world of the main table."""
    critics: CriticSettings = CriticSettings()
    """The networks and their losses."""
    steps: int = 3_000
    """Optimizer steps of every critic."""
    batch_size: int = 256
    """Rows per step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    data_size: int = 50_000
    """Transitions in each seed's data set."""
    seeds: tuple[int, ...] = (42, 43, 44, 45, 46)
    """Training seeds; each has its own data set and initial parameters."""
    radii: tuple[float, ...] = ()
    """Support radii of the radius sweep; empty leaves the sweep out."""
    radius_seeds: int = 3
    """How many of the seeds, from the first, the radius sweep takes."""
    sweeps: tuple[Sweep, ...] = ()
    """Settings to sweep."""
    sweep_steps: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000)
    """Training lengths of the steps sweep, read from one run."""
    sweep_temperatures: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0)
    """Fixed temperatures of the temperature sweep; a learned one is added."""
    sweep_shares: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    """Goal-aligned shares of the bias sweep."""
    sweep_noises: tuple[float, ...] = (0.1, 0.25, 0.5)
    """Noises of goal-aligned actions, in units of R, of the bias sweep."""
    queries: int = 500
    """Decision queries; all seeds and critics of a radius share them and their pools."""
    pool: int = 256
    """Candidates per query, the largest K."""
    pool_seed: int = 1
    """Seed of queries, pools, held-out pairs and bootstrap."""
    heldout: int = 2_000
    """Held-out transitions for the retrieval AUC."""
    resamples: int = 10_000
    """Bootstrap resamples of queries."""
    grid: int = 101
    """Points per axis of the stored score surfaces."""
    workers: int = 2
    """Critics trained at the same time."""
    k: tuple[int, ...] = field(init=False, default=())
    """Candidate counts of the curves: powers of two up to the pool size."""

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) != len(self.seeds) or min(self.seeds) < 0:
            raise InputError(f"Seeds must be different whole numbers from 0, not {self.seeds}.")
        if self.pool < 2 or self.pool & (self.pool - 1):
            raise InputError(f"The pool size must be a power of two from 2, not {self.pool}.")
        for name in _COUNTS:
            check_whole(name, getattr(self, name), 1)
        if self.batch_size > LARGEST_BATCH:
            raise InputError(
                f"{option('batch_size', self.batch_size)} must be at most {LARGEST_BATCH}."
            )
        unknown = sorted(set(self.sweeps) - set(SWEEPS))
        if unknown:
            raise InputError(f"'{unknown[0]}' cannot be swept; sweeps are {', '.join(SWEEPS)}.")
        object.__setattr__(self, "k", tuple(2**i for i in range(self.pool.bit_length())))
