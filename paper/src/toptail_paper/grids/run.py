"""A plan from its file to its answer: cells that are missing, then ``results.json``."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.io.json_files import write_json
from toptail.lab.store.folder import RunFolder
from toptail.lab.store.units import plain
from toptail.lab.training.run_files import digest
from toptail.progress import Tick, no_tick
from toptail.provenance import commit
from toptail_paper.grids.cells import TRAINING, SeedCell, cell_metrics
from toptail_paper.grids.page import write_settled
from toptail_paper.grids.plan import WHOLE, PlanPart, SettlePlan
from toptail_paper.grids.rules import decide

RESULTS = "results.json"
"""Cells and answer of a plan."""


def settle(
    plan: SettlePlan,
    folder: Path,
    command: str = "",
    tick: Tick = no_tick,
    *,
    small: bool = False,
    networks: Path | None = None,
    part: PlanPart = WHOLE,
    so_far: bool = False,
) -> dict[str, Any]:
    """Train and read every cell that is missing, and answer; killed at any moment, it goes on.

    Final networks lie in ``networks`` (a folder in ``folder`` unless given). A ``part``
    does some of the groups of trainings, and leaves the answer to who finds all. ``so_far`` trains
    nothing, and says what the finished cells decide.

    Returns
    -------
    The content of ``results.json``: the plan, every cell by data set and name, those that are
    missing, and the answer. A trial (``small``) has no answer. Empty where cells of other parts are
    missing.
    """
    described = plain(asdict(plan))
    run = RunFolder(folder)
    with run.recording(described, list(plan.seeds), command):
        units = [SeedCell.of(folder, plan, c, seed) for c in plan.cells() for seed in plan.seeds]
        run.asked = len(units)
        missing = [each for each in units if not each.unit.finished]
        if so_far:
            _require_some(folder, len(units) - len(missing))
        else:
            _work(plan, folder, networks or folder / "networks", part, tick)
            run.made = sum(each.unit.finished for each in missing)
            if run.made < len(missing):
                return {}
            shutil.rmtree(folder / TRAINING, ignore_errors=True)
        results = _results(plan, folder, small=small)
        write_json(folder / RESULTS, {"plan": described, "plan_hash": digest(described), **results})
        write_settled(folder, described, results)
    return results


def _require_some(folder: Path, finished: int) -> None:
    if not finished:
        raise InputError(f"{folder} has no finished cell of this plan: run it without --so-far.")


def _work(plan: SettlePlan, folder: Path, networks: Path, part: PlanPart, tick: Tick) -> None:
    if "decomposition" in plan.reads:
        from toptail_paper.grids.controlled import run_controlled_cells

        run_controlled_cells(plan, folder, tick, part)
    else:
        from toptail_paper.grids.networks import Networks
        from toptail_paper.grids.recorded import run_recorded_cells

        run_recorded_cells(plan, folder, Networks(networks), tick, part)


def _results(plan: SettlePlan, folder: Path, *, small: bool) -> dict[str, Any]:
    cells: dict[str, dict[str, Any]] = {}
    asked, missing = [], []
    commits: set[str] = set()
    for cell in plan.cells():
        units = {seed: SeedCell.of(folder, plan, cell, seed) for seed in plan.seeds}
        if not all(each.unit.finished for each in units.values()):
            missing.append(cell)
            continue
        stored = {seed: each.read() for seed, each in units.items()}
        commits |= {made_at for _, _, made_at in stored.values()}
        metrics = cell_metrics({seed: reading for seed, (reading, _, _) in stored.items()})
        marks = {str(seed): why for seed, (_, why, _) in stored.items() if why}
        entry = {"settings": cell.settings, "metrics": metrics, "marked": marks}
        cells.setdefault(cell.data, {})[cell.name] = entry
        asked.append((cell.settings, metrics))
    answer = None if small else decide(plan.answer, asked, [cell.settings for cell in missing])
    made = {"commit": commit(), "commits": sorted(commits), "trainings": plan.price}
    found = {**made, "answer": answer, "cells": cells}
    return found | ({"missing": [f"{c.data}: {c.name}" for c in missing]} if missing else {})
