"""A check from end to end: a task of one's own, with rewards and with goals, and PointMaze."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from examples.gym_data import episode
from paper.tests.semantics.fake_runs import write_run
from tests.asked import asked
from tests.check.conftest import checked, statuses
from tests.environments.plane import small
from tests.tasks.conftest import DATA
from tests.training.toy import toy_config
from toptail.commands.check import CheckCommand
from toptail.errors import Exit, InputError
from toptail.io.json_files import read_json
from toptail.lab.check.inputs import CheckConfig, check_scorers
from toptail.lab.check.page import check_html, check_lines
from toptail.lab.check.run import check
from toptail.lab.check.verdicts import QUESTIONS, failures
from toptail.lab.environments.gym import unlogged
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.tasks.queries import load_queries
from toptail.pools import JudgedPicks, ScoredPools
from toptail.results import AuditResult, PicksResult

POINT = "pointmaze-medium-navigate-v0"


def test_a_task_with_rewards_has_returns_and_no_goals(plane: Path) -> None:
    result = checked(plane, "inward", "outward", env="ActingPlane")
    content = result.content
    assert content["goals"] is False
    assert content["judge"]["name"] == "rollouts"
    assert "environment's own policy" in content["judge"]["says"]
    assert list(content["candidates"]) == ["nearest", "uniform"]
    assert content["not_done"] == []
    assert statuses(result, "one_step") == {"inward": ["safe"] * 2, "outward": ["unsafe"] * 2}
    assert statuses(result, "closed_loop") == {"inward": ["safe"] * 2, "outward": ["unsafe"] * 2}
    assert {name: each["status"] for name, each in content["scorers"].items()} == {
        "inward": "safe",
        "outward": "unsafe",
    }
    part = content["scorers"]["inward"]["parts"][0]
    assert part["one_step"]["groups"] == part["closed_loop"]["groups"] == {}
    assert result.queries.goals.shape == (180, 0)
    worth = part["closed_loop"]["worth"]
    assert worth["K = 1"]["mean"] < worth["K = 8"]["mean"] < 0


def test_a_task_with_goals_has_success_and_distance_groups(plane: Path) -> None:
    result = checked(plane, "towards", "away", env="GoalPlane", pools=("uniform",))
    assert result.content["goals"] is True
    assert "discounted success" in result.content["judge"]["says"]
    assert "near states go on" in result.content["judge"]["says"]
    parts = result.content["scorers"]["towards"]["parts"][0]
    assert list(parts["one_step"]["groups"]) == ["near", "medium", "far"]
    assert list(parts["closed_loop"]["groups"]) == ["near", "medium", "far"]
    assert statuses(result, "closed_loop") == {"towards": ["safe"], "away": ["unsafe"]}
    assert statuses(result, "one_step")["away"] == ["unsafe"]
    mean = parts["closed_loop"]["worth"]["K = 8"]["mean"]
    assert parts["closed_loop"]["worth"]["K = 1"]["mean"] < mean <= 1


def test_a_batch_of_ones_own_walks_as_single_environments_do(plane: Path) -> None:
    how: dict[str, Any] = {"pools": ("uniform",), "sizes": {"per_group": 5, "starts": 5}}
    one, many = (checked(plane, "inward", env=name, **how) for name in ("Plane", "batch"))
    for a, b in zip(one.sources, many.sources, strict=True):
        assert a.table is not None
        assert b.table is not None
        np.testing.assert_allclose(a.table.values["value"], b.table.values["value"], atol=1e-6)
        followed = (each.followed["inward"].selectors for each in (a, b))
        for x, y in zip(*(each.values() for each in followed), strict=True):
            assert x.value == pytest.approx(y.value, abs=1e-5)


def test_the_same_call_gives_the_same_numbers_and_another_seed_others(plane: Path) -> None:
    how: dict[str, Any] = {"env": "Plane", "pools": ("nearest",)}
    sizes = {"per_group": 4, "starts": 4}
    first, again = (checked(plane, "inward", sizes=sizes, **how).content for _ in range(2))
    assert first == again
    other = checked(plane, "inward", sizes=sizes | {"seed": 1}, **how).content
    assert other["scorers"] != first["scorers"]


def test_without_environment_and_judge_it_says_what_is_needed(plane: Path) -> None:
    content = checked(plane, "towards").content
    assert [each["what"] for each in content["not_done"]] == ["one step", "closed loop"]
    assert all("--env FILE.py:make" in each["needed"] for each in content["not_done"])
    entry = content["scorers"]["towards"]
    assert entry["status"] == "inconclusive"
    assert entry["parts"][0]["one_step"] is entry["parts"][0]["closed_loop"] is None
    assert "one step, nearest candidates: not judged; followed" in entry["headline"]
    assert "followed at every step, nearest candidates: not done" in entry["headline"]


def test_candidates_and_values_of_ones_own(plane: Path, tmp_path: Path) -> None:
    sizes = {"per_group": 15}
    drawn = checked(plane, "towards", pools=("uniform",), judge="none", sizes=sizes)
    drawn.write(tmp_path / "out")
    queries = load_queries(tmp_path / "out" / "queries.npz")
    with np.load(tmp_path / "out" / "uniform" / "pools.npz") as file:
        actions, scores = file["actions"], file["scores/towards"]
    assert actions.shape == (45, 8, 2)
    np.savez(tmp_path / "mine.npz", actions=actions)
    reached = queries.states[:, None] + 0.1 * actions
    values = -np.linalg.norm(reached - queries.goals[:, None], axis=-1)
    np.testing.assert_allclose(scores, values, atol=1e-6)
    np.savez(tmp_path / "crow.npz", values=values)
    pools, judge = (str(tmp_path / name) for name in ("mine.npz", "crow.npz"))
    own = checked(
        plane, "towards", "away", pools=(pools,), judge=judge, env="GoalPlane", sizes=sizes
    )
    assert own.content["judge"] == {"name": "file", "says": "what crow.npz says"}
    found = own.content["scorers"]["towards"]["parts"][0]
    assert (found["pools"], found["one_step"]["captured"]) == ("file", 1.0)
    assert found["closed_loop"] is None
    assert own.content["not_done"][0]["what"] == "closed loop (file)"
    assert statuses(own, "one_step")["away"] == ["unsafe"]


def bad(plane: Path, word: str, **how: Any) -> None:
    with pytest.raises(InputError, match=word):
        checked(plane, *how.pop("scorers", ("inward",)), **how)


def test_what_cannot_be_used_is_refused_in_a_sentence(plane: Path, tmp_path: Path) -> None:
    bad(plane, "not restored", env="Lost")
    bad(plane, "out of order", env="Broken")
    bad(plane, "without a method 'step'", env="Deaf")
    bad(plane, "has no function 'nothing'", env="nothing")
    bad(plane, "known of PointMaze", judge="exact")
    bad(plane, "needs an environment", judge="rollouts")
    bad(plane, "needs runs", judge="reference")
    bad(plane, "expected exact, rollouts", judge="fair")
    bad(plane, "expected nearest, uniform", pools=("guess",))
    bad(plane, "needs a trained behaviour model", pools=("behaviour",))
    bad(plane, "name each kind once", pools=("nearest", "nearest"))
    bad(plane, "nothing to check", scorers=())
    np.savez(tmp_path / "few.npz", actions=np.zeros((1, 2, 2)), values=np.zeros((1, 2)))
    bad(plane, "expected numbers of shape", pools=(str(tmp_path / "few.npz"),))
    bad(plane, "expected numbers of shape", judge=str(tmp_path / "few.npz"), pools=("uniform",))
    bad(plane, "values of one kind of candidates", judge=str(tmp_path / "few.npz"))
    bad(plane, "one file at most", pools=("a.npz", "b.npz"))
    with pytest.raises(InputError, match="expected gymnasium:ID"):
        check(plane, ["x"], env="somewhere")


@pytest.mark.parametrize(
    "sizes",
    [
        *({"near": 0}, {"per_group": 0}, {"pool_size": 1}, {"repeats": 0}, {"gamma": 0.0}),
        *({"follow_k": (1,)}, {"follow_k": (2, 4)}, {"follow_k": (1, 8, 4)}, {"resamples": 10}),
    ],
)
def test_sizes_that_mean_nothing_are_refused(sizes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        CheckConfig(**sizes)


def test_pointmaze_is_judged_by_its_exact_value(tmp_path: Path) -> None:
    critic = tmp_path / "mine.py"
    critic.write_text("def score(s, a, g):\n    return (a * (g - s)).sum(axis=1)\n")
    scorers = (f"mine@0={critic}:score", f"mine@1={critic}:score")
    sizes = small(per_group=4, starts=2, horizon=5, near=30)
    result = check(DATA / f"{POINT}.npz", scorers, config=CheckConfig(**sizes))
    content = result.content
    assert content["judge"]["name"] == "exact"
    assert content["environment"] == "pointmaze-medium-v0"
    assert list(content["scorers"]) == ["mine"]  # two seeds of one critic
    assert content["settings"]["pool_size"] == 8
    table = result.sources[0].table
    assert table is not None
    values = table.values["value"]
    assert ((values > 0) & (values <= 0.991)).all()
    part = content["scorers"]["mine"]["parts"][0]
    assert "trajectories are too few" in part["closed_loop"]["reason"]


def test_trained_runs_are_named_by_folder_or_pattern(plane: Path, tmp_path: Path) -> None:
    task = TaskDataset.load(str(plane))
    sha = task.data.train.sha256
    for critic, seed in (("raw", 42), ("raw", 43), ("tdq", 42)):
        write_run(toy_config(task="plane", critic=critic), seed, tmp_path / "runs", sha, (2, 2))
    runs = tmp_path / "runs" / "plane"

    def columns(text: str) -> list[str]:
        return [scorer.column for scorer in check_scorers([text], task)]

    assert columns(str(runs / "tdq" / "seed-42")) == ["tdq@42"]
    assert columns(str(runs / "*" / "seed-*")) == ["raw@42", "raw@43", "tdq@42"]
    assert columns(f"mine={runs / 'raw' / 'seed-*'}") == ["mine@42", "mine@43"]
    write_run(
        toy_config(task="plane", critic="two_head_separate"), 42, tmp_path / "runs", sha, (2, 2)
    )
    own = columns(str(runs / "two_head_separate" / "seed-42"))
    named = columns(f"both={runs / 'two_head_separate' / 'seed-42'}")
    assert named == [column.replace("two_head_separate", "both") for column in own]
    assert len(set(named)) == 2
    lower = f"{runs / 'tdq' / 'seed-42'}:q_min"
    assert columns(lower) == ["tdq.q_min@42"]
    assert columns(f"{runs / 'tdq' / 'seed-42'}:q") == ["tdq@42"]
    assert columns(f"mine={lower}") == ["mine.q_min@42"]
    assert columns(f"{runs / 'raw' / 'seed-*'}:f_raw_lcb") == [
        "raw.f_raw_lcb@42",
        "raw.f_raw_lcb@43",
    ]
    with pytest.raises(InputError, match="tdq has no readout 'q_max'; its readouts are q, q_min"):
        columns(f"{runs / 'tdq' / 'seed-42'}:q_max")
    for text in (f"mine@3={runs / 'raw' / 'seed-42'}", f"={runs / 'raw' / 'seed-42'}"):
        with pytest.raises(InputError, match="a run has its own seed"):
            columns(text)
    with pytest.raises(InputError, match="no folder of a trained run fits"):
        columns(str(runs / "nobody*" / "seed-*"))
    config, run = CheckConfig(**small(per_group=2)), runs / "raw" / "seed-42"
    for given, name in ((str(run), "raw"), ({"mine": run}, "mine")):
        result = check(plane, given, pools="uniform", config=config)
        assert list(result.verdicts) == [name]
    write_run(toy_config(task="plane", critic="cosine"), 42, tmp_path / "runs", "0" * 64, (2, 2))
    with pytest.raises(InputError, match="other data"):
        columns(str(runs / "cosine" / "seed-42"))


def command(plane: Path, out: Path, **flags: Any) -> CheckCommand:
    mine = plane.parent / "mine.py"
    sizes = small(follow_k="1,8") | {"pools": "nearest", "env": f"{mine}:ActingPlane"}
    scorer = f"inward={mine}:inward"
    return asked(CheckCommand, task=plane, out=out, **(sizes | {"scorer": scorer} | flags))


@pytest.mark.slow
def test_the_command_writes_verdicts_page_and_what_they_were_made_of(
    plane: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert command(plane, out, pools=("nearest", "uniform"), fail_on="unsafe").run() == Exit.FINE
    said = capsys.readouterr().out
    lines = [line for line in said.splitlines() if line.startswith("safe ")]
    assert len(lines) == 5
    for kind in ("nearest", "uniform"):
        asked_about = f"one step, best of up to 8 {kind} candidates: "
        assert f"{asked_about}safe; followed" in lines[0]
        assert any(line.startswith(f"safe          inward, {asked_about}") for line in lines)
    assert "a larger search, or an actor that is trained on the critic, was not looked at" in said
    assert "safe to maximize" not in said
    assert f"Report: {out / 'report.html'}" in said
    content = read_json(out / "check.json")
    assert content["format"] == "toptail-check-1"
    page = (out / "report.html").read_text()
    assert page.index("best of up to 8 nearest candidates: safe;") < page.index("Verdicts")
    assert "safe to maximize" not in page
    for path in ("nearest/one_step/report.html", "uniform/closed_loop/inward/report.html"):
        assert f'href="{path}"' in page
        assert (out / path).is_file()
    audit = AuditResult.read(out / "nearest" / "one_step")
    assert audit.verdicts["inward"].status == "safe"
    followed = out / "nearest" / "closed_loop" / "inward"
    assert PicksResult.read(followed).baseline == "K = 1"
    episodes = JudgedPicks.read(followed / "picks.parquet")
    worth: dict[str, list[float]] = {name: [] for name in episodes.selector.to_pylist()}
    for at, value in zip(episodes.selector_at, episodes.value, strict=True):
        worth[episodes.selector[int(at)].as_py()].append(float(value))
    (loop,) = (
        part["closed_loop"]["worth"]
        for part in content["scorers"]["inward"]["parts"]
        if part["pools"] == "nearest"
    )
    assert {name: sum(own) / len(own) for name, own in worth.items()} == pytest.approx(
        {name: loop[name]["mean"] for name in worth}
    )
    table = ScoredPools.read(out / "nearest" / "table.parquet")
    assert (table.queries, table.rows) == (180, 180 * 8)

    (out / "notes.txt").write_text("mine")
    worse = {"scorer": f"{plane.parent / 'mine.py'}:outward", "pools": "nearest"}
    assert command(plane, out, **worse, fail_on="unsafe").run() == Exit.FAILED
    said = capsys.readouterr().out
    for words in ("one step", "followed at every step"):
        assert f"--fail-on: mine, {words}, best of up to 8 nearest candidates: unsafe" in said
    assert not (out / "uniform" / "pools.npz").exists()  # of the check before
    assert (out / "notes.txt").read_text() == "mine"


def test_an_inconclusive_group_fails_where_that_was_asked_for(plane: Path) -> None:
    result = checked(plane, "towards", env="GoalPlane", pools=("nearest",))
    groups = [
        (words, group)
        for kind, words in QUESTIONS.items()
        for group, part in result.content["scorers"]["towards"]["parts"][0][kind]["groups"].items()
        if part["status"] == "inconclusive"
    ]
    failed = failures(result.content, {"inconclusive"})
    assert groups
    assert {
        f"towards, {w}, best of up to 8 nearest candidates, {g}: inconclusive" for w, g in groups
    } <= {*failed}
    with pytest.raises(InputError, match="'bad' is not a status"):
        command(plane, plane.parent / "out", fail_on="bad").run()
    with pytest.raises(InputError, match="'' is not a status"):
        command(plane, plane.parent / "out", fail_on=",").run()


def test_safe_for_one_step_is_qualified_in_the_first_lines(plane: Path, tmp_path: Path) -> None:
    # Right about the queries, which it is asked about first, and wrong about all that follows.
    fickle = """
asked = []
def fickle(states, actions):
    asked.append(len(states))
    return inward(states, actions) if len(asked) == 1 else outward(states, actions)
"""
    mine = tmp_path / "mine.py"
    mine.write_text((plane.parent / "mine.py").read_text() + fickle)
    env, config = f"{mine}:ActingPlane", CheckConfig(**small())
    content = check(plane, f"{mine}:fickle", pools="nearest", env=env, config=config).content
    lines = check_lines(content)
    asked_about = "best of up to 8 nearest candidates"
    assert lines[0].startswith(f"unsafe        mine: one step, {asked_about}: safe; followed at")
    assert "“safe” is about one step: followed at every step, best of up to 8" in lines[1]
    page = check_html(content)
    assert page.index("is about one step") < page.index("<h2")


@pytest.mark.parametrize("name", ["Pendulum-v1", "HalfCheetah-v5"])
def test_gymnasiums_tasks_are_checked_without_goals(name: str, tmp_path: Path) -> None:
    with unlogged():
        env = gymnasium.make(name)
    for at, split in enumerate(("task", "task-val")):
        rows: list[dict[str, Any]] = [episode(env, 20, 0.3, 2 * at + i) for i in range(2)]
        whole: Any = {key: np.concatenate([each[key] for each in rows]) for key in rows[0]}
        np.savez(tmp_path / f"{split}.npz", **whole)
    (tmp_path / "q.py").write_text(
        "def q(states, actions):\n    return -(actions**2).sum(axis=1)\n"
    )
    config = CheckConfig(**small(per_group=2, starts=1, horizon=4, pool_size=3))
    scorer, data = f"{tmp_path / 'q.py'}:q", tmp_path / "task.npz"
    result = check(data, scorer, env=f"gymnasium:{name}", config=config)
    assert (result.content["goals"], result.content["judge"]["name"]) == (False, "rollouts")
    assert result.content["not_done"] == []
    for made in result.sources:
        assert made.table is not None
        assert np.ptp(made.table.values["value"]) > 0  # the first action makes a difference
        assert list(made.followed["q"].selectors) == ["K = 8", "K = 1"]


def test_a_maze_without_an_exact_value_is_judged_by_rollouts(tmp_path: Path) -> None:
    (tmp_path / "q.py").write_text("def q(s, a, g):\n    return -(a**2).sum(axis=1)\n")
    config = CheckConfig(**small(per_group=1, starts=1, horizon=3, pool_size=2))
    data, q = DATA / "antmaze-medium-navigate-v0.npz", f"{tmp_path / 'q.py'}:q"
    result = check(data, q, pools="nearest", config=config)
    assert result.content["judge"]["name"] == "rollouts"
    assert result.content["environment"] == "antmaze-medium-v0"
    assert list(result.sources[0].followed) == ["q"]
    teleport = tmp_path / "pointmaze-teleport-navigate-v0.npz"
    for split in ("", "-val"):
        shutil.copy(DATA / f"{POINT}{split}.npz", tmp_path / f"{teleport.stem}{split}.npz")
    left = check(teleport, q, config=config).content
    assert left["judge"]["name"] == "none"
    assert "cannot be stepped from a stored row" in left["not_done"][1]["why"]
