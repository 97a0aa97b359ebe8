"""Result files that grow by one entry per critic and seed, and the critics they are made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.studies.common import read_json, write_json
from toptail.lab.training.records import differences
from toptail.lab.training.run_files import run_folder
from toptail.lab.training.runs import Run, load_run, read_run


@dataclass(frozen=True, eq=False)
class Source:
    """A trained critic and the run that it comes from."""

    name: str
    """``raw``, or ``two_head_joint.f_cos`` for one of its readouts."""

    seed: int
    """Seed of the run."""

    run: Run
    """The run's folder and record."""

    critic: TrainedCritic
    """The critic in float32, with its readout."""

    @property
    def identity(self) -> dict[str, Any]:
        """What a result says about where its critic came from."""
        record = self.run.record
        return {name: record[name] for name in ("config_hash", "params_sha256")}


def load_source(runs: Path, task: str, name: str, seed: int) -> Source:
    """Load ``RUNS/TASK/CRITIC/seed-N``; its scores are computed in float32: see `load_run`."""
    critic, _, readout = name.partition(".")
    folder = run_folder(runs / task / critic, seed)
    trained = load_run(folder, task, in_float32=True)
    run, family = read_run(folder), trained.critic
    if readout and readout not in family.readouts():
        raise InputError(
            f"The critic '{critic}' has no readout '{readout}'; it has "
            f"{', '.join(family.readouts())}."
        )
    return Source(name, seed, run, replace(trained, readout=readout or None))


class Results:
    """One JSON file: a header of settings, then ``critics`` -> name -> seed -> entry.

    A stored entry is not made again. A file with other settings, or an entry of other critics, is
    refused rather than overwritten.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        # As JSON has it, to compare it with what was stored.
        own: dict[str, Any] = json.loads(json.dumps(header))
        self._content: dict[str, Any] = {**own, "critics": {}}
        if path.is_file():
            self._content = read_json(path)
            stored = {key: value for key, value in self._content.items() if key != "critics"}
            self._refuse(differences(stored, own))

    def has(self, source: Source) -> bool:
        """Whether the entry of this critic and seed is there, made from this very run."""
        entry = self._content["critics"].get(source.name, {}).get(str(source.seed))
        if entry is None:
            return False
        where = f"critics.{source.name}.{source.seed}."
        self._refuse(differences(entry["run"], source.identity, where))
        return True

    def add(self, source: Source, entry: Mapping[str, Any]) -> None:
        """Store an entry; the file is whole at every moment."""
        seeds = self._content["critics"].setdefault(source.name, {})
        seeds[str(source.seed)] = {"run": source.identity, **entry}
        write_json(self.path, self._content)

    def _refuse(self, changed: list[str]) -> None:
        if changed:
            raise InputError(
                f"{self.path} was made with other settings or runs, {', '.join(changed)}: move it "
                "away, or use those of the file."
            )
