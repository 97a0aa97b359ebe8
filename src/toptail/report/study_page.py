"""The controlled study as one self-contained page, from its run folder alone."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from toptail.pools.files import atomic
from toptail.report.study_data import Study, critic_name, read_study
from toptail.report.study_figures import Drawing, drawings, svg_and_png
from toptail.report.study_tables import (
    decomposition_table,
    difference_table,
    noise_table,
    norm_table,
    paper_tables,
    theory_table,
    verdict_table,
)
from toptail.report.text import bracket, number, plural


@dataclass(frozen=True)
class Picture:
    """A figure as the page embeds it."""

    drawing: Drawing
    """Name, title and caption."""
    source: str
    """The image as a data address."""


def write_study_report(folder: str | Path) -> Path:
    """Write ``figures/*.svg|png`` and ``report.html`` into a run folder."""
    path = Path(folder)
    study = read_study(path)
    pictures = []
    for drawing in drawings(study):
        svg, png = svg_and_png(drawing)
        atomic(path / "figures" / f"{drawing.name}.svg", partial(_write, content=svg))
        atomic(path / "figures" / f"{drawing.name}.png", partial(_write, content=png))
        pictures.append(Picture(drawing, data_address(svg, png)))
    page = render_study(study, pictures).encode()
    atomic(path / "report.html", partial(_write, content=page))
    return path / "report.html"


def data_address(svg: bytes, png: bytes) -> str:
    """Return the lighter of the two as an address: many points weigh less as pixels."""
    kind, content = ("svg+xml", svg) if len(svg) <= len(png) else ("png", png)
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def render_study(study: Study, pictures: Sequence[Picture]) -> str:
    """Render the page."""
    shown = {picture.drawing.name: picture for picture in pictures}
    tables = [decomposition_table(study), noise_table(study), norm_table(study)]
    tables += [theory_table(study), verdict_table(study), difference_table(study)]
    named = {table.name: table for table in tables if table is not None}
    template = _templates().get_template("study.html")
    return template.render(
        css=Markup(_asset("assets", "style.css") + _asset("templates_study", "study.css")),
        summary=summary(study),
        paper_tables=paper_tables(study),
        tables=named,
        pictures=shown,
        sweeps=[p for name, p in shown.items() if name.startswith("sweep_")],
        claims=[_claim(entry) for entry in study.claims],
        tally=_tally(study.claims),
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


def _claim(entry: Mapping[str, Any]) -> dict[str, str]:
    """A claim as the page shows it."""
    low, high = entry["interval"] or (None, None)
    x = entry["number"]
    shown = "" if x is None else str(int(x)) if x == int(x) else number(x, 3)
    return {
        "status": entry["status"],
        "mark": {"seen": "pass", "not seen": "fail"}.get(entry["status"], "undecided"),
        "sentence": entry["sentence"],
        "where": entry["where"],
        "number": f"{shown} {bracket(low, high, 3)}".strip(),
        "comment": entry["comment"],
        "id": entry["id"],
    }


def _tally(claims: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    found = [claim["status"] for claim in claims]
    return [(word, found.count(word)) for word in ("seen", "depends", "not seen")]


def _asset(folder: str, name: str) -> str:
    return (files("toptail.report") / folder / name).read_text(encoding="utf-8")


def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _asset("templates_study", name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
