"""Bytes that went wrong, and JSON and tables of text that nobody expects, from sound ones."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any, Final

NAMES: Final = (
    *("", " ", "query", "value", "score", "a@1", "a@", "@", "=", ".", "..", "/etc/passwd", "-"),
    *("../../x", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\\input{x}"),
    *("\x1b[31mred\x1b[0m", "line\nbreak", "tab\there", "nul\x00", "\r", "\x07\x08\x9b", "中文"),
    *("\u202eleft", "\ufeffbom", "\u2028", "$x$", "%s{}%n", "__class__", "__proto__", "x" * 3000),
    *("\ud800", "nan", "NULL", "[bold]x[/bold]", "{{7*7}}", "`rm`", "|", "é" * 200),
)
"""Texts that break out of something, or look like something else."""

VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 5e-324),
    *(math.nan, math.inf, -math.inf, "", "x", [], {}, [[]], [None], {"": None}, "1", "NaN"),
)
"""Contents of JSON where another type or size was expected."""

_INTEGERS: Final = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63 - 1,
    2**64 - 1,
)
_SNIPPETS: Final = (
    *(b"\x00", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r\n", b'"', b",", b"null\n", b"{"),
    *(b"[" * 3000, b"\x1b[2J", b"\x93NUMPY", b"PK\x03\x04", b"PAR1", b"ARROW1", b"1e999", b"-"),
)


def damaged(sound: bytes, rng: Random) -> bytes:
    """Bytes that went wrong, in one to three places."""
    content = bytearray(sound)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice((_flip, _flip, _cut, _splice, _insert, _integer, _drop))(content, rng)
    return bytes(content)


def _flip(content: bytearray, rng: Random) -> None:
    for _ in range(rng.choice((1, 1, 2, 8))):
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _cut(content: bytearray, rng: Random) -> None:
    del content[rng.randrange(len(content) + 1) :]


def _splice(content: bytearray, rng: Random) -> None:
    if content:
        begin = rng.randrange(len(content))
        piece = content[begin : begin + rng.choice((1, 4, 16, 200))]
        at = rng.randrange(len(content))
        content[at:at] = piece * rng.choice((1, 1, 2, 50))


def _insert(content: bytearray, rng: Random) -> None:
    at = rng.choice((0, rng.randrange(len(content) + 1), len(content)))
    content[at:at] = rng.choice(_SNIPPETS)


def _integer(content: bytearray, rng: Random) -> None:
    size = rng.choice((1, 2, 4, 8))
    if len(content) > size:
        at = rng.randrange(len(content) - size)
        number = rng.choice(_INTEGERS) & (2 ** (8 * size) - 1)
        content[at : at + size] = number.to_bytes(size, "little")


def _drop(content: bytearray, rng: Random) -> None:
    if content:
        begin = rng.randrange(len(content))
        del content[begin : begin + rng.choice((1, 2, 16, 300))]


# JSON


def edit_json(sound: bytes, rng: Random) -> bytes:
    """JSON with something else in one to three places."""
    return _dumped(edited(json.loads(sound), rng))


def edited(content: Any, rng: Random) -> Any:
    """The content, with something else in one to three places."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        content = _edited_once(content, rng)
    return content


def _edited_once(content: Any, rng: Random) -> Any:
    path = _somewhere(content, rng)
    if not path:
        return _other(content, rng) if rng.random() < 0.3 else content
    *outer, last = path
    place = content
    for step in outer:
        place = place[step]
    if rng.random() < 0.25:
        del place[last]
    elif isinstance(place, dict) and rng.random() < 0.15:
        place[rng.choice(NAMES)] = place.pop(last)
    elif isinstance(place, list) and rng.random() < 0.15:
        place.append(place[last])
    else:
        place[last] = _other(place[last], rng)
    return content


def _somewhere(content: Any, rng: Random) -> list[Any]:
    """The way to a random place; deeper places are as likely as shallow ones."""
    path: list[Any] = []
    while isinstance(content, dict | list) and content:
        step = (
            rng.choice(list(content)) if isinstance(content, dict) else rng.randrange(len(content))
        )
        path.append(step)
        content = content[step]
        if rng.random() < 0.2:
            break
    return path


def _other(content: Any, rng: Random) -> Any:
    choice = rng.random()
    if choice < 0.55:
        return rng.choice(VALUES)
    if choice < 0.75:
        return rng.choice(NAMES)
    if choice < 0.85:
        return [content, content] if rng.random() < 0.5 else {"x": content}
    deep: Any = content
    for _ in range(rng.choice((3, 60, 900))):
        deep = [deep] if rng.random() < 0.5 else {"x": deep}
    return deep


def _dumped(content: Any) -> bytes:
    try:
        return json.dumps(content).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"[" * 5000


def edit_jsonl(sound: bytes, rng: Random) -> bytes:
    """JSON Lines of which one to three are something else."""
    lines = sound.splitlines()
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.choice((0, rng.randrange(len(lines))))
        choice = rng.random()
        if choice < 0.7:
            try:
                lines[at] = edit_json(lines[at], rng)
            except ValueError:
                lines[at] = b"null"
        elif choice < 0.85:
            lines[at] = _dumped(rng.choice(VALUES))
        else:
            lines.insert(at, rng.choice((b"", b"{}", b"null", b"[]", lines[at])))
    return b"\n".join(lines) + rng.choice((b"\n", b"", b"\r\n"))


# Text tables


def edit_csv(sound: bytes, rng: Random) -> bytes:
    """A table of text with other cells, columns or separators."""
    rows = [line.split(",") for line in sound.decode().splitlines()]
    for _ in range(rng.choice((1, 1, 2, 4))):
        row = rng.choice((0, rng.randrange(len(rows))))
        column = rng.randrange(len(rows[0]))
        choice = rng.random()
        if choice < 0.6:
            text = rng.choice((*NAMES, "1e999", "-inf", "nan", "", '"', "0x10", "1_0", "9" * 400))
            rows[row][column % len(rows[row])] = text
        elif choice < 0.7:
            rows[row].append("1")
        elif choice < 0.8:
            for cells in rows:
                del cells[column % len(cells) :][:1]
        elif choice < 0.9:
            rows = [[cells[column % len(cells)], *cells] for cells in rows]
        else:
            rows = rows[: rng.randrange(1, len(rows) + 1)]
    separator = rng.choice((",", ",", ",", ";", "\t", "|", ", "))
    text = rng.choice(("\n", "\n", "\r\n", "\r")).join(separator.join(cells) for cells in rows)
    return text.encode(rng.choice(("utf-8", "utf-8", "utf-16")), "surrogatepass")
