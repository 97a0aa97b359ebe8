"""Reports of a training run: curves drawn from its metrics, and external trackers.

A tracker (TensorBoard, Trackio, Weights & Biases: optional packages) gets the same scalars at the
same steps as ``metrics.jsonl``, one run per seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from toptail.io.files import atomic
from toptail.lab.training.runs import Line
from toptail.lab.training.session import BatchProgress, Watch
from toptail.report.figures import NEUTRAL, SETTINGS, new_figure
from toptail.report.page import line_style
from toptail.report.trackers import open_run, require_trackers, send

_PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "Loss": {"loss": "total", "contrast": "contrastive", "q_loss": "Q", "v_loss": "V"},
    "Kendall τ of the score with γᵈ, held-out triples": {"tau": "τ"},
    "Retrieval AUC, held-out triples": {"auc": "AUC"},
    "Normalized regret of the best of 64, held-out triples": {"regret_64": "regret"},
    "Logit gap, positives over negatives": {"logit_gap": "gap"},
    "Mean embedding length, held-out triples": {"phi_norm": "‖φ‖", "psi_norm": "‖ψ‖"},
    "Mean Q of the batch": {"q_mean": "Q"},
    "Temperature": {"temperature": "temperature"},
}
"""Title of a panel to its scalars, with their names in the legend."""


def training_figure(lines: Sequence[Line], title: str) -> Figure:
    """Draw a panel for each of `_PANELS` that has scalars in the lines."""
    logged = set().union(*lines) if lines else set()
    panels = [title for title, series in _PANELS.items() if logged & series.keys()]
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        rows = max(1, -(-len(panels) // 2))
        figure = new_figure(9.2, 2.5 * rows + 0.4)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, parse_math=False)
        axes = list(figure.subplots(rows, 2, squeeze=False).flat)
        for panel, place in zip(panels, axes, strict=False):
            _draw(place, panel, lines)
        for empty in axes[len(panels) :]:
            empty.set_visible(False)
        return figure


def save_training_figure(lines: Sequence[Line], title: str, folder: Path) -> list[Path]:
    """Write ``curves.svg`` and ``curves.png`` into a run's folder."""
    figure = training_figure(lines, title)
    settings: dict[str, dict[str, Any]] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 130}}
    paths = []
    with mpl.rc_context(SETTINGS):
        for kind, options in settings.items():
            path = folder / f"curves.{kind}"
            atomic(path, lambda p, o=options: figure.savefig(p, **o))  # type: ignore[misc]
            paths.append(path)
    return paths


def _draw(place: Axes, title: str, lines: Sequence[Line]) -> None:
    steps = np.array([line["step"] for line in lines], dtype=float)
    drawn = {name: label for name, label in _PANELS[title].items() if any(name in x for x in lines)}
    for rank, (name, label) in enumerate(drawn.items()):
        values = np.array([line.get(name) for line in lines], dtype=float)  # None is NaN
        marker = "o" if len(lines) <= 40 else ""
        colour = line_style(rank).colour
        place.plot(steps, values, color=colour, label=label, marker=marker, markersize=2.5)
        missing = np.flatnonzero(~np.isfinite(values))
        if len(missing):  # marked where it begins: a gap alone is easily overlooked
            place.axvline(steps[missing[0]], color=NEUTRAL, linestyle=":", linewidth=1)
    if len(drawn) > 1:
        place.legend(fontsize=8, ncols=len(drawn))
    place.set_title(title)
    place.set_xlabel("steps")
    place.xaxis.set_major_formatter(EngFormatter(sep=""))
    place.grid(axis="y")


@contextmanager
def tracking(kinds: Sequence[str], out: Path, task: str, watch: Watch) -> Iterator[Watch]:
    """A watch that calls ``watch`` and reports to trackers; a run opens with its first metrics."""
    require_trackers(kinds)
    opened: dict[tuple[str, int], list[Any]] = {}

    def report(at: BatchProgress) -> None:
        watch(at)
        for seed, line in at.lines.items():
            key = (at.critic, seed)
            if key not in opened:
                name = f"{task}/{at.critic}/seed-{seed}"
                about = {"task": task, "critic": at.critic, "seed": seed, "steps": at.steps}
                opened[key] = [open_run(kind, out, name, about) for kind in kinds]
            scalars = {k: x for k, x in line.items() if k != "step" and x is not None}
            for run in opened[key]:
                send(run, scalars, at.step)
                if hasattr(run, "flush"):  # TensorBoard
                    run.flush()

    try:
        yield report
    finally:
        for run in (run for runs in opened.values() for run in runs):
            run.finish() if hasattr(run, "finish") else run.close()
