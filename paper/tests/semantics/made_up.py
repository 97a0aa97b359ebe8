"""A made-up run folder of the semantics study: tables, curves and claims with known numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from toptail.io.json_files import write_json

SEEDS = ("42", "43", "44")
K = (1, 2, 4, 8, 16, 32, 64)
EDGES = (1, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56, 61)
MAIN = ("tdq", "raw", "cosine", "hybrid")
TAU = {"tdq": 0.61, "raw": 0.31, "cosine": 0.25, "hybrid": 0.18, "mine": -0.05, "joint": 0.6}
AUC = {"tdq": 0.875, "raw": 0.939, "cosine": 0.934, "hybrid": 0.92, "mine": 0.7}
PAPER_TAU = {"tdq": 0.627, "raw": 0.266, "cosine": 0.058, "hybrid": 0.181}
PAPER_AUC = {"tdq": 0.889, "raw": 0.967, "cosine": 0.961, "hybrid": 0.919}
CURSE = {
    "regret": 0.0, "normalized": 0.2, "value": 0.7, "oracle": 0.9, "random": 0.7,
    "regret_quartiles": 0.0, "centered_tau": 0.0, "query_std": 0.1, "median_selected": 0.2,
    "share_above_0.9": 0.0,
}  # fmt: skip
ROBUSTNESS = {
    "excess_off_50": 0.0, "excess_off_200": 0.1, "excess_off_50_trajectory": 0.0,
    "regret_full": 0.0, "regret_within_bucket": 0.0,
}  # fmt: skip
CONFIG = {
    "seeds": [42, 43, 44], "split": "val", "triples": 3000, "negatives": 49, "max_offset": 60,
    "gamma": 0.99, "support_queries": 500, "support_pool": 64, "n_near": [50, 200], "k": list(K),
    "oracle_seed": 7, "diffusion_seeds": [42, 7, 13], "resamples": 1000,
}  # fmt: skip


def cell(mean: float, seeds: Sequence[str] = SEEDS, step: float = 0.01) -> dict[str, Any]:
    """A cell whose seeds lie around the mean; its standard deviation is ``step`` for three."""
    by_seed = {seed: mean + step * (i - (len(seeds) - 1) / 2) for i, seed in enumerate(seeds)}
    std = step if len(seeds) > 1 else None
    return {"mean": mean, "std": std, "seeds": by_seed, "low": mean - 0.02, "high": mean + 0.02}


def table(name: str, rows: Mapping[str, Any], paper: Any = None, **more: Any) -> dict[str, Any]:
    about = {"label": f"tab:{name}", "caption": f"Made up: {name}", "notes": []}
    return about | {"rows": rows, "paper": paper or {}} | more


def navigation(scorers: Sequence[str], shift: float) -> dict[str, dict[str, Any]]:
    """Rows of one navigation task, by table."""

    def every(metrics: Mapping[str, float]) -> dict[str, Any]:
        return {s: {m: cell(x + TAU[s]) for m, x in metrics.items()} for s in scorers}

    readouts = ("raw_trained/raw", "raw_trained/cosine", "cosine_trained/phi_norm")
    return {
        "main": {s: {"tau": cell(TAU[s] + shift)} for s in scorers},
        "calibration-summary": {s: {"gap": cell(TAU[s] / 2)} for s in scorers},
        "readout": {r: {"tau": cell(0.1)} for r in readouts},
        "bellman": every({"rmse": 0.1, "std": 0.05}),
        "ogbench-curse": every(CURSE),
        "robustness": every(ROBUSTNESS),
        "value-oracle": every({"nregret_gamma": 0.0, "nregret_oracle": 0.1})
        | {"oracle": {"spearman": cell(0.73, ("7",))}},
        "value-oracle-diffusion": every({"nregret_oracle_data": 0.0}),
        "twohead": {"tdq_ref": {"tau": cell(0.6)}, "joint": {"tau": cell(0.6), "auc": cell(0.95)}},
    }


def retrieval(scorers: Sequence[str]) -> dict[str, Any]:
    metrics = ("auc", "hard_negative_auc", "recall_1", "recall_5", "same_trajectory", "nearer_goal")
    return {s: {m: cell(AUC[s] - 0.1 * i) for i, m in enumerate(metrics)} for s in scorers}


def seen(scorers: Sequence[str]) -> dict[str, Any]:
    """Every score but TD-Q's has learned its trajectories by heart."""
    metrics = ("auc", "hard_negative_auc", "nearer_goal", "tau")
    return {
        s: {f"{m}_held_out": cell(0.72) for m in metrics}
        | {f"{m}_seen": cell(0.72 if s == "tdq" or "auc" in m else 0.5) for m in metrics}
        for s in scorers
    }


def temperature(tasks: Sequence[str]) -> dict[str, Any]:
    seeds = ("0", "1", "2")
    row = {
        f"{loss}@{t}": {
            "tau": cell(0.3 - 0.1 * i, seeds),
            "auc": cell(0.94 - 0.05 * i, seeds),
            "gap": cell(0.15, seeds),
            "collapsed": cell(0.0, seeds, 0.0),
        }
        for loss in ("binary_nce", "symmetric_info_nce")
        for i, t in enumerate(("0.02", "0.1", "1", "learned"))
    }
    return {task: deepcopy(row) for task in tasks}


def curve(values: Sequence[float | None]) -> dict[str, Any]:
    spread = [None if x is None else 0.01 for x in values]
    return {"mean": values, "std": spread, "seeds": {"42": values}, "low": None, "high": None}


def curves(tasks: Sequence[str], scorers: Sequence[str]) -> dict[str, Any]:
    row = {
        s: {
            "deciles": curve([0.75 + TAU[s] * (i - 4.5) / 20 for i in range(10)]),
            "profile": curve([1 - max(TAU[s], 0) * i / 12 for i in range(12)]),
            "profile_edges": list(EDGES),
            "value": curve([0.75 + (TAU[s] - 0.2) * i / 20 for i in range(len(K))]),
            "oracle": [0.75 + 0.04 * i for i in range(len(K))],
            "random": 0.75,
            "excess_off_support": curve([(0.3 - TAU[s]) * i / 20 for i in range(len(K))]),
        }
        for s in scorers
    }
    return {"k": list(K), "n_near": 200, "tasks": dict.fromkeys(tasks, row)}


def paper(values: Mapping[str, float], metric: str, tasks: Sequence[str]) -> dict[str, Any]:
    return {t: {s: {metric: {"mean": x, "std": 0.005}} for s, x in values.items()} for t in tasks}


def claims() -> list[dict[str, Any]]:
    rest = {"where": "tab:main", "number": 0.5, "interval": [0.4, 0.6], "run": "", "also": []}
    rest |= dict.fromkeys(("depends_on", "interval_over", "changed", "settled"))
    return [
        {"id": f"made-up-{i}", "sentence": f"Statement <{i}>.", "status": status}
        | rest
        | {"comment": "Made up."}
        for i, status in enumerate(("seen", "not seen", "depends"))
    ]


def tables(
    mazes: Sequence[str], play: Sequence[str], scorers: Sequence[str], *, sweep: bool
) -> dict[str, Any]:
    """All tables of a run."""
    every = (*mazes, *play)
    content = {
        "retrieval": table(
            "retrieval",
            {t: retrieval(scorers) for t in every},
            paper(PAPER_AUC, "auc", every),
            notes=["same_trajectory: made up."],
        )
    }
    falls = {t: {s: cell(0.0 if s == "tdq" else 0.22) for s in scorers} for t in play}
    if play:
        content["seen"] = table("seen", {t: seen(scorers) for t in play}, falls=falls)
    by_task = {task: navigation(scorers, 0.02 * i) for i, task in enumerate(mazes)}
    for name in by_task[mazes[0]] if mazes else ():
        rows = {task: by_task[task][name] for task in mazes}
        reported = paper(PAPER_TAU, "tau", mazes) if name == "main" else None
        more = {"circular": ["tdq"]} if name.startswith("value-oracle") else {}
        content[name] = table(name, rows, reported, **more)
    if sweep and mazes:
        content["temperature"] = table("temperature", temperature(mazes[:1]), chosen=0.1)
    return content


def write_folder(
    path: Path,
    mazes: Sequence[str] = ("PointMaze", "AntMaze"),
    play: Sequence[str] = ("Cube-single",),
    scorers: Sequence[str] = MAIN,
    *,
    sweep: bool = True,
    ledger: bool = True,
) -> Path:
    """Write a run folder."""
    about = {"tasks": [*mazes, *play], **CONFIG}
    write_json(path / "config.json", {"study": "semantics", "hash": "0", "config": about})
    (path / "tables").mkdir()
    for name, content in tables(mazes, play, scorers, sweep=sweep).items():
        write_json(path / "tables" / f"{name}.json", content)
    write_json(path / "curves.json", curves(mazes, scorers))
    if ledger:
        write_json(path / "claims.json", claims())
        write_json(path / "record.json", {"command": "toptail <made up>", "seconds": 12.3})
    return path
