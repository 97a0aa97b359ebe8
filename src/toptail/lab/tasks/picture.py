"""A picture of trajectories on their maze."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from toptail.errors import InputError
from toptail.io.files import atomic
from toptail.lab.tasks.maze import UNIT, Maze
from toptail.lab.tasks.trajectories import Trajectories

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Distinguishable with every kind of colour vision (Okabe and Ito)."""


def maze_figure(trajectories: Trajectories, maze: Maze, paths: int = 6, title: str = "") -> Figure:
    """Draw where all rows lie (grey) and the paths of the first trajectories (colour)."""
    rows, columns = maze.walls.shape
    figure = Figure(figsize=(6.0, 6.0 * rows / columns + 0.3), layout="constrained")
    axes = figure.add_subplot(aspect="equal", title=title, xlabel="x", ylabel="y")
    xy = trajectories.observations[:, :2]
    corners = maze.centre(np.array([0, maze.walls.size - 1]))
    low, high = corners[0] - UNIT / 2, corners[1] + UNIT / 2
    # Row 0 on top, as the maps are written.
    extent = (low[0], high[0], high[1], low[1])
    axes.imshow(maze.walls, extent=extent, cmap="Greys", vmin=0, vmax=1.25, zorder=0)
    thinned = xy[:: max(1, len(xy) // 20_000)]
    axes.scatter(thinned[:, 0], thinned[:, 1], s=1, color="#b0b0b0", linewidths=0, rasterized=True)
    shown = zip(_COLOURS, trajectories.starts[:paths], trajectories.ends[:paths], strict=False)
    for colour, start, end in shown:
        axes.plot(*xy[start : end + 1].T, color=colour, linewidth=0.9, alpha=0.9)
        axes.plot(*xy[start], "o", color=colour, markersize=6, markeredgecolor="white")
    return figure


def save_maze_figure(figure: Figure, path: Path) -> None:
    """Write the picture as PNG or SVG, by the file's ending."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise InputError(f"{path} is not a picture's name: expected it to end in .png or .svg.")
    metadata = {"Date": None} if kind == "svg" else {}
    atomic(path, lambda target: figure.savefig(target, format=kind, dpi=110, metadata=metadata))
