from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toptail import InputError, JudgedPicks, ScoredPools, builtin_pools
from toptail.pools import Block
from toptail.pools.columns import group_seeds

finite = st.floats(allow_nan=False, allow_infinity=False)
scores = finite | st.just(-math.inf)

ENDINGS = ["parquet", "csv", "tsv", "jsonl", "json", "arrow", "npz", "csv.gz", "jsonl.gz"]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A long table of ragged pools, its rows in any order."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    rows = sum(sizes)
    query = [f"q{q}" for q, size in enumerate(sizes) for _ in range(size)]
    columns: dict[str, Any] = {
        "query": query,
        "score_a": draw(st.lists(scores, min_size=rows, max_size=rows)),
        "score_b@42": draw(st.lists(finite, min_size=rows, max_size=rows)),
        "value": draw(st.lists(finite, min_size=rows, max_size=rows)),
    }
    if draw(st.booleans()):
        columns["candidate"] = list(range(rows))
    if draw(st.booleans()):
        columns["support"] = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    if draw(st.booleans()):
        columns["cluster"] = [f"c{q[-1]}" for q in query]
    order = draw(st.permutations(range(rows)))
    return pa.table(columns).take(order)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(table=tables(), ending=st.sampled_from(ENDINGS))
def test_round_trips_are_exact(table: pa.Table, ending: str, tmp_path: Path) -> None:
    pools = ScoredPools.from_arrow(table)
    path = tmp_path / f"pools.{ending}"
    if ending == "npz" and pools.candidate is not None:
        with pytest.raises(InputError, match="no place for candidate labels"):
            pools.write(path)
        return
    pools.write(path)
    back = ScoredPools.read(path)
    assert back == pools
    assert back.sha256 is not None


@given(tables())
def test_candidates_of_a_query_come_to_lie_side_by_side(table: pa.Table) -> None:
    pools = ScoredPools.from_arrow(table)
    rows = table.to_pylist()
    for q, label in enumerate(pools.query.to_pylist()):
        own = slice(pools.offsets[q], pools.offsets[q + 1])
        expected = [row["value"] for row in rows if row["query"] == label]
        assert pools.values["value"][own].tolist() == expected  # in the table's own order


@given(tables(), st.integers(1, 6))
def test_blocks_cover_every_pool_once(table: pa.Table, limit: int) -> None:
    pools = ScoredPools.from_arrow(table)
    seen: dict[int, list[float]] = {}
    for block in pools.blocks(limit):
        for q, row in zip(block.queries, block.take(pools.scores["score_a"]), strict=True):
            assert row.size == block.size
            seen[int(q)] = row.tolist()
    assert sorted(seen) == list(range(pools.queries))
    flat = [x for q in sorted(seen) for x in seen[q]]
    assert flat == pools.scores["score_a"].tolist()


def test_one_row_per_query_with_lists(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {"prompt": "a", "scores": [0.1, 0.9, 0.5], "correct": [False, True, False]},
        {"prompt": "b", "scores": [1, 2], "correct": [True, False]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pools = ScoredPools.read(path)
    assert pools.sizes.tolist() == [3, 2]
    assert pools.values["correct"].tolist() == [0, 1, 0, 1, 0]
    assert pools.query.to_pylist() == [0, 1]
    named = ScoredPools.read(path, query="prompt")
    assert named.query.to_pylist() == ["a", "b"]


def test_a_row_longer_than_a_block_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    row = {"scores": [0.123456789] * 1_500_000, "correct": [1] * 1_500_000}
    path.write_text(json.dumps(row) + "\n" + json.dumps({"scores": [1.0], "correct": [0]}) + "\n")
    assert path.stat().st_size > 1 << 24
    assert ScoredPools.read(path).sizes.tolist() == [1_500_000, 1]


class Frame:
    """A data frame of some library: all that is known is that it speaks Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self._table.__arrow_c_stream__(schema)


def test_any_frame_that_speaks_arrow() -> None:
    frame = Frame(pa.table({"query": [1, 1], "score": [0.5, 0.25], "value": [1, 0]}))
    assert ScoredPools.from_arrow(frame).scores["score"].tolist() == [0.5, 0.25]


def test_seed_columns_belong_to_one_scorer() -> None:
    data = [[0.0, 1.0]]
    pools = ScoredPools.from_arrays({"raw@42": data, "raw@43": data, "td": data}, data)
    assert pools.scorers == {"raw": {42: "raw@42", 43: "raw@43"}, "td": {None: "td"}}
    beside = ScoredPools.from_arrays({"raw": data, "43@raw": data, "me@home": data}, data)
    assert set(beside.scorers) == {"raw", "43@raw", "me@home"}


@pytest.mark.parametrize(
    "clash",
    [("raw", "raw@43"), ("raw@43", "raw"), ("raw@43", "raw@44", "raw"), ("raw@7", "raw@07")],
)
def test_a_scorer_stands_alone_or_with_seeds(clash: tuple[str, ...]) -> None:
    data = [[0.0, 1.0]]
    with pytest.raises(InputError, match=r"^mine: the columns .* rename one of them\.$") as refused:
        ScoredPools.from_arrays(dict.fromkeys(clash, data), data, source="mine")
    for column in (clash[0], clash[-1]):
        assert f"'{column}'" in str(refused.value)
    with pytest.raises(InputError, match=r"^The columns"):
        group_seeds(clash)
    table = pa.table({"query": [1, 1], "value": [0, 1], **{name: [0.5, 1.0] for name in clash}})
    chosen = ScoredPools.from_arrow(table, scores=clash[0])  # one of them is no clash
    assert list(chosen.scores) == [clash[0]]


def test_scores_by_scorer_name_take_all_its_seeds() -> None:
    table = pa.table(
        {"query": [1, 1], "raw@1": [0.0, 1], "raw@2": [1.0, 0], "b": [1, 2], "value": [0, 1]}
    )
    assert list(ScoredPools.from_arrow(table, scores=["raw"]).scores) == ["raw@1", "raw@2"]
    assert list(ScoredPools.from_arrow(table).scores) == ["raw@1", "raw@2", "b"]


def test_ragged_npz_looks_only_at_what_counts(tmp_path: Path) -> None:
    path = tmp_path / "dense.npz"
    score = np.array([[1.0, 2.0], [3.0, np.nan]])
    np.savez(path, mine=score, value=np.ones((2, 2)), size=np.array([2, 1]))
    assert ScoredPools.read(path).scores["mine"].tolist() == [1.0, 2.0, 3.0]


def test_only_needed_parquet_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    table = pa.table({"query": [1, 1], "s": [0.0, 1.0], "value": [0, 1], "text": ["long", "text"]})
    pq.write_table(table, path)
    assert list(ScoredPools.read(path).scores) == ["s"]


def test_select_keeps_whole_pools() -> None:
    table = pa.table(
        {"query": ["a", "a", "b", "c"], "s": [1.0, 2, 3, 4], "value": [1.0, 2, 3, 4]}
        | {"candidate": [0, 1, 0, 0], "group": ["x", "x", "y", "x"]}
    )
    part = ScoredPools.from_arrow(table).select(np.array([True, False, True]))
    assert part.query.to_pylist() == ["a", "c"]
    assert part.scores["s"].tolist() == [1, 2, 4]
    assert part.group is not None
    assert part.group.to_pylist() == ["x", "x"]


# Equality, hash and repr of the containers: by content, and never a surprise.


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
