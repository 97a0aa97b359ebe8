"""Judgements of pairs as values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import toptail
from tests import flat
from tests.stored import problems
from toptail.judging.labels import PREFERENCE, with_preferences

QUERIES, SIZE = 100, 6


@pytest.fixture
def pools() -> toptail.ScoredPools:
    rng = np.random.default_rng(2)
    quality = rng.normal(size=(QUERIES, SIZE))
    scores = {"good": quality + rng.normal(0, 0.3, quality.shape), "bad": -quality}
    return toptail.ScoredPools.from_arrays(scores, quality)


def judged(pools: toptail.ScoredPools, p: float, rng: np.random.Generator) -> pa.Table:
    """Pairs chosen with chance p, of which the better one wins."""
    quality = pools.values["value"].reshape(QUERIES, SIZE)
    rows: list[dict[str, Any]] = []
    for query in range(QUERIES):
        for i in range(SIZE):
            for j in range(i):
                if rng.random() < p:
                    a, b = (i, j) if rng.random() < 0.5 else (j, i)
                    wins = float(quality[query, a] > quality[query, b])
                    rows.append({"query": query, "a": a, "b": b, "wins": wins, "p_judged": p})
    return pa.Table.from_pylist(rows)


def test_all_pairs_give_the_share_of_victories(pools: toptail.ScoredPools) -> None:
    found = with_preferences(pools, judged(pools, 1.0, np.random.default_rng(0)), "pairs")
    rank = pools.values["value"].reshape(QUERIES, SIZE).argsort(axis=1).argsort(axis=1)
    np.testing.assert_allclose(found.values[PREFERENCE], rank.reshape(-1) / (SIZE - 1), atol=1e-12)


def test_some_pairs_give_it_on_average(pools: toptail.ScoredPools) -> None:
    rank = pools.values["value"].reshape(QUERIES, SIZE).argsort(axis=1).argsort(axis=1)
    draws = [
        with_preferences(pools, judged(pools, 0.4, np.random.default_rng(seed)), "pairs").values[
            PREFERENCE
        ]
        for seed in range(60)
    ]
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    off = np.abs(np.mean(draws, axis=0) - rank.reshape(-1) / (SIZE - 1))
    assert (off < 5 * error + 1e-9).all()


def test_pairs_bound_the_headroom_and_give_no_captured_share(pools: toptail.ScoredPools) -> None:
    table = judged(pools, 0.5, np.random.default_rng(0))
    result = flat.audit(pools, pairs=table, resamples=200)
    for scorer in result.to_dict()["scorers"].values():
        assert set(scorer["captured"] + scorer["captured_high"]) == {None}
    assert "There is no captured share" in result.summary()


def test_verdicts_from_pairs(pools: toptail.ScoredPools) -> None:
    pairs = judged(pools, 0.5, np.random.default_rng(1))
    result = flat.audit(pools, pairs=pairs, resamples=300)
    assert {n: v.status for n, v in result.verdicts.items()} == {"good": "safe", "bad": "unsafe"}
    content = result.to_dict()
    assert content["judging"]["labels"] == pairs.num_rows
    assert content["random"] == pytest.approx(0.5)
    assert not problems(content)
    assert "pairs of candidates were judged" in result.summary()


def test_a_pair_judged_twice_counts_by_its_mean(pools: toptail.ScoredPools) -> None:
    once = judged(pools, 1.0, np.random.default_rng(0)).drop_columns(["p_judged"])
    turned = once.rename_columns(["query", "b", "a", "wins"]).select(once.column_names)
    turned = turned.set_column(3, "wins", pa.array(1.0 - once["wins"].to_numpy()))
    twice = with_preferences(pools, pa.concat_tables([once, turned]), "pairs")
    assert twice == with_preferences(pools, once, "pairs")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"query": 0, "a": 1, "b": 1, "wins": 1.0}, "two different"),
        ({"query": 0, "a": 1, "b": 2, "wins": 2.0}, "between 0"),
        ({"query": 0, "a": 1, "b": 99, "wins": 1.0}, "'99' of query '0'"),
        ({"query": 0, "a": 1, "wins": 1.0}, "no column 'b'"),
        ({"query": 0, "a": 1, "b": 2, "wins": 1.0, "p_judged": 0.0}, "above 0"),
    ],
)
def test_what_is_no_pair(pools: toptail.ScoredPools, row: dict[str, Any], words: str) -> None:
    with pytest.raises(toptail.InputError, match=words):
        flat.audit(pools, pairs=pa.Table.from_pylist([row]))


def test_pairs_stand_alone(pools: toptail.ScoredPools) -> None:
    with pytest.raises(toptail.InputError, match="unjudged"):
        flat.audit(pools, pairs=[{"query": 0}], unjudged=0)
