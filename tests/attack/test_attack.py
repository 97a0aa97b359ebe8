"""A small part of every attack, always the same, and that the attacks notice what they look for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.attack import cli, crash, faults, figures, fuzz, names, server
from tests.attack.cases import CASES, READING, Case, commands
from tests.attack.crash import Ground, Undisturbed
from tests.attack.forks import Ended, Line
from tests.attack.fuzz_worker import Seen, outcome, try_files
from tests.attack.mutate import mutated
from tests.attack.readers import READERS, Reader
from tests.attack.same import differences, snapshot, timeless
from tests.attack.state import State
from tests.attack.world import make_world

CORPUS = Path(__file__).parent / "corpus"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with crash.battleground(tmp_path_factory.mktemp("attack")) as made:
        yield made


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


class TestCrashPoints:
    def test_every_command_that_writes_has_them(self) -> None:
        """A new command is attacked, or shown to write nothing."""
        attacked = {case.command for case in CASES}
        assert attacked | READING.keys() == {name for name, _ in commands()}
        assert not attacked & READING.keys()

    @pytest.mark.parametrize("command", [name for name in READING if name != "bench"])
    def test_the_others_write_nothing(self, command: str, ground: Ground) -> None:
        work = ground.fresh(case_of("audit"))
        line = Line(READING[command].split(), str(work), environment=ground.environment)
        ended = ground.forks.run(line)
        assert ended.code == 0, ended.err
        assert ended.events == ()

    @pytest.mark.parametrize(
        ("name", "kills"), [("picks", 3), ("audit-again", 2), ("get", 4), ("collect", 4)]
    )
    def test_nothing_is_lost(self, name: str, kills: int, ground: Ground) -> None:
        case = case_of(name)
        usual = Undisturbed.of(ground, case)
        for at in crash.points(case, len(usual.events))[:kills]:
            assert crash.kill(ground, case, usual, at) == [], f"before event {at}"

    def test_what_is_thrown_away_last_does_not_stay(self, ground: Ground) -> None:
        """Killed with all done but the removal of its parts, a collection has nothing to write."""
        usual = Undisturbed.of(ground, case := case_of("collect"))
        assert usual.events[-1] == "rmdir"
        assert crash.kill(ground, case, usual, len(usual.events)) == []

    def test_a_command_that_loses_something_is_noticed(self, ground: Ground) -> None:
        """Killed between its two files, this one refuses to go on."""
        case = Case("careless", "audit", "x", first="tests.attack.careless:install")
        usual = Undisturbed.of(ground, case)
        assert usual.events == ("open", "write", "open", "write")
        assert crash.kill(ground, case, usual, 1) == []
        (refused,) = crash.kill(ground, case, usual, 3)
        assert "ended with 2: half done" in refused

    def test_an_event_that_does_not_come_is_noticed(self, ground: Ground) -> None:
        case = case_of("picks")
        usual = Undisturbed.of(ground, case)
        (problem,) = crash.kill(ground, case, usual, len(usual.events) + 1)
        assert "was not killed" in problem


class TestComparison:
    def test_times_do_not_count_and_numbers_do(self) -> None:
        one = b'{"seconds": 1, "at": "2026-01-02T03:04:05+00:00", "n": 1}'
        other = b'{"seconds": 2, "at": "2027-01-02T03:04:05+00:00", "n": 1}'
        assert timeless(".json", one) == timeless(".json", other)
        assert timeless(".json", one) != timeless(".json", one.replace(b'"n": 1', b'"n": 2'))

    @pytest.mark.parametrize("took", [b"1 second", b"0 seconds", b"1.5 minutes", b"1 hour"])
    def test_durations_of_a_page_do_not_count(self, took: bytes) -> None:
        assert timeless(".html", b"<dd>" + took + b"</dd>") == b"<dd></dd>"
        assert timeless(".html", took + b"ary goals") != b"ary goals"

    def test_what_a_call_made_and_found_does_not_count(self) -> None:
        page = b"for %d trained and %d stored units, %d steps"
        assert timeless(".html", page % (6, 0, 4)) == timeless(".html", page % (0, 6, 4))
        assert timeless(".html", page % (6, 0, 4)) != timeless(".html", page % (6, 0, 5))

    def test_the_commit_of_a_page_does_not_count_and_a_hash_does(self) -> None:
        assert timeless(".html", b"<dd>" + b"a1" * 20 + b"</dd>") == b"<dd></dd>"
        assert timeless(".html", b"a1" * 32) != timeless(".html", b"b1" * 32)

    def test_files_left_over_missing_or_changed_are_named(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        (tmp_path / "one" / "a").write_text("1")
        (tmp_path / "one" / "b").write_text("1")
        (tmp_path / "two" / "b").write_text("2")
        (tmp_path / "two" / ".b.tmp").write_text("")
        found = differences(snapshot(tmp_path / "one"), snapshot(tmp_path / "two"))
        assert found == [".b.tmp is left over", "a is missing", "b differs"]


class TestBrokenFiles:
    @pytest.mark.filterwarnings("ignore:coroutine", "ignore:Exception ignored in")  # a critic's
    @pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
    def test_every_reader_refuses_or_reads(self, reader: Reader, tmp_path: Path) -> None:
        reader.make(tmp_path)
        reader.read(tmp_path)  # the sound one
        assert try_files(reader, tmp_path, range(15)).findings == []

    @pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
    def test_what_was_found_once_is_refused(self, path: Path, tmp_path: Path) -> None:
        reader = next(r for r in READERS if fuzz.slug(r.name) == path.name.partition("--")[0])
        reader.make(tmp_path)
        (tmp_path / reader.file).write_bytes(path.read_bytes())
        assert outcome(reader, tmp_path)[0] in fuzz.HELD

    def test_a_number_names_a_file(self) -> None:
        sound = b"query,score,value\nq,1,2\n"
        files = [mutated("csv", sound, Random(f"x:{n}")) for n in range(50)]
        assert files == [mutated("csv", sound, Random(f"x:{n}")) for n in range(50)]
        assert len(set(files)) > 40

    def test_what_goes_wrong_is_counted(self, tmp_path: Path) -> None:
        def read(folder: Path) -> None:
            text = (folder / "x.csv").read_bytes()
            if len(text) % 3 == 0:
                raise KeyError("a")
            if len(text) % 3 == 1:
                raise SystemExit(0)

        reader = Reader("bad", "x.csv", lambda f: _write(f / "x.csv"), read)
        reader.make(tmp_path)
        seen = try_files(reader, tmp_path, range(40))
        assert seen.counts["files"] == 40
        assert seen.counts["traceback"] > 5
        assert seen.counts["ended the process"] > 5

    def test_the_process_that_reads_may_die(self, tmp_path: Path) -> None:
        """A file that ends the process is counted, and those around it are read."""
        state = State(tmp_path, "fuzz")
        reader = READERS[0]
        worker = _Mortal()
        fuzz._batch(state, worker, reader, 0, 10)  # type: ignore[arg-type]
        assert state.whole.counts == {"files": 10, "refused": 9, "crashed": 1}
        (finding,) = state.whole.findings
        assert finding["attack"] == 4
        assert (tmp_path / "fuzz" / "found" / finding["file"]).is_file()


class _Mortal:
    """A process that dies of file 4."""

    def ask(self, reader: str, start: int, stop: int) -> tuple[dict[str, Any] | None, int, str]:
        del reader
        if start <= 4 < stop:
            return None, 4, "crashed"
        count = stop - start
        return {"counts": {"files": count, "refused": count}, "findings": []}, stop, ""


def _write(path: Path) -> None:
    path.write_text("query,score,value\nq,1,2\n")


class TestCommandLines:
    def test_they_are_answered(self, ground: Ground, tmp_path: Path) -> None:
        make_world(tmp_path / "world")
        cli.furnish(tmp_path / "world")
        state = State(tmp_path / "state", "cli")
        for number in LINES:
            words = cli.hostile_line(number)
            line = Line(words, str(tmp_path / "world"), seconds=cli.SECONDS, memory=cli.MEMORY,
                        environment=ground.environment)  # fmt: skip
            cli.report(state, number, words, ground.forks.run(line))
        assert state.whole.findings == []

    def test_they_are_made_of_every_command(self) -> None:
        lines = [cli.hostile_line(number) for number in range(1000)]
        assert {word for line in lines for word in line[:1]} >= {
            name.split()[0] for name, _ in commands()
        }
        flags = {flag.name for known in cli.known_flags().values() for flag in known}
        typed = {word.partition("=")[0] for line in lines for word in line}
        assert len(flags - typed) < len(flags) / 10

    @pytest.mark.parametrize(
        ("ended", "word"),
        [
            (Ended(0, "fine\n", ""), "answered"),
            (Ended(2, "", "toptail: no.\n"), "answered"),
            (Ended(2, "", "toptail: \x1b[31mno.\n"), "unprintable"),
            (Ended(1, "", "Traceback (most recent call last):\n"), "tracebacks"),
            (Ended(-11, "", ""), "crashes"),
            (Ended(2, "", ""), "silent"),
            (Ended(-9, "", "", late=True), "ended"),
        ],
    )
    def test_how_one_ended_is_said(self, ended: Ended, word: str) -> None:
        assert cli.judged(ended) == word


LINES = (0, 1, 2, 3, 4, 5, 6, 7)
QUICK = (
    *("closes at once", "a length in other digits", "redirect to a file", "redirect to nonsense"),
    *("members that are no arrays", "a bomb", "a part that begins elsewhere", "pickles"),
    *("a reason with escape codes", "a part of nonsense", "a thousand headers", "no HTTP"),
)


@pytest.mark.parametrize("name", QUICK)
def test_a_bad_server_is_left_for_a_sound_one(name: str) -> None:
    met = server.meet(name)
    assert met["alone"] in ("refused", "sound")
    assert met["then a sound one"] == "sound"


@pytest.mark.parametrize(
    ("writer", "name"),
    [
        ("column", "\x1b[31mred\x1b[0m"),
        ("label", "line\nbreak"),
        ("selector", "<script>alert(1)</script>"),
        ("file", "\x07\x08\x9b"),
        ("reason", "\u202eleft"),
    ],
)
def test_hostile_names_stay_names(writer: str, name: str, ground: Ground, tmp_path: Path) -> None:
    make_world(tmp_path / "world")
    met = names.meet(ground, tmp_path / "world", tmp_path / "work", writer, name, None)
    assert met == "answered"


class TestFaults:
    @pytest.mark.parametrize("act", faults.DISKS)
    def test_a_disk_that_fails_is_said_and_got_over(self, act: Any, ground: Ground) -> None:
        case = case_of("picks")
        usual = Undisturbed.of(ground, case)
        for at in faults.events_of(case, act, len(usual.events))[:3]:
            assert faults.fail(ground, case, usual, act, at) == [], f"from event {at}"

    @pytest.mark.parametrize(
        "name", ["output to a full disk", "help to a full disk", "an ASCII locale", "no locks"]
    )
    @pytest.mark.skipif(sys.platform == "win32", reason="the shell is a Unix one")
    def test_odd_surroundings(self, name: str, tmp_path: Path) -> None:
        assert faults.surround(tmp_path / "odd", name) == []


class TestState:
    def test_figures_add_up_over_sittings(self, tmp_path: Path) -> None:
        for attack in (1, 2):
            state = State(tmp_path, "crash")
            assert list(state.left("audit", [1, 2])) == [1, 2][attack - 1 :]
            state.add("audit", attack, "kills", "same")
            state.save()
        assert State(tmp_path, "crash").whole.counts == {"kills": 2, "same": 2}

    def test_those_of_other_code_do_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        state = State(tmp_path, "crash")
        state.add("audit", 1, "kills", "same")
        state.save()
        monkeypatch.setattr("tests.attack.state.source_digest", lambda: "other")
        assert State(tmp_path, "crash").whole.counts == {}

    def test_they_are_written_between_their_marks(self, tmp_path: Path) -> None:
        state = State(tmp_path, "fuzz")
        state.count({"files": 1000, "read": 300, "refused": 699, "traceback": 1})
        state.save()
        document = tmp_path / "doc.md"
        document.write_text(f"Before.\n{figures.BEGIN}\nof yesterday\n{figures.END}\nAfter.\n")
        figures.write_figures(tmp_path, document)
        text = document.read_text()
        assert "| 1,000 files | 999 | 1 traceback |" in text
        assert "yesterday" not in text
        assert text.startswith("Before.\n")
        assert text.endswith("\nAfter.\n")


def test_the_seen_are_kept_only_where_they_show_something() -> None:
    seen = Seen()
    for word in ("read", "refused", "late"):
        seen.add(1, word)
    assert [finding["outcome"] for finding in seen.findings] == ["late"]
    assert seen.counts["files"] == 3
