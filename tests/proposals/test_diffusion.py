"""A trained policy against the mixture it was trained on; whose draws depend on what."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np
import pytest

from tests.proposals import mixture
from tests.proposals.mixture import CONTEXTS, SAMPLES
from tests.training.toy import toy_data
from toptail.errors import InputError
from toptail.lab.critics.base import Params
from toptail.lab.proposals import diffusion
from toptail.lab.proposals.denoiser import Diffusion, row_keys
from toptail.lab.proposals.diffusion import (
    DiffusionPolicy,
    DiffusionRun,
    load_policy,
)
from toptail.lab.training.checkpoints import load_params, save_params
from toptail.lab.training.session import train_runs

MODEL = Diffusion(hidden=(16,), levels=8, time_dim=4)
KEY = jax.random.key(7)
METHODS = pytest.mark.parametrize("steps", [None, 3], ids=["ancestral", "ddim"])


def policy_of(model: Diffusion = MODEL) -> DiffusionPolicy:
    return DiffusionPolicy(model, _init(model, jax.random.key(0)))


@partial(jax.jit, static_argnums=0)
def _init(model: Diffusion, key: jax.Array) -> Params:
    return model.init(key, 3, 2, 3)


def queries(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 3))


@pytest.mark.slow
@pytest.mark.parametrize("steps", [None, 25], ids=["ancestral", "ddim"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_a_trained_policy_samples_the_conditional_mixture(
    mixture_policy: DiffusionPolicy, context: tuple[float, float], steps: int | None
) -> None:
    """Eight pools, each against a true sample of its own, so that no single draw decides.

    A true pool is beyond either bound once in hundreds, so one of eight may be. A trained model
    is not exact: over all pools together its modes may be off by half their width and their
    weights by 0.05. (DDIM draws modes a little towards each other, here by up to 0.04.)
    """
    state, goal = context
    queries = (np.full((8, 1), state), np.full((8, 1), goal))
    pools = mixture_policy.sample(KEY, *queries, SAMPLES, steps).astype(np.float64)
    assert pools.shape == (8, SAMPLES, 2)
    distances = [mixture.distance_to_truth(pool, *context, i) for i, pool in enumerate(pools)]
    assert sum(distance > 1 for distance in distances) <= 1
    counts = [mixture.modes(pool, goal)[0] for pool in pools]
    assert sum(mixture.weight_statistic(count, state) > 13.8 for count in counts) <= 1
    total, centres = mixture.modes(pools.reshape(-1, 2), goal)
    np.testing.assert_allclose(total / total.sum(), mixture.weights(state), atol=0.05)
    np.testing.assert_allclose(centres, mixture.means(goal), atol=mixture.SPREAD / 2)
    # Under the other context every pool is a mismatch: the condition is what decides.
    other = CONTEXTS[1 - CONTEXTS.index(context)]
    assert min(mixture.distance_to_truth(pool, *other) for pool in pools) > 1


@METHODS
def test_the_same_key_gives_the_same_bits_and_another_key_others(steps: int | None) -> None:
    policy, rows = policy_of(), queries(5)
    first = policy.sample(KEY, *rows, 4, steps)
    np.testing.assert_array_equal(policy.sample(KEY, *rows, 4, steps), first)
    assert not (policy.sample(jax.random.key(8), *rows, 4, steps) == first).all(axis=-1).any()
    assert first.dtype == np.float32
    assert np.abs(first).max() <= 1


@METHODS
def test_more_candidates_or_queries_leave_the_draws_as_they_are(steps: int | None) -> None:
    policy, (states, goals) = policy_of(), queries(10)
    large = policy.sample(KEY, states, goals, 6, steps)
    small = policy.sample(KEY, states[:5], goals[:5], 3, steps)
    np.testing.assert_allclose(small, large[:5, :3], atol=1e-5)


@METHODS
def test_a_row_depends_on_its_key_alone(steps: int | None) -> None:
    policy, (states, goals) = policy_of(), queries(40)
    keys = row_keys(KEY, np.arange(40), 2, 5)
    whole = policy.sample_rows(keys, states, goals, steps)
    order = np.random.default_rng(0).permutation(40)
    shuffled = policy.sample_rows(keys[order], states[order], goals[order], steps)
    np.testing.assert_array_equal(shuffled, whole[order])
    for part in ([3], [39, 3, 17]):
        rows = np.array(part)
        alone = policy.sample_rows(keys[rows], states[rows], goals[rows], steps)
        np.testing.assert_allclose(alone, whole[rows], atol=1e-5)
    # Common random numbers: the same key and query give the same action in any row.
    twice = policy.sample_rows(keys[np.zeros(4, int)], states[[0] * 4], goals[[0] * 4], steps)
    np.testing.assert_array_equal(twice, np.repeat(twice[:1], 4, axis=0))


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, rows = policy_of(), queries(10)
    whole = policy.sample(KEY, *rows, 6)
    monkeypatch.setattr(diffusion, "BLOCK", 16)  # 60 rows: three full blocks and one of 12
    np.testing.assert_allclose(policy.sample(KEY, *rows, 6), whole, atol=1e-5)


@dataclass(frozen=True)
class Counting(Diffusion):
    """Counts how often it is traced."""

    traces: ClassVar[list[int]] = []

    def predict(
        self, params: Params, noised: jax.Array, level: jax.Array, context: jax.Array
    ) -> jax.Array:
        self.traces.append(1)
        return super().predict(params, noised, level, context)


@METHODS
def test_a_second_call_compiles_nothing(steps: int | None) -> None:
    model = Counting(hidden=(8,), levels=5, time_dim=2)
    (states, goals), policy = queries(30), policy_of(model)
    policy.sample(KEY, states, goals, 2, steps)
    before = len(model.traces)
    assert before > 0
    policy.sample(jax.random.key(1), goals, states, 2, steps)
    policy.sample(KEY, states[:20], goals[:20], 2, steps)  # 40 rows also fill a block of 64
    policy_of(Counting(hidden=(8,), levels=5, time_dim=2)).sample(KEY, states, goals, 2, steps)
    assert len(model.traces) == before


@METHODS
def test_a_stored_policy_draws_the_same_bits(tmp_path: Path, steps: int | None) -> None:
    policy, rows = policy_of(), queries(4)
    save_params(tmp_path / "params.safetensors", policy.params)
    loaded = DiffusionPolicy(MODEL, load_params(tmp_path / "params.safetensors"))
    np.testing.assert_array_equal(
        loaded.sample(KEY, *rows, 3, steps), policy.sample(KEY, *rows, 3, steps)
    )


@METHODS
@pytest.mark.parametrize("size", [0.0, 1e6, 1e15])
def test_actions_are_finite_and_in_the_box_at_extreme_inputs(
    size: float, steps: int | None
) -> None:
    states, goals = queries(6)
    for model in (MODEL, Diffusion(hidden=(16,), levels=8, time_dim=4, bfloat16=True)):
        actions = policy_of(model).sample(KEY, size * states, -size * goals, 5, steps)
        assert np.isfinite(actions).all()
        assert np.abs(actions).max() <= 1


def test_no_rows_give_no_actions() -> None:
    policy = policy_of()
    assert policy.sample(KEY, np.zeros((0, 3)), np.zeros((0, 3)), 4).shape == (0, 4, 2)


def test_wrong_inputs_are_refused_in_one_sentence() -> None:
    policy, (states, goals) = policy_of(), queries(4)
    unknown = np.where(np.arange(4)[:, None] == 2, np.nan, states)
    for given, message in (
        ((states, goals, 0), "at least 1 candidate"),
        ((states, goals[:3], 2), r"shapes \(4, 3\) and \(3, 3\)"),
        ((states, goals[:, :2], 2), "reads 6 numbers"),
        ((unknown, goals, 2), "Row 2 of the states"),
        ((states, goals, 2, 9), "between 1 and 8 steps"),
    ):
        with pytest.raises(InputError, match=message):
            policy.sample(KEY, *given)
    with pytest.raises(InputError, match="needs one key"):
        policy.sample_rows(jax.random.split(KEY, 3), states, goals)
    with pytest.raises(InputError, match="no moving average"):
        DiffusionPolicy(MODEL, {})


# Behaviour models through the critics' training session.


SETTINGS = (("hidden", (8,)), ("levels", 6), ("time_dim", 4), ("ema_decay", 0.9))
CONFIG = DiffusionRun(
    "walks", "diffusion", 6, 16, learning_rate=1e-2, log_every=3, settings=SETTINGS
)


def test_a_run_is_trained_recorded_and_loaded_as_a_policy(tmp_path: Path) -> None:
    runs = train_runs(CONFIG, toy_data(), [42, 7], tmp_path)
    assert [run.state for run in runs] == ["finished", "finished"]
    folder = tmp_path / "walks" / "diffusion" / "seed-7"
    policy = load_policy(folder, "walks", CONFIG.hash)
    assert policy.model == Diffusion((8,), levels=6, time_dim=4, ema_decay=0.9)
    stored = load_params(folder / "params.safetensors")
    in_memory = DiffusionPolicy(CONFIG.build(), stored)
    query = (np.zeros((2, 2)), np.ones((2, 2)))
    key = jax.random.key(0)
    np.testing.assert_array_equal(policy.sample(key, *query, 3), in_memory.sample(key, *query, 3))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [3, 6]
    assert all(line["loss"] > 0 and line["low_noise_loss"] > 0 for line in lines)
    # Finished runs are left as they are.
    before = (folder / "record.json").read_bytes()
    train_runs(CONFIG, toy_data(), [42, 7], tmp_path)
    assert (folder / "record.json").read_bytes() == before


def test_runs_of_another_task_and_damaged_runs_are_refused(tmp_path: Path) -> None:
    train_runs(CONFIG, toy_data(), [1], tmp_path)
    folder = tmp_path / "walks" / "diffusion" / "seed-1"
    with pytest.raises(InputError, match="trained on walks, not on maze"):
        load_policy(folder, "maze")
    (folder / "params.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="not the file that training wrote"):
        load_policy(folder)


def test_other_critics_and_unknown_settings_are_refused() -> None:
    with pytest.raises(InputError, match="'raw' is not a behaviour model"):
        DiffusionRun("walks", "raw", 7)
    with pytest.raises(InputError, match="no setting 'embed_dim'"):
        DiffusionRun("walks", "diffusion", 7, settings=(("embed_dim", 4),))


def test_the_configuration_comes_back_from_its_content() -> None:
    assert DiffusionRun.from_content(CONFIG.content) == CONFIG
    assert CONFIG.content["critic_fields"]["levels"] == 6
