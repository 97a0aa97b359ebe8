"""The ledger over tasks: what several tasks say together, who is counted, and why not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from toptail.errors import InputError
from toptail_paper.claims import ledger_over_tasks, seen_on_tasks, write_across
from toptail_paper.claims.claim import Claim
from toptail_paper.claims.criteria import Criterion
from toptail_paper.claims.findings import PART, Finding, Status
from toptail_paper.claims.ledger import stored_results
from toptail_paper.claims.ledger_over_tasks import over_tasks
from toptail_paper.claims.numbers import NotMeasuredError, Numbers, Tables
from toptail_paper.cli import main

SELECTION = Path(__file__).parents[2] / "results" / "selection"
FOLDERS = sorted(path.parent for path in SELECTION.glob("*/claims.json"))


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


class Decided(Claim):
    """A claim with a status on each task; one that is not listed has not measured it."""

    by_task: Mapping[str, tuple[Status, str]]

    def decide(self, tables: Tables) -> Finding:
        if str(tables["task"]) not in self.by_task:
            raise NotMeasuredError("deployment: the row")
        status, on = self.by_task[str(tables["task"])]
        return Finding(status, 0.25, (0.2, 0.3), "Criterion: x.", "queries", on)


def ledger(
    monkeypatch: pytest.MonkeyPatch, by_task: Mapping[str, tuple[Status, str]], *others: str
) -> Any:
    """The entries over tasks with these statuses, and others that have not measured it."""
    tasks = (*by_task, *others)
    criterion = Criterion(Numbers(lambda *_: {}), tasks, None)
    claim = Decided("made-up", "A sentence.", "abstract", criterion)
    object.__setattr__(claim, "by_task", by_task)
    monkeypatch.setattr(ledger_over_tasks, "CLAIMS", {"selection": (claim,)})
    return over_tasks({task: ({"task": task}, "a run") for task in tasks})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("said", "status", "on"),
    [
        (["seen", "seen"], "seen", None),
        (["not seen", "not seen"], "not seen", None),
        (["inconclusive"], "inconclusive", None),
        (["true by construction", "seen"], "seen", None),
        (["seen", "not seen"], "depends", "the task"),
        (["seen", "not seen", "inconclusive"], "depends", "the task"),
        (["seen", "inconclusive"], "inconclusive", None),
        (["not seen", "inconclusive"], "not seen", None),
        (["depends", "depends"], "depends", PART),
        (["depends", "seen"], "depends", f"{PART} and the task"),
        (["depends", "not seen"], "depends", f"{PART} and the task"),
        (["other task", "seen"], "seen", None),
        (["other task", "other task"], "other task", None),
    ],
)
def test_what_tasks_say_together(
    said: list[Status], status: str, on: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {f"Task{i}": (s, PART if s == "depends" else "") for i, s in enumerate(said)}
    (entry,) = ledger(monkeypatch, found)
    assert (entry["status"], entry["depends_on"]) == (status, on)
    (entry,) = ledger(monkeypatch, dict(reversed(found.items())))
    assert (entry["status"], entry["depends_on"]) == (status, on)


def test_two_things_that_it_depends_on_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (entry,) = ledger(monkeypatch, {"A": ("depends", "the judge"), "B": ("depends", "the critic")})
    assert entry["depends_on"] == "the judge and the critic"


def test_one_task_gives_its_number_and_several_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    (entry,) = ledger(monkeypatch, {"A": ("seen", "")}, "B")
    assert (entry["number"], entry["interval"], entry["comment"]) == (
        0.25,
        [0.2, 0.3],
        "Criterion: x.",
    )
    assert entry["not_counted"] == {"B": "not measured: deployment: the row"}
    (entry,) = ledger(
        monkeypatch, {"A": ("seen", ""), "B": ("not seen", ""), "C": ("depends", PART)}
    )
    assert (entry["number"], entry["interval"]) == (None, None)
    assert entry["comment"] == "Seen on 1 of 3 tasks: A; not on B, C."
    assert list(entry["tasks"]) == ["A", "B", "C"]


def test_how_often_statements_were_seen_is_said_in_words() -> None:
    said = [["seen", "seen"], ["seen", "depends"], ["not seen", "inconclusive"], ["seen"]]
    entries = [{"tasks": {str(i): {"status": s} for i, s in enumerate(each)}} for each in said]
    assert seen_on_tasks(entries) == (
        "3 statements were decided on more than one task: seen on every task 1, on some of them 1, "
        "on none 1"
    )


def test_a_statement_that_no_task_measured_has_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ledger(monkeypatch, {}, "A") == []


class TestStored:
    def test_it_comes_out_as_it_is_stored(self, tmp_path: Path) -> None:
        write_across(tmp_path, FOLDERS)
        assert read(tmp_path / "claims.json") == read(SELECTION / "claims.json")
        pages = [(f / "claims.md").read_text(encoding="utf-8") for f in (tmp_path, SELECTION)]
        assert pages[0] == pages[1]

    def test_every_task_decides_every_statement_or_says_why_not(self) -> None:
        tasks = {next(iter(stored_results(f)["fixed-query"]["rows"])): f for f in FOLDERS}
        assert len(tasks) == len(FOLDERS) >= 3
        own = {t: {e["id"]: e for e in read(f / "claims.json")} for t, f in tasks.items()}
        for entry in read(SELECTION / "claims.json"):
            assert set(entry["tasks"]) | set(entry["not_counted"]) == set(tasks)
            assert not set(entry["tasks"]) & set(entry["not_counted"])
            for task, said in entry["tasks"].items():
                assert said == own[task][entry["id"]]
            for task, why in entry["not_counted"].items():
                said = own[task].get(entry["id"])
                assert said is None or said["status"] == "other task"
                assert why.startswith(("it speaks of ", "not measured: "))
                assert task not in why.partition("it speaks of ")[2]


def small(source: Path, target: Path) -> Path:
    """What the paper's room reads of a folder."""
    for name in ("tables", "replicates"):
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
    for name in ("curves.json", "record.json", "config.json", "claims.json"):
        shutil.copy(source / name, target / name)
    return target


def test_the_command_writes_it_once_more_and_leaves_a_single_task_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "selection"
    for folder in FOLDERS[:1]:
        small(folder, out / folder.name)
    assert main(["ledger", "--out", str(tmp_path)]) == 0
    assert not (out / "claims.json").exists()
    for folder in FOLDERS[1:]:
        small(folder, out / folder.name)
    for _ in range(2):  # its own ledger does not disturb it
        assert main(["ledger", "--out", str(tmp_path)]) == 0
        assert f"over {len(FOLDERS)} tasks: " in capsys.readouterr().out
        assert read(out / "claims.json") == read(SELECTION / "claims.json")


def test_two_folders_of_one_task_are_refused(tmp_path: Path) -> None:
    twice = [small(FOLDERS[0], tmp_path / name) for name in ("one", "two")]
    with pytest.raises(InputError, match=r"two holds \w+, and so does a folder beside it"):
        write_across(tmp_path, twice)


def test_a_folder_without_the_main_table_is_left_out(tmp_path: Path) -> None:
    empty = small(FOLDERS[0], tmp_path / "empty")
    (empty / "tables" / "fixed-query.json").unlink()
    entries = write_across(tmp_path, [empty, *FOLDERS[1:]])
    assert len({task for entry in entries for task in entry["tasks"]}) == len(FOLDERS) - 1
