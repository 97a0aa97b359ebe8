"""A data set as a training session wants it: rows on the device, and a held-out probe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toptail.errors import InputError
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.triples import GAMMA
from toptail.lab.training.config import LearnerConfig
from toptail.lab.training.diagnostics import Probe
from toptail.lab.training.memory import check_fits, data_shapes, free_bytes, tree_bytes
from toptail.lab.training.offline import OfflineData, device_data
from toptail.lab.training.programs import state_shapes, width


@dataclass(frozen=True, eq=False)
class TaskData:
    """Shared by all critics and seeds of a task."""

    rows: OfflineData
    """The training split, on the device."""

    probe: Probe
    """Triples of the validation split."""

    sha256: str
    """Hash of the training split's content."""

    val_sha256: str
    """Hash of the validation split's content."""

    source: str
    """Where the training split came from."""

    @classmethod
    def place(
        cls,
        dataset: Dataset,
        configs: Iterable[LearnerConfig] = (),
        seeds: int = 1,
        gamma: float = GAMMA,
    ) -> TaskData:
        """Put a data set on the device, if it fits there together with the largest training.

        ``configs`` will be trained on it one at a time, each with so many ``seeds``; ``gamma`` is
        the discount of the probe's return-to-go.
        """
        for split in (dataset.train, dataset.val):
            if split.observations.ndim != 2 or split.actions.ndim != 2:
                raise InputError(
                    f"{split.source} has observations of shape {split.observations.shape[1:]} and "
                    f"actions of shape {split.actions.shape[1:]}: critics train on vectors only."
                )
        shapes = data_shapes(dataset.train)
        states = [tree_bytes(state_shapes(c.training, width(seeds), shapes)) for c in configs]
        rows = len(dataset.train)
        what = f"Training {seeds} seeds at once on {rows:,} rows"
        check_fits(what, tree_bytes(shapes) + max(states, default=0), free_bytes())
        return cls(
            device_data(dataset.train),
            Probe.draw(dataset.val, gamma),
            dataset.train.sha256,
            dataset.val.sha256,
            dataset.train.source,
        )
