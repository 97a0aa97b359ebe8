"""Logs of other tools, read as tables of scored candidates. The content of a file says its tool.

Read are samples of lm-evaluation-harness (``--log_samples``), logs of Inspect (``.eval`` and
``.json``), outputs of RewardBench (the pairs of its first version, the scores of its second), and
data sets that Hugging Face's ``save_to_disk`` wrote. Each becomes a long table with the columns
``query`` and ``candidate``, and ``answer`` where the log has answers to vote on. Where the log says
which columns are scores and which are values, the table's metadata does, too
(:func:`toptail.io.tables.with_roles`). Otherwise column names decide. A log with answers and
without scores gets one: ``agreement``, the share of a query's answers that are the same.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.ipc

from toptail.errors import InputError, refusing
from toptail.io.files import check_memory, check_readable, entries
from toptail.io.json_files import read_object
from toptail.io.tables import SPLITS, STATE, with_roles


def read_log(path: Path) -> pa.Table:
    """Read a path for which :func:`is_log` is true."""
    return _read_data_set(path) if path.is_dir() else _read_eval(path)


def log_files(path: Path) -> list[Path]:
    """The files of a log, in the order of their rows."""
    return _data_files(path) if path.is_dir() else [path]


def log_of_json(data: Any, where: str) -> pa.Table | None:
    """The table of a JSON log of Inspect or of RewardBench 2's scores; None for any other JSON."""
    if _is_inspect(data):
        return _samples_table(data["samples"] or (), where)
    return _scores_table(data, where) if _is_scores(data) else None


def log_of_lines(path: Path) -> pa.Table | None:
    """The table of a log in JSON Lines, known by its first line; None for any other file."""
    with pa.input_stream(str(path)) as file:  # unpacks by the name's ending
        head = file.read(1 << 22).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    try:
        first = json.loads(head)
    except ValueError:
        return None  # of no line, or of one that the usual reader complains about
    if _is_sample(first):
        return _read_samples(path)
    return _read_pairs(path) if _is_pair(first) else None


def _lines_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file, with the numbers of their lines."""
    with pa.input_stream(str(path)) as file:
        text = file.read().decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        with refusing(path, f"cannot be read in line {number}"):
            content = json.loads(line)
        if not isinstance(content, dict):
            raise InputError(f"{path}: line {number} is no JSON object; expected one on each line.")
        yield number, content


def _labels(texts: Sequence[str]) -> list[str]:
    """The candidates' texts, shortened, as labels; their numbers where two texts are the same."""
    short = [text.strip()[:80] for text in texts]
    return short if len(set(short)) == len(short) else [str(i) for i in range(len(short))]


# Hugging Face: folders of Arrow files.

_ADVICE: Final = "save the data set again with save_to_disk"


def _read_data_set(path: Path) -> pa.Table:
    """The rows of a data set, or of its only split."""
    if (path / SPLITS).is_file():
        return _read_data_set(path / _only_split(path))
    with refusing(path, "is not a readable data set", _ADVICE):
        tables = [_read_arrow(file) for file in _data_files(path)]
        return pa.concat_tables(tables).replace_schema_metadata(None)


def _only_split(path: Path) -> str:
    splits = read_object(path / SPLITS, _ADVICE).get("splits")
    known = [s for s in splits if _is_name(s)] if isinstance(splits, list) else []
    if len(known) != 1:
        raise InputError(
            f"{path} holds the splits {', '.join(known) or 'none'}; give the folder of one, "
            f"such as {path / (known or ['test'])[0]}."
        )
    return str(known[0])


def _is_name(name: Any) -> bool:
    """Whether a text is a name inside the folder, not a path to another place."""
    return isinstance(name, str) and name not in ("", ".", "..") and not {*"/\\\0"} & {*name}


def _data_files(path: Path) -> list[Path]:
    """The Arrow files of a data set, in the order of their rows."""
    if (path / SPLITS).is_file():
        return _data_files(path / _only_split(path))
    if not (path / STATE).is_file():
        found = entries(path, "*.arrow")
    else:
        listed = read_object(path / STATE, _ADVICE).get("_data_files")
        names = [f.get("filename") if isinstance(f, dict) else None for f in listed or ()]
        if not all(map(_is_name, names)):
            raise InputError(f"{path / STATE} names files that are not in the folder; {_ADVICE}.")
        found = [path / str(name) for name in names]
    if not found:
        raise InputError(f"{path} has no Arrow files; {_ADVICE}.")
    return found


def _read_arrow(file: Path) -> pa.Table:
    check_readable(file)
    with pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
        table.validate(full=True)  # wrong offsets inside a column would crash the process later
        return table


# Inspect.

_GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""
_GRADERS: Final = "model_graded_"
"""How Inspect calls scorers that ask a model."""
AGREEMENT: Final = "agreement"
_SAMPLES: Final = "samples/"
_ZSTANDARD: Final = 93
"""The number of Zstandard in a zip file, which Python reads from 3.14 on."""
_HEADER: Final = struct.Struct("<4s5H3I2H")


def _is_inspect(data: object) -> bool:
    return isinstance(data, dict) and {"version", "eval", "status", "samples"} <= set(data)


def _read_eval(path: Path) -> pa.Table:
    """The table of an ``.eval`` file: a zip file with a JSON file for each sample."""
    check_readable(path)
    with refusing(path, "is not a readable log of Inspect"):
        return _samples_table(_samples(path), str(path))


def _samples(path: Path) -> Iterator[Any]:
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        members = [m for m in archive.infolist() if m.filename.startswith(_SAMPLES)]
        check_memory(path, sum(m.file_size for m in members))
        for member in members:
            packed = member.compress_type == _ZSTANDARD
            text = _zstandard(stream, member) if packed else archive.read(member)
            yield json.loads(text)


def _zstandard(stream: IO[bytes], member: zipfile.ZipInfo) -> bytes:
    """Unpack a member that Python's zipfile cannot."""
    stream.seek(member.header_offset)
    header = _HEADER.unpack(stream.read(_HEADER.size))
    stream.seek(header[-2] + header[-1], 1)  # its name and extra field
    packed = pa.py_buffer(stream.read(member.compress_size))
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as text:
        content: bytes = text.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise ValueError(f"{member.filename} is not as long as it says")
    return content


def _samples_table(samples: Iterable[Any], where: str) -> pa.Table:
    """A query per sample, a candidate per epoch, and a column per scorer.

    Where one scorer gives grades (correct, incorrect) and others give numbers, the grades are the
    value, and the numbers are scores. Grades of a model (``model_graded_...``) are scores where
    another scorer gives grades, too.
    """
    rows = [_sample_row(sample, where) for sample in samples]
    if not rows:
        raise InputError(f"{where}: the log has no samples; it may be of a run that failed.")
    names = list(dict.fromkeys(name for row in rows for name in row["scores"]))
    columns: dict[str, list[Any]] = {
        "query": [row["query"] for row in rows],
        "candidate": [row["candidate"] for row in rows],
    }
    columns |= {name: [row["scores"].get(name) for row in rows] for name in names}
    graded = {name for name in names if any(isinstance(x, str) for x in columns[name])}
    for name in graded:
        columns[name] = [_grade(x, name, where) for x in columns[name]]
    values = graded if len(graded) == 1 else {n for n in graded if not n.startswith(_GRADERS)}
    answers = _answers(rows, [*(n for n in names if n in values), *names])
    columns |= {"answer": answers} if answers else {}
    if len(values) != 1:
        return pa.table(columns)
    scores = [name for name in names if name not in values]
    if answers and not scores:
        columns[AGREEMENT] = _agreement(columns["query"], answers)
        scores = [AGREEMENT]
    return with_roles(pa.table(columns), scores, values, ["answer"] if answers else [])


def _answers(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str] | None:
    """The answers that the first scorer with any found; one without an answer agrees with none."""
    for name in names:
        found = [row["answers"].get(name) for row in rows]
        if any(isinstance(answer, str) for answer in found):
            return [
                answer if isinstance(answer, str) else f"no answer in epoch {row['candidate']}"
                for answer, row in zip(found, rows, strict=True)
            ]
    return None


def _agreement(queries: Sequence[str], answers: Sequence[str]) -> list[float]:
    """The share of a query's answers that are the same as each."""
    sizes, same = Counter(queries), Counter(zip(queries, answers, strict=True))
    return [same[both] / sizes[both[0]] for both in zip(queries, answers, strict=True)]


def _sample_row(sample: Any, where: str) -> dict[str, Any]:
    if not isinstance(sample, dict) or not {"id", "epoch"} <= set(sample):
        raise InputError(f"{where}: one of the samples has no id and epoch; is it Inspect's log?")
    columns: dict[str, Any] = {}
    scores = sample.get("scores")
    scores = scores if isinstance(scores, dict) else {}
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        columns |= _flat(name, value)
    answers = {n: score.get("answer") for n, score in scores.items() if isinstance(score, dict)}
    ids = {"query": str(sample["id"]), "candidate": str(sample["epoch"])}
    return {**ids, "scores": columns, "answers": answers}


def _flat(name: str, value: Any) -> dict[str, Any]:
    """A scorer's value as columns; a mapping becomes one column for each of its parts."""
    if isinstance(value, Mapping):
        return {f"{name}.{part}": value[part] for part in value}
    return {name: value}


def _grade(value: Any, name: str, where: str) -> float | None:
    """A grade as a number; numbers stay as they are."""
    if value is None or isinstance(value, int | float):
        return value
    if not isinstance(value, str) or value not in _GRADES:
        raise InputError(
            f"{where}: the scorer '{name}' gave {str(value)[:40]!r}, which is neither a number nor "
            f"one of the grades {', '.join(_GRADES)}."
        )
    return _GRADES[value]


# lm-evaluation-harness: choices with their log-likelihoods.

_LM_EVAL_KEYS: Final = {"doc_id", "target", "arguments", "resps", "filtered_resps"}
_LIKELIHOODS: Final = ("loglikelihood", "loglikelihood_per_character")
"""The harness computes acc from the first, and acc_norm from the second."""


def _is_sample(line: object) -> bool:
    return isinstance(line, dict) and set(line) >= _LM_EVAL_KEYS


def _read_samples(path: Path) -> pa.Table:
    """A query per document, a candidate per choice, its log-likelihood, and whether it is right.

    Of generated answers, a candidate per repeat: :func:`_generated_table`.
    """
    columns: dict[str, list[Any]] = defaultdict(list)
    used = None
    lines = list(_lines_of(path))
    for number, sample in lines:
        if not _is_sample(sample):
            raise InputError(f"{path}: line {number} is no sample of lm-evaluation-harness.")
        if _is_generated(sample):
            return _generated_table(lines, str(path))
        used = sample.get("filter") if used is None else used
        if sample.get("filter") == used:  # each filter repeats all documents
            _add_choices(columns, sample, f"{path}: line {number}")
    return with_roles(pa.table(dict(columns)), _LIKELIHOODS, ["correct"])


def _is_generated(sample: Mapping[str, Any]) -> bool:
    """Whether a sample has one request with a list of texts: generated answers, and repeats."""
    answers = sample["resps"]
    requests = sample["arguments"]
    listed = list(requests.values()) if isinstance(requests, dict) else requests
    settings = listed and isinstance(listed, list) and listed[0]
    second = settings.get("arg_1") if isinstance(settings, dict) else None
    return (
        isinstance(second, dict)
        and isinstance(answers, list)
        and len(answers) == 1
        and isinstance(answers[0], list)
        and all(isinstance(text, str) for text in answers[0])
    )


def _generated_table(lines: Iterable[tuple[int, Mapping[str, Any]]], path: str) -> pa.Table:
    """A query per document, a candidate per repeat, and whether its answer is the target.

    The harness logs a metric for each document and filter, not for each repeat: an answer is right
    if it is the target's text, and the first answers must have got the metric that this says.
    """
    columns: dict[str, list[Any]] = defaultdict(list)
    found: dict[str, list[str]] = {}
    refused = None
    for number, sample in lines:
        where = f"{path}: line {number}"
        if not _is_sample(sample) or not _is_generated(sample):
            raise InputError(f"{where} has no generated answers, which other lines have.")
        answers = _repeats(sample)
        if answers is None:
            refused = refused or where
        elif sample["doc_id"] not in found or found[sample["doc_id"]] == answers:
            _check_metric(sample, answers[0], where)
            if sample["doc_id"] not in found:
                _add_repeats(columns, sample, answers)
            found[sample["doc_id"]] = answers
    if not found or len({len(answers) for answers in found.values()} - {0, 1}) == 0:
        raise InputError(
            f"{refused or path} has generated answers without repeats that can be compared with "
            "the target one by one: log two or more repeats with a filter that keeps them all "
            "(without take_first), or score the answers with your reward model and audit a table "
            "with the columns query, candidate, score and value."
        )
    columns[AGREEMENT] = _agreement(columns["query"], columns["answer"])
    return with_roles(pa.table(dict(columns)), [AGREEMENT], ["correct"], ["answer"])


def _repeats(sample: Mapping[str, Any]) -> list[str] | None:
    """The answers of all repeats behind the sample's filter; None where it keeps only some."""
    texts, kept = sample["resps"][0], sample["filtered_resps"]
    kept = kept[0] if isinstance(kept, list) and len(kept) == 1 else kept
    if isinstance(kept, list) and len(kept) == len(texts):
        return [str(answer).strip() for answer in kept]
    return [text.strip() for text in texts] if kept == texts[0] else None


def _is_target(answer: str, sample: Mapping[str, Any]) -> bool:
    """Whether an answer is the target, or what stands behind its last ``####`` (as in GSM8K)."""
    target = str(sample["target"])
    return answer in (target.strip(), target.rpartition("####")[2].strip())


def _check_metric(sample: Mapping[str, Any], answer: str, where: str) -> None:
    """Refuse where the harness judged otherwise than :func:`_is_target`."""
    logged = sample.get("exact_match")
    single = not isinstance(sample["filtered_resps"][0], list)
    if single and isinstance(logged, int | float) and bool(logged) != _is_target(answer, sample):
        raise InputError(
            f"{where}: exact_match is {logged:g} for the answer '{answer[:40]}' and the target "
            f"'{str(sample['target'])[:40]}': the harness compares otherwise, and does not log it "
            "for each repeat; judge the answers, and audit a table with the columns query, "
            "candidate, score and value."
        )


def _add_repeats(
    columns: dict[str, list[Any]], sample: Mapping[str, Any], answers: Sequence[str]
) -> None:
    columns["query"] += [str(sample["doc_id"])] * len(answers)
    columns["candidate"] += range(len(answers))
    columns["answer"] += answers
    columns["correct"] += [_is_target(answer, sample) for answer in answers]


def _add_choices(columns: dict[str, list[Any]], sample: Mapping[str, Any], where: str) -> None:
    choices, likelihoods = _choices(sample, where), _likelihoods(sample, where)
    if len(choices) != len(likelihoods) or len(choices) < 2:
        raise InputError(
            f"{where} has {len(choices)} choices and {len(likelihoods)} log-likelihoods; expected "
            "one for each of two or more."
        )
    right = _right(sample["target"], choices, where)
    columns["query"] += [str(sample["doc_id"])] * len(choices)
    columns["candidate"] += _labels(choices)
    columns[_LIKELIHOODS[0]] += likelihoods
    lengths = [max(1, len(choice.strip())) for choice in choices]
    columns[_LIKELIHOODS[1]] += [x / n for x, n in zip(likelihoods, lengths, strict=True)]
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


# RewardBench. Version 2 writes one object of columns: lists of scores, of which the first
# ``num_correct`` are of right answers. Version 1 writes a line per prompt with the scores of the
# chosen and of the rejected answer.

_COLUMNS_OF_2: Final = ("id", "scores", "num_correct", "subset")
_PAIR: Final = ("scores_chosen", "scores_rejected")


def _is_scores(data: object) -> bool:
    return isinstance(data, dict) and all(isinstance(data.get(c), list) for c in _COLUMNS_OF_2)


def _is_pair(line: object) -> bool:
    return isinstance(line, dict) and all(name in line for name in _PAIR)


def _scores_table(data: Mapping[str, Any], where: str) -> pa.Table:
    """A query per prompt, a candidate per answer, with the subset as its group."""
    lengths = {name: len(data[name]) for name in _COLUMNS_OF_2}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(f"{where}: the columns are not of one length ({sizes}).")
    model = str(data.get("model") or "score")
    columns: dict[str, list[Any]] = {n: [] for n in ("query", "group", "candidate")}
    columns |= {model: [], "correct": []}
    for row, (name, scores, right, subset) in enumerate(
        zip(*(data[column] for column in _COLUMNS_OF_2), strict=True), start=1
    ):
        answers = _numbers(scores, f"{where}: row {row}")
        count = _count(right, len(answers), f"{where}: row {row}")
        columns["query"] += [f"{subset}/{name}"] * len(answers)
        columns["group"] += [str(subset)] * len(answers)
        columns["candidate"] += range(len(answers))
        columns[model] += answers
        columns["correct"] += [i < count for i in range(len(answers))]
    return with_roles(pa.table(columns), [model], ["correct"])


def _numbers(scores: Any, where: str) -> list[float]:
    """Scores as numbers; each may be wrapped in a list."""
    flat = [s[0] if isinstance(s, list) and len(s) == 1 else s for s in _list(scores, where)]
    if not all(isinstance(s, int | float) for s in flat):
        raise InputError(f"{where} has scores that are no numbers.")
    return [float(s) for s in flat]


def _list(scores: Any, where: str) -> list[Any]:
    if not isinstance(scores, list) or not scores:
        raise InputError(f"{where} has no list of scores.")
    return scores


def _count(right: Any, most: int, where: str) -> int:
    """The number of right answers, which may be written as 2.0."""
    if not isinstance(right, int | float) or right != int(right) or not 0 <= right <= most:
        raise InputError(f"{where} has {str(right)[:40]} right answers of {most}.")
    return int(right)


def _read_pairs(path: Path) -> pa.Table:
    """A query per prompt, with two candidates: chosen, which is right, and rejected."""
    columns: dict[str, list[Any]] = {n: [] for n in ("query", "candidate", "score", "correct")}
    for number, line in _lines_of(path):
        if not _is_pair(line):
            raise InputError(f"{path}: line {number} has no {' and '.join(_PAIR)}.")
        columns["query"] += [str(number)] * 2
        columns["candidate"] += ["chosen", "rejected"]
        where = f"{path}: line {number}"
        columns["score"] += _numbers([line[name] for name in _PAIR], where)
        columns["correct"] += [True, False]
    return with_roles(pa.table(columns), ["score"], ["correct"])
