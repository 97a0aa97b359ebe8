"""Embeddings phi(s, a) and psi(g) that were made elsewhere, for a value head on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from toptail.errors import InputError, option
from toptail.io.files import sha256
from toptail.lab.scorers.base import Rows, Score
from toptail.lab.scorers.user import CHECKPOINTS, read_checkpoint, user_code, user_function

if TYPE_CHECKING:
    from toptail.lab.tasks.files import Dataset
    from toptail.lab.training.data import TaskData

BLOCK = 65_536
"""Rows of one call, at most."""
FEW = 8
"""Rows that the widths are read from."""


@dataclass(frozen=True, eq=False)
class Embedding:
    """A user's embeddings, given as ``FILE.py:FUNCTION`` or ``ogbench:PATH``."""

    text: str
    """How it was named: a run on it names it the same way."""
    function: Callable[..., Any]
    """(states, actions, goals) -> phi [n, d] and psi [n, e]."""
    file: Path

    @classmethod
    def load(cls, text: str) -> Embedding:
        """A function of a user's file, or of a checkpoint whose critic has embeddings."""
        kind, _, place = text.partition(":")
        if kind not in CHECKPOINTS:
            return cls(text, *user_function(text, "embed"))
        path = Path(place).expanduser()
        critic = read_checkpoint(kind, path)
        if critic.embed is None:
            raise InputError(
                f"{option('embed', text)}: {critic.agent} has no phi(s, a) and psi(g) here; of "
                "checkpoints, OGBench's CRL has. Or write a function, FILE.py:FUNCTION."
            )
        return cls(text, critic.embed, path)

    @property
    def origin(self) -> dict[str, str]:
        """The name of the function and the hash of its file, for the record of a run."""
        return {"embed": self.text, "file_sha256": sha256(self.file)}

    def __call__(self, states: Rows, actions: Rows, goals: Rows) -> tuple[Rows, Rows]:
        """phi(s, a) and psi(g) of rows, checked."""
        with user_code(self.text, f"failed on {len(states)} rows"):
            phi, psi = self.function(states.copy(), actions.copy(), goals.copy())
            found = tuple(np.asarray(x, np.float32) for x in (phi, psi))
        for name, x in zip(("phi", "psi"), found, strict=True):
            if x.ndim != 2 or len(x) != len(states) or not x.shape[1] or not np.isfinite(x).all():
                raise InputError(
                    f"{self.text} returned a {name} of shape {x.shape} for {len(states)} rows: "
                    f"expected finite numbers of shape ({len(states)}, width)."
                )
        return found[0], found[1]

    def widths(self, dataset: Dataset) -> dict[str, int]:
        """The settings ``phi_dim`` and ``psi_dim`` of a head on it."""
        few = dataset.train.observations[:FEW], dataset.train.actions[:FEW]
        phi, psi = self(*few, few[0])
        return {"phi_dim": phi.shape[1], "psi_dim": psi.shape[1]}

    def beside(self, data: TaskData, dataset: Dataset) -> TaskData:
        """The data with the embeddings of every row, computed once, and of the probe's triples."""
        train = dataset.train
        parts = (slice(i, i + BLOCK) for i in range(0, len(train), BLOCK))
        rows = [self(train.observations[at], train.actions[at], train.observations[at])
                for at in parts]  # fmt: skip
        extra = np.concatenate([np.concatenate(both, axis=1) for both in rows])
        probe, none = data.probe, data.probe.actions[:, :0]
        phi, psi = self(probe.states, probe.actions, probe.goals)
        others = probe.others
        if others is not None:
            others = self(probe.states, probe.actions, others)[1]
        probe = replace(probe, states=phi, actions=none, goals=psi, others=others)
        return replace(data.with_extra(extra, **self.origin), probe=probe)

    def scored(self, score: Score) -> Score:
        """A score of rows from one of embeddings, which takes phi as states and psi as goals."""
        return partial(_score, self, score)


def _score(embedding: Embedding, score: Score, states: Rows, actions: Rows, goals: Rows) -> Rows:
    phi, psi = embedding(states, actions, goals)
    return score(phi, phi[:, :0], psi)


def recorded(where: Path, origin: dict[str, str]) -> Embedding:
    """The embeddings that a run was trained on, refused if their file has changed."""
    text = origin["embed"]
    embedding = Embedding.load(text)
    if embedding.origin["file_sha256"] != origin["file_sha256"]:
        raise InputError(
            f"{where} was trained on embeddings of {text}, and {embedding.file} has changed since: "
            "bring that file back, or train the head again."
        )
    return embedding
