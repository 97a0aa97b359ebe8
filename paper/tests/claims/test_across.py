"""The ledger over tasks: what several tasks say together, who is counted, and why not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from toptail.errors import InputError
from toptail_paper.claims import ledger_over_tasks as across
from toptail_paper.claims import seen_on_tasks, write_across
from toptail_paper.claims.annotate import stored_results
from toptail_paper.claims.findings import PART, Finding, Status
from toptail_paper.claims.ledger import Claim
from toptail_paper.claims.numbers import NotMeasuredError, Tables
from toptail_paper.cli import main

SELECTION = Path(__file__).parents[2] / "results" / "selection"
FOLDERS = sorted(path.parent for path in SELECTION.glob("*/claims.json"))


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def ledger(monkeypatch: pytest.MonkeyPatch, found: Mapping[str, tuple[Status, str]]) -> Any:
    """The one entry of tasks that say this; a task without a status has not measured it."""

    def decided(tables: Tables) -> Finding:
        status, on = found[str(tables["task"])]
        if status == "":  # type: ignore[comparison-overlap]
            raise NotMeasuredError("deployment: the row")
        return Finding(status, 0.25, (0.2, 0.3), "Criterion: x.", "queries", on)

    claim = Claim("made-up", "A sentence.", "abstract", decided)
    monkeypatch.setattr(across, "CLAIMS", {"selection": (claim,)})
    (entry,) = across.across({task: ({"task": task}, "a run") for task in found})  # type: ignore[dict-item]
    return entry


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
    entry = ledger(monkeypatch, found)
    assert (entry["status"], entry["depends_on"]) == (status, on)
    entry = ledger(monkeypatch, dict(reversed(found.items())))
    assert (entry["status"], entry["depends_on"]) == (status, on)


def test_two_things_that_it_depends_on_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = ledger(monkeypatch, {"A": ("depends", "the judge"), "B": ("depends", "the critic")})
    assert entry["depends_on"] == "the judge and the critic"


def test_one_task_gives_its_number_and_several_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = ledger(monkeypatch, {"A": ("seen", ""), "B": ("", "")})  # type: ignore[dict-item]
    assert (entry["number"], entry["interval"], entry["comment"]) == (
        0.25,
        [0.2, 0.3],
        "Criterion: x.",
    )
    assert entry["not_counted"] == {"B": "not measured: deployment: the row"}
    entry = ledger(monkeypatch, {"A": ("seen", ""), "B": ("not seen", ""), "C": ("depends", PART)})
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


def test_a_statement_that_nobody_measured_has_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="not enough values"):
        ledger(monkeypatch, {"A": ("", "")})  # type: ignore[dict-item]


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

    def test_the_page_counts_tasks(self) -> None:
        lines = (SELECTION / "claims.md").read_text(encoding="utf-8").splitlines()
        entries = read(SELECTION / "claims.json")
        rows = [line for line in lines if line.startswith("| **")]
        assert len(rows) == len(entries)
        for line, entry in zip(rows, entries, strict=True):
            seen = [t for t, said in entry["tasks"].items() if said["status"] == "seen"]
            assert f"| {len(seen)} of {len(entry['tasks'])} |" in line
            for task, said in entry["tasks"].items():
                assert f"{task}: **{said['status']}**" in line


def small(source: Path, target: Path) -> Path:
    """What the paper's room reads of a folder."""
    shutil.copytree(source / "tables", target / "tables")
    for name in ("curves.json", "record.json", "config.json", "claims.json"):
        shutil.copy(source / name, target / name)
    return target


def test_the_command_writes_it_once_more_and_leaves_a_single_task_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "selection"
    for folder in FOLDERS[:1]:
        small(folder, out / folder.name)
    assert main(["reproduce", "ledger", "--out", str(tmp_path)]) == 0
    assert not (out / "claims.json").exists()
    for folder in FOLDERS[1:]:
        small(folder, out / folder.name)
    for _ in range(2):  # its own ledger does not disturb it
        assert main(["reproduce", "ledger", "--out", str(tmp_path)]) == 0
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
