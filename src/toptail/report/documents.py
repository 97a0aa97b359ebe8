"""An audit as Markdown, as LaTeX and as the text that the terminal shows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from toptail.report.table import Cell, Table
from toptail.report.tables import tables_of
from toptail.report.text import (
    MISSING_SHORT,
    NOT_MEANT,
    Audit,
    basis_sentences,
    column_sentences,
    data_sentences,
    ends_sentence,
    exception_sentences,
    exceptions,
    gain_at_end,
    headline,
    judging_sentences,
    method_rows,
    number,
    one_line,
    p_value,
    question,
    ranked,
    remark_lines,
    scope_sentence,
    shared_unseen,
    short,
    signed,
    status_lines,
    status_words,
    unseen,
    value_decimals,
    with_interval,
)

FIGURES: Final[Mapping[str, Mapping[str, str]]] = {
    "pools": {
        "gain": "Share of the headroom captured",
        "best_of_k": "Best-of-K curves",
        "deciles": "Mean value by score decile",
    },
    "picks": {"differences": "Paired differences"},
    "choice": {"frontier": "Value against K and against KL"},
}
"""Name of each figure's file and its title, by kind of result, in the order of the page."""

# ---------------------------------------------------------------------------------------- Markdown

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$@])")


def as_markdown(text: object) -> str:
    """Text on one line with Markdown's special characters escaped."""
    return _SPECIAL.sub(r"\\\1", one_line(text).replace("&", "&amp;")) if text != "" else ""


def pipe_table(table: Table) -> str:
    """Draw a table with pipes; numbers are aligned right."""
    header = [as_markdown(column.label) for column in table.columns]
    rule = ["---:" if column.kind == "number" else ":---" for column in table.columns]
    rows = [[as_markdown(cell.plain) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *rows))


def table_parts(tables: Iterable[Table]) -> Iterable[str]:
    """Heading, caption and table, one after the other."""
    for table in tables:
        yield from (
            f"## {as_markdown(table.title)}",
            as_markdown(table.caption),
            pipe_table(table),
        )


def bullets(lines: Iterable[str]) -> str:
    """Lines that are escaped already, as a list."""
    return "\n".join(f"- {line}" for line in lines)


def method_parts(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [
        "## How it was computed",
        bullets(f"{as_markdown(a)}: {as_markdown(b)}" for a, b in rows),
    ]


def document(parts: Iterable[str]) -> str:
    """The parts with blank lines between them; empty parts are left out."""
    return "\n\n".join(part for part in parts if part) + "\n"


def render_markdown(audit: Audit) -> str:
    """Render the whole audit as one Markdown document."""
    pools = audit["kind"] == "pools"
    parts = [f"# {question(audit)}", " ".join(map(as_markdown, data_sentences(audit)))]
    parts += [as_markdown(f"{scope_sentence(audit)} {NOT_MEANT}")] if pools else []
    parts.append(bullets(map(as_markdown, exception_sentences(audit))))
    # In the order of the page: the leaderboard, then the charts, then the other tables.
    tables = tables_of(audit)
    first = [table for table in tables if table.name in ("baseline", "verdicts")]
    parts += [*table_parts(first), bullets(map(as_markdown, basis_sentences(audit)))]
    for title, sentences in (("Warnings", audit["warnings"]), ("Notes", audit["notes"])):
        parts += [f"## {title}", bullets(map(as_markdown, sentences))] if sentences else []
    parts += [f"![{t}](figures/{name}.svg)" for name, t in FIGURES[audit["kind"]].items()]
    parts += ["## Each verdict in words", bullets(_verdicts(audit))] if pools else []
    parts += table_parts(table for table in tables if table not in first)
    parts += method_parts(method_rows(audit))
    if meanings := status_lines(audit):
        parts += ["What each verdict means:"]
        parts += [bullets(f"**{as_markdown(a)}**: {as_markdown(b)}" for a, b in meanings)]
    return document(parts)


def _verdicts(audit: Audit) -> Iterable[str]:
    shared = shared_unseen(audit)
    for name in ranked(audit):
        verdict = audit["scorers"][name]["verdict"]
        but = exceptions(audit, name)
        words = as_markdown(headline(verdict, audit["k"][-1]) + (f"; but {but}" if but else ""))
        own = "" if shared or not unseen(audit, name) else f" {as_markdown(unseen(audit, name))}"
        status = f"**{as_markdown(one_line(name))}: {as_markdown(verdict['status'])}.**"
        yield f"{status} {words}. {as_markdown(verdict['reason'])}{own}"


# ------------------------------------------------------------------------------------------- LaTeX
#
# Latin letters with accents are written as they are; other characters outside ASCII become commands
# or, if none is known, their code points, so that every engine accepts every name.

PAGE_ROWS: Final = 40  # a table with more rows breaks over pages

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


def as_latex(text: object) -> str:
    """Text on one line with LaTeX's special characters escaped."""
    latex = "".join(map(_character, one_line(text))) if text != "" else ""
    # Two hyphens would join to a dash; hyphens occur in names of files and columns.
    return re.sub(r"-(?=-)", "-{}", latex)


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
    warnings = [f"Warning: {as_latex(sentence)}" for sentence in content["warnings"]]
    return warnings + [f"Note: {as_latex(sentence)}" for sentence in content["notes"]]


def render_latex(audit: Audit) -> str:
    r"""Render every table of the audit as booktabs tables, ready for ``\input``."""
    sentences = data_sentences(audit)
    if audit["kind"] == "pools":
        sentences += [scope_sentence(audit), NOT_MEANT, *exception_sentences(audit)]
    lines = [
        "% Tables of a toptail audit. In the preamble: \\usepackage{booktabs,graphicx,longtable}",
        *(_comment(f"{label}: {text}") for label, text in method_rows(audit)),
        "",
        *paragraph([*map(as_latex, sentences), *remarks(audit)]),
    ]
    for table in tables_of(audit):
        lines += ["", tabular(_for_paper(table))]
    if meanings := status_lines(audit):
        lines += ["", r"\begin{description}"]
        lines += [rf"  \item[{as_latex(status)}] {as_latex(text)}" for status, text in meanings]
        lines.append(r"\end{description}")
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    """A line that LaTeX skips, with Greek letters by their names."""
    return "% " + text.replace("δ", "delta").replace("ρ", "rho")


def _for_paper(table: Table) -> Table:
    """Leave out what a paper's table has no room for: the advice and the checks' questions."""
    if table.name != "checks":
        return table
    rows = tuple((name, Cell(check.text), *rest[:-1]) for name, check, *rest in table.rows)
    return replace(table, columns=table.columns[:-1], rows=rows)


def tabular(table: Table, of: str = "audit") -> str:
    """A booktabs table; ``of`` begins its label. A table with many rows breaks over pages."""
    title = rf"\caption{{\textbf{{{as_latex(table.title)}.}} {as_latex(table.caption)}}}"
    title += rf"\label{{tab:{of}-{table.name}}}"
    letters = {"name": "l", "word": "l", "number": "r", "prose": r"p{0.24\linewidth}"}
    alignment = "".join(letters[column.kind] for column in table.columns)
    head = [r"\toprule", _line(column.label for column in table.columns), r"\midrule"]
    rows = [_line(cell.plain for cell in row) for row in table.rows]
    if len(rows) > PAGE_ROWS:
        begin = [r"\begingroup\footnotesize", rf"\begin{{longtable}}{{{alignment}}}", rf"{title}\\"]
        end = [r"\bottomrule", r"\end{longtable}", r"\endgroup"]
        return "\n".join([*begin, *head, r"\endfirsthead", *head, r"\endhead", *rows, *end])
    # A table that is wider than the page is made smaller.
    begin = [r"\begin{table}[htbp]", r"\centering\footnotesize", title]
    begin.append(rf"\sbox0{{\begin{{tabular}}{{{alignment}}}")
    fit = r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi"
    end = [r"\bottomrule", r"\end{tabular}}", fit, r"\end{table}"]
    return "\n".join([*begin, *head, *rows, *end])


def _line(texts: Iterable[str]) -> str:
    # A row that begins with a bracket would be read as the option of the "\\" before it.
    cells = (re.sub(r"^(?=[\[*])", "{}", as_latex(text)) for text in texts)
    return " & ".join(cells) + r" \\"


# ------------------------------------------------------------------------- text for the terminal

_WIDTH: Final = 32  # of a name; a longer one keeps both ends
_NOISE: Final = (
    "If the judged value is itself noisy, a single judge biases the oracle upward (it is credited "
    "with lucky noise), and the captured share downward; judge candidates at least twice and name "
    "the columns as replicates to remove this."
)


def summary_lines(audit: Audit, *, verbose: bool = False) -> list[str]:
    """Plain-text summary: verdicts first, then what to look at before trusting them."""
    lines = [*data_sentences(audit), ""]
    if audit["kind"] == "picks":
        lines += _picks(audit)
    else:
        lines += _pools(audit, verbose)
        lines += [*judging_sentences(audit), *column_sentences(audit), scope_sentence(audit)]
    notes = audit["notes"] or ([_NOISE] if verbose else [])  # picks have a note of their own
    return [*lines, *remark_lines(audit["warnings"], notes)]


def _pools(audit: Audit, verbose: bool) -> list[str]:
    names = ranked(audit)
    width = max((len(short(name, _WIDTH)) for name in names), default=0)
    lines = [
        f"{ends_sentence(audit)} Gain at K = {audit['k'][-1]} over a random candidate, the share "
        "of the possible gain that is captured, and the peak of the curve:",
        "",
    ]
    for name in names:
        status = audit["scorers"][name]["verdict"]["status"]
        words = scorer_words(audit, name).removeprefix(status)
        lines.append(f"{status:<12}  {short(name, _WIDTH):<{width}} {words}")
        if verbose:
            lines += [f"    {text}" for text in _details(audit, name)]
    return [*lines, ""]


def scorer_words(audit: Audit, name: str) -> str:
    """A scorer's verdict with its K and candidates, its numbers, and where it does not hold."""
    scorer, decimals = audit["scorers"][name], value_decimals(audit)
    verdict = scorer["verdict"]
    share = with_interval(*(scorer[f"captured{end}"][-1] for end in ("", "_low", "_high")))
    words = f"{status_words(verdict, audit['k'][-1])}: gain "
    words += f"{signed(gain_at_end(scorer), decimals, MISSING_SHORT)} in value, captured {share}"
    k, value = verdict["k_best"], scorer["peak_value"]
    if k is not None:
        words += f", peak {'' if value is None else number(value, decimals) + ' '}at K = {k}"
    if verdict["status"] == "inconclusive" and verdict["queries_needed"] is not None:
        words += f", about {verdict['queries_needed']:,} queries would decide"
    but = exceptions(audit, name)
    return f"{words}; but {but}" if but else words


def _details(audit: Audit, name: str) -> Iterable[str]:
    scorer = audit["scorers"][name]
    verdict = scorer["verdict"]
    yield one_line(verdict["reason"])
    if verdict["unseen"]:
        yield one_line(verdict["unseen"])
    yield f"{signed(scorer['gain_per_doubling'], value_decimals(audit))} in value per doubling of K"
    if audit.get("groups"):
        parts = ", ".join(
            f"{one_line(group)} {part['scorers'][name]['verdict']['status']}"
            for group, part in audit["groups"].items()
        )
        column = one_line(audit.get("group_column") or "group")
        yield f"By {column}, up to best of {audit['k'][-1]}: {parts}"


def _picks(audit: Audit) -> list[str]:
    decimals = value_decimals(audit)
    means = [
        f"{one_line(name)}: {with_interval(s['mean'], s['low'], s['high'], decimals)}"
        for name, s in audit["selectors"].items()
    ]
    lines = [*means, "", *_differences(audit["comparisons"], decimals)]
    for group, part in (audit.get("groups") or {}).items():
        head = f"{one_line(audit['group_column'])} {one_line(group)} ({part['queries']:,} queries)"
        lines += ["", f"{head}:", *_differences(part["comparisons"], decimals)]
    return lines


def _differences(comparisons: Iterable[Mapping[str, Any]], decimals: int) -> list[str]:
    return [
        f"{one_line(c['a'])} − {one_line(c['b'])}: "
        f"{with_interval(c['difference'], c['low'], c['high'], decimals)}, "
        f"Holm p {p_value(c['p_holm'])}, "
        f"smallest detectable effect {number(c['detectable'], decimals)}"
        for c in comparisons
    ]
