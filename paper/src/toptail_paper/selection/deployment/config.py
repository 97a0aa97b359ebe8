"""Settings of the deployment checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from toptail.errors import InputError
from toptail.lab.critics.registry import entry
from toptail.lab.tasks.names import is_ogbench, parse_name
from toptail_paper.selection.deployment.actor import ActorConfig
from toptail_paper.study.naming import split_readout

Kind: TypeAlias = Literal["value", "contrastive"]
"""What an actor follows: a readout that is fitted to Bellman targets, or any other."""

OGBENCH_ALPHAS: Final[Mapping[str, Mapping[Kind, float]]] = {
    "antmaze": {"value": 0.3, "contrastive": 0.1},
    "humanoidmaze": {"value": 0.1, "contrastive": 0.1},
    "antsoccer": {"value": 0.1, "contrastive": 0.3},
}
"""OGBench's own weight of behaviour cloning by the task's family, for navigate and stitch data:
that of its GCIQL for a value, that of its contrastive RL otherwise (its
``impls/hyperparameters.sh``). PointMaze's are 0.003 and 0.03 there; its actors were run here with
one weight for all critics, and stay so."""


@dataclass(frozen=True)
class EpisodeConfig:
    """Which episodes success is counted over: the environment's own evaluation goals."""

    per_goal: int = 20
    """Episodes of each evaluation goal (the mazes have five), each with its own start and goal
    noise, the environment's."""
    limit: int | None = None
    """Steps after which an episode has failed; None is the environment's own limit."""
    seed: int = 0
    """Seed of starts and goals."""

    def __post_init__(self) -> None:
        if self.per_goal < 1 or (self.limit is not None and self.limit < 1):
            raise InputError("Episodes per goal and their limit must be at least 1.")


@dataclass(frozen=True)
class SearchConfig:
    """Best-of-K at every step: one behaviour sample, K noisy copies of it, the critic's maximum."""

    ks: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    """Sizes K, rising. The candidates of a smaller K are the first ones of a larger."""
    noise: float = 0.3
    """Standard deviation of the Gaussian noise on every coordinate, before clipping to [-1, 1]."""
    keep_base: bool = False
    """Whether the first candidate is the behaviour sample itself. Otherwise it is noisy like the
    others, as in the paper, and K = 1 executes behaviour plus noise whatever the critic."""
    ddim_steps: int = 10
    """Steps of the deterministic sampler that draws the behaviour sample."""
    seed: int = 0
    """Key of the draws, which all critics and all K share."""

    def __post_init__(self) -> None:
        if not self.ks or list(self.ks) != sorted(set(self.ks)) or self.ks[0] < 1:
            raise InputError(f"The sizes K must rise from at least 1, not {self.ks}.")
        if not self.noise >= 0:
            raise InputError(f"The candidates' noise is {self.noise:g}: expected 0 or more.")


@dataclass(frozen=True)
class SpreadConfig:
    """How much a score changes over the cube of actions at a fixed state and goal."""

    actions: int = 256
    """Actions drawn uniformly from [-1, 1]^a, the same for all states."""
    per_group: int = 100
    """States and goals of each distance group, drawn from the validation split."""
    seed: int = 0
    """Seed of states, goals and actions."""

    def __post_init__(self) -> None:
        if self.actions < 2 or self.per_group < 1:
            raise InputError("A spread needs at least 2 actions and 1 state per distance group.")


@dataclass(frozen=True)
class DeploymentConfig:
    """All deployment checks of a task."""

    actor: ActorConfig = field(default_factory=ActorConfig)
    """How the actors are trained."""
    alphas: tuple[tuple[Kind, float], ...] = ()
    """Weight of behaviour cloning by what an actor follows; `actor` has it for all where empty."""
    episodes: EpisodeConfig = EpisodeConfig()
    """What success is counted over, by actors and by the search alike."""
    search: SearchConfig = SearchConfig()
    """Best-of-K at every step."""
    searched: tuple[str, ...] = ("tdq", "raw")
    """Critics that the search is run with, by default the paper's: one value, one compatibility.
    Actors and spreads are made for all."""
    policy_seed: int = 42
    """Seed of the behaviour model's run."""
    spread: SpreadConfig = SpreadConfig()
    """The measurement that explains what the search does."""

    @classmethod
    def for_task(cls, task: str) -> DeploymentConfig:
        """The settings of a task: the paper's, with OGBench's own weights of behaviour cloning."""
        if not is_ogbench(task):
            return cls()
        name = parse_name(task)
        alphas = OGBENCH_ALPHAS.get(name.family, {}) if name.kind != "explore" else {}
        return cls(alphas=tuple(alphas.items()))

    def resized(self, given: Mapping[str, Mapping[str, Any]]) -> DeploymentConfig:
        actor = replace(self.actor, **given.get("actor", {}))
        episodes = replace(self.episodes, **given.get("episodes", {}))
        return replace(self, actor=actor, episodes=episodes)

    @property
    def size(self) -> dict[str, int]:
        """How much is done, as a page says it."""
        return {"actor_steps": self.actor.steps, "episodes_per_goal": self.episodes.per_goal}

    def actor_of(self, scorer: str) -> ActorConfig:
        """How the actor of a critic, or of one of its readouts, is trained."""
        critic, name = split_readout(scorer)
        values = [read.name for read in entry(critic).readouts if read.value]
        kind: Kind = "value" if (name or entry(critic).deployed) in values else "contrastive"
        return replace(self.actor, alpha=dict(self.alphas).get(kind, self.actor.alpha))
