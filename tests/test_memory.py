"""Too little memory is a sentence and exit code 3, whatever a library calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from toptail.memory import scarce

from toptail import cli
from toptail.errors import NotDoneError, refusing

SAID = (
    RuntimeError("can't start new thread"),
    RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 400000000000 bytes."),
    ImportError("libXau.so: failed to map segment from shared object"),
    OSError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
    MemoryError(),
)


@pytest.mark.parametrize("error", SAID, ids=str)
def test_it_is_no_bug_and_no_bad_file(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_words: object, _program: object) -> int:
        raise error

    assert scarce(error)
    with pytest.raises(NotDoneError, match="more memory than there is"), refusing("a.csv", "x"):
        raise error
    if not isinstance(error, OSError):  # which has a sentence of its own
        monkeypatch.setattr(cli, "_run", fail)
        assert cli.main(["audit"]) == 3
        assert "the memory of this machine is not enough for that" in capsys.readouterr().err


def test_other_errors_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_words: object, _program: object) -> int:
        raise RuntimeError("something else")

    monkeypatch.setattr(cli, "_run", fail)
    with pytest.raises(RuntimeError, match="something else"):
        cli.main(["audit"])


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        ("MemoryError", 3, "toptail: the memory of this machine is not enough to load the lib"),
        ("RuntimeError", 1, "Traceback"),
    ],
)
def test_it_is_said_while_libraries_are_loaded(
    raised: str, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "numpy.py").write_text(f"raise {raised}\n")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-m", "toptail", "--version"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == code
    assert ended.stderr.startswith(said)
