"""Columns that are no scores by the look of them: counters, lengths, seeds, labels, texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.pools.columns import Roles, holds_numbers, is_list
from toptail.stats.best_of_k import Ints

_LAST_WORDS: Final = {
    "an index": ("index", "idx", "rank", "position", "pos", "row", "step", "epoch", "iteration"),
    "a length": ("len", "length", "lengths", "tokens", "chars", "characters", "words"),
    "a count": ("count", "counts"),
    "a seed": ("seed", "seeds"),
    "an id": ("id", "ids", "uid", "uuid", "qid", "timestamp"),
    "an answer": (
        *("answer", "answers", "response", "responses"),
        *("completion", "completions", "solution", "solutions"),
    ),
}
_FIRST_WORDS: Final = {"a count": ("n", "num"), "a length": ("len",)}
"""Before one more word: ``n_gram_score`` and ``length_normalized`` may well be scores."""
_OUTPUTS: Final = ("output", "outputs", "generation")
_LEAST_ROWS: Final = 10
"""In fewer rows, whole numbers in order or all different say nothing."""


def by_look(roles: Roles, texts: Collection[str]) -> dict[str, str]:
    """Column -> why it is no score by its name or type; nothing where scores were named.

    ``texts`` are columns that the file itself says are text, whatever they look like.
    """
    if not roles.guessed:
        return {}
    as_text = dict.fromkeys(texts, "text, though most entries are numbers")
    return {name: why for name, why in as_text.items() if name in roles.scores} | by_name(
        roles.scores
    )


def by_name(names: Iterable[str]) -> dict[str, str]:
    """Column -> why its name is not that of a score, for those of which that is so."""
    looks = {name: _name_of(name) for name in names}
    return {name: f"named like {look}" for name, look in looks.items() if look}


def _name_of(name: str) -> str | None:
    """What a column called so usually holds."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).lower()
    if not text or re.fullmatch(r"unnamed: \d+|level_\d+|i", text):
        return "an index"  # as pandas writes one
    words = [word for word in re.split(r"[^a-z0-9]+", text) if word] or [""]
    for look, last in _LAST_WORDS.items():
        if words[-1] in last:
            return look
    for look, initial in _FIRST_WORDS.items():
        if words[0] in initial and len(words) == 2:
            return look
    return None


def length_column(names: Iterable[tuple[str, pa.DataType]]) -> str | None:
    """The column that says how long candidates are: a length in numbers, else their text."""
    numbers, texts = [], []
    for name, kind in names:
        look = _name_of(name)
        if look == "a length" and holds_numbers(kind) and not is_list(kind):
            numbers.append(name)
        if (look == "an answer" or name.lower() in _OUTPUTS) and _is_text(kind):
            texts.append(name)
    return next(iter([*numbers, *texts]), None)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def by_content(column: NDArray[np.generic], query: Ints, queries: int) -> str | None:
    """Why a column's numbers are not those of a score; None where they may be.

    ``column [rows]`` stands in the table's own order, ``query [rows]`` numbers the queries.
    """
    if column.dtype.kind not in "iu" or column.size < _LEAST_ROWS:
        return None
    if _counts_on(column):
        return "whole numbers in the order of the rows"
    head = column[:1_000]  # most columns repeat themselves early, and sorting all of one is slow
    if np.unique(head).size == head.size and np.unique(column).size == column.size:
        return "whole numbers that are all different"
    sizes = np.bincount(query, minlength=queries)
    order = np.argsort(query, kind="stable")
    place = np.arange(column.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    start = column[order[0]]
    if sizes.max() > 2 and start in (0, 1) and np.array_equal(column[order], place + start):
        return "whole numbers in the order of each query's rows"
    return None


def _counts_on(column: NDArray[np.generic]) -> bool:
    return column[0] in (0, 1) and np.array_equal(column, np.arange(column.size) + column[0])


def without(where: str, roles: Roles, skipped: dict[str, str]) -> Roles:
    """The roles without the columns that were skipped, of which some score must remain."""
    scores = [name for name in roles.scores if name not in skipped]
    if not scores:
        name, why = next(iter(skipped.items()))
        raise InputError(
            f"{where}: no score column; '{name}' ({why}) was left out, name it with "
            f"{option('scores')} if it is one."
        )
    return roles._replace(scores=scores)
