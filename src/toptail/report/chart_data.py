"""The numbers that the page's charts draw: a part of the audit, embedded as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toptail.report.palette import style
from toptail.report.text import (
    Audit,
    one_line,
    percent,
    ranked,
    short,
    status_words,
    threshold,
    value_decimals,
)


def chart_data(audit: Audit) -> dict[str, Any]:
    """Everything the page's script needs, scorers in the order of their ranks."""
    data = _picks(audit) if audit["kind"] == "picks" else _pools(audit)
    data["decimals"] = value_decimals(audit)
    data["level"] = percent(audit["thresholds"]["level"])
    small: dict[str, Any] = rounded(data)
    return small


def _pools(audit: Audit) -> dict[str, Any]:
    whole = ("kind", "k", "random", "oracle", "oracle_low", "oracle_high")
    scorers = [_scorer(audit, *at) for at in enumerate(ranked(audit))]
    margins: dict[str, Any] = {}
    for part in ("delta", "rho"):
        margins |= {part: (loss := audit["thresholds"][part]), f"{part}_text": threshold(loss)}
    return {**{part: audit[part] for part in whole}, **margins, "scorers": scorers}


def _scorer(audit: Audit, rank: int, name: str) -> dict[str, Any]:
    scorer = audit["scorers"][name]
    over_k = ("value", "band_low", "band_high", "captured")
    deciles = ("deciles", "deciles_low", "deciles_high", "deciles_within")
    look = style(rank)
    seeds = scorer.get("seeds") or {}
    return {
        **{part: scorer[part] for part in (*over_k, *deciles, "tau_b")},
        "name": one_line(name),
        "hue": look.hue,
        "dash": look.dash,
        "gain": scorer.get("gain"),
        "verdict": status_words(scorer["verdict"], audit["k"][-1]),
        "k_harm": scorer["verdict"]["k_harm"],
        "k_safe_max": scorer["verdict"]["k_safe_max"],
        "off_support": scorer.get("off_support"),
        "seeds": [{"seed": one_line(seed), "value": s["value"]} for seed, s in seeds.items()],
    }


def _picks(audit: Audit) -> dict[str, Any]:
    parts = ("difference", "low", "high", "p_holm")
    return {
        "kind": "picks",
        "comparisons": [
            {"a": short(c["a"], 24), "b": short(c["b"], 24), **{part: c[part] for part in parts}}
            for c in audit["comparisons"]
        ],
    }


def rounded(value: Any) -> Any:
    """Keep six significant digits of every number: more than a chart shows."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return value
