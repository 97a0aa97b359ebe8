"""Equality, hash and repr of the containers: by content, and never a surprise."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from toptail import JudgedPicks, ScoredPools, builtin_pools
from toptail.pools import Block


def pools() -> ScoredPools:
    return builtin_pools(4, 3)


def picks() -> JudgedPicks:
    return JudgedPicks.from_arrow({"query": [1, 1], "selector": ["a", "b"], "value": [0.0, 1.0]})


def block() -> Block:
    return next(pools().blocks())


MAKERS: list[Callable[[], Any]] = [pools, picks, block]


@pytest.mark.parametrize("make", MAKERS)
def test_equal_content_is_equal_with_the_same_hash(make: Callable[[], Any]) -> None:
    first, second = make(), make()
    assert first == second
    assert hash(first) == hash(second)
    assert first == copy.deepcopy(first) == pickle.loads(pickle.dumps(first))
    assert len({first, second}) == 1
    assert first != "something else"


def changed() -> list[tuple[Any, Any]]:
    a, b, d = (make() for make in MAKERS)
    scores = {name: column + 1 for name, column in a.scores.items()}
    return [
        (a, replace(a, scores=scores)),
        (a, replace(a, scores=dict(reversed(a.scores.items())))),
        (a, replace(a, support=None)),
        (a, replace(a, group=a.query)),
        (b, replace(b, value=b.value + 1)),
        (b, replace(b, selector=b.selector.take([1, 0]))),
        (d, replace(d, queries=d.queries + 1)),
    ]


@pytest.mark.parametrize(("one", "other"), changed())
def test_other_content_is_not_equal(one: Any, other: Any) -> None:
    assert one != other
    assert isinstance(hash(other), int)


def test_where_it_came_from_does_not_count() -> None:
    a = pools()
    assert a == replace(a, source="elsewhere", sha256="ab", called={"group": "step"})


def test_an_array_is_not_its_absence() -> None:
    a = pools()
    assert replace(a, support=None) != a
    assert a != replace(a, support=None)
    one = block()
    assert replace(one, rows=np.arange(12)) != one
    assert one != replace(one, rows=np.arange(12))


@pytest.mark.parametrize("make", MAKERS)
def test_repr_is_one_short_line(make: Callable[[], Any]) -> None:
    text = repr(make())
    assert text.startswith(type(make()).__name__ + "(")
    assert "\n" not in text
    assert len(text) < 160


def test_repr_counts_and_names() -> None:
    assert repr(pools()) == (
        "ScoredPools(4 queries of 3 candidates; "
        "scores perfect, noisy, cursed, reversed, constant; values value)"
    )
    assert repr(picks()) == "JudgedPicks(2 picks at 1 query; selectors a, b)"
    many = ScoredPools.from_arrays({f"s{i}": [[0.0]] for i in range(9)}, [[1.0]])
    assert "s0, s1, s2, s3, s4, s5 and 3 more" in repr(many)
