"""What decides a run's result, apart from its seed and its data."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from toptail.errors import InputError, check_whole, option
from toptail.lab.training.records import differences, digest

# Only here: the flags of `toptail train` come from this file, and are listed without JAX.
if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic
    from toptail.lab.critics.bellman import Reward
    from toptail.lab.critics.learner import Learner
    from toptail.lab.training.loop import TrainConfig

FORMAT = 1
"""Raised when a setting changes its meaning."""

GOALS = ("current", "future", "positive_gamma", "positive_window")
"""Settings that are not the learner's but of how its goals are drawn: see `GoalSampling`."""

LARGEST_BATCH = 2**24
"""Rows per step, at most: a contrastive loss compares each with each."""

LAST_SEED = 2**32 - 1
"""The largest seed that a key can be made of."""


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
    """The reward that value goals give; without effect on critics that do not read it."""

    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""

    log_every: int = 500
    """Steps between two lines of ``metrics.jsonl``; one compiled program runs that many."""

    settings: tuple[tuple[str, Any], ...] = ()
    """Settings of the learner and of its goals that are not the default: names of its fields, of
    fields of the settings inside them, and of `GOALS`."""

    label: str = ""
    """What it is called in folders and tables where that is not the critic's name: the critic with
    the settings that tell it from others. It decides nothing, and no record of settings has it."""

    def __post_init__(self) -> None:
        from toptail.lab.critics.full import setting_names

        for name in ("steps", "batch_size", "log_every"):
            check_whole(name, getattr(self, name), 1)
        if self.batch_size > LARGEST_BATCH:  # the compiler ends the process where sizes overflow
            raise InputError(
                f"{option('batch_size', self.batch_size)} must be at most {LARGEST_BATCH}."
            )
        if not 0 < self.learning_rate < math.inf:
            raise InputError(
                f"{option('learning_rate', self.learning_rate)} must be more than 0 and finite."
            )
        if not 0 < self.gamma < 1:
            raise InputError(f"{option('gamma', self.gamma)} must lie between 0 and 1.")
        # Only what the learner has may count, or a flag for one critic would rename another.
        learner = self.build()
        known = {*setting_names(learner), *goal_settings(learner)}
        kept = tuple(sorted((name, value) for name, value in self.settings if name in known))
        object.__setattr__(self, "settings", kept)
        if not learner.reads_rewards:
            object.__setattr__(self, "reward", type(self).reward)

    @property
    def name(self) -> str:
        """What it is called in folders and tables."""
        return self.label or self.critic

    @abstractmethod
    def build(self) -> Learner:
        """The learner with its settings."""

    @cached_property
    def training(self) -> TrainConfig:
        """The run as the loop wants it."""
        from toptail.lab.training.loop import TrainConfig
        from toptail.lab.training.offline import GoalSampling

        goals = {name: value for name, value in self.settings if name in GOALS}
        sampling = GoalSampling(gamma=self.gamma, reward=self.reward, **goals)
        rate = self.learning_rate
        return TrainConfig(self.build(), self.steps, self.batch_size, rate, sampling)

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything that decides the result, as JSON has it.

        Beside the run's own settings it holds every field of the learner and of the sampler, so
        that a default that changes later cannot go unnoticed.
        """
        from toptail.lab.critics.learner import recorded

        full = {
            "format": FORMAT,
            **{name: value for name, value in asdict(self).items() if name != "label"},
            "settings": dict(self.settings),
            "critic_fields": recorded(self.training.learner),
            "sampler_fields": recorded(self.training.sample),
        }
        content: dict[str, Any] = json.loads(json.dumps(full, allow_nan=False))
        return content

    @property
    def hash(self) -> str:
        """Hash of `content`."""
        return digest(self.content)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Build the configuration that a stored `content` describes.

        A temperature that its settings leave out is the one that its critic had: the default was
        another one once.
        """
        own = {k: v for k, v in content.items() if k not in _DERIVED}
        fields = content["critic_fields"]
        then = {"temperature": fields["temperature"]} if "temperature" in fields else {}
        own["settings"] = _pairs({**then, **content["settings"]})
        return cls(**own)

    def as_recorded(self, content: Mapping[str, Any]) -> Self:
        """Spelled as in a stored ``content`` of the same meaning, so that the hashes are equal.

        Itself where that cannot be: a default that the content left unsaid is another one now.
        """
        spelled = replace(self, settings=_pairs(content["settings"]))
        return spelled if spelled.content == content else self


_DERIVED = ("format", "critic_fields", "sampler_fields")


@dataclass(frozen=True)
class RunConfig(LearnerConfig):
    """One critic on one task."""

    def build(self) -> Critic:
        """The critic with its settings."""
        from toptail.lab.critics.full import full_size

        shared = {"bfloat16": self.bfloat16, "gamma": self.gamma}
        own = {name: value for name, value in self.settings if name not in GOALS}
        return full_size(self.critic, reward=self.reward, **shared, **own)


def goal_settings(learner: Learner) -> tuple[str, ...]:
    """Which settings of the goals have an effect on a learner."""
    shares = ("current", "future") if learner.reads_rewards else ()
    return (*shares, "positive_gamma", "positive_window") if learner.reads_positives else shares


def changes(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Say in what two contents differ, apart from which settings were left at their defaults.

    What ``settings`` say is in ``critic_fields`` too, with every setting that they leave out.
    """
    return differences({**one, "settings": None}, {**other, "settings": None})


def require_seeds(seeds: Sequence[int]) -> None:
    """Refuse seeds that are no seeds, or the same."""
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0 or max(seeds) > LAST_SEED:
        raise InputError(
            f"{option('seeds', tuple(seeds))} must be different whole numbers from 0 to "
            f"{LAST_SEED}."
        )


def _pairs(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Settings as JSON has them, hashable."""
    return tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in settings.items())
