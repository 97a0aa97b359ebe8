"""Draw the package's walkers: a strip of frames each, ``docs/figures/experts_BODY.png``.

    MUJOCO_GL=egl python tools/expert_strips.py [BODY ...]

Every strip is one episode from the package's own start, with the collection noise and a fixed seed.
The arrow on the ground is the commanded direction, the disc the ball's goal. Without a graphics
driver ``MUJOCO_GL=osmesa`` does it, too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import mujoco
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from toptail.lab.walkers.walker import Walker
from toptail_paper.walkers.bodies import NOISE, REACH, body_named
from toptail_paper.walkers.evaluate import RunningEpisodes

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
SIZE = 230
"""Pixels of a frame's sides."""
COLOUR = (1.0, 0.75, 0.1, 1.0)
"""Of arrow and disc."""


@dataclass(frozen=True)
class Strip:
    """Which moments of which episode are drawn, and from where."""

    steps: tuple[int, ...]
    """Environment steps since the start."""
    seed: int
    """Seed of start, commands and noise."""
    distance: float
    """Between the camera and what it looks at."""
    elevation: float
    """Of the camera, in degrees; negative looks down."""
    height: float
    """Of the point that the camera looks at."""
    shadows: bool = True
    """Whether there are any; those of the humanoid's own lamp break far away."""


STRIPS = {
    "ant": Strip((88, 92, 96, 99, 102, 106, 110, 114), 0, 3.0, -35, 0.3),
    "antball": Strip((0, 11, 22, 33, 45, 56, 67, 79), 13, 10.5, -55, 0.0),
    "humanoid": Strip((0, 12, 24, 40, 60, 90, 130, 190), 0, 3.6, -25, 0.8, shadows=False),
}


@dataclass(frozen=True)
class Moment:
    """What one frame shows."""

    seconds: float
    """Time since the start."""
    qpos: NDArray[np.float64]
    """The simulator's positions."""
    command: NDArray[np.float64]
    """The direction, or the way from the ball to the goal."""


def moments(name: str, strip: Strip) -> list[Moment]:
    """Run the package's walker for one episode, and keep the strip's moments."""
    body, walker = body_named(name)(1), Walker.shipped(name)
    rng, noise = np.random.default_rng(strip.seed), np.random.default_rng([strip.seed, 1])
    episodes = RunningEpisodes(body, rng, watched=1, stagger=False)
    kept = []
    for step in range(strip.steps[-1] + 1):
        if step in strip.steps:
            seconds = step * body.seconds
            kept.append(Moment(seconds, body.qpos[0].copy(), body.commands[0].copy()))
        mode = walker(episodes.observations)
        episodes.step(np.clip(mode + NOISE * noise.standard_normal(mode.shape), -1, 1))
    return kept


def frames(name: str, strip: Strip, seen: Sequence[Moment]) -> list[NDArray[np.uint8]]:
    """Render the moments; the camera follows a walker, and stands still where there is a ball."""
    model = body_named(name)(1).make_model(mujoco)
    data = mujoco.MjData(model)
    camera = mujoco.MjvCamera()
    camera.distance, camera.elevation = strip.distance, strip.elevation
    first = seen[0].command
    camera.azimuth = np.degrees(np.arctan2(first[1], first[0])) + 90
    rendered = []
    with mujoco.Renderer(model, SIZE, SIZE) as renderer:
        for moment in seen:
            data.qpos[:] = moment.qpos
            mujoco.mj_forward(model, data)
            camera.lookat[:] = [*_middle(name, moment, seen), strip.height]
            renderer.update_scene(data, camera)
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = strip.shadows
            _mark(name, renderer.scene, moment)
            rendered.append(renderer.render().copy())
    return rendered


def _middle(name: str, moment: Moment, seen: Sequence[Moment]) -> NDArray[np.float64]:
    """Where the camera looks on the ground."""
    if name != "antball":
        return moment.qpos[:2]
    start = seen[0]
    ball = start.qpos[-7:-5]
    places = np.stack([start.qpos[:2], ball, ball + start.command])
    middle: NDArray[np.float64] = (places.min(axis=0) + places.max(axis=0)) / 2
    return middle


def _mark(name: str, scene: Any, moment: Moment) -> None:
    """Draw the direction or the goal into the scene."""
    geom, here = scene.geoms[scene.ngeom], moment.qpos[:2]
    scene.ngeom += 1
    kind, size, at = mujoco.mjtGeom.mjGEOM_ARROW, np.zeros(3), np.zeros(3)
    if name == "antball":
        kind, size = mujoco.mjtGeom.mjGEOM_CYLINDER, np.array([REACH, 0.01, 0.0])
        at = np.append(moment.qpos[-7:-5] + moment.command, 0.01)
    mujoco.mjv_initGeom(geom, kind, size, at, np.eye(3).ravel(), np.asarray(COLOUR, np.float32))
    geom.emission = 0.6  # to be seen in any light
    if name != "antball":
        ends = [np.append(here + far * moment.command, 0.03) for far in (0.5, 1.4)]
        mujoco.mjv_connector(geom, kind, 0.1, *ends)


def draw(name: str, path: Path) -> None:
    """Put the frames side by side, with their times below, into a small PNG file."""
    strip = STRIPS[name]
    seen = moments(name, strip)
    figure, places = plt.subplots(1, len(seen), figsize=(2.3 * len(seen), 2.6), dpi=100)
    for place, moment, frame in zip(places, seen, frames(name, strip, seen), strict=True):
        place.imshow(frame)
        place.set_xticks([])
        place.set_yticks([])
        place.set_xlabel(f"{moment.seconds:.1f} s")
        for spine in place.spines.values():
            spine.set_visible(False)
    figure.subplots_adjust(left=0, right=1, bottom=0.1, top=1, wspace=0.02)
    drawn = BytesIO()
    figure.savefig(drawn)
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(128).save(path, optimize=True)


def main(bodies: Sequence[str]) -> None:
    """Draw the strips of some bodies, or of all."""
    for name in bodies or STRIPS:
        path = FIGURES / f"experts_{name}.png"
        draw(name, path)
        print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main(sys.argv[1:])
