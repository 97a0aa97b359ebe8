"""A small study: random walks, tiny untrained networks, tiny pools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from paper.tests.semantics.fake_runs import write_run
from tests.training.toy import toy_config, toy_dataset
from toptail.lab.proposals.diffusion import DiffusionRun
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig, freeze_queries, load_queries
from toptail_paper.selection.config import (
    PoolSettings,
    ReferenceSettings,
    RolloutSettings,
    SelectionConfig,
    SupportSettings,
)
from toptail_paper.selection.files import SelectionFolder, read_declared
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.study.store import Stored

TASK = "walks"
DIFFUSION = DiffusionRun(
    TASK,
    "diffusion",
    4,
    16,
    log_every=2,
    settings=(("hidden", (8,)), ("levels", 4), ("time_dim", 4), ("ema_decay", 0.9)),
)


def small_config(**changes: Any) -> SelectionConfig:
    """Nine queries, two pools of four candidates."""
    settings: dict[str, Any] = {
        "task": TASK,
        "queries": QueryConfig(per_group=3, near=(1, 3), medium=(4, 8), far=(9, 15)),
        "pools": PoolSettings(count=2, size=4),
        "support": SupportSettings(nearest=5, quantile=0.9),
        "reference": ReferenceSettings(seeds=(101, 102)),
        "rollouts": RolloutSettings(per_group=2, repeats=2),
        "seeds": (42,),
        "ks": (1, 2, 4),
    }
    return SelectionConfig(**(settings | changes))


def small_queries(config: SelectionConfig | None = None) -> FrozenQueries:
    return freeze_queries(toy_dataset().val, (config or small_config()).queries)


def write_runs(out: Path) -> Path:
    """A behaviour model, two judges and a critic, untrained; returns the folder of runs."""
    write_run(DIFFUSION, 42, out)
    for seed in (101, 102):
        write_run(toy_config(critic="tdq"), seed, out)
    write_run(toy_config(critic="two_head_joint"), 42, out)
    return out


def write_values(folder: Path, judge: str, values: Any) -> None:
    """Values by a judge that the study does not make, written as the file of a stage."""
    files = SelectionFolder(folder)
    header = {
        "declared": read_declared(files)["hash"],
        "queries": load_queries(files.queries).sha256,
        "pools": CandidatePools.read(files.pools).sha256,
    }
    Stored(header, {"values": np.asarray(values, np.float32)}).write(files.values(judge))
