"""A stored selector in production: pools without values, in the shapes that people have."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from toptail import InputError, ScoredPools, Selector
from toptail.select import Best, FunctionSelector, Majority, ScoreRule, Threshold, TopBy

SCORES = np.array([[0.1, 0.9, 0.4], [0.7, 0.2, 0.3]])
BEST = Best(score=ScoreRule.of("rm"), k=2)
WEIGHTS = np.array([[0, 2 / 3, 1 / 3], [2 / 3, 0, 1 / 3]])


def test_one_pool_several_and_bare_numbers() -> None:
    np.testing.assert_allclose(BEST.weights({"rm": SCORES[0]}), WEIGHTS[0])
    np.testing.assert_allclose(BEST.weights({"rm": SCORES, "other": None}), WEIGHTS)
    np.testing.assert_allclose(BEST.weights(SCORES), WEIGHTS)
    np.testing.assert_allclose(BEST.weights(SCORES[1].tolist()), WEIGHTS[1])


def test_tables_give_weights_in_their_own_order(tmp_path: Path) -> None:
    order = np.array([3, 0, 4, 1, 5, 2])
    table = pa.table({"query": np.repeat(["a", "b"], 3)[order], "rm": SCORES.reshape(-1)[order]})
    expected = WEIGHTS.reshape(-1)[order]
    np.testing.assert_allclose(BEST.weights(table), expected)
    np.testing.assert_allclose(BEST.weights(table.to_pylist()), expected)
    pq.write_table(table, tmp_path / "new.parquet")
    np.testing.assert_allclose(BEST.weights(tmp_path / "new.parquet"), expected)
    pools = ScoredPools.from_arrays({"rm": SCORES}, SCORES)
    np.testing.assert_allclose(BEST.weights(pools), WEIGHTS.reshape(-1))


def test_pools_of_several_sizes() -> None:
    table = {"query": [1, 1, 2, 2, 2], "rm": [0.1, 0.2, 0.9, 0.1, 0.5]}
    found = BEST.weights(table)
    np.testing.assert_allclose(found, [0, 1, 2 / 3, 0, 1 / 3])
    assert BEST.with_k(9).pick(table).tolist() == [1, 0]


def test_picks_follow_the_weights_and_abstain() -> None:
    many = np.tile(SCORES[0], (20_000, 1))
    shares = np.bincount(BEST.pick({"rm": many}), minlength=3) / 20_000
    np.testing.assert_allclose(shares, WEIGHTS[0], atol=0.02)
    strict = Threshold(score=ScoreRule.of("rm"), least=0.8, k=2)
    picked = strict.pick({"rm": many})
    assert set(picked) == {-1, 1}
    assert (picked == 1).mean() == pytest.approx(2 / 3, abs=0.02)
    assert BEST.pick({"rm": many}, seed=1).tolist() == BEST.pick({"rm": many}, seed=1).tolist()


def test_answers_are_text_or_numbers() -> None:
    vote = Majority(k=3)
    for answers in (["x", "y", "y"], [1, 2, 2], [0.5, 2.5, 2.5]):
        np.testing.assert_allclose(vote.weights({"answer": answers}), [0, 0.5, 0.5])


def test_it_is_stored_as_small_json(tmp_path: Path) -> None:
    selector = TopBy(score=ScoreRule.of("rm"), by="logp", top=4, k=16)
    path = tmp_path / "selector.json"
    selector.save(path)
    assert json.loads(path.read_text()) == {
        "format": "toptail-selector-1",
        "selector": "top",
        "k": 16,
        "parameters": {"score": "rm", "by": "logp", "top": 4},
    }
    assert path.stat().st_size < 300
    assert Selector.load(path) == selector


def test_a_function_must_be_given_again(tmp_path: Path) -> None:
    path = tmp_path / "selector.json"
    own = FunctionSelector(name="mine", reads=("rm",), function=len, k=2)
    own.save(path)
    with pytest.raises(InputError, match="is the function 'mine'"):
        Selector.load(path)
    assert Selector.load(path, function=len) == own


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not readable"),
        ("[" * 100_000, "not readable .*recursion"),
        ("[]", "not a selector"),
        ('{"format": "toptail-selector-1"}', "broken"),
        ('{"format": "toptail-selector-1", "selector": "gone", "k": 2}', "broken"),
        (
            '{"format": "toptail-selector-1", "selector": "best", "k": 2, '
            '"parameters": {"score": "rm", "more": 1}}',
            "broken",
        ),
    ],
)
def test_a_damaged_file_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "selector.json"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        Selector.load(path)
    with pytest.raises(InputError, match="not readable"):
        Selector.load(tmp_path / "gone.json")


def test_what_cannot_be_chosen_from_is_refused() -> None:
    top = TopBy(score=ScoreRule.of("rm"), by="logp", top=4, k=16)
    for candidates, says in (
        ({"other": [1.0]}, "reads the column 'rm', which is not there"),
        ({"rm": [1.0], "logp": [1.0, 2.0]}, "has shape"),
        ({"rm": [1.0, np.nan], "logp": [1.0, 2.0]}, "finite"),
        ({"rm": [], "logp": []}, "one pool"),
        ([1.0, 2.0], "by their names"),
        ({"query": [1], "rm": [1.0]}, "reads the column 'logp'"),
    ):
        with pytest.raises(InputError, match=says):
            top.weights(candidates)
    with pytest.raises(InputError, match="column 'answer'"):
        Majority(k=3).weights({"rm": [1.0]})
