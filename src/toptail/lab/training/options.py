"""What a person may choose about a training, and the configurations that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, get_args, get_type_hints

from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.registry import label_of, split_label
from toptail.lab.training.config import GOALS, RunConfig, goal_settings

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
        from toptail.lab.training.config import log_every, on_gpu

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
