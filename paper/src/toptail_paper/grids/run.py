"""A declared grid from its file to its answer: the missing cells, then ``results.json``."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.io.json_files import write_json
from toptail.jobs.executors import ThisProcess
from toptail.jobs.job import Job
from toptail.lab.training.runs import digest
from toptail.progress import Tick, no_tick
from toptail.provenance import commit
from toptail_paper.grids.cells import TRAINING, SeedCell, cell_metrics
from toptail_paper.grids.grid import DeclaredGrid
from toptail_paper.grids.page import write_settled
from toptail_paper.grids.rules import decide
from toptail_paper.study.store import RunFolder, plain

RESULTS = "results.json"


def grid_jobs(
    declared: DeclaredGrid, folder: Path, networks: Path | None = None, tick: Tick = no_tick
) -> list[Job]:
    """The trainings of a grid; final networks lie in ``folder/networks`` unless given."""
    if "decomposition" in declared.reads:
        from toptail_paper.grids.controlled import controlled_jobs

        return controlled_jobs(declared, folder, tick)
    from toptail_paper.grids.recorded_data import recorded_jobs

    return recorded_jobs(declared, folder, networks or folder / "networks", tick)


def run_grid(
    declared: DeclaredGrid,
    folder: Path,
    command: str = "",
    tick: Tick = no_tick,
    *,
    small: bool = False,
    networks: Path | None = None,
    so_far: bool = False,
) -> dict[str, Any]:
    """Train and read every missing cell, and answer; killed at any moment, the same call goes on.

    ``so_far`` trains nothing, and says what the finished cells decide.

    Returns
    -------
    The content of ``results.json``: the grid, every cell by data set and name, those that are
    missing, and the answer. A trial (``small``) has no answer.
    """
    described = plain(asdict(declared))
    run = RunFolder(folder)
    with run.recording(described, list(declared.seeds), command):
        pairs = [(cell, seed) for cell in declared.cells() for seed in declared.seeds]
        units = [SeedCell.of(folder, declared, cell, seed) for cell, seed in pairs]
        missing = [each for each in units if not each.result.finished]
        run.asked, run.made = len(units), len(missing)
        if not so_far:
            ThisProcess().run(grid_jobs(declared, folder, networks, tick), tick)
            shutil.rmtree(folder / TRAINING, ignore_errors=True)
        elif len(missing) == len(units):
            raise InputError(f"{folder} has no finished cell of this grid: leave --so-far out.")
        results = _results(declared, folder, small=small)
        write_json(folder / RESULTS, {"plan": described, "plan_hash": digest(described), **results})
        write_settled(folder, described, results)
    return results


def _results(declared: DeclaredGrid, folder: Path, *, small: bool) -> dict[str, Any]:
    cells: dict[str, dict[str, Any]] = {}
    finished, missing = [], []
    commits: set[str] = set()
    for cell in declared.cells():
        units = {seed: SeedCell.of(folder, declared, cell, seed) for seed in declared.seeds}
        if not all(each.result.finished for each in units.values()):
            missing.append(cell)
            continue
        stored = {seed: each.read() for seed, each in units.items()}
        commits |= {made_at for _, _, made_at in stored.values()}
        metrics = cell_metrics({seed: reading for seed, (reading, _, _) in stored.items()})
        marks = {str(seed): why for seed, (_, why, _) in stored.items() if why}
        entry = {"settings": cell.settings, "metrics": metrics, "marked": marks}
        cells.setdefault(cell.data, {})[cell.name] = entry
        finished.append((cell.settings, metrics))
    lacking = [cell.settings for cell in missing]
    answer = None if small else decide(declared.answer, finished, lacking)
    origin = {"commit": commit(), "commits": sorted(commits), "trainings": declared.price}
    found = {**origin, "answer": answer, "cells": cells}
    return found | ({"missing": [f"{c.data}: {c.name}" for c in missing]} if missing else {})
