"""What decides a run's result, apart from its seed and its data."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args, get_type_hints

import jax

from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.registry import label_of, split_label
from toptail.lab.training.run_files import differences, digest

if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic, Learner
    from toptail.lab.critics.bellman import Reward
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
        from toptail.lab.critics.base import recorded

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


WIDTH, DEPTH = 512, 3
"""Hidden layers of a critic, unless given."""

_DEVICE: Final = ("bfloat16", "no_bfloat16", "log_every")
"""Options of a whole command: no critic of it has its own."""

_SWITCH: Final = {"on": True, "off": False}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Steps, precision and the critics' settings; None is the critic's or the device's default."""

    steps: int
    """Optimizer steps."""

    batch_size: int = RunConfig.batch_size
    """Rows per step."""

    learning_rate: float = RunConfig.learning_rate
    """Adam's step size."""

    bfloat16: bool = False
    """Use bfloat16 for matrix products and activations; the default on a GPU."""

    no_bfloat16: bool = False
    """Use float32 throughout; the default on a CPU."""

    log_every: int | None = None
    """Steps between two lines of metrics; 500 on a GPU and 50 on a CPU unless given."""

    hidden: int | None = None
    """Width of the hidden layers; 512 unless given."""

    depth: int | None = None
    """Number of hidden layers; 3 unless given."""

    embed_dim: int | None = None
    """Dimension of phi and psi; 512 unless given."""

    ensemble: int | None = None
    """Copies of each network; 2 unless given."""

    layer_norm: Literal["on", "off"] | None = None
    """Whether a LayerNorm follows each hidden layer; on unless given."""

    temperature: float | None = None
    """Temperature of the cosine logits; 0.05 unless given."""

    learn_temperature: bool = False
    """Learn the temperature, starting from the given one."""

    contrast: Literal["binary_nce", "symmetric_info_nce"] | None = None
    """Contrastive loss; binary_nce unless given."""

    positive_weight: float | None = None
    """How often a positive counts in binary NCE, where a negative counts once; 1 unless given."""

    alpha: float | None = None
    """Weight of f_cos in Q_hybrid; 1 unless given."""

    td_weight: float | None = None
    """Weight of the Bellman loss beside the contrastive one; by the value's range unless given."""

    reward: Literal["-1/0", "0/1"] | None = None
    """Reward of the value target: -1 until the goal, or 1 at the goal; -1/0 unless given."""

    expectile: float | None = None
    """Expectile of V in the value target; 0.9 unless given or the critic has its own."""

    gamma: float | None = None
    """Discount of the value target and of the goals' distances; 0.99 unless given."""

    positive_gamma: float | None = None
    """Discount of the distances of contrastive positives alone; that of all goals unless given."""

    positive_window: int | None = None
    """Contrastive positives uniform over 1 to so many steps ahead; geometric unless given."""

    current: float | None = None
    """Share of value goals that are the current state; 0.2 unless given."""

    future: float | None = None
    """Share of value goals that are a future state of the trajectory; 0.5 unless given. The rest
    are random states of the data."""

    def settings(self) -> dict[str, Any]:
        """The critics' settings that were given, by the names that critics have for them."""
        for name in ("hidden", "depth"):
            value = getattr(self, name)
            if value is not None:
                check_whole(name, value, 1)
        names = ("embed_dim", "ensemble", "temperature", "contrast", "alpha", "td_weight")
        more = ("positive_weight", "expectile", *GOALS)
        given = {name: getattr(self, name) for name in (*names, *more)}
        given["learn_temperature"] = self.learn_temperature or None
        given["layer_norm"] = None if self.layer_norm is None else self.layer_norm == "on"
        if self.hidden is not None or self.depth is not None:
            given["hidden"] = (self.hidden or WIDTH,) * (self.depth or DEPTH)
        return {name: value for name, value in given.items() if value is not None}

    def how(self) -> dict[str, Any]:
        """What every learner's configuration takes, by name."""
        if self.bfloat16 and self.no_bfloat16:
            raise InputError(
                f"{option('bfloat16')} and {option('no_bfloat16')} are both given: leave one out."
            )
        return {
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "bfloat16": self.bfloat16 or (on_gpu() and not self.no_bfloat16),
            "log_every": log_every() if self.log_every is None else self.log_every,
        }

    def configs(self, task: str, critics: Sequence[str]) -> list[RunConfig]:
        """One configuration per critic or label; a setting that none of them has is refused."""
        configs = [self.config(task, critic) for critic in critics]
        self._require_effect(configs, self._given())
        return configs

    def config(self, task: str, label: str) -> RunConfig:
        """The configuration of a critic, with the settings of its label (``raw[hidden=64]``)."""
        critic, written = split_label(label)
        own = typed_settings(label, written)
        options = replace(self, **own)
        config = RunConfig(
            task=task,
            critic=critic,
            steps=options.steps,
            gamma=RunConfig.gamma if options.gamma is None else options.gamma,
            reward=options.reward or RunConfig.reward,
            settings=tuple(options.settings().items()),
            label=label_of(critic, own) if own else "",
            **options.how(),
        )
        self._require_effect([config], {name for name in own if name not in _OF_ALL})
        return config

    def _given(self) -> set[str]:
        """Options that not every critic has, where they were given."""
        more = {name for name in ("reward", "gamma") if getattr(self, name) is not None}
        return {*self.settings(), *more}

    @staticmethod
    def _require_effect(configs: Sequence[RunConfig], given: set[str]) -> None:
        """Refuse settings that none of the critics has."""
        from toptail.lab.critics.full import setting_names

        known = {"gamma", "depth"}  # of distances, if of nothing else; and a part of the layers
        for learner in (config.build() for config in configs):
            known |= {*setting_names(learner), *goal_settings(learner)}
            known |= {"reward"} if learner.reads_rewards else set()
        for name in sorted(given - known):
            critics = ", ".join(config.name for config in configs)
            raise InputError(
                f"{option(name)} has no effect on {critics}: leave it out, or train a critic that "
                "has this setting."
            )


_OF_ALL: Final = ("steps", "batch_size", "learning_rate", "gamma", "depth")
"""Options that every critic has."""

SETTINGS: Final = tuple(name for name in get_type_hints(RunOptions) if name not in _DEVICE)
"""Settings that may stand in a label: `toptail train` has a flag for each."""


def labelled(config: RunConfig, label: str) -> RunConfig:
    """A configuration with the settings of a label in the place of its own."""
    critic, written = split_label(label)
    own, layers = typed_settings(label, written), dict(config.settings).get("hidden", ())
    size = {"hidden": layers[0], "depth": len(layers)} if layers else {}
    given = RunOptions(**{"steps": config.steps, **size, **own}).settings()
    runs = {name: value for name, value in own.items() if name in {f.name for f in fields(config)}}
    settings = tuple({**dict(config.settings), **given}.items())
    return replace(config, critic=critic, **runs, settings=settings, label=label)


def typed_settings(label: str, written: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a label by the options' own types."""
    kinds, found = get_type_hints(RunOptions), {}
    for name, text in written.items():
        if name not in SETTINGS:
            raise InputError(
                f"{label}: no critic has a setting '{name}'; the settings are "
                f"{', '.join(SETTINGS)}."
            )
        kind = (get_args(kinds[name]) or (kinds[name],))[0]  # without the None of what is not given
        try:
            found[name] = _read(text, kind)
        except (KeyError, ValueError):
            expected = " or ".join(get_args(kind)) or ("on or off" if kind is bool else "a number")
            raise InputError(f"{label}: {name} is '{text}', not {expected}.") from None
    return found


def _read(text: str, kind: Any) -> Any:
    """One value of a label; a KeyError or ValueError where it is none."""
    if get_args(kind):
        words = {word.replace("/", "_"): word for word in get_args(kind)}  # as folders have them
        return words[text.replace("/", "_")]
    return _SWITCH[text] if kind is bool else kind(text)
