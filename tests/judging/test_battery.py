"""What holds of every audit holds where only some candidates were judged, whatever the design."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toptail
from tests import flat
from tests.stored import problems
from toptail.stats import resample

QUERIES, SIZE = 80, 6
Arrays = dict[str, np.ndarray]


def table() -> Arrays:
    """Scores with ties, a constant one and one with -inf; clusters of two, groups."""
    rng = np.random.default_rng(11)
    value = rng.normal(size=(QUERIES, SIZE)) + rng.normal(size=(QUERIES, 1))
    good = value + rng.normal(0, 0.3, value.shape)
    return {
        "good": good,
        "tied": np.round(good),
        "bad": -value,
        "constant": np.zeros_like(value),
        "ruled_out": np.where(rng.random(value.shape) < 0.2, -np.inf, good),
        "value": value,
    }


def by_plan(data: Arrays) -> Arrays:
    rng = np.random.default_rng(1)
    own = rng.random((QUERIES, SIZE)) < 0.5
    judged = own | (rng.random((QUERIES, 1)) < 0.4)
    shape = judged.shape
    return data | {
        "value": np.where(judged, data["value"], np.nan),
        "p_judged": np.full(shape, 0.4 + 0.6 * 0.5),
        "p_whole": np.full(shape, 0.4),
        "own": own.astype(float),
    }


def with_cheap(data: Arrays) -> Arrays:
    noise = np.random.default_rng(2).normal(0, 0.5, data["value"].shape)
    return by_plan(data) | {"model": data["value"] + noise}


def skewed(data: Arrays) -> Arrays:
    """Chances that fall twenty-fold with the score; no query is whole on purpose."""
    place = data["good"].argsort(axis=1).argsort(axis=1) / (SIZE - 1)
    p = 0.95 * np.exp(-np.log(20.0) * place)
    judged = np.random.default_rng(3).random(p.shape) < p
    return data | {"value": np.where(judged, data["value"], np.nan), "p_judged": p}


def blank(data: Arrays) -> Arrays:
    judged = np.random.default_rng(4).random((QUERIES, SIZE)) < 0.9
    return data | {"value": np.where(judged, data["value"], np.nan)}


WAYS: dict[str, tuple[Callable[[Arrays], Arrays], dict[str, Any]]] = {
    "a plan": (by_plan, {}),
    "a plan and a cheap judge": (with_cheap, {"values": "value", "cheap": "model"}),
    "skewed, headroom bounded": (skewed, {}),
    "bounds": (blank, {"unjudged": "bounds"}),
    "a number": (blank, {"unjudged": 0.0}),
}
SCORES = ["good", "tied", "bad", "constant", "ruled_out"]


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> tuple[Arrays, dict[str, Any]]:
    make, how = WAYS[request.param]
    return make(table()), how


def audit(data: Arrays, how: dict[str, Any], **more: Any) -> dict[str, Any]:
    return flat.audit(data, scores=SCORES, resamples=150, **how, **more).to_dict()


def statuses(content: dict[str, Any]) -> dict[str, str]:
    return {name: entry["verdict"]["status"] for name, entry in content["scorers"].items()}


def same(a: dict[str, Any], b: dict[str, Any], parts: tuple[str, ...] = ("value",)) -> None:
    """The same verdicts and numbers, but for rounding."""
    assert statuses(a) == statuses(b)
    for name, entry in a["scorers"].items():
        for part in (*parts, "captured_low", "captured_high"):
            ours, theirs = (np.array(x["scorers"][name][part], dtype=np.float64) for x in (a, b))
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7, err_msg=f"{name} {part}")
        assert entry["verdict"]["k_best"] == b["scorers"][name]["verdict"]["k_best"]


def test_the_seed_decides_every_bit_and_threads_nothing(
    way: tuple[Arrays, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = audit(*way)
    monkeypatch.setattr(resample, "available_threads", lambda: 1)
    assert audit(*way) == first
    assert audit(*way, seed=1)["scorers"] != first["scorers"]


def test_it_follows_the_schema(way: tuple[Arrays, dict[str, Any]]) -> None:
    assert problems(json.loads(json.dumps(audit(*way), allow_nan=False))) == []


def test_it_makes_a_page(tmp_path: Path) -> None:
    make, how = WAYS["a plan and a cheap judge"]
    result = flat.audit(make(table()), scores=SCORES[:2], resamples=150, **how)
    assert result.write(tmp_path / "out").is_file()
    assert toptail.AuditResult.read(tmp_path / "out") == result


def test_only_the_order_of_scores_counts(way: tuple[Arrays, dict[str, Any]]) -> None:
    data, how = way
    other = data | {"good": np.exp(data["good"]), "bad": 1e9 * data["bad"] - 3.0}
    same(audit(other, how), audit(data, how))


def test_the_order_of_candidates_does_not_count(way: tuple[Arrays, dict[str, Any]]) -> None:
    data, how = way
    order = np.random.default_rng(0).permuted(np.tile(np.arange(SIZE), (QUERIES, 1)), axis=1)
    turned = {name: np.take_along_axis(each, order, axis=1) for name, each in data.items()}
    same(audit(turned, how), audit(data, how))


def test_units_of_the_value_do_not_count(way: tuple[Arrays, dict[str, Any]]) -> None:
    data, how = way
    moved, also = data | {"value": 1000.0 * data["value"] + 7.0}, how
    if how.get("unjudged") == 0.0:
        also = how | {"unjudged": 7.0}
    ours, theirs = audit(moved, also), audit(data, how)
    same(ours, theirs, ())
    np.testing.assert_allclose(
        ours["scorers"]["good"]["value"],
        1000.0 * np.array(theirs["scorers"]["good"]["value"]) + 7.0,
        rtol=1e-9,
    )


def test_a_score_that_says_nothing_or_lies_is_never_safe(
    way: tuple[Arrays, dict[str, Any]],
) -> None:
    found = audit(*way)
    assert statuses(found)["constant"] not in ("safe", "unsafe")
    assert statuses(found)["bad"] in ("unsafe", "inconclusive")
    value = found["scorers"]["constant"]["value"]
    np.testing.assert_allclose(value, value[0], rtol=1e-9)


def test_few_queries_are_inconclusive_never_safe(way: tuple[Arrays, dict[str, Any]]) -> None:
    data, how = way
    few = {name: each[:12] for name, each in data.items()}
    assert set(statuses(audit(few, how)).values()) <= {"inconclusive", "unsafe"}


def test_groups_and_clusters_are_those_of_any_audit(way: tuple[Arrays, dict[str, Any]]) -> None:
    data, how = way
    more: Any = {"group": np.array(["a", "b"] * (QUERIES // 2)), "cluster": np.arange(QUERIES) // 2}
    found = audit(data | more, how)
    assert found["clusters"] == QUERIES // 2
    assert set(found["groups"]) == {"a", "b"}
    for name in SCORES:
        np.testing.assert_allclose(
            found["scorers"][name]["value"], audit(data, how)["scorers"][name]["value"], atol=0.2
        )
