"""The stages of a small study: made once, found again, refused where they do not fit."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from paper.tests.selection.small import DIFFUSION, TASK, small_config, write_runs, write_values
from paper.tests.semantics.fake_runs import write_run
from tests.training.toy import toy_config, toy_dataset, walks
from toptail.errors import InputError
from toptail.io.arrays import write_arrays
from toptail.io.json_files import read_json, write_json
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.judges.reference import admission
from toptail.lab.proposals.diffusion import load_policy
from toptail.lab.scorers.base import Scorer
from toptail.lab.scorers.runs import of_run
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.training.runs import load_run, training_lock
from toptail_paper.selection import stages as study_module
from toptail_paper.selection.config import SelectionConfig
from toptail_paper.selection.pools import CandidatePools, file_proposal
from toptail_paper.selection.run import Stages
from toptail_paper.selection.stages import (
    Selection,
    critic_scorers,
    judge_by_maze,
    judge_reference,
    make_pools,
    make_queries,
    runs_in_training,
    score_critics,
    score_trivial,
)
from toptail_paper.selection.study import UserInputs
from toptail_paper.study.point_judges import POINT_JUDGES
from toptail_paper.study.store import Stored

DATA = toy_dataset()
Array = NDArray[Any]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, runs: Path) -> Selection:
    """A study with all stages; tests that change something work on a copy."""
    study = Selection.at(tmp_path_factory.mktemp("out"), small_config(), runs)
    queries, pools = start(study)
    judge_reference(study, queries, pools)
    score_critics(study, queries, pools, critic_scorers(study, ["raw", "two_head_joint"]))
    score_trivial(study, queries, pools)
    return study


@pytest.fixture
def copy(done: Selection, tmp_path: Path) -> Selection:
    shutil.copytree(done.folder.path, tmp_path / TASK)
    return Selection.at(tmp_path, done.config, done.runs)


def start(study: Selection) -> tuple[FrozenQueries, CandidatePools]:
    queries = make_queries(study, DATA.val)
    return queries, make_pools(study, queries, DATA.train)


def test_runs_in_training_wait_and_stopped_ones_are_refused(
    done: Selection, tmp_path: Path
) -> None:
    assert done.runs is not None
    runs = shutil.copytree(done.runs, tmp_path / "runs")
    folder = write_run(toy_config(critic="raw"), 42, runs)
    record = read_json(folder / "record.json")
    write_json(folder / "record.json", {**record, "state": "running"})
    study = replace(done, runs=runs)
    with pytest.raises(InputError, match=r"raw/seed-42 is not a valid run"):
        critic_scorers(study, ["raw", "two_head_joint"])
    with training_lock(folder.parent):
        waiting = critic_scorers(study, ["raw", "two_head_joint"])
        assert {scorer.column for scorer in waiting} == {
            "two_head_joint@42",
            "two_head_joint.f_cos@42",
        }
        (sentence,) = Stages(study, DATA).run(["scores"])
        assert sentence.startswith("Not scored yet, because they are in training: raw@42.")
        assert runs_in_training(study, ["raw", "two_head_joint"]) == [("raw", 42)]
    write_json(folder / "record.json", record)
    with training_lock(folder.parent):  # another seed is in training, this one is finished
        assert "raw@42" in {scorer.column for scorer in critic_scorers(study, ["raw"])}


def linear(states: Array, actions: Array, goals: Array) -> Array:
    return np.asarray(actions @ [1.0, -2.0] + (goals - states).sum(axis=1), dtype=np.float32)


MINE = Scorer("mine", linear, {"made": "by hand"})


def files(study: Selection) -> dict[str, bytes]:
    found = study.folder.path.rglob("*.*")
    return {str(p.relative_to(study.folder.path)): p.read_bytes() for p in found if p.is_file()}


def test_every_stage_leaves_its_file(done: Selection) -> None:
    assert sorted(files(done)) == [
        *("declared.json", "pools.npz", "queries.npz", "scale.json", "scores/likely.npz"),
        *("scores/two_head_joint.f_cos@42.npz", "scores/two_head_joint@42.npz"),
        "values/reference.npz",
    ]


def test_pools_are_the_models_and_keyed_by_their_number(done: Selection, runs: Path) -> None:
    queries, pools = start(done)
    assert pools.actions.shape[:3] == (9, 2, 4)
    policy = load_policy(runs / TASK / "diffusion" / "seed-42")
    for number in range(2):
        key = jax.random.fold_in(jax.random.key(0), number)
        expected = policy.sample(key, queries.states, queries.goals, 4)
        np.testing.assert_array_equal(pools.actions[:, number], expected)
    assert not np.array_equal(pools.actions[:, 0], pools.actions[:, 1])
    np.testing.assert_array_equal(pools.logged, queries.actions)
    np.testing.assert_array_equal(
        pools.on_support, pools.support_distance <= np.float32(pools.header["threshold"])
    )
    assert pools.header["proposal"]["sampler"] == "ancestral"
    both = pools.with_logged()
    np.testing.assert_array_equal(both[:, 1, :4], pools.actions[:, 1])
    np.testing.assert_array_equal(both[:, 1, 4], queries.actions)


def test_values_and_scores_are_the_networks_row_by_row(done: Selection, runs: Path) -> None:
    queries, pools = start(done)
    values = judge_reference(done, queries, pools).arrays["values"]
    scores = Stored.read(done.folder.scores("two_head_joint.f_cos@42")).arrays["scores"]
    assert values.shape == (2, 9, 2, 5)
    assert scores.shape == (9, 2, 5)
    judge = load_run(runs / TASK / "tdq" / "seed-102")
    critic = replace(load_run(runs / TASK / "two_head_joint" / "seed-42"), readout="f_cos")
    for q, p, i in ((0, 0, 0), (8, 1, 3), (4, 1, 4)):
        action = queries.actions[q] if i == 4 else pools.actions[q, p, i]
        row = (queries.states[q][None], action[None], queries.goals[q][None])
        np.testing.assert_allclose(values[1, q, p, i], judge.score(*row)[0], rtol=1e-5)
        np.testing.assert_allclose(scores[q, p, i], critic.score(*row)[0], rtol=1e-5)


def test_the_admission_leaves_the_logged_action_out(done: Selection) -> None:
    queries, pools = start(done)
    stored = judge_reference(done, queries, pools)
    expected = admission(
        stored.arrays["values"][..., :4],
        queries.group,
        queries.trajectory,
        prespecified_group="near",
        resolvability=0.5,
        spearman=0.7,
        rng=np.random.default_rng(0),
    )
    assert stored.header["admission"] == expected
    assert [member["seed"] for member in stored.header["members"]] == [101, 102]


def test_blocks_do_not_matter(copy: Selection, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, pools = start(copy)
    sizes = []

    def watched(states: Array, actions: Array, goals: Array) -> Array:
        sizes.append(len(states))
        return linear(states, actions, goals)

    whole = score_critics(copy, queries, pools, [MINE])["mine"]
    expected = linear(
        np.repeat(queries.states, 10, axis=0),
        pools.with_logged().reshape(-1, 2),
        np.repeat(queries.goals, 10, axis=0),
    )
    monkeypatch.setattr(study_module, "BLOCK", 32)
    other = score_critics(copy, queries, pools, [replace(MINE, column="again", score=watched)])
    for path in (whole, other["again"]):
        np.testing.assert_array_equal(Stored.read(path).arrays["scores"].ravel(), expected)
    assert sizes == [32, 32, 26]


def test_stored_stages_are_not_repeated_and_need_no_runs(copy: Selection) -> None:
    before = files(copy)

    def never(*_: Array) -> Array:
        raise AssertionError("scored again")

    for again in (copy, replace(copy, runs=None), replace(copy, runs=Path("nowhere"))):
        queries, pools = start(again)
        judge_reference(again, queries, pools)
    scorers = critic_scorers(copy, ["two_head_joint"])
    score_critics(copy, queries, pools, [replace(scorer, score=never) for scorer in scorers])
    assert files(copy) == before


def test_scoring_goes_on_where_it_stopped(copy: Selection) -> None:
    queries, pools = start(copy)
    calls: list[str] = []

    def counted(states: Array, actions: Array, goals: Array) -> Array:
        calls.append("first")
        return linear(states, actions, goals)

    def killed(*_: Array) -> Array:
        raise KeyboardInterrupt

    first = Scorer("first", counted, {"n": 1})
    with pytest.raises(KeyboardInterrupt):
        score_critics(copy, queries, pools, [first, Scorer("second", killed, {"n": 2})])
    assert copy.folder.scores("first").is_file()
    assert not copy.folder.scores("second").exists()
    score_critics(copy, queries, pools, [first, Scorer("second", linear, {"n": 2})])
    assert copy.folder.scores("second").is_file()
    assert calls == ["first"]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"pools": {"size": 5}}, r"pools\.size \(4 and 5\)"),
        ({"support": {"nearest": 6}}, r"support\.nearest \(5 and 6\)"),
        ({"reference": {"resolvability": 0.4}}, r"resolvability \(0\.5 and 0\.4\)"),
        ({"rollouts": {"horizon": 9}}, r"rollouts\.horizon \(200 and 9\)"),
    ],
)
def test_changed_criteria_stop_every_stage(
    copy: Selection, changes: dict[str, dict[str, Any]], what: str
) -> None:
    queries, pools = start(copy)
    parts = {name: replace(getattr(copy.config, name), **new) for name, new in changes.items()}
    config: SelectionConfig = replace(copy.config, **parts)
    changed = replace(copy, config=config)
    before = files(copy)
    for stage in (
        lambda: make_queries(changed, DATA.val),
        lambda: make_pools(changed, queries, DATA.train),
        lambda: judge_reference(changed, queries, pools),
        lambda: judge_by_maze(changed, queries, pools, POINT_JUDGES["exact"]),
        lambda: judge_by_maze(changed, queries, pools, POINT_JUDGES["euclidean"]),
        lambda: score_critics(changed, queries, pools, [MINE]),
    ):
        with pytest.raises(InputError, match=what):
            stage()
    assert files(copy) == before


def test_other_queries_and_other_data_are_refused(copy: Selection) -> None:
    queries, _ = start(copy)
    with pytest.raises(InputError, match=r"queries\.npz was made from something else .*: data \("):
        make_queries(copy, walks(4, 20, seed=9))
    with pytest.raises(InputError, match=r"pools\.npz was made from something else .* data \("):
        make_pools(copy, queries, walks(10, 20, seed=9))
    other = replace(copy.config, queries=replace(copy.config.queries, seed=1))
    with pytest.raises(
        InputError, match=r"queries\.npz was made from something else .*: seed \(0 and 1\)"
    ):
        make_queries(replace(copy, config=other), DATA.val)


def test_files_of_other_runs_are_refused(copy: Selection) -> None:
    queries, pools = start(copy)
    score_critics(copy, queries, pools, [MINE])
    before = files(copy)
    with pytest.raises(
        InputError, match=r"mine\.npz was made from something else .*origin\.made \(by hand and"
    ):
        score_critics(copy, queries, pools, [replace(MINE, origin={"made": "otherwise"})])
    path = copy.folder.values("reference")
    stored = Stored.read(path)
    members = [{**member, "params_sha256": "0"} for member in stored.header["members"]]
    Stored({**stored.header, "members": members}, stored.arrays).write(path)
    with pytest.raises(InputError, match=r"reference\.npz was made from something else .*members"):
        judge_reference(copy, queries, pools)
    path.write_bytes(before["values/reference.npz"][:-30])
    with pytest.raises(InputError, match=r"reference\.npz"):
        judge_reference(copy, queries, pools)
    proposal = file_proposal(
        _own_pools(copy.folder.path.parent, pools.actions.shape[:3]), copy.config.pools
    )
    with pytest.raises(InputError, match=r"pools\.npz was made from something else .*proposal"):
        make_pools(copy, queries, DATA.train, proposal)
    for name in ("pools.npz", "scores/mine.npz"):
        assert files(copy)[name] == before[name]


def test_runs_of_other_data_are_refused(copy: Selection, tmp_path: Path) -> None:
    """The same task's name, another collection: neither judge, nor critic, nor proposal."""
    queries, pools = start(copy)
    strangers = tmp_path / "strangers"
    write_run(toy_config(critic="nce_mlp"), 42, strangers, data="other")
    for seed in (101, 102):
        write_run(toy_config(critic="tdq"), seed, strangers, data="other")
    write_run(DIFFUSION, 42, strangers, data="other")
    stranger = replace(copy, runs=strangers)
    with pytest.raises(InputError, match=r"nce_mlp/seed-42 was trained on other data"):
        score_critics(stranger, queries, pools, critic_scorers(stranger, ["nce_mlp"]))
    copy.folder.values("reference").unlink()
    with pytest.raises(InputError, match=r"tdq/seed-101 was trained on other data"):
        judge_reference(stranger, queries, pools)
    copy.folder.pools.unlink()
    with pytest.raises(InputError, match=r"diffusion/seed-42 was trained on other data"):
        make_pools(stranger, queries, DATA.train)


def test_a_function_that_answers_otherwise_is_noticed(copy: Selection) -> None:
    """Of a user's file only the answers tell whether it still does the same."""
    queries, pools = start(copy)
    own = replace(MINE, column="own", opaque=True)
    score_critics(copy, queries, pools, [own])
    before = files(copy)
    score_critics(copy, queries, pools, [own])
    changed = replace(own, score=lambda s, a, g: -linear(s, a, g))
    with pytest.raises(
        InputError, match=r"own\.npz was made from something else .*origin\.scores_sha256"
    ):
        score_critics(copy, queries, pools, [changed])
    assert files(copy) == before


def test_critics_are_read_in_float32_however_they_were_trained(tmp_path: Path) -> None:
    half = write_run(toy_config(critic="tdq", bfloat16=True), 7, tmp_path)
    (scorer,) = of_run(half.parent, 7, TASK)
    assert scorer.column == "tdq@7"
    assert scorer.origin["bfloat16"]
    assert scorer.origin["read_in"] == "float32"
    rows = [np.random.default_rng(i).normal(size=(50, 2)).astype(np.float32) for i in range(3)]
    full = TrainedCritic(toy_config(critic="tdq").build(), load_run(half).params)
    np.testing.assert_allclose(scorer.score(*rows), full.score(*rows), rtol=1e-5)
    assert of_run(half.parent, 8, TASK) == []


def test_scores_of_other_pools_are_refused(copy: Selection) -> None:
    queries, pools = start(copy)
    score_critics(copy, queries, pools, [MINE])
    copy.folder.pools.unlink()
    own = file_proposal(
        _own_pools(copy.folder.path.parent, pools.actions.shape[:3]), copy.config.pools
    )
    other = make_pools(copy, queries, DATA.train, own)
    with pytest.raises(InputError, match=r"mine\.npz was made from something else .*pools \("):
        score_critics(copy, queries, other, [MINE])


def _own_pools(folder: Path, shape: tuple[int, ...]) -> Path:
    path = folder / "own.npz"
    rng = np.random.default_rng(5)
    write_arrays(path, {"actions": rng.uniform(-1, 1, (*shape, 2)).astype(np.float32)})
    return path


def test_a_users_candidates_take_the_place_of_a_behaviour_models(tmp_path: Path) -> None:
    study = Selection.at(tmp_path / "out", small_config())
    queries = make_queries(study, DATA.val)
    with pytest.raises(InputError, match="Drawing candidates needs trained runs"):
        make_pools(study, queries, DATA.train)
    path = _own_pools(tmp_path, (9, 2, 4))
    pools = make_pools(study, queries, DATA.train, file_proposal(path, study.config.pools))
    assert pools.header["proposal"]["kind"] == "user"
    assert make_pools(study, queries, DATA.train).sha256 == pools.sha256
    with pytest.raises(InputError, match="The reference ensemble needs trained runs"):
        judge_reference(study, queries, pools)


def test_bad_candidates_and_bad_scorers_are_refused(copy: Selection, tmp_path: Path) -> None:
    queries, pools = start(copy)
    copy.folder.pools.unlink()
    settings = copy.config.pools
    proposal = file_proposal(_own_pools(tmp_path, (9, 2, 3)), settings)
    with pytest.raises(InputError, match=r"shape \(9, 2, 3, 2\), expected \(9, 2, 4, 2\)"):
        make_pools(copy, queries, DATA.train, proposal)
    write_arrays(tmp_path / "no.npz", {"candidates": np.zeros(3)})
    with pytest.raises(InputError, match="no array 'actions'; it has candidates"):
        file_proposal(tmp_path / "no.npz", settings)
    assert not copy.folder.pools.exists()
    for given, why in (
        (np.zeros(3, np.float32), r"shape \(3,\) for 90 rows"),
        (np.full(90, np.inf, np.float32), "not finite"),
    ):
        bad = Scorer("bad", lambda *_, given=given: given, {})
        with pytest.raises(InputError, match=why):
            score_critics(copy, queries, pools, [bad])
    with pytest.raises(InputError, match="Two scorers are called 'mine'"):
        score_critics(copy, queries, pools, [MINE, MINE])
    with pytest.raises(InputError, match="no run of the critics cosine with the seeds 42"):
        critic_scorers(copy, ["cosine"])
    missing = replace(copy, runs=tmp_path / "none")
    copy.folder.values("reference").unlink()
    with pytest.raises(InputError, match="toptail train --critics tdq --seeds 101,102"):
        judge_reference(missing, queries, pools)


def test_what_a_file_is_made_from_needs_a_declaration_and_makes_none(
    done: Selection, tmp_path: Path
) -> None:
    queries, pools = start(done)
    undeclared = Selection.at(tmp_path, done.config, done.runs)
    for stage in (undeclared.made_from, lambda *made: judge_reference(undeclared, *made)):
        with pytest.raises(InputError, match="declare the criteria first"):
            stage(queries, pools)
    assert list(tmp_path.iterdir()) == []


def test_a_maze_with_teleports_does_without_the_judges_that_do_not_know_it(
    runs: Path, tmp_path: Path
) -> None:
    study = Selection.at(tmp_path, small_config(task="pointmaze-teleport-navigate-v0"), runs)
    own = _own_pools(tmp_path, (9, 2, 4))
    (tmp_path / "mine.py").write_text("def score(s, a, g):\n    return a[:, 0]\n")
    inputs = UserInputs(own, (f"{tmp_path / 'mine.py'}:score",))
    Stages(replace(study, runs=None), DATA, inputs).run(["pools"])
    write_values(study.folder.path, "expert", np.zeros((1, 9, 2, 5)))
    left_out = Stages(replace(study, runs=None), DATA, inputs).run()
    assert [sentence.split(":")[0] for sentence in left_out] == [
        *("No reference ensemble", "No exact judge", "No exact_continuous judge"),
        *("No euclidean judge", "No rollouts", "No deployment checks"),
    ]
    assert list(study.folder.columns()) == ["likely", "mine", "straight"]


def test_the_judges_that_know_the_ways_are_for_pointmaze(tmp_path: Path) -> None:
    exact, continuous, euclidean = POINT_JUDGES.values()
    study = Selection.at(tmp_path, small_config(task="pointmaze-medium-navigate-v0"))
    inside = np.float32(0.2)  # the walks shrunk into one cell of the maze
    val, train = (
        replace(split, observations=np.clip(inside * split.observations, -1, 1))
        for split in (DATA.val, DATA.train)
    )
    queries = make_queries(study, val)
    own = file_proposal(_own_pools(tmp_path, (9, 2, 4)), study.config.pools)
    pools = make_pools(study, queries, train, own)
    values = judge_by_maze(study, queries, pools, euclidean).arrays["values"]
    after = queries.states[:, None, None] + 0.2 * pools.with_logged()
    distance = np.linalg.norm(after - queries.goals[:, None, None], axis=-1)
    np.testing.assert_allclose(values[0], 0.99 ** (distance / 0.2), rtol=1e-5)
    found = judge_by_maze(study, queries, pools, exact).arrays["values"][0]
    away = np.abs(after - queries.goals[:, None, None]).max(axis=-1)
    assert (found >= 0.99 ** (1 + np.ceil(away / 0.2)) - 1e-6).all()  # nothing is in the way
    assert (found <= 0.99 ** (1 + np.maximum(np.ceil((away - 1) / 0.2 - 1e-6), 0)) + 1e-6).all()
    finer = judge_by_maze(study, queries, pools, continuous).arrays["values"][0]
    assert (finer >= found - 1e-6).all()
    assert (0.99 * finer <= found + 1e-6).all()
    before = files(study)
    for judge in (exact, continuous, euclidean):
        judge_by_maze(study, queries, pools, judge)
    assert files(study) == before
    other = Selection.at(tmp_path / "walks", small_config())
    queries = make_queries(other, DATA.val)
    pools = make_pools(other, queries, DATA.train, own)
    with pytest.raises(InputError, match="'walks' is no such PointMaze"):
        judge_by_maze(other, queries, pools, exact)


def test_a_call_that_finds_the_pools_notes_the_same(tmp_path: Path) -> None:
    """Killed between the pools and the note, the next call leaves the same bytes."""
    data, study = toy_dataset(), Selection.at(tmp_path / "out", small_config())
    queries = make_queries(study, data.val)
    settings = study.config.pools
    shape = (len(queries), settings.count, settings.size, data.train.actions.shape[1])
    actions = np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)
    write_arrays(tmp_path / "own.npz", {"actions": actions})
    proposal = file_proposal(tmp_path / "own.npz", settings)
    make_pools(study, queries, data.train, proposal)
    note = study.folder.path / "scale.json"
    noted = note.read_bytes()
    note.unlink()
    make_pools(study, queries, data.train, proposal)
    assert note.read_bytes() == noted
