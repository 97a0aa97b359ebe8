"""The door to MuJoCo and OGBench: imported on first use, quiet, and seeded."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from toptail.errors import InputError


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def load_module(name: str) -> Any:
    """Import a module of the ``sim`` extra, or say how to install it."""
    try:
        with quiet():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"This needs the simulator, and its package '{error.name}' is not installed: "
            "pip install 'toptail[sim]'."
        ) from error


def make_env(environment: str, **options: Any) -> Any:
    """Make an OGBench environment by its gymnasium id, without rendering."""
    load_module("ogbench")  # registers the environments
    gymnasium = load_module("gymnasium")
    with quiet():
        return gymnasium.make(environment, disable_env_checker=True, **options)


@contextmanager
def package_randomness(seed: np.random.SeedSequence) -> Iterator[int]:
    """Give the package's own draws a seed, and put NumPy's global generator back afterwards.

    OGBench's resets and plan oracles draw from NumPy's global generator, which nothing else in
    this project uses. The value is the seed to pass to ``env.reset``.
    """
    reset_seed, global_seed = (int(word) for word in seed.generate_state(2))
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(global_seed)  # noqa: NPY002
    try:
        with quiet():
            yield reset_seed
    finally:
        np.random.set_state(state)  # noqa: NPY002


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore the warnings of a machine without a display, and of gymnasium's float32 boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*DISPLAY environment variable.*")
        warnings.filterwarnings("ignore", message=".*precision lowered by casting to float32.*")
        yield
