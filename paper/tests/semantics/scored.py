"""Small stored scores that can be worked out by hand.

Built on the regular world of ``world.py of tests/triples``: eight triples a trajectory, d in 1..4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.tests.triples import world
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.load import DiffusionPools, SupportPools, TaskScores
from toptail_paper.triples.scored import ScoredTriples

CONFIG = SemanticsConfig(
    tasks=("PointMaze",),
    seeds=(42, 43),
    triples=96,
    negatives=world.NEGATIVES,
    max_offset=4,
    gamma=world.GAMMA,
    support_queries=8,
    support_pool=4,
    n_near=(50, 200),
    k=(1, 2, 4),
    resamples=40,
)

# Which critic of the world each scorer is; "mine" is a user's function without seeds.
CRITICS = {
    "tdq": "exact",
    "raw": "constant",
    "cosine": "opposite",
    "two_head_separate": "exact",
    "two_head_separate.f_cos": "separator",
    "mine": "separator",
}
COLUMNS = [
    *(f"{scorer}@{seed}" for scorer in CRITICS for seed in (42, 43) if scorer != "mine"),
    "mine",
    "noise@42",
    "noise@43",
]
FAMILIES = ("scores", "negatives", "hard_negatives", "second_goals", "next_scores")


def _columns(triples: ScoredTriples, family: str) -> dict[str, NDArray[np.float64]]:
    """The family's arrays under the scorers' names; noise is different in every seed."""
    stored = getattr(triples, family)
    result = {}
    for column in COLUMNS:
        scorer, _, seed = column.partition("@")
        if scorer == "noise":
            rng = np.random.default_rng([int(seed), FAMILIES.index(family)])
            result[column] = rng.normal(size=stored["exact"].shape)
        else:
            result[column] = stored[CRITICS[scorer]]
    return result


def triples() -> ScoredTriples:
    base = world.scored()
    columns: dict[str, Any] = {family: _columns(base, family) for family in FAMILIES}
    scores = columns["scores"]
    readouts = {}
    for seed in (42, 43):
        readouts[f"raw:cosine@{seed}"] = scores["tdq@42"]
        readouts[f"raw:norm@{seed}"] = scores["cosine@42"]
        readouts[f"cosine:raw@{seed}"] = scores["mine"]
    return replace(
        base,
        **columns,
        readouts=readouts,
        step_reward={column.partition("@")[0]: 0.0 for column in COLUMNS},
        query_means={column: scores[column] - scores["tdq@42"] for column in COLUMNS},
        values={"oracle": 3.0 * base.value + 1.0},
    )


def navigation() -> TaskScores:
    scored = triples()
    on = np.tile(np.arange(4) < 2, (8, 1))
    prefers = {"tdq": 1.0, "raw": 0.0, "cosine": -1.0}

    def pools(sign: float) -> SupportPools:
        scores = {
            c: np.where(on, sign * prefers.get(c.partition("@")[0], 0.0), 0.0) for c in COLUMNS
        }
        return SupportPools(np.arange(8) // 2, on, scores)

    diffusion = {
        seed: DiffusionPools(
            np.random.default_rng(seed).normal(size=len(scored)), dict(scored.scores)
        )
        for seed in (42, 7)
    }
    return TaskScores(
        task="pointmaze-medium-navigate-v0",
        key="PointMaze",
        navigation=True,
        triples=scored,
        query_std={column: np.full(len(scored), 0.25) for column in COLUMNS},
        support={(n, "row"): pools(1.0) for n in (50, 200)}
        | {(n, "trajectory"): pools(-1.0) for n in (50, 200)},
        diffusion=diffusion,
        loss_gaps={42: {"train": 0.5, "held_out": 0.51, "gap": 0.01, "low": 0.0, "high": 0.02}},
        origins={},
        made_from={column: column for column in COLUMNS},
    )


def manipulation() -> TaskScores:
    task = navigation()
    kept = replace(
        task.triples, readouts={}, next_scores={}, query_means={}, values={}, step_reward={}
    )
    return replace(
        task,
        task="cube-single-play-v0",
        key="Cube-single",
        navigation=False,
        triples=kept,
        query_std={},
        support={},
        diffusion={},
        loss_gaps={},
    )


def seen() -> TaskScores:
    """The cube's critics on trajectories that they were trained on: they answer as ever."""
    return manipulation()


def temperature() -> TaskScores:
    """At 0.05 an exact critic, at 0.1 a blurred one, at 1 a collapsed one; learned retrieves."""
    base = triples()
    settings = {
        "binary_nce-1.0": "raw",
        "binary_nce-0.1": "noise",
        "binary_nce-0.05": "tdq",
        "binary_nce-learned": "mine",
        "symmetric_info_nce-0.05": "cosine",
    }

    def named(columns: Any) -> dict[str, Any]:
        return {
            f"{setting}@{i}": columns[scorer if scorer == "mine" else f"{scorer}@{seed}"]
            for setting, scorer in settings.items()
            for i, seed in enumerate((42, 43))
        }

    kept = ScoredTriples(
        rows=base.rows,
        goal_rows=base.goal_rows,
        trajectory=base.trajectory,
        gamma=base.gamma,
        scores=named(base.scores),
        negatives=named(base.negatives),
        negative_rows=base.negative_rows,
    )
    made_from = {column: column for column in kept.scores}
    return TaskScores("pointmaze-medium-navigate-v0", "PointMaze", True, kept, {}, made_from)
