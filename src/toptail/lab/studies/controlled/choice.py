"""The rule that fixed the default setting, as code.

It runs on seeds and pools that no table reports and never looks at how a contrastive critic
selects: training length by the positive control, temperature by held-out retrieval.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from toptail.lab.studies.controlled.cells import CriticCell, compute_cell, unit_of
from toptail.lab.studies.controlled.config import StudyConfig
from toptail.lab.studies.controlled.evaluate import Pools
from toptail.lab.studies.controlled.picks import plain_cells
from toptail.lab.studies.controlled.specs import TABLES
from toptail.lab.studies.controlled.sweeps import cells_of
from toptail.lab.studies.folder import RunFolder
from toptail.lab.studies.tables import Cell as TableCell
from toptail.lab.studies.tables import Rows

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

    def cells_at(cell: CriticCell, steps: int) -> dict[str, TableCell]:
        units = [unit_of(run, config, cell, seed, steps) for seed in cell.seeds]
        return plain_cells(units, cell.critic.deployed)

    with run.recording(config.described(), list(config.seeds), command):
        rows: Rows = {}
        (control,) = cells_of(config, ("tdq",), steps=config.sweep_steps)
        run.made += compute_cell(run, config, control, pools)
        for n in config.sweep_steps:
            rows[f"controlled@steps={n}"] = {"tdq": cells_at(control, n)}
        run.asked = len(config.seeds) * (len(config.sweep_steps) + len(config.sweep_temperatures))
        steps = min(config.sweep_steps, key=lambda n: _miss(rows[f"controlled@steps={n}"]["tdq"]))
        for t in config.sweep_temperatures:
            (cosine,) = cells_of(config, ("cosine",), steps=(steps,), temperature=t)
            run.made += compute_cell(run, config, cosine, pools)
            rows[f"controlled@temperature={t:g}"] = {"cosine": cells_at(cosine, steps)}
        temperature = max(
            config.sweep_temperatures,
            key=lambda t: (
                rows[f"controlled@temperature={t:g}"]["cosine"]["retrieval_auc"]["mean"] or 0.0
            ),
        )
        chosen = {"steps": steps, "temperature": temperature}
        caption = "How the default setting was fixed, on seeds that are not reported"
        run.write_table("choice", TABLES["choice"].table(caption, rows, chosen=chosen))
    return chosen


def _miss(cells: dict[str, TableCell]) -> float:
    """How far TD-Q's regret lies from the reported one."""
    return abs((cells["regret"]["mean"] or 0.0) - CONTROL_REGRET)
