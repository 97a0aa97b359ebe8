"""Scorers of runs and of a user's file."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paper.tests.semantics.fake_runs import write_run
from paper.tests.semantics.small import small_config
from tests.training.toy import toy_config
from toptail.errors import InputError
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.scorers.base import Rows, score_shared
from toptail.lab.scorers.user import user_scorer
from toptail.lab.training.runs import load_run
from toptail_paper.semantics.scoring import run_scorers, sweep_scorers


def rows(n: int = 5) -> tuple[Rows, Rows, Rows]:
    """States, actions and goals."""
    rng = np.random.default_rng(0)
    s, a, g = (rng.normal(size=(n, 2)).astype(np.float32) for _ in range(3))
    return s, a, g


def test_every_critic_gives_its_columns_readouts_and_step_reward(tmp_path: Path) -> None:
    for critic in ("raw", "cosine", "hybrid", "two_head_separate", "nce_mlp"):
        write_run(toy_config(critic=critic), 42, tmp_path)
    write_run(toy_config(critic="td_bilinear", reward="0/1"), 42, tmp_path)
    for seed in (7, 42, 99):  # the oracle, a reported seed, and one that nobody asked for
        write_run(toy_config(critic="tdq"), seed, tmp_path)
    scorers = run_scorers(tmp_path, "walks", small_config(seeds=(42, 43)))
    assert {s.column: (s.step_reward, *s.readouts) for s in scorers} == {
        "raw@42": (0.0, "cosine", "norm"),
        "cosine@42": (0.0, "raw", "norm"),
        "tdq@42": (-1.0,),
        "hybrid@42": (0.0, "q_td", "q_hybrid"),
        "two_head_separate@42": (-1.0,),
        "two_head_separate.f_cos@42": (0.0,),
        "td_bilinear@42": (0.0,),
        "nce_mlp@42": (0.0,),
        "oracle@7": (-1.0,),
    }
    tdq, oracle = (next(s for s in scorers if s.column == c) for c in ("tdq@42", "oracle@7"))
    assert oracle.origin["run"] == "walks/tdq/seed-7"
    assert (oracle.score(*rows()) != tdq.score(*rows())).all()


def test_scores_are_those_of_the_run_whatever_the_number_of_rows(tmp_path: Path) -> None:
    folder = write_run(toy_config(), 42, tmp_path)
    (scorer,) = run_scorers(tmp_path, "walks", small_config())
    trained = load_run(folder)
    reads = {"": scorer.score, **scorer.readouts}
    many = rows(300)  # more than the smallest block
    for ours, theirs in {"": "f_raw", "cosine": "f_cos", "norm": "phi_norm"}.items():
        read = trained.critic.readouts()[theirs]
        expected = np.asarray(read(trained.params, *(jnp.asarray(x) for x in many)))
        for n in (1, 5, 300):
            found = reads[ours](*(x[:n] for x in many))
            np.testing.assert_allclose(found, expected[:n], rtol=1e-5, atol=1e-6)


def test_shared_rows_are_embedded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve questions about four pairs and two of four goals; TD-Q is shown all twelve."""
    for critic in ("raw", "tdq"):
        write_run(toy_config(critic=critic), 42, tmp_path)
    found = {s.column: s for s in run_scorers(tmp_path, "walks", small_config())}
    raw, tdq = found["raw@42"], found["tdq@42"]
    states, actions, goals = rows(4)
    asked = np.array([(pair, goal) for pair in range(4) for goal in (2, 0, 2)])
    seen: list[tuple[str, int]] = []

    def watch(name: str, of: int) -> None:
        plain = getattr(TrainedCritic, name)

        def watched(self: TrainedCritic, *args: Rows) -> jax.Array | None:
            seen.append((name, int((args[of] != 0).any(axis=1).sum())))  # without those filled up
            result: jax.Array | None = plain(self, *args)
            return result

        monkeypatch.setattr(TrainedCritic, name, watched)

    pair, goal = asked.T
    every = (states[pair], actions[pair], goals[goal])
    expected = {scorer.column: scorer.score(*every) for scorer in (raw, tdq)}
    for name, of in (("score", 2), ("embed_goals", 0), ("score_pairs", 0)):
        watch(name, of)
    for scorer, calls in (
        (raw, [("embed_goals", 4), ("score_pairs", 3), ("score_pairs", 2)]),
        (tdq, [("embed_goals", 4), ("score", 7), ("score", 5)]),
    ):
        seen.clear()
        blocks = list(score_shared(scorer.score, states, actions, goals, asked, block=7))
        assert seen == calls
        assert [at for at, _ in blocks] == [slice(0, 7), slice(7, 12)]
        scores = np.concatenate([scores for _, scores in blocks])
        np.testing.assert_allclose(scores, expected[scorer.column], rtol=1e-5, atol=1e-6)


def test_the_sweep_has_one_column_per_setting_and_seed(tmp_path: Path) -> None:
    for setting, seed in (("binary_nce-0.05", 0), ("binary_nce-0.05", 1), ("x-learned", 0)):
        write_run(toy_config(critic="cosine"), seed, tmp_path / "temperature" / setting)
    columns = [scorer.column for scorer in sweep_scorers(tmp_path, "walks")]
    assert columns == ["binary_nce-0.05@0", "binary_nce-0.05@1", "x-learned@0"]
    assert sweep_scorers(tmp_path, "elsewhere") == []


def test_an_invalid_run_is_refused_with_its_reason(tmp_path: Path) -> None:
    folder = write_run(toy_config(), 42, tmp_path)
    record = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps(record | {"state": "running"}))
    with pytest.raises(InputError, match=r"not a valid run .*steps missing"):
        run_scorers(tmp_path, "walks", small_config())
    (folder / "record.json").write_text(json.dumps(record))
    (folder / "params.safetensors").write_bytes(b"")
    (scorer,) = run_scorers(tmp_path, "walks", small_config())
    with pytest.raises(InputError, match="not the file that training wrote"):
        scorer.score(*rows())


USER = """
import numpy as np

def score(states, actions, goals):
    return -np.linalg.norm(states + actions - goals, axis=1)

score.step_reward = -0.5

def make_score(scale=2.0):
    def inner(states, actions, goals):
        return [scale * float(x) for x in score(states, actions, goals)]
    return inner

def wide(states, actions, goals):
    return states

def bad(states, actions, goals):
    return np.where(np.arange(len(states)) == 3, np.nan, 1.0)

def huge(states, actions, goals):
    return np.full(len(states), 1e300)

def broken(states, actions, goals):
    raise KeyError("weights")

def nothing():
    return None

def fails():
    raise OSError("no checkpoint")

number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(USER)
    return path


def test_a_function_and_a_function_that_makes_one(file: Path) -> None:
    s, a, g = rows()
    plain, made = user_scorer(f"{file}:score"), user_scorer(f"theirs@3={file}:make_score")
    assert (plain.column, plain.step_reward) == ("mine", -0.5)
    assert (made.column, made.step_reward) == ("theirs@3", 0.0)
    expected = -np.linalg.norm(s + a - g, axis=1)
    np.testing.assert_allclose(plain.score(s, a, g), expected, rtol=1e-6)
    np.testing.assert_allclose(made.score(s, a, g), 2.0 * expected, rtol=1e-6)
    assert made.score(s, a, g).dtype == np.float32


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("wide", r"mine.py:wide returned scores of shape \(5, 2\) for 5 rows: expected \(5,\)"),
        ("bad", r"mine.py:bad returned nan for row 3 \(state"),
        ("huge", r"returned 1e\+300 for row 0"),
        ("broken", "mine.py:broken failed on 5 rows .KeyError: 'weights'"),
    ],
)
def test_wrong_answers_are_refused(file: Path, function: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        user_scorer(f"{file}:{function}").score(*rows())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{file}", "expected path/to/file.py:function"),
        ("{file}:not a name", "expected path/to/file.py:function"),
        ("{file}:absent", "has no function 'absent'"),
        ("{file}:number", "has no function 'number'"),
        ("{file}:nothing", "returned NoneType: expected a function of states"),
        ("{file}:fails", "failed .OSError: no checkpoint"),
        ("{file}x.py:score", "minex.py does not exist|mine.pyx.py does not exist"),
        ("a/b={file}:score", "'a/b' cannot name a critic"),
        ("oracle@7={file}:score", "'oracle@7' cannot name a critic"),
    ],
)
def test_wrong_names_are_refused(file: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        user_scorer(text.format(file=file), reserved=("oracle",))


def test_a_refused_scorer_is_an_argument_in_python_and_a_flag_on_the_command_line() -> None:
    with pytest.raises(InputError, match=r"^scorer='mine.txt': expected path") as refused:
        user_scorer("mine.txt")
    assert refused.value.for_command().startswith("--scorer mine.txt: expected path")


def test_a_file_that_does_not_run_is_refused(file: Path) -> None:
    file.write_text("import no_such_module_anywhere\n")
    with pytest.raises(InputError, match=r"cannot be loaded .ModuleNotFoundError"):
        user_scorer(f"{file}:score")
    reward = "def score(s, a, g):\n    return s[:, 0]\nscore.step_reward = 'free'\n"
    file.write_text(reward)
    with pytest.raises(InputError, match="step_reward is 'free'"):
        user_scorer(f"{file}:score")
