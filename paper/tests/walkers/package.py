"""The package's own online environments, one at a time, as what the bodies must equal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from toptail.lab.tasks.simulator import load_module, make_env


def online(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make an online environment with the wrapper that the experts were trained in."""
    load_module("ogbench.online_locomotion")
    wrappers = load_module("ogbench.online_locomotion.wrappers")
    if name == "antball":
        # Its constructor renders a frame to place the camera; no display is needed without.
        rendering = load_module("gymnasium.envs.mujoco.mujoco_rendering")
        monkeypatch.setattr(rendering, "MujocoRenderer", _Blind)
        return make_env("online-antball-v0")
    if name == "humanoid":
        env = make_env("online-humanoid-v0")
        return wrappers.DMCHumanoidXYWrapper(env, resample_interval=200)
    return wrappers.GymXYWrapper(make_env("online-ant-v0"), resample_interval=100)


def command(env: Any) -> Any:
    """The direction, or the way from the ball to the goal."""
    if hasattr(env, "z"):
        return env.z
    return env.unwrapped.cur_goal_xy - env.unwrapped.data.qpos[-7:-5]


class _Blind:
    def __init__(self, *_args: Any, **_options: Any) -> None:
        camera = SimpleNamespace(lookat=[0, 0, 0], distance=0, elevation=0)
        self.viewer = SimpleNamespace(cam=camera)

    def render(self, mode: str | None) -> None: ...

    def close(self) -> None: ...
