from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paper.tests.triples.world import GAMMA, NEGATIVES, scored
from toptail.errors import InputError
from toptail.lab.tasks.triples import Triples
from toptail_paper.triples.scored import ScoredTriples

TRIPLES = scored(4)
N = len(TRIPLES)
assert TRIPLES.negative_rows is not None
NEGATIVE_ROWS = TRIPLES.negative_rows


def vary(triples: ScoredTriples, change: dict[str, Any]) -> ScoredTriples:
    return replace(triples, **change)


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


def test_equality_is_by_content() -> None:
    a = scored(4)
    assert any(np.isnan(column).any() for column in a.next_scores.values())
    rewards = {name: np.float64(reward) for name, reward in a.step_reward.items()}
    assert a == scored(4) == replace(a, step_reward=rewards, gamma=np.float64(a.gamma))
    assert hash(a) == hash(scored(4))
    assert a != replace(a, gamma=0.5)
    assert a != replace(a, negatives={})
