"""Settings of a training that follow from the device, and where compiled programs are kept."""

from __future__ import annotations

import os
from pathlib import Path

import jax

GPU_LOG_EVERY, CPU_LOG_EVERY = 500, 50
"""Steps between two lines of metrics, unless given."""

GPU_CHECKPOINT_EVERY, CPU_CHECKPOINT_EVERY = 50_000, 1_000
"""Steps between two checkpoints, unless given."""


def on_gpu() -> bool:
    """Whether there is an accelerator: then bfloat16 is the default."""
    return jax.default_backend() != "cpu"


def log_every() -> int:
    """Steps between two lines of metrics on this device."""
    return GPU_LOG_EVERY if on_gpu() else CPU_LOG_EVERY


def checkpoint_every() -> int:
    """Steps between two checkpoints on this device."""
    return GPU_CHECKPOINT_EVERY if on_gpu() else CPU_CHECKPOINT_EVERY


def keep_compiled() -> None:
    """Keep the programs that a GPU's compiler makes, so that whatever runs again runs the same.

    That compiler chooses kernels by timing them, and may choose others the next time; then the
    last bits of a run that was stopped would differ from those of one that was not. A folder
    that the user has told JAX to keep programs in is used instead.
    """
    if not on_gpu() or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    jax.config.update("jax_compilation_cache_dir", str(caches / "toptail" / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
