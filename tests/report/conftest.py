"""Audits as the report receives them, made up by hand: no audit code is involved."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import cycle
from typing import Any

import pytest

Audit = dict[str, Any]

K = [1, 2, 4, 8, 16]
RANDOM, HEADROOM = 0.41, [0.0, 0.105, 0.18, 0.24, 0.285]

HOSTILE = "</script><img src=x onerror=alert(1)>"
SPECIALS = r'a_b%$&#{}~^\ "quoted" |pipe| `tick` *star* [link](x) --'

#: How much of the headroom each kind of scorer captures at each K, and the verdict on it.
SHAPES: dict[str, tuple[list[float], str]] = {
    "perfect": ([1, 1, 1, 1], "safe"),
    "noisy": ([0.52, 0.5, 0.47, 0.45], "safe"),
    "cursed": ([0.5, 0.35, 0.05, -0.3], "unsafe"),
    "constant": ([0, 0, 0, 0], "no gain"),
    "uncertain": ([0.2, 0.25, 0.22, 0.15], "inconclusive"),
}


def plus(values: Sequence[float | None], offset: float) -> list[float | None]:
    return [None if v is None else v + offset for v in values]


def summary(mean: float, half: float, **more: Any) -> dict[str, Any]:
    return {"mean": mean, "low": mean - half, "high": mean + half, **more}


def difference(by: float, half: float) -> dict[str, float]:
    return {"difference": by, "low": by - half, "high": by + half}


def ends(values: Sequence[float | None], half: float, name: str = "") -> dict[str, Any]:
    """Both ends of an interval around each of the values, ``low`` and ``high`` or ``NAME_low``."""
    name = f"{name}_" if name else ""
    return {f"{name}low": plus(values, -half), f"{name}high": plus(values, half)}


def make_check(share: float, status: str) -> dict[str, Any]:
    about = {
        "name": "no harmful step",
        "question": "Does the value fall from some K to a larger K?",
        "advice": "Stop at the best K, or look at what the score prefers beyond it.",
    }
    found = {"unsafe": "fail", "inconclusive": "undecided"}.get(status, "pass")
    limits = {"low": share - 0.06, "high": share + 0.06, "threshold": -0.02, "k": [4, 16]}
    return about | {"value": share, "status": found} | limits


def thirty_shapes() -> dict[str, tuple[list[float], str]]:
    """Thirty scorers with long names, their gains spread from good to harmful."""

    def shape(share: float) -> tuple[list[float], str]:
        status = "safe" if share > 0.2 else "inconclusive" if share > 0.05 else "no gain"
        falls = share < -0.1
        shares = [0.3, 0.15, 0.0, share] if falls else [share + 0.1, share + 0.06, share, share]
        return shares, "unsafe" if falls else status

    return {
        f"reward_model_v{i}_llama-3.1-70b-instruct_checkpoint_{1000 * i}": shape(0.62 - 0.032 * i)
        for i in range(30)
    }


def make_gain(captured: list[float]) -> list[float]:
    """What the shares of each K's headroom are in the headroom of the largest K."""
    shares = zip([0, *captured], HEADROOM, strict=True)
    return [share * room / HEADROOM[-1] for share, room in shares]


def make_steps(captured: list[float]) -> list[dict[str, Any]]:
    gain = make_gain(captured[1:])
    return [
        {"k": [K[i], K[j]], "value": step, "low": step - 0.05, "high": step + 0.07}
        for j in range(len(K))
        for i in range(j)
        for step in [gain[j] - gain[i]]
    ]


REASONS = {
    "safe": "Every larger K is at least as good within 0.10 of the headroom, and K = 16 gains.",
    "no gain": "No fall above 0.10 of the headroom, and no gain over a random candidate.",
    "unsafe": "The value falls by 0.43 of the headroom from K = 2 to K = 16.",
    "inconclusive": "A fall of up to 0.17 of the headroom from K = 4 to 16 is not ruled out.",
}


def make_verdict(captured: list[float], status: str) -> dict[str, Any]:
    return {
        "status": status,
        "k_best": {"unsafe": 4, "inconclusive": 8}.get(status, 16),
        "k_safe_max": {"safe": 16, "unsafe": 2}.get(status),
        "k_harm": 8 if status == "unsafe" else None,
        "reason": REASONS[status],
        "queries_needed": 340 if status == "inconclusive" else None,
        "k_max": K[-1],
        "clusters": 40,
        "unit": "pooled",
        "steps": make_steps([0, *captured]),
        "unseen": "Harm in fewer than 9 % of the queries and beyond any candidate seen is not "
        "excluded by 40 clusters.",
        "checks": [make_check(captured[-1] - captured[0], status), make_check(0.1, "safe")],
    }


def make_scorer(captured: list[float], status: str) -> dict[str, Any]:
    value: list[float] = [
        RANDOM + share * room for share, room in zip([0, *captured], HEADROOM, strict=True)
    ]
    nregret = [None, *(1 - share for share in captured)]
    slope = captured[-1] * 0.25
    deciles: list[float | None] = [RANDOM + slope * (i - 4.5) / 9 for i in range(10)]
    tau = captured[-1] * 0.7
    drift = 0.03 - 0.04 * captured[-1]
    counts = [round(40 * math.exp(-((-0.95 + i / 10 - tau) ** 2) / 0.08)) for i in range(20)]
    gain: list[float | None] = [*make_gain(captured)]
    histogram = {"edges": [-1 + i / 10 for i in range(21)], "counts": counts}
    verdict = make_verdict(captured, status)
    return {
        "value": value,
        "gain": {"value": gain} | {end: [0.0, *x[1:]] for end, x in ends(gain, 0.08).items()},
        **ends(value, 0.02),
        **ends(value, 0.03, "band"),
        "regret": [RANDOM + room - v for v, room in zip(value, HEADROOM, strict=True)],
        "nregret": nregret,
        "captured": [None, *captured],
        **ends([None, *captured], 0.08, "captured"),
        "selected_score": [0.1, 0.7, 1.2, 1.6, 1.9],
        "gain_per_doubling": (value[-1] - value[0]) / 4,
        "peak_value": value[K.index(verdict["k_best"])],
        "tau_b": summary(tau, 0.03, undefined=3, histogram=histogram),
        "deciles": deciles,
        **ends(deciles, 0.015, "deciles"),
        "decile_gap": summary(slope, 0.02),
        "deciles_within": plus(deciles, 0.004),
        "decile_gap_within": summary(slope, 0.02),
        "off_support": {
            "rate": [0.2 + drift * i for i in range(5)],
            "excess": [drift * i for i in range(5)],
            "excess_low": [(drift - 0.01) * i for i in range(5)],
            "excess_high": [(drift + 0.01) * i for i in range(5)],
            "base_rate": 0.2,
        },
        "auc": 0.5 + tau / 2,
        "auc_low": 0.47 + tau / 2,
        "auc_high": 0.53 + tau / 2,
        "auc_within": summary(0.5 + tau / 2, 0.03, undefined=3),
        "seeds": {
            str(seed): {"value": plus(value, offset), "verdict": deepcopy(verdict)}
            for seed, offset in ((42, -0.012), (43, 0.003), (44, 0.009))
        },
        "verdict": verdict,
    }


def make_group(scorers: dict[str, Any], queries: int) -> dict[str, Any]:
    parts = ("value", "low", "high", "captured", "gain", "tau_b", "verdict")
    return {
        "queries": queries,
        "k": K,
        "random": RANDOM,
        "oracle": [RANDOM + room for room in HEADROOM],
        "headroom": HEADROOM,
        "scorers": {name: {part: s[part] for part in parts} for name, s in scorers.items()},
    }


ABOUT: Audit = {
    "format": "toptail-audit-2", "kind": "pools", "unit": "pooled", "min_pool": 16, "k": K,
    "k_grid": K, "k_max": K[-1], "left_out": {"single": 2, "small": 3, "no_headroom": 0},
    "queries": 100, "clusters": 40, "cluster_column": "cluster", "group_column": "distance",
    "candidates": 2500, "single_candidate_pools": 2,
    "pool_size": {"min": 16, "median": 25, "max": 31},
    "value": "reached the goal", "value_range": [0.0, 1.0], "binary": True,
    "replicates": ["v1", "v2"], "headroom_spread": 23.4,
    "skipped_columns": [{"name": "tokens", "why": "a count"}], "constant_scores": ["constant"],
    "notes": ["A single noisy judge biases the oracle upward."],
    "warnings": ["Scorer “cursed” is negatively correlated with the value: is it reversed?"],
    "thresholds": {"delta": 0.02, "rho": 0.10, "level": 0.95, "resamples": 10000},
    "random": RANDOM, "headroom": HEADROOM, "kl_bound": [math.log(k) - (k - 1) / k for k in K],
}  # fmt: skip


def make_audit(shapes: dict[str, tuple[list[float], str]]) -> Audit:
    """Build an audit with every optional part: seeds, support, groups, binary values."""
    # What is said of pools and columns, too; a comparison with an older table has its own fixture.
    scorers = {name: make_scorer(*shape) for name, shape in shapes.items()}
    names = list(scorers)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    oracle: list[float | None] = [RANDOM + room for room in HEADROOM]
    return {
        **deepcopy(ABOUT),
        "populations": {
            part: {
                "queries": queries,
                "smallest_pool": smallest,
                "k": 4,
                "value": {name: scorer["value"][2] for name, scorer in scorers.items()},
            }
            for part, queries, smallest in (("audited", 100, 16), ("all", 103, 6))
        },
        "other_unit": dict.fromkeys(names, "inconclusive"),
        "oracle": oracle,
        **ends(oracle, 0.01, "oracle"),
        "scorers": scorers,
        "comparisons": [
            {"a": a, "b": b, "k": 16, "p": 0.0002, "p_holm": 0.002 * (i + 1)}
            | difference(scorers[a]["value"][-1] - scorers[b]["value"][-1], 0.03)
            for i, (a, b) in enumerate(pairs)
        ],
        "groups": {"near": make_group(scorers, 60), "far": make_group(scorers, 40)},
        "group_tests": [
            {"scorer": name, "groups": ["near", "far"], "p": 0.03, "p_holm": 0.05 * (i + 1)}
            | difference(0.12, 0.11)
            for i, name in enumerate(names)
        ],
        "group_heterogeneity": dict.fromkeys(names, 0.03),
        "record": make_record("toptail audit scores.parquet --out audit", "scores.parquet"),
    }


def make_record(command: str, source: str) -> dict[str, Any]:
    versions = {"toptail": "0.1.0", "python": "3.11.2", "numpy": "2.4.6"}
    about = {"command": command, "source": source, "sha256": "d2" * 32}
    return about | {"versions": versions, "seed": 0}


def make_baseline(names: Sequence[str]) -> dict[str, Any]:
    """A comparison with an older table, with every status in turn."""
    shapes = [("better", 0.09), ("not worse", 0.01), ("worse", -0.12), ("inconclusive", -0.01)]
    about = {"source": "old.parquet", "sha256": "c3" * 32, "margin": 0.02}
    about |= {"shared_queries": 90, "only_new": 10, "only_old": 4}
    return about | {
        "scorers": {
            name: {"status": status, "k": 16, "reason": f"The new table is {status} at K = 16."}
            | difference(by, 0.025)
            for name, (status, by) in zip(names, cycle(shapes), strict=False)
        },
    }


def make_picks() -> Audit:
    def comparison(a: str, b: str, by: float) -> dict[str, Any]:
        test = {"queries": 102, "p": 0.004, "p_holm": 0.012, "half_width": 0.02}
        power = {"detectable": 0.0286, "variance_ratio": 3.4}
        return {"a": a, "b": b} | difference(by, 0.02) | test | power

    selectors = {"random": 0.31, "cosine": 0.32, "td-q": 0.38}
    about = {"format": "toptail-audit-2", "kind": "picks", "queries": 102, "clusters": 102}
    return about | {
        "selectors": {
            name: summary(mean, 0.02, queries=102, replicates=8) for name, mean in selectors.items()
        },
        "baseline": "random",
        "comparisons": [
            comparison("td-q", "random", 0.07),
            comparison("cosine", "random", 0.01),
            comparison("cosine", "td-q", -0.06),
        ],
        "notes": ["Replicates share random numbers across selectors."],
        "warnings": [],
        "thresholds": {"level": 0.95, "resamples": 10000, "power": 0.8},
        "record": make_record("toptail audit --picks picks.csv", "picks.csv"),
    }


@pytest.fixture
def audit() -> Audit:
    """Five scorers and every optional part."""
    return make_audit(SHAPES)


@pytest.fixture
def compared(audit: Audit) -> Audit:
    """The five scorers beside an older table."""
    return audit | {"baseline": make_baseline(list(audit["scorers"]))}


@pytest.fixture
def alone() -> Audit:
    """A single scorer."""
    return make_audit({"noisy": SHAPES["noisy"]})


@pytest.fixture
def divided(alone: Audit) -> Audit:
    """One safe scorer that is undecided among far queries, and unsafe in the other unit."""
    audit: Audit = json.loads(json.dumps(alone))  # groups and the whole share their parts
    audit["other_unit"] = {"noisy": "unsafe"}
    far = audit["groups"]["far"]["scorers"]["noisy"]
    far["verdict"] |= {"status": "inconclusive", "k_safe_max": None}
    for part, share in (("value", -0.03), ("low", -0.11), ("high", 0.05)):
        far["gain"][part][-1] = share
    return audit


@pytest.fixture
def thirty() -> Audit:
    """Thirty scorers with long names, every status, groups, and an older table."""
    audit = make_audit(thirty_shapes())
    return audit | {"baseline": make_baseline(list(audit["scorers"])[:3])}


@pytest.fixture
def picks() -> Audit:
    """An audit of picks."""
    return make_picks()


@pytest.fixture
def fifteen() -> Audit:
    """Fifteen scorers without optional parts, as a table of metrics gives."""
    shares = [0.62 - 0.05 * i for i in range(15)]
    shapes = {
        f"metric_{i}_precision": ([s + 0.1, s + 0.06, s + 0.03, s], "safe" if s > 0 else "no gain")
        for i, s in enumerate(shares)
    }
    audit = make_audit(shapes)
    for scorer in audit["scorers"].values():
        for part in ("off_support", "seeds", "auc", "auc_low", "auc_high", "auc_within"):
            del scorer[part]
    for part in ("groups", "group_tests", "group_heterogeneity"):
        del audit[part]
    audit |= {"populations": None, "other_unit": None, "constant_scores": []}
    audit |= {"binary": False, "replicates": None, "group_column": None, "cluster_column": None}
    return audit


@pytest.fixture
def hostile() -> Audit:
    """Names that would break out of HTML, Markdown or LaTeX if they were not escaped."""
    names = [HOSTILE, SPECIALS, 'x" onclick="alert(2)', "τ_b für 中文\n\x1b[31m", "[bold]x[/bold]"]
    audit = make_audit(dict(zip(names, SHAPES.values(), strict=True)))
    audit["value"] = audit["group_column"] = HOSTILE
    audit["groups"] = {HOSTILE: audit["groups"]["near"], SPECIALS: audit["groups"]["far"]}
    audit["notes"] = audit["warnings"] = [HOSTILE, SPECIALS]
    audit["record"]["command"] = f"toptail audit '{HOSTILE}' \\end{{document}}"
    for scorer in audit["scorers"].values():
        scorer["verdict"]["reason"] = HOSTILE
        scorer["seeds"] = {HOSTILE: scorer["seeds"]["42"]}
        scorer["verdict"]["checks"][0] |= {"name": SPECIALS, "advice": HOSTILE}
    return audit


_NEVER_NULL = {"k", "thresholds", "record", "counts", "edges", "undefined", "pool_size"}
_NEVER_NULL |= {"k_grid", "k_max", "min_pool", "left_out", "value_range"}
_NAMED = {"scorers", "groups", "seeds"}


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths to the numbers of an audit, with ``*`` for list positions and users' names."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in _NEVER_NULL:
                yield from places(each, (*path, "*" if path[-1:] and path[-1] in _NAMED else key))
    elif isinstance(value, list):
        for each in value:
            yield from places(each, (*path, "*"))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def nullify(value: Any, path: Sequence[str]) -> Any:
    """A copy with null at every place that the path leads to."""
    if not path:
        return None
    if isinstance(value, list):
        return [nullify(each, path[1:]) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: nullify(each, path[1:]) if path[0] in (key, "*") else each
        for key, each in value.items()
    }


@pytest.fixture
def one_null_each(audit: Audit) -> dict[str, Audit]:
    """For every kind of number in an audit: the audit in which it is null everywhere."""
    return {".".join(path): nullify(audit, path) for path in dict.fromkeys(places(audit))}


@pytest.fixture
def all_null(audit: Audit) -> Audit:
    """An audit in which nothing could be computed."""
    for path in dict.fromkeys(places(audit)):
        audit = nullify(audit, path)
    return audit
