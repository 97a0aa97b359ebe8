"""A check in words and tables: for the terminal and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.lab.check.candidates import GROUPS
from toptail.lab.check.closed_loop import BASELINE
from toptail.lab.check.config import ASCENT
from toptail.lab.check.verdicts import QUESTIONS, asked, questions
from toptail.report.html import page
from toptail.report.table import Cell, Column, Table
from toptail.report.text import MISSING_SHORT, bracket, number, one_line, with_interval

QUESTION: Final = "Is the best of K candidates by this critic safe to take?"
ONE_STEP, CLOSED_LOOP = QUESTIONS

Check = Mapping[str, Any]


def check_lines(content: Check) -> list[str]:
    """The check for the terminal: verdicts first, then what could not be done."""
    lines = []
    for entry in content["scorers"].values():
        lines += [f"{entry['status']:<12}  {one_line(entry['headline'])}", *entry["warnings"]]
    lines.append("")
    for name, about, status, reason in _rows(content):
        lines.append(f"{status.text:<12}  {name.text}, {about.text}: {reason.text}")
    return [*lines, "", *_measured(content), *_not_done(content)]


def check_html(content: Check) -> str:
    """The check as one self-contained page."""
    return page(
        "check.html",
        (),
        audit={"warnings": _warnings(content), "notes": _not_done(content)},
        question=QUESTION,
        headlines=[(e["status"], one_line(e["headline"])) for e in content["scorers"].values()],
        measured=_measured(content),
        verdicts=_verdicts_table(content),
        groups=_groups_table(content),
        episodes=_episodes_table(content),
        links=_links(content),
        method=_method(content),
        data={},
    )


def _warnings(content: Check) -> list[str]:
    return [text for entry in content["scorers"].values() for text in entry["warnings"]]


def _not_done(content: Check) -> list[str]:
    return [
        f"Not done: {each['what']}, because {each['why']}. Needed: {each['needed']}."
        for each in content["not_done"]
    ]


def _measured(content: Check) -> list[str]:
    """What was asked, of whom, in sentences."""
    sizes, judge = content["settings"], content["judge"]
    asked = f"{sizes['per_group']} queries of each distance group"
    if not content["goals"]:
        asked = f"{GROUPS * sizes['per_group']} queries"
    sources = "; ".join(f"{name}: {says}" for name, says in content["candidates"].items())
    sentences = [
        f"{content['task']}: {asked}, {sizes['pool_size']} candidates each ({sources}).",
        f"A value is {judge['says']} (judge: {judge['name']}).",
    ]
    if content["environment"] is not None:
        worth = "success" if content["goals"] else "the sum of rewards"
        ks = ", ".join(map(str, sizes["follow_k"]))
        sentences.append(
            f"Followed in {content['environment']} for up to {sizes['horizon']} steps, best of K = "
            f"{ks} at each; an episode is worth {worth}."
        )
    sentences += dict.fromkeys(e["data"]["says"] for e in _followed(content) if e["data"])
    if content["goal_free"]:
        sentences.append(f"{content['goal_free']}.")
    return [*sentences, *_not_asked(content)]


def _not_asked(content: Check) -> list[str]:
    """How far "safe" reaches, where it is said."""
    found = [part[kind] for _, part in _parts(content) for kind in questions(part)]
    if not any(entry and entry["status"] == "safe" for entry in found):
        return []
    return [
        "“Safe” is about these candidates, up to the K that is named: a larger search, or an actor "
        "that is trained on the critic, was not looked at (for more: --pool-size, --follow-k, "
        "--pools ascent)."
    ]


def _followed(content: Check) -> list[Mapping[str, Any]]:
    return [part[CLOSED_LOOP] for _, part in _parts(content) if part.get(CLOSED_LOOP)]


def _parts(content: Check) -> list[tuple[str, Mapping[str, Any]]]:
    scorers = content["scorers"].items()
    return [(name, part) for name, entry in scorers for part in entry["parts"]]


def _rows(content: Check) -> list[tuple[Cell, ...]]:
    """One row for each scorer, source of candidates and question."""
    rows: list[tuple[Cell, ...]] = []
    for name, part in _parts(content):
        for kind in questions(part):
            entry = part[kind]
            status = "inconclusive" if entry is None else entry["status"]
            reason = "not done" if entry is None else one_line(entry["reason"])
            cells = (Cell(one_line(name)), Cell(asked(part, kind)))
            rows.append((*cells, Cell(status, status=status), Cell(reason)))
    return rows


def _verdicts_table(content: Check) -> Table:
    columns = (
        Column("Critic", "name"),
        Column("Question", "prose"),
        Column("Verdict", "word"),
        Column("Why", "prose"),
    )
    caption = "“Safe” for one step says nothing about following the critic: the row below it does."
    return Table("verdicts", "Verdicts", caption, columns, tuple(_rows(content)))


def _groups_table(content: Check) -> Table | None:
    """The verdicts of the distance groups; None where there are none."""
    names = list(
        dict.fromkeys(
            group
            for _, part in _parts(content)
            for kind in questions(part)
            for group in (part[kind] or {"groups": ()})["groups"]
        )
    )
    if not names:
        return None
    rows = []
    for name, part in _parts(content):
        for kind in questions(part):
            if part[kind] is not None:
                cells = (Cell(one_line(name)), Cell(asked(part, kind)))
                rows.append((*cells, *(_group(part[kind]["groups"][g]) for g in names)))
    head = (Column("Critic", "name"), Column("Question", "prose"))
    columns = (*head, *(Column(group, "word") for group in names))
    caption = "By distance of the goal; the number is the captured share, or the change of worth."
    return Table("groups", "By distance group", caption, columns, tuple(rows), stacked=True)


def _group(entry: Mapping[str, Any]) -> Cell:
    if "captured" in entry:
        detail = with_interval(*(entry[f"captured{end}"] for end in ("", "_low", "_high")))
    else:
        last = entry["comparisons"][-1]
        detail = with_interval(last["difference"], last["low"], last["high"])
    return Cell(entry["status"], detail, status=entry["status"])


def _episodes_table(content: Check) -> Table | None:
    """What an episode is worth with every K; None where nothing was followed."""
    followed = [(name, part) for name, part in _parts(content) if part.get(CLOSED_LOOP)]
    if not followed:
        return None
    names = [BASELINE, *(f"K = {k}" for k in content["settings"]["follow_k"][1:])]
    names += [ASCENT] if any(ASCENT in part[CLOSED_LOOP]["worth"] for _, part in followed) else []
    rows = []
    for name, part in followed:
        worth = part[CLOSED_LOOP]["worth"]
        cells = [
            Cell(one_line(name)),
            Cell(part["pools"]),
            Cell(str(part[CLOSED_LOOP]["episodes"])),
        ]
        found = [*(worth.get(k) for k in names), part[CLOSED_LOOP]["data"]]
        rows.append((*cells, *map(_worth, found)))
    head = (Column("Critic", "name"), Column("Candidates", "word"), Column("Episodes"))
    columns = (*head, *(Column(k) for k in names), Column("data"))
    what = "Share of episodes that succeed" if content["goals"] else "Mean sum of rewards"
    firsts = dict.fromkeys(f"{part['pools']}: {part[CLOSED_LOOP]['first']}" for _, part in followed)
    caption = (
        f"{what}, with 95 % intervals over trajectories. K = 1 chooses nothing "
        f"({'; '.join(firsts)}); the last column has the data's own episodes."
    )
    return Table("episodes", "The critic followed", caption, columns, tuple(rows), stacked=True)


def _worth(found: Mapping[str, Any] | None) -> Cell:
    mean, low, high = (found[end] if found else None for end in ("mean", "low", "high"))
    return Cell(number(mean, 2, MISSING_SHORT), bracket(low, high))


def _links(content: Check) -> list[tuple[str, str]]:
    """Pages with everything behind the verdicts, relative to the check's folder."""
    links = []
    for source in content["candidates"]:
        parts = [(name, part) for name, part in _parts(content) if part["pools"] == source]
        audited = [part[ONE_STEP] for _, part in parts if "captured" in (part[ONE_STEP] or ())]
        if audited:
            links.append((f"{source}/one_step/report.html", f"{source} candidates, one step"))
        for name, part in parts:
            for kind, words in QUESTIONS.items():
                if "worth" in (part.get(kind) or ()):
                    path = f"{source}/{kind}/{name}/report.html"
                    links.append((path, f"{source} candidates, {name}, {words}"))
    return links


def _method(content: Check) -> list[tuple[str, str]]:
    record, settings = content["record"], content["settings"]
    versions = ", ".join(f"{name} {text}" for name, text in record["versions"].items())
    return [
        ("Closed loop", content["closed_loop_rule"]),
        ("Settings", ", ".join(f"{n} {x}" for n, x in settings.items() if x is not None)),
        ("Data", record["train"]),
        ("Command", one_line(record["command"])),
        ("Code", record["commit"] or "unknown"),
        ("Versions", versions),
    ]
