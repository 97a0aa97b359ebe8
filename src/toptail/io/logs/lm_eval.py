"""Sample logs of lm-evaluation-harness (``--log_samples``): choices with their log-likelihoods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from toptail.errors import InputError
from toptail.io.logs.rows import labels, lines_of
from toptail.io.roles import with_roles

_KEYS: Final = {"doc_id", "target", "arguments", "resps", "filtered_resps"}
SCORES: Final = ("loglikelihood", "loglikelihood_per_character")
"""The harness computes acc from the first, and acc_norm from the second."""


def is_sample(line: object) -> bool:
    """Whether a line is a sample of the harness."""
    return isinstance(line, dict) and set(line) >= _KEYS


def read_samples(path: Path) -> pa.Table:
    """A query per document, a candidate per choice, its log-likelihood, and whether it is right."""
    columns: dict[str, list[Any]] = defaultdict(list)
    used = None
    for number, sample in lines_of(path):
        if not is_sample(sample):
            raise InputError(f"{path}: line {number} is no sample of lm-evaluation-harness.")
        used = sample.get("filter") if used is None else used
        if sample.get("filter") == used:  # each filter repeats all documents
            _add(columns, sample, f"{path}: line {number}")
    return with_roles(pa.table(dict(columns)), SCORES, ["correct"])


def _add(columns: dict[str, list[Any]], sample: Mapping[str, Any], where: str) -> None:
    choices, likelihoods = _choices(sample, where), _likelihoods(sample, where)
    if len(choices) != len(likelihoods) or len(choices) < 2:
        raise InputError(
            f"{where} has {len(choices)} choices and {len(likelihoods)} log-likelihoods; expected "
            "one for each of two or more."
        )
    right = _right(sample["target"], choices, where)
    columns["query"] += [str(sample["doc_id"])] * len(choices)
    columns["candidate"] += labels(choices)
    columns[SCORES[0]] += likelihoods
    lengths = [max(1, len(choice.strip())) for choice in choices]
    columns[SCORES[1]] += [x / n for x, n in zip(likelihoods, lengths, strict=True)]
    columns["correct"] += [i == right for i in range(len(choices))]


def _choices(sample: Mapping[str, Any], where: str) -> list[str]:
    requests = sample["arguments"]
    listed = requests.values() if isinstance(requests, dict) else requests
    found = [r.get("arg_1") if isinstance(r, dict) else r[1] for r in listed]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) < len(found):
        raise InputError(
            f"{where} has generated answers, which the harness does not score one by one: score "
            "them with your reward model, and audit a table with the columns query, candidate, "
            "score and value."
        )
    return texts


def _likelihoods(sample: Mapping[str, Any], where: str) -> list[float]:
    """The log-likelihood of each choice: the first entry of each answer."""
    answers = sample["filtered_resps"]
    try:
        return [float(answer[0] if isinstance(answer, list) else answer) for answer in answers]
    except (TypeError, ValueError, IndexError):
        raise InputError(
            f"{where} has answers that are no log-likelihoods; only multiple choice is read."
        ) from None


def _right(target: object, choices: list[str], where: str) -> int:
    """The index of the right choice; the target is that index or the choice's text."""
    text = str(target).strip()
    if text.isascii() and text.isdigit() and int(text) < len(choices):
        return int(text)
    same = [i for i, choice in enumerate(choices) if choice.strip() == text]
    if len(same) != 1:
        raise InputError(
            f"{where} has the target '{text[:40]}', which is neither the number nor the text of "
            "one choice."
        )
    return same[0]
