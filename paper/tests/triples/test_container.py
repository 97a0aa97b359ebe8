from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.triples.world import GAMMA, NEGATIVES, scored
from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.lab.tasks.triples import Triples
from toptail_paper.triples.scored import ScoredTriples

TRIPLES = scored(4)
N = len(TRIPLES)
assert TRIPLES.negative_rows is not None
NEGATIVE_ROWS = TRIPLES.negative_rows


def vary(triples: ScoredTriples, change: dict[str, Any]) -> ScoredTriples:
    return replace(triples, **change)


def assert_equal(a: ScoredTriples, b: ScoredTriples) -> None:
    for item in fields(ScoredTriples):
        x, y = getattr(a, item.name), getattr(b, item.name)
        if item.name == "source":
            continue
        if isinstance(x, dict) and item.name != "step_reward":
            assert list(x) == list(y), item.name
            for name in x:
                assert x[name].dtype == y[name].dtype
                np.testing.assert_array_equal(x[name], y[name])
        elif isinstance(x, np.ndarray):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)
        else:
            assert x == y, item.name


def test_what_is_written_is_read_back_bit_by_bit(tmp_path: Path) -> None:
    halved = {name: column.astype(np.float32) for name, column in TRIPLES.negatives.items()}
    triples = replace(TRIPLES, negatives=halved)
    path = tmp_path / "deep" / "triples.npz"
    triples.write(path)
    again = ScoredTriples.read(path)
    assert_equal(triples, again)
    assert again.source == str(path)
    assert again.sha256 == triples.sha256
    assert [p.name for p in path.parent.iterdir()] == ["triples.npz"]  # nothing temporary is left


def test_the_smallest_container_goes_round_too(tmp_path: Path) -> None:
    one = np.array([4])
    triples = ScoredTriples(one, one + 2, one * 0, 0.5, {"raw/odd name@3": np.array([-1.5])})
    triples.write(tmp_path / "t.npz")
    assert_equal(triples, ScoredTriples.read(tmp_path / "t.npz"))
    assert triples.second_distance.tolist() == [-1]


def test_derived_columns_agree_with_the_triples_they_came_from() -> None:
    plain = Triples(TRIPLES.rows, TRIPLES.goal_rows, TRIPLES.trajectory, GAMMA)
    np.testing.assert_array_equal(TRIPLES.distance, plain.distance)
    np.testing.assert_array_equal(TRIPLES.value, plain.value)
    np.testing.assert_array_equal(TRIPLES.second_distance, 5 - plain.distance)
    assert TRIPLES.column("scores", "exact").dtype == np.float64


def test_scorers_are_grouped_by_seed() -> None:
    column = TRIPLES.scores["exact"]
    many = replace(TRIPLES, scores=dict.fromkeys(("raw@1", "raw@2", "user", "a@b"), column))
    assert many.scorers == {
        "raw": {1: "raw@1", 2: "raw@2"},
        "user": {None: "user"},
        "a@b": {None: "a@b"},
    }


def test_a_user_scorer_named_like_a_trained_one_is_refused() -> None:
    column = TRIPLES.scores["exact"]
    with pytest.raises(InputError, match=r"'raw@1' and 'raw'.*rename one"):
        replace(TRIPLES, scores=dict.fromkeys(("raw@1", "raw"), column))


def test_the_hash_sees_every_field() -> None:
    changed: dict[str, Any] = {"gamma": 0.8, "data_sha256": "cd", "step_reward": {}}
    base = replace(TRIPLES, next_scores={})
    hashes = {base.sha256}
    for name, value in changed.items():
        hashes.add(vary(base, {name: value}).sha256)
    for family in ("scores", "readouts", "negatives", "hard_negatives", "second_goals"):
        columns = {name: column + 1.0 for name, column in getattr(base, family).items()}
        hashes.add(vary(base, {family: columns}).sha256)
    for family in ("query_means", "values"):
        hashes.add(vary(base, {family: {}}).sha256)
    hashes.add(TRIPLES.sha256)
    hashes.add(replace(base, second_goal_rows=np.full(N, -1)).sha256)
    hashes.add(replace(base, hard_negative_rows=NEGATIVE_ROWS[:, 1].copy()).sha256)
    assert len(hashes) == 1 + 3 + 5 + 2 + 3
    assert replace(base, source="elsewhere").sha256 == base.sha256


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no triples", {"rows": np.empty(0, np.int64)}, "there are no triples"),
    ("no scores", {"scores": {}}, "at least one score column"),
    ("gamma", {"gamma": 1.0}, "gamma is 1.0"),
    ("gamma NaN", {"gamma": float("nan")}, "gamma is nan"),
    ("short", {"goal_rows": TRIPLES.goal_rows[:-1]}, "'goal_rows' is int64 of shape"),
    ("floats", {"trajectory": TRIPLES.trajectory * 1.0}, "'trajectory' is float64"),
    ("flat", {"negative_rows": TRIPLES.hard_negative_rows}, r"expected int64 of shape \[n, m\]"),
    ("none", {"negative_rows": np.empty((N, 0), np.int64)},
     r"'negative_rows' is int64 of shape \(32, 0\)"),
    ("past", {"goal_rows": TRIPLES.rows}, "'goal_rows' of triple 1 is not after"),
    ("own trajectory", {"hard_negative_rows": TRIPLES.goal_rows},
     "'hard_negative_rows' of triple 1 is not the goal of a triple on another trajectory"),
    ("not a goal", {"negative_rows": np.where(np.arange(N)[:, None] == 4, 77, NEGATIVE_ROWS)},
     "'negative_rows' of triple 5 is not the goal"),
    ("second past", {"second_goal_rows": TRIPLES.rows}, "'second_goal_rows' of triple 1"),
    ("second same", {"second_goal_rows": TRIPLES.goal_rows}, "other than the goal's"),
    ("second -2", {"second_goal_rows": np.full(N, -2)}, "neither -1 nor"),
    ("no rows", {"hard_negative_rows": None}, "needs 'hard_negative_rows'"),
    ("shape", {"readouts": {"a": np.zeros(N - 1)}}, "column 'a' of 'readouts' is float64"),
    ("type", {"values": {"a": np.zeros(N, int)}}, "expected float32 or float64"),
    ("width", {"negatives": {"a": np.zeros((N, NEGATIVES + 1))}}, "'a' of 'negatives' is float64"),
    ("reward", {"step_reward": {"exact": 0.0}}, "no finite number for 'steps'"),
    ("NaN reward", {"step_reward": {"exact": float("nan")}}, "no finite number for 'exact'"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "change", "message"), BAD, ids=[b[0] for b in BAD])
def test_what_cannot_be_used_is_refused_in_one_sentence(
    what: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        vary(TRIPLES, {"source": what, **change})
    text = str(caught.value)
    assert text.startswith(what)
    assert text.endswith(".")
    assert "\n" not in text


FAMILIES = ["scores", "negatives", "hard_negatives", "second_goals", "next_scores", "values"]


@pytest.mark.parametrize("family", [*FAMILIES, "query_means", "readouts"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_looked_at_must_be_finite(family: str, bad: float) -> None:
    name, column = next(iter(getattr(TRIPLES, family).items()))
    broken = column.copy()
    broken[6, ...] = bad  # its distance is 3
    with pytest.raises(InputError, match=f"'{name}' of '{family}' is not finite at triple 7"):
        vary(TRIPLES, {family: {name: broken}})


def test_what_is_not_looked_at_may_be_anything() -> None:
    assert np.isnan(TRIPLES.next_scores["exact"][TRIPLES.distance == 1]).all()
    first = {name: column.copy() for name, column in TRIPLES.second_goals.items()}
    rows = TRIPLES.second_goal_rows
    assert rows is not None
    for column in first.values():
        column[0] = np.nan
    fewer = replace(TRIPLES, second_goals=first, second_goal_rows=np.where(np.arange(N), rows, -1))
    assert fewer.second_distance[0] == -1


def spoil(path: Path, change: dict[str, Any]) -> None:
    arrays = {**read_arrays(path), **change}
    write_arrays(path, {name: array for name, array in arrays.items() if array is not None})


HEADER = {"format": "toptail-triples-1", "gamma": 0.9, "data": "", "step_reward": {}}
SPOILED: dict[str, dict[str, Any]] = {
    "one score": {"scores/exact": TRIPLES.scores["exact"] + 1e-9},
    "no header": {"header": None},
    "no rows": {"rows": None},
    "header of another kind": {"header": np.array(["[]", "0"])},
    "header not JSON": {"header": np.array(["{", "0"])},
    "bare header": {"header": np.array("x")},
    "other hash": {"header": np.array([json.dumps(HEADER), "0"]), "next_scores/exact": None},
    "reward as text": {"header": np.array([json.dumps({**HEADER, "step_reward": "a"}), "0"])},
    "unknown array": {"more": np.zeros(2)},
    "unknown family": {"more/a": np.zeros(2)},
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_changed_file_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    replace(TRIPLES, next_scores={}, step_reward={}).write(path)
    ScoredTriples.read(path)
    spoil(path, SPOILED[what])
    with pytest.raises(InputError, match=r"t\.npz is not a file of scored triples, or was changed"):
        ScoredTriples.read(path)


def test_a_file_of_another_format_is_refused_although_its_hash_fits(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    TRIPLES.write(path)
    text, recorded = (str(item) for item in read_arrays(path)["header"])
    later = text.replace("toptail-triples-1", "toptail-triples-2")
    assert later != text
    spoil(path, {"header": np.array([later, recorded])})
    with pytest.raises(InputError, match="not a file of scored triples"):
        ScoredTriples.read(path)


def test_a_file_with_unusable_content_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    TRIPLES.write(path)
    spoil(path, {"scores/exact": np.full(N, np.nan)})
    with pytest.raises(InputError, match=r"t\.npz: column 'exact' of 'scores' is not finite"):
        ScoredTriples.read(path)


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("unpickled",))


def test_nothing_is_unpickled_and_damage_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, rows=np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="never loaded"):
        ScoredTriples.read(path)
    path.write_bytes(pickle.dumps({"rows": [1]}))
    with pytest.raises(InputError, match=r"t\.npz"):
        ScoredTriples.read(path)
    TRIPLES.write(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="truncated"):
        ScoredTriples.read(path)
    with pytest.raises(InputError, match="does not exist"):
        ScoredTriples.read(tmp_path / "none.npz")
    with pytest.raises(InputError, match=r"ends in \.npz"):
        TRIPLES.write(tmp_path / "t.parquet")


def test_equality_is_by_content() -> None:
    a = scored(4)
    assert any(np.isnan(column).any() for column in a.next_scores.values())
    rewards = {name: np.float64(reward) for name, reward in a.step_reward.items()}
    assert a == scored(4) == replace(a, step_reward=rewards, gamma=np.float64(a.gamma))
    assert hash(a) == hash(scored(4))
    assert a != replace(a, gamma=0.5)
    assert a != replace(a, negatives={})
