"""What a command needs beside a light installation."""

from __future__ import annotations

from importlib.util import find_spec

from toptail.commands.options import program_name
from toptail.errors import InputError


def need_training(command: str) -> None:
    """Refuse in one sentence where packages of the extra ``train`` are missing."""
    missing = [name for name in ("jax", "flax", "optax", "safetensors") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"'{program_name()} {command}' needs {', '.join(missing)}; "
            "install them with: pip install 'toptail[train]'."
        )
