"""What an attack has done so far: figures that add up over several sittings."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.attack.forks import ROOT

PARTS: Final = ("crash", "fuzz", "cli", "names", "server", "faults")
"""The attacks, in the order in which the whole runs them."""


def source_digest() -> str:
    """Hash of the attacked code: figures of other code do not add up with these."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass
class Record:
    """What attacks have shown."""

    counts: Counter[str] = field(default_factory=Counter)
    """Figures: what -> how many."""
    done: dict[str, list[int]] = field(default_factory=dict)
    """What was attacked -> which attacks were made."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    """What did not hold, with what shows it."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else is to be remembered."""

    @classmethod
    def read(cls, path: Path, source: str) -> Record:
        """The record of a file; an empty one where it is of other code."""
        content = json.loads(path.read_text())
        if content.pop("source", None) != source:
            return cls()
        return cls(**{**content, "counts": Counter(content["counts"])})

    def include(self, other: Record) -> None:
        """Take in what another record has: no attack is in two of them."""
        self.counts.update(other.counts)
        for what, attacks in other.done.items():
            self.done.setdefault(what, []).extend(attacks)
        self.findings += other.findings
        self.facts |= other.facts


class State:
    """The state of one attack: JSON files in its folder, one of each worker.

    A worker writes its own file only; the figures are of all of them. It begins anew where the
    attacked code has changed since.
    """

    def __init__(self, folder: Path, part: str, worker: int = 0) -> None:
        self.folder = folder / part
        self._path = self.folder / (f"state-{worker}.json" if worker else "state.json")
        self.source = source_digest()
        self._own, self._others = Record(), Record()
        for path in sorted(self.folder.glob("state*.json")):
            record = self._own if path == self._path else self._others
            record.include(Record.read(path, self.source))

    @property
    def whole(self) -> Record:
        """What all workers have shown; what the others have, as of when this one began."""
        record = Record()
        record.include(self._others)
        record.include(self._own)
        return record

    @property
    def made(self) -> int:
        """How many attacks were made: every one has one outcome, beside the count of all."""
        return max(self.whole.counts.values(), default=0)

    def left(self, what: str, wanted: Iterable[int]) -> Iterator[int]:
        """Attacks that were not made yet."""
        made = self.done(what)
        return (attack for attack in wanted if attack not in made)

    def done(self, what: str) -> set[int]:
        """Attacks that were made."""
        return {*self._own.done.get(what, ()), *self._others.done.get(what, ())}

    def add(self, what: str, attack: int, *outcomes: str) -> None:
        """An attack was made and ended so."""
        self._own.done.setdefault(what, []).append(attack)
        self._own.counts.update(outcomes)

    def count(self, counts: Mapping[str, int]) -> None:
        """Outcomes beside those of `add`."""
        self._own.counts.update(counts)

    def find(self, what: str, attack: int, outcome: str, **shown: Any) -> None:
        """Something did not hold."""
        self._own.findings.append({"what": what, "attack": attack, "outcome": outcome, **shown})

    def note(self, what: str, fact: Any) -> None:
        """Remember something."""
        self._own.facts[what] = fact

    def save(self) -> None:
        """Write this worker's file, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        staged = self._path.with_suffix(".new")
        staged.write_text(json.dumps({"source": self.source, **vars(self._own)}, indent=1))
        staged.replace(self._path)
