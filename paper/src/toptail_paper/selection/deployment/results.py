"""Result files that grow by one entry per critic and seed, and the critics they are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.io.json_files import read_json, write_json
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.critics.registry import split_readout
from toptail.lab.store.units import plain, require_fit
from toptail.lab.training.run_files import Run, read_run, run_folder
from toptail.lab.training.runs import load_run


@dataclass(frozen=True, eq=False)
class DeployedCritic:
    """A trained critic and the run that it comes from."""

    name: str
    """``raw``, or ``two_head_joint.f_cos`` for one of its readouts."""

    seed: int
    """Seed of the run."""

    run: Run
    """The run's folder and record."""

    trained: TrainedCritic
    """The critic in float32, with its readout."""

    @property
    def column(self) -> str:
        """``NAME@SEED``."""
        return f"{self.name}@{self.seed}"

    @property
    def origin(self) -> dict[str, Any]:
        """What a result says about where its critic came from."""
        record = self.run.record
        return {name: record[name] for name in ("config_hash", "params_sha256")}


def load_deployed(runs: Path, task: str, name: str, seed: int) -> DeployedCritic:
    """Load ``RUNS/TASK/CRITIC/seed-N``; its scores are computed in float32: see `load_run`."""
    critic, readout = split_readout(name)
    folder = run_folder(runs / task / critic, seed)
    trained = load_run(folder, task, in_float32=True)
    run, family = read_run(folder), trained.critic
    if readout and readout not in family.readouts():
        raise InputError(
            f"The critic '{critic}' has no readout '{readout}'; it has "
            f"{', '.join(family.readouts())}."
        )
    return DeployedCritic(name, seed, run, replace(trained, readout=readout or None))


class ResultFile:
    """One JSON file: a header of settings, then ``critics`` -> name -> seed -> entry.

    A stored entry is not made again. A file with other settings, or an entry of other runs, is
    refused rather than overwritten.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self._content: dict[str, Any] = {**plain(header), "critics": {}}
        if path.is_file():
            self._content = read_json(path)
            require_fit(path, self._content, header)

    def has(self, critic: DeployedCritic) -> bool:
        """Whether the entry of this critic and seed is there, made from this very run."""
        entry = self._content["critics"].get(critic.name, {}).get(str(critic.seed))
        if entry is None:
            return False
        require_fit(self.path, {critic.column: entry["run"]}, {critic.column: critic.origin})
        return True

    def add(self, critic: DeployedCritic, entry: Mapping[str, Any]) -> None:
        """Store an entry; the file is whole at every moment."""
        if self.path.is_file():  # another process may have added its critics meanwhile
            self._content = read_json(self.path)
        seeds = self._content["critics"].setdefault(critic.name, {})
        seeds[str(critic.seed)] = {"run": critic.origin, **entry}
        write_json(self.path, self._content)
