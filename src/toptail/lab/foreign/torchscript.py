"""Modules that PyTorch saved with their code: TorchScript, and programs of ``torch.export``."""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from toptail.errors import InputError
from toptail.lab.foreign.critic import ForeignCritic
from toptail.lab.foreign.exported import read_program
from toptail.lab.foreign.networks import Rows
from toptail.lab.foreign.scripted import written_anew
from toptail.pools.files import check_readable
from toptail.pools.guard import refusing

BATCH: Final = 4_096
"""Rows shown to a module at a time."""


class _Module(NamedTuple):
    """A loaded module, and how many inputs it takes."""

    forward: Any
    inputs: int


def read_torchscript(path: Path) -> ForeignCritic:
    """A critic whose ``forward(states, actions, goals)`` or ``forward(states, actions)`` scores.

    ``.pt2`` is a program of ``torch.export``, anything else TorchScript. Neither needs the
    Python code that made it, and both may do arithmetic only (``operators.py``). An answer for each
    row may have a last dimension of 1.
    """
    check_readable(path)
    torch = _torch(path)
    advice = (
        "expected what torch.jit.save or torch.export.save wrote, with arithmetic alone; a critic "
        "that needs more can be given as FILE.py:FUNCTION"
    )
    with refusing(path, "is no program of PyTorch that is read here", advice):
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
            rows = [torch.tensor(x[start : start + BATCH]) for x in given]  # its own to change
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
    content = written_anew(path, lambda name: hasattr(torch.ops.aten, name))
    module = torch.jit.load(io.BytesIO(content), map_location="cpu").eval()
    return _Module(module, len(module.forward.schema.arguments) - 1)


def _exported(torch: Any, path: Path) -> _Module:
    program = read_program(path)
    return _Module(program.runner(torch), len(program.inputs))
