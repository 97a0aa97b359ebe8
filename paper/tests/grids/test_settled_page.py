"""The tables of the page of settled questions show what is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "settled.md").read_text(encoding="utf-8")
POINT = "pointmaze-medium-navigate-v0"

Metrics = Mapping[str, Mapping[str, Any]]
"""Metric -> its stored cell."""


@cache
def stored(plan: str) -> dict[str, Any]:
    text = (ROOT / "results" / "settled" / f"{plan}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def only(plan: str, data: str, **settings: str) -> Metrics:
    """The metrics of the one cell that has these settings."""
    cells = [
        cell["metrics"]
        for cell in stored(plan)["cells"][data].values()
        if settings.items() <= cell["settings"].items()
    ]
    assert len(cells) == 1
    found: Metrics = cells[0]
    return found


def written(x: float, decimals: int = 3) -> str:
    """A number as the page has it: .920, −.015."""
    text = f"{abs(x):.{decimals}f}"
    minus = "−" if x < 0 and float(text) else ""
    return minus + (text[1:] if text.startswith("0.") else text)


def mean(metrics: Metrics, name: str, decimals: int = 3) -> str:
    return written(metrics[name]["mean"], decimals)


def with_ends(metrics: Metrics, name: str) -> str:
    cell = metrics[name]
    return f"{written(cell['mean'])} [{written(cell['low'])}, {written(cell['high'])}]"


def manipulation() -> Iterator[str]:
    names = ("auc", "hard_negative_auc", "recall_1", "recall_5")
    shares = (("0.2", "0.5"), ("0.2", "0.8"), ("0", "0.7"), ("0", "1"))
    for (current, future), gamma in ((s, g) for s in shares for g in ("0.99", "0.9")):
        how = {"current": current, "future": future, "gamma": gamma, "expectile": "0.9"}
        sides = []
        for data in ("cube-single-play-v0", "scene-play-v0"):
            cell = only("tdq_manipulation", data, reward="-1_0", **how)
            sides.append(", ".join(mean(cell, name) for name in names))
        yield " | ".join(sides)


def info_nce() -> Iterator[str]:
    for temperature in ("0.1", "0.3", "1", "3"):
        how = {"temperature": temperature, "layer_norm": "on", "steps": "100000"}
        cell = only("cosine_info_nce", POINT, **how)
        rest = (("query_tau", 3), ("query_regret", 2), ("median_selected", 2))
        ends = [with_ends(cell, name) for name in ("auc", "tau")]
        yield " | ".join([*ends, *(mean(cell, name, n) for name, n in rest)])


def positives() -> Iterator[str]:
    for cell in stored("positives")["cells"][POINT].values():
        metrics = cell["metrics"]
        ends = [with_ends(metrics, name) for name in ("tau", "predicted_tau")]
        rest = ("nearer_goal", "predicted_nearer_goal", "auc")
        yield " | ".join([*ends, *(mean(metrics, name) for name in rest)])


def tasks() -> Iterator[str]:
    for cells in stored("memory_tasks")["cells"].values():
        for cell in cells.values():
            m = cell["metrics"]
            sides = (
                f"{mean(m, name)} → {mean(m, f'seen_{name}')} | {with_ends(m, f'memory_{name}')}"
                for name in ("hard_negative_auc", "tau")
            )
            yield " | ".join(sides)


def deployed() -> Iterator[str]:
    names = ["loop_box", *(f"actor_{alpha}" for alpha in ("0.001", "0.003", "0.01", "0.03", "0.1"))]
    for name in names:
        cells = stored("deployment")["cells"][POINT].values()
        for cell in (each["metrics"][name] for each in cells):
            middle, low, high = (f"{100 * cell[part]:.0f}" for part in ("mean", "low", "high"))
            yield f"{middle} % [{low}, {high}]"
            yield f"({', '.join(f'{100 * x:.0f}' for x in cell['seeds'].values())}) |"


def fingerprints() -> Iterator[str]:
    names = ("tau", "auc", "hard_negative_auc", "recall_1")
    for task in ("pointmaze", "antmaze", "humanoidmaze", "antsoccer"):
        answer = stored(f"fingerprint_{task}")["answer"]
        ranked = sorted(answer["settings"], key=lambda each: float(each["distance"]))
        for each in {x["data"]: x for x in reversed(ranked)}.values():
            if each["data"] not in FINGERPRINTS:
                continue
            cells = stored(f"fingerprint_{task}")["cells"][each["data"]]
            rows = []
            for critic in ("raw", "tdq"):
                own = [
                    cell["metrics"]
                    for cell in cells.values()
                    if cell["settings"]["critic"] == critic
                    and cell["settings"]["steps"] == each["steps"]
                    and (cell["settings"].keys() - {"critic", "data", "steps"}).isdisjoint(
                        {"positive_window", "reward"} - set(WITHIN.findall(each[critic]))
                    )
                    and all(x in cell["settings"] for x in WITHIN.findall(each[critic]))
                ]
                assert len(own) == 1
                rows.append(", ".join(mean(own[0], name) for name in names))
            yield f"| {written(each['distance'])} | {rows[0]} | {rows[1]} |"


def verdicts() -> Iterator[str]:
    for task in TASKS:
        name = f"fingerprint_{task.lower()}"
        found = stored(name)["answer"]
        numbers = (found["nearest"]["distance"], found["chance"])
        nearest, chance = (written(x) for x in numbers)
        assert "missing" not in stored(name)
        path = f"{name}.json) | {len(found['settings'])}"
        yield f"{path} | {found['verdict']} | {nearest} | .05 | {chance} |"


def full_size() -> Iterator[str]:
    """Every setting at full size: its distance, that of each seed alone, and what it read."""
    names = ("tau", "auc", "hard_negative_auc", "recall_1")
    for task in TASKS:
        found = stored(f"fingerprint_full_{task.lower()}")
        targets = found["plan"]["answer"]["targets"]
        assert "missing" not in found
        for each in found["answer"]["settings"]:
            own = {
                critic: found["cells"][each["data"]][_at_the_end(each[critic])]["metrics"]
                for critic in targets
            }
            alone = []
            for seed in map(str, found["plan"]["seeds"]):
                squares = [
                    (own[critic][name]["seeds"][seed] - target) ** 2
                    for critic, cells in targets.items()
                    for name, target in cells.items()
                ]
                alone.append((sum(squares) / len(squares)) ** 0.5)
            rows = (", ".join(mean(own[c], name) for name in names) for c in ("raw", "tdq"))
            seeds = ", ".join(map(written, alone))
            yield f"| {written(each['distance'])} | {seeds} | {' | '.join(rows)} |"


def _at_the_end(label: str) -> str:
    """The cell of a variant after its last step."""
    critic, _, settings = label.rstrip("]").partition("[")
    return f"{critic}[{','.join(x for x in (settings, 'steps=100000') if x)}]"


def main_tables() -> Iterator[str]:
    """The rows of the main tables, and how far they are from a fingerprint's targets."""
    folder = ROOT / "results" / "semantics" / "tables"
    tables = {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["rows"]
        for name in ("main", "retrieval")
    }
    for task in TASKS:
        targets = stored(f"fingerprint_{task.lower()}")["plan"]["answer"]["targets"]
        own = {c: tables["retrieval"][task][c] | tables["main"][task][c] for c in targets}
        squares = [
            (own[critic][name]["mean"] - target) ** 2
            for critic, cells in targets.items()
            for name, target in cells.items()
        ]
        distance = (sum(squares) / len(squares)) ** 0.5
        names = ("tau", "auc", "hard_negative_auc", "recall_1")
        rows = (", ".join(mean(own[critic], name) for name in names) for critic in ("raw", "tdq"))
        yield f"| {written(distance)} | {' | '.join(rows)} |"


TASKS = ("PointMaze", "AntMaze", "HumanoidMaze", "AntSoccer")
WITHIN = re.compile(r"(\w+)=")
FINGERPRINTS = {
    "fifth/antmaze-medium-stitch-v0.npz",
    "fifth/antmaze-large-navigate-v0.npz",
    "published/antmaze-large-navigate-v0.npz",
    "published/antmaze-medium-navigate-v0.npz",
    "again/pointmaze-medium-navigate-v0.npz",
    "fifth/pointmaze-giant-navigate-v0.npz",
    "fifth/pointmaze-large-navigate-v0.npz",
    "fifth/pointmaze-medium-navigate-v0.npz",
    "fifth/pointmaze-medium-stitch-v0.npz",
    *(
        f"fifth/humanoidmaze-{maze}-{kind}-v0.npz"
        for maze in ("medium", "large", "giant")
        for kind in ("navigate", "stitch")
    ),
    *(
        f"{walkers}/antsoccer-{maze}-{kind}-v0.npz"
        for walkers in ("fifth", "published")
        for maze in ("arena", "medium")
        for kind in ("navigate", "stitch")
    ),
}
"""The data sets whose nearest setting the page shows."""


ROWS = [manipulation, info_nce, positives, tasks, deployed, fingerprints, verdicts, full_size,
        main_tables]  # fmt: skip


@pytest.mark.parametrize("rows", ROWS)
def test_every_stored_row_stands_on_the_page(rows: Any) -> None:
    assert [row for row in rows() if row not in PAGE] == []


@pytest.mark.parametrize("path", sorted((ROOT / "plans").glob("*.json")), ids=lambda p: p.stem)
def test_every_plan_has_its_answer_and_every_result_its_plan_as_it_is(path: Path) -> None:
    """A plan that was changed after it ran would have another question than its result."""
    assert f"plans/{path.name}" in PAGE
    result = ROOT / "results" / "settled" / path.name
    if not result.exists():
        assert path.stem == "cosine_long", "that was not run"
        return
    assert f"results/settled/{path.name}" in PAGE
    plan, ran = json.loads(path.read_text(encoding="utf-8")), stored(path.stem)["plan"]
    assert {name: ran[name] for name in ("question", "data", "seeds", "steps", "grid")} == {
        name: plan.get(name, {}) for name in ("question", "data", "seeds", "steps", "grid")
    }
    assert ran["answer"] | plan["answer"] == ran["answer"]
