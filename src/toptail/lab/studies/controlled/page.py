"""The controlled study as one self-contained page, from its run folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toptail.lab.studies.controlled.figures import drawings
from toptail.lab.studies.controlled.results import Study, critic_name, read_study
from toptail.lab.studies.controlled.show import (
    decomposition_table,
    difference_table,
    noise_table,
    norm_table,
    paper_tables,
    theory_table,
    verdict_table,
)
from toptail.lab.studies.page import (
    Picture,
    claim_entry,
    claim_tally,
    page_style,
    template,
    write_page,
)
from toptail.report.text import number, plural


def write_study_report(folder: str | Path) -> Path:
    """Write ``figures/*.svg|png`` and ``report.html`` into a run folder."""
    path = Path(folder)
    study = read_study(path)
    return write_page(path, drawings(study), partial(render_study, study))


def render_study(study: Study, pictures: Sequence[Picture]) -> str:
    """Render the page."""
    shown = {picture.drawing.name: picture for picture in pictures}
    tables = [decomposition_table(study), noise_table(study), norm_table(study)]
    tables += [theory_table(study), verdict_table(study), difference_table(study)]
    named = {table.name: table for table in tables if table is not None}
    return template("study.html").render(
        css=page_style(),
        summary=summary(study),
        paper_tables=paper_tables(study),
        tables=named,
        pictures=shown,
        sweeps=[p for name, p in shown.items() if name.startswith("sweep_")],
        claims=[claim_entry(entry) for entry in study.claims],
        tally=claim_tally(study.claims),
        method=method_rows(study),
    )


def summary(study: Study) -> list[str]:
    """Say what came out, in sentences that hold numbers."""
    table = study.tables.get("toy-support")
    if table is None:
        return []
    rows = table["rows"]["controlled"]
    k = study.config["pool"]
    parts = [
        f"{critic_name(critic)} {number(row['regret']['mean'])} "
        f"({number(100 * row['off_support']['mean'], 0)} % off support)"
        for critic, row in rows.items()
    ]
    lines = [
        f"Mean regret of the best of {k} candidates by score, over "
        f"{plural(len(study.config['seeds']), 'seed')}: {'; '.join(parts)}."
    ]
    if study.curves is not None:
        rate = float(study.curves.of("raw", "off_support")[0, 0])
        lines.append(
            f"A random candidate has value {number(study.curves.random)} and is off support in "
            f"{number(100 * rate, 0)} % of cases; the best of {k} has value "
            f"{number(float(study.curves.oracle[-1]))}."
        )
    return lines


def method_rows(study: Study) -> list[tuple[str, str]]:
    """How it was computed: settings and the record of the run."""
    config, record = study.config, study.record
    units = record.get("units", {})
    rows = [
        ("Command", record.get("command")),
        ("Seeds", ", ".join(str(seed) for seed in config["seeds"])),
        ("World", _world(config)),
        ("Queries and pools", _pools(config)),
        ("Training", _training(config)),
        ("Best-of-K", "exact expectation over all subsets of each pool; at full size, the argmax"),
        (
            "Intervals",
            f"95 %; over queries by {config['resamples']:,} bootstrap resamples, over seeds by "
            "Student's t",
        ),
        ("Code", record.get("commit")),
        ("Versions", ", ".join(f"{k} {v}" for k, v in record.get("versions", {}).items())),
        (
            "Time",
            f"{record['seconds']:.0f} s for {units['trained']} trained and {units['reused']} "
            "stored units"
            if "seconds" in record
            else None,
        ),
    ]
    return [(label, text) for label, text in rows if text]


def _world(config: Mapping[str, Any]) -> str:
    world = config["world"]
    return (
        f"support radius {world['radius']:g}; {100 * world['aligned_share']:g} % of the actions "
        f"goal-aligned with noise {world['aligned_noise']:g} R, the others uniform in the disk; "
        f"{config['data_size']:,} transitions per seed"
    )


def _pools(config: Mapping[str, Any]) -> str:
    return (
        f"{config['queries']} queries with {config['pool']} candidates each, Gaussian with scale "
        f"{config['world']['proposal_scale']:g} R, clipped to the box; shared by all critics and "
        "seeds"
    )


def _training(config: Mapping[str, Any]) -> str:
    c = config["critics"]
    temperature = "learned" if c["learn_temperature"] else f"{c['temperature']:g}"
    return (
        f"{config['steps']:,} steps, batch {config['batch_size']}, Adam "
        f"{config['learning_rate']:g}; hidden layers {'×'.join(str(h) for h in c['hidden'])}, "
        f"d = {c['embed_dim']}, {c['ensemble']} members, LayerNorm "
        f"{'on' if c['layer_norm'] else 'off'}; {c['contrast'].replace('_', ' ')}, temperature "
        f"{temperature}, alpha {c['alpha']:g}"
    )
