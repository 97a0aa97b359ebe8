"""Exit codes of whole processes: disks, pipes, encodings, Ctrl-C, and systems that lack things."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import toptail
from tests.light import HEAVY, run_light
from toptail.cli import main
from toptail.commands.demo import Demo
from toptail.errors import Exit, InputError, NotDoneError, option, printable, system_error

ROOT = Path(toptail.__file__).parents[2]
UNSAFE = "query,score,value\n" + "".join(
    f"{q},{c},{(c - 1) % 4 if c != 3 else -9}\n" for q in range(60) for c in range(4)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(UNSAFE)
    return path


def started(*words: object, **how: object) -> subprocess.CompletedProcess[str]:
    """What a command does as a process of its own."""
    command = [sys.executable, "-m", "toptail", *map(str, words)]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE, check=False, **how)  # type: ignore[call-overload, no-any-return]


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_docs_and_the_help_name_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    docs = (ROOT / "docs" / "reference" / "tables.md").read_text()
    assert main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for code in Exit:
        assert f"| {code.value} | {code.meaning} |" in docs
        assert f"{code.value} {code.meaning}" in shown


def test_sentences_are_printable() -> None:
    error = InputError(f"a\x1b[31mb\nc\u2028d {option('x', chr(27))} \udcff")
    assert error.for_command().isprintable()
    assert str(error).isprintable()
    assert "\\x1b[31m" in str(error)
    assert printable("φ – …") == "φ – …"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError(2, "No such file or directory", "x"), Exit.INPUT),
        (OSError(36, "File name too long", "x"), Exit.INPUT),
        (PermissionError(13, "Permission denied", "x"), Exit.INPUT),
        (OSError(28, "No space left on device"), Exit.NOT_DONE),
        (OSError(30, "Read-only file system", "x"), Exit.NOT_DONE),
        (OSError(5, "Input/output error"), Exit.NOT_DONE),
        (MemoryError(), Exit.NOT_DONE),
        (OverflowError("int too large"), Exit.INPUT),
        (NotDoneError("A worker was ended."), Exit.NOT_DONE),
        (KeyboardInterrupt(), Exit.INTERRUPTED),
        (SystemExit(0), Exit.NOT_DONE),
    ],
)
def test_what_a_command_raises_decides_its_code(
    error: BaseException,
    code: Exit,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(_: Demo) -> int:
        raise error

    monkeypatch.setattr(Demo, "run", broken)
    assert main(["demo"]) == code
    message = capsys.readouterr().err
    assert message.startswith("toptail: ")
    assert message.count("\n") == 1
    if isinstance(error, OSError):
        assert system_error(error).code == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_does_not_arrive_is_no_success() -> None:
    with Path("/dev/full").open("w") as full:
        done = started("data", "list", stdout=full)
    assert done.returncode == Exit.NOT_DONE
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_a_reader_that_leaves_does_not_open_the_gate(table: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    gate = ("--scores", "score", "--fail-on", "unsafe", "--out", table.parent / "out")
    done = started("audit", table, *gate, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (Exit.FAILED, "")


def test_any_encoding_and_a_closed_output_will_do() -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = started("data", "list", stdout=subprocess.PIPE, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    shell = f"exec {sys.executable} -m toptail data list >&-"
    closed = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")


def test_an_interrupted_process_does_not_run_what_could_crash_at_its_end() -> None:
    done = python(
        "import atexit, os, signal, sys\n"
        "from toptail import cli\n"
        "from toptail.commands.demo import Demo\n"
        "atexit.register(lambda: print('the end'))\n"
        "def run(self):\n"
        "    print('begun')\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "Demo.run = run\n"
        "sys.argv = ['toptail', 'demo']\n"
        "cli.run()\n"
    )
    assert (done.returncode, done.stdout) == (Exit.INTERRUPTED, "begun\n")
    assert done.stderr == "toptail: interrupted\n"


def test_ctrl_c_that_is_ignored_from_the_start_stays_ignored() -> None:
    """As below nohup, and in the background of a script."""
    done = python(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from toptail import cli\n"
        "from toptail.commands.demo import Demo\n"
        "def run(self):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print('goes on')\n"
        "    return 0\n"
        "Demo.run = run\n"
        "sys.argv = ['toptail', 'demo']\n"
        "cli.run()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")


@pytest.mark.parametrize("word", ["\ufeffbom", "--out=out\x1b[31m", "\u202eleft"])
def test_words_of_a_command_line_do_not_steer_the_terminal(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word, "data", "list"]) == Exit.INPUT
    with pytest.raises(SystemExit) as stop:
        main(["data", "list", word])
    shown = capsys.readouterr()
    assert stop.value.code == Exit.INPUT
    assert all(line.isprintable() for line in (shown.out + shown.err).split("\n"))
    assert shown.err


def test_what_is_printed_does_not_steer_the_terminal(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(table), "--out", str(table.parent / "\x1b[31m")]) == 0
    shown = capsys.readouterr().out
    assert "\\x1b[31m/report.html" in shown
    assert "\x1b" not in shown


def test_a_bug_shows_as_one_and_is_not_a_failed_check() -> None:
    done = python(
        "import sys\n"
        "from toptail import cli\n"
        "from toptail.commands.demo import Demo\n"
        "Demo.run = lambda self: 1 / 0\n"
        "sys.argv = ['toptail', 'demo']\n"
        "cli.run()\n"
    )
    assert done.returncode == Exit.NOT_DONE
    assert "ZeroDivisionError" in done.stderr
    assert "bug" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["audit", "TABLE", "--seed", "-1"], "--seed -1 must be a whole number of at least 0"),
        (
            ["audit", "TABLE", "--resamples", str(10**20)],
            f"must be a whole number of at most {2**63 - 1}",
        ),
    ],
)
def test_numbers_that_no_machine_counts_are_a_sentence(
    words: list[str], said: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(table) if word == "TABLE" else word for word in words]
    assert main([*words, "--out", str(table.parent / "out")]) == Exit.INPUT
    assert said in capsys.readouterr().err


_EVERYTHING = """
import importlib, os, pkgutil, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog"):
    sys.modules[name] = None
for owner, names in (
    (os, ("killpg", "sched_getaffinity", "sysconf", "O_NOFOLLOW", "fork", "getuid", "setsid")),
    (signal, ("SIGALRM", "SIGKILL", "ITIMER_REAL", "setitimer", "pthread_sigmask")),
):
    for name in names:
        delattr(owner, name)
import toptail
for module in pkgutil.walk_packages(toptail.__path__, "toptail."):
    if module.name != "toptail.__main__":
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            print("needs", error.name.partition(".")[0])
            continue
        print(module.name)
"""


def test_no_module_of_a_light_install_needs_what_only_unix_has() -> None:
    found = run_light(_EVERYTHING).split()
    needed = {found[at + 1] for at, word in enumerate(found) if word == "needs"}
    assert needed <= set(HEAVY)
    assert {"toptail.cli", "toptail.io.files", "toptail.lab.tasks.collect"} <= set(found)
