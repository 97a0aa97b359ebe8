"""What the paper leaves unsaid: the same critics with one setting changed at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from toptail.jobs.job import Job
from toptail.lab.critics.embedding import CosineContrast
from toptail.lab.critics.registry import MAIN
from toptail.progress import Tick, no_tick
from toptail_paper.controlled.cells import CriticCell, Trained, compute_cell, unit_of
from toptail_paper.controlled.config import CONTRASTIVE, CONTROL, NOISE_SIGMA, StudyConfig, Sweep
from toptail_paper.controlled.critics import ONE_STEP
from toptail_paper.controlled.evaluate import Floats, Pools
from toptail_paper.controlled.ideals import ideal_scores
from toptail_paper.controlled.world import ControlledWorld
from toptail_paper.study.store import RunFolder


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


COST = {"tdq": 0.3, "raw": 1.0, "cosine": 1.1, "hybrid": 1.4, "two_head": 1.4}
"""Rough relative cost of a step, for the progress bar and the order of work; spelled out because
it was timed, and follows from nothing that is known of a critic."""


@dataclass
class Trainings:
    """The cells of one call by the part of the study they serve."""

    config: StudyConfig
    run: RunFolder
    main: dict[str, CriticCell] = field(init=False)
    """The four critics and the two-head network at the default setting."""
    noisy: CriticCell = field(init=False)
    """TD-Q trained on noisy rewards."""
    by_radius: dict[float, tuple[CriticCell, ...]] = field(init=False)
    """The four critics at each radius of the radius sweep."""
    sweeps: dict[Sweep, list[Setting]] = field(init=False)
    """The points of each sweep."""
    _pools: dict[ControlledWorld, Pools] = field(init=False, default_factory=dict)

    _ideals: dict[ControlledWorld, dict[str, Floats]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        config = self.config
        kept = partial(cells_of, config, keep_scores=True)
        self.main = {cell.critic.name: cell for cell in kept(EVERY)}
        (self.noisy,) = kept((CONTROL,), world=replace(config.world, sigma=NOISE_SIGMA))
        self.by_radius = {
            r: kept(MAIN, world=replace(config.world, radius=r), seeds=config.radius_seeds)
            for r in config.radii
        }
        self.sweeps = {name: SETTINGS[name](config) for name in config.sweeps}

    def stages(self) -> list[list[CriticCell]]:
        """Cells in the order they run; those of one stage may run at the same time."""
        first = [*self.main.values(), self.noisy]
        radii = [cell for cells in self.by_radius.values() for cell in cells]
        # A later stage finds finished what an earlier one shares with it.
        swept = [
            list(dict.fromkeys(cell for setting in settings for cell in setting.cells))
            for settings in self.sweeps.values()
        ]
        return [first, radii, *swept]

    def pools(self, world: ControlledWorld | None = None) -> Pools:
        """The pools of a world, the main one by default; noise does not change what is judged."""
        world = replace(world or self.config.world, sigma=0.0)
        if world not in self._pools:
            self._pools[world] = Pools.draw(self.config, world)
        return self._pools[world]

    def ideals(self, world: ControlledWorld) -> dict[str, Floats]:
        """The ideal critics' scores of the candidates of a world's pools."""
        if world not in self._ideals:
            pools = self.pools(world)
            states, goals = pools.queries.states[:, None], pools.queries.goals[:, None]
            self._ideals[world] = ideal_scores(world, states, pools.actions, goals)
        return self._ideals[world]

    def units(self, cell: CriticCell, steps: int | None = None) -> list[Trained]:
        """The stored units of a cell at one training length, by seed."""
        at = steps or self.config.steps
        return [unit_of(self.run, self.config, cell, seed, at) for seed in cell.seeds]

    def deployments(self) -> list[tuple[str, list[Trained], str]]:
        """(name, units, readout) of every scalar of the main and the within-model table."""
        return [
            (name, self.units(cell), readout)
            for cell in self.main.values()
            for name, readout in cell.readouts.items()
        ]

    def is_default(self, setting: Setting) -> bool:
        main = {cell.critic for cell in self.main.values()}
        return setting.steps == self.config.steps and all(
            cell.critic in main and cell.world == self.config.world for cell in setting.cells
        )

    def jobs(self) -> list[Job]:
        """One job per cell: its critic with all of its seeds."""
        cells = dict.fromkeys(cell for stage in self.stages() for cell in stage)
        return [self._job(cell) for cell in cells]

    def _job(self, cell: CriticCell) -> Job:
        units = [unit for steps in cell.steps for unit in self.units(cell, steps)]
        names = [unit.result.folder.name for unit in units]
        return Job(
            name=f"train {names[0]}",
            content={"units": names, "scores": cell.keep_scores},
            home=self.run.path,
            outputs=[unit.result.folder for unit in units],
            work=lambda: compute_cell(self.run, self.config, cell, self.pools(cell.world)),
            done=lambda: all(unit.finished for unit in units),
        )

    def compute(self, tick: Tick = no_tick) -> None:
        """Train every cell, ``workers`` at a time, the longest first."""
        stages = self.stages()
        total = sum(_cost(cell) for cells in stages for cell in cells)
        done = 0.0
        lock = threading.Lock()
        stop = threading.Event()

        def work(cell: CriticCell) -> None:
            before = 0.0

            def advanced(_: str, share: float) -> None:
                nonlocal done, before
                if stop.is_set():
                    raise RuntimeError("another critic's training failed or was interrupted")
                with lock:
                    done += _cost(cell) * (share - before)
                    before = share
                    tick(f"training {cell.critic.name}", done / total)

            trained = compute_cell(self.run, self.config, cell, self.pools(cell.world), advanced)
            with lock:
                self.run.asked += len(cell.seeds) * len(cell.steps)
                self.run.made += trained

        for cells in stages:
            for cell in cells:
                self.pools(cell.world)  # drawn here, so that the threads only read them
            with ThreadPoolExecutor(self.config.workers) as pool:
                try:
                    list(pool.map(work, sorted(cells, key=_cost, reverse=True)))
                except BaseException:
                    # Leaving the block waits for the other threads: end them at their next chunk.
                    stop.set()
                    raise


def _cost(cell: CriticCell) -> float:
    return COST[cell.critic.name] * cell.steps[-1] * len(cell.seeds)
