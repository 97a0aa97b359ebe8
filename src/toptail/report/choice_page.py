"""A choice as a page, Markdown, LaTeX and a figure."""

from __future__ import annotations

import base64
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from toptail.report import latex, markdown
from toptail.report.chart_data import rounded
from toptail.report.choice import (
    MOST_CURVES,
    QUESTION,
    Choice,
    choice_decimals,
    choice_method,
    choice_sentences,
    choice_tables,
    deployed_words,
    shown_curves,
)
from toptail.report.html import page
from toptail.report.palette import NEUTRAL, style
from toptail.report.strokes import SETTINGS, new_figure
from toptail.report.text import one_line, percent, short

MANY: Final = 15
"""A longer table starts folded."""
_SCRIPTS: Final = ("svg.js", "shown.js", "lines.js", "sorting.js", "choice.js")


def render_choice(choice: Choice, folder: Path) -> None:
    """Write ``choice.md``, ``choice.tex``, ``report.html`` and ``figures/`` into a folder."""
    texts = {
        "choice.md": choice_markdown(choice),
        "choice.tex": choice_latex(choice),
        "report.html": choice_html(choice),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    for ending in ("svg", "png"):
        (figures / f"frontier.{ending}").write_bytes(_drawn(choice, ending))


def choice_html(choice: Choice) -> str:
    """The choice as one self-contained page."""
    picture = base64.b64encode(_drawn(choice, "svg", over_k=False)).decode()  # K has a chart
    tables = {table.name: table for table in choice_tables(choice)}
    whole = tables["families"]
    many = len(whole.rows) > MANY
    return page(
        "choice.html",
        _SCRIPTS,
        audit=choice,
        question=QUESTION,
        answer=one_line(choice["answer"]),
        deployed=deployed_words(choice),
        measured=choice_sentences(choice),
        tables=tables,
        many=MANY,
        best=replace(whole, rows=whole.rows[:MOST_CURVES]) if many else None,
        method=choice_method(choice),
        data=_chart(choice),
        against_kl=f"data:image/svg+xml;base64,{picture}",
    )


def _chart(choice: Choice) -> dict[str, Any]:
    """The numbers that the page's chart draws."""
    looks = [style(rank) for rank in range(len(shown_curves(choice)))]
    content: dict[str, Any] = rounded(
        {
            "k": choice["ks"],
            "decimals": choice_decimals(choice),
            "random": choice["baselines"]["random"]["value"],
            "oracle": choice["baselines"]["oracle"]["value"],
            "families": [
                {
                    "name": one_line(each["family"]),
                    "value": each["value"],
                    "hue": look.hue,
                    "dash": look.dash,
                }
                for each, look in zip(shown_curves(choice), looks, strict=True)
            ],
        }
    )
    return content


def choice_markdown(choice: Choice) -> str:
    """The choice as Markdown."""
    parts = [f"# {QUESTION}", f"**{markdown.escape(choice['answer'])}**"]
    parts.append(f"To deploy: {markdown.escape(deployed_words(choice))} (`selector.json`).")
    parts.append(" ".join(map(markdown.escape, choice_sentences(choice))))
    remarks = [*choice["warnings"], *choice["notes"]]
    parts += ["\n".join(f"- {markdown.escape(each)}" for each in remarks)] if remarks else []
    parts.append("![Value against K and against KL](figures/frontier.svg)")
    for table in choice_tables(choice):
        title, caption = markdown.escape(table.title), markdown.escape(table.caption)
        parts += [f"## {title}", caption, markdown.pipe_table(table)]
    parts.append("## How it was computed")
    rows = choice_method(choice)
    parts.append("\n".join(f"- {markdown.escape(a)}: {markdown.escape(b)}" for a, b in rows))
    return "\n\n".join(parts) + "\n"


def choice_latex(choice: Choice) -> str:
    r"""Every table of the choice, ready for ``\input``."""
    lines = [
        "% Tables of toptail choose. In the preamble: \\usepackage{booktabs,graphicx,longtable}",
        r"\begingroup\raggedright",
        latex.escape(choice["answer"]),
        *(latex.escape(sentence) for sentence in choice_sentences(choice)),
        *(f"Warning: {latex.escape(sentence)}" for sentence in choice["warnings"]),
        *(f"Note: {latex.escape(sentence)}" for sentence in choice["notes"]),
        r"\par\endgroup",
    ]
    for table in choice_tables(choice):
        lines += ["", latex.tabular(table, of="choice")]
    return "\n".join(lines) + "\n"


def frontier_figure(choice: Choice, *, over_k: bool = True) -> Figure:
    """Value against K, and against KL to the proposal; or the second alone."""
    with mpl.rc_context(SETTINGS | {"axes.grid": True, "axes.grid.axis": "y"}):
        figure = new_figure(9.5 if over_k else 6.5, 4.0)
        *first, last = figure.subplots(1, 2 if over_k else 1, sharey=True, squeeze=False)[0]
        curves = shown_curves(choice)
        for rank, each in enumerate(curves):
            look = style(rank)
            dashes = (0, tuple(map(float, look.dash.split()))) if look.dash else "solid"
            how = {"color": look.colour, "linestyle": dashes, "marker": "o", "markersize": 3}
            for panel in first:
                panel.plot(np.log2(each["k"]), each["value"], **how)
            last.plot(each["kl"], each["value"], label=short(each["family"], 30), **how)
        for panel in (*first, last):
            for name, dash in (("random", "--"), ("oracle", ":")):
                known = choice["baselines"][name]["value"]
                if known is not None:
                    panel.axhline(known, color=NEUTRAL, linestyle=dash)
        for panel in first:
            _deployed(choice, panel)
            panel.set_xticks(np.log2(choice["ks"]), [str(k) for k in choice["ks"]])
            panel.set_xlabel("candidates K (log scale)")
            panel.set_title("Value against K, best parameters at each K", fontsize=9)
        last.set_xlabel("KL to a random pick, nats")
        last.set_title("Value against KL to the proposal", fontsize=9)
        (*first, last)[0].set_ylabel("value on all queries")
        figure.legend(loc="outside right upper", fontsize=7.5)
        return figure


def _deployed(choice: Choice, axes: Any) -> None:
    """The value with its interval, at the K to deploy."""
    ends = [choice[part] for part in ("value", "low", "high")]
    if None in ends:
        return
    value, low, high = ends
    label = f"to deploy, {percent(choice['settings']['level'])}"
    error = [[value - low], [high - value]]
    axes.errorbar([np.log2(choice["k"])], [value], error, fmt="D", color="black", label=label)


def _drawn(choice: Choice, ending: str, *, over_k: bool = True) -> bytes:
    file = BytesIO()
    with mpl.rc_context(SETTINGS):
        metadata = {"Date": None} if ending == "svg" else None
        frontier_figure(choice, over_k=over_k).savefig(
            file, format=ending, dpi=160, metadata=metadata
        )
    return file.getvalue()
