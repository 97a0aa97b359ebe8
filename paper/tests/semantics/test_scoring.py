"""A whole small scoring: every number against the definition, and what is done only once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from paper.tests.selection.walked import WALKERS, walked, write_walker_run
from paper.tests.semantics.fake_runs import write_run
from paper.tests.semantics.small import WALKS, small_config, walks_file
from tests.training.toy import toy_config
from toptail.errors import InputError
from toptail.lab.proposals.diffusion import DiffusionRun, load_policy
from toptail.lab.scorers.base import Score
from toptail.lab.tasks.files import save_file
from toptail.lab.training.data import GoalSampling, device_data
from toptail_paper.semantics.config import VALUES
from toptail_paper.semantics.draws import _LOSS, LossGap, held_out_loss
from toptail_paper.semantics.load import TaskScores, read_task, read_tasks
from toptail_paper.semantics.scoring import _ScoredRows, evaluate, run_scorers, score_tasks
from toptail_paper.study.store import RunFolder, Stored

VAL = WALKS.data.val
USER = """
import numpy as np

def make_score():
    return lambda s, a, g: (s + 2 * a - 3 * g) @ np.array([1.0, 0.5], dtype=np.float32)
"""
MODEL = DiffusionRun(
    "walks",
    "diffusion",
    6,
    16,
    log_every=3,
    settings=(("hidden", (8,)), ("levels", 4), ("time_dim", 4)),
)


def by_hand(state: int, action: NDArray[Any], goal: int) -> float:
    """The user's critic of one row."""
    v = VAL.observations[state] + 2 * action - 3 * VAL.observations[goal]
    return float(v[0] + 0.5 * v[1])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, runs, a user's critic, and the scores of all of them in ``out``."""
    home = tmp_path_factory.mktemp("study")
    walks_file(home)
    (home / "mine.py").write_text(USER)
    write_run(toy_config(critic="raw"), 42, home / "runs")
    write_run(toy_config(critic="tdq"), 7, home / "runs")
    for seed in (42, 13):
        write_run(MODEL, seed, home / "runs")
    write_run(toy_config(critic="cosine"), 0, home / "runs/temperature/binary_nce-0.05")
    run(home)
    return home


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(home, tmp_path / "copy"))


def run(home: Path, runs: bool = True, user: bool = True, **changes: Any) -> RunFolder:
    folder = RunFolder(home / "out")
    config = small_config(str(home / "walks.npz"), **changes)
    critics = [f"{home / 'mine.py'}:make_score"] if user else []
    score_tasks(config, folder, home / "runs" if runs else None, critics)
    return folder


@pytest.fixture(scope="module")
def scores(home: Path) -> TaskScores:
    return read_task(home / "out", "walks")


def test_scores_of_recorded_actions(scores: TaskScores) -> None:
    t = scores.triples
    assert t.negative_rows is not None
    assert t.hard_negative_rows is not None
    assert t.second_goal_rows is not None
    for i, row in enumerate(t.rows):
        action, goal = VAL.actions[row], t.goal_rows[i]
        np.testing.assert_allclose(t.scores["mine"][i], by_hand(row, action, goal), 1e-5, 1e-5)
        negatives = [by_hand(row, action, g) for g in t.negative_rows[i]]
        np.testing.assert_allclose(t.negatives["mine"][i], negatives, 1e-5, 1e-5)
        hard = by_hand(row, action, t.hard_negative_rows[i])
        np.testing.assert_allclose(t.hard_negatives["mine"][i], hard, 1e-5, 1e-5)
        following = by_hand(row + 1, VAL.actions[row + 1], goal)
        np.testing.assert_allclose(t.next_scores["mine"][i], following, 1e-5, 1e-5)
        second = t.second_goal_rows[i]
        expected = by_hand(row, action, second) if second >= 0 else np.nan
        np.testing.assert_allclose(t.second_goals["mine"][i], expected, 1e-5, 1e-5)


def test_scores_of_support_pools(home: Path, scores: TaskScores) -> None:
    drawn = Stored.read(home / "out/scores/walks/draws.npz")
    assert set(scores.support) == {(n, e) for n in (2, 12) for e in ("row", "trajectory")}
    for (n_near, exclusion), pools in scores.support.items():
        rows = drawn.arrays[f"support/{exclusion}/{n_near}"]
        on = drawn.arrays[f"on_support/{exclusion}/{n_near}"]
        np.testing.assert_array_equal(pools.on_support, on)
        np.testing.assert_array_equal(pools.trajectory, scores.triples.trajectory[:8])
        for q, pool in enumerate(rows):
            state, goal = scores.triples.rows[q], scores.triples.goal_rows[q]
            expected = [by_hand(state, VAL.actions[row], goal) for row in pool]
            np.testing.assert_allclose(pools.scores["mine"][q], expected, rtol=1e-5, atol=1e-5)


def test_scores_of_behaviour_actions(home: Path, scores: TaskScores) -> None:
    proposals = Stored.read(home / "out/scores/walks/proposals.npz")
    centering = proposals.arrays["centering"]
    assert centering.shape == (40, 3, 2)
    inside = centering[np.abs(centering) < 1]  # actions are cut at the borders
    assert inside.size > 40
    assert len(np.unique(inside)) == inside.size
    t = scores.triples
    for i, (row, goal) in enumerate(zip(t.rows, t.goal_rows, strict=True)):
        pool = [by_hand(row, action, goal) for action in centering[i]]
        np.testing.assert_allclose(t.query_means["mine"][i], np.mean(pool), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(scores.query_std["mine"][i], np.std(pool), rtol=1e-4, atol=1e-4)
    assert set(scores.diffusion) == {13, 42}
    for seed, pools in scores.diffusion.items():
        actions = proposals.arrays[f"diffusion/{seed}"]
        rows = zip(t.rows, actions, t.goal_rows, strict=True)
        expected = [by_hand(*row) for row in rows]
        np.testing.assert_allclose(pools.scores["mine"], expected, rtol=1e-5, atol=1e-5)
        assert set(pools.scores) == {"mine", "raw@42"}
        assert pools.values.shape == (40,)
        assert set(scores.loss_gaps[seed]) == set(LossGap._fields)
    one, other = (proposals.arrays[f"diffusion/{seed}"] for seed in (42, 13))
    assert (one != other)[np.abs(one) < 1].all()


def test_the_held_out_loss_of_a_behaviour_model_is_that_of_the_validation_split(
    home: Path, scores: TaskScores
) -> None:
    policy = load_policy(home / "runs/walks/diffusion/seed-42")
    key = jax.random.fold_in(jax.random.key(0), _LOSS)
    means = {
        name: held_out_loss(policy, device_data(split), key, sampling=GoalSampling()).error.mean()
        for name, split in (("train", WALKS.data.train), ("held_out", WALKS.data.val))
    }
    gap = scores.loss_gaps[42]
    np.testing.assert_allclose([gap[name] for name in means], list(means.values()), rtol=1e-6)
    np.testing.assert_allclose(gap["gap"], means["held_out"] - means["train"], rtol=1e-6)
    assert gap["low"] < gap["gap"] < gap["high"]


def test_scores_by_factors_are_those_of_every_row_by_itself(home: Path) -> None:
    folder = home / "out/scores/walks"
    draws, proposals = (Stored.read(folder / f"{name}.npz") for name in ("draws", "proposals"))
    (raw,) = (s for s in run_scorers(home / "runs", "walks", small_config()) if "raw" in s.column)

    def plain(read: Score) -> Score:
        """A function of rows that shows no factors."""
        return lambda s, a, g: read(s, a, g)

    readouts = {name: plain(read) for name, read in raw.readouts.items()}
    expected = dict(
        _ScoredRows(VAL, draws, proposals).scored(
            replace(raw, score=plain(raw.score), readouts=readouts)
        )
    )
    found = Stored.read(folder / "raw@42.npz").arrays
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=name)


def test_the_oracle_is_a_judge_and_no_critic(scores: TaskScores) -> None:
    assert set(scores.triples.scores) == {"mine", "raw@42"}
    assert set(scores.triples.readouts) == {"raw:cosine@42", "raw:norm@42"}
    assert scores.triples.step_reward == {"mine": 0.0, "raw": 0.0}
    assert scores.origins["oracle@7"]["critic"] == "tdq"
    oracle, pools = scores.triples.values["oracle"], scores.diffusion[42]
    assert (oracle != pools.values).all()
    assert (scores.key, scores.navigation) == ("walks", True)


def test_the_sweep_is_scored_on_triples_of_its_own(home: Path, scores: TaskScores) -> None:
    (sweep,) = read_tasks(home / "out", "temperature")
    assert (sweep.task, list(sweep.triples.scores)) == ("walks", ["binary_nce-0.05@0"])
    assert sweep.triples.negatives["binary_nce-0.05@0"].shape == (40, 5)
    assert (sweep.triples.rows != scores.triples.rows).any()


def test_seen_trajectories_are_those_of_the_training_split(home: Path) -> None:
    (seen,) = read_tasks(home / "out", "seen")
    train, t = WALKS.data.train, seen.triples
    assert t.negative_rows is not None
    assert set(t.scores) == {"mine", "raw@42"}  # neither the oracle nor the sweep
    assert train.trajectory[t.rows].tolist() == t.trajectory.tolist()
    for n in (0, 17, 39):
        goals = {"scores": t.goal_rows[n], "negatives": t.negative_rows[n, 2]}
        for family, goal in goals.items():
            v = train.observations[t.rows[n]] + 2 * train.actions[t.rows[n]]
            v = v - 3 * train.observations[goal]
            found = getattr(t, family)["mine"][n]
            expected = v[0] + 0.5 * v[1]
            assert (found if family == "scores" else found[2]) == pytest.approx(expected, rel=1e-4)


def test_a_study_of_the_training_split_has_no_other_kind(home: Path, tmp_path: Path) -> None:
    config = small_config(str(home / "walks.npz"), split="train")
    score_tasks(config, RunFolder(tmp_path), None, [f"{home / 'mine.py'}:make_score"])
    assert read_tasks(tmp_path, "seen") == []


def test_too_few_seen_trajectories_are_left_out(tmp_path: Path) -> None:
    file, mine = walks_file(tmp_path), tmp_path / "mine.py"
    save_file(Path(file), WALKS.data.train.select(np.array([0])))
    mine.write_text(USER)
    score_tasks(small_config(file), RunFolder(tmp_path / "out"), None, [f"{mine}:make_score"])
    assert set(read_task(tmp_path / "out", "walks").triples.scores) == {"mine"}
    assert read_tasks(tmp_path / "out", "seen") == []


def test_too_few_triples_are_refused_before_anything_is_scored(home: Path, tmp_path: Path) -> None:
    config = small_config(str(home / "walks.npz"), triples=17)
    with pytest.raises(InputError, match=r"17 triples .* at least 18 with triples=") as refused:
        score_tasks(config, RunFolder(tmp_path), None, [f"{home / 'mine.py'}:make_score"])
    assert refused.value.for_command().endswith("at least 18 with --triples.")
    assert list(tmp_path.iterdir()) == []


def test_what_is_stored_is_not_scored_again(copy: Path) -> None:
    files = {path: path.read_bytes() for path in (copy / "out").rglob("*.npz")}
    folder = run(copy)
    assert (folder.asked, folder.made) == (6, 0)
    assert files == {path: path.read_bytes() for path in (copy / "out").rglob("*.npz")}
    (copy / "out/scores/walks/raw@42.npz").write_bytes(b"damaged")
    assert run(copy).made == 1
    assert files == {path: path.read_bytes() for path in (copy / "out").rglob("*.npz")}


def test_a_user_critic_that_answers_otherwise_is_scored_again(copy: Path) -> None:
    (copy / "weights.txt").write_text("1.0")
    reads_a_file = USER.replace("[1.0", f"[float(Path({str(copy / 'weights.txt')!r}).read_text())")
    (copy / "mine.py").write_text(f"from pathlib import Path\n{reads_a_file}")
    assert run(copy, runs=False).made == 2  # the file is another, on both splits
    assert run(copy, runs=False).made == 0
    (copy / "weights.txt").write_text("2.0")
    assert run(copy, runs=False).made == 2  # its weights are
    assert set(read_task(copy / "out", "walks").triples.scores) == {"mine", "raw@42"}


def test_new_behaviour_models_are_sampled_and_scored(copy: Path) -> None:
    shutil.rmtree(copy / "runs/walks/diffusion/seed-13")
    assert run(copy).made == 0  # its stored actions serve
    assert set(read_task(copy / "out", "walks").diffusion) == {13, 42}
    shutil.rmtree(copy / "runs/walks/diffusion/seed-42")
    write_run(replace(MODEL, steps=MODEL.steps + 1), 42, copy / "runs")
    assert run(copy).made == 3  # another model: all columns but the sweep's
    assert list(read_task(copy / "out", "walks").diffusion) == [42]
    shutil.rmtree(copy / "runs/walks/diffusion")
    assert run(copy).made == 0  # the stored actions serve
    write_run(MODEL, 13, copy / "runs")
    with pytest.raises(InputError, match=r"none of seed 42, which centers scores"):
        run(copy)


def test_other_settings_data_and_names_are_refused(copy: Path) -> None:
    with pytest.raises(
        InputError, match=r"draws.npz was made from something else .*: triples \(40 and 41\)"
    ):
        run(copy, triples=41)
    write_run(toy_config(critic="nce_mlp"), 42, copy / "runs", data="ab" * 32)
    with pytest.raises(InputError, match=r"walks/nce_mlp/seed-42 was trained on other data"):
        run(copy)
    config, mine = small_config(str(copy / "walks.npz")), f"{copy / 'mine.py'}:make_score"
    with pytest.raises(InputError, match="Two scorers are called 'mine'"):
        score_tasks(config, RunFolder(copy / "out"), None, [mine, mine])
    with pytest.raises(InputError, match="has no run of the seeds 1, 2"):
        score_tasks(replace(config, seeds=(1, 2), oracle_seed=9), RunFolder(copy), copy / "none")


def test_nothing_is_done_without_runs_and_critics(tmp_path: Path) -> None:
    score_tasks(small_config("no such data set"), RunFolder(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_progress_grows_to_one(copy: Path) -> None:
    said: list[tuple[str, float]] = []
    config = small_config(str(copy / "walks.npz"))
    score_tasks(config, RunFolder(copy / "out"), copy / "runs", (), lambda *s: said.append(s))
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert "walks: scoring raw@42" in [stage for stage, _ in said]


@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_do_not_matter(block: int) -> None:
    rng = np.random.default_rng(3)
    rows, goals = (rng.integers(0, len(VAL), shape) for shape in ((4, 1), (4, 5)))
    sizes: list[int] = []

    def score(s: Any, a: Any, g: Any) -> Any:
        sizes.append(len(s))
        return s[:, 0] + 10 * a[:, 1] - g[:, 0]

    found = evaluate(score, VAL, rows, VAL.actions[rows], goals, block)
    expected = VAL.observations[rows, 0] + 10 * VAL.actions[rows, 1] - VAL.observations[goals, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert max(sizes) <= block
    assert sum(sizes) == 20


HUMANOID = WALKERS[1]


@pytest.mark.slow
def test_a_humanoid_is_scored_on_both_splits_with_its_own_oracle_and_proposals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, runs, out = walked(HUMANOID), tmp_path / "runs", tmp_path / "out"
    save_file(tmp_path / f"{HUMANOID}.npz", data.train)
    save_file(tmp_path / f"{HUMANOID}-val.npz", data.val)
    monkeypatch.setenv("TOPTAIL_DATA", str(tmp_path))
    for critic, seed in (("raw", 42), ("tdq", 7), ("diffusion", 42), ("diffusion", 7)):
        write_walker_run(HUMANOID, critic, seed, runs)
    config = small_config(HUMANOID, diffusion_seeds=(42, 7))
    score_tasks(config, RunFolder(out), runs)
    home = out / "scores" / HUMANOID
    raw, oracle = (Stored.read(home / f"{column}.npz") for column in ("raw@42", "oracle@7"))
    assert raw.arrays["scores"].shape == oracle.arrays["scores"].shape == (40,)
    assert {"diffusion/42", "diffusion/7", "query_means"} <= set(raw.arrays)
    assert raw.arrays["support/trajectory/12"].shape == (8, 6)
    assert not (home / VALUES).exists()  # nobody knows its shortest way
    seen = out / "scores" / "seen" / HUMANOID
    assert sorted(path.name for path in seen.glob("*@*")) == ["raw@42.npz"]
