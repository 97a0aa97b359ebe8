"""The documented critics of one's own, through the loader that the command uses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from toptail.lab.scorers.user import user_scorer

EXAMPLES = Path(__file__).parents[3] / "examples"


def rows(n: int, s: int = 2, a: int = 2) -> tuple[NDArray[np.float32], ...]:
    rng = np.random.default_rng(0)
    states, actions, goals = (rng.normal(size=(n, d)).astype(np.float32) for d in (s, a, s))
    return states, actions, goals


def test_numpy_critic_is_the_distance_that_is_left() -> None:
    scorer = user_scorer(f"{EXAMPLES / 'numpy_critic.py'}:score")
    assert scorer.column == "numpy_critic"
    states = np.array([[0.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    actions = np.array([[1.0, 0.0], [-1.0, 0.0]], dtype=np.float32)
    goals = np.array([[1.2, 0.0], [1.2, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(scorer.score(states, actions, goals), [-1.0, -1.4], rtol=1e-6)


def test_numpy_critic_takes_the_position_of_any_maze() -> None:
    scorer = user_scorer(f"baseline={EXAMPLES / 'numpy_critic.py'}:score")
    states, actions, goals = rows(5, s=29, a=8)
    expected = [-np.hypot(*(g[:2] - x[:2])) for x, g in zip(states, goals, strict=True)]
    np.testing.assert_allclose(scorer.score(states, actions, goals), expected, rtol=1e-5)
    assert scorer.column == "baseline"


def test_torch_critic_scores_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("TORCH_CRITIC", raising=False)
    source = EXAMPLES / "torch_critic.py"
    states, actions, goals = rows(5000)
    scorer = user_scorer(f"mine@42={source}:make_score")
    scores = scorer.score(states, actions, goals)
    assert scores.shape == (5000,)
    np.testing.assert_allclose(
        scorer.score(states[-3:], actions[-3:], goals[-3:]), scores[-3:], rtol=1e-5, atol=1e-6
    )
    # Weights from a file: zero but for the last bias.
    layers = (("0", (256, 6), (256,)), ("2", (256, 256), (256,)), ("4", (1, 256), (1,)))
    weights = {f"layers.{i}.weight": torch.zeros(shape) for i, shape, _ in layers}
    weights |= {f"layers.{i}.bias": torch.zeros(shape) for i, _, shape in layers}
    weights["layers.4.bias"] += 7.0
    torch.save(weights, tmp_path / "weights.pt")
    monkeypatch.setenv("TORCH_CRITIC", str(tmp_path / "weights.pt"))
    loaded = user_scorer(f"{source}:make_score").score(states, actions, goals)
    np.testing.assert_allclose(loaded, 7.0)
