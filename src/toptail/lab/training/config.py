"""What decides a run's result, apart from its seed and its data."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

from toptail.errors import InputError
from toptail.lab.critics.base import Critic
from toptail.lab.critics.bellman import Bellman, Reward
from toptail.lab.critics.full import full_size, setting_names
from toptail.lab.critics.learner import Learner
from toptail.lab.training.loop import TrainConfig
from toptail.lab.training.offline import GoalSampling
from toptail.lab.training.records import digest

FORMAT = 1
"""Raised when a setting changes its meaning."""


@dataclass(frozen=True)
class LearnerConfig(ABC):
    """One learner on one task. Every seed of it is a run."""

    task: str
    """Name of the data set."""

    critic: str
    """Name of the learner: a critic of the registry, or of another kind of learner."""

    steps: int
    """Optimizer steps."""

    batch_size: int = 1024
    """Rows per step."""

    learning_rate: float = 3e-4
    """Adam's step size."""

    gamma: float = 0.99
    """Discount, of the goals' distances and of the value target."""

    reward: Reward = "-1/0"
    """The reward that value goals give; without effect on critics that have no value target."""

    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""

    log_every: int = 500
    """Steps between two lines of ``metrics.jsonl``; one compiled program runs that many."""

    settings: tuple[tuple[str, Any], ...] = ()
    """Settings of the learner that are not the default: names of its fields, and of fields of the
    settings inside them."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "log_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: expected at least 1.")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate is {self.learning_rate}: expected more than 0.")
        # Only what the critic has may count, or a flag for one critic would rename another.
        known = set(setting_names(self.build()))
        kept = tuple(sorted((name, value) for name, value in self.settings if name in known))
        object.__setattr__(self, "settings", kept)
        if "bellman" not in known:
            object.__setattr__(self, "reward", type(self).reward)

    @abstractmethod
    def build(self) -> Learner:
        """The learner with its settings."""

    @cached_property
    def training(self) -> TrainConfig:
        """The run as the loop wants it."""
        sampling = GoalSampling(gamma=self.gamma, reward=self.reward)
        rate = self.learning_rate
        return TrainConfig(self.build(), self.steps, self.batch_size, rate, sampling)

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything that decides the result, as JSON has it.

        Beside the run's own settings it holds every field of the critic and of the sampler, so
        that a default that changes later cannot go unnoticed.
        """
        full = {
            "format": FORMAT,
            **asdict(self),
            "settings": dict(self.settings),
            "critic_fields": asdict(self.training.learner),  # type: ignore[call-overload]
            "sampler_fields": asdict(self.training.sample),  # type: ignore[call-overload]
        }
        content: dict[str, Any] = json.loads(json.dumps(full, allow_nan=False))
        return content

    @property
    def hash(self) -> str:
        """Hash of `content`."""
        return digest(self.content)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Build the configuration that a stored `content` describes."""
        own = {k: v for k, v in content.items() if k not in _DERIVED}
        own["settings"] = tuple((k, _hashable(v)) for k, v in content["settings"].items())
        return cls(**own)


@dataclass(frozen=True)
class RunConfig(LearnerConfig):
    """One critic on one task."""

    def build(self) -> Critic:
        """The critic with its settings."""
        own = dict(self.settings)
        value = {name: own.pop(name) for name in ("expectile", "tau") if name in own}
        bellman = Bellman(gamma=self.gamma, **value)
        return full_size(
            self.critic, bfloat16=self.bfloat16, bellman=bellman, reward=self.reward, **own
        )


_DERIVED = ("format", "critic_fields", "sampler_fields")


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
