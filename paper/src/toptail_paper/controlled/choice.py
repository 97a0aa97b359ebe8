"""The rule that fixed the default setting, as code.

It runs on seeds and pools that no table reports and never looks at how a contrastive critic
selects: training length by the positive control, temperature by held-out retrieval.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from toptail.lab.store.folder import RunFolder
from toptail_paper.controlled.cells import CriticCell, compute_cell, unit_of
from toptail_paper.controlled.config import CONTROL, StudyConfig
from toptail_paper.controlled.evaluate import Pools
from toptail_paper.controlled.picks import plain_cells
from toptail_paper.controlled.specs import TABLES
from toptail_paper.controlled.sweeps import COSINES, cells_of
from toptail_paper.study.tables import Rows

CHOICE_SEEDS = (0, 1, 2, 3, 4)
"""Seeds that the default setting was fixed on; they are never reported."""

CONTROL_REGRET = 0.078
"""The regret reported for the positive control, TD-Q, which the training length is chosen by."""

CHOICE_POOL_SEED = 0
"""Seed of the queries, pools and held-out pairs of the choice."""


def choose_default(
    config: StudyConfig, out: str | Path, command: str | None = None
) -> dict[str, Any]:
    """Apply the rule; store ``tables/choice.json`` and return its ``chosen`` settings."""
    config = replace(config, seeds=CHOICE_SEEDS, pool_seed=CHOICE_POOL_SEED, sweeps=(), radii=())
    run = RunFolder(Path(out))
    pools = Pools.draw(config, config.world)
    rows: Rows = {}

    def measure(cell: CriticCell, steps: int, setting: str, metric: str) -> float:
        """Train what is missing, put the row under the setting, and read a mean off it."""
        run.made += compute_cell(run, config, cell, pools)
        units = [unit_of(run, config, cell, seed, steps) for seed in cell.seeds]
        cells = plain_cells(units, cell.critic.deployed)
        rows[f"controlled@{setting}"] = {cell.critic.name: cells}
        return cells[metric]["mean"] or 0.0

    with run.recording(asdict(config), list(config.seeds), command):
        run.asked = len(config.seeds) * (len(config.sweep_steps) + len(config.sweep_temperatures))
        (control,) = cells_of(config, (CONTROL,), steps=config.sweep_steps)
        regrets = {n: measure(control, n, f"steps={n}", "regret") for n in config.sweep_steps}
        steps = min(regrets, key=lambda n: abs(regrets[n] - CONTROL_REGRET))
        aucs = {}
        for t in config.sweep_temperatures:
            (cosine,) = cells_of(config, COSINES[:1], steps=(steps,), temperature=t)
            aucs[t] = measure(cosine, steps, f"temperature={t:g}", "retrieval_auc")
        chosen = {"steps": steps, "temperature": max(aucs, key=lambda t: aucs[t])}
        caption = "How the default setting was fixed, on seeds that are not reported"
        run.write_table("choice", TABLES["choice"].table(caption, rows, chosen=chosen))
    return chosen
