"""The page "I have a reward model" as printed: every command runs and prints what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toptail.cli import main

PAGE = Path(__file__).parent.parent.parent / "docs" / "reward-model.md"


def commands() -> list[tuple[str, list[str]]]:
    """Each command of the page, with the lines that it says are printed."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif line:
                found[-1][1].append(line)
    return found


@pytest.mark.slow
def test_it_is_walked_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    Path("score.py").write_text(code)
    (install, _), (script, _), *others = commands()
    assert install == "pip install toptail"
    assert script == "python score.py"
    subprocess.run([sys.executable, "score.py"], check=True)
    ran = []
    for line, promised in others:
        program, *words = shlex.split(line)
        assert program == "toptail"
        assert main(words) == (1 if "--fail-on" in words else 0), line
        printed = capsys.readouterr().out.splitlines()
        assert [text for text in promised if text not in printed] == [], line
        ran.append(words[0])
    assert ran == ["audit", "audit", "choose", "plan"]
    assert Path("to_judge.csv").is_file()
