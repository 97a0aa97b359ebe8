"""Every row of a leaderboard of the zoo: numbers, verdicts, and the declared answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.io.json_files import read_json
from toptail.lab.critics.registry import CRITICS, entry, without_settings
from toptail.lab.tasks.names import parse_name
from toptail.stats.resample import bootstrap_p, holm
from toptail_paper.study.naming import IDEALS, settings_words, split_readout
from toptail_paper.zoo.answers import (
    FROM_INPUTS,
    FROM_PHI,
    HEAD,
    RAW,
    TDQ,
    answers,
    by_its_own_kind,
    cure,
    gap,
    split,
)
from toptail_paper.zoo.followed import FOLLOWED, followed_answers
from toptail_paper.zoo.scores import SOURCES, table_name
from toptail_paper.zoo.shares import ScoreTable, cell

TASK: Final = "pointmaze-medium-navigate-v0"
FORMAT: Final = "toptail-zoo-1"
IDEAL_ROWS: Final = ("log_ratio", "gamma_d", "q_behaviour")
"""Ideal critics, which nobody trained: see `toptail_paper.zoo.ideals`."""
FITTED: Final = (FROM_PHI, FROM_INPUTS)
NO_CRITICS: Final = (*FITTED, *IDEAL_ROWS)
"""Rows that explain others: no answer is given about them, and the leaderboard leaves them out."""
IN_LARGER_POOLS: Final = "larger.json"
"""File of the verdicts in larger pools, where there are any."""
SIMULATOR: Final = "simulator"
"""Name of the check of all critics in the simulator, which has candidates of its own."""

TITLES: Final = {
    "straight": "Straight line to the goal",
    "random": "Random score",
    "raw_all_mean": "Raw: mean of 6 networks",
    "raw_all_min": "Raw: minimum of 6 networks",
    "raw_all_lcb": "Raw: lower bound of 6 networks",
    "tdq_all_mean": "TD-Q: mean of 6 networks",
    "tdq_all_min": "TD-Q: minimum of 6 networks",
    "tdq_all_lcb": "TD-Q: lower bound of 6 networks",
    FROM_PHI: "TD-Q's values, fitted from raw's φ and ψ",
    FROM_INPUTS: "TD-Q's values, fitted from state, action and goal",
    **IDEALS,
}
"""Names of rows that are no critic's own."""


def has_exact_value(task: str) -> bool:
    """Whether a task is judged by its exact value, and not by a reference ensemble."""
    return parse_name(task).family == "pointmaze"


def summary(results: Path, task: str = TASK) -> dict[str, Any]:
    """Every row of the zoo on a task, with the answers that were asked for before.

    ``results`` has the tables of `toptail_paper.zoo.scores`, ``checks.json`` and ``runs.json``, and
    may have ``larger.json``.
    """
    tables = {source: ScoreTable(results / table_name(task, source)) for source in SOURCES}
    shares = {source: table.captured() for source, table in tables.items()}
    audits = {source: table.audit() for source, table in tables.items()}
    checks, runs = read_json(results / "checks.json"), read_json(results / "runs.json")
    doubts = checks.get("doubts", {})
    larger = results / IN_LARGER_POOLS
    of_larger = read_json(larger) if larger.is_file() else {}
    first = tables[SOURCES[0]]
    rows: dict[str, dict[str, Any]] = {}
    for name, columns in first.seeds.items():
        captured = {}
        for source, audit in audits.items():
            status = "inconclusive" if source in doubts else audit.verdicts[name].status
            tau = audit.to_dict()["scorers"][name]["tau_b"]["mean"]
            own = cell(*shares[source].of(name))
            captured[source] = {**own, "status": status, "tau_b": tau}
        trained = _runs_of(runs, f"{task}/{name}", list(columns))
        logged = [run["last_metrics"]["auc"] for run in trained if "last_metrics" in run]
        rows[name] = {
            "title": title(name),
            "trained_by": trained_by(name),
            "seeds": len(columns),
            "captured": captured,
            "ascent": checks.get(name, {}).get("ascent"),
            "followed": checks.get(name, {}).get("followed", {}),
            "auc": _mean(logged),
            "train_seconds": _mean(run["seconds"] for run in trained),
        }
        if name in of_larger:
            rows[name]["larger"] = of_larger[name]
    judged = results / table_name(task, SIMULATOR)
    in_simulator = (
        ScoreTable(tables[SOURCES[0]].path, judged) if has_exact_value(task) else ScoreTable(judged)
    )
    found = simulated(in_simulator) if judged.is_file() else {}
    asked = {name: row for name, row in rows.items() if name not in NO_CRITICS}
    undecided = set() if has_exact_value(task) else by_its_own_kind(asked, found)
    for name, answer in answers(asked, shares, undecided).items():
        if doubts and "than_raw" in answer:  # the judge decides nothing
            answer = {**answer, "than_raw": "not decided"}
            del answer["more_than_raw"]
        rows[name] |= answer
    more: dict[str, Any] = {"doubts": doubts} if doubts else {}
    if IDEAL_ROWS[0] in rows:
        more["split"] = split(shares)
    if {HEAD, *FITTED} <= rows.keys():
        more["gap"] = gap(shares)
    if found:
        more["simulator"] = found
        if {HEAD, TDQ} <= found.keys():
            gains = in_simulator.gains()
            (head, of_head), (tdq, of_tdq) = (gains.of(name) for name in (HEAD, TDQ))
            more["head_less_tdq"] = cell(head - tdq, of_head - of_tdq)
        if in_simulator.judged is not None:
            more["headroom"] = in_simulator.headroom()
            more["repeats"], _, more["simulated_k"] = in_simulator.judged.shape
    episodes = results / table_name(task, FOLLOWED)
    if episodes.is_file():
        more["in_episodes"] = followed_answers(episodes)
    return {
        "format": FORMAT,
        "task": task,
        "judge": "exact" if has_exact_value(task) else "reference",
        "queries": first.queries,
        "k": 64,
        "commit": checks["commit"],
        "critics": dict(
            sorted(rows.items(), key=lambda row: -row[1]["captured"]["nearest"]["mean"])
        ),
        "cure": cure(rows, shares) if HEAD in rows else None,
        **more,
    }


def simulated(table: ScoreTable) -> dict[str, Any]:
    """Verdicts and gains of the picks in the simulator, alone and less raw's, paired by query.

    ``p`` is that of the difference, corrected for all others by Holm's rule.
    """
    found, verdicts = table.gains(), table.audit().verdicts
    of_raw, raw = found.of(RAW)
    others = [name for name in found.names if name != RAW]
    p = holm([bootstrap_p((found.of(name)[1] - raw)[:, None])[0] for name in others])
    corrected = dict(zip(others, p, strict=True))
    return {
        name: {
            "status": verdicts[name].status,
            "gain": cell(point, draws),
            "more_than_raw": {**cell(point - of_raw, draws - raw), "p": corrected.get(name, 1.0)},
        }
        for name in found.names
        for point, draws in [found.of(name)]
    }


def title(name: str) -> str:
    if name in TITLES:
        return TITLES[name]
    critic, readout = split_readout(name)
    own, settings = entry(critic).title, settings_words(critic)
    if settings:
        own = f"{own} ({settings})"
    kinds = {"min": "minimum of 2 networks", "lcb": "lower bound of 2 networks"}
    return f"{own}: {kinds[readout.rpartition('_')[2]]}" if readout else own


def trained_by(name: str) -> str | None:
    """The objective of a row; None where nothing is trained."""
    critic = without_settings(split_readout(name)[0]).partition("_all")[0]
    return CRITICS[critic].trained_by if critic in CRITICS else None


def _runs_of(
    runs: Mapping[str, Any], home: str, seeds: Sequence[int | None]
) -> list[Mapping[str, Any]]:
    """The runs of a row's seeds; of a run that was trained twice, ``seed-42 (second run)``."""
    found = []
    for seed in seeds:
        own = {key: run for key, run in runs.items() if key.split(" ")[0] == f"{home}/seed-{seed}"}
        found += [run for _, run in sorted(own.items())][-1:]
    return found


def _mean(numbers: Iterable[float]) -> float | None:
    found = list(numbers)
    return float(np.mean(found)) if found else None
