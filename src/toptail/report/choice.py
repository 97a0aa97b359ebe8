"""A choice among selectors as text, page, Markdown and LaTeX, from ``choice.json`` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Final

from toptail.report.documents import (
    as_latex,
    as_markdown,
    bullets,
    document,
    method_parts,
    paragraph,
    remarks,
    table_parts,
    tabular,
)
from toptail.report.page import (
    LONG,
    Chart,
    Page,
    Section,
    Sheet,
    line_style,
    log_steps,
    notebook_table,
    render_page,
    rounded,
    small_curve,
)
from toptail.report.table import (
    Cell,
    Table,
    count_cell,
    interval_cell,
    name_cell,
    number_cell,
)
from toptail.report.text import (
    count,
    decimals_for,
    number,
    one_line,
    one_line_rows,
    percent,
    plural,
    queries_words,
    recorded,
    remark_lines,
    share_words,
    with_interval,
)
from toptail.select.base import title_of

Choice = Mapping[str, Any]

QUESTION: Final = "What should be deployed?"
BASELINES: Final = {
    "random": "a random pick",
    "best_of_k_max": "plain best of the largest K",
    "best_of_k_best": "plain best of the best K tried",
    "oracle": "the oracle",
}
"""Baseline in ``choice.json`` -> what it is."""
MOST_CURVES: Final = 8
"""How many kinds of selectors are drawn: the best ones, and the plain best."""
_SCRIPTS: Final = ("svg.js", "shown.js", "lines.js", "sorting.js", "choice.js")


def choice_decimals(choice: Choice) -> int:
    """Number of decimals for values: three digits of the headroom."""
    return decimals_for(choice["headroom"] or abs(choice["value"] or 0.0))


def choice_sentences(choice: Choice) -> list[str]:
    """What was tried, on how much data."""
    settings, decimals = choice["settings"], choice_decimals(choice)
    sentences = [
        f"{queries_words(choice)}, {plural(choice['candidates'], 'candidate')}, judged by "
        f"“{one_line(choice['value_column'])}”; {count(choice['tried'])} selectors with their "
        f"parameters and K up to {choice['k_max']}.",
        "Chosen on all queries; intervals allow for the choice, which was made again in "
        f"{plural(settings['resamples'], 'resample')} of the queries. Choosing on "
        f"{settings['folds'] - 1} of {settings['folds']} parts and valuing on the rest gives "
        f"{number(choice['cross_fitted'], decimals)}.",
    ]
    if drawn := choice["monte_carlo"]:
        sentences.append(
            f"Selectors without a closed form: {drawn['draws']} drawn subsets at each of "
            f"{plural(drawn['queries'], 'query', 'queries')}, which leaves a standard error of at "
            f"most {number(drawn['error'], decimals + 1)}."
        )
    return sentences


def title(entry: Mapping[str, Any]) -> str:
    return one_line(title_of(entry["family"], entry["parameters"]))


def deployed_words(entry: Mapping[str, Any]) -> str:
    return f"{title(entry)}, K = {entry['k']}"


def choice_tables(choice: Choice) -> list[Table]:
    """Every table of the choice; those without rows are left out."""
    makers = (_worth, _families, _chosen, _coverage, _curves)
    return [table for table in (make(choice) for make in makers) if table.rows]


def _worth(choice: Choice) -> Table:
    decimals, level = choice_decimals(choice), percent(choice["settings"]["level"])

    def row(name: str, value: Mapping[str, Any], lead: Cell) -> dict[str, Cell]:
        worth = interval_cell(value, "value", decimals)
        return {"Selector": name_cell(name), "Value": worth, "The deployed one is better by": lead}

    return Table.of(
        "worth",
        "What it is worth",
        f"Mean value with {level} intervals that hold together for everything tried, and so for "
        "what was chosen. The first row is the selector to deploy. Its mean on the queries that "
        f"chose it, {number(choice['naive']['value'], decimals)}, is corrected for what choosing "
        "adds.",
        [
            row(deployed_words(choice), choice, Cell("–")),
            *(
                row(
                    BASELINES[each["against"]],
                    choice["baselines"][each["against"]],
                    interval_cell(each, "difference", decimals, sign=True),
                )
                for each in choice["differences"]
            ),
        ],
    )


def _families(choice: Choice) -> Table:
    decimals = choice_decimals(choice)
    return Table.of(
        "families",
        "Each selector alone",
        "The parameters and K of each kind of selector with the highest mean. Means are those on "
        "the queries that chose them, not corrected as in the first table. Intervals hold "
        "together, as there; differences are from the plain best of the largest K. Draws: the "
        "standard error that drawn subsets leave; none where there is a closed form.",
        [
            {
                "Selector": name_cell(title(each)),
                "K": count_cell(each["k"]),
                "Value": interval_cell(each, "value", decimals),
                "Better than plain by": interval_cell(
                    each["difference"], "difference", decimals, sign=True
                ),
                "Draws": number_cell(each["error"], decimals=decimals + 1)
                if each["error"]
                else Cell("–"),
            }
            for each in choice["families"]
        ],
    )


def _chosen(choice: Choice) -> Table:
    return Table.of(
        "chosen",
        "What was chosen, how often",
        "Over all resamples of the queries. One selector nearly always: the choice is clear. Many: "
        "they are about equally good on these queries.",
        [
            {
                "Selector": name_cell(title(each)),
                "K": count_cell(each["k"]),
                "Share of the resamples": Cell(percent(round(each["share"], 3)), key=each["share"]),
            }
            for each in choice["chosen"]
        ],
    )


def _curves(choice: Choice) -> Table:
    decimals = choice_decimals(choice)
    return Table.of(
        "curves",
        "Value against K, every selector",
        "On all queries, with the parameters that are best at each K: these numbers were chosen "
        "and valued on the same queries and are somewhat too high.",
        [
            {"Selector": name_cell(each["family"])}
            | {
                f"K = {k}": number_cell(x, decimals=decimals)
                for k, x in zip(choice["ks"], each["value"], strict=True)
            }
            for each in shown_curves(choice, len(choice["curves"]))
        ],
    )


def _coverage(choice: Choice) -> Table:
    return Table.of(
        "coverage",
        "Value against coverage",
        "The best of K is taken if its score is high enough, else nothing is. Value of what was "
        "taken, and the share of queries at which something was.",
        [
            {
                "Selector": name_cell(each["family"]),
                "K": count_cell(each["k"]),
                "Least score": number_cell(each["least"], decimals=3),
                "Coverage": number_cell(each["coverage"], decimals=3),
                "Value of what is taken": number_cell(
                    each["value_answered"], decimals=choice_decimals(choice)
                ),
            }
            for each in choice["coverage"]
        ],
    )


def shown_curves(choice: Choice, most: int = MOST_CURVES) -> Sequence[Mapping[str, Any]]:
    """Curves of the kinds of selectors with the highest values; a plain best is among them."""
    curves = {each["family"]: each for each in choice["curves"]}
    names = [each["family"] for each in choice["families"] if each["family"] in curves]
    plain = [name for name in names if name.startswith("best(")][:1]
    shown = {*plain, *[name for name in names if name not in plain][: most - len(plain)]}
    return [curves[name] for name in names if name in shown]


def choice_lines(choice: Choice) -> list[str]:
    """The choice in plain text, for the terminal."""
    decimals = choice_decimals(choice)

    def ends(entry: Mapping[str, Any]) -> str:
        return with_interval(entry["value"], entry["low"], entry["high"], decimals)

    optimism = number(choice["naive"]["optimism"], decimals)
    baselines = [(BASELINES[k], ends(entry)) for k, entry in choice["baselines"].items()]
    alone = [(deployed_words(each), ends(each)) for each in choice["families"][:MOST_CURVES]]
    return [
        *choice_sentences(choice),
        "",
        one_line(choice["answer"]),
        "",
        *_columns([(deployed_words(choice), ends(choice)), *baselines]),
        "",
        f"Choosing and valuing on the same queries would have said {optimism} more.",
        "Each kind of selector alone, means on the same queries:",
        *(f"  {line}" for line in _columns(alone)),
        *remark_lines(choice["warnings"], choice["notes"]),
    ]


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of two columns: names, padded to one width, and numbers."""
    width = max(len(name) for name, _ in rows) + 2
    return [f"{name:<{width}}{text}" for name, text in rows]


def choice_method(choice: Choice) -> list[tuple[str, str]]:
    """How the choice was made, as pairs of label and text."""
    settings, abstain = choice["settings"], choice["settings"]["abstain"]
    return one_line_rows(
        [
            *recorded(choice["record"], settings["level"]),
            ("Parts and repeats", f"{settings['folds']} parts, {settings['repeats']} times"),
            ("Resamples", count(settings["resamples"])),
            ("Margin in which the simpler wins", share_words(settings["margin"])),
            ("Price of a candidate", number(settings["cost"], 4)),
            ("No answer is worth", "not declared" if abstain is None else number(abstain, 3)),
        ]
    )


def choice_html(choice: Choice) -> str:
    worth, families, *others = choice_tables(choice)
    if len(families.rows) > LONG:
        rest = replace(
            families,
            name="others",
            title="The other selectors, each alone",
            caption="As in the table above.",
            rows=families.rows[MOST_CURVES:],
        )
        others = [rest, *others]
        families = replace(families, rows=families.rows[:MOST_CURVES])
    shown, all_kinds = len(shown_curves(choice)), len(choice["curves"])
    curves = Chart(
        "value",
        "Value against K",
        f"The {shown} best of {all_kinds} kinds of selectors"
        if shown < all_kinds
        else "Every kind of selector",
        low=True,
    )
    how = (
        ", with the parameters that are best at each K on all queries: curves are somewhat too "
        "high, the table below is not. Random pick dashed, oracle of the largest K dotted."
    )
    opening = Section("frontier", [replace(curves, caption=curves.caption + how)])
    folded = ("others", "curves")
    return render_page(
        Page(
            brand="toptail choose",
            heading=QUESTION,
            answers=[("", one_line(choice["answer"]))],
            opening=[opening],
            lead=[
                'Stored as selector.json; toptail.Selector.load("selector.json").pick(candidates) '
                "applies it to new pools without values."
            ],
            measured=choice_sentences(choice),
            first=[Section("worth", [Sheet(worth)])],
            warnings=choice["warnings"],
            notes=choice["notes"],
            sections=[
                Section(t.name, [Sheet(t, sortable=True, folded=t.name in folded)])
                for t in (families, *others)
            ],
            method=choice_method(choice),
            method_lead="Values of selectors that look at places in an order are exact over all "
            "K-subsets of a pool; others are means over drawn subsets. Intervals come from making "
            "the choice again with queries weighed at random. The folder figures has the same "
            "curves against KL, which measures how far a selector departs from a random pick.",
            scripts=_SCRIPTS,
            data=_chart_data(choice),
        )
    )


def _chart_data(choice: Choice) -> dict[str, Any]:
    families = [
        {
            "name": one_line(each["family"]),
            "value": each["value"],
            "hue": line_style(rank).hue,
            "dash": line_style(rank).dash,
        }
        for rank, each in enumerate(shown_curves(choice))
    ]
    ends = {name: choice["baselines"][name]["value"] for name in ("random", "oracle")}
    data: dict[str, Any] = {
        "k": choice["ks"],
        "decimals": choice_decimals(choice),
        "families": families,
        **ends,
    }
    return rounded(data)


def choice_small(choice: Choice) -> str:
    """What to deploy and what it is worth, with curves, as HTML for a notebook."""
    ks, worth = choice["ks"], _worth(choice)
    curves = {each["family"]: each["value"] for each in choice["curves"]}
    plain = next((family for family in curves if family.startswith("best(")), None)
    # The rows are the selector to deploy, then what it is compared with.
    families = {"best_of_k_max": plain}
    of_rows = [choice["family"], *(families.get(d["against"]) for d in choice["differences"])]
    random, best = ([choice["baselines"][end]["value"]] * len(ks) for end in ("random", "oracle"))
    rows = [
        [
            *(escape(cell.plain) for cell in row),
            small_curve(log_steps(ks), curves[family], random=random, best=best)
            if family in curves
            else "",
        ]
        for row, family in zip(worth.rows, of_rows, strict=True)
    ]
    head = [*(column.label for column in worth.columns), f"K = 1 to {ks[-1]}"]
    return notebook_table([one_line(choice["answer"]), choice_sentences(choice)[0]], head, rows)


def choice_markdown(choice: Choice) -> str:
    escape = as_markdown
    return document(
        [
            f"# {QUESTION}",
            f"**{escape(choice['answer'])}**",
            f"To deploy: {escape(deployed_words(choice))} (`selector.json`).",
            " ".join(map(escape, choice_sentences(choice))),
            bullets(map(escape, [*choice["warnings"], *choice["notes"]])),
            "![Value against K and against KL](figures/frontier.svg)",
            *table_parts(choice_tables(choice)),
            *method_parts(choice_method(choice)),
        ]
    )


def choice_latex(choice: Choice) -> str:
    sentences = map(as_latex, [choice["answer"], *choice_sentences(choice)])
    lines = [
        "% Tables of toptail choose. In the preamble: \\usepackage{booktabs,graphicx,longtable}",
        *paragraph([*sentences, *remarks(choice)]),
    ]
    for table in choice_tables(choice):
        lines += ["", tabular(table, of="choice")]
    return "\n".join(lines) + "\n"
