"""Results in which every statement of the paper holds: its cells, mended where they disagree."""

from __future__ import annotations

import copy
from typing import Any

from toptail_paper.claims.reported import cells

NAVIGATION = ("PointMaze", "AntMaze", "HumanoidMaze", "AntSoccer")
EIGHT = (*NAVIGATION, "Cube-single", "Cube-double", "Scene", "Puzzle")
CRITICS = ("tdq", "raw", "cosine", "hybrid")
K = [1, 2, 4, 8, 16, 32, 64]


def cell(mean: float, std: float = 0.001, half: float = 0.005) -> dict[str, Any]:
    """Three seeds around a mean, and an interval around it."""
    seeds = {"42": mean - std, "43": mean, "44": mean + std}
    return {"mean": mean, "std": std, "seeds": seeds, "low": mean - half, "high": mean + half}


def line(shape: list[float]) -> dict[str, Any]:
    return {"mean": shape, "std": [0.001] * len(shape), "seeds": {}, "low": shape, "high": shape}


def _table(label: str) -> dict[str, Any]:
    paper = cells(label, {})
    rows = {
        task: {
            critic: {metric: cell(reported["mean"]) for metric, reported in metrics.items()}
            for critic, metrics in critics.items()
        }
        for task, critics in paper.items()
    }
    return {"label": label, "rows": rows, "paper": copy.deepcopy(paper)}


def results() -> dict[str, Any]:
    names = (
        "main", "calibration-summary", "retrieval", "readout", "bellman", "ogbench-curse",
        "robustness", "value-oracle", "value-oracle-diffusion", "twohead",
    )  # fmt: skip
    made = {name: _table(f"tab:{name}") for name in names}
    _beside(made)
    _mend(made)
    made["curves"] = {"k": K, "n_near": 200, "tasks": {t: _curves() for t in NAVIGATION}}
    return made


def _beside(made: dict[str, Any]) -> None:
    """Metrics that the paper's tables do not have."""
    for task in EIGHT:
        for row in made["retrieval"]["rows"][task].values():
            row |= {"same_trajectory": cell(0.5), "nearer_goal": cell(0.6)}
    for task in NAVIGATION:
        for critic, row in made["ogbench-curse"]["rows"][task].items():
            row["normalized"] = cell(row["regret"]["mean"] / 0.24)
            row["centered_tau"] = cell(0.01)
            row |= {"random": cell(0.75), "oracle": cell(0.99)}
            if critic in ("cosine", "hybrid"):
                row |= {"median_selected": cell(-0.5), "share_above_0.9": cell(0.0, 0.0, 0.0)}
        for row in made["bellman"]["rows"][task].values():
            row["std"] = cell(row["rmse"]["mean"] * 0.9)
        for row in made["robustness"]["rows"][task].values():
            for size in (50, 200, 800):
                row[f"excess_off_{size}_trajectory"] = copy.deepcopy(row[f"excess_off_{size}"])
    models = {"gap": 0.001, "train": 0.5, "held_out": 0.501}
    made["value-oracle-diffusion"]["loss_gaps"] = {"AntMaze": {"42": models}}


def _mend(made: dict[str, Any]) -> None:
    """The paper's cells that do not meet its own sentences."""

    def put(name: str, task: str, critic: str, metric: str, mean: float) -> None:
        made[name]["rows"][task][critic][metric] = cell(mean)

    put("main", "PointMaze", "hybrid", "tau", 0.05)
    put("calibration-summary", "PointMaze", "hybrid", "gap", 0.03)
    for task in ("PointMaze", "AntMaze"):
        put("calibration-summary", task, "raw", "gap", 0.09)
    for task in ("PointMaze", "AntMaze", "HumanoidMaze"):
        put("main", task, "raw", "tau", 0.08)
    put("main", "HumanoidMaze", "cosine", "tau", -0.09)
    for task in ("AntMaze", "Puzzle"):
        put("retrieval", task, "tdq", "hard_negative_auc", 0.70)
        put("retrieval", task, "hybrid", "hard_negative_auc", 0.75)
        put("retrieval", task, "tdq", "auc", 0.81)
        put("retrieval", task, "hybrid", "auc", 0.86 if task == "AntMaze" else 0.808)
    put("retrieval", "HumanoidMaze", "tdq", "auc", 0.992)
    put("retrieval", "HumanoidMaze", "tdq", "hard_negative_auc", 0.95)
    for task in NAVIGATION:
        for critic, error in {"tdq": 0.05, "raw": 0.3, "cosine": 0.25, "hybrid": 0.15}.items():
            put("bellman", task, critic, "rmse", error)
            put("bellman", task, critic, "std", error * 0.9)
        put("ogbench-curse", task, "tdq", "regret", 0.02)
        put("robustness", task, "tdq", "regret_full", 0.04)
        put("robustness", task, "tdq", "regret_within_bucket", 0.03)
        for critic in CRITICS[1:]:
            put("robustness", task, critic, "regret_within_bucket", 0.06)
    put("robustness", "AntMaze", "raw", "excess_off_800", 0.01)
    put("robustness", "HumanoidMaze", "tdq", "excess_off_200", -0.01)
    put("value-oracle", "HumanoidMaze", "cosine", "nregret_oracle", 1.1)


def _curves() -> dict[str, Any]:
    rising = [0.6 + 0.02 * i for i in range(10)]
    entry: dict[str, Any] = {}
    for critic in CRITICS:
        good = critic == "tdq"
        entry[critic] = {
            "deciles": line(rising if good else [0.7] * 10),
            "profile": line([1.0, 0.7, 0.4] if good else [1.0, 0.95, 0.9]),
            "value": line(
                [0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97]
                if good
                else [0.75, 0.8, 0.78, 0.77, 0.76, 0.75, 0.74]
            ),
            "excess_off_support": line([0.0, -0.01] if good else [0.0, 0.02, 0.05]),
            "oracle": [0.75, 0.8, 0.85, 0.9, 0.93, 0.96, 0.99],
            "random": 0.75,
        }
    return entry
