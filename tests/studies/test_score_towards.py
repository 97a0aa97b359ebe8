"""Scores towards goals that are asked for again and again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.semantics_study.fake_runs import write_run
from tests.training.toy import toy_config
from toptail.lab.studies import scorers
from toptail.lab.studies.scorers import RunScore, of_run, score_towards

ROWS = 70


@pytest.mark.parametrize("critic", ["raw", "tdq"])
def test_rows_are_scored_as_one_by_one_however_many_are_taken(
    critic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A readout with factors and one without, in parts of which the last is not full."""
    write_run(toy_config(critic=critic), 42, tmp_path)
    (scorer,) = of_run(tmp_path / "walks" / critic, 42, "walks")
    assert isinstance(scorer.score, RunScore)
    rng = np.random.default_rng(0)
    states, actions, goals = (rng.normal(size=(n, 2)).astype(np.float32) for n in (ROWS, ROWS, 5))
    goal = rng.integers(0, 5, ROWS)
    monkeypatch.setattr(scorers, "SOME_ROWS", 32)
    found = score_towards(scorer.score, goals)(states, actions, goal)
    expected = scorer.score(states, actions, goals[goal])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.ptp(expected) > 1e-3


def test_a_function_of_somebody_is_asked_once_for_all_rows() -> None:
    asked: list[int] = []

    def score(states: np.ndarray, actions: np.ndarray, goals: np.ndarray) -> np.ndarray:
        asked.append(len(states))
        towards: np.ndarray = (actions * (goals - states)).sum(axis=1)
        return towards

    goals = np.eye(2, dtype=np.float32)
    rows = np.ones((ROWS, 2), np.float32)
    found = score_towards(score, goals)(rows, 2 * rows, np.arange(ROWS) % 2)
    np.testing.assert_allclose(found, -2.0)
    assert asked == [ROWS]
