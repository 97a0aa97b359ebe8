"""Ledgers come out as they are stored; a sentence stands once; entries say what changed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from paper.tests.controlled.synthetic import write_folder
from toptail.errors import InputError
from toptail_paper.claims import (
    CLAIMS,
    annotate,
    decide,
    ledger_over_tasks,
    render_markdown,
    seen_on_tasks,
    write_across,
)
from toptail_paper.claims.claim import Claim, Quoted
from toptail_paper.claims.criteria import Criterion, at_most, show
from toptail_paper.claims.findings import PART, STATUSES, Finding, Status
from toptail_paper.claims.ledger import (
    NO_QUESTION,
    changed_criteria,
    settled_questions,
    stored_results,
)
from toptail_paper.claims.ledger_over_tasks import over_tasks
from toptail_paper.claims.numbers import NotMeasuredError, Number, Numbers, Tables
from toptail_paper.claims.reported import WITHOUT_CELLS, cells, labels
from toptail_paper.cli import main
from toptail_paper.study.page import claim_entry
from toptail_paper.study.study import study_in

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
LEDGERS = {
    "controlled": "controlled",
    "semantics": "semantics",
    "selection": "selection/pointmaze-medium-navigate-v0",
}
STORED = sorted(
    path.parent.relative_to(RESULTS).as_posix()
    for path in RESULTS.rglob("claims.json")
    if (path.parent / "config.json").is_file()
)
"""Every folder of a study with a ledger; a ledger over tasks has no settings."""


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def copy(stored: str, target: Path) -> tuple[Path, str]:
    """The files of a stored study from which claims are decided, and the study."""
    source = RESULTS / stored
    for name in ("tables", "replicates"):
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
    for name in ("curves.json", "theory.json", "landscape.json", "record.json"):
        if (source / name).is_file():
            shutil.copy(source / name, target / name)
    return target, study_in(source).name


def test_every_study_has_a_stored_ledger() -> None:
    assert {study_in(RESULTS / stored).name for stored in STORED} == set(CLAIMS)


@pytest.mark.parametrize("stored", STORED)
def test_ledger_and_papers_cells_come_out_as_stored(stored: str, tmp_path: Path) -> None:
    folder, study = copy(stored, tmp_path)
    tables = sorted((folder / "tables").iterdir())
    for file in tables:
        file.write_text(json.dumps(read(file) | {"paper": {}}), encoding="utf-8")
    annotate(folder, study)
    for file in tables:
        assert read(file) == read(RESULTS / stored / "tables" / file.name)
    before = {file: file.stat().st_mtime_ns for file in tables}
    annotate(folder, study)
    assert {file: file.stat().st_mtime_ns for file in tables} == before  # written once
    entries, kept = (read(f / "claims.json") for f in (folder, RESULTS / stored))
    for entry, other in zip(entries, kept, strict=True):
        for key in ("number", "interval"):
            assert entry.pop(key) == pytest.approx(other.pop(key), abs=1e-9)
    assert entries == kept
    pages = [(f / "claims.md").read_text(encoding="utf-8") for f in (folder, RESULTS / stored)]
    assert pages[0] == pages[1]


def test_what_the_ledger_needs_of_the_drawn_run_is_kept_small(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run")
    before = annotate(folder, "controlled")
    assert set(read(folder / "landscape.json")["pick_norm"]) == {"tdq", "raw", "cosine", "hybrid"}
    (folder / "landscape.npz").unlink()
    assert annotate(folder, "controlled") == before
    assert "landscape" in {entry["id"] for entry in before}
    head = (folder / "claims.md").read_text(encoding="utf-8").splitlines()[2]
    assert "The training length was fitted to the paper" in head


def test_a_study_that_the_paper_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no study 'mine'; its studies are controlled"):
        annotate(tmp_path, "mine")


def test_labels_to_cells() -> None:
    assert cells("tab:value-oracle", {})["AntMaze"]["oracle"]["spearman"] == {"mean": 0.57}
    assert cells("judges", {})["PointMaze"]["reference"]["spearman"] == {"mean": 0.88}
    assert cells("deployment", {})["PointMaze"]["tdq"]["closed_loop/K=64"] == {"mean": 0.0}
    assert cells("seen", {}) == {}
    assert cells("tab:function-class", {"AntMaze": {}}) == {}
    assert list(cells("tab:function-class", {"PointMaze": {}})) == ["PointMaze"]


def test_every_label_of_the_paper_has_cells_or_a_reason() -> None:
    content = json.loads((files("toptail_paper.claims") / "reported.json").read_text("utf-8"))
    assert set(content) - set(labels()) == {"noise", "prose"}
    assert all(cells(label, {"PointMaze": {}}) for label in (*labels(), "noise"))
    assert not set(labels()) & set(WITHOUT_CELLS)
    claimed = {claim.label for claims in CLAIMS.values() for claim in claims}
    assert {c for c in claimed if re.match("(tab|fig):", c)} <= {*labels(), *WITHOUT_CELLS}


def test_no_sentence_and_no_criterion_stands_twice() -> None:
    claims = [claim for found in CLAIMS.values() for claim in found]
    sentences = [c.sentence for c in claims] + [q["sentence"] for c in claims for q in c.also]
    assert len({claim.id for claim in claims}) == len(claims)
    assert len(set(sentences)) == len(sentences)
    for found in CLAIMS.values():
        asked = [(c.label, c.stated, *c.criterion.tasks) for c in found if "theory" not in c.stated]
        assert len(set(asked)) == len(asked)


def test_changed_criteria_and_questions_are_about_entries_that_exist() -> None:
    page = (ROOT / "docs" / "results" / "settled.md").read_text(encoding="utf-8")
    heads = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    asked = {q for found in settled_questions().values() for own in found.values() for q in own}
    assert asked == anchors, "every question is about some statement"
    for study, ledger in LEDGERS.items():
        rounds, questions = changed_criteria(), settled_questions()[study]
        changed = [(claim, x) for each in rounds for claim, x in each["criteria"][study].items()]
        known = {claim.id for claim in CLAIMS[study]}
        assert {name for name, _ in changed} | set(questions) <= known
        assert {before["status"] for _, before in changed} <= set(STATUSES)
        for entry in read(RESULTS / ledger / "claims.json"):
            own = [before for claim, before in changed if claim == entry["id"]]
            assert (entry["changed"] is None) == (not own)
            assert all(f"({before['status']})" in entry["changed"] for before in own)
            left = questions.get(entry["id"], []) if entry["status"] not in NO_QUESTION else []
            assert all(f"settled.md#{question}" in entry["settled"] for question in left)
            assert (entry["settled"] is None) == (not left)


def test_an_entry_says_what_it_depends_on_what_it_is_over_and_what_changed() -> None:
    quoted = Quoted(sentence="The same | again.", where="abstract")
    shown = Numbers(lambda *_: {"x": Number(0.5, (0.4, 0.6), over="queries")})
    parts = Numbers(lambda *_: {"a": Number(1.0), "b": Number(3.0)})
    criterion = show(shown, ("PointMaze",), on="the setting") & Criterion(
        parts, ("PointMaze",), at_most(2.0), "it is {condition}"
    )
    claim = Claim("only-tdq", "Only it.", "tab:main", criterion, also=(quoted,))
    (entry,), _ = decide([claim], {}, "a run", "controlled")
    assert (entry["depends_on"], entry["interval_over"]) == ("the setting", "queries")
    assert entry["also"] == [quoted]
    assert entry["changed"] is not None
    assert entry["changed"].startswith("Criterion changed after the result was seen. Before: ")
    line = render_markdown([entry]).splitlines()[2]
    for words in (
        *("**depends** on the setting", "Also: “The same \\| again.”", "`tab:main`, `abstract`"),
        *("[0.4, 0.6] over queries", "Criterion changed after the result was seen."),
    ):
        assert words in line
    page = claim_entry(entry)
    assert page["word"] == "depends on the setting"
    assert [q["sentence"] for q in page["quoted"]][1:] == ["The same | again."]
    assert page["number"].endswith("over queries")
    assert page["remarks"][0].startswith("Criterion changed after the result was seen.")


# The ledger over tasks: what several tasks say together, who is counted, and why not.


SELECTION = Path(__file__).parents[2] / "results" / "selection"
FOLDERS = sorted(path.parent for path in SELECTION.glob("*/claims.json"))


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
