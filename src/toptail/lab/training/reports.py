"""Reports of a training run: curves drawn from its metrics, and external trackers.

A tracker (TensorBoard, Trackio, Weights & Biases: optional packages) gets the same scalars at the
same steps as ``metrics.jsonl``, one run per seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from toptail.errors import InputError, option
from toptail.io.files import atomic
from toptail.lab.training.session import BatchProgress, Watch
from toptail.report.figures import NEUTRAL, SETTINGS, new_figure
from toptail.report.page import line_style

Line: TypeAlias = Mapping[str, float | None]
"""A step and the scalars that were logged there; None where one is not finite."""


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


Kind: TypeAlias = Literal["tensorboard", "trackio", "wandb"]

PROJECT: Final = "toptail"
"""Name of the trackers' project."""


@dataclass(frozen=True)
class TrackedRun:
    """One run of a tracker."""

    log: Callable[[Mapping[str, float], int], Any]
    finish: Callable[[], Any]


def _tensorboard(out: Path, name: str, config: Mapping[str, Any]) -> TrackedRun:
    """Event files in ``OUT/tensorboard/TASK/CRITIC/seed-N``."""
    del config
    writer = import_module("tensorboard.summary").Writer(str(out / "tensorboard" / name))

    def log(scalars: Mapping[str, float], step: int) -> None:
        for scalar, value in scalars.items():
            writer.add_scalar(scalar, value, step)
        writer.flush()

    return TrackedRun(log, writer.close)


def _trackio(out: Path, name: str, config: Mapping[str, Any]) -> TrackedRun:
    del out
    run = import_module("trackio").init(
        project=PROJECT, name=name, config=dict(config), resume="allow", embed=False
    )
    return TrackedRun(lambda scalars, step: run.log(dict(scalars), step=step), run.finish)


def _wandb(out: Path, name: str, config: Mapping[str, Any]) -> TrackedRun:
    """A run of Weights & Biases with its own settings; its files are in OUT."""
    run = import_module("wandb").init(
        project=PROJECT, name=name, config=dict(config), dir=str(out), reinit="create_new"
    )
    return TrackedRun(lambda scalars, step: run.log(dict(scalars), step=step), run.finish)


_OPEN: Final[Mapping[str, Callable[[Path, str, Mapping[str, Any]], TrackedRun]]] = {
    "tensorboard": _tensorboard,
    "trackio": _trackio,
    "wandb": _wandb,
}


def require_trackers(kinds: Sequence[str]) -> None:
    """Refuse a tracker that is not known, or whose package is not installed."""
    for kind in kinds:
        if kind not in _OPEN:
            raise InputError(
                f"{option('log', kind)}: there is no such tracker; they are {', '.join(_OPEN)}."
            )
        try:
            import_module("tensorboard.summary" if kind == "tensorboard" else kind)
        except ImportError:
            raise InputError(
                f"{option('log', kind)} needs the package '{kind}', which is not installed: pip "
                f"install {kind}. metrics.jsonl is written in any case."
            ) from None


@contextmanager
def tracking(kinds: Sequence[str], out: Path, task: str, watch: Watch) -> Iterator[Watch]:
    """A watch that calls ``watch`` and reports to trackers; a run opens with its first metrics."""
    require_trackers(kinds)
    opened: dict[tuple[str, int], list[TrackedRun]] = {}

    def report(at: BatchProgress) -> None:
        watch(at)
        for seed, line in at.lines.items():
            key = (at.critic, seed)
            if key not in opened:
                name = f"{task}/{at.critic}/seed-{seed}"
                about = {"task": task, "critic": at.critic, "seed": seed, "steps": at.steps}
                opened[key] = [_OPEN[kind](out, name, about) for kind in kinds]
            scalars = {k: x for k, x in line.items() if k != "step" and x is not None}
            for run in opened[key]:
                run.log(scalars, at.step)

    try:
        yield report
    finally:
        for run in (run for runs in opened.values() for run in runs):
            run.finish()
