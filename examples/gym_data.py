"""Recorded episodes of a gymnasium task, by a known controller with noise, in OGBench's layout.

    python examples/gym_data.py Pendulum-v1 pendulum.npz

writes pendulum.npz and pendulum-val.npz: observations, actions within ±1, ends of trajectories,
the simulator's state before each action (qpos, qvel), and rewards.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


def swing_up(observations: np.ndarray, _step: int = 0) -> np.ndarray:
    """Pendulum: pump energy until the pole is near the top, then hold it there."""
    cosine, sine, speed = observations.T
    energy = speed**2 / 6 + 5 * (cosine - 1)
    pump = -np.sign(np.where(speed == 0, 1.0, speed)) * np.sign(energy)
    hold = -4 * np.arctan2(sine, cosine) - speed
    chosen = np.clip(np.where(cosine > 0.9, hold, pump), -1, 1)
    return np.asarray(chosen[..., None])


def gait(_observations: np.ndarray, step: int) -> np.ndarray:
    """HalfCheetah: every joint swings with a period of ten steps."""
    swing = np.array([0.7, 0.7, 0.2, 0.7, 0.4, 0.8])
    middle = np.array([-0.4, -0.6, 0.1, -0.4, 0.0, -0.1])
    phase = np.array([-0.9, 0.8, 1.8, -2.7, -1.7, -3.1])
    return np.asarray(middle + swing * np.sin(2 * np.pi * step / 10 + phase))


CONTROLLERS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "Pendulum-v1": swing_up,
    "HalfCheetah-v5": gait,
}


def episode(env: Any, rows: int, noise: float, seed: int) -> dict[str, np.ndarray]:
    """One episode, row by row; actions are the controller's with Gaussian noise."""
    controller, env = CONTROLLERS[env.spec.id], env.unwrapped
    observation, _ = env.reset(seed=seed)
    rng, half = np.random.default_rng(seed), env.action_space.high
    kept: dict[str, list[np.ndarray]] = {
        key: [] for key in ("observations", "actions", "qpos", "qvel", "rewards")
    }
    for step in range(rows):
        action = controller(observation, step) + rng.normal(0, noise, half.shape)
        action = np.clip(action, -1, 1).astype(np.float32)
        state = (env.data.qpos, env.data.qvel) if hasattr(env, "data") else np.split(env.state, 2)
        kept["observations"].append(observation)
        kept["actions"].append(action)
        kept["qpos"].append(state[0].copy())
        kept["qvel"].append(state[1].copy())
        observation, reward, *_ = env.step(half * action)
        kept["rewards"].append(np.array(reward))
    arrays = {key: np.stack(column).astype(np.float32) for key, column in kept.items()}
    return arrays | {"terminals": np.arange(rows) == rows - 1}


def main() -> None:
    """Write both splits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env", choices=CONTROLLERS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--val-episodes", type=int, default=60)
    parser.add_argument("--rows", type=int, default=201)
    parser.add_argument("--noise", type=float, default=0.3)
    asked = parser.parse_args()
    seeds = np.arange(asked.episodes + asked.val_episodes).tolist()
    env = gymnasium.make(asked.env)
    made = [episode(env, asked.rows, asked.noise, seed) for seed in seeds]
    for path, part in (
        (asked.out, made[: asked.episodes]),
        (asked.out.with_name(f"{asked.out.stem}-val.npz"), made[asked.episodes :]),
    ):
        whole: Any = {key: np.concatenate([each[key] for each in part]) for key in part[0]}
        np.savez(path, **whole)


if __name__ == "__main__":
    main()
