"""Scorers: the columns of a task's scores, made of trained runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.critics.base import TrainedCritic
from toptail.critics.full import FULL_SIZE
from toptail.studies.semantics.config import ORACLE, SWEEP, SemanticsConfig
from toptail.training.run_files import RECORD, Run, read_run, run_folder
from toptail.training.runs import load_run, stored_config

Rows: TypeAlias = NDArray[np.float32]

Score: TypeAlias = Callable[[Rows, Rows, Rows], Rows]
"""(states [n, s], actions [n, a], goals [n, g]) -> scores [n]; larger is better."""

READOUTS = {
    "raw": {"cosine": "f_cos", "norm": "phi_norm"},
    "cosine": {"raw": "f_raw", "norm": "phi_norm"},
    "hybrid": {"q_td": "q_td", "q_hybrid": "q_hybrid"},
}
"""Critic to the further scalars that are read from its checkpoints: our name to the critic's."""

TWO_HEAD = ("two_head_separate", "two_head_joint")
"""Critics whose cosine head is a scorer of its own, ``NAME.f_cos``."""

CONTRASTIVE = ("f_raw", "f_cos", "phi_norm", "logit")
"""Readouts without a value target: no step has a reward."""

SMALLEST_BLOCK = 256
"""Rows of one compiled call, at least; others are filled up to a power of two."""


@dataclass(frozen=True, eq=False)
class Scorer:
    """One column: a function of states, actions and goals, and what must be known of it."""

    column: str
    """``NAME@SEED``, or ``NAME`` where there is no training seed."""

    score: Score
    """The deployed scalar."""

    origin: Mapping[str, Any]
    """Where it comes from, as JSON has it; equal origins give equal scores, unless `opaque`."""

    step_reward: float = 0.0
    """Reward of a step that misses the goal, in the scale of the score."""

    readouts: Mapping[str, Score] = field(default_factory=dict)
    """Further scalars of the same network."""

    opaque: bool = False
    """Whether the origin does not decide the scores, as a user's function may read other files."""


def run_scorers(runs: Path, task: str, config: SemanticsConfig) -> list[Scorer]:
    """The scorers of every finished run ``RUNS/TASK/CRITIC/seed-N`` of the wanted seeds.

    Critics that nobody trained and seeds that are missing are left out; what was trained and is
    not valid is refused. The independently seeded TD-Q comes as ``oracle@SEED``.
    """
    scorers = []
    for critic in FULL_SIZE:
        for seed in config.seeds:
            scorers += of_run(runs / task / critic, seed, task)
    for scorer in of_run(runs / task / "tdq", config.oracle_seed, task):
        scorers.append(replace(scorer, column=f"{ORACLE}@{config.oracle_seed}"))
    return scorers


def sweep_scorers(runs: Path, task: str) -> list[Scorer]:
    """The cosine critics of the temperature study: ``RUNS/temperature/SETTING/TASK/...``."""
    found: list[Scorer] = []
    for home in sorted((runs / SWEEP).glob(f"*/{task}/cosine")):
        setting = home.parent.parent.name
        numbers = [path.name.removeprefix("seed-") for path in home.glob("seed-*")]
        for seed in sorted(int(number) for number in numbers if number.isdigit()):
            column = f"{setting}@{seed}"
            found += [replace(each, column=column) for each in of_run(home, seed, task)]
    return found


def of_run(home: Path, seed: int, task: str) -> list[Scorer]:
    """The scorers of one run: none if there is no run, two for a two-head checkpoint.

    Whatever it was trained with, a run is read in float32: see `load_run`.
    """
    folder = run_folder(home, seed)
    if not (folder / RECORD).is_file():
        return []
    run = read_run(folder)

    @cache
    def trained() -> TrainedCritic:
        """Load the run when it is first asked, and put it on the device once for all calls."""
        loaded = load_run(folder, task, in_float32=True)
        return replace(loaded, params=jax.device_put(loaded.params))

    if run.state != "finished":
        trained()  # says what is wrong with it
    name, deployed = str(run.config["critic"]), stored_config(run).build().deployed
    reads = {deployed: f"{name}@{seed}"}
    if name in TWO_HEAD:
        reads["f_cos"] = f"{name}.f_cos@{seed}"
    return [
        Scorer(
            column,
            _reader(trained, read),
            run_origin(run) | {"readout": read, "read_in": "float32"},
            -1.0 if run.config["reward"] == "-1/0" and read not in CONTRASTIVE else 0.0,
            {ours: _reader(trained, theirs) for ours, theirs in READOUTS.get(name, {}).items()},
        )
        for read, column in reads.items()
    ]


def _reader(trained: Callable[[], TrainedCritic], readout: str) -> Score:
    """A readout in full float32 that compiles few shapes: rows are filled up to a power of two."""

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        n = len(states)
        missing = max(SMALLEST_BLOCK, 1 << (n - 1).bit_length()) - n
        rows = [np.pad(x, [(0, missing), (0, 0)]) for x in (states, actions, goals)]
        with jax.default_matmul_precision("highest"):
            return replace(trained(), readout=readout).score(*rows)[:n]

    return score


def run_origin(run: Run) -> dict[str, Any]:
    """What identifies a run."""
    config = run.config
    return {
        "run": "/".join(run.folder.parts[-3:]),
        "critic": config["critic"],
        "seed": run.record["seed"],
        "config_hash": run.config_hash,
        "params_sha256": run.record["params_sha256"],
        "data": run.record["data"]["train"],
        "steps": config["steps"],
        "batch_size": config["batch_size"],
        "learning_rate": config["learning_rate"],
        "bfloat16": config["bfloat16"],
        "reward": config["reward"],
        "settings": config["settings"],
        "critic_fields": config["critic_fields"],
    }
