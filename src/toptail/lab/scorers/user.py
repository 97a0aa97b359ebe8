"""Scorers that a user brings: functions, objects, files of code, checkpoints of other libraries."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from toptail.errors import InputError, NotDoneError, brief, option
from toptail.io.files import entries, sha256
from toptail.lab.critics.registry import CRITICS
from toptail.lab.scorers.base import Rows, Scorer, climb
from toptail.pools.columns import group_seeds, split_seed
from toptail.provenance import PACKAGE

if TYPE_CHECKING:
    from toptail.lab.foreign.networks import ForeignCritic

CHECKPOINTS: Final = ("ogbench", "d3rlpy")
"""Kinds of checkpoints of other libraries: ``KIND:PATH``, see `toptail.lab.scorers.user`."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(@\d+)?")
_MODULES: dict[tuple[Path, str], ModuleType] = {}
"""Files that were run, by path and content."""


@contextmanager
def user_code(where: str, what: str, advice: str = "") -> Iterator[None]:
    """Run a user's code: an exception becomes an `InputError`, printed text goes to stderr.

    The error says at which line of the user's files it was raised, or called what raised it.
    ``sys.exit`` inside it is an error, too, and Ctrl-C is noted with the place.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except KeyboardInterrupt as error:
        error.add_note(f"in {where}")
        raise
    except NotDoneError:
        raise
    except BaseException as error:
        kind = f"{type(error).__name__}: {brief(error)}{_place(error)}"
        raise InputError(f"{where} {what} ({kind}){advice}.") from error


def _place(error: BaseException) -> str:
    """``, in FILE, line N``: the innermost line of a user's files; empty where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = (f", in {f.filename}, line {f.lineno}" for f in reversed(frames) if _own(f.filename))
    return next(lines, "")


def _own(file: str) -> bool:
    """Whether a file of a traceback is a user's: no code without a file, and nothing installed."""
    path = Path(file)
    installed = {"site-packages", "dist-packages"} & {*path.parts}
    folders = (PACKAGE, sysconfig.get_path("stdlib"))
    return not (
        file.startswith("<") or installed or any(path.is_relative_to(each) for each in folders)
    )


_ARGUMENTS: Final = {
    **dict.fromkeys(("states", "state", "observations", "observation", "obs", "s"), 0),
    **dict.fromkeys(("actions", "action", "a"), 1),
    **dict.fromkeys(("goals", "goal", "g"), 2),
}
"""What the name of an argument says: 0 states, 1 actions, 2 goals."""
_GOAL_FREE: Final = (
    "; the task is taken as goal-free, as its environment has no method reached(goal), so that "
    "goals have no numbers: add that method, or score states and actions alone"
)


def _wanted(function: Callable[..., Any]) -> tuple[list[int], dict[str, int]]:
    """Which of states, actions and goals a function takes: by position, and by keyword.

    An argument with a known name gets what it says, any other one the next that is left. A default
    other than None makes it a setting. Where two names say the same, order alone decides.
    """
    try:
        every = list(inspect.signature(function).parameters.values())
    except ValueError:  # built-in functions have no signature
        return [0, 1, 2], {}
    if any(p.kind is p.VAR_POSITIONAL for p in every):
        return [0, 1, 2], {}
    named = [p for p in every if p.kind is not p.VAR_KEYWORD]
    unset = [p.name for p in named if p.default is p.empty or p.default is None]
    known = {name: _ARGUMENTS[name.lower()] for name in unset if name.lower() in _ARGUMENTS}
    if len({*known.values()}) < len(known):
        known = {}
    left = [i for i in range(3) if i not in known.values()]
    wanted = known | dict(zip([n for n in unset if n not in known], left, strict=False))
    first = takewhile(lambda p: p.name in wanted and p.kind is not p.KEYWORD_ONLY, named)
    return [wanted.pop(p.name) for p in list(first)], wanted


def _no_actions(where: str, taken: Collection[int]) -> str:
    """The sentence about a function that takes fewer than two inputs, and no actions."""
    known: dict[int, list[str]] = {}
    for name, i in _ARGUMENTS.items():
        known.setdefault(i, []).append(name)
    alone = "".join(f"the {known[i][0]} alone" for i in taken) or "no rows"
    return (
        f"{where}: the function gets {alone}, so that its score cannot depend on the action; "
        "expected a function of states and actions, or of states, actions and goals, in this order "
        f"or by name (understood are {'; '.join(', '.join(names) for names in known.values())})."
    )


class UserScore:
    """A user's function as a score: wrong types, shapes and numbers are errors that say where.

    It is called with what the names of its arguments say, see `_wanted`: Q(s, a) gets no goals.
    """

    def __init__(self, function: Callable[..., Any], where: str) -> None:
        self._function, self._where = function, where
        self._placed, self._keyed = _wanted(function)
        taken = {*self._placed, *self._keyed.values()}
        if len(taken) < 2 and 1 not in taken:
            raise InputError(_no_actions(where, taken))
        self._towards_goals = 2 in taken

    def __call__(self, states: Rows, actions: Rows, goals: Rows) -> Rows:
        found, result = self._numbers(self._function, states, actions, goals)
        if result.shape != (len(states),):
            raise InputError(
                f"{self._where} returned scores of shape {result.shape} for {len(states)} rows: "
                f"expected ({len(states)},), one score per row."
            )
        finite = np.isfinite(result)
        if not finite.all():
            row = int(np.argmin(finite))
            raise InputError(
                f"{self._where} returned {found[row]} for row {row} (state "
                f"{states[row].tolist()}): every score must be a finite number in float32."
            )
        return result

    def _numbers(self, function: Callable[..., Any], *rows: Rows) -> tuple[Any, Rows]:
        """The scores that a user's function returns for the rows: as returned, and in float32."""
        advice = _GOAL_FREE if self._towards_goals and not rows[2].shape[1] else ""
        with user_code(self._where, f"failed on {len(rows[0])} rows", advice):
            # Copies: what the function writes into them must not reach the next scorer.
            copies = [each.copy() for each in rows]
            by_name = {name: copies[i] for name, i in self._keyed.items()}
            found = np.asarray(function(*(copies[i] for i in self._placed), **by_name))
            if found.dtype.kind in "cmMSU":
                raise TypeError(f"scores of type {found.dtype}, which are no numbers")
            with np.errstate(over="ignore"):  # infinite then, which is refused
                return found, found.astype(np.float32)


class DifferentiableScore(UserScore):
    """A user's function with an attribute ``gradient``: rows in, d score / d action out."""

    def ascend(
        self, states: Rows, actions: Rows, goals: Rows, steps: int, rate: float
    ) -> tuple[Rows, Rows]:
        """Gradient ascent from actions ``[n, starts, a]``: where it ends, and the scores there."""
        return climb(self, self._gradient, states, actions, goals, steps, rate)

    def _gradient(self, states: Rows, actions: Rows, goals: Rows) -> Rows:
        gradient: Callable[..., Any] = self._function.gradient  # type: ignore[attr-defined]
        _, found = self._numbers(gradient, states, actions, goals)
        if found.shape != actions.shape or not np.isfinite(found).all():
            raise InputError(
                f"{self._where}: gradient returned an array of shape {found.shape} for actions of "
                f"shape {actions.shape}: expected finite numbers of the same shape."
            )
        return found


def as_score(function: Callable[..., Any], where: str) -> UserScore:
    """A user's function as a score; with an attribute ``gradient`` one that can be climbed."""
    kind = DifferentiableScore if callable(getattr(function, "gradient", None)) else UserScore
    return kind(function, where)


def live_scorer(name: str, critic: object) -> Scorer:
    """A scorer of a Python object: a function, or an object with a method ``score``."""
    _require_free(f"{name}=...", name, ())
    function = critic if callable(critic) else getattr(critic, "score", None)
    if not callable(function):
        raise InputError(
            f"The scorer '{name}' is of the type {type(critic).__name__}: expected a function of "
            "states, actions and goals, an object with such a method 'score', or the text of one "
            "(path/to/file.py:function, KIND:CHECKPOINT, or the folder of a run)."
        )
    called = getattr(function, "__qualname__", type(critic).__name__)
    origin = {"function": f"{getattr(function, '__module__', '')}.{called}"}
    reward = _step_reward(name, function, critic)
    return Scorer(name, as_score(function, name), origin, reward, opaque=True)


def user_scorers(
    texts: Iterable[str], reserved: Collection[str], stored: Iterable[str] = ()
) -> list[Scorer]:
    """The scorers of each text, if their names go together with the ``stored`` columns.

    A text is ``[NAME=]path/to/file.py:make_score``, see `user_scorer`, or a checkpoint of another
    library, ``[NAME=]ogbench:PATH``, see `toptail.lab.scorers.user`.
    """
    scorers = [scorer for text in texts for scorer in _of_text(text, reserved)]
    require_names([scorer.column for scorer in scorers], stored)
    return scorers


def _of_text(text: str, reserved: Collection[str]) -> list[Scorer]:
    name, rest = named(text)
    if rest.partition(":")[0] not in CHECKPOINTS:
        return [user_scorer(text, reserved)]

    if name is not None:
        _require_free(text, name, reserved)
    scorers = foreign_scorers(name, rest)
    for scorer in scorers:
        _require_free(text, scorer.column, reserved)
    return scorers


def named(text: str) -> tuple[str | None, str]:
    """Split ``NAME=REST``; an equals sign inside the arguments of a call does not count."""
    head, paren, tail = text.partition("(")
    name, equals, rest = head.partition("=")
    return (name, rest + paren + tail) if equals else (None, text)


def require_names(columns: Sequence[str], stored: Iterable[str] = ()) -> None:
    """Refuse two columns of one name, and a name both with and without seeds."""
    repeated = [column for column in columns if columns.count(column) > 1]
    if repeated:
        raise InputError(f"Two scorers are called '{repeated[0]}': give each a name of its own.")
    group_seeds(dict.fromkeys((*stored, *columns)))


def user_scorer(text: str, reserved: Collection[str] = ()) -> Scorer:
    """A scorer of a user's file, from ``[NAME=]path/to/file.py:make_score``.

    The object is a function ``score(states, actions, goals)`` of NumPy rows, or a function
    without required arguments that returns one; with arguments, ``file.py:make(run="a", epoch=5)``,
    it is called with these literals and must return one. Its attribute ``step_reward`` is the
    reward of a step that misses the goal (0 without it). The name is the file's unless given;
    ``NAME@SEED`` makes it a training seed of NAME. Names of the library's critics and ``reserved``
    ones are refused: a user's scorer must not pass for a critic that was trained here.
    """
    own, rest = named(text)
    path, call = _parsed(text, rest)
    name = path.stem if own is None else own
    _require_free(text, name, reserved)
    found, function, where = _loaded(path, call)
    origin = {"file": path.name, "function": call.text, "file_sha256": sha256(path)}
    reward = _step_reward(where, function, found)
    return Scorer(name, as_score(function, where), origin, reward, opaque=True)


def user_function(text: str, flag: str) -> tuple[Callable[..., Any], Path]:
    """The function of ``path/to/file.py:function``, given for a flag, and its file."""
    path, call = _parsed(text, text, flag)
    return _loaded(path, call)[1], path


def _loaded(path: Path, call: _Call) -> tuple[Callable[..., Any], Callable[..., Any], str]:
    """The object of a user's file, the function that it is or makes, and its place."""
    where = f"{path}:{call.text}"
    found = getattr(user_module(path), call.function, None)
    if not callable(found):
        raise InputError(f"{path} has no function '{call.function}': name one that is there.")
    return found, _score_function(found, where, call), where


def _step_reward(where: str, *objects: object) -> float:
    found = (each.step_reward for each in objects if hasattr(each, "step_reward"))
    reward = next(found, 0.0)
    if not isinstance(reward, int | float) or not np.isfinite(reward):
        raise InputError(f"{where}: step_reward is {reward!r}, expected a finite number.")
    return float(reward)


class _Call(NamedTuple):
    """A function's name and its arguments; ``keywords`` is None where it is not called."""

    text: str
    function: str
    values: tuple[Any, ...] = ()
    keywords: dict[str, Any] | None = None


def _parsed(text: str, rest: str, flag: str = "scorer") -> tuple[Path, _Call]:
    """The file and the function of ``path/to/file.py:function`` or ``...:function(arguments)``."""
    head, paren, tail = rest.partition("(")
    file, colon, function = head.rpartition(":")
    path = Path(file).expanduser()
    if not colon or not function.isidentifier() or path.suffix != ".py":
        kinds = ", ".join(f"{kind}:PATH" for kind in CHECKPOINTS)
        raise InputError(
            f"{option(flag, text)}: expected path/to/file.py:function, or "
            f"NAME=path/to/file.py:function, or a checkpoint ({kinds})."
        )
    return path, _arguments(text, function, paren + tail, flag)


def _arguments(text: str, function: str, call_text: str, flag: str) -> _Call:
    """Parse a call whose arguments are literals, without running anything."""
    if not call_text:
        return _Call(function, function)
    try:
        call = ast.parse(f"{function}{call_text}", mode="eval").body
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != function:
            raise ValueError("no call")
        if any(word.arg is None for word in call.keywords):
            raise ValueError("a dictionary of arguments")
        keywords = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        values = tuple(ast.literal_eval(value) for value in call.args)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise InputError(
            f"{option(flag, text)}: the arguments of {function} must be literals, as in "
            f'{function}(run="a", epoch=5).'
        ) from None
    return _Call(f"{function}{call_text}", function, values, keywords)


def _require_free(text: str, name: str, reserved: Collection[str]) -> None:
    """Refuse a name that is malformed, reserved, or a critic's of this library."""
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
    """A user's file as a module, run once for all scorers and environments: see `fresh_modules`."""
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
    with user_code(f"{path}", "cannot be loaded", ": run it by itself to see more"):
        spec.loader.exec_module(module)
    return module


def _score_function(found: Callable[..., Any], where: str, call: _Call) -> Callable[..., Any]:
    """The score function itself, or the result of a function that makes one."""
    if call.keywords is None and _has_required_arguments(found):
        return found
    with user_code(where, "failed"):
        result = found(*call.values, **(call.keywords or {}))
    if not callable(result):
        raise InputError(
            f"{where} returned {type(result).__name__}: expected a function of states, actions and "
            "goals."
        )
    function: Callable[..., Any] = result
    return function


def _has_required_arguments(found: Callable[..., Any]) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):  # built-in functions have no signature
        return True
    required = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    return bool(required) or any(p.kind is p.VAR_POSITIONAL for p in parameters)


_FILES: Final = {
    "ogbench": ("params_*.pkl",),
    "d3rlpy": ("*.d3",),
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
    critics = {path: read_checkpoint(kind, path) for path in paths}
    agent = next(iter(critics.values())).agent
    name = name or f"{kind}-{agent}"
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


def read_checkpoint(kind: str, path: Path) -> ForeignCritic:
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
