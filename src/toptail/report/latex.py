r"""The audit as LaTeX tables for a paper's appendix, to be read in with ``\input``.

The output needs the packages booktabs and longtable, and any engine: text outside ASCII
is written with commands, so that pdfLaTeX accepts every name.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import Final

from toptail.report.content import method_rows, status_lines, tables_of
from toptail.report.table import Cell, Table
from toptail.report.text import Audit, data_sentences, one_line, scope_sentence

K_COLUMNS: Final = 6  # numbers with intervals that fit beside each other on a page
PAGE_ROWS: Final = 32  # a longer table breaks over pages

_WORDS: Final = ("cdot", "times", "pm", "le", "ge", "approx", "to", "surd", "infty")
_LETTERS: Final = ("ss", "o", "O", "ae", "AE", "l", "L")
_MATH: Final = {
    **dict(zip("<>|−", "<>|-", strict=True)),
    **dict(zip("·×±≤≥≈→√∞", (rf"\{word}" for word in _WORDS), strict=True)),
}
_SYMBOLS: Final = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "{}$&%#_"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{c: rf"\ensuremath{{{symbol}}}" for c, symbol in _MATH.items()},
    '"': "''",
    "`": r"\`{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "…": r"\ldots{}",
    **{c: rf"\{word}{{}}" for c, word in zip("ßøØæÆłŁ", _LETTERS, strict=True)},
    "ο": "o",  # the one small Greek letter without a command
}
_ACCENTS: Final = {
    "\u0300": r"\`",
    "\u0301": r"\'",
    "\u0302": r"\^",
    "\u0303": r"\~",
    "\u0304": r"\=",
    "\u0306": r"\u",
    "\u0307": r"\.",
    "\u0308": r"\"",
    "\u030a": r"\r",
    "\u030b": r"\H",
    "\u030c": r"\v",
    "\u0327": r"\c",
}
_GREEK_CAPITALS: Final = frozenset("ΓΔΘΛΞΠΣΥΦΨΩ")  # the others look like Latin letters


def escape(text: object) -> str:
    """Make text mean itself in LaTeX, on one line."""
    latex = "".join(map(_character, one_line(text)))
    # Two hyphens would join to a dash; hyphens occur in names of files and columns.
    return re.sub(r"-(?=-)", "-{}", latex)


def _character(c: str) -> str:
    if c in _SYMBOLS:
        return _SYMBOLS[c]
    if c.isascii():
        return c
    name = unicodedata.name(c, "")
    small = name.startswith("GREEK SMALL LETTER ") and name.count(" ") == 3
    if small or c in _GREEK_CAPITALS:
        letter = name.rsplit(" ", 1)[1].replace("LAMDA", "LAMBDA")
        return rf"\ensuremath{{\{letter.lower() if small else letter.capitalize()}}}"
    parts = unicodedata.normalize("NFD", c)
    if len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS:
        letter = r"\i" if parts[0] == "i" else parts[0]  # its dot would collide with the accent
        return f"{_ACCENTS[parts[1]]}{{{letter}}}"
    return rf"\texttt{{U+{ord(c):04X}}}"


def render_latex(audit: Audit) -> str:
    r"""Render every table of the audit as booktabs tables, ready for ``\input``."""
    lines = [
        "% Tables of a toptail audit. In the preamble: \\usepackage{booktabs,longtable}",
        *(f"% {_comment(label)}: {_comment(text)}" for label, text in method_rows(audit)),
        "",
        *(escape(sentence) for sentence in data_sentences(audit)),
    ]
    if audit["kind"] == "pools":
        lines.append(escape(scope_sentence(audit)))
    lines += [f"Warning: {escape(sentence)}" for sentence in audit["warnings"]]
    lines += [f"Note: {escape(sentence)}" for sentence in audit["notes"]]
    for table in tables_of(audit):
        lines += ["", tabular(_for_paper(table))]
    if meanings := status_lines(audit):
        lines += ["", r"\begin{description}"]
        lines += [rf"  \item[{escape(status)}] {escape(text)}" for status, text in meanings]
        lines.append(r"\end{description}")
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    # A comment ends with its line; nothing else in it matters to TeX except bytes.
    return text.encode("ascii", "backslashreplace").decode()


def _for_paper(table: Table) -> Table:
    """Leave out what a paper's table has no room for: the advice and the checks' questions."""
    if table.name != "checks":
        return table
    rows = tuple(
        tuple(Cell(cell.text) if column.kind == "prose" else cell for column, cell in pairs)
        for pairs in (zip(table.columns, row, strict=True) for row in table.rows)
    )
    return replace(table, columns=table.columns[:-1], rows=tuple(row[:-1] for row in rows))


def tabular(table: Table) -> str:
    """Set a table; one with many K in blocks below each other."""
    caption = rf"\caption{{\textbf{{{escape(table.title)}.}} {escape(table.caption)}}}"
    label = rf"\label{{tab:audit-{table.name}}}"
    blocks = list(table.blocks(K_COLUMNS)) if table.over_k else [table]
    if len(table.rows) > PAGE_ROWS:
        # Only the first block carries the caption and its number.
        first, *more = blocks
        longs = [_long(first, [f"{caption}{label}\\\\"]), *(_long(block, []) for block in more)]
        return "\n".join([r"\begingroup\footnotesize", *longs, r"\endgroup"])
    opening = [r"\begin{table}[htbp]", r"\centering\footnotesize", caption, label, r"\smallskip"]
    bodies = "\n\n\\medskip\n".join(map(_short, blocks))
    return "\n".join([*opening, bodies, r"\end{table}"])


def _short(table: Table) -> str:
    """Set a table that fits on a page."""
    lines = [r"\toprule", _head(table), r"\midrule", *_rows(table), r"\bottomrule"]
    begin, end = rf"\begin{{tabular}}{{{_alignment(table)}}}", r"\end{tabular}"
    return "\n".join([begin, *(f"  {line}" for line in lines), end])


def _long(table: Table, caption: list[str]) -> str:
    """Set a table that breaks over pages and repeats its head."""
    head = [r"\toprule", _head(table), r"\midrule"]
    lines = [*caption, *head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"]
    begin, end = rf"\begin{{longtable}}{{{_alignment(table)}}}", r"\end{longtable}"
    return "\n".join([begin, *(f"  {line}" for line in (*lines, *_rows(table))), end])


def _alignment(table: Table) -> str:
    letters = {"name": "l", "word": "l", "number": "r", "prose": r"p{0.3\linewidth}"}
    return "".join(letters[column.kind] for column in table.columns)


def _head(table: Table) -> str:
    return _line([escape(column.label) for column in table.columns])


def _rows(table: Table) -> list[str]:
    lines = []
    for row in table.rows:
        lines.append(_line([escape(cell.text if table.stacked else cell.plain) for cell in row]))
        if table.stacked and any(cell.detail for cell in row):
            lines += [_line([_small(cell) for cell in row]), r"\addlinespace[2pt]"]
    return lines


def _small(cell: Cell) -> str:
    return rf"{{\scriptsize {escape(cell.detail)}}}" if cell.detail else ""


def _line(cells: list[str]) -> str:
    # A row that begins with a bracket would be read as the option of the "\\" before it.
    cells = [f"{{}}{cell}" if cell.startswith(("[", "*")) else cell for cell in cells]
    return " & ".join(cells) + r" \\"
