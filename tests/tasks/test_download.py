from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest

from tests.tasks.conftest import DATA
from toptail.errors import InputError
from toptail.lab.tasks import download
from toptail.lab.tasks.download import MIRRORS, get, get_file, mirrors
from toptail.lab.tasks.files import load, read_record, record_path
from toptail.lab.tasks.names import parse_name

POINT = "pointmaze-medium-navigate-v0"
TASK = parse_name(POINT)
FILE = f"{POINT}.npz"
WHOLE = (DATA / FILE).read_bytes()
TRIES = 3


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_TRIES", TRIES)
    monkeypatch.setattr(download, "_WAIT", 0.0)
    monkeypatch.setattr(download, "_TIMEOUT", 5.0)


@dataclass
class Mirror:
    """A local web server with all the faults of a real one."""

    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: int | None = None
    """Close the connection after this many bytes of each answer."""
    ranges: bool = True
    """Whether it can send parts."""
    etag: str | None = '"one"'
    says_length: bool = True
    status: int | None = None
    """Answer everything with this status."""
    reason: str | None = None
    """What it says beside the status."""
    length: str | None = None
    """What it says instead of the length."""
    asked: list[str | None] = field(default_factory=list)
    """The Range header of each request."""
    before_answer: Callable[[Mirror], None] = lambda _: None
    address: str = ""


@contextmanager
def serve(mirror: Mirror) -> Iterator[Mirror]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.asked.append(self.headers.get("Range"))
            mirror.before_answer(mirror)
            content = mirror.files.get(self.path.removeprefix("/"))
            if mirror.status is not None or content is None:
                self.send_error(mirror.status or 404, mirror.reason)
                return
            self._send(content, self.headers.get("Range"))

        def _send(self, content: bytes, wanted: str | None) -> None:
            same = self.headers.get("If-Range", mirror.etag) == mirror.etag
            start = 0
            if wanted and mirror.ranges and same:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206)
                span = f"{start}-{len(content) - 1}"
                self.send_header("Content-Range", f"bytes {span}/{len(content)}")
            else:
                self.send_response(200)
            if mirror.says_length:
                self.send_header("Content-Length", mirror.length or str(len(content) - start))
            if mirror.etag is not None:
                self.send_header("ETag", mirror.etag)
            self.end_headers()
            end = len(content) if mirror.cut_after is None else start + mirror.cut_after
            self.wfile.write(content[start:end])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    mirror.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield mirror
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def stop(*_: object) -> None:
    raise KeyboardInterrupt


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_both_files_arrive_whole_with_their_records(tmp_path: Path) -> None:
    files = {path.name: path.read_bytes() for path in DATA.glob(f"{POINT}*.npz")}
    seen = []
    told: list[str] = []
    with serve(Mirror(files)) as mirror:
        get(POINT, tmp_path, [mirror.address], lambda *args: seen.append(args), told.append)
        get(POINT, tmp_path, [mirror.address], tell=told.append)  # all is there: nothing is asked
        assert len(mirror.asked) == 2
        assert (tmp_path / FILE).read_bytes() == WHOLE
        (tmp_path / FILE).unlink()
        get(POINT, tmp_path, [mirror.address], tell=told.append)  # its record is there
    (sentence,) = told
    assert "No checksum is known" in sentence
    assert seen[0] == (FILE, 1.0)
    record = read_record(tmp_path / FILE)
    assert record is not None
    assert record["content_sha256"] == load(tmp_path / FILE).train.sha256
    assert record["bytes"] == len(WHOLE)
    assert record["source"] == f"{mirror.address}/{FILE}"
    assert not [name for name in leftovers(tmp_path) if "part" in name]


def test_cut_connections_are_taken_up_where_they_broke(tmp_path: Path) -> None:
    with serve(Mirror({FILE: WHOLE}, cut_after=1000)) as mirror:
        get_file(TASK, tmp_path / FILE, [mirror.address])
    assert (tmp_path / FILE).read_bytes() == WHOLE
    expected = [None, *(f"bytes={n}-" for n in range(1000, len(WHOLE), 1000))]
    assert mirror.asked == expected


def test_an_interrupted_download_never_looks_complete_and_goes_on(tmp_path: Path) -> None:
    with serve(Mirror({FILE: WHOLE}, cut_after=2000)) as mirror:
        with pytest.raises(KeyboardInterrupt):
            get_file(TASK, tmp_path / FILE, [mirror.address], stop)
        assert leftovers(tmp_path) == [f"{FILE}.part", f"{FILE}.part.json"]
        get_file(TASK, tmp_path / FILE, [mirror.address])
        assert mirror.asked[1] == "bytes=2000-"
    assert (tmp_path / FILE).read_bytes() == WHOLE


def cut_twice(mirror: Mirror) -> None:
    mirror.cut_after = 1000 if len(mirror.asked) < 3 else None


def busy_twice(mirror: Mirror) -> None:
    mirror.status = 503 if len(mirror.asked) < 3 else None


@pytest.mark.parametrize("trouble", [cut_twice, busy_twice])
def test_a_server_that_cannot_resume_or_is_busy_is_asked_again(
    trouble: Callable[[Mirror], None], tmp_path: Path
) -> None:
    with serve(Mirror({FILE: WHOLE}, ranges=False, before_answer=trouble)) as mirror:
        get_file(TASK, tmp_path / FILE, [mirror.address])
    assert (tmp_path / FILE).read_bytes() == WHOLE
    assert len(mirror.asked) == 3


@pytest.mark.parametrize("etag", ['"two"', None])
def test_a_file_that_changed_meanwhile_is_not_mixed(etag: str | None, tmp_path: Path) -> None:
    """With a validator the server says so; without one the size does."""
    other = (DATA / f"{POINT}-val.npz").read_bytes()

    def change(mirror: Mirror) -> None:
        if len(mirror.asked) == 2:
            mirror.files[FILE], mirror.etag, mirror.cut_after = other, etag, None

    first = Mirror({FILE: WHOLE}, cut_after=1000, etag=etag and '"one"', before_answer=change)
    with serve(first) as mirror:
        get_file(TASK, tmp_path / FILE, [mirror.address])
    assert (tmp_path / FILE).read_bytes() == other


def test_a_part_from_one_mirror_is_not_continued_from_another(tmp_path: Path) -> None:
    one, two = Mirror({FILE: WHOLE}, cut_after=0), Mirror({FILE: WHOLE})

    def cut(mirror: Mirror) -> None:
        mirror.cut_after = 1000 if len(mirror.asked) == 1 else 0

    one.before_answer = cut
    with serve(one), serve(two):
        get_file(TASK, tmp_path / FILE, [one.address, two.address])
    assert len(one.asked) == 1 + TRIES
    assert two.asked == [None]
    assert (tmp_path / FILE).read_bytes() == WHOLE


def test_without_a_length_the_files_own_checksums_decide(tmp_path: Path) -> None:
    with serve(Mirror({FILE: WHOLE}, says_length=False, cut_after=1000)) as mirror:
        with pytest.raises(InputError, match="truncated"):
            get_file(TASK, tmp_path / FILE, [mirror.address])
        assert leftovers(tmp_path) == []
        mirror.cut_after = None
        get_file(TASK, tmp_path / FILE, [mirror.address])
    assert (tmp_path / FILE).read_bytes() == WHOLE


def test_the_next_mirror_helps_when_one_has_no_sound_file(tmp_path: Path) -> None:
    page = Mirror({FILE: b"<html>we moved</html>"})
    gone, good = Mirror(), Mirror({FILE: WHOLE})
    with serve(page), serve(gone), serve(good):
        addresses = [page.address, gone.address, good.address]
        get_file(TASK, tmp_path / FILE, addresses)
    assert (tmp_path / FILE).read_bytes() == WHOLE
    assert len(gone.asked) == 1  # 404 is an answer: asking again would not help


def test_a_file_other_than_the_recorded_one_is_refused(tmp_path: Path) -> None:
    other = (DATA / f"{POINT}-val.npz").read_bytes()
    with serve(Mirror({FILE: WHOLE})) as mirror:
        get_file(TASK, tmp_path / FILE, [mirror.address])
        (tmp_path / FILE).unlink()
        mirror.files[FILE] = other
        with pytest.raises(InputError, match=r"its bytes is .*\.npz\.json records"):
            get_file(TASK, tmp_path / FILE, [mirror.address])
        assert not (tmp_path / FILE).exists()
        record_path(tmp_path / FILE).unlink()
        get_file(TASK, tmp_path / FILE, [mirror.address])
    assert (tmp_path / FILE).read_bytes() == other


def test_no_network_says_how_to_collect_instead(tmp_path: Path) -> None:
    with serve(Mirror()) as mirror:
        nobody = mirror.address
    with pytest.raises(InputError, match=rf"refused.*toptail data collect {POINT}") as caught:
        get(POINT, tmp_path, [nobody])
    assert "\n" not in str(caught.value)
    assert leftovers(tmp_path) == []


def test_a_whole_part_that_was_not_yet_accepted_needs_no_network(tmp_path: Path) -> None:
    with serve(Mirror({FILE: WHOLE})) as mirror:
        address = mirror.address

        with pytest.raises(KeyboardInterrupt):
            get_file(TASK, tmp_path / FILE, [address], stop)
    get_file(TASK, tmp_path / FILE, [address])
    assert (tmp_path / FILE).read_bytes() == WHOLE


def test_the_users_mirrors_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mirrors() == list(MIRRORS)
    monkeypatch.setenv("TOPTAIL_MIRRORS", "http://b/x/ http://c")
    assert mirrors(("http://a/",)) == ["http://a", "http://b/x", "http://c", *MIRRORS]


def npz_without_arrays() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("observations.npy", b"no array")
    return buffer.getvalue()


BAD = {
    "nothing": Mirror({FILE: b""}),
    "odd length": Mirror({FILE: WHOLE}, length="²", cut_after=100),
    "no arrays": Mirror({FILE: npz_without_arrays()}),
    "words for the terminal": Mirror(status=500, reason="\x1b[31m red"),
}


@pytest.mark.parametrize("bad", BAD)
def test_from_a_bad_mirror_it_moves_on_to_the_next(bad: str, tmp_path: Path) -> None:
    with serve(BAD[bad]) as worse, serve(Mirror({FILE: WHOLE})) as better:
        with pytest.raises(InputError) as refused:
            get_file(TASK, tmp_path / "a" / FILE, [worse.address])
        assert str(refused.value).isprintable()
        get_file(TASK, tmp_path / "b" / FILE, [worse.address, better.address])
    assert (tmp_path / "b" / FILE).read_bytes() == WHOLE
    assert leftovers(tmp_path / "a") == []
