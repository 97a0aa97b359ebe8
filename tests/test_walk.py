"""How many files a reader meets on the way of a command: those whose functions it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import toptail
from tests.tasks.conftest import DATA

PACKAGE = Path(toptail.__file__).parent
EXAMPLES = PACKAGE.parents[1] / "examples"

WALK = """
import json, sys, threading
from toptail.cli import main

package, imports, files = sys.argv[1], 0, set()

def profile(frame, event, _):
    global imports
    code = frame.f_code
    if code.co_name == "<module>":  # what runs while a module is imported does not count
        imports += (event == "call") - (event == "return")
    elif event == "call" and not imports and code.co_filename.startswith(package):
        files.add(code.co_filename[len(package) + 1:])

threading.setprofile(profile)
sys.setprofile(profile)
code = main(sys.argv[2:])
sys.setprofile(None)
print()
print(json.dumps([code, sorted(files)]))
"""
"""Runs a command, and prints its exit code and the files of the package whose functions ran."""

AUDIT = ("audit", EXAMPLES / "answers.jsonl", "--query", "prompt", "--values", "is_correct")
SMALL = "--per-group 6 --pool-size 8 --starts 6 --horizon 10 --follow-k 1,8 --resamples 200"
CHECK = (
    *("check", "--task", DATA / "pointmaze-medium-navigate-v0.npz", "--pools", "nearest,uniform"),
    *("--scorer", f"{EXAMPLES / 'numpy_critic.py'}:score", *SMALL.split()),
)


@pytest.mark.parametrize(("words", "most"), [(AUDIT, 35), (CHECK, 60)], ids=["audit", "check"])
def test_a_command_leads_through_few_files(
    tmp_path: Path, words: tuple[str | Path, ...], most: int
) -> None:
    words = (PACKAGE, *words, "--out", tmp_path / "out")
    command = [sys.executable, "-c", WALK, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    code, files = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert 20 < len(files) <= most, "\n".join(files)
