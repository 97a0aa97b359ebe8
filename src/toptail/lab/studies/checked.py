"""Scores of code that is not ours, refused in one sentence where they are none."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import numpy as np

from toptail.errors import InputError
from toptail.lab.studies.scorers import Rows, Score
from toptail.pools.guard import brief


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
    except BaseException as error:
        kind = f"{type(error).__name__}: {brief(error)}"
        raise InputError(f"{where} {what} ({kind}){advice}.") from error


def checked(function: Callable[..., Any], where: str) -> Score:
    """A user's function that fails in one sentence rather than in a table.

    One of states and actions alone, Q(s, a), is not shown the goals.
    """
    shown = 3 if _takes_goals(function) else 2

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        with others_code(where, f"failed on {len(states)} rows"):
            # Copies: what it writes into them must not reach who scores the same rows next.
            rows = (states, actions, goals)[:shown]
            given = np.asarray(function(*(each.copy() for each in rows)))
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


def _takes_goals(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with three arguments; one that does not say so can."""
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # something built in does not say
        return True
    return True
