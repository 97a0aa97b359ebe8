"""What every critic is: a learner with scalars to read, and how trained ones are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

Params: TypeAlias = dict[str, Any]
"""A tree of float32 arrays."""

Info: TypeAlias = dict[str, jax.Array]
"""Scalars worth a curve: what the trainer logs beside the loss."""

TARGET = "target"
"""Parameters under this name follow the others: no gradient, no optimizer state."""


LATER: Final = {"recorded": "where it is not the default"}
"""Marks a setting that older records do not have: at its default nothing says that it exists."""


def recorded(settings: Any) -> dict[str, Any]:
    """Every field of a dataclass of settings and of those inside it, less `LATER` defaults."""
    found = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.metadata != LATER or value != field.default:
            found[field.name] = recorded(value) if is_dataclass(value) else value
    return found


class Batch(NamedTuple):
    """What a loss sees. A whole data set has the same shape with n rows in place of B."""

    states: jax.Array
    """[B, state_dim]"""

    actions: jax.Array
    """[B, action_dim]"""

    goals: jax.Array
    """[B, goal_dim] the contrastive positive of each row; the other rows' goals are negatives."""

    rewards: jax.Array
    """[B] the reward of the step towards the value goal."""

    value_goals: jax.Array | None = None
    """[B, goal_dim] the goal that the reward was computed for; None if it is the positive."""

    next_states: jax.Array | None = None
    """[B, state_dim] the state after the action; None where episodes have one step."""

    masks: jax.Array | None = None
    """[B] 0 where the episode ends with this step (the goal is reached), else 1."""

    offsets: jax.Array | None = None
    """[B] steps from the state to its contrastive positive."""

    next_goals: jax.Array | None = None
    """[B, goal_dim] the state after the action, as a goal."""

    random_goals: jax.Array | None = None
    """[B, goal_dim] goals of the whole data set, drawn without regard to the row."""

    @property
    def td_goals(self) -> jax.Array:
        """[B, goal_dim] the goals of the TD loss."""
        return self.goals if self.value_goals is None else self.value_goals


class Learner(ABC):
    """Something with parameters and a loss; equal settings are equal learners.

    Subclasses are frozen dataclasses. A learner holds no parameters. Everything it does is a pure
    function of them, so that the trainer can scan it over steps and map it over seeds without
    knowing what it is.
    """

    name: ClassVar[str]
    """Its name in tables, files and flags."""

    reads_rewards: ClassVar[bool] = False
    """Whether the batch's rewards have a part in its loss, so that the reward is its setting."""

    reads_positives: ClassVar[bool] = True
    """Whether the batch's contrastive positives have a part in its loss."""

    @abstractmethod
    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh parameters."""

    @abstractmethod
    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Training loss of a batch, and scalars to log."""

    def compute_params(self, params: Params) -> Params:
        """The parameters as the loss wants them; by default as they are.

        A learner with bfloat16 products takes its kernels in bfloat16. The trainer makes this copy
        in the same pass that updates the parameters, where it costs almost nothing.
        """
        return params

    def after_update(self, params: Params) -> Params:
        """Whatever moves without a gradient, after each optimizer step.

        Nothing by default. A learner with a target network keeps it inside ``params`` under
        `TARGET`, behind a stop_gradient, and moves it here.
        """
        return params

    def held_out(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> dict[str, jax.Array]:
        """What is worth a curve on held-out rows [n, dim]: nothing by default.

        ``score`` [n] is compared with how near the goals are; anything else is a scalar.
        """
        del params, states, actions, goals
        return {}


def column(batch: Batch, name: str) -> jax.Array:
    """A column that not every batch has."""
    found: jax.Array | None = getattr(batch, name)
    if found is None:
        raise ValueError(f"This loss needs batch.{name}.")
    return found


def half_kernels(params: Params) -> Params:
    """A copy with every matrix (``kernel...``) in bfloat16."""
    return {
        name: half_kernels(value)
        if isinstance(value, dict)
        else (value.astype(jnp.bfloat16) if name.startswith("kernel") else value)
        for name, value in params.items()
    }


def trained_only(params: Params) -> Params:
    """The parameters without those that follow the others."""
    return {name: value for name, value in params.items() if name != TARGET}


def parameter_count(params: Params) -> int:
    """Count the trained scalars of a parameter tree: target networks do not count."""
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(trained_only(params)))


Read: TypeAlias = Callable[[Params, jax.Array, jax.Array, jax.Array], jax.Array]
"""(params, states [..., s], actions [..., a], goals [..., g]) -> scores [...], larger is better.

The leading axes broadcast: one goal [m, 1, g] serves all candidates [m, n, a] of its query.
"""


class Factors(NamedTuple):
    """A readout as a function of two factors: phi of a pair (s, a), and psi of a goal.

    Triples that share a pair or a goal share its factor: retrieval asks for 3,000 pairs towards
    49 goals each, but those are the goals of the 3,000.
    """

    embed_pairs: Callable[[Params, jax.Array, jax.Array], jax.Array]
    """(params, states [n, s], actions [n, a]) -> phi [members, n, d]."""

    embed_goals: Callable[[Params, jax.Array], jax.Array]
    """(params, goals [n, g]) -> psi [members, n, d]."""

    combine: Callable[[Params, jax.Array, jax.Array], jax.Array]
    """(params, phi [members, n, d], psi [members, n, d]) -> scores [n] of matching rows."""


class Critic(Learner):
    """A learner whose parameters say what an action is worth, by one or more readouts.

    Its file has an ``ENTRY`` that says what each of them is: see `toptail.lab.critics.registry`.
    """

    deployed: ClassVar[str]
    """The readout that selection maximizes unless another one is asked for."""

    @abstractmethod
    def readouts(self) -> Mapping[str, Read]:
        """Every scalar that can be read from the trained parameters, by name."""

    def factors(self, readout: str) -> Factors | None:
        """The two factors of a readout; None, as by default, if it reads triples whole."""
        del readout
        return None

    def score(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Read the deployed scalar."""
        return self.readouts()[self.deployed](params, states, actions, goals)

    def held_out(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> dict[str, jax.Array]:
        """The deployed scalar."""
        return {"score": self.score(params, states, actions, goals)}


CPU_BLOCK = 512
"""Rows that a CPU reads at once: 1,024 and 256 are about as fast, 4,096 and more much slower."""


@dataclass(frozen=True)
class TrainedCritic:
    """A critic with its parameters, as anything that selects or audits wants to see it."""

    critic: Critic
    """The family and its settings."""

    params: Params
    """One seed's parameters."""

    readout: str | None = None
    """Name of the readout to score with; the deployed one unless given."""

    def score(self, states: ArrayLike, actions: ArrayLike, goals: ArrayLike) -> NDArray[np.float32]:
        """Score rows whose leading axes broadcast; larger is better."""
        read = _compiled(self.critic, self._read)
        return np.asarray(read(self.params, *_float32(states, actions, goals)))

    def embed_goals(self, goals: ArrayLike) -> jax.Array | None:
        """Psi of goals [n, g], for `score_pairs`; None if the readout has no factors."""
        embed = _compiled_goals(self.critic, self._read)
        return None if embed is None else embed(self.params, *_float32(goals))

    def score_pairs(
        self, states: ArrayLike, actions: ArrayLike, psi: jax.Array, asked: ArrayLike
    ) -> NDArray[np.float32]:
        """Score pairs [p, s] and [p, a] towards goals that `embed_goals` gave ``psi`` for.

        Each pair is embedded once; ``asked`` [n, 2] has the numbers of a pair and of a goal for
        each of the scores [n].
        """
        read = _compiled_pairs(self.critic, self._read)
        rows = _float32(states, actions)
        return np.asarray(read(self.params, *rows, psi, jnp.asarray(asked, dtype=jnp.int32)))

    @property
    def _read(self) -> str:
        return self.readout or self.critic.deployed


def _float32(*rows: ArrayLike) -> list[jax.Array]:
    return [jnp.asarray(x, dtype=jnp.float32) for x in rows]


@lru_cache(maxsize=64)
def _compiled(critic: Critic, readout: str) -> Read:
    return jax.jit(in_blocks(critic.readouts()[readout]))


@lru_cache(maxsize=64)
def _compiled_goals(critic: Critic, readout: str) -> Callable[..., jax.Array] | None:
    factors = critic.factors(readout)
    return None if factors is None else jax.jit(in_blocks(factors.embed_goals, axis=1))


@lru_cache(maxsize=64)
def _compiled_pairs(critic: Critic, readout: str) -> Callable[..., jax.Array]:
    factors = critic.factors(readout)
    if factors is None:
        raise ValueError(f"The readout {readout} of {critic.name} has no factors.")

    def score(
        params: Params, states: jax.Array, actions: jax.Array, psi: jax.Array, asked: jax.Array
    ) -> jax.Array:
        phi = in_blocks(factors.embed_pairs, axis=1)(params, states, actions)

        def combine(params: Params, asked: jax.Array) -> jax.Array:
            pair, goal = asked.T
            return factors.combine(params, phi[:, pair], psi[:, goal])

        return in_blocks(combine)(params, asked)

    return jax.jit(score)


def in_blocks(read: Callable[..., jax.Array], axis: int = 0) -> Callable[..., jax.Array]:
    """The same function of rows, which on a CPU takes many rows [n, dim] a few at a time.

    The activations of a block stay in the cache; those of all rows at once would go through
    memory at every layer, which takes twice as long. ``axis`` of the results is that of the rows.
    """

    def score(params: Params, *rows: jax.Array) -> jax.Array:
        n = len(rows[0]) if rows[0].ndim == 2 else 0
        alike = all(x.ndim == 2 and len(x) == n for x in rows)
        if jax.default_backend() != "cpu" or not alike or n <= CPU_BLOCK:
            return read(params, *rows)
        missing = -n % CPU_BLOCK
        blocks = tuple(
            jnp.pad(x, [(0, missing), (0, 0)]).reshape(-1, CPU_BLOCK, x.shape[-1]) for x in rows
        )
        results = jax.lax.map(lambda block: read(params, *block), blocks)
        side_by_side = jnp.moveaxis(results, 0, axis)
        before, after = side_by_side.shape[:axis], side_by_side.shape[axis + 2 :]
        joined = side_by_side.reshape(*before, -1, *after)
        return jax.lax.slice_in_dim(joined, 0, n, axis=axis)

    return score
