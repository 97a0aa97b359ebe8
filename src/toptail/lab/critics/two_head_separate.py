"""Two heads apart: a cosine critic and a TD-Q in one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax

from toptail.lab.critics.base import TARGET, Batch, Info, Params, Read
from toptail.lab.critics.embedding import CosineContrast
from toptail.lab.critics.joint_mlp import ensemble_readouts
from toptail.lab.critics.networks import units
from toptail.lab.critics.registry import Entry, Readout
from toptail.lab.critics.tdq import TDQ

ENTRY = Entry(
    name="two_head_separate",
    title="Two heads, separate",
    place=5,
    group="two_head",
    network="mlp",
    deployed="q_td",
    readouts=(
        Readout("f_raw", "contrastive"),
        Readout("f_cos", "contrastive", scorer=True),
        Readout("phi_norm", "contrastive"),
        *Readout.ensemble("q_td", "bellman", value=True, title="Two heads, separate: q_td"),
    ),
    ideal="q_star",
)


@dataclass(frozen=True)
class TwoHeadSeparate(CosineContrast):
    """A cosine critic and a TD-Q, sharing nothing but the batch."""

    name: ClassVar[str] = "two_head_separate"
    deployed: ClassVar[str] = "q_td"
    reads_rewards: ClassVar[bool] = True

    gciql: TDQ = TDQ()
    """The Bellman head with its own encoder."""
    td_weight: float = 1.0
    """Weight of the Bellman loss beside the contrastive one."""

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        key_cosine, key_value = jax.random.split(key)
        cosine = super().init(key_cosine, state_dim, action_dim, goal_dim)
        value = self.gciql.init(key_value, state_dim, action_dim, goal_dim)
        return {**cosine, TARGET: value.pop(TARGET), "value": value}

    def _value(self, params: Params) -> Params:
        return {**params["value"], TARGET: params[TARGET]}

    def after_update(self, params: Params) -> Params:
        return {**params, TARGET: self.gciql.after_update(self._value(params))[TARGET]}

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        contrast, info = self.contrast_units(params, units(e))
        td, td_info = self.gciql.loss(self._value(params), batch, key)
        return contrast + self.td_weight * td, {"contrast": contrast, **info, **td_info}

    def readouts(self) -> Mapping[str, Read]:
        def through(read: Read) -> Read:
            return lambda params, s, a, g: read(self._value(params), s, a, g)

        values = ensemble_readouts(through(self.gciql.members), self.gciql.beta, "q_td")
        return {**super().readouts(), **values}
