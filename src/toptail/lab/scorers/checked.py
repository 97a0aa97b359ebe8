"""Scores of code that is not ours, refused in one sentence where they are none."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import takewhile
from typing import Any, Final

import numpy as np

from toptail.errors import InputError, NotDoneError, brief
from toptail.lab.scorers.base import Rows, Score


@contextmanager
def others_code(where: str, what: str, advice: str = "") -> Iterator[None]:
    """Run code of a user's: whatever it raises is a sentence, what it prints goes to stderr.

    Its wish to end the process is no success of ours, and Ctrl-C says where it was.
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
