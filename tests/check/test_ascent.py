"""The maximizer of a score: what it finds, and what a check says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from paper.tests.semantics.fake_runs import write_run
from tests.check.conftest import checked
from tests.environments.plane import small
from tests.training.toy import toy_config
from toptail.errors import InputError
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.page import check_html, check_lines
from toptail.lab.check.run import check
from toptail.lab.check.verdicts import failures
from toptail.lab.scorers.base import Ascent, climb
from toptail.lab.scorers.runs import of_run
from toptail.lab.scorers.user import DifferentiableScore, as_score
from toptail.lab.tasks.files import load_file
from toptail.results import schema

RNG = np.random.default_rng(0)
STATES = RNG.uniform(-1, 1, (9, 3)).astype(np.float32)
GOALS = RNG.uniform(-0.8, 0.8, (9, 3)).astype(np.float32)
NUMBERS = np.arange(9)
CANDIDATES = RNG.uniform(-1, 1, (9, 4, 3)).astype(np.float32)


def peak(_states: Any, actions: Any, goals: Any) -> Any:
    """Highest where the action is the goal, inside the box."""
    return -np.square(actions - goals).sum(axis=1)


def slope(_states: Any, actions: Any, goals: Any) -> Any:
    return 2 * (goals - actions)


def corner(states: Any, actions: Any) -> Any:
    """Highest in a corner of the box, which depends on the state."""
    return (actions * np.sign(states)).sum(axis=1)


def best(score: Any, rows: Any = NUMBERS, seed: int = 0) -> Any:
    ascent = Ascent(as_score(score, "score"), GOALS, 3, seed)
    return ascent.best(rows[:, None], STATES[rows], rows, CANDIDATES[rows])


def test_the_highest_score_in_the_box_is_found() -> None:
    np.testing.assert_allclose(best(peak), GOALS, atol=0.05)
    np.testing.assert_array_equal(best(corner), np.sign(STATES))
    np.testing.assert_array_equal(best(lambda s, _: np.zeros(len(s))), CANDIDATES[:, 0])


def test_a_pick_depends_on_its_own_key_and_the_seed_alone() -> None:
    whole = best(peak)
    np.testing.assert_array_equal(best(peak, NUMBERS[[7, 2]]), whole[[7, 2]])
    np.testing.assert_array_equal(best(peak), whole)
    assert (best(peak, seed=1) != whole).any()


def test_a_function_with_a_gradient_is_climbed() -> None:
    def score(states: Any, actions: Any, goals: Any) -> Any:
        calls.append(len(actions))
        return peak(states, actions, goals)

    calls: list[int] = []
    score.gradient = slope  # type: ignore[attr-defined]
    assert isinstance(as_score(score, "score"), DifferentiableScore)
    np.testing.assert_allclose(best(score), GOALS, atol=0.05)
    assert calls == [9 * 1028, 9 * 16]  # no further rounds
    score.gradient = lambda _s, a, _g: a[:, :1]  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"gradient returned an array of shape \(144, 1\)"):
        best(score)


def test_a_trained_run_is_climbed_by_its_own_gradient(plane: Path, tmp_path: Path) -> None:
    sha = load_file(plane).sha256
    write_run(toy_config(task="plane", critic="raw"), 42, tmp_path, sha, (2, 2))
    (scorer,) = of_run(tmp_path / "plane" / "raw", 42, "plane")
    states, goals = STATES[:, :2], GOALS[:, :2]
    first = RNG.uniform(-0.5, 0.5, (9, 4, 2)).astype(np.float32)

    def gradient(s: Any, a: Any, g: Any) -> Any:
        """By central differences."""
        step = np.float32(1e-2) * np.eye(2, dtype=np.float32)
        up, down = ([scorer.score(s, a + sign * each, g) for each in step] for sign in (1, -1))
        return (np.stack(up, axis=1) - np.stack(down, axis=1)) / 2e-2

    ends, scores = scorer.score.ascend(states, first, goals, 5, 0.05)  # type: ignore[attr-defined]
    slow, _ = climb(scorer.score, gradient, states, first, goals, 5, 0.05)
    np.testing.assert_allclose(ends, slow, atol=0.02)
    before = scorer.score(np.repeat(states, 4, 0), first.reshape(-1, 2), np.repeat(goals, 4, 0))
    assert (scores.ravel() >= before).all()
    assert scores.mean() > before.mean()
    config = CheckConfig(**small(per_group=3))
    folder = str(tmp_path / "plane" / "raw" / "seed-42")
    result = check(plane, folder, pools="ascent", judge="none", config=config)
    found, pools = result.sources[0].pools["ascent/raw@42"], result.sources[0].pools
    queries = result.queries
    reached = scorer.score(queries.states, found, queries.goals)
    assert (reached >= pools["scores/raw@42"].max(axis=1)).all()


SPIKE = """
def constant(states, actions):
    return 0 * actions[:, 0]

def spike(states, actions):  # right, except in 0.15 % of the box
    return inward(states, actions) + 5 * (actions > 0.9225).all(axis=1)
"""


@pytest.fixture
def spiked(plane: Path, tmp_path: Path) -> Path:
    for name in ("plane.npz", "plane-val.npz"):
        (tmp_path / name).write_bytes((plane.parent / name).read_bytes())
    (tmp_path / "mine.py").write_text((plane.parent / "mine.py").read_text() + SPIKE)
    return tmp_path / "plane.npz"


def test_a_critic_that_is_safe_up_to_64_is_unsafe_under_ascent(spiked: Path) -> None:
    how: dict[str, Any] = {"env": "ActingPlane", "pools": ("uniform", "ascent")}
    sizes = {"pool_size": 64, "follow_k": (1, 64), "horizon": 3, "resamples": 1000}
    result = checked(spiked, "spike", "inward", "constant", sizes=sizes, **how)
    parts = {name: e["parts"] for name, e in result.content["scorers"].items()}
    box, ascent = parts["spike"]
    assert (box["one_step"]["status"], box["one_step"]["k_max"]) == ("safe", 64)
    assert ascent["one_step"]["status"] == "unsafe"
    assert " to ascent, difference −" in ascent["one_step"]["reason"]
    assert {*ascent["one_step"]["worth"]} == {"K = 64", "K = 1", "ascent"}
    assert "closed_loop" not in ascent  # not asked for, which is no failure
    assert parts["inward"][1]["one_step"]["status"] == "safe"
    assert result.verdicts["inward"].status == "safe"
    assert parts["constant"][1]["one_step"]["status"] == "no gain"
    said = check_lines(result.content)
    assert said[0].startswith(
        "unsafe        spike: one step, best of up to 64 uniform candidates: "
    )
    assert "one step, ascent: unsafe." in said[0]
    assert failures(result.content, {"unsafe"}) == ["spike, one step, ascent: unsafe"]
    assert "one step, ascent: unsafe" in check_html(result.content)
    jsonschema.validate(result.content, schema("check"))
    maps = {axes.get_title(loc="left"): axes for axes in result.map().axes}
    gain = np.asarray(maps["spike, ascent"].collections[0].get_array())
    worth = ascent["one_step"]["worth"]
    change = worth["ascent"]["mean"] - worth["K = 1"]["mean"]
    assert gain.mean() == pytest.approx(change, abs=1e-9)
    box = np.asarray(maps["spike, uniform candidates"].collections[0].get_array())
    assert box.mean() > gain.mean()


def test_the_maximizer_is_followed_at_every_step_where_that_is_asked_for(spiked: Path) -> None:
    sizes = {"starts": 30, "per_group": 15, "follow_ascent": True, "horizon": 6}
    result = checked(spiked, "spike", "inward", env="ActingPlane", pools="ascent", sizes=sizes)
    found = {n: e["parts"][0]["closed_loop"] for n, e in result.content["scorers"].items()}
    assert found["spike"]["status"] == "unsafe"
    assert found["inward"]["status"] == "safe"
    assert {*found["inward"]["worth"]} == {"ascent", "K = 8", "K = 1"}
    assert "followed at every step, ascent: safe, better than a random policy" in "\n".join(
        check_lines(result.content)
    )
    assert ">ascent<" in check_html(result.content)
    assert "ascent" in [axes.get_xticklabels()[-1].get_text() for axes in result.plot().axes]
    again = checked(spiked, "spike", "inward", env="ActingPlane", pools="ascent", sizes=sizes)
    assert again.content == result.content
