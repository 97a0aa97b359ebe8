"""The part of a page that says how long the pieces of ``toptail-paper all`` took, from records.

Trainings name their seconds in ``runs.json`` of the score semantics, stages of the studies in the
``record.json`` of each. Two trainings shared the accelerator when they were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from toptail.io.files import entries
from toptail.io.json_files import read_json
from toptail.report.text import count, number
from toptail_paper.claims.reported import published
from toptail_paper.selection.config import EXPERT_STAGE
from toptail_paper.study.markdown import markdown_table, wrapped
from toptail_paper.study.naming import task_title

TOGETHER: Final = 2
"""Trainings that share the accelerator."""
GPU: Final = "accelerator"
AIM: Final = 120
"""Minutes that all of it should take."""


def pieces() -> str:
    """Seconds of every kind of piece over all tasks, their sum, and the longest chain of a task."""
    trained = trainings()
    made = {kind: [s for _, kind_, s in stages() if kind_ == kind] for kind in KINDS}
    rows = [["critics and behaviour models", GPU, *_row(list(trained.values()))]]
    rows += [[words, where, *_row(made[kind])] for kind, (words, where) in KINDS.items()]
    accelerated = sum(trained.values()) / TOGETHER
    accelerated += sum(sum(made[kind]) for kind, (_, where) in KINDS.items() if where == GPU)
    cores = sum(sum(made[kind]) for kind, (_, where) in KINDS.items() if where != GPU)
    task, chain = max(chains().items(), key=lambda item: item[1])
    sentence = (
        f"On the accelerator that is {number(accelerated / 60, 0)} minutes, with two trainings at "
        f"a time, and beside it {number(cores / 60, 0)} minutes on the cores; collecting takes one "
        f"to three minutes a task. The longest chain that cannot be shortened by more accelerators "
        f"is {task_title(task)}'s, {number(chain / 60, 0)} minutes from its slowest training to "
        f"its tables. So the trainings bound it, and by this sum everything "
        f"{'fits' if accelerated / 60 < AIM else 'does not fit'} into {AIM} minutes on one H200 "
        "with 16 cores; in one go two tasks were run, not all. Rollouts of the walkers were those "
        "of one training seed here; with three they take about twice as long, on the cores."
    )
    head = ["piece", "runs on", "pieces", "seconds in sum", "longest"]
    return f"{markdown_table(head, rows)}\n{wrapped(sentence)}"


KINDS: Final = {
    "semantics": ("score semantics of a task", GPU),
    "scores": ("selection: pools, reference, scores", GPU),
    "deployment": ("actors and closed loops", GPU),
    "rollouts": ("rollouts", "cores"),
    "controlled": ("the controlled world", "cores"),
}
"""What the studies do beside training: words, and what it uses."""


@cache
def trainings() -> dict[tuple[str, ...], float]:
    """(Task, critic, seeds that were trained together) -> seconds."""
    runs: Mapping[str, Any] = read_json(published() / "semantics" / "runs.json")
    return {
        (*key.split("/")[:2], str(run["trained_with"])): float(run["seconds"])
        for key, run in runs.items()
    }


@cache
def stages() -> tuple[tuple[str, str, float], ...]:
    """(Folder of a study, kind, seconds) of every call that made a stored study.

    Ideal critics and `EXPERT_STAGE`, which ``toptail-paper all`` does not make, are left out.
    """
    found = []
    for path in entries(published(), "*/**/record.json"):
        folder = path.parent.relative_to(published())
        if folder.parts[0] not in ("semantics", "selection", "controlled"):
            continue
        record = read_json(path)
        for call in (record, *record.get("earlier", ())):
            words = call["command"].split()
            stage = words[words.index("--stage") + 1] if "--stage" in words else ""
            if "--ideals" in words or "ideals" in words or EXPERT_STAGE in stage:
                continue
            kind = next((k for k in ("deployment", "rollouts") if k in stage), "")
            kind = kind or ("scores" if stage else folder.parts[0])
            found.append((folder.as_posix(), kind, float(call["seconds"])))
    return tuple(found)


def chains() -> dict[str, float]:
    """Task -> seconds of what must follow one another: a training, scores, the longest stage."""
    found: dict[str, float] = {}
    for folder in {where for where, _, _ in stages() if where.startswith("selection/")}:
        task = folder.partition("/")[2]
        trained = max(s for (own, *_), s in trainings().items() if own == task)
        own = [(kind, s) for where, kind, s in stages() if where == folder]
        scored = max(s for kind, s in own if kind == "scores")
        found[task] = trained + scored + max(s for kind, s in own if kind != "scores")
    return found


def _row(seconds: list[float]) -> list[str]:
    return [str(len(seconds)), count(round(sum(seconds))), count(round(max(seconds)))]
