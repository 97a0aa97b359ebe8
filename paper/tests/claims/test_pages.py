"""The tables of the page on score semantics show what is stored, to the decimals they show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "semantics.md"
TABLES = ROOT / "results" / "semantics" / "tables"

Row = Mapping[str, str]
"""A row's text under each column's name."""

NUMBER = r"−?\d+\.\d+"
CELL = re.compile(
    rf"(?P<mean>{NUMBER})(?: ± (?P<std>{NUMBER}))?(?: \[(?P<low>{NUMBER}), (?P<high>{NUMBER})\])?"
    rf"(?: \((?P<paper>{NUMBER})(?: ± (?P<paper_std>{NUMBER}))?\))?"
)
"""Mean, standard deviation over seeds, interval, and in parentheses the paper's."""

SCORERS = {
    "TD-Q": "tdq",
    "raw bilinear": "raw",
    "cosine": "cosine",
    "hybrid": "hybrid",
    "TD, bilinear network": "td_bilinear",
    "contrastive, MLP network": "nce_mlp",
    "two heads, separate: q_td": "two_head_separate",
    "two heads, separate: f_cos": "two_head_separate.f_cos",
    "two heads, joint: q_td": "two_head_joint",
    "two heads, joint: f_cos": "two_head_joint.f_cos",
    "the task's own value": "q_star",
    "raw-trained, raw (deployed)": "raw_trained/raw",
    "raw-trained, cosine": "raw_trained/cosine",
    "raw-trained, ‖φ‖ alone": "raw_trained/phi_norm",
    "cosine-trained, cosine (deployed)": "cosine_trained/cosine",
    "cosine-trained, raw": "cosine_trained/raw",
    "cosine-trained, ‖φ‖ alone": "cosine_trained/phi_norm",
    "hybrid-trained, cosine (deployed)": "hybrid_trained/cosine",
    "hybrid-trained, its q_td head": "hybrid_trained/q_td",
    "TD-Q alone": "tdq_ref",
    "cosine alone (τ_b of f_cos)": "cosine_ref",
    "two heads, separate networks": "separate",
    "two heads, one network": "joint",
    "binary NCE": "binary_nce@{temperature}",
    "symmetric InfoNCE": "symmetric_info_nce@{temperature}",
}
"""What a row's first words are called in the tables."""


@dataclass(frozen=True)
class Shown:
    """One table of the page: where it stands, and the stored table and metric of each column."""

    section: str
    first: str
    """The column that names the row; a section's tables may share it."""
    columns: Mapping[str, tuple[str, str]]
    """Table and metric; ``{triples}`` and the like stand for another cell of the row."""
    task: str = "PointMaze"
    """Of all rows, where the table has no column for the task."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What such another cell's text is called in a metric."""


SEEN = {"held out": "held_out", "seen": "seen"}

SHOWN = [
    Shown(
        "The four critics on PointMaze",
        "critic",
        {
            "τ_b with γ^d": ("main", "tau"),
            "decile gap": ("calibration-summary", "gap"),
            "retrieval AUC": ("retrieval", "auc"),
            "regret, K = 64": ("ogbench-curse", "regret"),
            "normalized": ("value-oracle", "nregret_gamma"),
        },
    ),
    Shown(
        "Retrieval",
        "critic",
        {
            "AUC": ("retrieval", "auc"),
            "hard negatives": ("retrieval", "hard_negative_auc"),
            "recall@1": ("retrieval", "recall_1"),
            "recall@5": ("retrieval", "recall_5"),
            "nearer goal higher": ("retrieval", "nearer_goal"),
        },
    ),
    Shown(
        "Seen and held-out trajectories",
        "critic",
        {
            "AUC": ("seen", "auc_{triples}"),
            "hard negatives": ("seen", "hard_negative_auc_{triples}"),
            "nearer goal higher": ("seen", "nearer_goal_{triples}"),
            "τ_b with γ^d": ("seen", "tau_{triples}"),
        },
        task="Cube-double",
        words=SEEN,
    ),
    Shown(
        "Seen and held-out trajectories",
        "critic",
        {
            "nearer, held out": ("seen", "nearer_goal_held_out"),
            "nearer, seen": ("seen", "nearer_goal_seen"),
            "τ_b, held out": ("seen", "tau_held_out"),
            "τ_b, seen": ("seen", "tau_seen"),
        },
    ),
    Shown("Training against readout", "training and readout", {"τ_b with γ^d": ("readout", "tau")}),
    Shown(
        "Temperature",
        "loss",
        {
            "τ_b": ("temperature", "tau"),
            "AUC": ("temperature", "auc"),
            "decile gap": ("temperature", "gap"),
            "mean score": ("temperature", "score_mean"),
        },
    ),
    Shown(
        "Pooled best-of-K, and who judges it",
        "critic",
        {
            "by γ^d": ("value-oracle", "nregret_gamma"),
            "by an independent TD-Q": ("value-oracle", "nregret_oracle"),
            "by the shortest way": ("value-oracle", "nregret_euclidean"),
            "τ_b with the shortest way": ("value-oracle", "tau_euclidean"),
        },
    ),
    Shown(
        "Pooled best-of-K, and who judges it",
        "critic",
        {
            "by the exact value": ("value-oracle", "nregret_exact"),
            "τ_b with the exact value": ("value-oracle", "tau_exact"),
        },
    ),
    Shown(
        "Pooled best-of-K, and who judges it",
        "critic",
        {
            "regret": ("robustness", "regret_full"),
            "within quartiles of γ^d": ("robustness", "regret_within_bucket"),
            "centered τ_b": ("ogbench-curse", "centered_tau"),
        },
    ),
    Shown(
        "Pooled best-of-K, and who judges it",
        "critic",
        {
            "recorded actions": ("value-oracle-diffusion", "nregret_oracle_data"),
            "actions of the behaviour models": (
                "value-oracle-diffusion",
                "nregret_oracle_diffusion",
            ),
        },
    ),
    Shown(
        "Local support",
        "critic",
        {
            "50 nearest": ("robustness", "excess_off_50"),
            "200 nearest": ("robustness", "excess_off_200"),
            "800 nearest": ("robustness", "excess_off_800"),
            "200 nearest of other trajectories": ("robustness", "excess_off_200_trajectory"),
        },
    ),
    Shown(
        "Bellman consistency, and two heads",
        "critic",
        {"RMSE(δ)/std(f)": ("bellman", "rmse"), "std(δ)/std(f)": ("bellman", "std")},
    ),
    Shown(
        "Bellman consistency, and two heads",
        "checkpoint",
        {"τ_b of q_td": ("twohead", "tau"), "AUC of f_cos": ("twohead", "auc")},
    ),
]

ELSEWHERE = {("Retrieval", "AUC (hard negatives)"), ("Seen and held-out trajectories", "")}
"""Section and first column of the tables whose numbers are those of results/semantics_checks."""


@cache
def stored(table: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((TABLES / f"{table}.json").read_text(encoding="utf-8"))
    return content


def split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables_of(text: str) -> Iterator[tuple[str, list[str], list[Row]]]:
    """Section, columns and rows of every table; an empty first cell means the one above it."""
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        section = part.partition("\n")[0]
        for block in re.findall(r"(?:^\|.*\n)+", part, flags=re.MULTILINE):
            columns, _, *lines = (split(line) for line in block.splitlines())
            rows: list[Row] = []
            for cells in lines:
                first = cells[0] or rows[-1][columns[0]]
                rows.append(dict(zip(columns, [first, *cells[1:]], strict=True)))
            yield section, columns, rows


def shown_as(section: str, columns: list[str]) -> Shown | None:
    for shown in SHOWN:
        if shown.section == section and {shown.first, *shown.columns} <= set(columns):
            return shown
    return None


def scorer_of(shown: Shown, row: Row) -> str:
    name = row[shown.first].removesuffix(" (circular in the second)")
    return SCORERS[name].format_map(row)


@dataclass(frozen=True)
class Pair:
    """A cell of the page and the stored one, both as text."""

    where: str
    page: dict[str, str]
    stored: dict[str, str]


def pair(shown: Shown, row: Row, column: str) -> Pair:
    table, metric = shown.columns[column]
    metric = metric.format_map({name: shown.words.get(text, text) for name, text in row.items()})
    task, scorer = row.get("task", shown.task), scorer_of(shown, row)
    where = f"{column}, {table}/{task}/{scorer}/{metric}"
    found = CELL.fullmatch(row[column])
    assert found is not None, f"{where}: {row[column]!r} has another form"
    page = {part: text for part, text in found.groupdict().items() if text is not None}
    cell = stored(table)["rows"][task][scorer][metric]
    paper = stored(table)["paper"].get(task, {}).get(scorer, {}).get(metric, {})
    known = {**cell, **({"paper": paper["mean"], "paper_std": paper.get("std")} if paper else {})}
    decimals = {part: len(text.partition(".")[2]) for part, text in page.items()}
    values = {
        part: "nothing" if known.get(part) is None else f"{known[part]:.{n}f}".replace("-", "−")
        for part, n in decimals.items()
    }
    return Pair(where, page, values)


def pairs(text: str) -> Iterator[Pair]:
    for section, columns, rows in tables_of(text):
        shown = shown_as(section, columns)
        if shown is None:
            continue
        for row in rows:
            if row[shown.first].startswith("*"):  # what the paper says
                continue
            for column in shown.columns:
                if row[column] != "–":
                    yield pair(shown, row, column)


def out_of_date(text: str) -> list[str]:
    return [f"{p.where}: {p.page}, stored {p.stored}" for p in pairs(text) if p.page != p.stored]


def test_every_cell_is_the_stored_one() -> None:
    assert out_of_date(PAGE.read_text(encoding="utf-8")) == []


def test_no_table_is_left_out() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = [(s, columns[0], shown_as(s, columns)) for s, columns, _ in tables_of(text)]
    assert {(section, first) for section, first, shown in found if shown is None} == ELSEWHERE
    assert [shown for shown in SHOWN if shown not in [known for *_, known in found]] == []
    assert len(list(pairs(text))) > 300


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| TD-Q | 0.635 ± ", "| TD-Q | 0.636 ± "),
        ("| TD-Q | 0.635 ± 0.002", "| TD-Q | 0.635 ± 0.003"),
        ("[0.579, 0.684]", "[0.579, 0.685]"),
        ("(0.627 ± 0.002)", "(0.628 ± 0.002)"),
    ],
)
def test_another_number_is_found(old: str, new: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert old in text
    assert len(out_of_date(text.replace(old, new, 1))) == 1
