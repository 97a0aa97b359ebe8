"""A server on this machine that does what no server should, and downloads from it."""

from __future__ import annotations

import io
import signal
import socket
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from tests.attack.mutate import bomb, edit_npz
from tests.attack.state import State
from tests.attack.turns import Turns
from tests.attack.world import DATA, POINT

FILE: Final = f"{POINT}.npz"
WHOLE: Final = (DATA / FILE).read_bytes()
SIZE: Final = len(WHOLE)

Behaviour = Callable[[socket.socket, str], None]
"""Answers a request on a connection."""


def _answer(*headers: str, status: str = "200 OK", body: bytes = WHOLE) -> Behaviour:
    """Send a status, headers and a body."""

    def act(connection: socket.socket, request: str) -> None:
        del request
        head = "\r\n".join([f"HTTP/1.1 {status}", *headers, "Connection: close", "", ""])
        connection.sendall(head.encode("latin-1") + body)

    return act


def _raw(content: bytes) -> Behaviour:
    return lambda connection, _request: connection.sendall(content)


def _part(span: str, body: bytes = WHOLE) -> Behaviour:
    """Cut the first answer in the middle, and answer the request for the rest with a span."""

    def act(connection: socket.socket, request: str) -> None:
        if "range:" in request.lower():
            answer = _answer(f"Content-Range: {span}", status="206 Partial Content", body=body)
            answer(connection, request)
        else:
            _answer(f"Content-Length: {SIZE}", 'ETag: "a"', body=WHOLE[:1000])(connection, request)

    return act


def _slow(connection: socket.socket, request: str) -> None:
    """A byte now and then."""
    del request
    connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n".encode())
    for at in range(4):
        connection.sendall(WHOLE[at : at + 1])
        time.sleep(0.4)


def _endless(connection: socket.socket, request: str) -> None:
    """Zeros, as long as somebody takes them, up to 64 MB."""
    del request
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    for _ in range(64):
        connection.sendall(bytes(1 << 20))


def _silent(connection: socket.socket, request: str) -> None:
    del connection, request
    time.sleep(1.5)


def _circle(connection: socket.socket, request: str) -> None:
    path = request.split()[1]
    _answer(f"Location: {path}x", "Content-Length: 0", status="302 Found", body=b"")(
        connection, request
    )


def _npz(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return target.getvalue()


def _length(body: bytes) -> Behaviour:
    return _answer(f"Content-Length: {len(body)}", body=body)


def _with(**changes: Any) -> bytes:
    """The data set with other arrays."""
    target = io.BytesIO()
    with np.load(DATA / FILE) as arrays:
        np.savez(target, **{**arrays, **changes})
    return target.getvalue()


def _redirect(address: str) -> Behaviour:
    return _answer(f"Location: {address}", "Content-Length: 0", status="302 Found", body=b"")


def behaviours() -> Mapping[str, Behaviour]:
    """What the server can do wrong."""
    from random import Random

    return {
        "closes at once": _raw(b""),
        "says nothing": _silent,
        "no HTTP": _raw(b"\x00\x01\x02 hello\r\n\r\n"),
        "half a status": _raw(b"HTTP/1.1 2"),
        "a status that is no number": _raw(b"HTTP/1.1 abc OK\r\n\r\n"),
        "a status of 999": _answer(status="999 \x1b[31mWhat"),
        "a reason with escape codes": _answer(status="404 \x1b[2J\x07gone"),
        "a header without end": _raw(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000),
        "a thousand headers": _answer(*(f"X-{n}: 1" for n in range(1000))),
        "headers that are no headers": _answer("no colon here", ":", " : x"),
        "no length": _answer(),
        "no length and half a file": _answer(body=WHOLE[: SIZE // 2]),
        "a length that is no number": _answer("Content-Length: many"),
        "a negative length": _answer("Content-Length: -5"),
        "a length in other digits": _answer("Content-Length: ²"),
        "a length of 400 digits": _answer(f"Content-Length: {'9' * 400}"),
        "two lengths": _answer(f"Content-Length: {SIZE}", "Content-Length: 5"),
        "a length of 2**62": _answer(f"Content-Length: {2**62}"),
        "a length that is too small": _answer("Content-Length: 100"),
        "a length that is too large": _answer(f"Content-Length: {SIZE + 100}"),
        "chunks of wrong size": _answer("Transfer-Encoding: chunked", body=b"zz\r\nabc\r\n"),
        "a chunk without end": _answer("Transfer-Encoding: chunked", body=b"ffffff\r\nabc"),
        "a packed body": _answer("Content-Encoding: gzip", body=b"\x1f\x8b\x08" + bytes(50)),
        "slowly": _slow,
        "endless": _endless,
        "redirect to itself": _circle,
        "redirect to a file": _redirect("file:///etc/passwd"),
        "redirect to ftp": _redirect("ftp://127.0.0.1:1/x"),
        "redirect to nowhere": _redirect("http://127.0.0.1:1/x"),
        "redirect to nonsense": _redirect("http://[::1"),
        "redirect with escape codes": _redirect("http://127.0.0.1:1/\x1b[31m"),
        "redirect without address": _answer("Content-Length: 0", status="302 Found", body=b""),
        "a page": _length(b"<html>sign in</html>"),
        "another zip": _length(_npz(x=b"no array")),
        "members that are no arrays": _length(_npz(observations=b"x", actions=b"", terminals=b"")),
        "an empty zip": _length(_npz()),
        "a bomb": _length(bomb()),
        "pickles": _length(edit_npz(WHOLE, Random(7)) + b"\x80\x04."),
        "names that climb": _length(_npz(**{"../../x": b"x"})),
        "other widths": _length(_with(observations=np.zeros((244, 3), np.float32))),
        "other types": _length(_with(terminals=np.array(["x"] * 244))),
        "not finite": _length(_with(actions=np.full((244, 2), np.nan, np.float32))),
        "a flipped byte": _length(WHOLE[:3000] + bytes([WHOLE[3000] ^ 1]) + WHOLE[3001:]),
        "an empty body": _length(b""),
        "a part that begins elsewhere": _part(f"bytes 5-{SIZE - 1}/{SIZE}"),
        "a part of another size": _part(f"bytes 1000-1999/{2 * SIZE}"),
        "a part without a span": _part("bytes"),
        "a part that is no part": _part("bytes */*"),
        "a part of nonsense": _part("bytes 1000-x/²", WHOLE[1000:]),
        "a part that is too long": _part(f"bytes 1000-{SIZE - 1}/{SIZE}", WHOLE),
        "busy for ever": _answer("Content-Length: 0", status="503 Busy", body=b""),
        "not allowed": _answer("Content-Length: 0", status="403 No", body=b""),
        "no content": _raw(b"HTTP/1.1 204 None\r\n\r\n"),
        "continue for ever": _raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 50),
    }


GOAL: Final = 2 * len(behaviours())
"""Each behaviour alone, and with a sound mirror behind it."""


@contextmanager
def hostile(act: Behaviour) -> Iterator[str]:
    """A server with a behaviour; its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, act), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _accept(listener: socket.socket, act: Behaviour) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_one, args=(connection, act), daemon=True).start()


def _one(connection: socket.socket, act: Behaviour) -> None:
    with connection, suppress(OSError, IndexError):
        request = connection.recv(1 << 16).decode("latin-1")
        act(connection, request)


@contextmanager
def sound_mirror() -> Iterator[str]:
    """A server that has PointMaze's data set."""
    files = {path.name: path.read_bytes() for path in DATA.glob(f"{POINT}*.npz")}

    def act(connection: socket.socket, request: str) -> None:
        body = files.get(request.split()[1].removeprefix("/"))
        if body is None:
            _answer("Content-Length: 0", status="404 Not Found", body=b"")(connection, request)
        else:
            _length(body)(connection, request)

    with hostile(act) as address:
        yield address


class LateError(BaseException):
    """A download did not end."""


def download(addresses: list[str], seconds: int = 30) -> str:
    """How a download ends: the sound file, a sentence, or what should not be."""
    from toptail.errors import InputError
    from toptail.lab.tasks.download import get_file
    from toptail.lab.tasks.names import parse_name

    def late(_signal: int, _frame: object) -> NoReturn:
        raise LateError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / FILE
            get_file(parse_name(POINT), path, addresses)
            left = sorted(file.name for file in Path(folder).iterdir())
            sound = path.read_bytes() == WHOLE and left == [FILE, f"{FILE}.json"]
        return "sound" if sound else "another file"
    except InputError as error:
        return "refused" if error.for_command_line.isprintable() else "unprintable"
    except LateError:
        return "late"
    except Exception as error:
        return f"traceback: {type(error).__name__}: {ascii(str(error))[:100]}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def meet(name: str) -> dict[str, str]:
    """Download from a server with a behaviour, alone and with a sound one behind it."""
    with hostile(behaviours()[name]) as bad, sound_mirror() as good:
        return {"alone": download([bad]), "then a sound one": download([bad, good])}


def attack(state: State, home: Path, turns: Turns) -> None:
    """Meet every behaviour that was not met yet."""
    del home
    for number, name in enumerate(behaviours()):
        if turns.first("behaviours", state.left("behaviours", [number]), size=2) is None:
            continue
        state.add("behaviours", number)
        for how, outcome in meet(name).items():
            held = outcome in (("sound", "refused") if how == "alone" else ("sound",))
            state.count({"behaviours": 1, "handled" if held else outcome.partition(":")[0]: 1})
            if not held:
                state.find(name, number, outcome, how=how)
                print(f"  {name}, {how}: {outcome}", flush=True)
        state.save()
