"""Code of a user's: it may exit, print, raise and write where it likes, and reaches nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toptail.cli import main
from toptail.commands.demo import Demo
from toptail.errors import Exit, InputError
from toptail.lab.scorers import base as scorers
from toptail.lab.scorers.base import Rows, score_towards
from toptail.lab.scorers.runs import RunScore
from toptail.lab.scorers.user import user_scorer
from toptail.lab.tasks.trajectories import IntArray

ROWS = np.ones((5, 2), np.float32)


def scored(folder: Path, code: str) -> np.ndarray:
    """What a file's function 'score' gives for five rows."""
    path = folder / "critic.py"
    path.write_text(f"import sys\nimport numpy as np\n{code}\n")
    return user_scorer(f"mine={path}:score").score(ROWS, ROWS, ROWS)


@pytest.mark.parametrize(
    "does", ["sys.exit(0)", "raise BaseException('\\x1b[31m\\n')", "raise GeneratorExit", "exit()"]
)
@pytest.mark.parametrize("where", ["{}", "def score(s, a, g): {}", "def score(): {}"])
def test_it_does_not_end_the_process(where: str, does: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"critic\.py") as refused:
        scored(tmp_path, where.format(does))
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "returned",
    ["s", "np.ones(4)", "np.ones((5, 1))", "3.0", "None", "'text'", "np.ones(5) * 1j", "[1, 2]",
     "np.array(['1'] * 5)", "[None] * 5", "{}"],
)  # fmt: skip
def test_other_shapes_and_types_are_refused(returned: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"critic\.py:score"):
        scored(tmp_path, f"def score(s, a, g): return {returned}")


def test_what_it_prints_is_no_part_of_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "print('hello')\ndef score(s, a, g):\n    print('there')\n    return s[:, 0]"
    np.testing.assert_array_equal(scored(tmp_path, code), 1.0)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "hello\nthere\n")


def test_what_it_writes_into_its_rows_stays_with_it(tmp_path: Path) -> None:
    code = "def score(s, a, g):\n    s[:] = 7\n    a[:] = 7\n    g[:] = 7\n    return s[:, 0]"
    np.testing.assert_array_equal(scored(tmp_path, code), 7.0)
    np.testing.assert_array_equal(ROWS, 1.0)


def test_the_error_says_at_which_line_of_the_file(tmp_path: Path) -> None:
    code = "def score(s, a, g):\n    return half(s)\n\ndef half(s):\n    return np.split(s, 4)"
    with pytest.raises(InputError) as refused:  # line 7 calls what raises, in NumPy
        scored(tmp_path, code)
    assert str(refused.value).endswith(f", in {tmp_path / 'critic.py'}, line 7).")
    with pytest.raises(InputError, match=r"cannot be loaded \(ZeroDivisionError: .* line 3\)"):
        scored(tmp_path, "1 / 0")
    with pytest.raises(InputError, match=r"no numbers\)\.$"):  # raised here, in no line of theirs
        scored(tmp_path, "def score(s, a, g): return s > 'a' if 0 else np.array(['1'] * 5)")


@pytest.mark.parametrize("head", ["x", "states", "goals", "x, scale=2.0", "x, *, size=1"])
def test_a_function_without_actions_is_refused(head: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"critic\.py:score.*cannot depend on the action.*obs, s; a"
    ):
        scored(tmp_path, f"def score({head}): return np.ones(5)")


@pytest.mark.parametrize("head", ["actions", "a", "x, u", "s, *rest", "x, g=None"])
def test_one_that_may_depend_on_the_action_is_taken(head: str, tmp_path: Path) -> None:
    np.testing.assert_array_equal(scored(tmp_path, f"def score({head}): return np.ones(5)"), 1.0)


def test_something_built_in_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="failed on 5 rows"):
        scored(tmp_path, "score = dict.fromkeys")


def test_ctrl_c_says_which_one_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Demo) -> int:
        scored(tmp_path, "def score(s, a, g): raise KeyboardInterrupt")
        return 0

    monkeypatch.setattr(Demo, "run", run)
    assert main(["demo"]) == Exit.INTERRUPTED
    assert capsys.readouterr().err == f"toptail: interrupted in {tmp_path / 'critic.py'}:score\n"


# Scores towards goals that are asked for again and again.


TOWARDS = 70
RNG = np.random.default_rng(0)
STATES, ACTIONS = (RNG.normal(size=(TOWARDS, 2)).astype(np.float32) for _ in range(2))
GOALS = RNG.normal(size=(5, 2)).astype(np.float32)
GOAL = RNG.integers(0, 5, TOWARDS)


def known(states: Rows, actions: Rows, goals: Rows) -> Rows:
    """Towards the goal."""
    return np.asarray((actions * (goals - states)).sum(axis=1))


class Known(RunScore):
    """A run whose scores are known; it notes how many rows each call has."""

    def __init__(self, *, factors: bool) -> None:
        super().__init__(lambda: pytest.fail("no network is asked"), "known")
        object.__setattr__(self, "noted", ([], [], factors))

    def __call__(self, states: Rows, actions: Rows, goals: Rows) -> Rows:
        self.noted[0].append(len(states))
        return known(states, actions, goals)

    def towards(self, goals: Rows) -> Callable[[Rows, Rows, IntArray], Rows] | None:
        self.noted[1].append(len(goals))

        def score(states: Rows, actions: Rows, asked: IntArray) -> Rows:
            pair, goal = asked.T
            return self(states[pair], actions[pair], goals[goal])

        return score if self.noted[2] else None

    noted: Any


@pytest.mark.parametrize("factors", [True, False])
def test_rows_are_taken_some_at_a_time_and_goals_embedded_once(
    factors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorers, "SOME_ROWS", 32)
    run = Known(factors=factors)
    score = score_towards(run, GOALS)
    for _ in range(2):
        np.testing.assert_array_equal(
            score(STATES, ACTIONS, GOAL), known(STATES, ACTIONS, GOALS[GOAL])
        )
    assert run.noted[:2] == ([32, 32, 6] * 2, [5])


def test_a_function_of_somebody_is_asked_once_for_all_rows() -> None:
    asked: list[int] = []

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        asked.append(len(states))
        return known(states, actions, goals)

    found = score_towards(score, GOALS)(STATES, ACTIONS, GOAL)
    np.testing.assert_array_equal(found, known(STATES, ACTIONS, GOALS[GOAL]))
    assert asked == [TOWARDS]
