"""The parts of pages that are made of stored results: ``python -m toptail_paper.claims.pages``.

A page has a part between two markers, ``<!-- made: NAME -->`` and ``<!-- end: NAME -->``; `PARTS`
has the text of each name. Run it after ledgers or results change; a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from toptail.io.files import entries
from toptail.io.json_files import read_json
from toptail_paper.claims.grids import SETTLED
from toptail_paper.claims.ledger import (
    CLAIMS,
    ClaimEntry,
    changed_criteria,
    counted,
    decide,
    interval_ends,
    settled_grids,
    stored_results,
    write_text,
)
from toptail_paper.claims.ledger_over_tasks import seen_on_tasks
from toptail_paper.claims.pages_power import POWER_PARTS, homes
from toptail_paper.claims.pages_selection import SELECTION_PARTS
from toptail_paper.claims.pages_tables import SHOWN
from toptail_paper.claims.pages_time import pieces
from toptail_paper.claims.published import all_cells, summary
from toptail_paper.claims.reported import NAVIGATION, VARIANTS, published
from toptail_paper.study.markdown import markdown_table, with_parts, wrapped
from toptail_paper.study.naming import data_set
from toptail_paper.study.replicates import REPLICATES

ROOT: Final = Path(__file__).parents[4]
DOCS: Final = ROOT / "paper" / "docs"
PAGES: Final = tuple(
    DOCS / page
    for page in (
        *("results/summary.md", "results/ledger.md", "results/selection.md"),
        *("results/semantics.md", "results/walkers.md", "references.md", "selection.md"),
    )
)
"""The pages with such parts."""
REPORT: Final = ROOT / "paper" / "REPORT.md"
"""The report, which is made whole."""

LEDGERS: Final[Mapping[str, str]] = {
    "controlled": "controlled world",
    "semantics": "score semantics",
    "selection": "selection, over its tasks",
    "selection/pointmaze-medium-navigate-v0": "selection on PointMaze",
    "selection/antmaze-medium-navigate-v0": "selection on AntMaze",
    "selection/humanoidmaze-medium-navigate-v0": "selection on HumanoidMaze",
    "selection/antsoccer-arena-navigate-v0": "selection on AntSoccer",
    "zoo/selection": "main settings: selection, over the two tasks below",
    "zoo/selection/humanoidmaze-giant-navigate-v0": "main settings: selection on HumanoidMaze",
    "zoo/selection/antsoccer-arena-navigate-v0": "main settings: selection on AntSoccer",
}
"""Every stored ledger, and how the page calls it; the first three have every statement once."""

EVERY: Final = tuple(LEDGERS)[:3]

TODAY: Final = "2026-11 navigate, own walkers"
"""The variant that the ledgers decide, as long as the runs at the main settings are a part."""


def ledger(name: str) -> list[dict[str, Any]]:
    """The entries of a stored ledger."""
    found: list[dict[str, Any]] = read_json(published() / name / "claims.json")
    return found


def ledgers() -> str:
    """A table of all ledgers with their counts."""
    rows = [
        [f"[{words}](../../results/{name}/claims.md)", counted(ledger(name))]
        for name, words in LEDGERS.items()
    ]
    return markdown_table(["ledger", "statuses"], rows)


def variants() -> str:
    """The statuses of the stored variants beside the main ones, where they differ."""
    folders = [path for path in entries(published() / VARIANTS) if path.is_dir()]
    if not folders:
        return wrapped(
            f"The ledgers above are those of the variant *{TODAY}*, but for the last three. Of the "
            "runs at the main settings ([`results/zoo`](../../results/zoo)) selection on "
            "HumanoidMaze (without two heads) and AntSoccer has ledgers of its own. PointMaze and "
            "AntMaze have TD-Q, raw and cosine, without hybrid, two heads and deployment: a part, "
            "which decides no ledger, and so none over all four tasks."
        )
    text = ""
    for folder in folders:
        rows = []
        for name in EVERY:
            if not (folder / name / "claims.json").is_file():
                continue
            own = {e["id"]: e for e in read_json(folder / name / "claims.json")}
            main = {e["id"]: e for e in ledger(name)}
            for claim in own.keys() & main.keys():
                both = (_status(main[claim]), _status(own[claim]))
                rows += [] if both[0] == both[1] else [[f"`{claim}`", LEDGERS[name], *both]]
        head = ["entry", "ledger", "main settings", folder.name]
        text += markdown_table(head, sorted(rows))
    return text


def main_so_far() -> str:
    """What the stored part of the main runs changes, task by task."""
    rows, counts = [], []
    stored_tasks = dict(homes())
    for task in NAVIGATION:
        for study in ("semantics", "selection"):
            variant = published() / study if study == "semantics" else stored_tasks[task]
            before = decided(study, variant, task)
            now = decided(study, published() / "zoo" / study / data_set(task), task)
            both = [x for x in now if x in before and asked(now[x], before[x])]
            other = [x for x in both if _status(now[x]) != _status(before[x])]
            counts.append(f"{len(other)} of {len(both)} in {study} on {task}")
            for claim in other:
                cells = [
                    f"{_status(entry)}: {signed_interval(entry)}"
                    for entry in (before[claim], now[claim])
                ]
                rows.append([f"`{claim}`", task, *cells])
    lead = (
        "Asked of one task alone, with the same criteria, these statements that both can decide "
        f"have another status at the main settings: {', '.join(counts)}."
    )
    head = ["entry", "task", TODAY, "main settings"]
    return f"{wrapped(lead)}\n{markdown_table(head, rows)}"


def asked(*entries: ClaimEntry) -> bool:
    """Whether each entry is about a task that its results have measured."""
    return all(entry["status"] != "other task" for entry in entries)


def decided(study: str, folder: Path, task: str) -> dict[str, ClaimEntry]:
    """The entries that the stored tables of a folder decide about one task, by id."""
    found: dict[str, Any] = {SETTLED: settled_grids()}
    for name, table in stored_results(folder).items():
        if name == REPLICATES:
            found[name] = {key: x for key, x in table.items() if key == task}
        elif "rows" in table:
            rows = {key: x for key, x in table["rows"].items() if key.partition("@")[0] == task}
            found[name] = {**table, "rows": rows}
    return {entry["id"]: entry for entry in decide(CLAIMS[study], found, "", study)[0]}


def signed_interval(entry: ClaimEntry) -> str:
    """The number of an entry, with its interval where it has one."""
    number = entry["number"]
    shown = "" if number is None else f"{number:.3g}".replace("-", "−")
    return f"{shown} {interval_ends(entry)}".rstrip()


def _status(entry: Mapping[str, Any]) -> str:
    return " on ".join(filter(None, (entry["status"], entry["depends_on"])))


def tasks() -> str:
    """On how many tasks statements about selection were seen."""
    return wrapped(f"{seen_on_tasks(ledger('selection'))}. The others speak of one task.")


def numbers() -> tuple[str, str]:
    """How many of the paper's numbers are measured, and how many lie outside our intervals."""
    found = all_cells(published())
    both = [x.compared for each in found.values() for x in each if x.compared is not None]
    ends = [(x.ours.get("low"), x.paper["mean"], x.ours.get("high")) for x in both]
    inside = [low <= paper <= high for low, paper, high in ends if low is not None]
    outside = inside.count(False)
    return (
        summary(found),
        f"{len(inside)} of them have a 95 % interval here, and {outside} of these "
        f"({outside / max(len(inside), 1):.0%}) do not contain the paper's number. That is no test "
        "of the paper: the intervals hold data and trained critics fixed and leave out the "
        "paper's own spread",
    )


def cells() -> str:
    """How many of the paper's numbers are measured."""
    return wrapped(f"{'. '.join(numbers())}.")


def counts() -> str:
    """The summary's item: all statements together, the numbers, and selection over its tasks."""
    measured, outside = numbers()
    statements = counted([entry for name in EVERY for entry in ledger(name)])
    text = (
        f"- [The ledgers](ledger.md) decide with intervals. Controlled world, "
        f"semantics on eight tasks and selection on four have {statements}. "
        f"{change_counts()} [{measured}](../../results/cells.md). {outside}. On "
        f"[selection](../../results/selection/claims.md), {seen_on_tasks(ledger('selection'))}. "
        f"Those seen on every task are {everywhere()}; where an ensemble of TD-Qs judges TD-Q, it "
        "judges its own kind."
    )
    return wrapped(text, "  ")


def everywhere() -> str:
    """The statements about selection that were seen on every one of several tasks."""
    several = [entry for entry in ledger("selection") if len(entry["tasks"]) > 1]
    seen = [e["id"] for e in several if {x["status"] for x in e["tasks"].values()} == {"seen"}]
    return ", ".join(f"`{claim}`" for claim in seen) or "none"


def changed() -> str:
    """Which criteria were changed after a result had been seen: before, now, and why."""
    statuses = {
        name: {e["id"]: _status(e) for e in found}
        for name, found in ((name, ledger(name)) for name in EVERY)
    }
    text = wrapped(change_counts())
    for each in changed_criteria():
        by_study = each["criteria"]
        of = [f"{len(by_study[n])} of {len(statuses[n])} in {LEDGERS[n]}" for n in EVERY]
        rows = [
            [f"`{claim}`", x["criterion"], x["status"], statuses[name][claim], x["why"]]
            for name in EVERY
            for claim, x in by_study[name].items()
        ]
        head = ["entry", "criterion before", "status before", "status now", "why it changed"]
        lead = wrapped(f"{each['date']}, {each['when']}: {', '.join(of)}.")
        text += f"\n{lead}\n{markdown_table(head, rows)}"
    return text


def change_counts() -> str:
    """How many criteria were changed, and how often."""
    rounds = [
        {(study, claim) for study, claims in each["criteria"].items() for claim in claims}
        for each in changed_criteria()
    ]
    every = sum(len(ledger(name)) for name in EVERY)
    times = ", ".join(f"{len(ids)} {each['when']}" for ids, each in
                      zip(rounds, changed_criteria(), strict=True))  # fmt: skip
    both = len(set.intersection(*rounds))
    return (
        f"{len(set.union(*rounds))} of {every} criteria are other ones than when their result was "
        f"first seen: {times}; {both} of them both times."
    )


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    function.__name__: function
    for function in (
        *(ledgers, variants, main_so_far, tasks, cells, counts, changed),
        *(*SELECTION_PARTS, *POWER_PARTS, pieces),
    )
} | {name: table.made for name, table in SHOWN.items()}
"""The text of each part by its name."""


def refreshed(page: str) -> str:
    """A page with its parts made anew."""
    return with_parts(page, PARTS)


def main() -> None:
    """Write every page and the report anew."""
    from toptail_paper.claims.report import report  # which quotes sentences of this module

    write_text(REPORT, report())
    for page in PAGES:
        write_text(page, refreshed(page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
