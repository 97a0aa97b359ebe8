"""What would count as an answer: rules over the cells of a finished grid.

A cell meets a condition if the whole 95 % interval of its mean over seeds does, misses it if none
of the interval does, and is open otherwise. So a verdict is yes, no or open, never a mean that
happened to fall on one side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from toptail.errors import InputError
from toptail.lab.critics.registry import label_of, value_text
from toptail.stats import kendall_tau_b
from toptail_paper.study.tables import StoredCell

Met: TypeAlias = Literal["yes", "no", "open"]
"""Whether something holds, as far as the intervals tell."""

Cells: TypeAlias = Sequence[tuple[Mapping[str, str], Mapping[str, StoredCell]]]
"""Each cell's settings, and its metrics."""


@dataclass(frozen=True)
class Answer:
    """What would count as an answer, and the sentence for each verdict."""

    rule: str
    """Name of one of `RULES`."""
    yes: str
    """The sentence that is printed if the rule is met."""
    no: str
    """The sentence that is printed if it is missed."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Setting -> value, or list of values, of the cells that count; all unless given."""
    conditions: Sequence[Mapping[str, Any]] = ()
    """``{"metric": "auc", "low": 0.94, "high": 0.98}``: all of them, for "any" and "every"; one
    with a ``where`` of its own is for those cells alone."""
    metric: str = ""
    """The metric that must grow with ``along``, or follow ``predicted``."""
    along: str = ""
    """The setting that a metric grows with."""
    by: float = 0.0
    """The least growth of the metric from the first to the last value of ``along``."""
    predicted: str = ""
    """The metric that it must follow over the cells."""
    least: float = 1.0
    """The least rank correlation (Kendall's tau_b) with what is predicted."""
    targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Critic -> metric -> number that a data set's distance is measured to."""
    second: Mapping[str, str] = field(default_factory=dict)
    """Data set -> the same collected again: what chance alone moves."""
    limit: float | None = None
    """The largest distance at which settings count as those of the targets ("fingerprint")."""


def sentence(found: Mapping[str, Any] | None) -> str:
    """The verdict and its sentence; a trial, which decides nothing, says so."""
    return f"{found['verdict']}: {found['says']}" if found else "A trial: it answers nothing."


def counted_cells(answer: Answer, cells: Cells) -> Cells:
    return [cell for cell in cells if fits(answer.where, cell[0])]


def fits(where: Mapping[str, Any], settings: Mapping[str, str]) -> bool:
    """Whether a cell has these settings; a list has the values that a setting may have."""
    return all(
        settings.get(name) in [value_text(x) for x in (v if isinstance(v, list) else [v])]
        for name, v in where.items()
    )


def meets(condition: Mapping[str, Any], metrics: Mapping[str, StoredCell]) -> Met:
    """Whether a cell's interval lies inside a condition's; what is not computable misses it."""
    found = metrics.get(condition["metric"])
    if found is None or found["mean"] is None:
        return "no"
    ends = (found.get("low"), found.get("high"))
    low, high = (found["mean"] if end is None else end for end in ends)
    least, most = condition.get("low", -np.inf), condition.get("high", np.inf)
    if least <= low and high <= most:
        return "yes"
    return "no" if high < least or low > most else "open"


def _all(answer: Answer, settings: Mapping[str, str], metrics: Mapping[str, StoredCell]) -> Met:
    own = [c for c in answer.conditions if fits(c.get("where", {}), settings)]
    found = {meets(condition, metrics) for condition in own}
    return "no" if "no" in found else "open" if "open" in found else "yes"


def any_cell(answer: Answer, cells: Cells) -> dict[str, Any]:
    """Yes if some cell meets all conditions, no if every cell misses one."""
    met = [(settings, _all(answer, settings, metrics)) for settings, metrics in cells]
    named = {word: [dict(s) for s, found in met if found == word] for word in ("yes", "open")}
    verdict: Met = "yes" if named["yes"] else "open" if named["open"] else "no"
    return {"verdict": verdict, "cells": named["yes"], "undecided": named["open"]}


def every_cell(answer: Answer, cells: Cells) -> dict[str, Any]:
    """Yes if all cells meet all conditions, no if one misses one."""
    met = [(settings, _all(answer, settings, metrics)) for settings, metrics in cells]
    missed = [dict(s) for s, found in met if found == "no"]
    undecided = [dict(s) for s, found in met if found == "open"]
    verdict: Met = "no" if missed else "open" if undecided or not met else "yes"
    return {"verdict": verdict, "cells": missed, "undecided": undecided}


def _of(metrics: Mapping[str, StoredCell], name: str) -> StoredCell:
    """A cell's number; an empty one where all of its seeds failed."""
    return metrics.get(name, {"mean": None, "std": None, "seeds": {}})


def grows(answer: Answer, cells: Cells) -> dict[str, Any]:
    """Yes if the metric grows by enough between the ends of a setting, whatever else is set."""
    lines: dict[tuple[tuple[str, str], ...], dict[float, StoredCell]] = {}
    for settings, metrics in cells:
        rest = tuple(sorted((k, v) for k, v in settings.items() if k != answer.along))
        lines.setdefault(rest, {})[float(settings.get(answer.along, 0))] = _of(
            metrics, answer.metric
        )
    found, steps = [], []
    for rest, line in lines.items():
        first, last = line[min(line)], line[max(line)]
        # The ends are of different runs: their intervals count in full.
        ends = [last.get("low"), first.get("high"), last.get("high"), first.get("low")]
        if None in ends:
            found.append("open")
            continue
        low, high = (float(ends[i] or 0) - float(ends[i + 1] or 0) for i in (0, 2))
        steps.append({**dict(rest), "low": low, "high": high})
        found.append("yes" if low > answer.by else "no" if high < answer.by else "open")
    verdict = "yes" if set(found) == {"yes"} else "no" if "no" in found else "open"
    return {"verdict": verdict, "cells": steps}


def follows(answer: Answer, cells: Cells) -> dict[str, Any]:
    """Yes if the cells' means stand in the order that is predicted."""
    names = (answer.metric, answer.predicted)
    pairs = [[_of(metrics, name)["mean"] for name in names] for _, metrics in cells]
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    if len(known) < 3:
        return {"verdict": "open", "tau": None}
    tau = float(kendall_tau_b(*np.array(known).T))
    return {"verdict": "yes" if tau >= answer.least else "no", "tau": tau, "cells": len(known)}


def nearest(answer: Answer, cells: Cells) -> dict[str, Any]:
    """Which data set's numbers are nearest to the targets, in root mean square.

    Yes if the nearest leads the next by more than collecting again moves any distance; open where
    a distance is not known.
    """
    squares: dict[str, list[float]] = {}
    for settings, metrics in cells:
        for name, target in answer.targets.get(settings["critic"], {}).items():
            mean = _of(metrics, name)["mean"]
            error = np.inf if mean is None else mean - target
            squares.setdefault(settings["data"], []).append(float(error) ** 2)
    distance = {data: float(np.sqrt(np.mean(xs))) for data, xs in squares.items()}
    known = {data: d if np.isfinite(d) else None for data, d in distance.items()}
    if None in known.values():
        return {"verdict": "open", "nearest": None, "lead": None, "distances": known}
    moved = [abs(distance[a] - distance[b]) for a, b in answer.second.items()]
    first = sorted((d, data) for data, d in distance.items() if data not in answer.second.values())
    chance = max(moved, default=0.0)
    lead = first[1][0] - first[0][0] if len(first) > 1 else 0.0
    verdict: Met = "yes" if lead > chance else "open"
    return {"verdict": verdict, "nearest": first[0][1], "lead": lead, "chance": chance,
            "distances": distance}  # fmt: skip


def fingerprint(answer: Answer, cells: Cells) -> dict[str, Any]:
    """Which settings are nearest to the targets of several critics, in root mean square.

    A setting is a data set, a training length, and one variant of every critic that has targets. No
    if the nearest is further than the limit; yes if it leads every setting with other data by more
    than collecting again moves the nearest distance of a data set; open otherwise, with the
    settings that are not told apart.
    """
    errors: dict[tuple[str, str], dict[str, dict[str, list[float]]]] = {}
    for settings, metrics in cells:
        targets = answer.targets.get(settings["critic"])
        if targets:
            means = [_of(metrics, name)["mean"] for name in targets]
            squares = [
                np.inf if mean is None else (mean - target) ** 2
                for mean, target in zip(means, targets.values(), strict=True)
            ]
            place = errors.setdefault((settings["data"], settings["steps"]), {})
            place.setdefault(settings["critic"], {})[_variant(settings)] = squares
    found: list[dict[str, Any]] = []
    for (data, steps), of_critic in errors.items():
        if of_critic.keys() == answer.targets.keys():
            for variants in product(*(of_critic[critic] for critic in answer.targets)):
                named = dict(zip(answer.targets, variants, strict=True))
                squares = [x for critic, name in named.items() for x in of_critic[critic][name]]
                distance = float(np.sqrt(np.mean(squares)))
                if np.isfinite(distance):  # otherwise a number is missing
                    found.append({"data": data, "steps": steps, **named, "distance": distance})
    if not found:
        return {"verdict": "open", "settings": []}
    again = set(answer.second.values())
    nearest_of: dict[str, float] = {}
    for each in found:
        best = nearest_of.get(each["data"], np.inf)
        nearest_of[each["data"]] = min(best, each["distance"])
    moved = [
        abs(nearest_of[a] - nearest_of[b])
        for a, b in answer.second.items()
        if {a, b} <= nearest_of.keys()
    ]
    chance = max(moved, default=0.0)
    ranked = sorted((x for x in found if x["data"] not in again), key=lambda x: x["distance"])
    first = ranked[0]
    tied = [x for x in ranked[1:] if x["distance"] <= first["distance"] + chance]
    alone = all(x["data"] == first["data"] for x in tied)
    far = answer.limit is not None and first["distance"] > answer.limit
    verdict: Met = "no" if far else "yes" if alone else "open"
    return {"verdict": verdict, "nearest": first, "tied": tied, "chance": chance,
            "settings": found}  # fmt: skip


def _variant(settings: Mapping[str, str]) -> str:
    """A cell's critic with its own settings, as one name."""
    own = {k: v for k, v in settings.items() if k not in ("critic", "data", "steps")}
    return label_of(settings["critic"], own)


RULES: Final[Mapping[str, Callable[[Answer, Cells], dict[str, Any]]]] = {
    "any": any_cell,
    "every": every_cell,
    "grows": grows,
    "follows": follows,
    "nearest": nearest,
    "fingerprint": fingerprint,
}


STANDS: Final[Mapping[str, Met]] = {"any": "yes", "every": "no"}
"""The verdict of a rule that missing cells cannot change."""


def decide(
    answer: Answer, cells: Cells, missing: Sequence[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """The verdict of a grid's own rule, with the sentence that was declared for it.

    ``missing`` are the settings of cells that were not run yet: with one that the answer asks for,
    only what it could not change is said.
    """
    own = counted_cells(answer, cells)
    lacking = [dict(settings) for settings in missing if fits(answer.where, settings)]
    if not own and not lacking:
        raise InputError(f"No cell has the settings {dict(answer.where)} that the answer asks for.")
    words = {"yes": answer.yes, "no": answer.no, "open": "The intervals do not decide it."}
    stands = STANDS.get(answer.rule)
    found: dict[str, Any] = {"verdict": "open"}
    if stands or not lacking or answer.rule == "fingerprint":  # shows distances of what is there
        found = RULES[answer.rule](answer, own)
    if lacking:
        found["missing"] = lacking
        if found["verdict"] != stands:
            found["verdict"] = "open"
            words["open"] = f"{len(lacking)} of {len(own) + len(lacking)} cells are missing."
    return {**found, "says": words[found["verdict"]]}
