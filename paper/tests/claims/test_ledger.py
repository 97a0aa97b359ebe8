"""A sentence stands once, what changed says so, and pages quote the ledgers as they are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toptail_paper.claims import CLAIMS, counted, decide, render_markdown, seen_on_tasks
from toptail_paper.claims.criteria import Criterion
from toptail_paper.claims.findings import STATUSES, Decision, Finding, Ruling
from toptail_paper.claims.ledger import UNASKED, Claim, Quoted, changed_criteria, settled_questions
from toptail_paper.claims.sweeps import Swept
from toptail_paper.study.page import claim_entry

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
POINTMAZE = "selection/pointmaze-medium-navigate-v0"
WALKERS = tuple(f"selection/{name}maze-medium-navigate-v0" for name in ("ant", "humanoid"))
LEDGERS = {"controlled": "controlled", "semantics": "semantics", "selection": POINTMAZE}
"""The ledgers that the referee read."""
ALL = ("controlled", "semantics", "selection")
"""The ledgers that have every statement once: selection's is the one over its tasks."""
EVERY = [
    path.parent.relative_to(RESULTS).as_posix() for path in sorted(RESULTS.rglob("claims.json"))
]


def stored(study: str) -> list[dict[str, Any]]:
    text = (RESULTS / study / "claims.json").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = json.loads(text)
    return entries


def page(name: str) -> str:
    """A page's words, however its lines are broken."""
    path = (ROOT.parent if name == "README.md" else ROOT) / name
    return " ".join(path.read_text(encoding="utf-8").split())


def counts(text: str) -> list[str]:
    """Every tally that a text quotes."""
    text = re.sub(r" \(about [^)]*\)", "", text)
    return re.findall(r"\d+ statements: \d+ seen(?:, \d+ [a-z]+(?: [a-z]+)*)*", text)


@pytest.mark.parametrize("ledger", EVERY)
def test_the_ledgers_page_counts_every_stored_ledger(ledger: str) -> None:
    assert counted(stored(ledger)) in counts(page("docs/results/ledger.md"))


def test_pages_count_nothing_that_is_not_stored() -> None:
    """A number that no stored ledger has any more is found, on whatever page it stands."""
    known = {counted(stored(ledger)) for ledger in EVERY} | {everything()}
    quoted = {
        f"{name}: {count}"
        for name in ("README.md", *(p.relative_to(ROOT).as_posix() for p in PAGES))
        for count in counts(page(name))
        if count not in known
    }
    assert quoted == set()


@pytest.mark.parametrize(
    ("name", "ledger"),
    [
        ("docs/controlled.md", "controlled"),
        ("docs/results/semantics.md", "semantics"),
        ("docs/results/selection.md", POINTMAZE),
        *(("docs/results/walkers.md", ledger) for ledger in ("semantics", *WALKERS)),
    ],
)
def test_a_studys_page_counts_its_ledger(name: str, ledger: str) -> None:
    assert counted(stored(ledger)) in counts(page(name))


def everything() -> str:
    return counted([entry for ledger in ALL for entry in stored(ledger)])


def test_the_readme_counts_all_of_them() -> None:
    assert everything() in counts(page("README.md"))


@pytest.mark.parametrize("name", ["README.md", "docs/results/ledger.md"])
def test_pages_say_on_how_many_tasks_selection_was_seen(name: str) -> None:
    assert seen_on_tasks(stored("selection")) in page(name)


def rows() -> Iterator[tuple[str, str, str]]:
    """Entry, status before and now, of the tables of the ledgers' page."""
    for line in (ROOT / "docs/results/ledger.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        found = re.fullmatch("`([a-z0-9-]+)`", cells[0])
        if found is not None:
            yield found[1], cells[-2] if len(cells) == 5 else "", cells[-1]


def test_the_page_has_the_statuses_of_the_ledgers() -> None:
    now = {
        entry["id"]: " on ".join(filter(None, (entry["status"], entry["depends_on"])))
        for ledger in LEDGERS.values()
        for entry in stored(ledger)
    }
    before = {n: c["status"] for found in changed_criteria().values() for n, c in found.items()}
    table = list(rows())
    assert len(table) > 35
    assert {name: status for name, _, status in table} == {name: now[name] for name, _, _ in table}
    told = {name: status for name, status, _ in table if status}
    assert {n: s.partition(", then ")[0] for n, s in told.items() if n in before} == {
        n: s for n, s in before.items() if n in told
    }


def criteria(decision: Decision) -> tuple[str, ...] | Decision:
    """What a decision asks and of which tasks, in words where it has them."""
    if isinstance(decision, Swept):
        return criteria(decision.decision)
    if isinstance(decision, Ruling):
        return decision.said, *decision.tasks
    return (decision.stated(), *decision.tasks) if isinstance(decision, Criterion) else decision


def test_no_sentence_and_no_criterion_stands_twice() -> None:
    claims = [claim for found in CLAIMS.values() for claim in found]
    quotes = [quoted for claim in claims for quoted in claim.also]
    names = [claim.id for claim in claims] + [quoted["id"] for quoted in quotes]
    sentences = [claim.sentence for claim in claims] + [quoted["sentence"] for quoted in quotes]
    assert len(set(names)) == len(names)
    assert len(set(sentences)) == len(sentences)
    for found in CLAIMS.values():
        asked = [(claim.label, criteria(claim.criterion)) for claim in found]
        assert len(set(asked)) == len(asked)
        functions = [c for _, c in asked if not isinstance(c, tuple)]
        assert len(set(functions)) == len(functions)


def test_what_changed_is_about_entries_that_there_are() -> None:
    for study, found in changed_criteria().items():
        assert set(found) <= {claim.id for claim in CLAIMS[study]}
        for changed in found.values():
            assert changed["status"] in STATUSES
            assert changed["criterion"]
            assert not changed["why"].endswith(".")


def test_every_stored_status_that_is_another_one_than_first_seen_is_marked() -> None:
    """Statuses of the three ledgers as they were first stored, by the means."""
    for study, ledger in LEDGERS.items():
        for entry in stored(ledger):
            changed = changed_criteria()[study].get(entry["id"])
            assert (entry["changed"] is None) == (changed is None)
            if changed is not None:
                assert f"({changed['status']})" in entry["changed"]


def test_entries_point_to_questions_that_there_are_and_only_where_something_is_asked() -> None:
    page = (ROOT / "docs" / "results" / "settled.md").read_text(encoding="utf-8")
    heads = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    asked = {q for found in settled_questions().values() for own in found.values() for q in own}
    assert asked == anchors, "every question is about some statement"
    for study, ledger in LEDGERS.items():
        questions = settled_questions()[study]
        assert set(questions) <= {claim.id for claim in CLAIMS[study]}
        for entry in stored(ledger):
            own = questions.get(entry["id"], []) if entry["status"] not in UNASKED else []
            assert all(f"settled.md#{question}" in entry["settled"] for question in own)
            assert (entry["settled"] is None) == (not own)


QUOTED = Quoted(id="again", sentence="The same | again.", where="abstract")


def made_up() -> list[Any]:
    """An entry that depends, says what it is over, quotes two places and changed."""
    finding = Finding("depends", 0.5, (0.4, 0.6), "Criterion: x.", "queries", "the setting")
    claim = Claim("only-tdq", "Only it.", "tab:main", lambda _: finding, (QUOTED,))
    return list(decide([claim], {}, "a run", "controlled")[0])


def test_an_entry_says_what_it_depends_on_what_it_is_over_and_what_changed() -> None:
    (entry,) = made_up()
    assert (entry["depends_on"], entry["interval_over"]) == ("the setting", "queries")
    assert entry["also"] == [QUOTED]
    assert entry["changed"].startswith("Criterion changed after the result was seen. Before: ")
    line = render_markdown([entry]).splitlines()[2]
    for words in (
        *("**depends** on the setting", "Also: “The same \\| again.”", "`tab:main`, `abstract`"),
        *("[0.4, 0.6] over queries", "Criterion changed after the result was seen."),
    ):
        assert words in line


def test_a_page_shows_the_same() -> None:
    (entry,) = made_up()
    shown = claim_entry(entry)
    assert shown["word"] == "depends on the setting"
    assert [quoted["sentence"] for quoted in shown["quoted"]][1:] == ["The same | again."]
    assert shown["number"].endswith("over queries")
    assert shown["remarks"][0].startswith("Criterion changed after the result was seen.")
