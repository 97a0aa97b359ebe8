"""The two contracts: `Learner`, which the trainer knows, and `Critic`, a learner with readouts.

A learner is settings and pure functions of its parameters. `TrainedCritic` scores rows with one
readout of a critic and its trained parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

Params: TypeAlias = dict[str, Any]
"""A tree of float32 arrays."""

Info: TypeAlias = dict[str, jax.Array]
"""Scalars that the trainer logs in addition to the loss."""

TARGET = "target"
"""Name of a target network's parameters, which `after_update` moves; no gradient reaches them."""
FROZEN = "frozen"
"""Name of another run's parameters, which never change."""


class Batch(NamedTuple):
    """The rows that a loss is computed from; a whole data set is a batch of n rows."""

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
    """[B, goal_dim] goals drawn from the whole data set, independent of the row."""
    rows: jax.Array | None = None
    """[B] number of each transition's row in the data set; the next state is in the next row."""
    goal_rows: jax.Array | None = None
    """[B] number of the row of each contrastive positive, in the same trajectory."""
    value_goal_rows: jax.Array | None = None
    """[B] number of the row of each value goal."""
    further: Mapping[str, jax.Array] | None = None
    """The columns of `Learner.further`, by name."""

    @property
    def td_goals(self) -> jax.Array:
        """[B, goal_dim] the goals of the TD loss."""
        return self.goals if self.value_goals is None else self.value_goals


class Learner(ABC):
    """A loss with parameters. Subclasses are frozen dataclasses of settings.

    A learner holds no parameters: its methods are pure functions of them, so that the trainer can
    scan over steps and map over seeds. Learners with equal settings are equal, and share compiled
    programs.
    """

    name: ClassVar[str]
    """Its name in tables, files and flags."""
    reads_rewards: ClassVar[bool] = False
    """Whether the loss reads rewards: then the kind of reward is one of its settings."""
    reads_positives: ClassVar[bool] = True
    """Whether the loss reads the contrastive positives (``batch.goals``)."""

    def settings(self) -> dict[str, Any]:
        """Every setting by name; nested settings are dictionaries."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @abstractmethod
    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh parameters."""

    @abstractmethod
    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Training loss of a batch, and scalars to log.

        ``key`` differs from step to step: a loss that samples draws from it.
        """

    def further(self, key: jax.Array, data: Any, batch: Batch) -> dict[str, jax.Array]:
        """Further columns of a batch, which the loss reads by `column`; by default none.

        ``data`` is the whole data set (`toptail.lab.training.data.OfflineData`), ``batch.rows`` and
        ``batch.goal_rows`` say which of its rows were drawn, and draws come from ``key``.
        """
        del key, data, batch
        return {}

    def compute_params(self, params: Params) -> Params:
        """The copy of the parameters that the loss computes with; by default no copy.

        A learner with bfloat16 products returns its kernels in bfloat16. The trainer makes this
        copy in the pass that updates the parameters, where it costs almost nothing.
        """
        return params

    def after_update(self, params: Params) -> Params:
        """Parameters after an optimizer step, with the target network moved; by default unchanged.

        A learner with a target network keeps it in ``params`` under `TARGET`, and reads it behind
        a stop_gradient.
        """
        return params

    def held_out(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> dict[str, jax.Array]:
        """Numbers of held-out rows [n, dim] that the trainer logs; by default none.

        ``score`` [n] is compared with the distance of the goals; every other entry is a scalar.
        """
        del params, states, actions, goals
        return {}


def column(batch: Batch, name: str) -> jax.Array:
    """An optional or further column of a batch; a ValueError where the batch does not have it."""
    found: jax.Array | None = getattr(batch, name, None)
    if found is None and batch.further is not None:
        found = batch.further.get(name)
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
    """The parameters without a target network and without those of another run."""
    return {name: value for name, value in params.items() if name not in (TARGET, FROZEN)}


def parameter_count(params: Params) -> int:
    """Number of trained scalars: see `trained_only`."""
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(trained_only(params)))


Read: TypeAlias = Callable[[Params, jax.Array, jax.Array, jax.Array], jax.Array]
"""(params, states [..., s], actions [..., a], goals [..., g]) -> scores [...], larger is better.

The leading axes broadcast: one goal [m, 1, g] serves all candidates [m, n, a] of its query.
"""


class Factors(NamedTuple):
    """A readout as a function of two embeddings: phi of a pair (s, a), and psi of a goal.

    Triples that share a pair or a goal share its embedding. Retrieval, for example, scores 3,000
    pairs with 49 goals each, but needs only 3,000 goal embeddings.
    """

    embed_pairs: Callable[[Params, jax.Array, jax.Array], jax.Array]
    """(params, states [n, s], actions [n, a]) -> phi [members, n, d]."""
    embed_goals: Callable[[Params, jax.Array], jax.Array]
    """(params, goals [n, g]) -> psi [members, n, d]."""
    combine: Callable[[Params, jax.Array, jax.Array], jax.Array]
    """(params, phi [members, n, d], psi [members, n, d]) -> scores [n] of matching rows."""


class Critic(Learner):
    """A learner that scores actions by one or more readouts.

    Its file has an ``ENTRY`` that classifies every readout: see `toptail.lab.critics.registry`.

    A critic on the embeddings of another run has a field ``base: Critic | None``. It is trained
    with ``toptail train --on RUNS/TASK/CRITIC``: ``base`` is then the critic of that run, and
    ``params[FROZEN]`` is what `frozen` makes of its trained parameters, of the same seed; `init`
    returns arrays of the same shapes in that place. With ``--embed`` the base is None, and
    embeddings that were made elsewhere stand beside the rows of the data.
    """

    deployed: ClassVar[str]
    """Name of the readout that selection maximizes by default."""

    @abstractmethod
    def readouts(self) -> Mapping[str, Read]:
        """Every scalar that can be read from the trained parameters, by name."""

    def frozen(self, params: Params, data: Any) -> Params:
        """What stands under `FROZEN`, from the trained parameters of the other run.

        ``data`` is the whole data set (`toptail.lab.training.data.OfflineData`).
        """
        del data
        return params

    def factors(self, readout: str) -> Factors | None:
        """The two factors of a readout; None, the default, where it has none."""
        del readout
        return None

    def score(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """The deployed readout of rows [..., dim]."""
        return self.readouts()[self.deployed](params, states, actions, goals)

    def held_out(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> dict[str, jax.Array]:
        return {"score": self.score(params, states, actions, goals)}


CPU_BLOCK = 512
"""Rows that a CPU scores at once: 256 and 1,024 are about as fast, 4,096 is much slower."""


@dataclass(frozen=True)
class TrainedCritic:
    """A critic with its parameters: scores rows of NumPy arrays."""

    critic: Critic
    params: Params
    readout: str | None = None
    """Name of the readout to score with; the deployed one by default."""

    def score(self, states: ArrayLike, actions: ArrayLike, goals: ArrayLike) -> NDArray[np.float32]:
        """Score rows whose leading axes broadcast; larger is better."""
        read = _compiled(self.critic, self._read)
        return np.asarray(read(self.params, *_float32(states, actions, goals)))

    def embed_goals(self, goals: ArrayLike) -> jax.Array | None:
        """Psi of goals [n, g], for `score_pairs`; None if the readout has no factors."""
        embed = _compiled_goals(self.critic, self._read)
        return None if embed is None else embed(self.params, *_float32(goals))

    def score_pairs(
        self, states: ArrayLike, actions: ArrayLike, psi: jax.Array, index: ArrayLike
    ) -> NDArray[np.float32]:
        """Score pairs [p, s] and [p, a] with goals whose embeddings ``psi`` `embed_goals` gave.

        Each pair is embedded once; ``index`` [n, 2] has the numbers of the pair and of the goal of
        each score [n].
        """
        read = _compiled_pairs(self.critic, self._read)
        rows = _float32(states, actions)
        return np.asarray(read(self.params, *rows, psi, jnp.asarray(index, dtype=jnp.int32)))

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
        params: Params, states: jax.Array, actions: jax.Array, psi: jax.Array, index: jax.Array
    ) -> jax.Array:
        phi = in_blocks(factors.embed_pairs, axis=1)(params, states, actions)

        def combine(params: Params, index: jax.Array) -> jax.Array:
            pair, goal = index.T
            return factors.combine(params, phi[:, pair], psi[:, goal])

        return in_blocks(combine)(params, index)

    return jax.jit(score)


def in_blocks(read: Callable[..., jax.Array], axis: int = 0) -> Callable[..., jax.Array]:
    """The same function of rows [n, dim], computed on a CPU in blocks of `CPU_BLOCK` rows.

    The activations of a block stay in the cache; all rows at once would go through memory at every
    layer, which takes twice as long. ``axis`` is the axis of the rows in the results.
    """

    def score(params: Params, *rows: jax.Array) -> jax.Array:
        n = len(rows[0]) if rows[0].ndim == 2 else 0
        alike = all(x.ndim == 2 and len(x) == n for x in rows)
        if jax.default_backend() != "cpu" or not alike or n <= CPU_BLOCK:
            return read(params, *rows)
        missing, count = -n % CPU_BLOCK, -(-n // CPU_BLOCK)
        blocks = tuple(
            jnp.pad(x, [(0, missing), (0, 0)]).reshape(count, CPU_BLOCK, x.shape[-1]) for x in rows
        )
        results = jax.lax.map(lambda block: read(params, *block), blocks)
        side_by_side = jnp.moveaxis(results, 0, axis)
        before, after = side_by_side.shape[:axis], side_by_side.shape[axis + 2 :]
        joined = side_by_side.reshape(*before, -1, *after)
        return jax.lax.slice_in_dim(joined, 0, n, axis=axis)

    return score
