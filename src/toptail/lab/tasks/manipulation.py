"""Manipulation episodes by OGBench's recipe: the package's plan oracles at play."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.names import TaskName
from toptail.lab.tasks.navigation import Episode
from toptail.lab.tasks.simulator import load_module, make_env, package_randomness

_SMOOTHING = 0.5
_CUBE_XYZ = slice(14, 17)
_MAX_ATTEMPTS = 100
"""Scene episodes that lose the block are repeated; more than this in a row means a defect."""


def check_playable(task: TaskName) -> None:
    """Refuse manipulation data that is collected in a way that is not implemented here."""
    playable = task.environment in ("cube-single-v0", "cube-double-v0", "scene-v0")
    if task.kind != "play" or not (playable or task.family == "puzzle"):
        raise InputError(
            f"'{task.name}' cannot be collected here: expected the play data of cube-single, "
            "cube-double, scene or a puzzle."
        )


class Player:
    """Collects play episodes of a manipulation task, one after another."""

    def __init__(self, task: TaskName, rows: int, noise: float) -> None:
        self._task = task
        self._rows = rows
        self._env = make_env(
            task.environment,
            mode="data_collection",
            terminate_at_goal=False,
            max_episode_steps=rows,
        )
        # The first reset builds the model and differs from every later one in what it computes
        # on the way: take it now, so that an episode does not depend on who was first.
        self._env.reset(seed=0)
        self._oracles = _plan_oracles(task, self._env, noise)

    def collect(self, seeds: Sequence[np.random.SeedSequence]) -> list[Episode]:
        """Collect one episode per seed; each depends on its own seed alone."""
        return [self._collect_one(seed) for seed in seeds]

    def _collect_one(self, seed: np.random.SeedSequence) -> Episode:
        for attempt in seed.spawn(_MAX_ATTEMPTS):
            with package_randomness(attempt) as reset_seed:
                episode, after = self._play(reset_seed, np.random.default_rng(attempt.spawn(1)[0]))
            if self._task.family != "scene" or block_in_sight(after[:, _CUBE_XYZ]):
                return episode
        raise RuntimeError(f"{_MAX_ATTEMPTS} Scene episodes in a row lost the block.")

    def _play(
        self, reset_seed: int, rng: np.random.Generator
    ) -> tuple[Episode, NDArray[np.float64]]:
        """Play one episode; also return the simulator's positions after each step."""
        observation, info = self._env.reset(seed=reset_seed)
        p_stack = _stacking_probability(self._task, rng)
        oracle = self._oracles[info["privileged/target_task"]]
        oracle.reset(observation, info)
        plans = 0
        kept: dict[str, list[NDArray[Any]]] = {}
        after = []
        for _ in range(self._rows):
            action = np.clip(oracle.select_action(observation, info), -1, 1).astype(np.float32)
            row = {"observations": observation.astype(np.float32), "actions": action}
            observation, _, _, _, info = self._env.step(action)
            row["qpos"] = info["prev_qpos"].astype(np.float32)
            row["qvel"] = info["prev_qvel"].astype(np.float32)
            if self._task.has_buttons:
                row["button_states"] = info["prev_button_states"].astype(np.int64)
            for name, value in row.items():
                kept.setdefault(name, []).append(value)
            after.append(info["qpos"])
            if oracle.done:
                plans += 1
                fresh = self._env.unwrapped.set_new_target(p_stack=p_stack)
                oracle = self._oracles[fresh[1]["privileged/target_task"]]
                oracle.reset(*fresh)
        arrays = {name: np.stack(values) for name, values in kept.items()}
        return Episode(arrays, plans), np.stack(after)


def block_in_sight(block: NDArray[np.floating[Any]]) -> bool:
    """Whether Scene's block (positions ``[steps, 3]``) stayed in the visible area.

    It is lost with y ≥ 0.29, or with y ≤ −0.3 outside the height it has inside the drawer.
    """
    y, z = block[:, 1], block[:, 2]
    lost = (y >= 0.29) | ((y <= -0.3) & ((z < 0.06) | (z > 0.08)))
    return not bool(lost.any())


def _stacking_probability(task: TaskName, rng: np.random.Generator) -> float:
    """Return an episode's probability of stacking one cube on another."""
    if task.variant == "single":
        return 0.0
    if task.variant == "double":
        return float(rng.uniform(0.0, 0.25))
    return 0.5


def _plan_oracles(task: TaskName, env: Any, noise: float) -> dict[str, Any]:
    """Return the package's oracle for each kind of target that the environment sets."""
    targets = {"cube": ("cube",), "puzzle": ("button",)}.get(
        task.family, ("cube", "button", "drawer", "window")
    )
    oracles = {}
    for target in targets:
        module = load_module(f"ogbench.manipspace.oracles.plan.{target}_plan")
        options: dict[str, Any] = {"noise": noise, "noise_smoothing": _SMOOTHING}
        if task.family == "puzzle":
            options["gripper_always_closed"] = True
        oracle_class = getattr(module, f"{target.capitalize()}PlanOracle")
        oracles[target] = oracle_class(env=env, **options)
    return oracles
