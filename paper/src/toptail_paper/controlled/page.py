"""The words of the controlled study's page, from its run folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.report.text import number, plural
from toptail_paper.controlled.results import ControlledResults, critic_name
from toptail_paper.study.naming import IDEALS
from toptail_paper.study.page import Texts, recorded

_LEAD: Final = (
    "A two-dimensional world in which the value of every action and the support of the "
    "data are known exactly: s′ = s + a, Q* = −‖s + a − g‖, and data actions in a disk of "
    "radius R. Four critics are trained on the same data; each picks the best of K "
    "candidates by its own score."
)


def texts(study: ControlledResults) -> Texts:
    return Texts(
        title="The controlled study",
        brand="controlled study",
        heading="Are contrastive critics safe to maximize?",
        lead=_LEAD,
        summary=summary(study),
        method=_method(study),
    )


def summary(study: ControlledResults) -> list[str]:
    table = study.tables.get("toy-support")
    if table is None:
        return []
    rows = table["rows"]["controlled"]
    k = study.config["pool"]
    parts = [
        f"{critic_name(critic)} {number(row['regret']['mean'])} "
        f"({number(100 * row['off_support']['mean'], 0)} % off support)"
        for critic, row in rows.items()
        if critic not in IDEALS
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


def _method(study: ControlledResults) -> list[tuple[str, str | None]]:
    config, record = study.config, study.record
    units = record.get("units", {})
    return [
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
        *recorded(record),
        (
            "Time",
            f"{record['seconds']:.0f} s for {units['trained']} trained and {units['reused']} "
            "stored units"
            if "seconds" in record
            else None,
        ),
    ]


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
