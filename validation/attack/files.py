"""Broken files through every reader: each is read, or refused in one printable sentence.

A sound file of each kind is damaged at random, its bytes or its content. The number of an attack
names the damage, so that a finding can be made again. Files that once did not hold are kept in
``corpus/`` and read by the tests.
"""

from __future__ import annotations

import io
import json
import math
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

import toptail
from toptail import InputError

ROOT: Final = Path(__file__).parents[2]
CORPUS: Final = Path(__file__).parent / "corpus"
POINT: Final = "pointmaze-medium-navigate-v0"
SECONDS: Final = 10
"""Time that one file may take."""

CRITIC: Final = """
import numpy as np

def score(states, actions, goals):
    return -np.abs(states[:, :2] + 0.2 * actions[:, :2] - goals[:, :2]).sum(axis=1)
"""


@dataclass(frozen=True)
class Reader:
    """A file of a small folder, and the function that reads it."""

    name: str
    file: str
    """The file that is broken, relative to the folder."""
    make: Callable[[Path], object]
    """Write a sound folder."""
    read: Callable[[Path], object]
    """Read the folder as a command would."""


# Damage


NAMES: Final = (
    *("", " ", "query", "value", "a@1", "a@", "=", "..", "/etc/passwd", "../../x", "nan", "$x$"),
    *("<script>alert(1)</script>", "\x1b[31mred\x1b[0m", "line\nbreak", "nul\x00", "\u202eleft"),
    *("\ufeffbom", "x" * 3000, "中文", "{{7*7}}"),
)
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, 1e308, 5e-324),
    *(math.nan, math.inf, "", "x", [], {}, [[]], [None], {"": None}, "1", "NaN"),
)
_SNIPPETS: Final = (
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b'"', b",", b"null\n", b"{", b"[" * 3000),
    *(b"\x1b[2J", b"\x93NUMPY", b"PK\x03\x04", b"PAR1", b"ARROW1", b"1e999", b"-"),
)


def broken(sound: bytes, kind: str, rng: Random) -> bytes:
    """A damaged copy of a sound file: its content where the kind is known, or its bytes."""
    edit = {"json": _json, "jsonl": _lines, "csv": _csv, "npz": _npz}.get(kind)
    if edit is not None and rng.random() < 0.6:
        return edit(sound, rng)
    content = bytearray(sound)
    for _ in range(rng.choice((1, 1, 2, 3))):
        _damage(content, rng)
    return bytes(content)


def _damage(content: bytearray, rng: Random) -> None:
    at, size = rng.randrange(len(content) + 1), rng.choice((1, 4, 16, 200))
    match rng.randrange(5):
        case 0 if at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        case 1:
            del content[at:]
        case 2:
            del content[at : at + size]
        case 3:
            content[at:at] = content[at : at + size] * rng.choice((1, 2, 50))
        case _:
            content[at:at] = rng.choice(_SNIPPETS)


def _json(sound: bytes, rng: Random) -> bytes:
    content = json.loads(sound)
    place: Any = {"": content}
    key: Any = ""
    while isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
        place = place[key]
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
    match rng.randrange(4):
        case 0:
            del place[key]
        case 1:
            for _ in range(rng.choice((1, 60, 900))):
                place[key] = [place[key]]
        case _:
            place[key] = rng.choice((*VALUES, *NAMES))
    return json.dumps(content if place != {} else None).encode()


def _lines(sound: bytes, rng: Random) -> bytes:
    lines = sound.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = _json(lines[at], rng)
    return b"\n".join(lines)


def _csv(sound: bytes, rng: Random) -> bytes:
    rows = [line.split(",") for line in sound.decode().splitlines()]
    row = rng.choice(rows)
    row[rng.randrange(len(row))] = rng.choice((*NAMES, "1e999", "-inf", "", '"', "9" * 400))
    if rng.random() < 0.2:
        row.append("1")
    return (
        rng.choice((",", ",", ";", "\t"))
        .join(rng.choice(("\n", "\r\n")).join(",".join(r) for r in rows).split(","))
        .encode("utf-8", "surrogatepass")
    )


def _npz(sound: bytes, rng: Random) -> bytes:
    arrays: dict[str, Any] = dict(np.load(io.BytesIO(sound)))
    name = rng.choice(list(arrays))
    array = arrays.pop(name)
    others = (
        array.astype(np.str_), array.reshape(-1), array[None], array[:0], np.array("text"),
        np.full(array.shape, rng.choice((math.nan, math.inf, -1.0))), np.full(array.shape, 1j),
        np.zeros(array.shape, [("a", "<f4"), ("b", "<i8")]),
        np.full(array.shape, np.datetime64("NaT")),
    )  # fmt: skip
    arrays[rng.choice((name, name, "x"))] = rng.choice(others)
    target = io.BytesIO()
    np.savez(target, **arrays)
    return target.getvalue()


# Readers


def _pools() -> toptail.ScoredPools:
    rng = np.random.default_rng(0)
    value = rng.random((8, 3))
    scores = {"a@1": value + 0.1, "a@2": value * value, "b": rng.random((8, 3))}
    return toptail.ScoredPools.from_arrays(scores, values=value)


def _table(kind: str) -> Reader:
    name = f"scores.{kind}"
    return Reader(
        f"table.{kind}",
        name,
        lambda folder: _pools().write(folder / name),
        lambda folder: toptail.ScoredPools.read(folder / name),
    )


def _copied(source: str, folder: Path) -> None:
    place = ROOT / "tests" / "fixtures" / "foreign" / source
    if place.is_dir():
        shutil.copytree(place, folder, dirs_exist_ok=True)
    else:
        shutil.copy(place, folder)


def _log(name: str, source: str, file: str = "", **columns: Any) -> Reader:
    given = file or Path(source).name
    target = "." if file else given
    return Reader(
        name,
        given,
        partial(_copied, source),
        lambda folder: toptail.ScoredPools.read(folder / target, **columns),
    )


def _critic(kind: str, name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        from toptail.lab.scorers.user import user_scorers

        (scorer,) = user_scorers([f"mine={kind}{folder / name}"], reserved=())
        return scorer.score(*np.zeros((3, 4, 2), np.float32))

    return read


def _write_data(folder: Path) -> None:
    from toptail.lab.tasks.files import load_file

    source = ROOT / "tests" / "tasks" / "data" / f"{POINT}.npz"
    shutil.copy(source, folder)
    record = {"file": source.name, "source": "here", "bytes": source.stat().st_size}
    record["content_sha256"] = load_file(source).sha256
    (folder / f"{POINT}.npz.json").write_text(json.dumps(record | {"goals_per_episode": [1, 2]}))


def _read_data(folder: Path) -> object:
    from toptail.lab.tasks.files import load_file

    return load_file(folder / f"{POINT}.npz")


def _write_audit(folder: Path) -> None:
    content = toptail.audit(_pools(), resamples=100).to_dict()
    (folder / "audit.json").write_text(json.dumps(content))


def _read_audit(folder: Path) -> object:
    return toptail.AuditResult.read(folder)


def _write_params(folder: Path) -> None:
    from toptail.lab.training.checkpoints import save_params

    save_params(folder / "params.safetensors", {"a": {"w": np.zeros((3, 2)), "b": np.ones(2)}})


def _read_params(folder: Path) -> object:
    from toptail.lab.training.checkpoints import load_params

    return load_params(folder / "params.safetensors")


def _imported(folder: Path) -> object:
    from toptail.lab.foreign.datasets import import_data

    shutil.rmtree(folder / "out", ignore_errors=True)
    return import_data(f"minari:{folder}", folder / "out" / "x.npz")


_OGBENCH: Final = "ogbench/gciql/sd000_20250101_000000"
READERS: Final = (
    *map(_table, ("csv", "jsonl", "json", "parquet", "arrow", "npz")),
    _log("log of lm-eval", "lm_eval/samples_sums.jsonl"),
    _log("log of Inspect", "inspect/sums.eval"),
    _log("log of Inspect in JSON", "inspect/sums.json"),
    _log("scores of RewardBench", "rewardbench/scores.json"),
    _log("data set's state", "huggingface/single", "state.json", query="prompt"),
    _log("data set's rows", "huggingface/single", "data-00000-of-00002.arrow", query="prompt"),
    Reader("audit.json", "audit.json", _write_audit, _read_audit),
    Reader("data set", f"{POINT}.npz", _write_data, _read_data),
    Reader("data set's record", f"{POINT}.npz.json", _write_data, _read_data),
    Reader("params", "params.safetensors", _write_params, _read_params),
    Reader("critic.py", "critic.py", lambda f: (f / "critic.py").write_text(CRITIC),
           _critic("", "critic.py:score")),
    Reader("checkpoint of OGBench", "params_20.pkl", partial(_copied, _OGBENCH),
           _critic("ogbench:", "params_20.pkl")),
    Reader("flags of OGBench", "flags.json", partial(_copied, _OGBENCH),
           _critic("ogbench:", "params_20.pkl")),
    Reader("model of d3rlpy", "cql.d3", partial(_copied, "d3rlpy/cql.d3"),
           _critic("d3rlpy:", "cql.d3")),
    Reader("metadata of Minari", "data/metadata.json", partial(_copied, "minari/arrow"), _imported),
    Reader("episode of Minari", "data/2/part-0.arrow", partial(_copied, "minari/arrow"), _imported),
)  # fmt: skip


# The attack


def outcome(reader: Reader, folder: Path) -> str:
    """Read a folder: ``read`` or ``refused`` if that went as it should, else what happened."""

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        reader.read(folder)
    except InputError as error:
        return "refused" if str(error).isprintable() else f"unprintable: {str(error)!a}"
    except Exception as error:  # whatever else comes out is a finding
        return f"{type(error).__name__}: {error!a}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "read"


def attack_files(reader: Reader, numbers: range) -> tuple[Counter[str], list[str]]:
    """Count the outcomes of damaged files, and list those that are findings."""
    counts: Counter[str] = Counter()
    findings = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reader.make(folder)
        path = folder / reader.file
        sound, kind = path.read_bytes(), path.suffix[1:]
        for number in numbers:
            path.write_bytes(broken(sound, kind, Random(f"{reader.name}:{number}")))
            found = outcome(reader, folder)
            counts[found if found in ("read", "refused") else "finding"] += 1
            if found not in ("read", "refused"):
                findings.append(f"{reader.name}, file {number}: {found}")
    return counts, findings


def corpus() -> list[tuple[Reader, Path]]:
    """The stored files that once did not hold, with their readers."""
    slugs = {"".join(c if c.isalnum() else "-" for c in r.name.lower()): r for r in READERS}
    return [(slugs[path.name.partition("--")[0]], path) for path in sorted(CORPUS.iterdir())]
