"""What further critics may need: members of embeddings, several outputs, actions, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.examples import registered
from tests.critics.full_cases import DIMS, KEY, SLOW, double, random_batch, random_params
from tests.training.toy import toy_config, toy_data, toy_dataset
from toptail.errors import InputError
from toptail.lab.critics.base import Batch, Info, Params, column
from toptail.lab.critics.embedding import EmbeddingCritic, Scalar
from toptail.lab.critics.joint_mlp import JointMLP, ensemble_readouts
from toptail.lab.critics.networks import StackedEncoders, inner, join
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.registry import with_settings
from toptail.lab.training.config import RunOptions, labelled
from toptail.lab.training.data import GoalSampling
from toptail.lab.training.loop import TrainConfig, init_state, run_steps, train_step


@dataclass(frozen=True)
class Ensemble(Raw):
    """The raw critic with the lower readouts of its members."""

    beta: float = SLOW.beta

    def scalars(self) -> Mapping[str, Scalar]:
        members = ensemble_readouts(lambda _, e: inner(e.phi, e.psi), self.beta, "f")
        return {**super().scalars(), **members}


@pytest.mark.parametrize("members", [2, 10])
def test_an_ensemble_of_embeddings_has_a_minimum_and_a_lower_bound(members: int) -> None:
    critic = with_settings(Ensemble(), {"hidden": (16, 16), "embed_dim": 8, "ensemble": members})
    params, batch = random_params(critic), random_batch()
    rows = (batch.states, batch.actions, batch.goals)
    found = {name: read(params, *rows) for name, read in critic.readouts().items()}
    wide = slow.Settings(members=members)
    phi, psi = slow.embed(double(params), wide, *(np.asarray(x, np.float64) for x in rows))
    scores = (phi * psi).sum(axis=-1)
    assert scores.shape == (members, len(batch.states))
    spread = np.sqrt(((scores - scores.mean(0)) ** 2).mean(0))
    for name, expected in {
        "f": scores.mean(0),
        "f_min": scores.min(0),
        "f_lcb": scores.mean(0) - spread,
    }.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-4)
        assert critic.factors(name) is not None


@dataclass(frozen=True)
class Ordinal(JointMLP):
    """Classes of temporal distance: less than 2, 4, 8 steps, or more."""

    name: ClassVar[str] = "ordinal"
    deployed: ClassVar[str] = "near"
    width: ClassVar[int] = 4

    def members(self, params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        classes = -jnp.arange(float(self.width))
        return jnp.sum(jax.nn.softmax(self.outputs(params, s, a, g)) * classes, axis=-1)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        steps = jnp.searchsorted(jnp.array([2.0, 4.0, 8.0]), column(batch, "offsets"), side="right")
        logits = self.outputs(params, batch.states, batch.actions, batch.goals)
        own = jnp.take_along_axis(jax.nn.log_softmax(logits), steps[None, :, None], axis=-1)
        return -jnp.mean(own), {}


def test_a_network_may_have_several_outputs_and_reads_the_temporal_distance() -> None:
    critic = Ordinal(hidden=(32,))
    data = toy_data().rows
    config = TrainConfig(critic, 400, 64, 1e-2, GoalSampling(positive_window=12))
    state = init_state(config, KEY, data)
    assert critic.outputs(state.params, *(jnp.zeros((5, 2)),) * 3).shape == (2, 5, 4)
    after, info = jax.jit(lambda s: run_steps(config, s, data, config.steps))(state)
    assert float(info["loss"][-50:].mean()) < 0.95 * float(info["loss"][:50].mean())
    train = toy_dataset().train
    rows = np.arange(len(train)).reshape(-1, 20)[:, 0]
    near, far = (
        critic.score(after.params, *map(jnp.asarray, (train.observations[rows],
                     train.actions[rows], train.observations[rows + d])))
        for d in (1, 12)
    )  # fmt: skip
    assert float(near.mean()) > float(far.mean())


@dataclass(frozen=True)
class ActionNegatives(EmbeddingCritic):
    """Contrast of the row's own action with random actions at the same state and goal."""

    name: ClassVar[str] = "action_negatives"
    deployed: ClassVar[str] = "f_raw"

    drawn: int = 3

    def logits(self, params: Params, batch: Batch, others: jax.Array) -> jax.Array:
        """The own action's logit and those of ``others`` [drawn, B, a]: [members, 1 + drawn, B]."""
        actions = jnp.concatenate([batch.actions[None], others])
        pairs = join(batch.states[None], actions)
        flat = pairs.reshape(-1, pairs.shape[-1])
        phi = self.encoders.side(params, "phi", flat)
        psi = self.encoders.side(params, "psi", batch.goals)
        return inner(phi.reshape(len(phi), *actions.shape[:2], -1), psi[:, None])

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        others = jax.random.uniform(key, (self.drawn, *batch.actions.shape), minval=-1, maxval=1)
        logits = self.logits(params, batch, others)
        return jnp.mean(jax.nn.logsumexp(logits, axis=1) - logits[:, 0]), {}


def test_negatives_at_other_actions_share_the_embedding_of_the_goal() -> None:
    encoders = StackedEncoders((16, 16), 8, SLOW.members)
    critic = ActionNegatives(encoders)
    params, batch = critic.init(KEY, *DIMS), random_batch()
    others = jax.random.normal(KEY, (3, *batch.actions.shape))
    found = critic.logits(params, batch, others)
    for i, actions in enumerate((batch.actions, *others)):
        e = critic.embed(params, batch.states, actions, batch.goals)
        np.testing.assert_allclose(found[:, i], inner(e.phi, e.psi), rtol=1e-4, atol=1e-5)
    config = TrainConfig(critic, batch_size=8)
    state, info = train_step(config, init_state(config, KEY, batch), batch)
    assert np.isfinite(float(info["loss"]))
    assert int(state.step) == 1


def test_a_setting_that_only_one_critic_has_stands_in_labels() -> None:
    options = RunOptions(steps=4, log_every=2, batch_size=8)
    with registered("conservative"):
        config = options.config("walks", "conservative[penalty=0.25,drawn=2,hidden=8]")
        settings = config.build().settings()
        assert (settings["penalty"], settings["drawn"], settings["hidden"]) == (0.25, 2, (8, 8, 8))
        assert config.name == "conservative[drawn=2,hidden=8,penalty=0.25]"
        assert labelled(config, config.name).content == config.content
        with pytest.raises(InputError, match="drawn is 'x', not a number"):
            options.config("walks", "conservative[drawn=x]")
        with pytest.raises(InputError, match="has no effect on raw"):
            options.config("walks", "raw[penalty=1]")
    with pytest.raises(InputError, match="no critic has a setting 'penalty'"):
        options.config("walks", "raw[penalty=1]")
    assert options.config("walks", "nce_mlp[negatives=15]").build().settings()["negatives"] == 15


def test_numbers_beside_the_rows_are_part_of_the_data() -> None:
    plain = toy_data()
    extra = np.arange(2.0 * len(plain.rows.actions), dtype=np.float32).reshape(-1, 2)
    data = plain.with_extra(extra, made="elsewhere")
    assert data.sha256 == plain.sha256
    assert data.extra["made"] == "elsewhere"
    assert plain.extra == {}
    assert data.extra["sha256"] != plain.with_extra(extra + 1).extra["sha256"]
    assert data.rows.extra is not None
    np.testing.assert_array_equal(data.rows.extra, extra)

    class Beside(Raw):
        def further(self, key: jax.Array, data: object, batch: Batch) -> dict[str, jax.Array]:
            del key
            return {"beside": data.extra[column(batch, "rows")]}  # type: ignore[attr-defined]

        def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
            loss, _ = super().loss(params, batch, key)
            return loss, {name: column(batch, name) for name in ("rows", "beside")}

    critic = with_settings(Beside(), dict(toy_config().settings))
    config = TrainConfig(critic, batch_size=16, sample=GoalSampling())
    _, info = train_step(config, init_state(config, KEY, data.rows), data.rows)
    np.testing.assert_array_equal(info["beside"], extra[np.asarray(info["rows"])])
    with pytest.raises(InputError, match="3 rows of further numbers for 200 rows"):
        plain.with_extra(extra[:3])
