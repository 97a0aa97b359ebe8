"""Final networks of a plan's trainings, which another plan that wants the same ones reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toptail.lab.critics.base import Params
from toptail.lab.training.batches import BatchRun
from toptail.lab.training.checkpoints import load_params, save_params
from toptail.lab.training.run_files import digest


@dataclass(frozen=True)
class Networks:
    """A folder of parameters, each file named by everything that decides them."""

    folder: Path
    """Where the files lie; plans may share it."""

    def load(self, lane: BatchRun, data_hash: str) -> Params | None:
        """What a training ended with, or None where it was not kept."""
        path = self._path(lane, data_hash)
        return load_params(path) if path.is_file() else None

    def keep(self, lane: BatchRun, data_hash: str, params: Params) -> None:
        """Store what a training ended with."""
        self.folder.mkdir(parents=True, exist_ok=True)
        save_params(self._path(lane, data_hash), params)

    def _path(self, lane: BatchRun, data_hash: str) -> Path:
        name = digest({"lane": repr(lane), "data": data_hash})
        return self.folder / f"{lane.config.learner.name}-seed{lane.seed}-{name}.safetensors"
