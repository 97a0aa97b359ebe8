"""Everything that decides a run's result, apart from its seed and its data.

`RunConfig` is the configuration of a critic's runs; `RunOptions` are the flags that it is made of.
JAX is imported inside functions, because the flags of ``toptail train`` are listed without it.
"""

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

from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.registry import label_of, split_label
from toptail.lab.training.runs import digest

if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic, Learner
    from toptail.lab.critics.bellman import Reward
    from toptail.lab.training.loop import TrainConfig

FORMAT = 2
"""Raised when a setting changes its meaning."""

GOALS = ("current", "future", "positive_gamma", "positive_window")
"""Settings of the goals' sampling (see `GoalSampling`), which are not the learner's."""

LARGEST_BATCH = 2**24
"""Rows per step, at most: the compiler ends the process where sizes overflow."""

LAST_SEED = 2**32 - 1
"""The largest seed of a JAX key."""

WIDTH, DEPTH = 512, 3
"""Hidden layers of a critic, by default."""


@dataclass(frozen=True)
class LearnerConfig(ABC):
    """One learner on one task; each seed of it is a run."""

    task: str
    """Name of the data set."""
    critic: str
    """Name of the learner: a critic of the registry, or ``diffusion``."""
    steps: int
    """Optimizer steps."""
    batch_size: int = 1024
    """Rows per step."""
    learning_rate: float = 3e-4
    """Adam's step size."""
    gamma: float = 0.99
    """Discount, of the goals' distances and of the value target."""
    reward: Reward = "-1/0"
    """Reward of the value goals; critics that do not read rewards keep the default."""
    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""
    log_every: int = 500
    """Steps between two lines of ``metrics.jsonl``; one compiled program runs that many."""
    settings: tuple[tuple[str, Any], ...] = ()
    """Settings of the learner and of `GOALS` that differ from the default, sorted by name. Settings
    that the learner does not have are dropped, so that equal runs have equal configurations."""
    label: str = ""
    """Name in folders and tables if it is not the critic's: the critic with some settings, as in
    ``cosine[temperature=0.1]``. It decides nothing and is not recorded."""
    base: RunConfig | None = None
    """Configuration of the runs that this learner reads frozen parameters of: see `Critic`."""
    on: Path | None = None
    """Folder of those runs, ``RUNS/TASK/CRITIC``; the records of the runs name them by hashes."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "log_every"):
            check_whole(name, getattr(self, name), 1)
        if self.batch_size > LARGEST_BATCH:
            raise InputError(
                f"{option('batch_size', self.batch_size)} must be at most {LARGEST_BATCH}."
            )
        if not 0 < self.learning_rate < math.inf:
            raise InputError(
                f"{option('learning_rate', self.learning_rate)} must be more than 0 and finite."
            )
        if not 0 < self.gamma < 1:
            raise InputError(f"{option('gamma', self.gamma)} must lie between 0 and 1.")
        learner = self.build()  # refuses settings that have no meaning
        object.__setattr__(self, "settings", self._changed())
        if not learner.reads_rewards:
            object.__setattr__(self, "reward", type(self).reward)

    def _changed(self) -> tuple[tuple[str, Any], ...]:
        """The settings that change the learner or its goals, sorted by name."""
        from toptail.lab.critics.registry import setting_values
        from toptail.lab.training.data import GoalSampling

        given = dict(self.settings)
        object.__setattr__(self, "settings", ())
        default: Any = self.build()
        if self.base is not None:  # whose settings are its own
            default = replace(default, base=None)
        goals = {name: getattr(GoalSampling, name) for name in goal_settings(default)}
        pairs = (*setting_values(default), *goals.items())
        return tuple(sorted({(name, given[name]) for name, value in pairs
                             if name in given and given[name] != value}))  # fmt: skip

    @property
    def name(self) -> str:
        return self.label or self.critic

    @abstractmethod
    def build(self) -> Learner:
        """The learner with its settings."""

    @cached_property
    def training(self) -> TrainConfig:
        """Learner, optimizer and sampler, for the training loop."""
        from toptail.lab.training.data import GoalSampling
        from toptail.lab.training.loop import TrainConfig

        goals = {name: value for name, value in self.settings if name in GOALS}
        sampling = GoalSampling(gamma=self.gamma, reward=self.reward, **goals)
        rate = self.learning_rate
        return TrainConfig(self.build(), self.steps, self.batch_size, rate, sampling)

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything that decides the result, as JSON.

        It holds every field of the learner and of the sampler, so that a changed default shows.
        """
        sampling: Any = self.training.sample
        full = {
            "format": FORMAT,
            **{name: x for name, x in asdict(self).items() if name not in ("label", "base", "on")},
            "settings": dict(self.settings),
            **({} if self.base is None else {"base": self.base.content}),
            "critic_fields": self.training.learner.settings(),
            "sampler_fields": asdict(sampling),
        }
        content: dict[str, Any] = json.loads(json.dumps(full, allow_nan=False))
        return content

    @property
    def hash(self) -> str:
        return digest(self.content)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """The configuration with a stored `content`."""
        derived = ("format", "critic_fields", "sampler_fields")
        own = {name: value for name, value in content.items() if name not in derived}
        pairs = content["settings"].items()
        own["settings"] = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in pairs)
        if "base" in own:
            own["base"] = RunConfig.from_content(own["base"])
        return cls(**own)


@dataclass(frozen=True)
class RunConfig(LearnerConfig):
    """One critic on one task."""

    def build(self) -> Critic:
        from toptail.lab.critics.registry import full_size, with_settings

        shared = {"bfloat16": self.bfloat16, "gamma": self.gamma}
        own = {name: value for name, value in self.settings if name not in GOALS}
        critic = full_size(self.critic, reward=self.reward, **shared, **own)
        if self.base is None:
            return critic
        if not takes_base(critic):
            raise InputError(f"{option('on')} has no effect on {self.name}: leave it out.")
        base = replace(self.base, bfloat16=self.bfloat16).build()
        return with_settings(critic, {"base": base})


def takes_base(learner: Learner) -> bool:
    """Whether a learner reads frozen parameters of another run: see `Critic`."""
    return any(field.name == "base" for field in fields(learner))  # type: ignore[arg-type]


def goal_settings(learner: Learner) -> tuple[str, ...]:
    """Which of `GOALS` have an effect on a learner."""
    shares = ("current", "future") if learner.reads_rewards else ()
    return (*shares, "positive_gamma", "positive_window") if learner.reads_positives else shares


def require_seeds(seeds: Sequence[int]) -> None:
    """Refuse no seeds, seeds out of range, and the same seed twice."""
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0 or max(seeds) > LAST_SEED:
        raise InputError(
            f"{option('seeds', tuple(seeds))} must be different whole numbers from 0 to "
            f"{LAST_SEED}."
        )


def on_gpu() -> bool:
    """Whether JAX has an accelerator: then bfloat16 is the default."""
    import jax

    return jax.default_backend() != "cpu"


def log_every() -> int:
    """Steps between two lines of metrics on this device, by default."""
    return 500 if on_gpu() else 50


def checkpoint_every() -> int:
    """Steps between two checkpoints on this device, by default."""
    return 50_000 if on_gpu() else 1_000


def keep_compiled() -> None:
    """Store the programs of a GPU's compiler, so that a resumed run ends with the same bits.

    That compiler chooses kernels by timing them, and may choose others the next time. A cache
    folder that the user has configured in JAX is used instead.
    """
    import jax

    if not on_gpu() or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    jax.config.update("jax_compilation_cache_dir", str(caches / "toptail" / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@dataclass(frozen=True, kw_only=True)
class RunSize:
    """How long and how precisely to train, and how large the networks are."""

    steps: int
    """Optimizer steps."""
    batch_size: int = RunConfig.batch_size
    """Rows per step."""
    learning_rate: float = RunConfig.learning_rate
    """Adam's step size."""
    precision: Literal["float32", "bfloat16"] | None = None
    """Type of matrix products and activations; bfloat16 on a GPU and float32 on a CPU unless
    given."""
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


@dataclass(frozen=True, kw_only=True)
class RunOptions(RunSize):
    """Size and settings of critics; None is the critic's or the device's default."""

    layer_norm: bool | None = None
    """Whether a LayerNorm follows each hidden layer; default on."""
    temperature: float | None = None
    """Temperature of the cosine logits; default 0.05."""
    learn_temperature: bool | None = None
    """Whether the temperature is learned, starting from the given one; default off."""
    contrast: Literal["binary_nce", "symmetric_info_nce"] | None = None
    """Contrastive loss; default binary_nce."""
    positive_weight: float | None = None
    """How often a positive counts in binary NCE, where a negative counts once; default 1."""
    alpha: float | None = None
    """Weight of f_cos in Q_hybrid, as a share of the value's range; default 1."""
    td_weight: float | None = None
    """Weight of the Bellman loss added to a contrastive one; default by the value's range."""
    reward: Literal["-1/0", "0/1"] | None = None
    """Reward of the value target: -1 until the goal, or 1 at the goal; default -1/0."""
    expectile: float | None = None
    """Expectile of V in the value target; default 0.9, or the critic's own."""
    gamma: float | None = None
    """Discount of the value target and of the goals' distances; default 0.99."""
    positive_gamma: float | None = None
    """Discount of the distances of contrastive positives alone; default gamma."""
    positive_window: int | None = None
    """Contrastive positives are uniform over 1 to so many steps ahead; default geometric."""
    current: float | None = None
    """Share of value goals that are the current state; default 0.2."""
    future: float | None = None
    """Share of value goals that are a future state of the trajectory; default 0.5. The rest are
    random states of the data."""
    others: tuple[tuple[str, Any], ...] = ()
    """Settings that only some critics have, by the names of their fields."""

    @classmethod
    def written(cls, steps: int, words: Sequence[str]) -> RunOptions:
        """The options that ``--set`` asks for, as in ``hidden=64,layer_norm=off``."""
        _, settings = split_label(f"critics[{','.join(words)}]" if words else "critics")
        return cls(steps=steps).having(typed_settings("--set", settings, OPTIONS))

    def having(self, settings: Mapping[str, Any]) -> RunOptions:
        """A copy with some settings, of all critics or of some."""
        shared = {*SETTINGS, *OPTIONS}
        known = {name: value for name, value in settings.items() if name in shared}
        rest = {name: value for name, value in settings.items() if name not in shared}
        return replace(self, **known, others=tuple({**dict(self.others), **rest}.items()))

    def settings(self) -> dict[str, Any]:
        """The settings that were given, by the names of the critics' fields."""
        for name in ("hidden", "depth"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1)
        own = set(SETTINGS) - {*_OF_ALL_CRITICS, "hidden", "reward"}
        given = {name: getattr(self, name) for name in own}
        if self.hidden is not None or self.depth is not None:
            given["hidden"] = (self.hidden or WIDTH,) * (self.depth or DEPTH)
        return {n: x for n, x in given.items() if x is not None} | dict(self.others)

    def shared(self) -> dict[str, Any]:
        """Options that every learner's configuration has, by name."""
        half = on_gpu() if self.precision is None else self.precision == "bfloat16"
        return {
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "bfloat16": half,
            "log_every": log_every() if self.log_every is None else self.log_every,
        }

    def configs(self, task: str, critics: Sequence[str], on: Path | None = None) -> list[RunConfig]:
        """One configuration per critic or label; a setting that none of them has is refused.

        ``on`` is the folder of the runs whose frozen parameters the critics read: see `Critic`.
        """
        configs = [self.config(task, critic) for critic in critics]
        if on is not None:
            base = base_config(on)
            configs = [replace(config, base=base, on=on) for config in configs]
        more = {name for name in ("reward", "gamma") if getattr(self, name) is not None}
        self._require_effect(configs, {*self.settings(), *more})
        return configs

    def config(self, task: str, label: str) -> RunConfig:
        """The configuration of a critic, with the settings of its label (``raw[hidden=64]``)."""
        critic, written = split_label(label)
        own = typed_settings(label, written)
        options = self.having(own)
        config = RunConfig(
            task=task,
            critic=critic,
            steps=options.steps,
            gamma=RunConfig.gamma if options.gamma is None else options.gamma,
            reward=options.reward or RunConfig.reward,
            settings=tuple(options.settings().items()),
            label=label_of(critic, own) if own else "",
            **options.shared(),
        )
        self._require_effect([config], {name for name in own if name not in _OF_ALL_CRITICS})
        return config

    @staticmethod
    def _require_effect(configs: Sequence[RunConfig], given: set[str]) -> None:
        from toptail.lab.critics.registry import setting_values

        known = {"gamma", "depth"}  # gamma is a setting of every sampler, depth a part of hidden
        for learner in (config.build() for config in configs):
            known |= {*dict(setting_values(learner)), *goal_settings(learner)}
            known |= {"reward"} if learner.reads_rewards else set()
        for name in sorted(given - known):
            critics = ", ".join(config.name for config in configs)
            raise InputError(
                f"{option(name)} has no effect on {critics}: leave it out, or train a critic that "
                "has this setting."
            )


_OF_ALL_CRITICS: Final = ("steps", "batch_size", "learning_rate", "gamma", "depth")

SETTINGS: Final = tuple(
    name for name in get_type_hints(RunOptions) if name not in ("precision", "log_every", "others")
)
"""Settings that a label may have, besides the fields of single critics."""

OPTIONS: Final = (*(name for name in SETTINGS if name != "steps"), "precision", "log_every")
"""Settings that ``--set`` may have, besides the fields of single critics."""


def base_config(on: Path) -> RunConfig:
    """The one configuration of the runs ``RUNS/TASK/CRITIC`` that others are trained on."""
    from toptail.lab.training.runs import find_runs, stored_config

    runs = [run for run in find_runs(on) if run.folder.parent == on]
    if not runs or len({run.config_hash for run in runs}) > 1:
        raise InputError(
            f"{option('on', on)}: expected a folder RUNS/TASK/CRITIC with runs seed-N of one "
            f"configuration, and found {len(runs)} runs."
        )
    return stored_config(runs[0])


def labelled(config: RunConfig, label: str) -> RunConfig:
    """A copy of a configuration with the critic and the settings of a label."""
    critic, written = split_label(label)
    own, layers = typed_settings(label, written), dict(config.settings).get("hidden", ())
    size = {"hidden": layers[0], "depth": len(layers)} if layers else {}
    given = RunOptions(steps=config.steps, **size).having(own).settings()
    runs = {name: value for name, value in own.items() if name in {f.name for f in fields(config)}}
    settings = tuple({**dict(config.settings), **given}.items())
    return replace(config, critic=critic, **runs, settings=settings, label=label)


def typed_settings(
    label: str, written: Mapping[str, str], known: Sequence[str] = SETTINGS
) -> dict[str, Any]:
    """The settings of a label, converted to the types of the options."""
    kinds, settings = get_type_hints(RunOptions), {}
    for name, text in written.items():
        kind = (get_args(kinds[name]) or (kinds[name],))[0] if name in known else _kind_of(name)
        if kind is None:
            raise InputError(
                f"{label}: no critic has a setting '{name}'; the settings are "
                f"{', '.join(known)}, and the numbers among the critics' own fields."
            )
        try:
            settings[name] = _value_in(text, kind)
        except (KeyError, ValueError):
            expected = " or ".join(get_args(kind)) or ("on or off" if kind is bool else "a number")
            raise InputError(f"{label}: {name} is '{text}', not {expected}.") from None
    return settings


def _kind_of(name: str) -> type | None:
    """The type of a number or switch that only some critics have; None if no critic has it."""
    from toptail.lab.critics.registry import load, names, setting_values

    values = (dict(setting_values(load(critic)())).get(name) for critic in names())
    return next((type(x) for x in values if isinstance(x, bool | int | float)), None)


def _value_in(text: str, kind: Any) -> Any:
    if get_args(kind):
        words = {word.replace("/", "_"): word for word in get_args(kind)}  # as folders have them
        return words[text.replace("/", "_")]
    return {"on": True, "off": False}[text] if kind is bool else kind(text)
