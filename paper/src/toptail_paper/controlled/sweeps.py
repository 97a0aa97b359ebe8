"""What the paper leaves unsaid: the same critics with one setting changed at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from toptail.lab.critics.embedding import CosineContrast
from toptail.lab.critics.one_step import ONE_STEP
from toptail.lab.tasks.controlled import ControlledWorld
from toptail_paper.controlled.cells import CriticCell
from toptail_paper.controlled.config import CONTRASTIVE, StudyConfig, Sweep


@dataclass(frozen=True)
class Setting:
    """One point of a sweep."""

    task: str
    """Its name in the table, such as ``controlled@steps=1000``."""

    steps: int
    """The training length it is read at."""

    cells: tuple[CriticCell, ...]
    """One per critic; cells of several settings may be the same run."""


LONGEST_LAYER_NORM = 10_000
"""The longest training of the layer_norm sweep."""

COSINES = tuple(name for name, kind in ONE_STEP.items() if issubclass(kind, CosineContrast))
"""What has a temperature, the cosine critic first."""

EVERY = tuple(ONE_STEP)
"""All critics of the study."""


def cells_of(
    config: StudyConfig,
    names: tuple[str, ...],
    *,
    world: ControlledWorld | None = None,
    steps: tuple[int, ...] | None = None,
    seeds: int | None = None,
    keep_scores: bool = False,
    **changes: Any,
) -> tuple[CriticCell, ...]:
    """One cell per named critic, at the default setting but for the changes.

    ``seeds`` is how many of the study's seeds to take, all by default.
    """
    settings = replace(config.critics, **changes)
    where, lengths = world or config.world, steps or (config.steps,)
    return tuple(
        CriticCell(settings.make(name), where, config.seeds[:seeds], lengths, keep_scores)
        for name in names
    )


def _one(config: StudyConfig, name: str, critics: tuple[str, ...], **changes: Any) -> Setting:
    """A point at the default training length."""
    return Setting(f"controlled@{name}", config.steps, cells_of(config, critics, **changes))


def _lengths(
    config: StudyConfig, name: str, lengths: tuple[int, ...], **changes: Any
) -> list[Setting]:
    """One point per training length, all from one run."""
    cells = cells_of(config, EVERY, steps=lengths, **changes)
    return [Setting(f"controlled@{name}steps={n}", n, cells) for n in lengths]


def _steps(config: StudyConfig) -> list[Setting]:
    return _lengths(config, "", config.sweep_steps)


def _temperature(config: StudyConfig) -> list[Setting]:
    points = {f"{t:g}": (t, False) for t in config.sweep_temperatures} | {"learned": (1.0, True)}
    return [
        _one(config, f"temperature={name}", COSINES, temperature=start, learn_temperature=learn)
        for name, (start, learn) in points.items()
    ]


def _loss(config: StudyConfig) -> list[Setting]:
    # Their scores are kept: the support decomposition is read under both losses.
    return [
        _one(config, f"loss={name}", CONTRASTIVE, contrast=name, keep_scores=True)
        for name in ("binary_nce", "symmetric_info_nce")
    ]


def _bias(config: StudyConfig) -> list[Setting]:
    points = [
        *(("aligned_share", share) for share in config.sweep_shares),
        *(("aligned_noise", noise) for noise in config.sweep_noises),
    ]
    return [
        _one(config, f"{name}={value:g}", EVERY, world=replace(config.world, **{name: value}))
        for name, value in points
    ]


def _layer_norm(config: StudyConfig) -> list[Setting]:
    lengths = tuple(n for n in config.sweep_steps if n <= LONGEST_LAYER_NORM)
    off = _lengths(config, "layer_norm=off,", lengths, layer_norm=False)
    return off + _lengths(config, "layer_norm=on,", lengths, layer_norm=True)


SETTINGS: dict[Sweep, Callable[[StudyConfig], list[Setting]]] = {
    "steps": _steps,
    "temperature": _temperature,
    "loss": _loss,
    "bias": _bias,
    "layer_norm": _layer_norm,
}

CAPTIONS: dict[Sweep, str] = {
    "steps": "Training length: one run per seed, read at several steps",
    "temperature": "Temperature of the cosine logits, fixed or learned from 1",
    "loss": "Contrastive loss",
    "bias": "Share of goal-aligned actions, and their noise in units of R",
    "layer_norm": "LayerNorm in every network, at several training lengths",
}
