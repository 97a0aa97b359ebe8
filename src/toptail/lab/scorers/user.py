"""Scorers that a user brings: of a file of Python's, or of another library's checkpoint."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from toptail.errors import InputError, option
from toptail.io.files import sha256
from toptail.lab.critics.registry import CRITICS
from toptail.lab.scorers.base import Scorer
from toptail.lab.scorers.checked import checked, others_code
from toptail.lab.scorers.foreign import READERS, foreign_scorers, is_foreign
from toptail.pools.columns import group_seeds, split_seed

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(@\d+)?")
_MODULES: dict[tuple[Path, str], ModuleType] = {}
"""Files that were run, by path and content."""


def user_scorers(
    texts: Iterable[str], reserved: Collection[str], stored: Iterable[str] = ()
) -> list[Scorer]:
    """The scorers of each text, if their names go together with the ``stored`` columns'.

    A text is ``[NAME=]path/to/file.py:make_score``, see `user_scorer`, or a checkpoint of another
    library, ``[NAME=]ogbench:PATH``, see `foreign_scorers`.
    """
    scorers = [scorer for text in texts for scorer in _brought(text, reserved)]
    require_names([scorer.column for scorer in scorers], stored)
    return scorers


def _brought(text: str, reserved: Collection[str]) -> list[Scorer]:
    name, rest = named(text)
    if not is_foreign(rest):
        return [user_scorer(text, reserved)]
    if name is not None:
        _require_free(text, name, reserved)
    scorers = foreign_scorers(name, rest)
    for scorer in scorers:
        _require_free(text, scorer.column, reserved)
    return scorers


def named(text: str) -> tuple[str | None, str]:
    """The name that stands before an equals sign, and the rest; arguments have such signs, too."""
    head, paren, tail = text.partition("(")
    name, equals, rest = head.partition("=")
    return (name, rest + paren + tail) if equals else (None, text)


def require_names(columns: Sequence[str], stored: Iterable[str] = ()) -> None:
    """Refuse two columns of one name, and names that are a scorer's alone and with seeds."""
    repeated = [column for column in columns if columns.count(column) > 1]
    if repeated:
        raise InputError(f"Two scorers are called '{repeated[0]}': give each a name of its own.")
    group_seeds(dict.fromkeys((*stored, *columns)))


def user_scorer(text: str, reserved: Collection[str] = ()) -> Scorer:
    """A scorer of a user's file, from ``[NAME=]path/to/file.py:make_score``.

    The object is a function ``score(states, actions, goals)`` of NumPy rows, or a function
    without required arguments that returns one; with arguments, ``file.py:make(run="a", epoch=5)``,
    it is called with these, which are literals, and must return one. Its attribute ``step_reward``,
    if it has one, is the reward of a step that misses the goal (0 otherwise). The name is the
    file's unless given; ``NAME@SEED`` makes it a training seed of NAME. Names of critics and
    ``reserved`` ones are refused: a user's scorer must not pass for what was trained here.
    """
    given, rest = named(text)
    path, call = _parsed(text, rest)
    name = path.stem if given is None else given
    _require_free(text, name, reserved)
    where = f"{path}:{call.text}"
    found = getattr(user_module(path), call.function, None)
    if not callable(found):
        raise InputError(f"{path} has no function '{call.function}': name one that is there.")
    function = _made(found, where, call)
    reward = getattr(function, "step_reward", getattr(found, "step_reward", 0.0))
    if not isinstance(reward, int | float) or not np.isfinite(reward):
        raise InputError(f"{where}: step_reward is {reward!r}, expected a finite number.")
    origin = {"file": path.name, "function": call.text, "file_sha256": sha256(path)}
    return Scorer(name, checked(function, where), origin, float(reward), opaque=True)


class _Call(NamedTuple):
    """A function's name, and what it is called with."""

    text: str
    function: str
    given: tuple[Any, ...] = ()
    named: dict[str, Any] | None = None
    """None where nothing says that it is called."""


def _parsed(text: str, rest: str) -> tuple[Path, _Call]:
    """The file and the function of ``path/to/file.py:function`` or ``...:function(arguments)``."""
    head, paren, tail = rest.partition("(")
    file, colon, function = head.rpartition(":")
    path = Path(file).expanduser()
    if not colon or not function.isidentifier() or path.suffix != ".py":
        kinds = ", ".join(f"{kind}:PATH" for kind in READERS)
        raise InputError(
            f"{option('scorer', text)}: expected path/to/file.py:function, or "
            f"NAME=path/to/file.py:function, or a checkpoint ({kinds})."
        )
    return path, _arguments(text, function, paren + tail)


def _arguments(text: str, function: str, given: str) -> _Call:
    """A call whose arguments are literals, so that nothing is run to read them."""
    if not given:
        return _Call(function, function)
    try:
        call = ast.parse(f"{function}{given}", mode="eval").body
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != function:
            raise ValueError("no call")
        if any(word.arg is None for word in call.keywords):
            raise ValueError("a dictionary of arguments")
        named = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        values = tuple(ast.literal_eval(value) for value in call.args)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise InputError(
            f"{option('scorer', text)}: the arguments of {function} must be literals, as in "
            f'{function}(run="a", epoch=5).'
        ) from None
    return _Call(f"{function}{given}", function, values, named)


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
    """A user's file as a module of its own, run once for all that name it: see `fresh_modules`."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: expected a Python file with a score function.")
    where = path.resolve(), sha256(path)
    if where not in _MODULES:
        _MODULES[where] = _run(path)
    return _MODULES[where]


def fresh_modules() -> None:
    """Forget the files that were run: what they read may have changed."""
    _MODULES.clear()


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"toptail_critic_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be loaded as a Python file.")
    module = importlib.util.module_from_spec(spec)
    with others_code(f"{path}", "cannot be loaded", ": run it by itself to see where"):
        spec.loader.exec_module(module)
    return module


def _made(found: Callable[..., Any], where: str, call: _Call) -> Callable[..., Any]:
    """The score function itself, or what a function that makes one returns."""
    if call.named is None and _scores(found):
        return found
    with others_code(where, "failed"):
        made = found(*call.given, **(call.named or {}))
    if not callable(made):
        raise InputError(
            f"{where} returned {type(made).__name__}: expected a function of states, actions and "
            "goals."
        )
    function: Callable[..., Any] = made
    return function


def _scores(found: Callable[..., Any]) -> bool:
    """Whether a function needs arguments, as one that scores does."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):  # something built in does not say
        return True
    required = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    return bool(required) or any(p.kind is p.VAR_POSITIONAL for p in parameters)
