"""Scorers of trained runs: by critic and seed, or by folders and patterns. Needs JAX to score."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.files import entries
from toptail.lab.critics.registry import CRITICS, Entry, Readout, entry, without_settings
from toptail.lab.scorers.base import Rows, Score, Scorer, Towards
from toptail.lab.scorers.embeddings import recorded
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.training.config import RunConfig, labelled
from toptail.lab.training.runs import RECORD, Run, differences, read_run, run_folder

if TYPE_CHECKING:
    from toptail.lab.critics.base import TrainedCritic

_TRAINED_WITH = (
    *("steps", "batch_size", "learning_rate", "bfloat16", "reward", "settings", "critic_fields"),
)

SMALLEST_BLOCK = 256
"""Rows of one compiled call, at least; others are filled up to a power of two."""


@dataclass(frozen=True, eq=False)
class RunScore:
    """A readout of a run in float32; rows are filled up to a power of two, so few sizes compile."""

    trained: Callable[[], TrainedCritic]
    """Loads the run's critic at the first call."""

    readout: str

    def __call__(self, states: Rows, actions: Rows, goals: Rows) -> Rows:
        rows = (_filled(x) for x in (states, actions, goals))
        with _full_precision():
            return self._critic().score(*rows)[: len(states)]

    def towards(self, goals: Rows) -> Towards | None:
        """Embed goals once, for a function that scores pairs towards them.

        Returns
        -------
        (states [p, s], actions [p, a], asked [n, 2]) -> scores [n], where ``asked`` has the
        numbers of a pair and of a goal; None if the readout has no factors.
        """
        critic = self._critic()
        with _full_precision():
            psi = critic.embed_goals(_filled(goals))
        if psi is None:
            return None

        def score(states: Rows, actions: Rows, asked: IntArray) -> Rows:
            with _full_precision():
                scores = critic.score_pairs(_filled(states), _filled(actions), psi, _filled(asked))
            return scores[: len(asked)]

        return score

    def ascend(
        self, states: Rows, actions: Rows, goals: Rows, steps: int, rate: float
    ) -> tuple[Rows, Rows]:
        """Gradient ascent from actions ``[n, starts, a]``: where it ends, and the scores there."""
        from toptail.lab.scorers.base import climber

        critic, n = self._critic(), len(states)
        climb = climber(critic.critic, self.readout, steps, rate)
        state, first, goal = (_filled(x) for x in (states, actions, goals))
        with _full_precision():
            ends, scores = climb(critic.params, state[:, None], first, goal[:, None])
        return np.asarray(ends)[:n], np.asarray(scores)[:n]

    def _critic(self) -> TrainedCritic:
        return replace(self.trained(), readout=self.readout)


def _full_precision() -> AbstractContextManager[Any]:
    """Products in float32 on every device."""
    import jax

    precision: AbstractContextManager[Any] = jax.default_matmul_precision("highest")
    return precision


def _filled(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows filled up with zeros to a power of two of them."""
    n = len(rows)
    more = max(SMALLEST_BLOCK, 1 << (n - 1).bit_length()) - n
    return np.pad(rows, [(0, more), *[(0, 0)] * (rows.ndim - 1)])


def of_run(home: Path, seed: int, task: str, readout: str = "") -> list[Scorer]:
    """The scorers of the run ``HOME/seed-N``: none without such a run, two for a two-head critic.

    With a ``readout``, that one alone: an ensemble's minimum, say. Whatever precision it was
    trained in, a run is read in float32: see `load_run`.
    """
    folder = run_folder(home, seed)
    if not (folder / RECORD).is_file():
        return []
    import jax

    from toptail.lab.training.runs import load_run, stored_config

    run = read_run(folder)

    @cache
    def trained() -> TrainedCritic:
        loaded = load_run(folder, task, in_float32=True)
        return replace(loaded, params=jax.device_put(loaded.params))

    if run.state != "finished":
        trained()  # raises the error of an unfinished run
    stored = stored_config(run)
    critic = entry(str(run.config["critic"]))
    _require_label(run, stored)
    extra = run.record["data"].get("extra", {})
    embedding = recorded(folder, extra) if "embed" in extra else None

    def score(readout: str) -> Score:
        own = RunScore(trained, readout)
        return own if embedding is None else embedding.scored(own)

    return [
        Scorer(
            f"{_labelled(scorer, critic.name, home.name)}@{seed}",
            score(read.name),
            run_origin(run) | {"readout": read.name, "read_in": "float32"},
            read.step_reward(str(run.config["reward"])),
            {ours: score(theirs) for ours, theirs in critic.beside.items()},
        )
        for scorer, read in _scorers(critic, readout).items()
    ]


def _scorers(critic: Entry, readout: str) -> dict[str, Readout]:
    """A critic's scorers by their column names, or one readout as a scorer."""
    if not readout:
        return critic.scorers
    known = {each.name: each for each in critic.readouts}
    if readout not in known:
        raise InputError(
            f"{critic.name} has no readout '{readout}'; its readouts are {', '.join(known)}."
        )
    if readout == critic.deployed:
        return {critic.name: known[readout]}
    return {f"{critic.name}.{readout}": known[readout]}


def of_runs(home: Path, critics: Iterable[str], seeds: Iterable[int], task: str) -> list[Scorer]:
    """The scorers of the existing runs ``HOME/CRITIC/seed-N``, critic by critic."""
    pairs = product(critics, seeds)
    return [scorer for critic, seed in pairs for scorer in of_run(home / critic, seed, task)]


def of_folders(
    folders: Iterable[Path], name: str, task: str, train: Trajectories, readout: str = ""
) -> list[Scorer]:
    """The scorers of runs given by their folders, which must be trained on this data.

    With a ``name`` a run is called that; the second head of a critic adds its own name, and so
    does a ``readout``, which is then read alone.
    """
    from toptail.lab.training.runs import require_data

    scorers = []
    for folder in folders:
        seed = folder.name.removeprefix("seed-")
        found = of_run(folder.parent, int(seed), task, readout) if seed.isdecimal() else []
        for scorer in found:
            require_data(scorer.origin["run"], scorer.origin["data"], train.source, train.sha256)
        scorers += [_renamed(scorer, name, folder) for scorer in found] if name else found
    return scorers


def _renamed(scorer: Scorer, name: str, run: Path) -> Scorer:
    own, _, seed = scorer.column.rpartition("@")
    label = run.parent.name if "[" in run.parent.name else str(scorer.origin["critic"])
    return replace(scorer, column=f"{name}{own.removeprefix(label)}@{seed}")


def critics_in(home: Path) -> list[str]:
    """All critics, each followed by its variants that have a folder in ``RUNS/TASK``.

    ``cosine[temperature=0.1]`` is such a variant.
    """
    folders = [path.name for path in entries(home) if path.is_dir()] if home.is_dir() else []
    labels = sorted(name for name in folders if "[" in name)
    found = {critic: [x for x in labels if without_settings(x) == critic] for critic in CRITICS}
    return [x for critic, variants in found.items() for x in (critic, *variants)]


def _labelled(scorer: str, critic: str, folder: str) -> str:
    """A scorer's name with the settings that the name of its run's folder has."""
    return folder + scorer.removeprefix(critic) if "[" in folder else scorer


def _require_label(run: Run, stored: RunConfig) -> None:
    """Refuse a run whose folder names other settings than it was trained with."""
    label = run.folder.parent.name
    changed = differences(stored.content, labelled(stored, label).content) if "[" in label else []
    if changed:
        raise InputError(
            f"{run.folder} was trained with other settings than its folder's name says, "
            f"{changed[0]}: name the folder by the settings in its config.json."
        )


def run_origin(run: Run) -> dict[str, Any]:
    config = run.config
    return {
        "run": "/".join(run.folder.parts[-3:]),
        "critic": config["critic"],
        "seed": run.record["seed"],
        "config_hash": run.config_hash,
        "params_sha256": run.record["params_sha256"],
        "data": run.record["data"]["train"],
        **{name: config[name] for name in _TRAINED_WITH},
    }
