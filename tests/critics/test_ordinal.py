"""Ordinal distance: its loss question by question, and that it learns to tell near from far."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.critics import slow_full as slow
from tests.critics.facts import LN2, Facts, network_size, of_members
from tests.critics.full_cases import DIMS, KEY, SLOW
from tests.training.toy import toy_data, toy_dataset
from toptail.lab.critics.ordinal import THRESHOLDS, Ordinal
from toptail.lab.training.data import GoalSampling
from toptail.lab.training.loop import TrainConfig, init_state, run_steps


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    del frozen
    losses, right = [], []
    for goals, known in ((rows.goals, True), (rows.random_goals, False)):
        logits = slow.joint(params, set_, rows.states, rows.actions, goals)
        for member in logits:
            for i, row in enumerate(member):
                for x, threshold in zip(row, THRESHOLDS, strict=True):
                    label = not known or rows.offsets[i] >= threshold
                    losses.append(slow.cross_entropy(x, label))
                    right.append((x > 0) == label)
    return {"loss": float(np.mean(losses)), "accuracy": float(np.mean(right))}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    logits = slow.joint(params, SLOW, s, a, g)
    return of_members("nearness", -(1 / (1 + np.exp(-logits))).sum(axis=-1))


SIZE = 2 * network_size(sum(DIMS), len(THRESHOLDS))
FACTS = Facts(LN2, "nearness", SIZE, slow_loss, slow_reads)


def test_near_goals_score_higher_than_far_ones() -> None:
    critic, data = Ordinal(hidden=(32,)), toy_data().rows
    config = TrainConfig(critic, 400, 64, 1e-2, GoalSampling(positive_window=12))
    state = init_state(config, KEY, data)
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
