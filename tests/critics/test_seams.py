"""What further critics may need: members of embeddings, settings, numbers beside the rows."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.full_cases import KEY, double, quick_jit, random_batch, random_params
from tests.training.toy import toy_config, toy_data
from toptail.errors import InputError
from toptail.lab.critics.base import Batch, Info, Params, column
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.registry import with_settings
from toptail.lab.training.config import RunOptions, labelled
from toptail.lab.training.data import GoalSampling
from toptail.lab.training.loop import TrainConfig, init_state, train_step


@pytest.mark.parametrize("members", [2, 10])
def test_an_ensemble_of_embeddings_has_a_minimum_and_a_lower_bound(members: int) -> None:
    critic = with_settings(Raw(), {"hidden": (16, 16), "embed_dim": 8, "ensemble": members})
    params, batch = random_params(critic), random_batch()
    rows = (batch.states, batch.actions, batch.goals)
    readouts = critic.readouts()
    found = quick_jit(lambda *at: {name: of(params, *at) for name, of in readouts.items()})(*rows)
    wide = slow.Settings(members=members)
    phi, psi = slow.embed(double(params), wide, *(np.asarray(x, np.float64) for x in rows))
    scores = (phi * psi).sum(axis=-1)
    assert scores.shape == (members, len(batch.states))
    spread = np.sqrt(((scores - scores.mean(0)) ** 2).mean(0))
    for name, expected in {
        "f_raw": scores.mean(0),
        "f_raw_min": scores.min(0),
        "f_raw_lcb": scores.mean(0) - spread,
    }.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-4)
        assert critic.factors(name) is not None


def test_a_setting_that_only_one_critic_has_stands_in_labels() -> None:
    options = RunOptions(steps=4, log_every=2, batch_size=8)
    config = options.config("walks", "conservative[penalty=0.25,drawn=2,hidden=8]")
    settings = config.build().settings()
    assert (settings["penalty"], settings["drawn"], settings["hidden"]) == (0.25, 2, (8, 8, 8))
    assert config.name == "conservative[drawn=2,hidden=8,penalty=0.25]"
    assert labelled(config, config.name).content == config.content
    with pytest.raises(InputError, match="drawn is 'x', not a number"):
        options.config("walks", "conservative[drawn=x]")
    with pytest.raises(InputError, match="has no effect on raw"):
        options.config("walks", "raw[penalty=1]")
    with pytest.raises(InputError, match="no critic has a setting 'patience'"):
        options.config("walks", "raw[patience=1]")
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
    rows = data.rows
    step = quick_jit(lambda key: train_step(config, init_state(config, key, rows), rows)[1])
    info = step(KEY)
    np.testing.assert_array_equal(info["beside"], extra[np.asarray(info["rows"])])
    with pytest.raises(InputError, match="3 rows of further numbers for 200 rows"):
        plain.with_extra(extra[:3])
