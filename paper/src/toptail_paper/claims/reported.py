"""The numbers that the paper reports, by label, in the nesting of the stored tables.

A label is only a name to a study; what the paper has under it is known here alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError

TDQ = ("tdq",)
RANKERS = ("raw", "cosine")
"""The critics the paper calls near-perfect retrievers."""
BOUNDED = ("cosine", "hybrid")
CONTRASTIVE = ("raw", "cosine", "hybrid")
CRITICS = (*TDQ, *CONTRASTIVE)

POINT, ANT, HUMANOID = CORE = ("PointMaze", "AntMaze", "HumanoidMaze")
SOCCER = "AntSoccer"
NAVIGATION = (*CORE, SOCCER)
DECLARED = (ANT, HUMANOID, SOCCER)
"""The tasks whose criteria were written down before a critic was trained on them."""
MANIPULATION = ("Cube-single", "Cube-double", "Scene", "Puzzle")
EIGHT = (*NAVIGATION, *MANIPULATION)

MAZE_JUDGES = ("exact", "euclidean")
"""Judges that know PointMaze's shortest ways; a claim asks the first that is stored."""
CONTINUOUS = "exact_continuous"
"""The exact judge without rounding to whole steps, which limits on tau_b are put to."""


VARIANTS: Final = "variants"
"""Folder of stored results of other settings than the main ones: ``variants/NAME/STUDY``."""

SHIPPED: Final = "published"
"""Folder of the stored results inside an installed package."""


@cache
def published() -> Path:
    """Where the stored results lie: inside the installed package, or in this checkout."""
    package = Path(str(files("toptail_paper")))
    for folder in (package / SHIPPED, package.parents[1] / "results"):
        if folder.is_dir():
            return folder
    raise InputError(
        "This installation has no stored results: install toptail from its wheel, or work in a "
        "checkout of its repository."
    )


def packaged(name: str) -> Any:
    """The content of a file beside this one."""
    return json.loads((files("toptail_paper.claims") / name).read_text(encoding="utf-8"))


Cells = dict[str, dict[str, dict[str, dict[str, Any]]]]
"""Task → row → metric → {"mean": …, "std": …, …}, as in a table's rows."""

WITHOUT_CELLS: Mapping[str, str] = {
    "tab:critics": "says what the critics are",
    "fig:cartoon": "a drawing",
    "fig:landscape": "drawn from one run; a claim asks for it",
    "fig:curse": "drawn from curves; claims ask for them",
    "fig:toy-regret": "drawn from curves; claims ask for them",
    "fig:calibration": "drawn from curves; claims ask for them",
    "fig:good-rankers": "drawn from curves; claims ask for them",
    "fig:ogbench-curse": "drawn from curves; tab:ogbench-curse has the numbers",
    "fig:ogbench-drift": "drawn from curves; tab:robustness has the numbers",
}
"""The paper's tables and figures that have no cells here, and why."""


def cells(label: str, tasks: Mapping[str, Any]) -> Cells:
    """What the paper reports under a label; empty where it reports nothing.

    A label is the paper's, or the name of a table that the paper does not have. The paper speaks
    of some tables on one task alone, which must be among ``tasks``.
    """
    if label == "judges":
        return _judges()
    if label == "deployment":
        return _deployment(tasks)
    if label == "tab:function-class" and POINT not in tasks:
        return {}
    entry = _reported().get(label, {})
    rows: Cells = entry.get("rows", {})
    return _with(entry["each"], rows) if "each" in entry else rows


def _with(each: Mapping[str, Any], rows: Cells) -> Cells:
    """The cells with what holds for each of them: ``seeds``, or a ``std`` that is a bound."""
    return {
        task: {row: {m: {**cell, **each} for m, cell in ms.items()} for row, ms in critics.items()}
        for task, critics in rows.items()
    }


def labels() -> tuple[str, ...]:
    """Every label of the paper that has numbers here."""
    return tuple(label for label in _reported() if label.startswith("tab:"))


def _judges() -> Cells:
    spearman = _reported()["tab:fixed-query"]["reference_spearman"]
    return {task: {"reference": {"spearman": {"mean": rho}}} for task, rho in spearman.items()}


def _deployment(tasks: Mapping[str, Any]) -> Cells:
    prose = _reported()["prose"]
    success = prose["closed_loop_pointmaze_tdq_success"]
    tdq = {f"closed_loop/{k}": {"mean": rate} for k, rate in success.items()}
    tdq["score_spread"] = {"mean": prose["score_spread_tdq"]}
    policy = {"actor_success": {"mean": prose["antsoccer_value_policy_success"]}}
    return {POINT: {"tdq": tdq}} | ({SOCCER: {"tdq": policy}} if SOCCER in tasks else {})


@cache
def _reported() -> dict[str, Any]:
    content: dict[str, Any] = packaged("reported.json")
    return content
