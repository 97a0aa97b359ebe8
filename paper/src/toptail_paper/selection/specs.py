"""What the selection study shows: the parts of its page, its tables and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from toptail.lab.judges.point import EXACT, EXACT_CONTINUOUS
from toptail.report.page import Listing
from toptail_paper.selection.page import declared_rows
from toptail_paper.selection.results import SelectionResults, judge_name, selector_name
from toptail_paper.selection.show import (
    circular_words,
    gain,
    group_sheets,
    judge_tables,
    square_tables,
    verdict_sheets,
)
from toptail_paper.study.compare import DIFFERS
from toptail_paper.study.figures import FigureSpec
from toptail_paper.study.naming import by_factors, factors_name
from toptail_paper.study.page import Part, Shown, View
from toptail_paper.study.point_judges import EUCLIDEAN
from toptail_paper.study.search_error import FIGURE, LABEL, MEANING, METRICS
from toptail_paper.study.tables import Metric, TableSpec


def _main_title(study: SelectionResults) -> str:
    return f"Selection at K = {study.size}"


def _main_meaning(study: SelectionResults) -> str:
    return (
        f"Within-pool ordering (τ_b: 1 is the judge's order) and normalized regret of the best of "
        f"{study.size} by score (0: best candidate, 1: a random one), mean ± standard deviation "
        "over training seeds, and what the pick gains in the simulator; below them, 95 % intervals"
        f"⟦ and the paper's cells. {DIFFERS}⟧. {circular_words(study)}‡ The judge did not pass its "
        "criteria. * The interval excludes zero."
    )


def _picks_meaning(study: SelectionResults) -> str:
    rule = study.declared.get("support", {}).get("threshold", "").removeprefix("on support: ")
    return (
        f"A candidate is on local support if its {rule}. The last column is a within-pool "
        "Spearman correlation. Only cosine scores are bounded, by 1: the shares above 0.9 are "
        "about them."
    )


def _declared_lead(study: SelectionResults) -> str:
    return (
        f"Quoted from declared.json, whose hash {study.declared.get('hash', '')} every file of "
        "scores and values carries."
    )


def _declared(study: SelectionResults) -> list[Listing]:
    return [Listing(declared_rows(study.declared, study.candidates))]


_CURVES: Final = (
    "What the best of K by score is worth: 0 is a random candidate, 1 the best candidate of the "
    "whole pool by the judge. The exact expectation over all subsets of K; bands are ± one "
    "standard deviation over training seeds. Dashed: the best of K by the judge itself. A curve "
    "that bends down is harmed by more search."
)
_ROLLOUTS: Final = (
    "Discounted success after the picked action and a fixed continuation policy, less the mean of "
    "random candidates of the same pool; paired 95 % intervals, trajectories resampled.⟦ Hollow "
    "markers are the paper's.⟧ The grey strip is the smallest effect of interest."
)
_CLOSED_LOOP: Final = (
    "Success when the best of K by score is executed at every step, with 95 % Wilson intervals "
    "over episodes.⟦ Hollow markers are the paper's.⟧"
)

PARTS: Final = (
    Part("declared", "Declared before anything was scored", _declared_lead, "Declared"),
    Part("judges-part", "The judges", link="Judges"),
    Part("selection", "Selection"),
    Part("tab:function-class", "Is it the objective or the network?", link="Function class"),
    Part(LABEL, "Objective, estimation or extrapolation?", link="Search error"),
    Part("deployment-part", "Deployment"),
)

_table = partial(TableSpec, tasks="first", row_name=selector_name)

_PICKED: Final[Mapping[str, str | Metric | None]] = {
    "median_selected": Metric("Median selected score", 2),
    "share_above_0.9": "Selected scores above 0.9",
    "off_support_rate": "Picks off support",
    "base_rate": "Candidates off support",
    "off_over_base": Metric("Picks over candidates", 2),
    "support_score_correlation": Metric("Score and nearness to data", 2),
}
"""Columns that describe the picked candidates without a judge: their scores and support."""

_REFERENCE: Final = judge_name("reference")

DEPLOYED: Final = ("app:closed-loop", "closed-loop", "actors")
"""What the stage deployment is reproduced by."""

CONTENT: Final[tuple[Shown, ...]] = (
    View("declared", _declared),
    _table(
        "judges",
        "May the judges judge?",
        "",
        dict.fromkeys(
            (
                *("resolvability", "resolvability/{group}", "spearman", "spearman/{group}"),
                *("{judge}/tau_b", "{judge}/tau_b/{group}"),
                *("{judge}/spearman", "{judge}/spearman/{group}"),
                *("spearman_within/{judge}", "spearman_across/{judge}"),
                *("half_width/{selector}", "variance_ratio/{selector}", "largest_half_width"),
                *("queries", "alike", "random_return", "support_value_correlation"),
                *("levels_{levels}", "tau_b_ceiling"),
            )
        ),
        part="judges-part",
        show=judge_tables,
    ),
    _table(
        "levels",
        "How finely do the judges tell candidates apart?",
        "Share of the pools whose candidates have one, two, three or more different values, and "
        "the τ_b that a perfect score without ties would have: ties keep it below 1, so that a "
        "τ_b under a judge of few levels is to be read as a share of its ceiling.",
        {
            **{
                f"levels_{n}": Metric(f"{n} level{'' if n == 1 else 's'}", percent=True)
                for n in (1, 2, 3)
            },
            "levels_more": Metric("More", percent=True),
            "tau_b_ceiling": Metric("Ceiling of τ_b", 2),
        },
        part="judges-part",
        of="judges",
        row_name=judge_name,
        order=list,
    ),
    _table(
        "fixed-query",
        _main_title,
        _main_meaning,
        {
            "tau_b_{k}": f"{_REFERENCE}: τ_b",
            "nregret_{k}": f"{_REFERENCE}: regret",
            **{
                f"{judge}/{metric}_{{k}}": f"{judge_name(judge)}: {words}"
                for judge in (EXACT, EXACT_CONTINUOUS, EUCLIDEAN)
                for metric, words in (("tau_b", "τ_b"), ("nregret", "regret"))
            },
            "{judge}/tau_b_{k}": "{judge}: τ_b",
            "{judge}/nregret_{k}": "{judge}: regret",
            **dict.fromkeys(
                f"{judge}{metric}_{{k}}"
                for judge in ("", "{judge}/")
                for metric in ("pool_nregret", "best_pick")
            ),
            **dict.fromkeys(
                f"{judge}{metric}_{{k}}/{{group}}"
                for judge in ("", "{judge}/")
                for metric in ("tau_b", "nregret", "pool_nregret", "best_pick")
            ),
            "rollout_delta": Metric("Rollouts: Δ against random", show=gain),
            **dict.fromkeys(_PICKED),
        },
        part="selection",
        label="tab:fixed-query",
        decimals=2,
    ),
    FigureSpec("curves", "Value of the pick over K", "selection", (), _CURVES),
    FigureSpec(
        "rollouts",
        "What the pick gains in the simulator",
        "selection",
        ("tab:fixed-query",),
        _ROLLOUTS,
    ),
    _table(
        "rollouts-expert",
        "Gain by rollouts, continued by a policy that reaches goals",
        "The same picks; after the picked action the policy that collected the data goes on, "
        "without noise, to the goal. Discounted success less the mean of random candidates of the "
        "same pool, and less that of raw's picks; paired 95 % intervals, trajectories resampled. "
        "* The interval excludes zero.",
        {
            "rollout_delta": Metric("Δ against random", show=gain),
            "less_raw": Metric("Δ against raw", show=gain),
        },
        part="selection",
    ),
    View("selection", verdict_sheets),
    View("selection", group_sheets),
    _table(
        "best-picks",
        "How often is the pick a best one?",
        "Share of the pools in which the best by score is a best candidate by the judge; several "
        "are where candidates tie. A random pick says how often that takes no critic.",
        {
            "best_pick_{k}": Metric(_REFERENCE, percent=True),
            **{
                f"{judge}/best_pick_{{k}}": Metric(judge_name(judge), percent=True)
                for judge in (EXACT, EXACT_CONTINUOUS, EUCLIDEAN)
            },
            "{judge}/best_pick_{k}": Metric("{judge}", percent=True),
        },
        part="selection",
        of="fixed-query",
    ),
    _table("picks", "What is picked", _picks_meaning, _PICKED, part="selection", of="fixed-query"),
    _table(
        "function-class",
        "Objective against function class",
        "τ_b and, in brackets, normalized regret; mean ± standard deviation over seeds.",
        {
            "tau_b_{k}": "τ_b",
            "nregret_{k}": "regret",
            "{judge}/tau_b_{k}": "{judge}: τ_b",
            "{judge}/nregret_{k}": "{judge}: regret",
        },
        part="tab:function-class",
        label="tab:function-class",
        show=square_tables,
    ),
    _table(
        "factored",
        "The objective, factored",
        "What a target is made of (what followed, or the critic itself a step later), what is done "
        "with it (classified or regressed on), and whose future it is about. τ_b and normalized "
        "regret, mean ± standard deviation over seeds, with 95 % intervals.",
        {
            "tau_b_{k}": f"{_REFERENCE}: τ_b",
            "nregret_{k}": f"{_REFERENCE}: regret",
            "{judge}/tau_b_{k}": "{judge}: τ_b",
            "{judge}/nregret_{k}": "{judge}: regret",
        },
        part="tab:function-class",
        row_name=factors_name,
        order=by_factors,
        decimals=2,
    ),
    replace(FIGURE, part=LABEL),
    _table(
        LABEL,
        "Where search error comes from",
        f"{MEANING} In units of what the pools offer: 1 is a random candidate's regret.",
        METRICS,
        part=LABEL,
        label=LABEL,
    ),
    _table(
        "pick-norm",
        "Does the norm of the pick grow with K?",
        "‖φ‖ of the best of K by score, in units of a random candidate's: the exact expectation "
        "over all subsets of K, means over queries. 1: search does not look for large norms. A "
        "LayerNorm in front of the last layer keeps norms within narrow limits by construction.",
        {"random_norm": Metric("‖φ‖ of a random candidate", 2), "pick_norm_{k}": "K = {k}"},
        part=LABEL,
        label="pick-norm",
    ),
    FigureSpec(
        "closed_loop", "Best of K at every step", "deployment-part", DEPLOYED[:2], _CLOSED_LOOP
    ),
    _table(
        "deployment",
        "An actor that stays near the data",
        "Success of a behaviour-regularized actor trained on each critic, with 95 % intervals over "
        "episodes; and how much a score varies over the cube of actions at one state, median over "
        "states.",
        {
            "actor_success": "Actor's success",
            "score_spread": "Score's range over the actions / |mean|",
            "score_deviation": "… standard deviation / |mean|",
            "closed_loop/K={k}": None,
            "score_spread/{group}": None,
            "score_deviation/{group}": None,
        },
        part="deployment-part",
        aliases=DEPLOYED,
    ),
)

TABLES: Final = {spec.name: spec for spec in CONTENT if isinstance(spec, TableSpec)}

FIGURES: Final = {spec.name: spec for spec in CONTENT if isinstance(spec, FigureSpec)}
