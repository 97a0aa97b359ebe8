"""Scorers that a user brings: of a file of Python's, or of another library's checkpoint."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from toptail.errors import InputError, NotDoneError, option
from toptail.io.files import entries, sha256
from toptail.io.guard import brief
from toptail.io.timeouts import in_time
from toptail.lab.critics.registry import CRITICS
from toptail.lab.foreign.d3rlpy import read_d3rlpy
from toptail.lab.foreign.networks import ForeignCritic
from toptail.lab.foreign.ogbench import read_ogbench
from toptail.lab.foreign.torchscript import read_torchscript
from toptail.lab.scorers.base import Rows, Score, Scorer
from toptail.pools.columns import group_seeds, split_seed


@contextmanager
def others_code(where: str, what: str, advice: str = "") -> Iterator[None]:
    """Run code of a user's: whatever it raises is a sentence, what it prints goes to stderr.

    It has a time limit, its wish to end the process is no success of ours, and Ctrl-C says where it
    was.
    """
    try:
        with redirect_stdout(sys.stderr), in_time(where):
            yield
    except KeyboardInterrupt as error:
        error.add_note(f"in {where}")
        raise
    except NotDoneError:
        raise
    except BaseException as error:
        kind = f"{type(error).__name__}: {brief(error)}"
        raise InputError(f"{where} {what} ({kind}){advice}.") from error


_NAMES: Final = {
    **dict.fromkeys(("states", "state", "observations", "observation", "obs", "s"), 0),
    **dict.fromkeys(("actions", "action", "a"), 1),
    **dict.fromkeys(("goals", "goal", "g"), 2),
}
"""What an argument's name says that it is: 0 states, 1 actions, 2 goals."""
_GOAL_FREE: Final = (
    "; the task is taken as goal-free, as its environment has no method reached(goal), so that "
    "goals have no numbers: add that method, or score states and actions alone"
)


def _wanted(function: Callable[..., Any]) -> tuple[list[int], dict[str, int]]:
    """Which of states, actions and goals a function wants: by position, and by keyword.

    An argument with a known name gets what it says, any other one what is left, in order. A default
    other than None makes it a setting. Where two names say the same, order alone decides.
    """
    try:
        every = list(inspect.signature(function).parameters.values())
    except ValueError:  # something built in does not say
        return [0, 1, 2], {}
    if any(p.kind is p.VAR_POSITIONAL for p in every):
        return [0, 1, 2], {}
    named = [p for p in every if p.kind is not p.VAR_KEYWORD]
    unset = [p.name for p in named if p.default is p.empty or p.default is None]
    known = {name: _NAMES[name.lower()] for name in unset if name.lower() in _NAMES}
    if len({*known.values()}) < len(known):
        known = {}
    left = [i for i in range(3) if i not in known.values()]
    wanted = known | dict(zip([n for n in unset if n not in known], left, strict=False))
    first = takewhile(lambda p: p.name in wanted and p.kind is not p.KEYWORD_ONLY, named)
    return [wanted.pop(p.name) for p in list(first)], wanted


def checked(function: Callable[..., Any], where: str) -> Score:
    """A user's function that fails in one sentence rather than in a table.

    It is called with what the names of its arguments say: see `_wanted`. One of states and actions
    alone, Q(s, a), is not shown the goals.
    """
    placed, keyed = _wanted(function)
    towards_goals = 2 in (*placed, *keyed.values())

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        advice = _GOAL_FREE if towards_goals and not goals.shape[1] else ""
        with others_code(where, f"failed on {len(states)} rows", advice):
            # Copies: what it writes into them must not reach who scores the same rows next.
            rows = [each.copy() for each in (states, actions, goals)]
            by_name = {name: rows[i] for name, i in keyed.items()}
            given = np.asarray(function(*(rows[i] for i in placed), **by_name))
            if given.dtype.kind in "cmMSU":
                raise TypeError(f"scores of type {given.dtype}, which are no numbers")
            with np.errstate(over="ignore"):  # infinite then, and named below
                result = given.astype(np.float32)
        if result.shape != (len(states),):
            raise InputError(
                f"{where} returned scores of shape {result.shape} for {len(states)} rows: expected "
                f"({len(states)},), one score per row."
            )
        finite = np.isfinite(result)
        if not finite.all():
            row = int(np.argmin(finite))
            raise InputError(
                f"{where} returned {given[row]} for row {row} (state {states[row].tolist()}): "
                "every score must be a finite number in float32."
            )
        return result

    return score


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
