r"""The audit as LaTeX tables for a paper's appendix, to be read in with ``\input``.

The output needs the packages booktabs, graphicx and longtable. Latin letters with accents are
written as they are; other characters outside ASCII become commands or, if none is known, their
code points, so that every engine accepts every name. Long names and headings break, and a table
that is still wider than the page is made smaller.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from dataclasses import replace
from typing import Final

from toptail.report.sentences import exception_sentences, method_rows, status_lines
from toptail.report.table import Cell, Table
from toptail.report.tables import tables_of
from toptail.report.text import NOT_MEANT, Audit, data_sentences, one_line, scope_sentence

K_COLUMNS: Final = 6  # numbers with intervals that fit beside each other on a page
HEADING: Final = 10  # characters of a line of a number's heading
PAGE_LINES: Final = 48  # a longer table breaks over pages
LONG_NAME: Final = 24  # characters; a column with a longer name breaks its lines

_PIECES: Final = re.compile(r"[^\W_]{1,20}(?![^\W_])[\W_]{0,4}|[^\W_]{1,12}|[\W_]{1,4}")
_SIZE: Final = r"\footnotesize\setlength{\tabcolsep}{3pt}"
_BREAK: Final = r"\allowbreak{}"

_GREEK: Final = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_SIGNS: Final = "cdot times pm le ge approx to surd infty"
_COMMANDS: Final = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ·×±≤≥≈→√∞",
        (rf"\{word}" for word in f"{_GREEK} {_SIGNS}".split()),
        strict=True,
    )
)
_ACCENTS: Final = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
_MATH: Final = {**_COMMANDS, "<": "<", ">": ">", "|": "|", "−": "-"}
_SYMBOLS: Final = {
    **{c: f"\\{c}" for c in "{}$&%#_"},
    **{c: rf"\ensuremath{{{symbol}}}" for c, symbol in _MATH.items()},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    '"': "''",
    "`": r"\`{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "…": r"\ldots{}",
}


def escape(text: object) -> str:
    """Make text mean itself in LaTeX, on one line; long words get places to break."""
    latex = " ".join(map(_word, one_line(text).split(" ")))
    # Two hyphens would join to a dash; hyphens occur in names of files and columns.
    return re.sub(r"-(?=-)", "-{}", latex)


def _word(word: str) -> str:
    # TeX hyphenates words by itself. Names break after what separates their parts, and a part
    # with more letters than any word breaks anywhere.
    pieces = _PIECES.findall(word) if len(word) > HEADING else [word]
    return _BREAK.join("".join(map(_character, piece)) for piece in pieces)


def _character(c: str) -> str:
    if c.isascii() or c in _SYMBOLS:
        return _SYMBOLS.get(c, c)
    letter, *accents = list(unicodedata.normalize("NFD", c))
    accented = letter.isascii() and len(accents) == 1 and accents[0] in _ACCENTS
    return c if accented or c in "ßøØæÆłŁ" else rf"\texttt{{U+{ord(c):04X}}}"


def paragraph(sentences: list[str]) -> list[str]:
    """Sentences that are escaped already, above the tables."""
    return [r"\begingroup\raggedright", *sentences, r"\par\endgroup"]


def remarks(content: Audit) -> list[str]:
    """The warnings and notes of an audit or a choice."""
    warnings = [f"Warning: {escape(sentence)}" for sentence in content["warnings"]]
    return warnings + [f"Note: {escape(sentence)}" for sentence in content["notes"]]


def render_latex(audit: Audit) -> str:
    r"""Render every table of the audit as booktabs tables, ready for ``\input``."""
    sentences = data_sentences(audit)
    if audit["kind"] == "pools":
        sentences += [scope_sentence(audit), NOT_MEANT, *exception_sentences(audit)]
    lines = [
        "% Tables of a toptail audit. In the preamble: \\usepackage{booktabs,graphicx,longtable}",
        *(f"% {label}: {text}" for label, text in method_rows(audit)),
        "",
        *paragraph([*map(escape, sentences), *remarks(audit)]),
    ]
    for table in tables_of(audit):
        lines += ["", tabular(_for_paper(table))]
    if meanings := status_lines(audit):
        lines += ["", r"\begin{description}"]
        lines += [rf"  \item[{escape(status)}] {escape(text)}" for status, text in meanings]
        lines.append(r"\end{description}")
    return "\n".join(lines) + "\n"


def _for_paper(table: Table) -> Table:
    """Leave out what a paper's table has no room for: the advice and the checks' questions."""
    if table.name != "checks":
        return table
    rows = tuple((name, Cell(check.text), *rest[:-1]) for name, check, *rest in table.rows)
    return replace(table, columns=table.columns[:-1], rows=rows)


def tabular(table: Table, of: str = "audit") -> str:
    """Set a table, in blocks below each other if it has many K; its label begins with ``of``."""
    caption = rf"\caption{{\textbf{{{escape(table.title)}.}} {escape(table.caption)}}}"
    label = rf"\label{{tab:{of}-{table.name}}}"
    blocks = list(table.blocks(K_COLUMNS)) if table.over_k else [table]
    lines_each = 2 if table.stacked or any(_long_names(table)) else 1
    if len(blocks) * len(table.rows) * lines_each > PAGE_LINES:
        # Only the first block carries the caption and its number.
        first, *more = blocks
        longs = [_long(first, [f"{caption}{label}\\\\"]), *(_long(block, []) for block in more)]
        return "\n".join(
            [r"\begingroup\scriptsize\setlength{\tabcolsep}{2pt}", *longs, r"\endgroup"]
        )
    opening = [r"\begin{table}[htbp]", rf"\centering{_SIZE}", caption, label, r"\smallskip"]
    bodies = "\n\n\\medskip\n".join(map(_short, blocks))
    return "\n".join([*opening, bodies, r"\end{table}"])


def _short(table: Table) -> str:
    """Set a table that fits on a page, made smaller where it would be wider than that."""
    lines = [r"\toprule", _head(table), r"\midrule", *_rows(table), r"\bottomrule"]
    begin, end = rf"\sbox0{{\begin{{tabular}}{{{_alignment(table)}}}", r"\end{tabular}}"
    fit = r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi"
    return "\n".join([begin, *(f"  {line}" for line in lines), end, fit])


def _long(table: Table, caption: list[str]) -> str:
    """Set a table that breaks over pages and repeats its head."""
    head = [r"\toprule", _head(table), r"\midrule"]
    lines = [*caption, *head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"]
    begin, end = rf"\begin{{longtable}}{{{_alignment(table)}}}", r"\end{longtable}"
    return "\n".join([begin, *(f"  {line}" for line in (*lines, *_rows(table))), end])


def _alignment(table: Table) -> str:
    """Columns of one line, except prose and long names, which break."""
    letters = {"name": "l", "word": "l", "number": "r", "prose": r"p{0.24\linewidth}"}
    long = _long_names(table)
    wide = r"p{0.22\linewidth}" if sum(long) == 1 else r"p{0.18\linewidth}"
    kinds = zip(table.columns, long, strict=True)
    return "".join(wide if breaks else letters[column.kind] for column, breaks in kinds)


def _long_names(table: Table) -> list[bool]:
    """Which columns hold a name that is too long for one line."""

    def longest(at: int) -> int:
        cells = [row[at] for row in table.rows]
        return max(len(text) for cell in cells for text in (cell.text, cell.detail))

    return [
        column.kind in ("name", "word") and max(len(column.label), longest(at)) > LONG_NAME
        for at, column in enumerate(table.columns)
    ]


def _head(table: Table) -> str:
    return _line(
        [
            _heading(column.label) if column.kind == "number" else escape(column.label)
            for column in table.columns
        ]
    )


def _heading(label: str) -> str:
    """A number's heading in as many lines as keep it narrow."""
    lines = textwrap.wrap(label, HEADING, break_long_words=False, break_on_hyphens=False)
    stack = r"\\".join(map(escape, lines))
    return stack if len(lines) == 1 else rf"\shortstack[r]{{{stack}}}"


def _rows(table: Table) -> list[str]:
    long, lines = _long_names(table), []
    for row in table.rows:
        texts = [escape(cell.text if table.stacked else cell.plain) for cell in row]
        lines.append(
            _line([_ragged(t) if breaks else t for t, breaks in zip(texts, long, strict=True)])
        )
        if table.stacked and any(cell.detail for cell in row):
            lines += [_line([_small(cell) for cell in row]), r"\addlinespace[2pt]"]
    return lines


def _ragged(text: str) -> str:
    # Inside a group that ends its own paragraph: outside it, "\\" must still end the row.
    return rf"{{\raggedright {text}\par}}"


def _small(cell: Cell) -> str:
    return rf"{{\scriptsize {escape(cell.detail)}}}" if cell.detail else ""


def _line(cells: list[str]) -> str:
    # A row that begins with a bracket would be read as the option of the "\\" before it.
    cells = [f"{{}}{cell}" if cell.startswith(("[", "*")) else cell for cell in cells]
    return " & ".join(cells) + r" \\"
