"""The pages about critics and environments work as printed, with smaller sizes."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import toptail
from toptail.cli import main
from toptail.errors import Exit
from toptail.io.json_files import read_json
from toptail.lab.scorers.embeddings import Embedding

ROOT = Path(__file__).parent.parent.parent
SMALL = {
    "toptail check": "--per-group 2 --pool-size 4 --near 20 --starts 1 --follow-k 1,4 --horizon 3 "
    "--resamples 100",
    "toptail train": "--steps 4 --set hidden=8,depth=1,batch_size=16,log_every=2",
    "toptail data collect": "--episodes 3 --val-episodes 2 --rows 80 --workers 1",
    "python": "--episodes 2 --val-episodes 2 --rows 20",
}
"""Flags that make a command of the page small; the last of two flags of one name counts."""


def commands(text: str) -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    shown = [block for kind, block in blocks if kind in ("", "console")]
    lines = [line.removeprefix("$ ") for block in shown for line in block.splitlines()]
    return [line for line in lines if line.startswith(("toptail ", "python "))]


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a line of the page in this process, made small."""
    flags = next(flags for start, flags in SMALL.items() if line.startswith(start))
    words = shlex.split(line)
    for flag in re.findall(r"--[a-z-]+", flags):
        if flag in words:
            at = words.index(flag)
            del words[at : at + 2]
    words += shlex.split(flags)
    if words[0] == "toptail":
        return main(words[1:])
    monkeypatch.setattr("sys.argv", words[1:])
    runpy.run_path(words[1], run_name="__main__")
    return 0


def test_the_pages_work_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ("tutorials/critic.md", "howto/environment.md")
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in pages)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name, code in re.findall(r"```python\n# (\S+)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(code)
    lines = commands(text)
    assert [line.split()[1] for line in lines] == [
        *("data", "check", "check", "examples/gym_data.py", "check"),
    ]
    for line in lines:
        assert run(line, monkeypatch) == Exit.FINE, line
    assert read_json(tmp_path / "check" / "check.json")["judge"]["name"] == "exact"
    found = read_json(tmp_path / "pendulum" / "check.json")
    assert (found["goals"], list(found["scorers"])) == (False, ["greedy", "fitted"])


CURE = (ROOT / "docs" / "howto" / "cure.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```py\n# (\S+)\n(.*?)```", CURE, re.DOTALL))
"""The files of the page about a cure."""


@pytest.mark.slow
def test_the_cure_works_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, code in FILES.items():
        (tmp_path / name).write_text(code)
    lines = [line for line in commands(CURE) if "PointMaze" not in line]
    assert [line.split()[1] for line in lines] == ["data", "train", "train", "check"]
    for line in lines:
        assert run(line, monkeypatch) == Exit.FINE, line
    scorers = read_json(tmp_path / "cure" / "check.json")["scorers"]
    assert list(scorers) == ["before", "after", "tdq"]
    small = toptail.CheckConfig(
        per_group=2, pool_size=4, near=20, starts=1, follow_k=(1, 4), horizon=3, resamples=100
    )
    check = toptail.check
    monkeypatch.setattr(toptail, "check", lambda *args: check(*args, config=small))
    assert list(runpy.run_path("compare.py")["result"].captured) == list(scorers)


@pytest.mark.parametrize("name", ["mine.py", "mine_torch.py"])
def test_the_embeddings_of_the_cure(name: str, tmp_path: Path) -> None:
    if "import torch" in FILES[name]:
        pytest.importorskip("torch")
    (tmp_path / name).write_text(FILES[name])
    rows = np.zeros((5, 2), np.float32)
    phi, psi = Embedding.load(f"{tmp_path / name}:embed")(rows, rows, rows)
    assert phi.shape == psi.shape == (5, 64)
