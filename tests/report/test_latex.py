"""LaTeX: structure is checked here, and the whole document where pdfLaTeX is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from toptail.report.documents import as_latex, render_latex

AUDITS = ["audit", "fifteen", "picks", "hostile", "all_null"]


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b%$&#{}", r"a\_b\%\$\&\#\{\}"),
        ("\\end{x}", r"\textbackslash{}end\{x\}"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ("−1", r"\ensuremath{-}1"),
        ("τ λ Δ", r"\ensuremath{\tau} \ensuremath{\lambda} \ensuremath{\Delta}"),
        ("für Łódź café", "für Łódź café"),
        ("“x”", "``x''"),
        ("中", r"\texttt{U+4E2D}"),
        ("a\nb", "a b"),
    ],
)
def test_as_latex(text: str, latex: str) -> None:
    assert as_latex(text) == latex


@pytest.mark.parametrize("name", AUDITS)
def test_output_is_balanced_and_known_to_every_engine(
    name: str, request: pytest.FixtureRequest
) -> None:
    latex = render_latex(request.getfixturevalue(name))
    code = "\n".join(line for line in latex.splitlines() if not line.startswith("%"))
    assert set(re.findall(r"[^\x00-\x7f]", code)) <= set("äöüß")
    bare = re.sub(r"\\[{}%$&#_]", "", code)  # without escaped characters
    depth = 0
    for c in bare:
        depth += {"{": 1, "}": -1}.get(c, 0)
        assert depth >= 0
    assert depth == 0
    assert not set("$#%^~") & set(re.sub(r"\\[\^~]", "", bare))
    opened: list[str] = []
    for kind, environment in re.findall(r"\\(begin|end)\{(\w+)\}", bare):
        if kind == "begin":
            opened.append(environment)
        else:
            assert opened.pop() == environment
    assert opened == []


@pytest.mark.parametrize("name", AUDITS)
def test_every_row_fills_its_columns(name: str, request: pytest.FixtureRequest) -> None:
    latex = render_latex(request.getfixturevalue(name))
    tables = re.findall(
        r"\\begin\{(?:tabular|longtable)\}\{([^\n]*)\}\n(.*?)\\end\{(?:tabular|longtable)\}",
        latex,
        re.S,
    )
    assert tables
    for letters, body in tables:
        columns = len(re.sub(r"p\{.*?\}", "p", letters))
        rows = [line for line in body.splitlines() if line.endswith(r" \\")]
        assert rows
        for row in rows:
            assert len(re.findall(r"(?<!\\)&", row)) == columns - 1


def test_long_tables_break_over_pages(fifteen: dict[str, Any]) -> None:
    latex = render_latex(fifteen)  # 105 comparisons
    assert latex.count(r"\begin{longtable}") == 1
    assert r"\label{tab:audit-comparisons}" in latex


@pytest.mark.parametrize("name", AUDITS)
def test_it_compiles(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("pdflatex is not installed")
    (tmp_path / "audit.tex").write_text(render_latex(request.getfixturevalue(name)))
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx,longtable}\n"
        "\\begin{document}\\input{audit}\\end{document}\n"
    )
    command = [engine, "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:]
