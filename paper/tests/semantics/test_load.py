"""Stored scores come back as they were, and are refused where they do not fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paper.tests.semantics.small import WALKS, small_config
from toptail.errors import InputError
from toptail.lab.scorers.user import user_scorer
from toptail_paper.semantics.draws import draw
from toptail_paper.semantics.load import read_task, read_tasks
from toptail_paper.study.store import Stored

FAMILIES = ("scores", "hard_negatives", "second_goals", "next_scores")


def store(out: Path, columns: dict[str, float], task: str = "walks") -> Path:
    """A folder of scores without behaviour models; every score of a column is its step reward."""
    folder = out / "scores" / task
    drawn = draw(small_config(), WALKS)
    Stored({**drawn.header, "task": task, "key": task}, drawn.arrays).write(folder / "draws.npz")
    draws = Stored.read(folder / "draws.npz")
    for column, reward in columns.items():
        arrays = {name: np.full(40, reward, dtype=np.float32) for name in FAMILIES}
        arrays["negatives"] = np.full((40, 5), reward, dtype=np.float32)
        header = {"column": column, "origin": {"by": "hand"}, "step_reward": reward}
        header |= {"draws": draws.sha256, "proposals": None}
        Stored(header, arrays).write(folder / f"{column}.npz")
    return folder


def test_a_stored_file_comes_back_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    header: dict[str, Any] = {"of": [1, 2], "name": "ä"}
    arrays = {"x/a": np.arange(6.0).reshape(2, 3), "x/b": np.array([True]), "y": np.arange(3)}
    stored = Stored(header, arrays)
    stored.write(path)
    back = Stored.read(path)
    assert back.header == header
    assert back.sha256 == stored.sha256
    assert set(back.under("x")) == {"a", "b"}
    np.testing.assert_array_equal(back.arrays["x/a"], arrays["x/a"])
    with np.load(path) as file:
        changed = dict(file)
    changed["y"] = changed["y"] + 1
    np.savez(path, allow_pickle=False, **changed)
    with pytest.raises(InputError, match=r"a.npz .* changed after it was written"):
        Stored.read(path)
    np.savez(path, y=np.arange(3))
    with pytest.raises(InputError, match="is not a file that a study stored"):
        Stored.read(path)


def test_columns_are_read_without_behaviour_models_and_oracle(tmp_path: Path) -> None:
    store(tmp_path, {"b@10": -1.0, "b@9": -1.0, "a": 0.0})
    scores = read_task(tmp_path, "data/walks.npz")
    assert list(scores.triples.scores) == ["a", "b@9", "b@10"]
    assert scores.triples.step_reward == {"a": 0.0, "b": -1.0}
    assert (dict(scores.diffusion), dict(scores.loss_gaps), dict(scores.query_std)) == ({}, {}, {})
    assert scores.triples.values == {}
    assert read_tasks(tmp_path, "temperature") == []


def test_tasks_come_in_the_papers_order(tmp_path: Path) -> None:
    names = ["antmaze-medium-navigate-v0", "aaa", "pointmaze-medium-navigate-v0"]
    for name in names:
        store(tmp_path, {"a": 0.0}, name)
    assert [scores.task for scores in read_tasks(tmp_path)] == [names[2], names[0], names[1]]
    assert read_task(tmp_path, "AntMaze").task == names[0]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no scores"):
        read_tasks(tmp_path)
    folder = store(tmp_path, {"a@1": 0.0, "a@2": -1.0})
    with pytest.raises(InputError, match=r"no scores of the task 'maze' .stored are: walks"):
        read_task(tmp_path, "maze")
    with pytest.raises(InputError, match="seeds of 'a' have different step rewards, 0 and -1"):
        read_task(tmp_path, "walks")
    (folder / "a@2.npz").unlink()
    draws = Stored.read(folder / "draws.npz")
    Stored({"draws": draws.sha256, "loss_gaps": {}}, {}).write(folder / "proposals.npz")
    with pytest.raises(InputError, match=r"a@1.npz was made from something else .*: proposals \("):
        read_task(tmp_path, "walks")
    (folder / "proposals.npz").unlink()
    Stored({**draws.header, "gamma": 0.9}, draws.arrays).write(folder / "draws.npz")
    with pytest.raises(InputError, match=r"a@1.npz was made from something else .*: draws \("):
        read_task(tmp_path, "walks")
    (folder / "a@1.npz").unlink()
    with pytest.raises(InputError, match="holds no column of a critic"):
        read_task(tmp_path, "walks")


# The documented critics of one's own, through the loader that the command uses.


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
