"""``toptail study semantics`` and ``toptail reproduce``: flags, folders, and a whole small run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tyro

from tests.light import run_light
from tests.semantics_study.made_up import MAIN, write_folder
from toptail.commands import study_semantics
from toptail.commands.study_semantics import LABELS, SAME, StudySemantics, reproduce
from toptail.errors import InputError
from toptail.lab.studies.semantics.config import SemanticsConfig
from toptail.lab.studies.semantics.figures import drawings
from toptail.lab.studies.semantics.results import read_semantics

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "tasks" / "data"
CRITIC = f"{ROOT / 'examples' / 'numpy_critic.py'}:score"
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
    StudySemantics(task=(POINT,), out=path, critic=(CRITIC,), **SMALL).work("toptail made up")
    return path


class TestStoredSettings:
    def test_settings_of_a_stored_study_are_not_silently_ignored(self, out: Path) -> None:
        with pytest.raises(InputError, match=r"resamples \(20 and 30\).*leave the flag out"):
            StudySemantics(out=out, resamples=30).work("toptail made up")
        assert stored(out, "config.json")["config"]["resamples"] == 20

    def test_its_own_settings_are_welcome(self, out: Path) -> None:
        assert StudySemantics(out=out, resamples=20, workers=1).work("toptail made up").is_file()


class TestFlags:
    def test_tasks_and_critics_may_be_repeated_and_tasks_separated_by_commas(self) -> None:
        words = ["--task", "PointMaze, Scene", "--task", "AntMaze", "--task", "Scene"]
        words += ["--critic", "a.py:f", "--critic", "b=b.py:g", "--seeds", "1,2"]
        study = tyro.cli(StudySemantics, args=words)
        assert study.critic == ("a.py:f", "b=b.py:g")
        config = study.config()
        assert config.tasks == ("PointMaze", "Scene", "AntMaze")
        assert config.seeds == (1, 2)
        assert config.n_near == SemanticsConfig.n_near

    def test_few_triples_need_no_second_flag(self) -> None:
        config = StudySemantics(task=("PointMaze",), triples=200).config()
        assert (config.triples, config.support_queries) == (200, 200)
        given = StudySemantics(task=("PointMaze",), triples=900, support_queries=7).config()
        assert given.support_queries == 7

    def test_what_is_given_reaches_the_training(self) -> None:
        study = StudySemantics(steps=7, diffusion_steps=0, critics="raw,tdq", temperature=True)
        training = study.training()
        assert (training.steps, training.play_steps, training.diffusion_steps) == (7, 7, 0)
        assert training.critics == training.play_critics == ("raw", "tdq")
        assert training.sweep
        assert StudySemantics().training().play_steps == 50_000

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            ({"train": True}, "--train needs --runs"),
            ({"temperature": True, "runs": Path("runs")}, "--temperature .* needs --train"),
            ({"critic": (CRITIC,)}, "--task is missing.*--task PointMaze"),
            ({"critic": (CRITIC,), "task": ("PointMaze",), "seeds": "1;2"}, "--seeds takes whole"),
            ({}, "config.json is missing|holds no"),
        ],
    )
    def test_mistakes_are_named(self, tmp_path: Path, flags: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            StudySemantics(out=tmp_path / "out", **flags).work("")
        assert not (tmp_path / "out").exists()

    def test_an_unknown_critic_is_named(self) -> None:
        with pytest.raises(InputError, match="no critic 'raww'; the critics are tdq, raw"):
            StudySemantics(critics="raww").training()


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
        labels = {drawing.label for drawing in drawings(read_semantics(out))}
        assert {SAME.get(label, label) for label in LABELS if label.startswith("fig:")} <= labels

    def test_stored_scores_are_enough(self, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = {p: p.stat().st_mtime_ns for p in (out / "scores").rglob("*.npz")}
        config = stored(out, "config.json")
        assert StudySemantics(out=out, workers=1).run() == 0
        assert {p: p.stat().st_mtime_ns for p in before} == before
        assert stored(out, "config.json") == config
        printed = capsys.readouterr().out
        assert "numpy_critic" in printed
        assert f"Report: {out / 'report.html'}" in printed

    def test_stored_scores_are_enough_without_the_packages_that_train(self, out: Path) -> None:
        (out / "report.html").unlink()
        main = "from toptail.cli import main\nsys.exit(main(sys.argv[1:]))"
        printed = run_light(main, "study", "semantics", "--out", out, "--workers", "1")
        assert "numpy_critic" in printed
        assert (out / "report.html").is_file()

    def test_a_task_that_was_never_scored_is_named(self, out: Path) -> None:
        with pytest.raises(InputError, match=r"AntMaze|antmaze"):
            StudySemantics(task=("AntMaze",), out=out).work("")

    def test_a_task_added_later_joins_the_folder(self, out: Path) -> None:
        study = StudySemantics(task=(CUBE,), out=out, critic=(CRITIC,), workers=1)
        config = study.config()
        assert (config.tasks, config.triples, config.n_near) == ((CUBE,), 300, (4, 8))
        study.work("toptail made up again")
        assert stored(out, "config.json")["config"]["tasks"] == [POINT, CUBE]
        assert list(stored(out, "tables/retrieval.json")["rows"]) == ["PointMaze", "Cube-single"]
        assert list(stored(out, "tables/main.json")["rows"]) == ["PointMaze"]


class TestReproduce:
    @pytest.fixture
    def made_up(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A finished folder, without scores: only what is printed is looked at."""
        path = write_folder(tmp_path / "run", scorers=MAIN)
        monkeypatch.setattr(StudySemantics, "work", lambda self, command: self.out / command)
        return path

    def test_a_table_is_printed(self, made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
        command = reproduce("tab:bellman", made_up, Path("runs"), ["PointMaze"], train=True)
        assert str(command).startswith(str(made_up / "toptail reproduce tab:bellman --out="))
        assert str(command).endswith(" --task=PointMaze --runs=runs --train")
        printed = capsys.readouterr().out
        assert "tab:bellman" in printed
        assert "0.710 ± 0.010" in printed

    def test_a_figure_is_named(self, made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
        reproduce("fig:ogbench-curse", made_up)
        assert "figures/ogbench_curse.svg and .png" in capsys.readouterr().out

    def test_what_the_scores_do_not_hold_is_said(self, made_up: Path) -> None:
        (made_up / "tables" / "twohead.json").unlink()
        (made_up / "curves.json").unlink()
        with pytest.raises(InputError, match="no scores for tab:twohead"):
            reproduce("tab:twohead", made_up)
        with pytest.raises(InputError, match="no scores for fig:calibration"):
            reproduce("fig:calibration", made_up)

    def test_an_unknown_label_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"'tab:toy' is not a label.*tab:main"):
            reproduce("tab:toy", tmp_path)

    def test_every_table_has_a_layout(self) -> None:
        from toptail.lab.studies.semantics.show import LAYOUTS

        tables = {label.removeprefix("tab:") for label in study_semantics.TABLES}
        assert tables == set(LAYOUTS) - {"temperature", "seen"}
