"""Scorers of other libraries' checkpoints: ``ogbench:PATH``, ``d3rlpy:PATH``, ``torchscript:PATH``.

Each kind is read by a module of `toptail.lab.foreign`, which is imported when it is needed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toptail.errors import InputError, option
from toptail.io.files import entries, sha256
from toptail.lab.scorers.base import Scorer
from toptail.lab.scorers.user import as_score

if TYPE_CHECKING:
    from toptail.lab.foreign.networks import ForeignCritic

_FILES: Final = {
    "ogbench": ("params_*.pkl",),
    "d3rlpy": ("*.d3",),
    "torchscript": ("*.pt", "*.pt2"),
}
"""How checkpoints of each kind are usually called."""
_SHOWN: Final = 5
"""Checkpoints that a message names, at most."""
_WILD: Final = re.compile(r"[*?\[]")


def foreign_scorers(name: str | None, text: str) -> list[Scorer]:
    """The scorers of ``KIND:PATH`` under a name, or else named by kind and agent.

    A path with a pattern stands for the seeds of one critic, ``exp/sd*/params_1000000.pkl``: they
    become ``NAME@SEED``, with the seeds that the checkpoints store or that stand at the stars.
    """
    kind, _, file = text.partition(":")
    pattern = str(Path(file).expanduser())
    several = bool(_WILD.search(pattern))
    paths = _matching(pattern, text) if several else [Path(pattern)]
    for path in paths:
        _require_file(kind, path)
    critics = {path: _read(kind, path) for path in paths}
    agent = next(iter(critics.values())).agent
    name = name or (paths[0].stem if kind == "torchscript" else f"{kind}-{agent}")
    if not several:
        return [_scorer(name, kind, path, critic) for path, critic in critics.items()]
    if "@" in name:
        raise InputError(f"{option('scorer', text)}: a pattern stands for the seeds of '{name}'.")
    seeds = [_seed(critic, path, pattern) for path, critic in critics.items()]
    if None in seeds or len(set(seeds)) < len(seeds):
        raise InputError(
            f"{option('scorer', text)}: the seeds of these {len(seeds)} files cannot be told "
            f"apart; give each by itself, as {name}@1={kind}:{paths[0]}."
        )
    return [
        _scorer(f"{name}@{seed}", kind, path, critic)
        for seed, (path, critic) in zip(seeds, critics.items(), strict=True)
    ]


def _read(kind: str, path: Path) -> ForeignCritic:
    module = importlib.import_module(f"toptail.lab.foreign.{kind}")
    read: Callable[[Path], ForeignCritic] = getattr(module, f"read_{kind}")
    return read(path)


def _require_file(kind: str, path: Path) -> None:
    """Refuse a folder, and name the checkpoints in it."""
    if not path.is_dir():
        return
    files = [file for pattern in _FILES[kind] for file in entries(path, f"**/{pattern}")]
    found = ", ".join(str(file) for file in files[:_SHOWN]) + (", ..." if files[_SHOWN:] else "")
    found = found or f"no {' or '.join(_FILES[kind])} is in it"
    raise InputError(f"{path} is a folder: expected a checkpoint, {kind}:PATH ({found}).")


def _scorer(column: str, kind: str, path: Path, critic: ForeignCritic) -> Scorer:
    origin = {"file": path.name, "kind": kind, "agent": critic.agent, "file_sha256": sha256(path)}
    return Scorer(column, as_score(critic.score, str(path)), origin, critic.step_reward)


def _matching(pattern: str, text: str) -> list[Path]:
    """The files that match a pattern, sorted."""
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if _WILD.search(part))
    home = Path(*parts[:first])
    found = [path for path in entries(home, str(Path(*parts[first:]))) if path.is_file()]
    if not found:
        raise InputError(f"{option('scorer', text)}: no file fits the pattern {pattern}.")
    return found


def _seed(critic: ForeignCritic, path: Path, pattern: str) -> int | None:
    """The seed that a checkpoint stores, or the first number where the pattern has a star."""
    if critic.seed is not None:
        return critic.seed
    stars = re.escape(pattern).replace(r"\*", "(.*)").replace(r"\?", "(.)")
    fitting = re.fullmatch(stars, str(path))
    numbers = re.findall(r"\d+", " ".join(fitting.groups())) if fitting else []
    return int(numbers[0]) if numbers else None
