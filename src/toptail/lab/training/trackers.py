"""Trackers that a training may report to beside ``metrics.jsonl``: each an optional package.

A tracker gets the same scalars at the same steps as the file, one run per seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from toptail.errors import InputError, option
from toptail.lab.training.group import Standing, Watch

Kind: TypeAlias = Literal["tensorboard", "trackio", "wandb"]

PROJECT: Final = "toptail"
"""What the runs belong to where a tracker asks for it."""


@dataclass(frozen=True)
class Tracked:
    """One run of a tracker."""

    log: Callable[[Mapping[str, float], int], Any]
    """Told scalars and their step."""
    finish: Callable[[], Any]
    """Told that there are no more."""


def _tensorboard(out: Path, name: str, config: Mapping[str, Any]) -> Tracked:
    """Event files in ``OUT/tensorboard/TASK/CRITIC/seed-N``."""
    del config
    writer = import_module("tensorboard.summary").Writer(str(out / "tensorboard" / name))

    def log(scalars: Mapping[str, float], step: int) -> None:
        for scalar, value in scalars.items():
            writer.add_scalar(scalar, value, step)
        writer.flush()

    return Tracked(log, writer.close)


def _trackio(out: Path, name: str, config: Mapping[str, Any]) -> Tracked:
    """A run of a local Trackio project."""
    del out
    run = import_module("trackio").init(
        project=PROJECT, name=name, config=dict(config), resume="allow", embed=False
    )
    return Tracked(lambda scalars, step: run.log(dict(scalars), step=step), run.finish)


def _wandb(out: Path, name: str, config: Mapping[str, Any]) -> Tracked:
    """A run of Weights & Biases, whose own settings say where it goes; its files lie in OUT."""
    run = import_module("wandb").init(
        project=PROJECT, name=name, config=dict(config), dir=str(out), reinit="create_new"
    )
    return Tracked(lambda scalars, step: run.log(dict(scalars), step=step), run.finish)


_OPEN: Final[Mapping[str, Callable[[Path, str, Mapping[str, Any]], Tracked]]] = {
    "tensorboard": _tensorboard,
    "trackio": _trackio,
    "wandb": _wandb,
}


def require_trackers(kinds: Sequence[str]) -> None:
    """Refuse a tracker that nobody knows, or whose package is not installed."""
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
    """A watch that also tells trackers; their runs are opened with the first numbers of each."""
    require_trackers(kinds)
    opened: dict[tuple[str, int], list[Tracked]] = {}

    def told(at: Standing) -> None:
        watch(at)
        for seed, line in at.lines.items():
            key = (at.critic, seed)
            if key not in opened:
                name = f"{task}/{at.critic}/seed-{seed}"
                about = {"task": task, "critic": at.critic, "seed": seed, "steps": at.steps}
                opened[key] = [_OPEN[kind](out, name, about) for kind in kinds]
            scalars = {k: x for k, x in line.items() if k != "step" and x is not None}
            for tracked in opened[key]:
                tracked.log(scalars, at.step)

    try:
        yield told
    finally:
        for tracked in (each for runs in opened.values() for each in runs):
            tracked.finish()
