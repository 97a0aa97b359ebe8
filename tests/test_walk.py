"""How many files a reader meets on the way of a command: those whose functions it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tasks.conftest import DATA

ROOT = Path(__file__).parents[1]
AUDIT = f"audit {ROOT}/examples/answers.jsonl --query prompt --values is_correct"
CHECK = (
    f"check --task {DATA}/pointmaze-medium-navigate-v0.npz --pools nearest,uniform "
    f"--scorer {ROOT}/examples/numpy_critic.py:score --per-group 6 --pool-size 8 --starts 6 "
    "--horizon 10 --follow-k 1,8 --resamples 200"
)


@pytest.mark.parametrize(("command", "most"), [(AUDIT, 35), (CHECK, 60)], ids=["audit", "check"])
def test_a_command_leads_through_few_files(tmp_path: Path, command: str, most: int) -> None:
    words = [ROOT / "tools" / "walk.py", "--", *command.split(), "--out", tmp_path / "out"]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    files = int(done.stdout.splitlines()[-1].split()[0])
    assert 20 < files <= most, done.stdout
