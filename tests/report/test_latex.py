"""LaTeX: structure is checked here, and the whole document where pdfLaTeX is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.report.conftest import SHAPES, make_audit
from toptail.report.documents import as_latex, render_latex

AUDITS = ["audit", "fifteen", "picks", "hostile", "all_null", "long_names"]

LONG_NAMES = [
    "skywork_reward_llama_3_1_8b_v0_2_length_normalised_logit_mean",
    "x" * 70,
    "meta-llama/Llama-3.1-8B-Instruct:judge@pairwise-accuracy",
    "a sentence of many short words that goes on and on and on",
    "_" * 50,
]


@pytest.fixture
def long_names() -> dict[str, Any]:
    """Names that no line takes, of scorers, groups and the column of groups."""
    audit = make_audit(dict(zip(LONG_NAMES, SHAPES.values(), strict=True)))
    near, far = audit["groups"].values()
    audit["groups"] = {LONG_NAMES[1]: near, LONG_NAMES[0]: far}
    audit["group_column"] = audit["value"] = LONG_NAMES[0]
    audit["warnings"] = [f"'{LONG_NAMES[1]}' is negatively correlated with the value."]
    return audit


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
        ("log_prob_mean", r"log\_\allowbreak{}prob\_\allowbreak{}mean"),
        ("x" * 30, "x" * 12 + r"\allowbreak{}" + "x" * 18),
        ("characteristics", "characteristics"),  # a word, which TeX hyphenates itself
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


def test_many_k_are_set_in_blocks(audit: dict[str, Any]) -> None:
    longer = [2**i for i in range(9)]
    for record in (audit, *audit["scorers"].values(), *_off_support(audit)):
        for name, value in record.items():
            if isinstance(value, list) and len(value) == 5 and name != "comparisons":
                record[name] = [*value, *value[:4]]
    audit["k"] = longer
    values = render_latex(audit).split(r"\label{tab:audit-values}")[1].split(r"\end{table}")[0]
    assert values.count(r"\begin{tabular}") == 2
    assert all(f"K = {k} " in values for k in longer)


def _off_support(audit: dict[str, Any]) -> list[dict[str, Any]]:
    return [scorer["off_support"] for scorer in audit["scorers"].values()]


def test_long_names_break_and_short_ones_do_not(long_names: dict[str, Any]) -> None:
    heads = [t.split(r"\begin{tabular}")[1] for t in _tables(render_latex(long_names))]
    assert all(head.startswith("{p{") for head in heads)
    short = make_audit(SHAPES)
    assert r"\begin{tabular}{l" in render_latex(short)
    assert r"{p{0.22" not in render_latex(short)


def _tables(latex: str) -> list[str]:
    return re.findall(r"\\begin\{table\}.*?\\end\{table\}", latex, re.S)


@pytest.mark.parametrize("name", AUDITS)
def test_it_compiles_and_nothing_is_wider_than_the_page(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("pdflatex is not installed")
    (tmp_path / "audit.tex").write_text(render_latex(request.getfixturevalue(name)))
    (tmp_path / "paper.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx,longtable}\n"
        "\\begin{document}\\input{audit}\\end{document}\n"
    )
    command = [engine, "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(2):  # the second run knows the widths of long tables
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout[-2000:]
    assert "Overfull" not in run.stdout
