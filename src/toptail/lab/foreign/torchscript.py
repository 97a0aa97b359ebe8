"""Modules that PyTorch saved with their code: TorchScript, and programs of ``torch.export``."""

from __future__ import annotations

import importlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from toptail.errors import InputError
from toptail.lab.foreign.critic import ForeignCritic
from toptail.lab.foreign.networks import Rows
from toptail.pools.files import check_readable
from toptail.pools.guard import check_unpacked, refusing

BATCH: Final = 4_096
"""Rows shown to a module at a time."""

_ALLOWED: Final = {
    "target": re.compile(r"torch\.ops\.aten\.\w+\.\w+|_operator\.getitem"),
    "expr_str": re.compile(r"Symbol\('\w+'(, positive=True)?(, integer=True)?\)|[su]?\d+"),
    "use_pickle": re.compile(r"False"),
    "path_name": re.compile(r"(weight|tensor)_\d+"),
}
"""What a program of ``torch.export`` may say at places that PyTorch evaluates or unpickles."""


class _Module(NamedTuple):
    """A loaded module, and how many inputs it takes."""

    forward: Any
    inputs: int


def read_torchscript(path: Path) -> ForeignCritic:
    """A critic whose ``forward(states, actions, goals)`` or ``forward(states, actions)`` scores.

    ``.pt2`` is a program of ``torch.export``, anything else TorchScript. Neither needs the
    Python code that made it. An answer for each row may have a last dimension of 1.
    """
    check_readable(path)
    torch = _torch(path)
    advice = "expected what torch.jit.save or torch.export.save wrote"
    with refusing(path, "cannot be loaded by PyTorch", advice):
        module = _exported(torch, path) if path.suffix == ".pt2" else _scripted(torch, path)
    if module.inputs not in (2, 3):
        raise InputError(
            f"{path} takes {module.inputs} inputs: expected states, actions and goals, or states "
            "and actions."
        )

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        """Score rows, some at a time."""
        given = (states, actions, goals)[: module.inputs]
        parts = []
        for start in range(0, len(states), BATCH):
            rows = [torch.from_numpy(x[start : start + BATCH]) for x in given]
            with torch.no_grad():
                parts.append(module.forward(*rows).float().numpy())
        scores = np.concatenate(parts)
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores

    return ForeignCritic(score, "torch")


def _torch(path: Path) -> Any:
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError:
        raise InputError(
            f"{path}: reading it needs PyTorch, which is not installed: pip install torch."
        ) from None


def _scripted(torch: Any, path: Path) -> _Module:
    """TorchScript, which has an interpreter of its own, and no way to Python."""
    module = torch.jit.load(str(path), map_location="cpu").eval()
    return _Module(module, len(module.forward.schema.arguments) - 1)


def _exported(torch: Any, path: Path) -> _Module:
    """A program of ``torch.export``, looked through first.

    PyTorch trusts such a file: it unpickles what the file marks as pickled, evaluates its sizes as
    Python, and runs the guards that it brings. So only plain tensors, plain sizes and PyTorch's own
    arithmetic are let in, and guards are left out.
    """
    with zipfile.ZipFile(path) as archive:
        check_unpacked(path, sum(member.file_size for member in archive.infolist()))
        if not any(name.endswith("archive_format") for name in archive.namelist()):
            raise ValueError("it is of an older format; export it again with a newer PyTorch")
        for name in archive.namelist():
            if name.endswith(".json"):
                look_through(json.loads(archive.read(name)))
    program = torch.export.load(str(path))
    inputs = len(program.graph_signature.user_inputs)
    return _Module(program.module(check_guards=False), inputs)


def look_through(content: Any) -> None:
    """Raise where a program asks for more than arithmetic on tensors."""
    if isinstance(content, list):
        for part in content:
            look_through(part)
    elif isinstance(content, dict):
        for key, value in content.items():
            allowed = _ALLOWED.get(key)
            if allowed is not None and not allowed.fullmatch(str(value)):
                raise ValueError(f"its '{key}' is {str(value)[:60]}, which is not let in")
            look_through(value)
