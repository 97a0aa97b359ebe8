"""What the controlled study shows: the parts of its page, its tables and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from toptail.report.page import Listing
from toptail.report.text import signed
from toptail_paper.controlled.config import SWEEPS
from toptail_paper.controlled.results import SWEPT, ControlledResults, critic_name
from toptail_paper.controlled.show import (
    changed,
    largest,
    norm_sheets,
    reason,
    share,
    theory_sheets,
    verdict_sheets,
)
from toptail_paper.study.compare import DIFFERS, Comparison, comparisons, with_spread
from toptail_paper.study.figures import FigureSpec
from toptail_paper.study.page import Part, Shown, View
from toptail_paper.study.search_error import FIGURE, LABEL, MEANING, METRICS
from toptail_paper.study.tables import Metric, TableSpec, Text

SELECTED_BY: Final[Mapping[str, str]] = {
    "support_only": "pool restricted to the support",
    "cosine_readout": "cosine of the same embeddings",
    "norm_cap": "norm capped at its in-support 99th percentile",
    "norm_cap_data": "norm capped at the data's 99th percentile",
    "norm_only": "norm alone",
}
"""What each counterfactual of the decomposition selects with."""


def _stored_caption(name: str) -> Text:
    return lambda study: f"{study.tables[name]['caption']}."


def differences(study: ControlledResults) -> list[Listing]:
    """Every cell whose interval does not overlap with the paper's, with a reason."""
    if not any(study.tables.get(name, {}).get("paper") for name in _COMPARED):
        return []
    rows = [
        _difference(TABLES[name], pair, study)
        for name in _COMPARED
        if name in study.tables
        for pair in comparisons(study.tables[name])
        if pair.differs(_column(TABLES[name], pair).decimals or 3)
    ]
    if not rows:
        none = "No cell differs from the paper's: all intervals overlap with the paper's."
        return [Listing([], lead=none)]
    lead = "Every cell whose interval does not overlap with the paper's, and why it may be."
    return [Listing(rows, "differences", "Where the numbers differ", lead)]


def _difference(spec: TableSpec, pair: Comparison, study: ControlledResults) -> tuple[str, str]:
    column = _column(spec, pair)
    ours, paper = (
        with_spread(cell, column.decimals or 3, percent=column.percent)
        for cell in (pair.ours, pair.paper)
    )
    points = f"{signed(100 * pair.difference, 0)} points"
    apart = points if column.percent else signed(pair.difference, 3)
    where = f"{spec.label} {pair.task.partition('@')[2]}".strip()
    return (
        f"{critic_name(pair.critic)}, {column.heading.lower()} {where}",
        f"{ours}, paper {paper}, difference {apart}. {reason(pair, column.heading, study)}",
    )


def _column(spec: TableSpec, pair: Comparison) -> Metric:
    return spec.metric(pair.metric)[1] or Metric(pair.metric)


_MECHANISM: Final = (
    "Above: a contrastive critic tells held-out compatible pairs from random ones (1), without "
    "having to order them by distance (2); more search then finds what it gets wrong (3). Below: "
    "all 256 candidates of one pool under each critic. Search moves to the right; what counts is "
    "how high the rightmost point lies."
)
_LANDSCAPE: Final = (
    "First seed, first query, whatever they show. Rows: score surface over the action square; its "
    "contours with the 256 candidates, the selected action and the support disk; norm of the "
    "score's gradient."
)
_CURSE: Final = (
    "Left: score of the pick, in each critic's own units. Right: its true value, between the best "
    "candidate and a random one. Thin lines are seeds."
)
_NORM: Final = (
    "Left: true value of the pick. Right: length of the pick's embedding, relative to that of a "
    "random candidate. TD-Q has no embedding of its own; its last hidden layer stands in."
)
_DECOMPOSITION: Final = (
    "Share of regret that goes away on the same pools when a critic selects in another way: 1 "
    "means all of it, 0 none, below 0 that it gets worse. A cap on the norm cannot change a "
    "cosine. “Norm alone” near 0 would say that the norm by itself selects as badly as the "
    "critic. Lines are 95 % intervals over queries, dots are seeds."
)

PARTS: Final = (
    Part("curves", link="", opens=True),
    Part("verdicts", link=""),
    Part(
        "tables",
        "⟦The paper's tables, measured again|The tables⟧",
        f"Measured mean ± standard deviation over seeds⟦, the paper's below it. {DIFFERS}⟧. The "
        "study's default training length was fixed, on other seeds, as the one at which TD-Q comes "
        "nearest to the regret the paper reports for it: TD-Q's agreement with the paper is partly "
        "built in, that of the other critics is not.",
        link="Tables",
    ),
    Part("pictures", "What happens", link="Figures"),
    Part("regret", "Why it happens", link="Decomposition"),
    Part(
        "sweeps",
        "How it depends on settings",
        "The paper does not state most of these settings. One is changed at a time; everything "
        "else stays at the study's default.",
        link="Sweeps",
    ),
    Part("theory", link="Theory"),
)

_table = partial(TableSpec, tasks="columns", row_name=critic_name, intervals=False)

_OFF: Final = Metric("Off support", 2, percent=True)
_PICK: Final[Mapping[str, str | Metric | None]] = {
    "regret": "Regret",
    "off_support": _OFF,
    "mean_norm": "Mean norm of the pick",
    **dict.fromkeys(("selected_score", "value", "retrieval_auc", "loss", "oracle", "random_value")),
}
"""Columns of the pick at the largest K; the rest is for figures and claims."""

_COMPARED: Final = {
    "toy-support": ("Controlled candidate selection at R = 0.40", _PICK),
    "toy-within": ("Within-model readout control", _PICK),
    "r-sweep": ("Support-radius robustness", {**_PICK, "mean_norm": None}),
}
"""Tables whose cells are compared with the paper's one by one: titles and columns."""

CONTENT: Final[tuple[Shown, ...]] = (
    View("verdicts", verdict_sheets),
    *(
        _table(name, title, _stored_caption(name), metrics, part="tables", label=f"tab:{name}")
        for name, (title, metrics) in _COMPARED.items()
    ),
    View("tables", differences),
    FigureSpec("mechanism", "The failure mechanism", "pictures", ("fig:cartoon",), _MECHANISM),
    FigureSpec("landscape", "The score landscape", "pictures", ("fig:landscape",), _LANDSCAPE),
    FigureSpec("curse", "Best-of-K: score and value of the pick", "curves", ("fig:curse",), _CURSE),
    FigureSpec("norm", "The norm channel", "pictures", ("fig:toy-regret",), _NORM),
    View("pictures", norm_sheets),
    FigureSpec(
        "decomposition", "Support decomposition", "regret", ("decomposition",), _DECOMPOSITION
    ),
    _table(
        "support-decomposition",
        "Where the regret comes from",
        "The first three columns are in units of value, mean ± standard deviation over seeds. The "
        "others are the share of regret removed by each way of selecting, on the same pools, with "
        "95 % intervals over queries.",
        {
            "regret": "Regret",
            "regret_off": "… of picks off support",
            "regret_on": "… of picks on support",
            **{
                f"share/{name}": Metric(text[0].upper() + text[1:], show=share)
                for name, text in SELECTED_BY.items()
            },
            **dict.fromkeys(("off_support", "mean_regret_off", "mean_regret_on")),
            **dict.fromkeys(("regret/{by}", "off_support/{by}", "same_pick/{by}")),
        },
        part="regret",
        aliases=("decomposition",),
        tasks="first",
    ),
    FIGURE,
    _table(
        LABEL,
        "Where search error comes from",
        MEANING,
        METRICS,
        part="regret",
        label=LABEL,
        tasks="first",
    ),
    _table(
        "noise",
        "Transition noise",
        lambda study: " ".join(study.tables["noise"]["notes"]),
        {
            "regret": "Regret, exact value",
            "regret_noisy": "Regret, noisy value",
            "largest_shift": Metric("Largest shift of any query", show=largest),
            "picks_changed": Metric("Picks changed", show=changed),
        },
        part="regret",
        aliases=("noise",),
        tasks="first",
        order=list,
    ),
    *(
        FigureSpec(
            f"sweep_{name}",
            f"Sweep: {title}",
            "sweeps",
            ("tab:r-sweep",) if name == "radius" else (),
        )
        for _, name, title in SWEPT
    ),
    *(_table(f"sweep-{name}", f"Sweep of {name}", "", _PICK) for name in SWEEPS),
    _table("choice", "How the default setting was fixed", "", _PICK),
    View("theory", theory_sheets, label="theory"),
)

TABLES: Final = {spec.name: spec for spec in CONTENT if isinstance(spec, TableSpec)}

FIGURES: Final = {spec.name: spec for spec in CONTENT if isinstance(spec, FigureSpec)}
