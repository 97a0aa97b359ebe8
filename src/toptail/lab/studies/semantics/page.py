"""The semantics study as one self-contained page, from its tables, curves and claims alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from toptail.lab.studies.page import (
    Picture,
    claim_entry,
    claim_tally,
    page_style,
    template,
    write_page,
)
from toptail.lab.studies.semantics.figures import drawings
from toptail.lab.studies.semantics.results import Semantics, drawn, read_semantics, scorer_name
from toptail.lab.studies.semantics.seen_figure import seen_lines
from toptail.lab.studies.semantics.show import notes, show_apart
from toptail.lab.studies.semantics.temperature_figure import temperature_lines
from toptail.report.table import Table
from toptail.report.text import join, number, plural


@dataclass(frozen=True)
class Part:
    """A section of the page: one question, its figures and its tables."""

    anchor: str
    """Where the page's contents lead to."""
    title: str
    """The heading."""
    lead: str
    """The question, in a sentence or two."""
    pictures: Sequence[Picture]
    """Its figures."""
    tables: Sequence[tuple[Table, Sequence[Table], Sequence[str]]]
    """Its tables, each with its controls, which are shown on demand, and its notes."""


_PARTS: Final = (
    (
        "progress",
        "Progress",
        "Does a higher score mean that the goal is nearer?",
        ("calibration",),
        ("main", "calibration-summary"),
    ),
    (
        "compatibility",
        "Compatibility",
        "Does the score tell the true goal from another one, whatever the distance?",
        ("good_rankers", "retrieval"),
        ("retrieval",),
    ),
    (
        "memory",
        "Memory",
        "Does the score know how near a goal is, or has it learned its trajectories by heart?",
        ("seen",),
        ("seen",),
    ),
    (
        "origins",
        "Where the ordering comes from",
        "Training or readout, consistency along a path, and both heads in one critic.",
        ("readout",),
        ("readout", "bellman", "twohead"),
    ),
    (
        "search",
        "What search does with it",
        "The best of K by score: over pooled triples, and among candidate actions at one (s, g).",
        ("ogbench_curse",),
        ("ogbench-curse", "robustness", "value-oracle", "value-oracle-diffusion"),
    ),
    (
        "temperature-study",
        "What the temperature decides",
        "The paper does not give the temperature of its cosine critic. The rule here: the one with "
        "the highest retrieval AUC, on triples and seeds that are reported nowhere else.",
        ("temperature_sweep",),
        ("temperature",),
    ),
)
"""Anchor, title, lead, figures and tables of each part."""

_READING: Final = (
    "Cells are mean ± standard deviation over training seeds. Below them: the 95 % interval of "
    "that mean, whole trajectories resampled with the trained critics held fixed, and the "
    "paper's number. ▲ and ▼: above or below the paper's by more than the larger of the two "
    "standard deviations (ours alone where the paper gives none) and the rounding.",
    "γ^d is the return-to-go of the recorded path: a value on navigation data, a lower bound "
    "where shorter ways exist, and nothing on play data, where only retrieval is measured. TD-Q "
    "is trained towards such a value: its agreement with γ^d is a check of the method, not a "
    "discovery.",
    "Retrieval and ordering are different questions: a score can tell every true goal from a "
    "random one and still not know which of two true goals is nearer. Pooled best-of-K compares "
    "scores of different (s, g); it says nothing about choosing among actions at one (s, g).",
)


def write_semantics_report(out: str | Path) -> Path:
    """Write ``figures/*.svg|png`` and ``report.html`` into a run folder.

    Returns
    -------
    The path of ``report.html``.
    """
    path = Path(out)
    study = read_semantics(path)
    return write_page(path, drawings(study), partial(render_semantics, study))


def render_semantics(study: Semantics, pictures: Sequence[Picture]) -> str:
    """Render the page."""
    return template("semantics.html").render(
        css=page_style(),
        summary=summary(study),
        parts=page_parts(study, pictures),
        claims=[claim_entry(entry) for entry in study.claims],
        tally=claim_tally(study.claims),
        reading=_READING,
        method=method_rows(study),
    )


def page_parts(study: Semantics, pictures: Sequence[Picture]) -> list[Part]:
    """The sections that this run has anything for."""
    shown = {picture.drawing.name: picture for picture in pictures}
    found = []
    for anchor, title, lead, figures, tables in _PARTS:
        part = Part(
            anchor,
            title,
            lead,
            [shown[name] for name in figures if name in shown],
            [_shown(name, study.tables[name]) for name in tables if study.rows(name)],
        )
        if part.pictures or part.tables:
            found.append(part)
    return found


def _shown(name: str, stored: Mapping[str, Any]) -> tuple[Table, Sequence[Table], Sequence[str]]:
    first, *controls = show_apart(name, stored)
    return first, controls, notes(name, stored)


def summary(study: Semantics) -> list[str]:
    """Say what came out, in sentences that hold numbers."""
    lines = []
    for table, metric, words in (
        ("main", "tau", "Kendall τ between score and γ^d"),
        ("retrieval", "auc", "Retrieval AUC"),
        (
            "ogbench-curse",
            "normalized",
            "Normalized regret of the best of K pooled triples by score",
        ),
        (
            "value-oracle",
            "nregret_geodesic",
            "Normalized regret of the same picks by the shortest way through the maze",
        ),
    ):
        rows = study.rows(table)
        parts = [
            f"{scorer_name(s)} {spread}"
            for s in drawn(s for task in rows.values() for s in task)
            if (spread := _range(rows, s, metric))
        ]
        if parts:
            lines.append(f"{words} on {join(rows)}: {'; '.join(parts)}.")
    return lines + seen_lines(study.tables.get("seen", {})) + temperature_lines(study)


def _range(rows: Mapping[str, Any], scorer: str, metric: str) -> str:
    """A scorer's mean on the one task, or the smallest and largest over tasks."""
    means = [task.get(scorer, {}).get(metric, {}).get("mean") for task in rows.values()]
    known = sorted(x for x in means if x is not None)
    if not known:
        return ""
    ends = [number(known[0]), number(known[-1])]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def method_rows(study: Semantics) -> list[tuple[str, str]]:
    """How it was computed: settings and the record of the run."""
    config, record = study.config, study.record
    seconds = record.get("seconds")
    rows = [
        ("Command", record.get("command")),
        ("Tasks", ", ".join(config["tasks"])),
        ("Seeds", ", ".join(str(seed) for seed in config["seeds"])),
        ("Triples", _triples(config)),
        ("Support pools", _pools(config) if study.rows("robustness") else None),
        (
            "Independent value",
            f"a TD-Q critic of seed {config['oracle_seed']}, not reported"
            if study.rows("value-oracle")
            else None,
        ),
        (
            "Behaviour models",
            f"diffusion, seeds {join(config['diffusion_seeds'])}"
            if study.rows("value-oracle-diffusion")
            else None,
        ),
        ("Best-of-K", "exact expectation over all subsets; no pool is drawn"),
        (
            "Intervals",
            f"95 %, {config['resamples']:,} bootstrap resamples of whole trajectories, the same "
            "for all critics of a task",
        ),
        ("Code", record.get("commit")),
        ("Versions", ", ".join(f"{k} {v}" for k, v in record.get("versions", {}).items())),
        ("Scoring took", None if seconds is None else plural(round(seconds), "second")),
    ]
    return [(label, text) for label, text in rows if text]


def _triples(config: Mapping[str, Any]) -> str:
    return (
        f"{config['triples']:,} per task from the {config['split']} split, goals 1 to "
        f"{config['max_offset']} steps ahead, γ = {config['gamma']:g}; {config['negatives']} "
        "goals of other trajectories beside each true one; shared by all critics and seeds"
    )


def _pools(config: Mapping[str, Any]) -> str:
    return (
        f"{config['support_queries']:,} queries with {config['support_pool']} candidates, half "
        f"actions of near states ({join(config['n_near'], 'or')} nearest), half of random ones"
    )
