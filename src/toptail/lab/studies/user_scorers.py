"""Scorers of a user's own file: named, loaded, called on NumPy rows, and checked."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from toptail.errors import InputError, option
from toptail.lab.critics.registry import CRITICS
from toptail.lab.studies.checked import checked, others_code
from toptail.lab.studies.scorers import Scorer
from toptail.pools.columns import group_seeds, split_seed
from toptail.pools.files import sha256

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(@\d+)?")


def user_scorers(
    texts: Iterable[str], reserved: Collection[str], stored: Iterable[str] = ()
) -> list[Scorer]:
    """The `user_scorer` of each text, if their names go together with the ``stored`` columns'."""
    scorers = [user_scorer(text, reserved) for text in texts]
    require_names([scorer.column for scorer in scorers], stored)
    return scorers


def require_names(columns: Sequence[str], stored: Iterable[str] = ()) -> None:
    """Refuse two columns of one name, and names that are a scorer's alone and with seeds."""
    repeated = [column for column in columns if columns.count(column) > 1]
    if repeated:
        raise InputError(f"Two scorers are called '{repeated[0]}': give each a name of its own.")
    group_seeds(dict.fromkeys((*stored, *columns)))


def user_scorer(text: str, reserved: Collection[str] = ()) -> Scorer:
    """A scorer of a user's file, from ``[NAME=]path/to/file.py:make_score``.

    The object is a function ``score(states, actions, goals)`` of NumPy rows, or a function
    without required arguments that returns one. Its attribute ``step_reward``, if it has one, is
    the reward of a step that misses the goal (0 otherwise). The name is the file's unless given;
    ``NAME@SEED`` makes it a training seed of NAME. Names of critics and ``reserved`` ones are
    refused: a user's scorer must not pass for what was trained here.
    """
    given, equals, rest = text.rpartition("=")
    file, colon, attribute = rest.rpartition(":")
    path = Path(file).expanduser()
    if not colon or not attribute.isidentifier() or path.suffix != ".py":
        raise InputError(
            f"{option('scorer', text)}: expected path/to/file.py:function, or "
            "NAME=path/to/file.py:function."
        )
    name = given if equals else path.stem
    _require_free(text, name, reserved)
    where = f"{path}:{attribute}"
    found = getattr(user_module(path), attribute, None)
    if not callable(found):
        raise InputError(f"{path} has no function '{attribute}': name one that is there.")
    function = _made(found, where)
    reward = getattr(function, "step_reward", getattr(found, "step_reward", 0.0))
    if not isinstance(reward, int | float) or not np.isfinite(reward):
        raise InputError(f"{where}: step_reward is {reward!r}, expected a finite number.")
    origin = {"file": path.name, "function": attribute, "file_sha256": sha256(path)}
    return Scorer(name, checked(function, where), origin, float(reward), opaque=True)


def _require_free(text: str, name: str, reserved: Collection[str]) -> None:
    """Refuse a name that is none, that a study uses for something else, or that is a critic's."""
    scorer = split_seed(name)[0]
    if not _NAME.fullmatch(name) or scorer in reserved:
        others = f", and not {', '.join(reserved)}" if reserved else ""
        raise InputError(
            f"{option('scorer', text)}: '{name}' cannot name a critic; use letters, digits, '_', "
            f"'-' and '.'{others}."
        )
    if scorer.partition(".")[0] in CRITICS:
        raise InputError(
            f"{option('scorer', text)}: '{scorer}' is the name of a critic that is trained here, "
            "so a scorer of your own cannot have it: give it another one, "
            "NAME=path/to/file.py:function."
        )


def user_module(path: Path) -> ModuleType:
    """Run a user's file as a module of its own."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: expected a Python file with a score function.")
    spec = importlib.util.spec_from_file_location(f"toptail_critic_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be loaded as a Python file.")
    module = importlib.util.module_from_spec(spec)
    with others_code(f"{path}", "cannot be loaded", ": run it by itself to see where"):
        spec.loader.exec_module(module)
    return module


def _made(found: Callable[..., Any], where: str) -> Callable[..., Any]:
    """The score function itself, or what a function without required arguments returns."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):  # something built in does not say
        return found
    required = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    variable = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if required or variable:
        return found
    with others_code(where, "failed"):
        made = found()
    if not callable(made):
        raise InputError(
            f"{where} returned {type(made).__name__}: expected a function of states, actions and "
            "goals."
        )
    function: Callable[..., Any] = made
    return function
