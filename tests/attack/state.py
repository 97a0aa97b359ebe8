"""What an attack has done so far: figures that add up over several sittings."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
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


class State:
    """The state of one attack, a JSON file in the folder of the state.

    It begins anew where the attacked code has changed since.
    """

    def __init__(self, folder: Path, part: str) -> None:
        self.folder = folder / part
        self._path = self.folder / "state.json"
        self.source = source_digest()
        content = json.loads(self._path.read_text()) if self._path.is_file() else {}
        if content.get("source") != self.source:
            content = {}
        self.counts: Counter[str] = Counter(content.get("counts", {}))
        """Figures: what -> how many."""
        self.done: dict[str, list[int]] = content.get("done", {})
        """What was attacked -> which attacks were made."""
        self.findings: list[dict[str, Any]] = content.get("findings", [])
        """What did not hold, with what shows it."""
        self.facts: dict[str, Any] = content.get("facts", {})
        """What else is to be remembered."""

    @property
    def made(self) -> int:
        """How many attacks were made: every one has one outcome, beside the count of all."""
        return max(self.counts.values(), default=0)

    def left(self, what: str, wanted: Iterable[int]) -> list[int]:
        """Attacks that were not made yet."""
        made = set(self.done.get(what, ()))
        return [attack for attack in wanted if attack not in made]

    def add(self, what: str, attack: int, *outcomes: str) -> None:
        """An attack was made and ended so."""
        self.done.setdefault(what, []).append(attack)
        self.counts.update(outcomes)

    def find(self, what: str, attack: int, outcome: str, **shown: Any) -> None:
        """Something did not hold."""
        self.findings.append({"what": what, "attack": attack, "outcome": outcome, **shown})

    def save(self) -> None:
        """Write the file, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "source": self.source,
            "counts": dict(self.counts),
            "done": self.done,
            "findings": self.findings,
            "facts": self.facts,
        }
        staged = self._path.with_suffix(".new")
        staged.write_text(json.dumps(content, indent=1))
        staged.replace(self._path)
