"""The maze whose policy is its collector."""

from __future__ import annotations

import numpy as np

from toptail_paper.selection.expert_rollouts import expert_continuation
from toptail_paper.study.main_settings import main_settings
from toptail_paper.zoo.mazes import antmaze


def test_its_policy_is_the_collector_s_with_the_noise_of_the_data() -> None:
    maze = antmaze(1)
    observed = np.repeat(maze.observations(), 400, axis=0)
    goals = observed + np.float32(4.0)
    actions = maze.act(observed, goals)
    policy, _ = expert_continuation(main_settings("AntMaze").data)
    without = policy(np.zeros((400, 3), dtype=np.int64), observed, goals)
    assert np.abs(actions).max() <= 1
    inside = np.abs(without[0]) < 0.4  # three deviations from where noise is cut
    noise = (actions - without)[:, inside]
    np.testing.assert_allclose(noise.std(axis=0), 0.2, atol=0.03)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.04)
    assert inside.any()
