"""``toptail-paper reproduce``: which study a label belongs to, and what it is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from toptail.errors import InputError
from toptail_paper.cli import main
from toptail_paper.commands.ledger import Reproduce
from toptail_paper.commands.run_study import run_study
from toptail_paper.commands.study import COMMANDS
from toptail_paper.commands.study_controlled import StudyControlled
from toptail_paper.commands.study_selection import StudySelection
from toptail_paper.commands.study_semantics import StudySemantics
from toptail_paper.selection.config import IDEALS_STAGE, STAGES
from toptail_paper.study.search_error import LABEL
from toptail_paper.study.study import Request, Study, studies

SEMANTICS, SELECTION = (studies()[name].labels for name in ("semantics", "selection"))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The commands that were asked to work; every figure is there."""
    seen: list[Any] = []

    def work(self: Any, _: str) -> tuple[Path, Path]:
        seen.append(self)
        return self.out, self.out / "report.html"

    for command in COMMANDS.values():
        monkeypatch.setattr(command, "work", work)
    monkeypatch.setattr(Study, "tables", lambda *_: [])
    monkeypatch.setattr(Study, "figures", lambda *_: [Path("figure")])
    return seen


def test_every_study_has_a_command_and_every_label_one_study() -> None:
    assert set(COMMANDS) == set(studies()) == {"controlled", "semantics", "selection"}
    labels = [label for study in studies().values() for label in study.labels]
    assert [label for label in labels if labels.count(label) > 1] == [LABEL, LABEL]


def test_search_error_is_split_in_the_2d_world_or_with_a_task_at_fixed_queries(
    calls: list[Any],
) -> None:
    for flags in ({}, {"task": ("PointMaze",)}, {"runs": Path("r")}):
        assert Reproduce(LABEL, **flags).run() == 0
    plain, of_task, of_runs = calls
    assert isinstance(plain, StudyControlled)
    assert of_task == StudySelection("PointMaze", stage=("tables",))
    assert of_runs.stages() == [s for s in (*STAGES, IDEALS_STAGE, "tables") if s != "deployment"]
    assert IDEALS_STAGE not in StudySelection("PointMaze").stages()


def test_the_help_names_every_label(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    words = capsys.readouterr().out.replace(",", " ").replace(". ", " ").split()
    for study in studies().values():
        assert set(study.labels) <= {word.rstrip(".") for word in words}


@pytest.mark.parametrize("label", SEMANTICS)
def test_labels_on_recorded_data(label: str, calls: list[Any]) -> None:
    assert Reproduce(label, task=("A", "B"), runs=Path("r"), train=True).run() == 0
    out = Path("runs/semantics")
    assert calls == [StudySemantics(task=("A", "B"), out=out, runs=Path("r"), train=True)]


@pytest.mark.parametrize("label", sorted({*SELECTION} - {LABEL}))
def test_labels_at_fixed_queries(label: str, calls: list[Any]) -> None:
    assert Reproduce(label, out=Path("there")).run() == 0
    assert calls == [StudySelection("PointMaze", out=Path("there"), stage=("tables",))]
    with pytest.raises(InputError, match="one task at a time"):
        Reproduce(label, task=("A", "B")).run()


def test_deployment_is_made_for_its_own_label_alone(calls: list[Any]) -> None:
    for label, all_stages in (("tab:fixed-query", False), ("app:closed-loop", True)):
        assert Reproduce(label, runs=Path("r")).run() == 0
        assert (calls[-1].stage == (*STAGES, "tables")) is all_stages
        assert ("deployment" in calls[-1].stage) is all_stages


def test_the_radius_sweep_is_made_for_its_own_label_alone(calls: list[Any]) -> None:
    for label, radii in (("tab:r-sweep", (0.25, 0.40, 0.55)), ("fig:curse", ())):
        assert Reproduce(label).run() == 0
        assert isinstance(calls[-1], StudyControlled)
        assert calls[-1].config().radii == radii


@pytest.mark.parametrize("flags", [{"task": ("A",)}, {"runs": Path("r")}, {"train": True}])
def test_the_2d_world_needs_no_data(flags: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leave out --task, --runs and --train"):
        Reproduce("tab:toy-support", **flags).run()


@pytest.mark.parametrize("label", ["app:closed-loop", "closed-loop", "actors"])
def test_what_is_deployed_is_made_for_its_labels(label: str, calls: list[Any]) -> None:
    assert Reproduce(label, runs=Path("r")).run() == 0
    assert "deployment" in calls[-1].stage


def test_ledgers_are_decided_again_from_stored_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Path(__file__).parents[1] / "results"
    shutil.copytree(results / "controlled", tmp_path / "here" / "controlled")
    kept = (results / "controlled" / "claims.md").read_text(encoding="utf-8")
    written = tmp_path / "here" / "controlled" / "claims.md"
    written.write_text("another", encoding="utf-8")
    assert main(["reproduce", "ledger", "--out", str(tmp_path)]) == 0
    assert written.read_text(encoding="utf-8") == kept
    assert kept.splitlines()[2].partition(".")[0] in capsys.readouterr().out


def test_a_folder_without_a_ledger_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no ledger below"):
        Reproduce("ledger", out=tmp_path).run()


@pytest.mark.parametrize(
    ("label", "folder"),
    [
        ("tab:toy-support", "controlled"),
        ("tab:main", "semantics"),
        ("tab:fixed-query", "selection"),
    ],
)
def test_published_results_are_not_made_again_in_place(
    label: str, folder: str, tmp_path: Path, calls: list[Any]
) -> None:
    results = Path(__file__).parents[1] / "results"
    assert main(["reproduce", label, "--out", str(results / folder)]) == 2
    with pytest.raises(
        InputError, match=r"holds published results.*'toptail-paper show' shows them"
    ):
        Reproduce(label, out=results / folder).run()
    assert calls == []
    copy = shutil.copytree(results / "controlled", tmp_path / "copy")
    with pytest.raises(InputError, match="holds published results"):
        Reproduce(label, out=copy).run()
    with pytest.raises(InputError, match="holds published results"):
        run_study(studies()["controlled"], Request(None, results / "controlled", "toptail"))


def test_an_unknown_label_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"'tab:x' is not a label .* tab:fixed-query, .* tab:main"):
        Reproduce("tab:x").run()
