"""Settings of a training: as flags, in labels, in records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paper.tests.semantics.fake_runs import write_run
from tests.critics.full_cases import DIMS, make, random_batch, random_params
from tests.training.toy import toy_config, toy_data
from toptail.errors import InputError
from toptail.lab.critics.losses import binary_nce
from toptail.lab.critics.networks import all_pairs
from toptail.lab.scorers.runs import critics_in, of_run, of_runs
from toptail.lab.training.config import RunConfig, RunOptions, labelled
from toptail.lab.training.data import GoalSampling

SMALL = {"hidden": 8, "depth": 1, "embed_dim": 4, "ensemble": 1}


def options(**given: Any) -> RunOptions:
    return RunOptions(**{"steps": 14, "batch_size": 16, "log_every": 3, **given})


def test_a_label_has_settings_of_its_own_and_a_folder_of_its_own() -> None:
    plain, warm = options(**SMALL).configs(
        "walks", ["cosine", "cosine[temperature=0.20,hidden=16]"]
    )
    assert plain.name == "cosine"
    assert warm.name == "cosine[hidden=16,temperature=0.2]"
    assert dict(warm.settings)["temperature"] == 0.2
    assert dict(warm.settings)["hidden"] == (16,)
    assert "label" not in warm.content
    assert replace(warm, label="").content == warm.content


@pytest.mark.parametrize(
    ("label", "field", "value"),
    [
        ("raw[steps=7]", "steps", 7),
        ("raw[batch_size=8]", "batch_size", 8),
        ("tdq[gamma=0.9]", "gamma", 0.9),
        ("tdq[reward=0_1]", "reward", "0/1"),
    ],
)
def test_settings_of_the_run_stand_in_labels_too(label: str, field: str, value: object) -> None:
    config = options(**SMALL).config("walks", label)
    assert getattr(config, field) == value


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("raw[temperature=0.1]", r"temperature=\.\.\. has no effect on raw"),
        ("raw[colour=1]", "no critic has a setting 'colour'"),
        ("raw[log_every=1]", "no critic has a setting 'log_every'"),
        ("cosine[temperature=warm]", "temperature is 'warm', not a number"),
        ("raw[layer_norm=maybe]", "layer_norm is 'maybe', not on or off"),
        ("tdq[positive_gamma=0.9]", r"positive_gamma=\.\.\. has no effect on tdq"),
        ("tdq[positive_window=9]", r"positive_window=\.\.\. has no effect on tdq"),
        ("raw[current=0]", r"current=\.\.\. has no effect on raw"),
        ("cosine[positive_weight=2,contrast=symmetric_info_nce]", "a weight of binary NCE"),
    ],
)
def test_a_label_that_cannot_be_trained_is_refused(label: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        options().configs("walks", [label])


def test_other_settings_are_recorded_and_come_back() -> None:
    given = {"layer_norm": False, "current": 0.0, "future": 1.0}
    config = toy_config(
        critic="tdq", gamma=0.9, settings=tuple({**dict(toy_config().settings), **given}.items())
    )
    stored = json.loads(json.dumps(config.content))
    assert stored["critic_fields"]["layer_norm"] is False
    assert stored["sampler_fields"]["current"] == 0.0
    assert RunConfig.from_content(stored).content == config.content


def test_a_positives_discount_of_its_own_changes_the_positives_alone() -> None:
    data, key = toy_data().rows, jax.random.key(0)
    same, near = (GoalSampling(positive_gamma=g).rows(key, data, 256) for g in (None, 0.5))
    np.testing.assert_array_equal(same.value_goal, near.value_goal)
    np.testing.assert_array_equal(same.row, near.row)
    steps = (np.asarray(x.goal - x.row) for x in (same, near))
    longer, shorter = steps
    assert shorter.mean() < longer.mean()
    assert (shorter <= longer).all()


def test_positives_are_uniform_or_geometric_and_a_window_is_a_count() -> None:
    with pytest.raises(InputError, match="positives are uniform or geometric"):
        GoalSampling(positive_window=9, positive_gamma=0.9)
    with pytest.raises(InputError, match="positive_window"):
        GoalSampling(positive_window=0)


def test_uniform_positives_are_as_likely_at_every_distance_of_the_window() -> None:
    data, key = toy_data().rows, jax.random.key(0)
    geometric, uniform = (
        GoalSampling(positive_window=window).rows(key, data, 20_000) for window in (None, 4)
    )
    np.testing.assert_array_equal(geometric.value_goal, uniform.value_goal)
    row, goal = np.asarray(uniform.row), np.asarray(uniform.goal)
    left = np.minimum(np.asarray(data.last)[row] - row, 4)
    for most in range(1, 5):
        there = left == most
        shares = np.bincount(goal[there] - row[there], minlength=most + 1) / there.sum()
        assert shares[0] == 0
        np.testing.assert_allclose(shares[1:], 1 / most, atol=5 / np.sqrt(there.sum()))


@pytest.mark.parametrize("critic", ["raw", "cosine"])
def test_a_positive_that_counts_twice_is_the_loss_of_a_diagonal_that_does(critic: str) -> None:
    one, three = (make(critic, positive_weight=w) for w in (1.0, 3.0))
    params, batch = random_params(one), random_batch()
    losses = [c.loss(params, batch, jax.random.key(0))[0] for c in (one, three)]
    e = one.embed(params, batch.states, batch.actions, batch.goals)  # type: ignore[attr-defined]
    if critic == "raw":
        logits = all_pairs(e.phi, e.psi) / one.encoders.embed_dim**0.5  # type: ignore[attr-defined]
    else:
        phi, psi = (x / jnp.linalg.norm(x, axis=-1, keepdims=True) for x in e)
        logits = all_pairs(phi, psi) / one.temperature  # type: ignore[attr-defined]
    diagonal = np.asarray(jnp.diagonal(logits, axis1=-2, axis2=-1), np.float64)
    more = 2 * np.log1p(np.exp(-diagonal)).mean() / logits.shape[-1]
    assert float(losses[0]) == pytest.approx(float(binary_nce(logits)[0]), rel=1e-5)
    assert float(losses[1]) == pytest.approx(float(losses[0]) + more, rel=1e-4)


@pytest.mark.parametrize("critic", ["raw", "tdq", "hybrid"])
def test_without_layer_norm_a_network_is_an_mlp_whose_output_is_not_bounded(critic: str) -> None:
    off = make(critic, layer_norm=False)
    params = random_params(off)
    assert not [name for name in params if name.startswith(("scale", "shift"))]
    rng = np.random.default_rng(0)
    rows = [jnp.asarray(rng.normal(size=(1, width)), jnp.float32) for width in DIMS]
    if critic == "raw":
        phi = off.embed(params, *rows).phi  # type: ignore[attr-defined]
        far = off.embed(params, *(1e3 * x for x in rows)).phi  # type: ignore[attr-defined]
        assert float(jnp.abs(far).max()) > 100 * float(jnp.abs(phi).max())
    assert np.isfinite(off.score(params, *rows)).all()


def test_variants_are_columns_of_their_own_behind_their_critic(tmp_path: Path) -> None:
    for critic, label in (("raw", ""), ("cosine", ""), ("cosine", "cosine[temperature=0.2]"),
                          ("two_head_joint", "two_head_joint[alpha=2]")):  # fmt: skip
        config = labelled(toy_config(critic=critic), label) if label else toy_config(critic=critic)
        write_run(config, 42, tmp_path)
    home = tmp_path / "walks"
    found = critics_in(home)
    assert found.index("cosine[temperature=0.2]") == found.index("cosine") + 1
    columns = [scorer.column for scorer in of_runs(home, found, (42,), "walks")]
    assert columns == [
        *("raw@42", "cosine@42", "cosine[temperature=0.2]@42", "two_head_joint[alpha=2]@42"),
        "two_head_joint[alpha=2].f_cos@42",
    ]


def test_a_folder_that_says_other_settings_than_its_run_has_is_refused(tmp_path: Path) -> None:
    config = labelled(toy_config(critic="cosine"), "cosine[temperature=0.2]")
    write_run(config, 42, tmp_path)
    home = tmp_path / "walks" / "cosine[temperature=0.2]"
    renamed = home.rename(home.with_name("cosine[temperature=0.3]"))
    with pytest.raises(InputError, match="other settings than its folder's name says"):
        of_run(renamed, 42, "walks")
