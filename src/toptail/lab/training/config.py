"""What decides a run's result, apart from its seed and its data."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import jax

from toptail.errors import InputError, check_whole, option
from toptail.lab.training.run_files import differences, digest

if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic
    from toptail.lab.critics.bellman import Reward
    from toptail.lab.critics.learner import Learner
    from toptail.lab.training.loop import TrainConfig

# Only here: the flags of `toptail train` come from this file, and are listed without JAX.

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


GPU_LOG_EVERY, CPU_LOG_EVERY = 500, 50
"""Steps between two lines of metrics, unless given."""

GPU_CHECKPOINT_EVERY, CPU_CHECKPOINT_EVERY = 50_000, 1_000
"""Steps between two checkpoints, unless given."""


def on_gpu() -> bool:
    """Whether there is an accelerator: then bfloat16 is the default."""
    return jax.default_backend() != "cpu"


def log_every() -> int:
    """Steps between two lines of metrics on this device."""
    return GPU_LOG_EVERY if on_gpu() else CPU_LOG_EVERY


def checkpoint_every() -> int:
    """Steps between two checkpoints on this device."""
    return GPU_CHECKPOINT_EVERY if on_gpu() else CPU_CHECKPOINT_EVERY


def keep_compiled() -> None:
    """Keep the programs that a GPU's compiler makes, so that whatever runs again runs the same.

    That compiler chooses kernels by timing them, and may choose others the next time; then the
    last bits of a run that was stopped would differ from those of one that was not. A folder
    that the user has told JAX to keep programs in is used instead.
    """
    if not on_gpu() or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    jax.config.update("jax_compilation_cache_dir", str(caches / "toptail" / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
