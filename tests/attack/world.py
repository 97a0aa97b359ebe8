"""What the attacked commands work on: small tables, data sets, a critic, candidates and a judge."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import numpy as np

from tests.attack.forks import ROOT

DATA: Final = ROOT / "tests" / "tasks" / "data"
POINT: Final = "pointmaze-medium-navigate-v0"
CUBE: Final = "cube-single-play-v0"

CRITIC: Final = """
import numpy as np

def score(states, actions, goals):
    return -np.abs(states[:, :2] + 0.2 * actions[:, :2] - goals[:, :2]).sum(axis=1)
"""


def make_world(folder: Path) -> None:
    """Write everything that the commands of `cases` read."""
    from tests.training.toy import walks
    from toptail.lab.tasks.files import save_file

    folder.mkdir(parents=True)
    (folder / "data").mkdir()
    for name in (POINT, CUBE):
        for path in DATA.glob(f"{name}*.npz"):
            shutil.copy(path, folder / "data")
    save_file(folder / "data" / "walks.npz", walks(4, 200, seed=0))
    save_file(folder / "data" / "walks-val.npz", walks(3, 200, seed=1))
    (folder / "critic.py").write_text(CRITIC)
    _write_tables(folder)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (6, 1, 4, 2)).astype(np.float32)
    np.savez(folder / "mine.npz", actions=actions)
    np.savez(folder / "judge.npz", values=rng.normal(size=(6, 1, 5)))


def _write_tables(folder: Path) -> None:
    """Tables of scores, new and older, and of judged picks."""
    rng = np.random.default_rng(0)
    for name in ("scores.csv", "older.csv"):
        lines = ["query,candidate,group,cluster,a@1,a@2,b,value"]
        for query in range(50):
            for candidate in range(6):
                value = rng.random()
                a, b = value + rng.normal(0, 0.3, 2)
                row = f"q{query},{candidate},g{query % 3},c{query // 2}"
                lines.append(f"{row},{a:.6f},{b:.6f},{rng.integers(5)},{value:.6f}")
        (folder / name).write_text("\n".join(lines) + "\n")
    picks = ["query,selector,replicate,value"]
    for query in range(40):
        for place, selector in enumerate(("random", "best", "second")):
            values = rng.normal(0.2 * place, 1, 2)
            picks += [f"q{query},{selector},{r},{x:.6f}" for r, x in enumerate(values)]
    (folder / "picks.csv").write_text("\n".join(picks) + "\n")


def almost_finished_tasks(folder: Path) -> None:
    """Mark every job of a task as done but the last, whose study and runs are there."""
    from paper.tests.semantics.fake_runs import write_run
    from tests.training.toy import toy_config
    from toptail.lab.critics.registry import MAIN
    from toptail.lab.tasks.files import load_file
    from toptail_paper.commands.all import All
    from toptail_paper.semantics.config import SemanticsConfig

    split = load_file(folder / "data" / f"{CUBE}.npz")
    widths = split.observations.shape[1], split.actions.shape[1]
    for critic in MAIN:
        for seed in SemanticsConfig((CUBE,)).seeds:
            config = toy_config(task=CUBE, critic=critic)
            write_run(config, seed, folder / "runs", split.sha256, widths)
    data, runs = folder / "data", folder / "runs"
    jobs = All(task=(CUBE,), out=folder / "studies", data=data, runs=runs).jobs()
    for job in jobs[:-1]:
        job.lock.parent.mkdir(parents=True, exist_ok=True)
        job.lock.with_suffix(".done").touch()


def tiny_controlled() -> None:
    """Make the 2-D study one of seconds, in this process."""
    from dataclasses import replace

    from paper.tests.controlled.tiny import TINY
    from toptail_paper.commands import study_controlled
    from toptail_paper.controlled import config

    study_controlled.BASE = replace(TINY, seeds=(1,))  # type: ignore[misc]
    config.StudyConfig = lambda: replace(TINY, seeds=(1,))  # type: ignore[misc, assignment]
