"""Scorers of other libraries' files: ``ogbench:PATH``, ``d3rlpy:PATH``, ``torchscript:PATH``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from toptail.errors import InputError, option
from toptail.io.files import entries, sha256
from toptail.lab.foreign.d3rlpy import read_d3rlpy
from toptail.lab.foreign.networks import ForeignCritic
from toptail.lab.foreign.ogbench import read_ogbench
from toptail.lab.foreign.torchscript import read_torchscript
from toptail.lab.scorers.base import Scorer
from toptail.lab.scorers.checked import checked

READERS: Final[Mapping[str, Callable[[Path], ForeignCritic]]] = {
    "ogbench": read_ogbench,
    "d3rlpy": read_d3rlpy,
    "torchscript": read_torchscript,
}
"""What stands before the colon -> who reads the file behind it."""

_FILES: Final = {
    "ogbench": ("params_*.pkl",),
    "d3rlpy": ("*.d3",),
    "torchscript": ("*.pt", "*.pt2"),
}
"""How checkpoints are usually called."""
_SHOWN: Final = 5
"""Checkpoints that a message names, at most."""
_WILD: Final = re.compile(r"[*?\[]")


def is_foreign(text: str) -> bool:
    """Whether a scorer, without its name, is a file of another library."""
    return text.partition(":")[0] in READERS


def foreign_scorers(given: str | None, text: str) -> list[Scorer]:
    """The scorers of ``KIND:PATH``, called as ``given``, or else after what they are.

    A path with a pattern stands for the seeds of one critic, ``exp/sd*/params_1000000.pkl``: they
    become ``NAME@SEED``, with the seeds that the checkpoints know or that the pattern stands for.
    """
    kind, _, file = text.partition(":")
    pattern = str(Path(file).expanduser())
    paths = _matching(pattern, text) if _WILD.search(pattern) else [Path(pattern)]
    for path in paths:
        _require_file(kind, path)
    critics = {path: READERS[kind](path) for path in paths}
    if not _WILD.search(pattern):
        ((path, critic),) = critics.items()
        return [_scorer(given or _called(kind, critic, path), kind, path, critic)]
    name = given or _called(kind, next(iter(critics.values())), paths[0])
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


def _require_file(kind: str, path: Path) -> None:
    """Refuse a folder, with the checkpoints that are in it."""
    if not path.is_dir():
        return
    files = [file for pattern in _FILES[kind] for file in entries(path, f"**/{pattern}")]
    found = ", ".join(str(file) for file in files[:_SHOWN]) + (", ..." if files[_SHOWN:] else "")
    found = found or f"no {' or '.join(_FILES[kind])} is in it"
    raise InputError(f"{path} is a folder: expected a checkpoint, {kind}:PATH ({found}).")


def _called(kind: str, critic: ForeignCritic, path: Path) -> str:
    """A name for a critic that was given none."""
    return path.stem if kind == "torchscript" else f"{kind}-{critic.agent}"


def _scorer(column: str, kind: str, path: Path, critic: ForeignCritic) -> Scorer:
    origin = {"file": path.name, "kind": kind, "agent": critic.agent, "file_sha256": sha256(path)}
    return Scorer(column, checked(critic.score, str(path)), origin, critic.step_reward)


def _matching(pattern: str, text: str) -> list[Path]:
    """The files that fit a pattern, sorted."""
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if _WILD.search(part))
    home = Path(*parts[:first])
    found = [path for path in entries(home, str(Path(*parts[first:]))) if path.is_file()]
    if not found:
        raise InputError(f"{option('scorer', text)}: no file fits the pattern {pattern}.")
    return found


def _seed(critic: ForeignCritic, path: Path, pattern: str) -> int | None:
    """The seed that a checkpoint knows, or the first number where the pattern has a star."""
    if critic.seed is not None:
        return critic.seed
    stars = re.escape(pattern).replace(r"\*", "(.*)").replace(r"\?", "(.)")
    fitting = re.fullmatch(stars, str(path))
    numbers = re.findall(r"\d+", " ".join(fitting.groups())) if fitting else []
    return int(numbers[0]) if numbers else None
