"""What a person may choose about a training, and the configurations that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toptail.errors import InputError, check_whole, option
from toptail.lab.training.config import RunConfig

WIDTH, DEPTH = 512, 3
"""Hidden layers of a critic, unless given."""


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

    temperature: float | None = None
    """Temperature of the cosine logits; 0.05 unless given."""

    learn_temperature: bool = False
    """Learn the temperature, starting from the given one."""

    contrast: Literal["binary_nce", "symmetric_info_nce"] | None = None
    """Contrastive loss; binary_nce unless given."""

    alpha: float | None = None
    """Weight of f_cos in Q_hybrid; 1 unless given."""

    td_weight: float | None = None
    """Weight of the Bellman loss beside the contrastive one; by the value's range unless given."""

    reward: Literal["-1/0", "0/1"] | None = None
    """Reward of the value target: -1 until the goal, or 1 at the goal; -1/0 unless given."""

    expectile: float | None = None
    """Expectile of V in the value target; 0.9 unless given or the critic has its own."""

    def settings(self) -> dict[str, Any]:
        """The critics' settings that were given, by the names that critics have for them."""
        for name in ("hidden", "depth"):
            value = getattr(self, name)
            if value is not None:
                check_whole(name, value, 1)
        names = ("embed_dim", "ensemble", "temperature", "contrast", "alpha", "td_weight")
        given = {name: getattr(self, name) for name in (*names, "expectile")}
        given["learn_temperature"] = self.learn_temperature or None
        if self.hidden is not None or self.depth is not None:
            given["hidden"] = (self.hidden or WIDTH,) * (self.depth or DEPTH)
        return {name: value for name, value in given.items() if value is not None}

    def how(self) -> dict[str, Any]:
        """What every learner's configuration takes, by name."""
        from toptail.lab.training.defaults import log_every, on_gpu

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
        """One configuration per critic; a setting that none of them has is refused."""
        from toptail.lab.critics.full import setting_names

        given = self.settings()
        configs = [
            RunConfig(
                task=task,
                critic=critic,
                steps=self.steps,
                reward=self.reward or RunConfig.reward,
                settings=tuple(given.items()),
                **self.how(),
            )
            for critic in critics
        ]
        learners = [config.build() for config in configs]
        known = {name for learner in learners for name in setting_names(learner)}
        known |= {"reward"} if any(learner.reads_rewards for learner in learners) else set()
        for name in {*given, *(("reward",) if self.reward else ())} - known:
            raise InputError(
                f"{option(name)} has no effect on {', '.join(critics)}: leave it out, or train a "
                "critic that has this setting."
            )
        return configs
