"""What a configuration asks for: which cells are trained, on which pools, in which order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from toptail.jobs.job import Job
from toptail.lab.critics.registry import MAIN
from toptail.lab.judges.controlled import ideal_scores
from toptail.lab.store.folder import RunFolder
from toptail.lab.tasks.controlled import ControlledWorld
from toptail.progress import Tick, no_tick
from toptail_paper.controlled.cells import CriticCell, Trained, compute_cell, unit_of
from toptail_paper.controlled.config import CONTROL, NOISE_SIGMA, StudyConfig, Sweep
from toptail_paper.controlled.evaluate import Floats, Pools
from toptail_paper.controlled.sweeps import EVERY, SETTINGS, Setting, cells_of

COST = {"tdq": 0.3, "raw": 1.0, "cosine": 1.1, "hybrid": 1.4, "two_head": 1.4}
"""Rough relative cost of a step, for the progress bar and the order of work; spelled out because
it was timed, and follows from nothing that is known of a critic."""


@dataclass
class Plan:
    """The cells of one call by the part of the study they serve."""

    config: StudyConfig
    """What was asked for."""

    run: RunFolder
    """Where the units lie."""

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
        """Lay out the cells; nothing is computed yet."""
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
        """Whether a point of a sweep is the default setting."""
        main = {cell.critic for cell in self.main.values()}
        return setting.steps == self.config.steps and all(
            cell.critic in main and cell.world == self.config.world for cell in setting.cells
        )

    def jobs(self) -> list[Job]:
        """Every cell as a piece of work: its critic with all of its seeds."""
        cells = dict.fromkeys(cell for stage in self.stages() for cell in stage)
        return [self._job(cell) for cell in cells]

    def _job(self, cell: CriticCell) -> Job:
        units = [unit for steps in cell.steps for unit in self.units(cell, steps)]
        names = [unit.unit.folder.name for unit in units]
        return Job(
            name=f"train {names[0]}",
            content={"units": names, "scores": cell.keep_scores},
            home=self.run.path,
            outputs=[unit.unit.folder for unit in units],
            work=lambda: compute_cell(self.run, self.config, cell, self.pools(cell.world)),
            finished=lambda: all(unit.finished for unit in units),
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
