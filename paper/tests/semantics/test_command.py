"""``toptail-paper study semantics``: flags, folders, and a whole small run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.asked import asked
from tests.light import run_light
from toptail.errors import InputError
from toptail_paper.commands.study_semantics import StudySemantics
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.figures import drawings
from toptail_paper.semantics.results import read_semantics
from toptail_paper.semantics.study import STUDY

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "tests" / "tasks" / "data"
CRITIC = f"{ROOT.parent / 'examples' / 'numpy_critic.py'}:score"
SMALL: dict[str, Any] = {
    "triples": 300,
    "negatives": 8,
    "support_queries": 10,
    "n_near": "4,8",
    "resamples": 20,
    "workers": 1,
}
POINT, CUBE = (str(DATA / f"{n}-v0.npz") for n in ("pointmaze-medium-navigate", "cube-single-play"))


def stored(path: Path, name: str) -> Any:
    return json.loads((path / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of a NumPy critic alone, on one maze."""
    path = tmp_path_factory.mktemp("command") / "out"
    asked(StudySemantics, task=POINT, out=path, scorer=CRITIC, **SMALL).work("toptail made up")
    return path


class TestStoredSettings:
    def test_settings_of_a_stored_study_are_not_silently_ignored(self, out: Path) -> None:
        with pytest.raises(InputError, match=r"resamples \(20 and 30\).*leave the flag out"):
            asked(StudySemantics, out=out, resamples=30).work("toptail made up")
        assert stored(out, "config.json")["config"]["resamples"] == 20

    def test_its_own_settings_are_welcome(self, out: Path) -> None:
        study = asked(StudySemantics, out=out, resamples=20, workers=1)
        assert study.work("toptail made up").is_file()


def test_a_call_that_failed_does_not_bind_the_corrected_one(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("def score(s, a, g):\n    raise ValueError('no')\n")
    small = SMALL | {"task": POINT, "out": tmp_path / "out"}
    with pytest.raises(InputError, match="no"):
        asked(StudySemantics, **small, scorer=f"{tmp_path / 'wrong.py'}:score").work("")
    assert (tmp_path / "out" / "scores" / Path(POINT).stem / "draws.npz").is_file()
    more = small | {"triples": 320}
    del more["negatives"]  # which the failed call gave and this one does not
    (tmp_path / "free.py").write_text("def score(s, a, g):\n    return a[:, 0]\n")
    scorers = (CRITIC, f"no_goals={tmp_path / 'free.py'}:score")
    study = asked(StudySemantics, **more, scorer=scorers)
    assert study.config().negatives == SemanticsConfig.negatives
    report = study.work("")
    # A score that does not look at the goal is at 0.5 by construction, and that is said.
    retrieval = stored(tmp_path / "out", "tables/retrieval.json")
    assert retrieval["goal_free"] == {"PointMaze": ["no_goals"]}
    assert retrieval["rows"]["PointMaze"]["no_goals"]["auc"]["mean"] == 0.5
    page = report.read_text(encoding="utf-8")
    assert "retrieval says nothing about it: no_goals on PointMaze." in page
    (line,) = (line for line in page.splitlines() if "Retrieval AUC on PointMaze: " in line)
    assert "no_goals" not in line
    assert stored(tmp_path / "out", "config.json")["config"]["triples"] == 320
    with pytest.raises(InputError, match=r"draws.npz was made from something else"):
        asked(StudySemantics, **(more | {"triples": 310}), scorer=CRITIC).work("")


def test_the_page_says_how_much_data_there_was(out: Path) -> None:
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "pointmaze-medium-navigate-v0: " in page
    assert "Numbers without a ledger: " in page
    assert "triples, 300 of 3,000" in page


class TestFlags:
    def test_tasks_and_scorers_may_be_repeated_and_tasks_separated_by_commas(self) -> None:
        tasks, scorers = ("PointMaze, Scene", "AntMaze", "Scene"), ("a.py:f", "b=b.py:g")
        study = asked(StudySemantics, task=tasks, scorer=scorers, seeds="1,2")
        assert study.scorer == scorers
        config = study.config()
        assert config.tasks == ("PointMaze", "Scene", "AntMaze")
        assert config.seeds == (1, 2)
        assert config.n_near == SemanticsConfig.n_near

    def test_few_triples_need_no_second_flag(self) -> None:
        config = asked(StudySemantics, task="PointMaze", triples=200).config()
        assert (config.triples, config.support_queries) == (200, 200)
        given = asked(StudySemantics, task="PointMaze", triples=900, support_queries=7)
        assert given.config().support_queries == 7

    def test_what_is_given_reaches_the_training(self) -> None:
        study = asked(
            StudySemantics,
            steps=7,
            diffusion_steps=0,
            set="batch_size=16,hidden=8,embed_dim=4",
            critics="raw,tdq",
            temperature=True,
            train=True,
            runs=Path("runs"),
        )
        training = study.training()
        raw = training.critic("pointmaze-medium-navigate-v0", "raw").content
        assert (raw["steps"], raw["batch_size"]) == (7, 16)
        encoders = raw["critic_fields"]["encoders"]
        assert (encoders["hidden"], encoders["embed_dim"]) == ([8, 8, 8], 4)
        model = replace(training, diffusion_steps=1).behaviour_model("walks")
        assert model.content["critic_fields"]["hidden"] == [8, 8, 8]
        assert (training.steps, training.play_steps, training.diffusion_steps) == (7, 7, 0)
        assert training.critics == training.play_critics == ("raw", "tdq")
        assert training.sweep
        assert StudySemantics().training().play_steps == 50_000
        with pytest.raises(InputError, match="--set gamma: a study has the sizes batch_size"):
            asked(StudySemantics, set="gamma=0.5").training()

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            ({"train": True}, "--train needs --runs"),
            ({"temperature": True, "runs": Path("runs")}, "--temperature .* needs --train"),
            ({"scorer": (CRITIC,)}, "--task is missing.*--task PointMaze"),
            ({"scorer": CRITIC, "task": "PointMaze", "seeds": "1;2"}, "--seeds takes whole"),
            ({}, "config.json is missing|holds no"),
        ],
    )
    def test_mistakes_are_named(self, tmp_path: Path, flags: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            asked(StudySemantics, out=tmp_path / "out", **flags).work("")
        assert not (tmp_path / "out").exists()

    def test_an_unknown_critic_is_named(self) -> None:
        with pytest.raises(InputError, match="no critic 'raww'; the critics are tdq, raw"):
            asked(StudySemantics, critics="raww", train=True, runs=Path("runs")).training()
        with pytest.raises(InputError, match="--critics says what --train trains"):
            asked(StudySemantics, critics="raw").training()


class TestRun:
    def test_a_critic_of_ones_own_needs_no_runs(self, out: Path) -> None:
        assert {p.name for p in (out / "scores" / "pointmaze-medium-navigate-v0").iterdir()} == {
            "draws.npz",
            "numpy_critic.npz",
            "values",  # of the shortest way through the maze
        }
        rows = stored(out, "tables/main.json")["rows"]
        # Straight-line distance orders the goals of a short walk better than chance.
        assert rows["PointMaze"]["numpy_critic"]["tau"]["mean"] > 0.3
        assert (out / "report.html").is_file()
        assert stored(out, "record.json")["command"] == "toptail made up"

    def test_every_figure_of_the_paper_comes_out_of_a_run(self, out: Path) -> None:
        drawn = {label for each in drawings(read_semantics(out)) for label in each.labels}
        figures = {label for label in STUDY.labels if label.startswith("fig:")}
        assert len(figures) == 4
        assert figures <= drawn

    def test_stored_scores_are_enough(self, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = {p: p.stat().st_mtime_ns for p in (out / "scores").rglob("*.npz")}
        config = stored(out, "config.json")
        assert StudySemantics(out=out, workers=1).run() == 0
        assert {p: p.stat().st_mtime_ns for p in before} == before
        assert stored(out, "config.json") == config
        printed = capsys.readouterr().out
        assert "numpy_critic" in printed
        assert f"Report: {out / 'report.html'}" in printed

    @pytest.mark.slow
    def test_stored_scores_are_enough_without_the_packages_that_train(self, out: Path) -> None:
        (out / "report.html").unlink()
        main = "from toptail_paper.cli import main\nsys.exit(main(sys.argv[1:]))"
        printed = run_light(main, "study", "semantics", "--out", out, "--workers", "1")
        assert "numpy_critic" in printed
        assert (out / "report.html").is_file()

    def test_a_task_that_was_never_scored_is_named(self, out: Path) -> None:
        with pytest.raises(InputError, match=r"AntMaze|antmaze"):
            StudySemantics(task=("AntMaze",), out=out).work("")

    def test_a_task_added_later_joins_the_folder(self, out: Path) -> None:
        study = StudySemantics(task=(CUBE,), out=out, scorer=(CRITIC,), workers=1)
        config = study.config()
        assert (config.tasks, config.triples, config.n_near) == ((CUBE,), 300, (4, 8))
        study.work("toptail made up again")
        assert stored(out, "config.json")["config"]["tasks"] == [POINT, CUBE]
        assert list(stored(out, "tables/retrieval.json")["rows"]) == ["PointMaze", "Cube-single"]
        assert list(stored(out, "tables/main.json")["rows"]) == ["PointMaze"]
