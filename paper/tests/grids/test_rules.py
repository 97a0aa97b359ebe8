"""Rules against cells that can be worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.stats import wilson
from toptail_paper.grids.rules import Answer, Cells, decide, meets
from toptail_paper.grids.search import rate_estimate
from toptail_paper.study.tables import StoredCell
from toptail_paper.triples.bootstrap import seed_mean


def stored(low: float, high: float) -> StoredCell:
    return {"mean": (low + high) / 2, "std": None, "seeds": {}, "low": low, "high": high}


def answer(rule: str, **more: Any) -> Answer:
    return Answer(rule, "Yes.", "No.", **more)


def cells(*ends: tuple[float, float], along: str = "temperature") -> Cells:
    return [
        ({along: str(i), "critic": "raw", "data": "d"}, {"auc": stored(*end)})
        for i, end in enumerate(ends)
    ]


@pytest.mark.parametrize(
    ("low", "high", "met"),
    [(0.91, 0.95, "yes"), (0.89, 0.91, "open"), (0.8, 0.89, "no"), (0.97, 0.99, "no")],
)
def test_a_condition_is_met_by_whole_intervals_alone(low: float, high: float, met: str) -> None:
    assert meets({"metric": "auc", "low": 0.9, "high": 0.96}, {"auc": stored(low, high)}) == met


def test_what_is_not_computable_misses_a_condition() -> None:
    empty: StoredCell = {"mean": None, "std": None, "seeds": {}}
    assert meets({"metric": "auc", "low": 0}, {"auc": empty}) == "no"
    assert meets({"metric": "tau", "low": 0}, {"auc": stored(0, 1)}) == "no"


@pytest.mark.parametrize(
    ("ends", "any_says", "every_says"),
    [
        (((0.91, 0.92), (0.1, 0.2)), "yes", "no"),
        (((0.91, 0.92), (0.93, 0.94)), "yes", "yes"),
        (((0.85, 0.95), (0.1, 0.2)), "open", "no"),
        (((0.85, 0.95), (0.91, 0.95)), "yes", "open"),
        (((0.1, 0.2), (0.3, 0.4)), "no", "no"),
    ],
)
def test_any_and_every(
    ends: tuple[tuple[float, float], ...], any_says: str, every_says: str
) -> None:
    conditions = [{"metric": "auc", "low": 0.9}]
    for rule, says in (("any", any_says), ("every", every_says)):
        found = decide(answer(rule, conditions=conditions), cells(*ends))
        assert found["verdict"] == says
        words = {"yes": "Yes.", "no": "No.", "open": "The intervals do not decide it."}
        assert found["says"] == words[says]


def test_a_condition_may_be_asked_of_some_cells_alone() -> None:
    some = [{"metric": "auc", "low": 0.9, "where": {"temperature": [0, 7]}}]
    asked = cells((0.1, 0.2), (0.1, 0.2))
    assert decide(answer("any", conditions=some, where={"temperature": 0}), asked)["cells"] == []
    found = decide(answer("any", conditions=some), asked)
    assert [cell["temperature"] for cell in found["cells"]] == ["1"]  # nothing is asked of it


def test_an_answer_about_no_cell_is_refused() -> None:
    with pytest.raises(InputError, match="No cell has the settings"):
        decide(answer("any", where={"temperature": 9}), cells((0, 1)))


@pytest.mark.parametrize(
    ("last", "says"), [((0.3, 0.4), "yes"), ((0.0, 0.1), "no"), ((0.19, 0.31), "open")]
)
def test_what_grows_must_grow_whatever_the_intervals_hide(
    last: tuple[float, float], says: str
) -> None:
    found = decide(
        answer("grows", metric="auc", along="temperature", by=0.05),
        cells((0.1, 0.2), (0.9, 1.0), last),
    )
    assert found["verdict"] == says


def test_what_follows_stands_in_the_predicted_order() -> None:
    pairs = [(0.1, 0.5), (0.2, 0.6), (0.3, 0.9)]
    made: Cells = [
        ({"critic": "raw", "data": "d"}, {"tau": stored(x, x), "predicted_tau": stored(y, y)})
        for x, y in pairs
    ]
    rule = answer("follows", metric="tau", predicted="predicted_tau")
    assert decide(rule, made) == {"verdict": "yes", "tau": 1.0, "cells": 3, "says": "Yes."}
    swapped = [*made[:2], (made[2][0], {**made[0][1], "tau": stored(9, 9)})]
    assert decide(rule, swapped)["verdict"] == "no"
    assert decide(rule, made[:2])["verdict"] == "open"


def test_the_nearest_data_set_must_lead_by_more_than_collecting_again_moves() -> None:
    def of(data: str, auc: float) -> Any:
        return {"critic": "raw", "data": data}, {"auc": stored(auc, auc)}

    made = [of("a", 0.9), of("b", 0.8), of("again", 0.85)]
    rule = answer("nearest", targets={"raw": {"auc": 0.95}}, second={"a": "again"})
    found = decide(rule, made)
    assert found["verdict"] == "yes"
    assert found["nearest"] == "a"
    assert found["lead"] == pytest.approx(0.1)
    assert found["chance"] == pytest.approx(0.05)
    assert decide(rule, [*made[:2], of("again", 0.7)])["verdict"] == "open"


@pytest.mark.parametrize(
    ("rule", "ends", "says"),
    [
        ("any", (0.91, 0.92), "yes"),
        ("any", (0.1, 0.2), "open"),
        ("every", (0.91, 0.92), "open"),
        ("every", (0.1, 0.2), "no"),
    ],
)
def test_missing_cells_leave_open_what_they_could_change(
    rule: str, ends: tuple[float, float], says: str
) -> None:
    conditions = [{"metric": "auc", "low": 0.9}]
    missing = [{"critic": "raw", "data": "e"}, {"critic": "tdq", "data": "e"}]
    own = answer(rule, conditions=conditions, where={"critic": "raw"})
    found = decide(own, cells(ends), missing)
    assert found["verdict"] == says
    assert found["missing"] == missing[:1]
    if says == "open":
        assert found["says"] == "1 of 2 cells are missing."
    assert decide(own, cells(ends), missing[1:]) == decide(own, cells(ends))


FAILED: dict[str, StoredCell] = {}
"""The metrics of a cell whose seeds all failed."""


def test_a_failed_end_leaves_open_what_grows() -> None:
    rule = answer("grows", metric="auc", along="temperature", by=0.05)
    low, high = cells((0.1, 0.2), (0.8, 0.9))
    for made in ([(low[0], FAILED), high], [low, (high[0], FAILED)]):
        assert decide(rule, made) == {**decide(rule, made), "verdict": "open", "cells": []}
    between = [low, ({**low[0], "temperature": "0.5"}, FAILED), high]
    assert decide(rule, between)["verdict"] == "yes"


def test_a_failed_cell_has_no_place_in_an_order() -> None:
    known = {"tau": stored(1, 1), "predicted_tau": stored(1, 1)}
    made: Cells = [({}, {**known, "tau": stored(x, x)}) for x in (1, 2)]
    rule = answer("follows", metric="tau", predicted="predicted_tau")
    assert decide(rule, [*made, ({}, FAILED)])["verdict"] == "open"


def test_no_data_set_is_nearest_while_one_has_failed_cells() -> None:
    ok, bad = ({"critic": "raw", "data": d} for d in "ab")
    rule = answer("nearest", targets={"raw": {"auc": 0.95}})
    found = decide(rule, [(ok, {"auc": stored(0.9, 0.9)}), (bad, FAILED)])
    assert json.loads(json.dumps(found, allow_nan=False))["verdict"] == "open"
    assert found["distances"] == {"a": pytest.approx(0.05), "b": None}
    none = decide(rule, [(ok, FAILED), (bad, FAILED)])
    assert (none["verdict"], none["nearest"], none["lead"]) == ("open", None, None)


@pytest.mark.parametrize("rule", ["grows", "follows", "nearest"])
def test_rules_over_all_cells_wait_for_all(rule: str) -> None:
    missing = [{"critic": "raw", "data": "e"}]
    found = decide(answer(rule, along="temperature", metric="auc"), cells((0.1, 0.2)), missing)
    assert found["verdict"] == "open"


TARGETS = {"raw": {"tau": 0.2, "auc": 0.9}, "tdq": {"tau": 0.6}}


def trained(data: str, critic: str, tau: float, **settings: str) -> Any:
    metrics = {"tau": stored(tau, tau), "auc": stored(0.9, 0.9)}
    return {"data": data, "critic": critic, "steps": "5", **settings}, metrics


def fingerprint(*found: Any, limit: float = 0.05, second: Any = None) -> dict[str, Any]:
    asked = answer("fingerprint", targets=TARGETS, limit=limit, second=second or {})
    return decide(asked, found)


def test_a_fingerprint_is_the_nearest_combination_of_variants() -> None:
    found = fingerprint(
        trained("a", "raw", 0.5),
        trained("a", "raw", 0.26, window="60"),
        trained("a", "tdq", 0.6),
        trained("b", "raw", 0.2),
        trained("b", "tdq", 0.9),
    )
    distances = {(x["data"], x["raw"]): x["distance"] for x in found["settings"]}
    assert distances["a", "raw[window=60]"] == pytest.approx((0.06**2 / 3) ** 0.5)
    assert distances["a", "raw"] == pytest.approx((0.3**2 / 3) ** 0.5)
    assert distances["b", "raw"] == pytest.approx((0.3**2 / 3) ** 0.5)
    assert found["nearest"]["raw"] == "raw[window=60]"
    assert (found["verdict"], found["tied"], found["chance"]) == ("yes", [], 0.0)


def test_a_fingerprint_too_far_away_is_none() -> None:
    cells = [trained("a", "raw", 0.5), trained("a", "tdq", 0.6)]
    assert fingerprint(*cells)["verdict"] == "no"
    assert fingerprint(*cells, limit=0.2)["verdict"] == "yes"


def test_data_that_a_second_collection_does_not_tell_apart_leaves_it_open() -> None:
    cells = [
        *(trained("a", "raw", 0.2), trained("a", "tdq", 0.6)),
        *(trained("b", "raw", 0.25), trained("b", "tdq", 0.6)),
        *(trained("a again", "raw", 0.26), trained("a again", "tdq", 0.6)),
    ]
    found = fingerprint(*cells, second={"a": "a again"})
    assert found["chance"] == pytest.approx((0.06**2 / 3) ** 0.5)
    assert found["verdict"] == "open"
    assert [x["data"] for x in found["tied"]] == ["b"]
    assert fingerprint(*cells[:4])["verdict"] == "yes"


def test_a_fingerprint_without_a_critic_or_a_number_is_never_near() -> None:
    alone = fingerprint(trained("a", "raw", 0.2))
    assert (alone["verdict"], alone["settings"]) == ("open", [])
    failed = fingerprint(trained("a", "raw", 0.2), (trained("a", "tdq", 0.6)[0], {}))
    assert (failed["verdict"], failed["settings"]) == ("open", [])


@pytest.mark.parametrize("hits", [(59, 50, 59), (85, 51, 45), (1, 0, 2), (100, 100, 100)])
def test_the_interval_of_a_mean_over_seeds_is_that_of_all_episodes(
    hits: tuple[int, ...],
) -> None:
    rates = [rate_estimate(own, 100, seed, 2_000) for seed, own in enumerate(hits)]
    mean = seed_mean(rates)
    assert float(mean.point) == pytest.approx(np.mean(hits) / 100)
    found, pooled = mean.interval(0.95), wilson(sum(hits), 300)
    np.testing.assert_allclose([float(x) for x in found], [float(x) for x in pooled], atol=0.015)


@pytest.mark.parametrize("hits", [0, 7, 50, 100])
def test_one_seed_alone_has_about_wilsons_interval(hits: int) -> None:
    found, wanted = rate_estimate(hits, 100, 3, 1_000).interval(0.95), wilson(hits, 100)
    np.testing.assert_allclose([float(x) for x in found], [float(x) for x in wanted], atol=0.02)
