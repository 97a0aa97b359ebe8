"""Stored scores as tables and figures read them: no network is needed, nor JAX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail.lab.training.runs import digest
from toptail.pools.columns import group_seeds, split_seed
from toptail.stats.best_of_k import Floats
from toptail_paper.semantics.config import DRAWS, ORACLE, PROPOSALS, VALUES, Beside
from toptail_paper.study.naming import PAPER_TASKS
from toptail_paper.study.store import Stored, columns
from toptail_paper.triples.scored import ScoredTriples

_FAMILIES = ("scores", "negatives", "hard_negatives", "second_goals", "next_scores", "query_means")
"""What is stored of every column, as far as it was scored."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SupportPools:
    """Candidates at one (s, g) each, half of them actions of near states."""

    trajectory: Ints
    """The trajectory of each query's anchor, ``[q]``."""
    on_support: NDArray[np.bool_]
    """Whether the candidate is the action of one of the nearest states, ``[q, pool]``."""
    scores: Mapping[str, Floats]
    """Column to the candidates' scores at the query's (s, g), ``[q, pool]``."""


@dataclass(frozen=True, eq=False)
class DiffusionPools:
    """One behaviour-model action per triple's (s, g), in place of the recorded one."""

    values: Floats
    """The oracle's value of (s, action, g), ``[n]``."""
    scores: Mapping[str, Floats]
    """Column to the score of (s, action, g), ``[n]``."""


@dataclass(frozen=True, eq=False)
class TaskScores:
    """Everything that was scored on one task."""

    task: str
    key: str
    """Name in tables: the paper's, where the data set is the paper's."""
    navigation: bool
    """Whether gamma^d is a value there, so that every diagnostic applies; else retrieval only."""
    triples: ScoredTriples
    """All columns but the oracle's, which is ``values["oracle"]`` where there is one."""
    origins: Mapping[str, dict[str, Any]]
    """Column to where it comes from, the oracle's included."""
    made_from: Mapping[str, str]
    """Column to a hash of every stored file that its diagnostics are made from."""
    query_std: Mapping[str, Floats] = field(default_factory=dict)
    """Column to the standard deviation of the behaviour actions' scores at (s, g), ``[n]``."""
    support: Mapping[tuple[int, str], SupportPools] = field(default_factory=dict)
    """(n_near, "row" or "trajectory") to the pools; empty unless ``navigation``."""
    diffusion: Mapping[int, DiffusionPools] = field(default_factory=dict)
    """Behaviour-model seed to its pools; empty without behaviour models or without an oracle."""
    loss_gaps: Mapping[int, dict[str, float]] = field(default_factory=dict)
    """Behaviour-model seed to its ``train``, ``held_out``, ``gap``, ``low`` and ``high`` loss."""

    def only(self, column: str) -> TaskScores:
        """The task with one column of scores: what a process needs to measure it."""

        def own(columns: Mapping[str, Any]) -> dict[str, Any]:
            return {name: array for name, array in columns.items() if name == column}

        def pools(found: Mapping[Any, Any]) -> dict[Any, Any]:
            return {name: replace(each, scores=own(each.scores)) for name, each in found.items()}

        t = self.triples
        readouts = {n: array for n, array in t.readouts.items() if readout_of(n)[0] == column}
        families: dict[str, Any] = {name: own(getattr(t, name)) for name in _FAMILIES}
        return replace(
            self,
            triples=replace(t, readouts=readouts, **families),
            query_std=own(self.query_std),
            support=pools(self.support),
            diffusion=pools(self.diffusion),
        )


def read_tasks(out: str | Path, beside: Beside = "") -> list[TaskScores]:
    """Every task that has scores in a folder: the paper's tasks first, in its order.

    Beside the study's own columns, which every task must have, a task may have columns on draws
    of their own: `SWEEP` (``binary_nce-0.05@0``, scores and negatives alone) and `SEEN`.
    """
    folders = task_folders(_existing(out) / beside)
    return [_task_scores(folder) for folder in folders if not beside or stored_columns(folder)]


def read_task(out: str | Path, task: str) -> TaskScores:
    """One task's scores, by the data set's name, the paper's, or the path of its file."""
    folder = _existing(out) / PAPER_TASKS.get(task, Path(task).name.removesuffix(".npz"))
    if not (folder / f"{DRAWS}.npz").is_file():
        stored = ", ".join(each.name for each in task_folders(folder.parent)) or "none"
        raise InputError(
            f"{out} has no scores of the task '{task}' (stored are: {stored}); score it first, "
            f"with {option('runs')}."
        )
    return _task_scores(folder)


def _existing(out: str | Path) -> Path:
    folder = Path(out) / "scores"
    if not folder.is_dir():
        raise InputError(
            f"{out} holds no scores: make them with {option('runs')}, or name another "
            f"{option('out')}."
        )
    return folder


def task_folders(folder: Path) -> list[Path]:
    """The tasks' folders that have draws, the paper's first, in its order."""
    paper = list(PAPER_TASKS.values())

    def place(path: Path) -> tuple[int, str]:
        return paper.index(path.name) if path.name in paper else len(paper), path.name

    return sorted((path.parent for path in entries(folder, f"*/{DRAWS}.npz")), key=place)


def stored_columns(folder: Path) -> list[str]:
    """The columns of a task's folder, seeds of a scorer in the order of their numbers."""

    def place(column: str) -> tuple[str, int]:
        name, seed = split_seed(column)
        return name, -1 if seed is None else int(seed)

    return sorted(columns(folder).keys() - {DRAWS, PROPOSALS}, key=place)


def _read_folder(folder: Path) -> tuple[Stored, dict[str, Stored], Stored | None]:
    """Draws, columns by name, and proposals where there are any; all must fit together."""
    draws = Stored.read(folder / f"{DRAWS}.npz")
    on_draws = {DRAWS: draws.sha256}
    behind = folder / f"{PROPOSALS}.npz"
    proposals = Stored.read(behind, on_draws) if behind.is_file() else None
    made_from = {**on_draws, PROPOSALS: None if proposals is None else proposals.sha256}
    found = {
        column: Stored.read(folder / f"{column}.npz", made_from)
        for column in stored_columns(folder)
    }
    group_seeds(found)  # refuses a scorer that stands both alone and with seeds
    return draws, found, proposals


def _task_scores(folder: Path) -> TaskScores:
    draws, found, proposals = _read_folder(folder)
    reference = [column for column in found if split_seed(column)[0] == ORACLE]
    origins = {column: dict(stored.header["origin"]) for column, stored in found.items()}
    judge = found.pop(reference[0]) if reference else None
    on_draws = {DRAWS: draws.sha256}
    beside = {name: Stored.read(path, on_draws) for name, path in columns(folder / VALUES).items()}
    values = {} if judge is None else {ORACLE: judge.arrays["scores"]}
    values |= {name: stored.arrays["values"] for name, stored in beside.items()}
    if not found:
        raise InputError(f"{folder} holds no column of a critic: score one with {option('runs')}.")
    gaps = {} if proposals is None else proposals.header["loss_gaps"]
    return TaskScores(
        task=draws.header["task"],
        key=draws.header["key"],
        navigation=draws.header["navigation"],
        triples=_triples(draws, found, folder, values),
        origins=origins,
        made_from=_made_from(found, judge, beside),
        query_std=_family(found, "query_std"),
        support=_support(draws, found),
        diffusion={} if judge is None else _diffusion(found, judge),
        loss_gaps={int(seed): gap for seed, gap in gaps.items()},
    )


def _made_from(
    found: Mapping[str, Stored], reference: Stored | None, beside: Mapping[str, Stored]
) -> dict[str, str]:
    """Column -> hash of its file and the judges'; the draws' and proposals' are in its header."""
    judges = {
        ORACLE: None if reference is None else reference.sha256,
        VALUES: {name: stored.sha256 for name, stored in beside.items()},
    }
    return {column: digest({"column": stored.sha256, **judges}) for column, stored in found.items()}


def _family(found: Mapping[str, Stored], name: str) -> dict[str, NDArray[Any]]:
    return {
        column: stored.arrays[name] for column, stored in found.items() if name in stored.arrays
    }


def _triples(
    draws: Stored, found: Mapping[str, Stored], folder: Path, values: Mapping[str, NDArray[Any]]
) -> ScoredTriples:
    rows = draws.arrays
    return ScoredTriples(
        rows=rows["rows"],
        goal_rows=rows["goal_rows"],
        trajectory=rows["trajectory"],
        gamma=draws.header["gamma"],
        negative_rows=rows.get("negative_rows"),
        hard_negative_rows=rows.get("hard_negative_rows"),
        second_goal_rows=rows.get("second_goal_rows"),
        readouts=_readouts(found),
        step_reward=_step_rewards(found, folder),
        values=values,
        source=str(folder),
        **{name: _family(found, name) for name in _FAMILIES},
    )


def _readouts(found: Mapping[str, Stored]) -> dict[str, NDArray[Any]]:
    """``raw:cosine@42``: the readout ``cosine`` of the column ``raw@42``."""
    result = {}
    for column, stored in found.items():
        scorer, seed = split_seed(column)
        for name, array in stored.under("readout").items():
            result[f"{scorer}:{name}" + ("" if seed is None else f"@{seed}")] = array
    return result


def readout_of(name: str) -> tuple[str, str]:
    """``raw:cosine@42`` is the readout ``cosine`` of the column ``raw@42``."""
    scorer_readout, seed = split_seed(name)
    scorer, _, readout = scorer_readout.rpartition(":")
    return (scorer if seed is None else f"{scorer}@{seed}"), readout


def _step_rewards(found: Mapping[str, Stored], folder: Path) -> dict[str, float]:
    rewards: dict[str, float] = {}
    for column, stored in found.items():
        scorer, reward = split_seed(column)[0], float(stored.header["step_reward"])
        if rewards.setdefault(scorer, reward) != reward:
            raise InputError(
                f"{folder}: the seeds of '{scorer}' have different step rewards, "
                f"{rewards[scorer]:g} and {reward:g}; seeds of one scorer must be of one training."
            )
    return rewards


def _support(draws: Stored, found: Mapping[str, Stored]) -> dict[tuple[int, str], SupportPools]:
    pools = {}
    for name, on_support in draws.under("on_support").items():
        exclusion, n_near = name.split("/")
        trajectory = draws.arrays["trajectory"][: len(on_support)]
        scores = _family(found, f"support/{name}")
        pools[int(n_near), exclusion] = SupportPools(trajectory, on_support, scores)
    return pools


def _diffusion(found: Mapping[str, Stored], judge: Stored) -> dict[int, DiffusionPools]:
    return {
        int(seed): DiffusionPools(values, _family(found, f"diffusion/{seed}"))
        for seed, values in judge.under("diffusion").items()
    }
