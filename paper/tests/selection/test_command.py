"""``toptail-paper study selection``: flags, stages, and a newcomer's study from end to end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toptail_paper.selection.run as run_module
from paper.tests.selection.small import write_values
from paper.tests.selection.stored_stages import TASK, paper_like
from tests.asked import asked
from tests.light import run_light
from tests.training.toy import toy_dataset, walks
from toptail.errors import InputError
from toptail.io.json_files import read_json, write_json
from toptail.lab.critics.registry import names as critic_names
from toptail.lab.tasks.files import save_file
from toptail.lab.tasks.queries import load_queries
from toptail.lab.training.config import RunConfig
from toptail_paper.claims.scale import shortfalls
from toptail_paper.commands.settings import TrainingSize
from toptail_paper.commands.show import Show
from toptail_paper.commands.study_selection import StudySelection
from toptail_paper.selection import write as audits
from toptail_paper.selection.config import STAGES, SelectionConfig
from toptail_paper.selection.deployment import DeploymentConfig
from toptail_paper.selection.files import SelectionFolder
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.run import Stages, train_selection

CRITIC = """
import numpy as np

def score(states, actions, goals):
    return -np.linalg.norm(states + actions - goals, axis=1)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set of one's own."""
    save_file(tmp_path / "walks.npz", walks(4, 200, seed=0))
    save_file(tmp_path / "walks-val.npz", walks(3, 200, seed=1))
    return tmp_path / "walks.npz"


def small(data: Path, **flags: Any) -> StudySelection:
    sizes = {"per_group": 2, "pool_count": 1, "pool_size": 4, "out": data.parent / "out"}
    return asked(StudySelection, task=data, **(sizes | flags))


def test_flags_become_the_settings() -> None:
    config = StudySelection(TASK).config(TASK)
    assert config == SelectionConfig.for_task(TASK)
    sizes = {"per_group": 3, "pool_count": 2, "pool_size": 12}
    study = asked(StudySelection, task=TASK, seeds="7,8", reference_seeds="1, 2", **sizes)
    changed = study.config(TASK)
    assert (changed.seeds, changed.reference.seeds) == ((7, 8), (1, 2))
    assert changed.queries.per_group == 3
    assert (changed.pools.count, changed.pools.size) == (2, 12)
    assert changed.ks == (1, 2, 4, 8, 12)
    humanoid = StudySelection("HumanoidMaze").config("humanoidmaze-giant-navigate-v0")
    assert humanoid.rollouts.per_group == 136


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ({"seeds": "1,x"}, "--seeds"),
        ({"seeds": ""}, "--seeds"),
        ({"seeds": "101"}, "both audited and judging"),
        ({"reference_seeds": "5"}, "at least two"),
    ],
)
def test_bad_settings_are_refused(flags: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        asked(StudySelection, task=TASK, **flags).config(TASK)


def test_stages_keep_their_order() -> None:
    made = [stage for stage in STAGES if stage != "deployment"]  # which is made on request
    assert StudySelection(TASK).stages() == [*made, "tables"]
    assert StudySelection(TASK, stage=("tables,scores", "pools")).stages() == [
        *("pools", "scores", "tables"),
    ]
    with pytest.raises(InputError, match="no stage 'score'"):
        StudySelection(TASK, stage=("score",)).stages()


def test_training_needs_a_folder() -> None:
    with pytest.raises(InputError, match="--train needs --runs"):
        StudySelection(TASK, train=True).run()


def test_declare_writes_the_criteria_and_stops(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert small(data, declare=True).run() == 0
    folder = data.parent / "out" / "walks"
    assert str(folder / "declared.json") in capsys.readouterr().out
    declared = read_json(folder / "declared.json")
    assert declared["pools"]["size"] == 4
    assert {path.name for path in folder.iterdir()} == {"declared.json", "queries.npz"}
    assert small(data, declare=True, pool_size=8).run() == 0  # as long as nothing is scored
    assert read_json(folder / "declared.json")["pools"]["size"] == 8
    with pytest.raises(InputError, match=r"declares other criteria.*declare anew with declare"):
        small(data, stage="queries").run()
    (folder / "scores").mkdir()
    (folder / "scores" / "mine.npz").write_bytes(b"")
    with pytest.raises(InputError, match=r"declares other criteria.*declare anew in another"):
        small(data, declare=True).run()


@pytest.mark.usefixtures("whole_audits")
def test_a_newcomer_audits_a_critic_on_candidates_of_his_own(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No trained run at all: own pools, own critic, stored values, from declaration to page."""
    home = data.parent
    critic, pools, folder = home / "near.py", home / "mine.npz", home / "out" / "walks"
    critic.write_text(CRITIC)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (6, 1, 4, 2)).astype(np.float32)
    np.savez(pools, actions=actions)
    assert small(data, pools=pools, stage="pools").run() == 0
    write_values(folder, "mine", rng.normal(size=(1, 6, 1, 5)))
    capsys.readouterr()
    assert small(data, pools=pools, scorer=(f"{critic}:score",)).run() == 0
    said = capsys.readouterr().out
    assert "No exact judge" in said
    assert "No reference ensemble" in said
    assert "near" in said
    assert str(folder / "report.html") in said
    row = read_json(folder / "tables" / "fixed-query.json")["rows"]["walks"]["near"]
    assert row["mine/tau_b_4"]["mean"] is not None
    assert read_json(folder / "record.json")["state"] == "finished"
    # From the stored stages alone, with neither critic nor candidates of his own.
    before = (folder / "tables" / "fixed-query.json").read_bytes()
    for path in (critic, pools):
        path.unlink()
    assert small(data, stage=("tables",)).run() == 0
    assert (folder / "tables" / "fixed-query.json").read_bytes() == before
    # Other criteria than the declared ones are refused.
    with pytest.raises(InputError, match="declares other criteria"):
        small(data, seeds="1,2", stage=("scores",)).run()


def test_nothing_to_score_with_is_said(data: Path) -> None:
    pools = data.parent / "mine.npz"
    np.savez(pools, actions=np.zeros((6, 1, 4, 2), np.float32))
    with pytest.raises(InputError, match="nothing to score with"):
        small(data, pools=pools, stage=("scores",)).run()


def test_pools_need_a_behaviour_model_or_a_file(data: Path) -> None:
    with pytest.raises(InputError, match="name their folder with runs="):
        small(data, stage=("pools",)).run()


@pytest.mark.slow
def test_tables_alone_are_made_from_stored_stages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = audits.audit_pools  # of few resamples, because nothing here reads an interval
    monkeypatch.setattr(audits, "audit_pools", lambda data, judge, _: audit(data, judge, 20))
    stages = paper_like(tmp_path, per_group=2)
    write_json(stages.path / "config.json", {"study": "selection", "config": {}})
    assert StudySelection(stages.path.name, out=tmp_path, stage=("tables",)).run() == 0
    assert "Report:" in capsys.readouterr().out
    assert Show("tab:function-class", stages.path).run() == 0
    printed = capsys.readouterr().out
    assert "tab:function-class" in printed
    assert "tab:fixed-query" not in printed


@pytest.mark.slow
def test_tables_are_made_without_the_packages_that_train(tmp_path: Path) -> None:
    stages = paper_like(tmp_path, per_group=2)
    code = """
from toptail_paper.claims import annotate
from toptail_paper.selection import write as audits
from toptail_paper.selection.study import STUDY
audits.write_report = lambda audit, out: out / "report.html"  # pages take longer than all the rest
print(STUDY.finish(sys.argv[1], annotate=annotate, resamples=20))
"""
    assert run_light(code, stages.path).strip() == str(stages.path / "report.html")
    assert (stages.path / "claims.json").is_file()


def test_every_stage_of_a_maze_is_called_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stage function is asked for once, with the study's own task and runs."""
    called: list[str] = []

    def note(name: str, result: Any = None) -> Any:
        def stage(*_: Any, **__: Any) -> Any:
            called.append(name)
            return result

        return stage

    from toptail_paper.selection import deployment
    from toptail_paper.selection.rollouts import RolloutStage
    from toptail_paper.selection.stages import Selection

    for name in ("make_queries", "make_pools", "judge_reference", "judge_by_maze"):
        monkeypatch.setattr(run_module, name, note(name))
    monkeypatch.setattr(run_module, "critic_scorers", note("critic_scorers", ["scorer"]))
    for name in ("score_critics", "score_trivial"):
        monkeypatch.setattr(run_module, name, note(name))
    monkeypatch.setattr(RolloutStage, "audit", note("rollouts"))
    monkeypatch.setattr(deployment.Deployment, "run", note("deployment"))
    monkeypatch.setattr(Stages, "_trained", lambda *_: ["tdq"])
    study = Selection.at(tmp_path, SelectionConfig.for_task(TASK), tmp_path / "runs")
    assert Stages(study, toy_dataset()).run() == []
    assert called == [
        *("make_queries", "make_pools", "judge_reference"),
        *("judge_by_maze", "judge_by_maze", "judge_by_maze"),
        *("critic_scorers", "score_critics", "score_trivial", "rollouts", "deployment"),
    ]
    with pytest.raises(InputError, match="no stage 'weather'"):
        Stages(study, toy_dataset()).run(["weather"])


def test_the_critics_to_be_deployed_may_be_named(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toptail_paper.selection import deployment

    called: list[tuple[Any, ...]] = []
    monkeypatch.setattr(deployment.Deployment, "run", lambda *given: called.append(given))
    monkeypatch.setattr(DeploymentConfig, "for_task", lambda _: DeploymentConfig())
    monkeypatch.setattr(Stages, "simulated", True)
    small(data, stage="deployment", runs=data.parent, deployed="raw,tdq").work("")
    ((checks, critics, seeds),) = called
    assert (checks.task, critics, seeds) == ("walks", ["raw", "tdq"], (42,))


def test_a_call_that_failed_does_not_bind_the_corrected_one(data: Path) -> None:
    home = data.parent
    np.savez(home / "mine.npz", actions=np.zeros((6, 1, 4, 2), np.float32))
    (home / "wrong.py").write_text("def score(s, a, g):\n    return a[:, 0] * float('nan')\n")
    own = {"pools": home / "mine.npz", "stage": "pools,scores"}
    with pytest.raises(InputError):
        small(data, **own, scorer=f"{home / 'wrong.py'}:score").work("")
    assert not (home / "out" / "walks" / "declared.json").exists()
    (home / "near.py").write_text(CRITIC)
    np.savez(home / "mine.npz", actions=np.zeros((6, 1, 8, 2), np.float32))
    small(data, **own, pool_size=8, scorer=f"{home / 'near.py'}:score").work("")
    folder = home / "out" / "walks"
    assert read_json(folder / "declared.json")["pools"]["size"] == 8
    with pytest.raises(InputError, match="declares other criteria"):  # now something is scored
        small(data, **own, scorer=f"{home / 'wrong.py'}:score").work("")
    assert (folder / "declared.json").is_file()


def test_another_judge_does_without_the_reference_ensemble(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs are named for the critics; none has the seeds of the ensemble."""
    home = data.parent
    np.savez(home / "mine.npz", actions=np.zeros((6, 1, 4, 2), np.float32))
    (home / "runs").mkdir()
    own = {"pools": home / "mine.npz", "runs": home / "runs"}
    with pytest.raises(InputError, match="The reference ensemble needs"):
        small(data, **own, stage="pools,reference").run()
    assert small(data, **own, stage="pools").run() == 0
    write_values(home / "out" / "walks", "mine", np.zeros((1, 6, 1, 5)))
    capsys.readouterr()
    assert small(data, **own, stage="reference").run() == 0
    assert "it needs trained runs of tdq with the seeds 101, 102 and 103" in capsys.readouterr().out


def test_deployment_is_made_on_request_alone_and_is_sized_by_flags(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toptail_paper.selection import deployment

    assert "deployment" not in StudySelection("PointMaze").stages()
    assert "deployment" in StudySelection("PointMaze", deployed=("raw",)).stages()
    called: list[Any] = []
    monkeypatch.setattr(deployment.Deployment, "run", lambda self, *_: called.append(self.config))
    monkeypatch.setattr(DeploymentConfig, "for_task", lambda _: DeploymentConfig())
    monkeypatch.setattr(Stages, "simulated", True)
    small(
        data,
        stage="deployment",
        runs=data.parent,
        deployed="raw",
        set="batch_size=8,hidden=16,depth=2",
        actor_steps=9,
        episodes=1,
        episode_steps=30,
    ).work("")
    (config,) = called
    assert (config.actor.steps, config.actor.batch_size, config.actor.hidden) == (9, 8, (16, 16))
    assert (config.episodes.per_goal, config.episodes.limit) == (1, 30)
    scale = read_json(data.parent / "out" / "walks" / "scale.json")
    assert scale["deployment"] == {"actor_steps": 9, "episodes_per_goal": 1}
    assert shortfalls("selection", {}, scale) == [
        "actors' steps, 9 of 100,000",
        "episodes per goal, 1 of 20",
    ]


def test_training_asks_for_judges_critics_and_a_behaviour_model(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toptail_paper.study import training as trained

    asked: list[tuple[str, int, tuple[int, ...]]] = []

    def train(config: RunConfig, _data: object, seeds: tuple[int, ...], *_: Any, **__: Any) -> Any:
        asked.append((config.critic, config.steps, tuple(seeds)))
        return []

    monkeypatch.setattr(trained, "train_runs", train)
    size = TrainingSize(steps=9)
    study = StudySelection(str(data), runs=tmp_path / "runs", train=True, size=size)
    how = study.config("walks"), study._training(), tmp_path / "runs"
    train_selection(str(data), *how)
    assert asked[0] == ("tdq", 9, (101, 102, 103))
    asked_for = critic_names("main", "two_head", "control")  # the paper's
    assert sorted(asked[1:-1]) == [(critic, 9, (42, 43, 44)) for critic in sorted(asked_for)]
    assert asked[-1] == ("diffusion", 100_000, (42,))
    asked.clear()
    train_selection(str(data), *how, critics=("raw",))
    assert [critic for critic, _, _ in asked] == ["tdq", "raw", "diffusion"]


def test_the_docs_code_runs_as_it_stands(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every Python block of the page, in a newcomer's order, on a small data set."""
    text = (Path(__file__).parents[2] / "docs" / "selection.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    scores, policy, table, _ = [block.replace(TASK, "walks") for block in blocks]
    monkeypatch.chdir(data.parent)
    (data.parent / "my_critic.py").write_text(CRITIC)

    def study(**flags: Any) -> StudySelection:
        return asked(StudySelection, task="walks.npz", per_group=2, **flags)

    assert study(declare=True).run() == 0
    exec(policy, {})
    assert study(pools=Path("my_pools.npz"), stage=("pools",)).run() == 0
    exec(scores, {})
    folder = data.parent / "runs" / "selection" / "walks"
    files = SelectionFolder(folder)
    queries, candidates = load_queries(files.queries), CandidatePools.read(files.pools)
    way = (queries.goals - queries.states)[:, None, None] - 0.2 * candidates.with_logged()
    write_values(folder, "exact", -np.linalg.norm(way, axis=-1)[None])
    assert study(scorer=("my_critic.py:score",)).run() == 0
    exec(table, {})
    assert (data.parent / "pools.parquet").is_file()
    rows = read_json(folder / "tables" / "fixed-query.json")["rows"]["walks"]
    assert set(rows) == {"my_critic", "towards", "likely", "random"}
    assert rows["my_critic"]["exact/tau_b_64"]["mean"] > 0.5  # both look for the nearest way
    assert "Report:" in capsys.readouterr().out
