"""The declared scale: how large a run must be before it decides what the paper says.

The sizes are the paper's where it states them, and else those that the published results were made
at. A larger run decides as well; a smaller one shows its numbers and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from toptail.lab.critics.registry import names
from toptail.lab.tasks.names import parse_name, published_recipe
from toptail.report.text import join
from toptail_paper.study.naming import PAPER_TASKS

DECLARED: Final[Mapping[str, Mapping[str, int | tuple[int, ...]]]] = {
    "controlled": {
        "steps": 3_000,
        "batch_size": 256,
        "data_size": 50_000,
        "seeds": 5,
        "queries": 500,
        "pool": 256,
        "critics.hidden": (64, 64),
    },
    "semantics": {"triples": 3_000, "negatives": 49, "support_queries": 500, "seeds": 3},
    "selection": {
        "queries.per_group": 500,
        "pools.count": 5,
        "pools.size": 64,
        "seeds": 3,
        "reference.seeds": 3,
    },
}
"""Study -> setting -> the least that it may be; of seeds, how many there are."""

TRAINED: Final[Mapping[str, int | tuple[int, ...]]] = {
    "steps": 100_000,
    "batch_size": 1_024,
    "hidden": (512, 512, 512),
}
"""The least that a trained critic of the paper may have, outside the 2-D world."""

ASKED: Final = names("main", "two_head", "control")
"""Critics that the paper speaks of."""

DEPLOYED: Final[Mapping[str, int]] = {"actor_steps": 100_000, "episodes_per_goal": 20}
"""The least that a deployment may have done."""

PLAY_STEPS: Final = 50_000
"""Optimizer steps on manipulation data."""

WORDS: Final[Mapping[str, str]] = {
    "actor_steps": "actors' steps",
    "data_size": "transitions",
    "episodes_per_goal": "episodes per goal",
    "batch_size": "batch size",
    "critics.hidden": "hidden layers",
    "hidden": "hidden layers",
    "pool": "candidates per pool",
    "pools.size": "candidates per pool",
    "pools.count": "pools per query",
    "queries.per_group": "queries per distance group",
    "support_queries": "support queries",
    "reference.seeds": "reference seeds",
}
"""What a sentence calls a setting, where that is not its name."""


def shortfalls(study: str, config: Mapping[str, Any], scale: Mapping[str, Any]) -> list[str]:
    """In what a run is smaller than declared: ``steps, 400 of 3,000``; empty where in nothing.

    ``config`` is the study's own, ``scale`` what its folder holds of data and networks. What
    neither says counts as large enough.
    """
    found = [_short(name, _at(config, name), least) for name, least in DECLARED[study].items()]
    deployed = scale.get("deployment", {})
    found += [_short(name, deployed.get(name), least) for name, least in DEPLOYED.items()]
    for task, entry in scale.get("tasks", {}).items():
        if task in PAPER_TASKS.values():
            words = (words for words in _of_task(task, entry) if words)
            found += [f"{text} on {task}" for text in words]
    return list(dict.fromkeys(words for words in found if words))


def stated(study: str, config: Mapping[str, Any]) -> str:
    """A run's own sizes, of those that are declared: ``steps 3,000, batch size 256``."""
    found = {name: _at(config, name) for name in DECLARED[study]}
    shown = {
        WORDS.get(name, name): "×".join(map(str, x)) if isinstance(x, list) else f"{x:,}"
        for name, x in found.items()
        if x is not None
    }
    return ", ".join(f"{name} {text}" for name, text in shown.items())


def _of_task(task: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """What is too small on one of the paper's tasks: data, and the critics that it speaks of."""
    name = parse_name(task)
    recipe = published_recipe(name)
    if recipe is not None and "data" in entry:
        published = recipe.episodes * (recipe.rows - 1)
        yield _short("transitions", entry["data"]["transitions"], published)
    steps = {} if name.is_maze else {"steps": PLAY_STEPS}
    spoken = {c: sizes for c, sizes in entry.get("critics", {}).items() if c in ASKED}
    for size, least in {**TRAINED, **steps}.items():
        alike: dict[str, list[str]] = {}
        for critic, sizes in spoken.items():
            alike.setdefault(_short(size, sizes.get(size), least), []).append(critic)
        yield from (f"{words} ({join(critics)})" for words, critics in alike.items() if words)


def _at(config: Mapping[str, Any], path: str) -> Any:
    """A setting of a stored configuration by its dotted path; None where there is none."""
    value: Any = config
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return len(value) if isinstance(value, list) and path.endswith("seeds") else value


def _short(name: str, value: Any, least: int | tuple[int, ...]) -> str:
    """Say that a size is less than it must be; empty where it is not, or where it is unknown."""
    if value is None:
        return ""
    if isinstance(least, tuple):
        enough = len(value) >= len(least) and min(value) >= min(least)
        value, shown = "×".join(map(str, value)), "×".join(map(str, least))
    else:
        enough, value, shown = value >= least, f"{value:,}", f"{least:,}"
    return "" if enough else f"{WORDS.get(name, name)}, {value} of {shown}"
