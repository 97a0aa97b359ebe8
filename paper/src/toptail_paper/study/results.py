"""What a study left in its folder, as its page, figures and tables want to see it.

Reads stored files only: no scores, no networks. A part that a run did not make is empty, and what
would be drawn from it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError
from toptail.io.files import entries
from toptail.io.json_files import read_json_if_exists, write_json
from toptail.lab.tasks.trajectories import Trajectories
from toptail.report.text import join, plural

FILE: Final = "scale.json"

SIZES: Final = ("steps", "batch_size", "hidden")
"""What is known of a trained network's size: optimizer steps, rows per step, hidden layers."""


def read_scale(folder: Path) -> dict[str, Any]:
    """What a folder says about its scale; empty where it says nothing."""
    return read_json_if_exists(folder / FILE) or {}


def note_data(folder: Path, task: str, train: Trajectories) -> None:
    size = {"transitions": len(train.transitions), "trajectories": len(train.ends)}
    _note_of_task(folder, task, "data", size)


def note_critics(folder: Path, task: str, origins: Iterable[Mapping[str, Any]]) -> None:
    """Store the sizes of the trained networks that a task is scored with.

    Of a network's runs the smallest numbers count; other networks that were noted before stay.
    """
    found: dict[str, dict[str, Any]] = {}
    for origin in origins:
        if "critic_fields" in origin:  # a user's function has no training that is known here
            sizes = {"hidden": hidden_layers(origin["critic_fields"]), **origin}
            least = found.setdefault(str(origin["critic"]), {})
            least |= {n: min(least.get(n, sizes[n]), sizes[n]) for n in SIZES}
    if found:
        _note_of_task(folder, task, "critics", found)


def _note_of_task(folder: Path, task: str, name: str, content: Mapping[str, Any]) -> None:
    """Add an entry of one task to ``scale.json``; entries of other tasks stay."""
    tasks = read_scale(folder).get("tasks", {})
    entry = tasks.get(task, {})
    added = {**entry, name: {**entry.get(name, {}), **content}}
    note(folder, tasks={**tasks, task: added})


def note(folder: Path, **entries: Any) -> None:
    """Store more about a folder's scale; the file is written only if that is new."""
    scale = read_scale(folder)
    if {name: scale.get(name) for name in entries} != entries:
        write_json(folder / FILE, scale | entries)


def hidden_layers(fields: Mapping[str, Any]) -> list[int]:
    """Widths of the hidden layers among a learner's fields, its encoders' where it has those."""
    return [int(width) for width in next(_hidden(fields), ())]


def _hidden(fields: Mapping[str, Any]) -> Iterator[Sequence[int]]:
    for name, value in fields.items():
        if name == "hidden":
            yield value
        elif isinstance(value, Mapping):
            yield from _hidden(value)


def scale_rows(scale: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Lines of a page's method: how much data there was, and how large the networks were."""
    tasks: Mapping[str, Any] = scale.get("tasks", {})
    data, training = [], []
    for name, entry in tasks.items():
        if "data" in entry:
            size = entry["data"]
            data.append(
                f"{name}: {plural(size['transitions'], 'transition')} of "
                f"{plural(size['trajectories'], 'trajectory', 'trajectories')}"
            )
        alike: dict[str, list[str]] = {}
        for critic, sizes in entry.get("critics", {}).items():
            alike.setdefault(_sizes(sizes), []).append(critic)
        where = f"{name}: " if len(tasks) > 1 else ""
        training += [f"{where}{words} ({join(critics)})" for words, critics in alike.items()]
    rows = [("Training data", "; ".join(data)), ("Training", "; ".join(training))]
    if "deployment" in scale:
        size = scale["deployment"]
        episodes = f"{size['episodes_per_goal']} episodes per goal"
        rows.append(("Deployment", f"actors of {size['actor_steps']:,} steps, {episodes}"))
    return [(label, text) for label, text in rows if text]


def _sizes(sizes: Mapping[str, Any]) -> str:
    layers = "×".join(str(width) for width in sizes["hidden"]) or "none"
    return f"{sizes['steps']:,} steps, batch {sizes['batch_size']:,}, hidden layers {layers}"


def short_words(scale: Mapping[str, Any]) -> str:
    """Say that the page has no ledger, and why; empty where nothing is short."""
    short = scale.get("short", ())
    if not short:
        return ""
    return (
        "Numbers without a ledger: the paper's statements are decided at the declared scale alone, "
        f"and this run is smaller in {'; '.join(short)}."
    )


@dataclass(frozen=True)
class StudyResults:
    """What every study's folder holds for a reader."""

    config: Mapping[str, Any]
    """The study's configuration; empty where a user put the files there."""
    record: Mapping[str, Any]
    """Command, versions, commit, seconds; empty where a user put the files there."""
    tables: Mapping[str, Mapping[str, Any]]
    """``tables/*.json`` by name."""
    claims: Sequence[Mapping[str, Any]]
    """``claims.json``; empty where the paper's statements were not decided."""
    scale: Mapping[str, Any]
    """``scale.json``; empty where the sizes of the run are unknown."""

    def rows(self, table: str) -> Mapping[str, Any]:
        """Rows of a table: task → scorer → metric → cell; empty where there is no such table."""
        rows: Mapping[str, Any] = self.tables.get(table, {}).get("rows", {})
        return rows

    @property
    def has_paper(self) -> bool:
        return any(table.get("paper") for table in self.tables.values())


def common_parts(folder: Path, study: str = "") -> dict[str, Any]:
    """What `StudyResults` holds, by name; a folder without a run of the ``study`` is refused."""
    if study and not (folder / "config.json").is_file():
        raise InputError(
            f"{folder} holds no study (config.json is missing); run 'toptail-paper study {study} "
            f"--out {folder}' first."
        )
    return {
        "config": (read_json_if_exists(folder / "config.json") or {}).get("config", {}),
        "record": read_json_if_exists(folder / "record.json") or {},
        "tables": {p.stem: read_json_if_exists(p) for p in entries(folder / "tables", "*.json")},
        "claims": read_json_if_exists(folder / "claims.json") or [],
        "scale": read_scale(folder),
    }
