"""``toptail-paper show``, ``ledger`` and ``all``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from toptail import cli
from toptail.errors import InputError
from toptail.jobs.job import Job
from toptail.lab.critics.registry import MAIN, names
from toptail_paper.cli import PAPER, main
from toptail_paper.commands.all import All
from toptail_paper.commands.ledger import Ledger
from toptail_paper.commands.run_study import finish_study, run_study
from toptail_paper.commands.show import Show
from toptail_paper.study.naming import PAPER_TASKS
from toptail_paper.study.search_error import LABEL
from toptail_paper.study.study import Request, studies

RESULTS = Path(__file__).parents[1] / "results"
POINTMAZE = RESULTS / "selection" / "pointmaze-medium-navigate-v0"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("words", [*PAPER.commands, *(f"study {name}" for name in studies())])
def test_help_has_an_example_first_and_fits_the_terminal(
    words: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*words.split(), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert words == "study" or lines[lines.index("") + 1].startswith(f"  toptail-paper {words}")


def test_every_label_has_one_study() -> None:
    labels = [label for study in studies().values() for label in study.labels]
    assert [label for label in labels if labels.count(label) > 1] == [LABEL, LABEL]


@pytest.mark.parametrize(
    ("label", "folder", "said"),
    [
        ("tab:toy-support", RESULTS / "controlled", "Raw"),
        ("tab:main", RESULTS / "semantics", "PointMaze"),
        ("tab:fixed-query", POINTMAZE, "TD-Q"),
        ("fig:calibration", RESULTS / "semantics", "figures"),
        ("fig:ogbench-curse", RESULTS / "semantics", "figures/ogbench_curse.svg and .png"),
        ("fig:ogbench-drift", RESULTS / "semantics", "figures/ogbench_curse.svg and .png"),
    ],
)
def test_a_table_or_figure_of_a_folder_is_shown(
    label: str, folder: Path, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", label, "--out", str(folder)]) == 0
    assert said in capsys.readouterr().out


def test_a_label_without_scores_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    kept = shutil.ignore_patterns("*.npz", "*.parquet", "twohead.json", "curves.json")
    shutil.copytree(RESULTS / "semantics", folder, ignore=kept)
    for label in ("tab:twohead", "fig:calibration"):
        with pytest.raises(InputError, match=f"no scores for {label}"):
            Show(label, folder).run()


def test_a_label_of_another_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds the study 'controlled', which .* tab:toy-support"):
        Show("tab:main", RESULTS / "controlled").run()
    with pytest.raises(InputError, match="is not the folder of a study"):
        Show("tab:main", tmp_path).run()


def test_ledgers_are_decided_again_from_stored_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RESULTS / "controlled", tmp_path / "here" / "controlled")
    stored = (RESULTS / "controlled" / "claims.md").read_text(encoding="utf-8")
    written = tmp_path / "here" / "controlled" / "claims.md"
    written.write_text("another", encoding="utf-8")
    assert main(["ledger", "--out", str(tmp_path)]) == 0
    assert written.read_text(encoding="utf-8") == stored
    assert stored.splitlines()[2].partition(".")[0] in capsys.readouterr().out


def test_a_folder_without_a_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no ledger below"):
        Ledger(out=tmp_path).run()


@pytest.mark.parametrize("name", ["controlled", "semantics"])
def test_published_results_are_not_made_again_in_place(name: str) -> None:
    with pytest.raises(InputError, match="holds published results"):
        run_study(studies()[name], Request(None, RESULTS / name, "toptail-paper"))
    with pytest.raises(InputError, match=r"published results.*'toptail-paper show' shows them"):
        finish_study(studies()[name], RESULTS / name)


def test_no_record_has_a_path_of_a_machine() -> None:
    for path in (*RESULTS.rglob("*.json"), *RESULTS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert not any(start in text for start in ("/root/", "/home/", "/tmp/", "/work/")), path
    size = sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file())
    assert size <= 55e6  # of 60 MB that data and results may have


def all_jobs(tmp_path: Path, *tasks: str, **changes: Any) -> dict[str, Job]:
    folders: dict[str, Any] = {name: tmp_path / name for name in ("data", "runs", "out")}
    return {job.name: job for job in All(task=tasks, **folders, **changes).jobs()}


def words(job: Job) -> list[str]:
    return list(job.content["command"])


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_every_job_is_a_command_that_needs_others(task: str, tmp_path: Path) -> None:
    found = all_jobs(tmp_path, task)
    before: set[str] = set()
    for job in found.values():
        program = PAPER if words(job)[0] in PAPER.commands else cli.TOPTAIL
        command: Any = cli.parsed(words(job), program)  # parses, or exits
        assert hasattr(command, "run")
        assert set(job.needs) <= before | {each.id for each in found.values()}
        assert job.outputs
        before.add(job.id)
    trained = {name.split()[-1] for name in found if name.startswith("train")}
    maze = "Maze" in task or "Soccer" in task
    assert set(MAIN) <= trained
    assert (set(names("two_head")) <= trained) == ("Maze" in task)
    assert (set(names("control")) <= trained) == (task == "PointMaze")
    assert ("diffusion" in trained) == maze
    needed = set(found[f"semantics {task}"].needs)
    assert {found[f"train {task} {critic}"].id for critic in trained} <= needed


def test_no_job_needs_itself_and_rollouts_need_scores_alone(tmp_path: Path) -> None:
    found = all_jobs(tmp_path, "AntMaze", "HumanoidMaze")
    done: set[str] = set()
    while len(done) < len(found):
        ready = {j.id for j in found.values() if j.id not in done and done.issuperset(j.needs)}
        assert ready
        done |= ready
    assert found["rollouts AntMaze"].needs == [found["selection AntMaze"].id]
    first = {job.name.split()[-1] for job in found.values()
             if job.id in found["selection AntMaze"].needs}  # fmt: skip
    assert first == {*MAIN, "diffusion"}
    shared = found["semantics HumanoidMaze"].needs
    assert found["semantics AntMaze"].id in shared, "they share a folder"
    order = list(found)
    heads = [order.index(f"train AntMaze {critic}") for critic in names("two_head")]
    assert order.index("selection AntMaze") < min(heads), "scores are wanted first"


def test_seeds_steps_and_what_is_left_out(tmp_path: Path) -> None:
    found = all_jobs(tmp_path, "HumanoidMaze", no_two_heads=True, no_deployment=True)
    tdq = " ".join(words(found["train HumanoidMaze tdq"]))
    assert "--seeds 42,43,44,7,101,102,103 --steps 100000" in tdq
    assert not any("two_head" in name or "deployment" in name for name in found)
    play = all_jobs(tmp_path, "Scene")
    assert "--steps 50000" in " ".join(words(play["train Scene raw"]))
    assert not any("[" in name for name in (*found, *play))
    short = all_jobs(tmp_path, "Scene", steps=7)
    assert "--steps 7" in " ".join(words(short["train Scene raw"]))


def test_a_task_of_the_paper_has_its_main_settings_and_a_data_set_has_none(tmp_path: Path) -> None:
    ant = all_jobs(tmp_path, "AntMaze")
    folder = Path(words(ant["collect AntMaze"])[-1])
    assert (folder / "ant" / "actor.safetensors").is_file(), "the ant of the published recipe"
    (record, *_) = ant["train AntMaze tdq[reward=0/1]"].outputs
    assert record.parts[-3] == "tdq[reward=0_1]", "as the training names its folder"
    giant = words(all_jobs(tmp_path, "HumanoidMaze")["collect HumanoidMaze"])
    assert giant[2] == "humanoidmaze-giant-navigate-v0"
    plain = all_jobs(tmp_path, "antmaze-medium-navigate-v0")
    assert "--walkers" not in words(plain["collect antmaze-medium-navigate-v0"])
    more = all_jobs(tmp_path, "Scene", also=("raw[hidden=64]",))
    assert "train Scene raw[hidden=64]" in more


def test_without_tasks_all_eight_are_made_below_one_folder(tmp_path: Path) -> None:
    jobs = All(out=tmp_path).jobs()
    assert {job.name.removeprefix("collect ") for job in jobs if "collect" in job.name} == set(
        PAPER_TASKS
    )
    assert all(path.is_relative_to(tmp_path) for job in jobs for path in job.outputs)
    assert jobs[-2].name == "controlled world"
    assert jobs[-1].name == "ledger"
    assert set(jobs[-1].needs) == {job.id for job in jobs[:-1]}


def test_all_lists_its_jobs_and_refuses_what_cannot_be_collected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [f"--{name}={tmp_path / name}" for name in ("out", "runs", "data")]
    assert main(["all", "--task", "AntSoccer", *folders, "--list-jobs"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["name"] == "collect AntSoccer"
    assert {line["state"] for line in lines} == {"missing"}
    assert {line["resources"]["gpus"] for line in lines} == {0.0, 1.0}
    assert main(["all", "--task", "antmaze-teleport-stitch-v0", *folders]) == 2
    assert "a maze without teleports" in capsys.readouterr().err
    assert main(["all", "--task", "AntMaze", *folders, "--minutes", "0"]) == 2


@pytest.mark.slow
def test_all_runs_its_jobs_in_processes_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the first job is wanted here: a job whose command fails ends the others politely."""
    monkeypatch.chdir(tmp_path)
    words = ["all", "--task", "pointmaze-medium-navigate-v0", "--out", "o", "--runs", "r"]
    typed = ["toptail-paper", *words, "--data", "d", "--minutes", "0.01"]
    monkeypatch.setattr("sys.argv", typed)
    assert main() == 3
    assert (
        "Time is up, and collect pointmaze-medium-navigate-v0 was stopped"
        in capsys.readouterr().err
    )
