"""The study at its smallest: the toy data set, few triples, small pools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.training.toy import toy_dataset, toy_file
from toptail.lab.tasks.files import TaskDataset
from toptail_paper.semantics.config import SemanticsConfig

WALKS = TaskDataset("walks", "walks", navigation=True, data=toy_dataset())


def small_config(task: str = "walks", **changes: Any) -> SemanticsConfig:
    settings: dict[str, Any] = {
        "tasks": (task,),
        "seeds": (42,),
        "triples": 40,
        "negatives": 5,
        "max_offset": 6,
        "behaviour_actions": 3,
        "support_queries": 8,
        "support_pool": 6,
        "n_near": (2, 12),
        "k": (1, 2, 4),
        "diffusion_seeds": (42, 13),
    }
    return SemanticsConfig(**(settings | changes))


def walks_file(folder: Path) -> str:
    """The toy data set as files; returns the path of the training file."""
    return str(toy_file(folder))
