"""What a choice among selectors says: its sentences and tables, from ``choice.json`` alone."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from toptail.report import latex, markdown
from toptail.report.html import page, rounded
from toptail.report.style import NEUTRAL, SETTINGS, new_figure, style
from toptail.report.table import (
    Cell,
    Column,
    Table,
    count_cell,
    difference_cell,
    name_cell,
    number_cell,
    numbers,
)
from toptail.report.text import count, decimals_for, number, one_line, percent, plural, short
from toptail.select.base import titled

Choice = Mapping[str, Any]

QUESTION: Final = "What should be deployed?"
BASELINES: Final = {
    "random": "a random pick",
    "best_of_k_max": "plain best of the largest K",
    "best_of_k_best": "plain best of the audit's best K",
    "oracle": "the oracle",
}
"""Baseline in ``choice.json`` -> what it is."""
MOST_CURVES: Final = 8
"""Families whose curves are drawn: the best ones, and the plain best."""


def choice_decimals(choice: Choice) -> int:
    """Decimals for values: three digits of what there is to gain."""
    return decimals_for(choice["headroom"] or abs(choice["value"] or 0.0))


def choice_sentences(choice: Choice) -> list[str]:
    """What was tried, on how much data."""
    settings = choice["settings"]
    where = plural(choice["queries"], "query", "queries")
    if choice["clusters"] != choice["queries"]:
        where += f" in {plural(choice['clusters'], 'cluster')}"
    sentences = [
        f"{where}, {plural(choice['candidates'], 'candidate')}, judged by "
        f"“{one_line(choice['value_column'])}”; {count(choice['tried'])} selectors with their "
        f"parameters and K up to {choice['k_max']}.",
    ]
    if _is_old(choice):
        sentences.append(
            f"Chosen on {settings['folds'] - 1} of {settings['folds']} parts of the queries and "
            f"valued on the rest, {plural(settings['repeats'], 'time', 'times')}: the value is "
            "that of choosing this way, on queries that the choice did not look at."
        )
    else:
        sentences.append(
            "Chosen on all queries; intervals allow for the choice, which was made again in "
            f"{plural(settings['resamples'], 'resample')} of the queries. Choosing on "
            f"{settings['folds'] - 1} of {settings['folds']} parts and valuing on the rest gives "
            f"{number(choice['cross_fitted'], choice_decimals(choice))}."
        )
    if drawn := choice["monte_carlo"]:
        sentences.append(
            f"Selectors without a closed form: {drawn['draws']} drawn subsets at each of "
            f"{plural(drawn['queries'], 'query', 'queries')}, which leaves a standard error of at "
            f"most {number(drawn['error'], choice_decimals(choice) + 1)}."
        )
    return sentences


def _is_old(choice: Choice) -> bool:
    """Whether its values are those of choosing this way, as they were in the first edition."""
    return bool(choice["format"] == "toptail-choice-1")


def title(entry: Mapping[str, Any]) -> str:
    """A selector's name with its parameters."""
    return one_line(titled(entry["family"], entry["parameters"]))


def deployed_words(entry: Mapping[str, Any]) -> str:
    """A selector with its parameters and K."""
    return f"{title(entry)}, K = {entry['k']}"


def choice_tables(choice: Choice) -> list[Table]:
    """Every table of the choice; those without rows are left out."""
    tables = [_worth(choice), _families(choice), _chosen(choice), _curves(choice)]
    return [table for table in (*tables, _coverage(choice)) if table.rows]


def _worth(choice: Choice) -> Table:
    decimals, level = choice_decimals(choice), percent(choice["settings"]["level"])
    old = _is_old(choice)
    first = "choosing this way" if old else deployed_words(choice)
    rows: list[tuple[Cell, ...]] = [(name_cell(first), _interval(choice, decimals), Cell("–"))]
    for each in choice["differences"]:
        baseline = choice["baselines"][each["against"]]
        cells = (_interval(baseline, decimals), _difference(each, decimals))
        rows.append((name_cell(BASELINES[each["against"]]), *cells))
    caption = (
        f"Mean value on queries that were not chosen on, with {level} intervals; the differences' "
        "intervals hold together. Valuing the chosen selector on the queries that chose it would "
        f"have said {number(choice['naive']['value'], decimals)}."
        if old
        else f"Mean value with {level} intervals that hold together for everything tried, and so "
        "for what was chosen. The first row is the selector to deploy. Its mean on the queries "
        f"that chose it, {number(choice['naive']['value'], decimals)}, is corrected for what "
        "choosing adds."
    )
    gained = "Choosing this way is better by" if old else "The deployed one is better by"
    columns = (Column("Selector", "name"), *numbers("Value", gained))
    return Table("worth", "What it is worth", caption, columns, tuple(rows))


def _interval(entry: Mapping[str, Any], decimals: int) -> Cell:
    return number_cell(entry["value"], entry["low"], entry["high"], decimals=decimals)


def _difference(entry: Mapping[str, Any], decimals: int) -> Cell:
    return difference_cell(entry["difference"], entry["low"], entry["high"], decimals)


def _families(choice: Choice) -> Table:
    decimals = choice_decimals(choice)
    caption = (
        "Parameters and K of one selector chosen on some queries and valued on others, without "
        "regard to the other selectors; against the plain best of the largest K, with intervals "
        "that hold together. K and parameters are those chosen on all queries."
        if _is_old(choice)
        else "The parameters and K of each kind of selector with the highest mean. Means are those "
        "on the queries that chose them, not corrected as in the first table. Intervals hold "
        "together, as there; differences are from the plain best of the largest K."
    )
    return Table(
        "families",
        "Each selector alone",
        f"{caption} Draws: the standard error that drawn subsets leave; none where there is a "
        "closed form.",
        (
            Column("Selector", "name"),
            *numbers("K", "Value", "Better than plain by", "Draws"),
        ),
        tuple(
            (
                name_cell(title(each)),
                count_cell(each["k"]),
                _interval(each, decimals),
                _difference(each["difference"], decimals),
                number_cell(each["error"], decimals=decimals + 1) if each["error"] else Cell("–"),
            )
            for each in choice["families"]
        ),
    )


def _chosen(choice: Choice) -> Table:
    over = "parts" if _is_old(choice) else "resamples"
    return Table(
        "chosen",
        "What was chosen, how often",
        f"Over all {over} of the queries. One selector nearly always: the choice is clear. Many: "
        "they are about equally good on these queries.",
        (Column("Selector", "name"), *numbers("K", f"Share of the {over}")),
        tuple(
            (
                name_cell(title(each)),
                count_cell(each["k"]),
                Cell(percent(round(each["share"], 3)), key=each["share"]),
            )
            for each in choice["chosen"]
        ),
    )


def _curves(choice: Choice) -> Table:
    decimals = choice_decimals(choice)
    return Table(
        "curves",
        "Value against K, every selector",
        "On all queries, with the parameters that are best at each K: these numbers were chosen "
        "and valued on the same queries and are somewhat too high.",
        (Column("Selector", "name"), *numbers(*(f"K = {k}" for k in choice["ks"]))),
        tuple(
            (
                name_cell(each["family"]),
                *(number_cell(value, decimals=decimals) for value in each["value"]),
            )
            for each in shown_curves(choice, len(choice["curves"]))
        ),
        over_k=True,
    )


def _coverage(choice: Choice) -> Table:
    decimals = choice_decimals(choice)
    return Table(
        "coverage",
        "Value against coverage",
        "The best of K is taken if its score is high enough, else nothing is. Value of what was "
        "taken, and the share of queries at which something was.",
        (
            Column("Selector", "name"),
            *numbers("K", "Least score", "Coverage", "Value of what is taken"),
        ),
        tuple(
            (
                name_cell(each["family"]),
                count_cell(each["k"]),
                number_cell(each["least"], decimals=3),
                number_cell(each["coverage"], decimals=3),
                number_cell(each["value_answered"], decimals=decimals),
            )
            for each in choice["coverage"]
        ),
    )


def shown_curves(choice: Choice, most: int = MOST_CURVES) -> Sequence[Mapping[str, Any]]:
    """Curves of the families with the highest values; a plain best is among them."""
    order = [each["family"] for each in choice["families"]]
    curves = {each["family"]: each for each in choice["curves"]}
    names = [name for name in order if name in curves]
    plain = [name for name in names if name.startswith("best(")][:1]
    kept = set([name for name in names if name not in plain][: most - len(plain)] + plain)
    return [curves[name] for name in names if name in kept]


def choice_lines(choice: Choice) -> list[str]:
    """The choice in plain text, for the terminal."""
    decimals = choice_decimals(choice)

    def ends(entry: Mapping[str, Any]) -> str:
        if entry["value"] is None:
            return "not known"
        low, high = (number(entry[end], decimals) for end in ("low", "high"))
        return f"{number(entry['value'], decimals)} [{low}, {high}]"

    lines = [*choice_sentences(choice), "", one_line(choice["answer"]), ""]
    first = "choosing this way" if _is_old(choice) else short(deployed_words(choice), 46)
    lines.append(f"{first:<48}{ends(choice)}")
    lines += [f"{BASELINES[k]:<48}{ends(entry)}" for k, entry in choice["baselines"].items()]
    optimism = number(choice["naive"]["optimism"], decimals)
    lines += ["", f"Choosing and valuing on the same queries would have said {optimism} more."]
    lines += [] if _is_old(choice) else ["Each kind of selector alone, means on the same queries:"]
    lines += [
        f"  {short(deployed_words(each), 44):<46}{ends(each)}"
        for each in choice["families"][:MOST_CURVES]
    ]
    lines += [f"warning: {one_line(sentence)}" for sentence in choice["warnings"]]
    return [*lines, *(f"note: {one_line(sentence)}" for sentence in choice["notes"])]


def choice_method(choice: Choice) -> list[tuple[str, str]]:
    """How the choice was made, as pairs of label and text."""
    record, settings = choice["record"], choice["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    abstain = settings["abstain"]
    rows = [
        ("Command", record["command"]),
        ("Table", record["source"]),
        ("SHA-256 of the table", record["sha256"]),
        ("Seed", record["seed"]),
        ("Versions", versions),
        ("Confidence level", percent(settings["level"])),
        ("Parts and repeats", f"{settings['folds']} parts, {settings['repeats']} times"),
        ("Resamples", count(settings["resamples"])),
        ("Margin in which the simpler wins", f"{number(settings['margin'])} of the headroom"),
        ("Price of a candidate", number(settings["cost"], 4)),
        ("No answer is worth", "not declared" if abstain is None else number(abstain, 3)),
    ]
    return [(label, "not recorded" if text is None else one_line(text)) for label, text in rows]


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
