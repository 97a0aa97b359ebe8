"""Roles of columns (query, score, value, ...), and their numbers, checked row by row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal, NamedTuple, TypedDict, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError, option
from toptail.stats.best_of_k import Floats, Ints

RESERVED = ("query", "candidate", "support", "cluster", "group", "p_judged")
_OTHER_PARTS = ("scores", "values", "further", "missing_values", "missing")
DESIGN = ("p_judged", "p_whole", "own")
"""The columns of a judging design: see `ScoredPools.design`."""
VALUE_NAMES = ("value", "values", "correct")
SCORE_NAMES = ("score", "scores")
_USUAL_NAMES = {
    "values": (
        *VALUE_NAMES,
        *("is_correct", "pred_ok", "correctness", "passed", "accuracy", "exact_match", "relevance"),
    ),
    "query": (
        *("query", "prompt", "question", "problem"),
        *("prompt_id", "question_id", "query_id", "problem_id", "qid"),
    ),
}
"""Usual names of value and query columns; errors propose them, but they are not used silently."""
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[\d.]*\d,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)


Missing = Literal["lowest", "drop", "error"]
"""A candidate without a score: has the lowest one, is left out, or is an error."""


class Columns(TypedDict, total=False):
    """Which columns of a table have which role.

    ``query``, ``candidate``, ``support``, ``cluster``, ``group`` and ``p_judged`` name one column
    each, by default the one of that name; ``scores`` and ``values`` name one or several, by default
    those that :func:`find_roles` finds. ``further`` are columns that the container carries along:
    those of them that the table has. Several columns may make a ``query`` together. Two entries are
    not names of columns: ``missing_values`` says whether values may be missing, and ``missing``
    what becomes of candidates without a score.
    """

    query: str | Sequence[str] | None
    candidate: str | None
    support: str | None
    cluster: str | None
    group: str | None
    p_judged: str | None
    scores: str | Sequence[str] | None
    values: str | Sequence[str] | None
    further: Sequence[str]
    missing_values: bool
    missing: Missing | None


MISSING_VALUE = (
    f"say with which chance each candidate was chosen for judging ({option('p_judged')}), what an "
    f"unjudged one counts as (a number for {option('unjudged')}), or ask for the worst and the "
    f"best case ({option('unjudged', 'bounds')})"
)
"""Advice for a missing value."""


MISSING_ENTRY = "fill them in or drop the rows"
MISSING_SCORE = (
    "a score is a number, or -inf (the lowest) where a candidate was not retrieved: say what a "
    f"missing score counts as, {option('missing', 'lowest')}, or leave those rows out, "
    f"{option('missing', 'drop')}"
)
"""Advice for a missing score."""


def as_list(names: str | Sequence[str] | None) -> list[str] | None:
    """One name or several as a list; None for none."""
    if names is None:
        return None
    return ([names] if isinstance(names, str) else list(names)) or None


def column_names(where: str, present: Sequence[str], columns: Columns) -> dict[str, str]:
    """New name of each column -> its name in the table.

    A column with a role gets the role's name; another column of that name is left out.
    """
    unknown = sorted(set(columns) - {*RESERVED, *_OTHER_PARTS})
    if unknown:
        raise TypeError(f"there is no role '{unknown[0]}' that a column could have")
    named = {role: name for role in RESERVED if (name := columns.get(role)) is not None}
    return columns_by_role(where, present, named)  # type: ignore[arg-type]


def columns_by_role(where: str, present: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """New name of each column -> its name in the table, given role -> column."""
    for role, name in named.items():
        if name not in present:
            raise InputError(
                f"{where}: there is no column '{name}' to use as {role}; "
                f"the columns are {', '.join(present)}{did_you_mean(name, present)}."
            )
    used = {*named, *named.values()}
    return {name: name for name in present if name not in used} | dict(named)


def other_names(named: Mapping[str, object]) -> dict[str, str]:
    """Role -> column, for the roles whose column has another name."""
    return {role: str(name) for role, name in named.items() if name not in (None, role)}


class Roles(NamedTuple):
    """The score, value and further columns of a table, in order."""

    scores: list[str]
    values: list[str]
    guessed: bool = False
    """Whether the scores are simply all number columns without another role."""
    further: tuple[str, ...] = ()


def find_roles(
    where: str,
    numeric: dict[str, bool],
    scores: Sequence[str] | None,
    values: Sequence[str] | None,
    *,
    missing_values: bool = False,
    own: Mapping[str, str] | None = None,
    needs_query: bool = False,
) -> Roles:
    """Decide which columns are scores and which are values.

    The caller's names decide; a scorer ``raw`` also stands for its seeds ``raw@42``, ``raw@43``.
    Otherwise values are the columns called ``value``, ``values``, ``correct`` or ``value_...``;
    scores are those called ``score``, ``scores`` or ``score_...``, or, where there are none, every
    other ``numeric`` column, which holds numbers or lists of numbers. With ``missing_values`` a
    table may have no value column. Errors use the table's own names (``own``: role -> column), and
    report a missing ``query``, too, where the table ``needs_query``.
    """
    design = DESIGN if "p_judged" in numeric else ()  # other tables may call a score so
    shown = [(own or {}).get(name, name) for name in numeric]
    asked = scores or ()
    free = [name for name in numeric if name not in (*RESERVED, *design) or name in asked]
    named_values = [name for name in free if _is_called(name, "value", VALUE_NAMES)]
    chosen_values = choose(where, values, free, "value") if values else named_values
    if not chosen_values and not missing_values:
        both_missing = needs_query and "query" not in numeric
        raise InputError(
            f"{where}: {missing_columns(('values', *('query',) * both_missing), shown)}."
        )
    rest = [name for name in free if name not in (*chosen_values, *named_values)]
    named_scores = [name for name in rest if _is_called(name, "score", SCORE_NAMES)]
    others = named_scores or [name for name in rest if numeric[name]]
    chosen_scores = choose(where, scores, free, "score") if scores else others
    if not chosen_scores:
        raise InputError(
            f"{where}: no score column; name at least one with {option('scores')} "
            f"(columns: {', '.join(shown)})."
        )
    both = [name for name in chosen_scores if name in chosen_values]
    if both:
        raise InputError(f"{where}: the column '{both[0]}' is named both as a score and a value.")
    return Roles(chosen_scores, chosen_values, guessed=not scores and not named_scores)


_MEANING = {"values": "what a candidate is worth", "query": "which candidates form one pool"}


def missing_columns(parts: Sequence[str], present: Sequence[str]) -> str:
    """The part of an error that says which columns are missing, and which may be meant."""
    lacking = " and ".join(f"no {'value' if p == 'values' else p} column" for p in parts)
    how = " and ".join(f"{option(part)} ({_MEANING[part]})" for part in parts)
    found = {part: name for part in parts if (name := _closest_name(_USUAL_NAMES[part], present))}
    perhaps = ", perhaps " + " ".join(option(*pair) for pair in found.items()) if found else ""
    return (
        f"{lacking}; name {'it' if len(parts) == 1 else 'them'} with {how}{perhaps} "
        f"(columns: {', '.join(present) or 'none'})"
    )


def _closest_name(known: Sequence[str], present: Sequence[str], cutoff: float = 0.85) -> str | None:
    """The column with one of the known names, or a similar one."""
    lower = {name.lower(): name for name in present}
    near = [n for name in known for n in get_close_matches(name, lower, n=1, cutoff=cutoff)]
    found = [name for name in known if name in lower] + near
    return lower[found[0]] if found else None


def did_you_mean(name: str, present: Sequence[str]) -> str:
    """A hint at the column with the most similar name; empty where none is similar."""
    near = _closest_name([name.lower()], present, 0.6)
    return f"; perhaps '{near}' is meant" if near else ""


def _is_called(name: str, word: str, names: Sequence[str]) -> bool:
    return name in names or name.startswith((f"{word}_", f"{word}@"))


def choose(where: str, wanted: Sequence[str], present: list[str], kind: str) -> list[str]:
    """The wanted columns in order, each once; a scorer's name stands for its seed columns."""
    result: list[str] = []
    for name in wanted:
        found = [name] if name in present else [c for c in present if c.startswith(f"{name}@")]
        if not found:
            raise InputError(
                f"{where}: there is no {kind} column '{name}'; "
                f"the columns are {', '.join(present) or 'none'}{did_you_mean(name, present)}."
            )
        result += [c for c in found if c not in result]
    return result


def split_seed(column: str) -> tuple[str, str | None]:
    """``raw@42`` is seed 42 of the scorer ``raw``; any other name has no seed."""
    name, at, seed = column.rpartition("@")
    is_seed = at and name and seed.isascii() and seed.isdigit()
    return (name, seed) if is_seed else (column, None)


def group_seeds(columns: Iterable[str], where: str = "") -> dict[str, dict[int | None, str]]:
    """Scorer -> training seed -> its column, in order of first appearance.

    The seed of a column without one is None. A scorer has either one column without a seed or one
    for each seed; anything else is an :class:`InputError`, which names ``where``.

    >>> group_seeds(["raw@42", "raw@43", "mine"])
    {'raw': {42: 'raw@42', 43: 'raw@43'}, 'mine': {None: 'mine'}}
    """
    result: dict[str, dict[int | None, str]] = {}
    for column in columns:
        name, text = split_seed(column)
        seed = None if text is None else int(text)
        seeds = result.setdefault(name, {})
        if seed in seeds or (seeds and None in {seed, *seeds}):
            other = seeds.get(seed) or next(iter(seeds.values()))
            start = f"{where}: the" if where else "The"
            raise InputError(
                f"{start} columns '{other}' and '{column}' both claim to be the scorer '{name}', "
                "which stands either alone or once for each training seed; rename one of them."
            )
        seeds[seed] = column
    return result


def holds_numbers(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type can hold scores: numbers or lists of numbers."""
    if is_list(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def mostly_numbers(column: pa.ChunkedArray) -> bool:
    """Whether a text column's first thousand entries are mostly numbers, also 0,5 for 0.5."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    head = column.slice(0, 1_000).to_pylist()
    return sum(_is_number(e) or _has_decimal_comma(e) for e in head) * 2 > len(head)


def _is_number(entry: object) -> bool:
    try:
        float(entry)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _has_decimal_comma(entry: object) -> bool:
    return isinstance(entry, str) and _DECIMAL_COMMA.fullmatch(entry) is not None


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds one list per row."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def numbers(
    where: str,
    name: str,
    column: pa.Array,
    row: str = "row",
    *,
    score: bool = False,
    missing: str = MISSING_ENTRY,
) -> Floats:
    """A column as float64, or an :class:`InputError` naming the first bad row.

    Every number is finite, except that a ``score`` may be -inf. ``missing`` is the advice for a
    missing entry; where it is empty, missing entries are allowed and become NaN.
    """
    kind = column.type
    if not (holds_numbers(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        at, text = _first_text(column)
        raise InputError(
            f"{where}: column '{name}' must hold numbers, but {row} {at + 1} holds {text}."
        )
    if column.null_count and missing:
        gap = _gap(name, np.asarray(column.is_null()), row)
        raise InputError(f"{where}: {gap}; {MISSING_SCORE if score else missing}.")
    if pa.types.is_boolean(kind) and not column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    array = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    known = array if missing else np.where(np.isnan(array), 0.0, array)
    check_finite(where, name, known, row, score=score)
    return np.asarray(array, dtype=np.float64)


def _gap(name: str, mask: NDArray[np.bool_], row: str) -> str:
    """The part of an error that says how many entries are missing, and where the first is."""
    count = int(mask.sum())
    rows = f"{mask.size:,} {'entries' if row == 'entry' else 'rows'}"
    values = "missing value" if count == 1 else "missing values"
    return (
        f"column '{name}' has {count:,} {values} in {rows} (the first in {row} {first_row(mask)})"
    )


def check_present(where: str, name: str, column: pa.Array) -> pa.Array:
    """The column, or an :class:`InputError` where an entry is missing (empty or NaN)."""
    mask = np.asarray(pc.is_null(column, nan_is_null=True))
    if mask.any():
        raise InputError(f"{where}: {_gap(name, mask, 'row')}; {MISSING_ENTRY}.")
    return column


def check_complete(where: str, scores: Mapping[str, pa.Array], row: str = "row") -> None:
    """Raise one :class:`InputError` for all scorers with missing scores (empty or NaN)."""
    missing_scores(where, scores, {"missing": "error"}, row)


class MissingScores(NamedTuple):
    """What becomes of missing scores."""

    left_out: frozenset[str] = frozenset()
    """Columns that are not read, because they are incomplete and were not asked for."""
    drop: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()
    """What was done, with counts."""


def missing_scores(
    where: str, scores: Mapping[str, pa.Array], columns: Columns, row: str = "row"
) -> MissingScores:
    """Decide what becomes of missing scores (empty or NaN), by ``columns["missing"]``.

    Without it, incomplete columns are an :class:`InputError` if the caller named the scores, and
    left out otherwise, as long as others are complete.
    """
    policy = columns.get("missing")
    if policy not in (None, *get_args(Missing)):
        raise InputError(
            f"{option('missing', policy)} must be one of {', '.join(get_args(Missing))}."
        )
    masks = {name: np.asarray(pc.is_null(c, nan_is_null=True)) for name, c in scores.items()}
    masks = {name: mask for name, mask in masks.items() if mask.any()}
    if not masks:
        return MissingScores()
    counts = "; ".join(f"“{name}” {mask.sum():,} of {mask.size:,}" for name, mask in masks.items())
    if policy == "lowest":
        return MissingScores(notes=(f"Missing scores count as the lowest: {counts}.",))
    if policy == "drop":
        drop = np.logical_or.reduce(list(masks.values()))
        if drop.all():
            raise InputError(f"{where}: no candidate has all scores ({counts}); name fewer scores.")
        rows = f"{drop.sum():,} of {drop.size:,} candidates"
        return MissingScores(
            drop=drop, notes=(f"Left out for a missing score: {rows} ({counts}).",)
        )
    incomplete = {split_seed(name)[0] for name in masks}
    whole = [name for name in scores if split_seed(name)[0] not in incomplete]
    if policy is None and whole and columns.get("scores") is None:
        note = (
            f"Left out for missing scores: {counts}; to audit them, let those count as the lowest "
            "(--missing lowest, in Python TableColumns(missing='lowest')), or drop the candidates."
        )
        return MissingScores(frozenset(set(scores) - set(whole)), notes=(note,))
    gaps = "; ".join(_gap(name, mask, row) for name, mask in masks.items())
    rest = f"; or take the complete scores alone: {option('scores', whole)}" if whole else ""
    raise InputError(f"{where}: {gaps}; {MISSING_SCORE}{rest}.")


def score_numbers(where: str, name: str, column: pa.Array) -> Floats:
    """A score column whose missing entries count as the lowest, -inf."""
    array = numbers(where, name, column, score=True, missing="")
    return np.where(np.isnan(array), -np.inf, array) if np.isnan(array).any() else array


def query_parts(columns: Columns) -> tuple[str, ...]:
    """The columns that make a query together; empty where one column does."""
    query = columns.get("query")
    parts = () if query is None or isinstance(query, str) else tuple(dict.fromkeys(query))
    return parts if len(parts) > 1 else ()


def check_finite(
    where: str, name: str, array: Floats, row: str = "row", *, score: bool = False
) -> None:
    """Raise :class:`InputError` naming the first NaN or infinite entry; a score may be -inf."""
    finite = np.isfinite(array)
    good = finite if not score or finite.all() else finite | np.isneginf(array)
    if not good.all():
        at = first_row(~good)
        needed = (
            "score must be a finite number, or -inf for the lowest"
            if score
            else ("value must be a finite number")
        )
        raise InputError(
            f"{where}: column '{name}' holds {array[at - 1]} in {row} {at}; every {needed}."
        )


def _first_text(column: pa.Array) -> tuple[int, str]:
    """The first entry that is not a number, for the error message."""
    values = column.to_pylist()
    for at, value in enumerate(values):
        if _has_decimal_comma(value):
            return at, f"{value!r} with a decimal comma; write numbers with a decimal point"
        if isinstance(value, str) and value.strip().isalpha() and not _is_number(value):
            return at, f"{repr(value)[:40]}; write words as numbers, 1 for yes and 0 for no"
        if not _is_number(value):
            return at, repr(value)[:40]
    return 0, f"{values[0]!r} as text; write numbers without quotes" if values else "nothing"


def first_row(mask: ArrayLike) -> int:
    """The first row where the mask is true, counted from 1 as in errors."""
    return int(np.argmax(np.asarray(mask))) + 1


def flags(where: str, name: str, column: pa.Array) -> NDArray[np.bool_]:
    """A column of true/false or 0/1 as booleans."""
    array = numbers(where, name, column)
    bad = (array != 0) & (array != 1)
    if bad.any():
        at = first_row(bad)
        raise InputError(
            f"{where}: column '{name}' must be true/false or 0/1, but row {at} "
            f"holds {array[at - 1]:g}."
        )
    return array.astype(bool)


def codes(where: str, name: str, column: pa.Array) -> tuple[Ints, pa.Array]:
    """Number labels by first appearance: ``codes [rows]`` and ``labels``; none may be missing."""
    if column.null_count:
        raise InputError(
            f"{where}: column '{name}' is missing in row {first_row(column.is_null())}."
        )
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        raise InputError(
            f"{where}: column '{name}' must hold one text or number per row, not {column.type}."
        )
    encoded = column.dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def first_repeat(key: Ints) -> int | None:
    """The index of the first row whose key an earlier row has, too."""
    if (np.diff(key) > 0).all():
        return None
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(np.diff(key[order]) == 0)
    return int(order[again + 1].min()) if again.size else None
