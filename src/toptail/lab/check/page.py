"""A check in words for the terminal, and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from toptail.lab.check.beside import beside_lines, beside_table, cure_lines
from toptail.lab.check.candidates import GROUPS
from toptail.lab.check.closed_loop import BASELINE
from toptail.lab.check.inputs import ASCENT
from toptail.lab.check.verdicts import (
    CLOSED_LOOP,
    ONE_STEP,
    QUESTIONS,
    Check,
    answered,
    followed_parts,
    group_ends,
    parts_of,
    question,
    questions,
)
from toptail.report.page import Links, Page, Picture, Section, Sheet, render_page
from toptail.report.table import Cell, Column, Table, interval_cell, numbers, status_cell, words
from toptail.report.text import one_line, with_interval

QUESTION: Final = "Is the best of K candidates by this critic safe to take?"
_CRITIC: Final = Column("Critic", "name")


def check_lines(content: Check) -> list[str]:
    """The check for the terminal: verdicts first, then what could not be done."""
    lines = []
    for entry in content["scorers"].values():
        lines += [f"{entry['status']:<12}  {one_line(entry['headline'])}", *entry["warnings"]]
    lines.append("")
    for name, about, status, reason in _verdict_rows(content):
        lines.append(f"{status.text:<12}  {name.text}, {about.text}: {reason.text}")
    lines += [*cure_lines(content), *beside_lines(content), ""]
    return [*lines, *_measured(content), *_not_done(content)]


def check_html(content: Check, pictures: Sequence[Picture] = ()) -> str:
    entries = content["scorers"].values()
    tables = [_verdicts_table(content), *_groups_table(content), *_episodes_table(content)]
    tables += beside_table(content)
    links = _links(content)
    behind = [Section("behind", [Links(links)], "Behind it")] if links else []
    return render_page(
        Page(
            brand="toptail check",
            heading=QUESTION,
            answers=[(entry["status"], one_line(entry["headline"])) for entry in entries],
            measured=_measured(content),
            warnings=[text for entry in entries for text in entry["warnings"]],
            notes=_not_done(content),
            opening=[Section(picture.name, [picture]) for picture in pictures[:1]],
            says_safe=True,
            sections=[
                *(Section(table.name, [Sheet(table)]) for table in tables),
                *(Section(each.name, [each]) for each in pictures[1:]),
                *behind,
            ],
            method=_method(content),
        )
    )


def _not_done(content: Check) -> list[str]:
    return [
        f"Not done: {each['what']}, because {each['why']}. Needed: {each['needed']}."
        for each in content["not_done"]
    ]


def _measured(content: Check) -> list[str]:
    """Queries, candidates, judge, and how the critic was followed, in sentences."""
    sizes, judge = content["settings"], content["judge"]
    queries = f"{sizes['per_group']} queries of each distance group"
    if not content["goals"]:
        queries = f"{GROUPS * sizes['per_group']} queries"
    sources = "; ".join(f"{name}: {says}" for name, says in content["candidates"].items())
    sentences = [
        f"{content['task']}: {queries}, {sizes['pool_size']} candidates each ({sources}).",
        f"A value is {judge['says']} (judge: {judge['name']}).",
    ]
    if content["environment"] is not None:
        worth = "success" if content["goals"] else "the sum of rewards"
        ks = ", ".join(map(str, sizes["follow_k"]))
        sentences.append(
            f"Followed in {content['environment']} for up to {sizes['horizon']} steps, best of K = "
            f"{ks} at each; an episode is worth {worth}."
        )
    followed = [part[CLOSED_LOOP] for _, part in followed_parts(content)]
    sentences += dict.fromkeys(entry["data"]["says"] for entry in followed if entry["data"])
    sentences += [f"{content['goal_free']}."] if content["goal_free"] else []
    statuses = [part[kind]["status"] for _, part in parts_of(content) for kind in answered(part)]
    if "safe" in statuses:
        sentences.append(
            "“Safe” is about these candidates, up to the K that is named: a larger search, or an "
            "actor that is trained on the critic, was not looked at (for more: --pool-size, "
            "--follow-k, --pools ascent)."
        )
    return sentences


def _verdict_rows(content: Check) -> list[tuple[Cell, ...]]:
    """One row for each critic, source of candidates and question."""
    not_done = {"status": "inconclusive", "reason": "not done"}
    rows: list[tuple[Cell, ...]] = []
    for name, part in parts_of(content):
        for kind in questions(part):
            entry = part[kind] or not_done
            cells = (Cell(one_line(name)), Cell(question(part, kind)))
            rows.append((*cells, status_cell(entry["status"]), Cell(one_line(entry["reason"]))))
    return rows


def _verdicts_table(content: Check) -> Table:
    caption = "“Safe” for one step says nothing about following the critic: the row below it does."
    columns = (_CRITIC, Column("Question", "prose"), *words("Verdict"), Column("Why", "prose"))
    return Table("verdicts", "Verdicts", caption, columns, tuple(_verdict_rows(content)))


def _groups_table(content: Check) -> Iterable[Table]:
    """The verdicts of the distance groups, if there are any."""
    answers = [(name, part, kind) for name, part in parts_of(content) for kind in answered(part)]
    groups = list(dict.fromkeys(g for _, part, kind in answers for g in part[kind]["groups"]))
    rows = tuple(
        (
            Cell(one_line(name)),
            Cell(question(part, kind)),
            *(_group_cell(part[kind]["groups"][g]) for g in groups),
        )
        for name, part, kind in answers
    )
    columns = (_CRITIC, Column("Question", "prose"), *words(*groups))
    caption = "By distance of the goal; the number is the captured share, or the change of worth."
    if groups:
        yield Table("groups", "By distance group", caption, columns, rows, stacked=True)


def _group_cell(entry: Mapping[str, Any]) -> Cell:
    return status_cell(entry["status"], with_interval(*group_ends(entry)))


def _episodes_table(content: Check) -> Iterable[Table]:
    """What an episode is worth with every K, if the critic was followed."""
    followed = followed_parts(content)
    names = [BASELINE, *(f"K = {k}" for k in content["settings"]["follow_k"][1:])]
    names += [ASCENT] if any(ASCENT in part[CLOSED_LOOP]["worth"] for _, part in followed) else []
    rows = []
    for name, part in followed:
        loop = part[CLOSED_LOOP]
        cells = (Cell(one_line(name)), Cell(part["pools"]), Cell(str(loop["episodes"])))
        rows.append(
            (*cells, *map(interval_cell, [*(loop["worth"].get(k) for k in names), loop["data"]]))
        )
    columns = (_CRITIC, *words("Candidates"), *numbers("Episodes", *names, "data"))
    what = "Share of episodes that succeed" if content["goals"] else "Mean sum of rewards"
    firsts = dict.fromkeys(f"{part['pools']}: {part[CLOSED_LOOP]['first']}" for _, part in followed)
    caption = (
        f"{what}, with 95 % intervals over trajectories. K = 1 chooses nothing "
        f"({'; '.join(firsts)}); the last column has the data's own episodes."
    )
    if followed:
        yield Table("episodes", "The critic followed", caption, columns, tuple(rows), stacked=True)


def _links(content: Check) -> list[tuple[str, str]]:
    """Pages with everything behind the verdicts, relative to the check's folder."""
    links = []
    for source in content["candidates"]:
        parts = [(name, part) for name, part in parts_of(content) if part["pools"] == source]
        if any("captured" in (part[ONE_STEP] or ()) for _, part in parts):
            links.append((f"{source}/one_step/report.html", f"{source} candidates, one step"))
        for name, part in parts:
            for kind, text in QUESTIONS.items():
                if "worth" in (part.get(kind) or ()):
                    path = f"{source}/{kind}/{name}/report.html"
                    links.append((path, f"{source} candidates, {name}, {text}"))
    return links


def _method(content: Check) -> list[tuple[str, str]]:
    record, settings = content["record"], content["settings"]
    return [
        ("Closed loop", content["closed_loop_rule"]),
        ("Settings", ", ".join(f"{n} {x}" for n, x in settings.items() if x is not None)),
        ("Data", record["train"]),
        ("Command", one_line(record["command"])),
        ("Code", record["commit"] or "unknown"),
        ("Versions", ", ".join(f"{name} {text}" for name, text in record["versions"].items())),
    ]
