"""A critic of each kind, named on the command line, scored and audited to a verdict."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.foreign.fixtures import FOREIGN
from toptail.errors import InputError
from toptail.lab.scorers.user import user_scorer, user_scorers

MINE = """
import numpy as np

def make(run, epoch=1, scale=(1.0,)):
    def score(states, actions, goals):
        return epoch * scale[0] * (states[:, 0] + len(run))
    score.step_reward = -1.0
    return score

def none(run):
    return None
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def rows(count: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    s, a, g = np.random.default_rng(0).uniform(-1, 1, (3, count, 2)).astype(np.float32)
    return s, a, g


GCIQL = f"ogbench:{FOREIGN}/ogbench/gciql/sd*/params_20.pkl"


def test_a_pattern_stands_for_seeds() -> None:
    columns = [s.column for s in user_scorers([GCIQL], reserved=())]
    assert columns == ["ogbench-gciql@0", "ogbench-gciql@1"]
    named = user_scorers([f"mine={GCIQL}"], reserved=())
    assert [s.column for s in named] == ["mine@0", "mine@1"]


def test_seeds_are_those_that_the_stars_stand_for(tmp_path: Path) -> None:
    for name in ("run-7", "run-12", "run-x"):
        (tmp_path / name).mkdir()
        shutil.copy(FOREIGN / "d3rlpy" / "cql.d3", tmp_path / name / "model_5.d3")
    text = f"d3rlpy:{tmp_path}/run-*/model_5.d3"
    with pytest.raises(
        InputError, match=r"seeds of these 3 files cannot be told apart.*@1=d3rlpy:"
    ):
        user_scorers([text], reserved=())
    shutil.rmtree(tmp_path / "run-x")
    columns = [s.column for s in user_scorers([text], reserved=())]
    assert columns == ["d3rlpy-cql@12", "d3rlpy-cql@7"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ogbench:{}/nothing*/x.pkl", "no file fits the pattern"),
        ("ogbench:{}/x.pkl", "does not exist"),
        ("mine@3=ogbench:{}/*.pkl", "no file fits|stands for the seeds"),
        ("raw=ogbench:{}/x.pkl", "name of a critic that is trained here"),
        ("a b=ogbench:{}/x.pkl", "cannot name a critic"),
        ("keras:{}/x.h5", r"or a checkpoint \(ogbench:PATH, d3rlpy:PATH\)"),
    ],
)
def test_what_does_not_fit_is_said(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        user_scorers([text.format(tmp_path)], reserved=())


def test_a_function_is_called_with_literals(mine: Path) -> None:
    s, a, g = rows()
    scorer = user_scorer(f'{mine}:make(run="abc", epoch=5)')
    np.testing.assert_allclose(scorer.score(s, a, g), 5 * (s[:, 0] + 3), rtol=1e-6)
    assert scorer.column == "mine"
    assert scorer.step_reward == -1.0
    assert scorer.origin["function"] == 'make(run="abc", epoch=5)'
    other = user_scorer(f"b@2={mine}:make('x', 2, scale=(3.0,))")
    np.testing.assert_allclose(other.score(s, a, g), 6 * (s[:, 0] + 1), rtol=1e-6)
    assert other.column == "b@2"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("make(run=__import__('os').getcwd())", "arguments of make must be literals"),
        ("make(run=name)", "must be literals"),
        ("make(**{'run': 'a'})", "must be literals"),
        ("make('a')('b')", "must be literals"),
        ("make('a'", "must be literals"),
        ("make('a') + 1", "must be literals"),
        ("make()", r"make\(\) failed .TypeError"),
        ("none('a')", r"none\('a'\) returned NoneType"),
    ],
)
def test_other_arguments_are_refused(call: str, message: str, mine: Path) -> None:
    with pytest.raises(InputError, match=message):
        user_scorer(f"{mine}:{call}")
