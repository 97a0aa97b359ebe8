"""Run a tutorial, compare what it prints with what the page says, and make a notebook of it.

    python -m tools.notebook docs/tutorials/scores.md scores.ipynb

A block of ``python`` is a cell; one that begins with ``# name.py`` is written to that file instead.
In a block of ``console`` each line after ``$`` is a command, and the lines below it are what the
command prints, among others; a line that ends with ``…`` is the beginning of one. A comment after
``print(...)`` is what that line prints. Everything else is text. Cells run one after the other in a
folder with nothing but ``examples``.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
PROGRAMS = {"toptail": ["-m", "toptail"], "toptail-paper": ["-m", "toptail_paper"], "python": []}
"""How a command of a page is run by this interpreter; others (``pip``) are shown and not run."""


def executed(page: Path) -> str:
    """The notebook of a page, as JSON, made in a process and a folder of its own."""
    paths = [str(ROOT), str(ROOT / "src"), str(ROOT / "paper" / "src")]
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg", "COLUMNS": "100"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "page.ipynb"
        (Path(folder) / "work").mkdir()
        (Path(folder) / "work" / "examples").symlink_to(ROOT / "examples")
        command = [sys.executable, "-m", "tools.notebook", str(page.resolve()), str(out)]
        ran = subprocess.run(
            command, cwd=Path(folder) / "work", env=env, capture_output=True, text=True
        )
        if ran.returncode:
            raise RuntimeError(f"{page.name} does not run as printed:\n{ran.stderr[-3000:]}")
        return out.read_text(encoding="utf-8")


def cells(text: str) -> Iterator[dict[str, Any]]:
    """The cells of a page, each run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    start = 0
    for block in BLOCK.finditer(text):
        yield from _text(text[start : block.start()])
        start = block.end()
        if block[1] == "console":
            for command, promised in commands(block[2]):
                yield _command(command, promised)
        elif named := re.match(r"# (\S+\.py)\n", block[2]):
            Path(named[1]).write_text(block[2], encoding="utf-8")
            yield _code(f"%%writefile {named[1]}\n{block[2]}", [])
        else:
            yield _code(block[2], _run(block[2], names))
    yield from _text(text[start:])


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a block of ``console``, with the lines that it says are printed."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif line and line != "…":
            found[-1][1].append(line)
    return found


def _run(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell; what it printed, and its last expression as a notebook shows it."""
    tree, last = ast.parse(code), None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body[-1].value)
        tree.body.pop()
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        shown = eval(compile(last, "cell", "eval"), names) if last is not None else None
    promised = re.findall(r"print\(.*\)\s+# (.*)", code)
    _hold(promised, printed.getvalue(), code)
    outputs = [_stream(printed.getvalue())] if printed.getvalue() else []
    if shown is not None:
        data = {"text/plain": repr(shown)}
        if hasattr(shown, "_repr_html_"):
            data["text/html"] = shown._repr_html_()
        if hasattr(shown, "savefig"):
            data = {"text/plain": "a figure", "image/png": _picture(shown)}
        outputs.append(
            {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None}
        )
    return outputs


def _picture(figure: Any) -> str:
    """A Matplotlib figure as a notebook stores it."""
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=100)
    return base64.b64encode(image.getvalue()).decode()


def _command(line: str, promised: list[str]) -> dict[str, Any]:
    program, *words = shlex.split(line, comments=True)
    if program not in PROGRAMS:
        return _code(f"# {line}", [])
    ran = subprocess.run(
        [sys.executable, *PROGRAMS[program], *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if ran.returncode != (1 if "--fail-on" in words else 0):
        sys.exit(f"{line}\nended with {ran.returncode}:\n{ran.stdout}")
    _hold(promised, ran.stdout, line)
    return _code(f"!{line}", [_stream(ran.stdout)])


def _hold(promised: list[str], printed: str, what: str) -> None:
    """Stop if a line that the page shows was not printed."""
    missing = [line for line in promised if not _printed(line, printed.splitlines())]
    if missing:
        sys.exit(f"{what}\ndoes not print {missing}, but:\n{printed}")


def _printed(line: str, printed: list[str]) -> bool:
    """Whether a line was printed; one that ends with … needs the same beginning."""
    if line.endswith("…"):
        return any(each.startswith(line.removesuffix("…")) for each in printed)
    return line in printed


def _stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _code(source: str, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source.rstrip(),
        "metadata": {},
        "execution_count": None,
        "outputs": outputs,
    }


def _text(source: str) -> Iterator[dict[str, Any]]:
    if source.strip():
        yield {"cell_type": "markdown", "source": source.strip(), "metadata": {}}


def main(page: str, out: str) -> None:
    """Write the notebook of a page."""
    made = list(cells(Path(page).read_text(encoding="utf-8")))
    for number, cell in enumerate(made):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    content = {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    Path(out).write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
