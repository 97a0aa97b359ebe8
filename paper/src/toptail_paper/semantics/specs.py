"""What the semantics study shows: the parts of its page, its tables and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from toptail.lab.judges.point import EXACT
from toptail.report.text import number
from toptail_paper.study.figures import FigureSpec
from toptail_paper.study.naming import scorer_name, setting_text
from toptail_paper.study.page import Part, Shown
from toptail_paper.study.point_judges import EUCLIDEAN
from toptail_paper.study.show import stored_notes
from toptail_paper.study.tables import TableSpec

LEARNED: Final = "learned"
"""What a table says in place of a temperature that was trained with the critic."""

_ROWS: Final[Mapping[str, str]] = {
    "tdq_ref": "TD-Q, for reference",
    "cosine_ref": "Cosine, for reference",
    "separate": "Two heads, separate networks",
    "joint": "Two heads, one network",
    "oracle": "Independent value",
    EXACT: "Exact value",
    EUCLIDEAN: "Shortest way, Euclidean",
}
"""Rows that are not scorers."""


def _against(judge: str, words: str) -> dict[str, str]:
    return {f"nregret_{judge}": f"Against {words}", f"tau_{judge}": f"τ_b with {words}"}


def row_name(row: str) -> str:
    """The name of a row: a scorer, a judge, or one of two networks with two heads."""
    return _ROWS.get(row) or scorer_name(row)


class TemperatureSetting(NamedTuple):
    """One row of the temperature table, ``binary_nce@0.05``; its columns: ``binary_nce-0.05@0``."""

    loss: str
    temperature: float | None
    """None: learned."""

    @classmethod
    def of(cls, row: str) -> TemperatureSetting:
        """From a row's name, or that of its scorer."""
        loss, _, temperature = row.replace("@", "-").rpartition("-")
        return cls(loss, None if temperature == LEARNED else float(temperature))


def setting_name(row: str) -> str:
    """``binary_nce@0.05`` as a reader sees it."""
    loss, temperature = TemperatureSetting.of(row)
    return f"{setting_text(loss)}, {LEARNED if temperature is None else f'T = {temperature:g}'}"


def _with_ends(stored: Mapping[str, Any]) -> list[str]:
    """Notes, and what the best and a random triple have, the same for every critic of a task."""
    found = stored_notes(stored)
    for task, row in stored["rows"].items():
        cells = next((c for c in row.values() if {"oracle", "random"} <= set(c)), None)
        if cells is not None:
            best, random = (number(cells[m]["mean"], 3) for m in ("oracle", "random"))
            found.append(f"{task}: the best of K has a mean γ^d of {best}, a random one {random}.")
    return found


_CALIBRATION: Final = (
    "Triples are split into tenths by score; each point is the mean γ^d of one tenth. A score "
    "that is safe to maximize rises to the right. Bands are ± one standard deviation over seeds."
)
_GOOD_RANKERS: Final = (
    "(a) Retrieval AUC (is the true goal distinguished from a random one?) against Kendall τ with "
    "γ^d (are goals ordered by how near they are?); bars are ± one standard deviation over "
    "seeds⟦; hollow markers are the paper's, tied to ours⟧. (b) Mean score of a true goal against "
    "its distance in steps, scaled so that 1 is the nearest bin and 0 the mean score of a random "
    "goal; mean over tasks."
)
_RETRIEVAL: Final = (
    "Retrieval AUC of every critic on every task, with 95 % intervals that resample trajectories. "
    "⟦Hollow markers are the paper's; the|The⟧ dotted line is chance."
)
_SEEN: Final = (
    "Each line is a critic, from trajectories that it was not trained on to those it was. Top: "
    "the true goal is distinguished from goals of other trajectories. Bottom: of two goals of one "
    "trajectory the nearer scores higher. Dotted lines are chance. With 95 % intervals that "
    "resample trajectories."
)
_READOUT: Final = (
    "Kendall τ with γ^d of one training's embeddings, read in three ways. Dots are seeds, lines "
    "95 % intervals⟦, hollow diamonds the paper's numbers⟧."
)
_OGBENCH_CURSE: Final = (
    "Top: mean γ^d of the best of K pooled triples by score, exact for every K, between the best "
    "of K (dashed) and a random one (dotted). Bottom: how much more often the best of K "
    "candidates at one (s, g) lies off the local support than a random candidate does; 0 is no "
    "preference. Bands are ± one standard deviation over seeds."
)

PARTS: Final = (
    Part("progress", "Progress", "Does a higher score mean that the goal is nearer?"),
    Part(
        "compatibility",
        "Compatibility",
        "Does the score tell the true goal from another one, whatever the distance?",
    ),
    Part(
        "memory",
        "Memory",
        "Does the score know how near a goal is, or has it learned its trajectories by heart?",
    ),
    Part(
        "origins",
        "Where the ordering comes from",
        "Training or readout, consistency along a path, and both heads in one critic.",
    ),
    Part(
        "search",
        "What search does with it",
        "The best of K by score: over pooled triples, and among candidate actions at one (s, g).",
    ),
    Part(
        "temperature-study",
        "What the temperature decides",
        "The paper does not give the temperature of its cosine critic. The rule here: the one with "
        "the highest retrieval AUC, on triples and seeds that are reported nowhere else.",
    ),
)

_table = partial(TableSpec, apart=True, row_name=row_name, notes=stored_notes)

CONTENT: Final[tuple[Shown, ...]] = (
    FigureSpec(
        "calibration", "Score progress calibration", "progress", ("fig:calibration",), _CALIBRATION
    ),
    _table(
        "main",
        "Ordering",
        "Kendall τ_b between the deployed score and γ^d: 1 orders goals by how near they are, 0 "
        "says nothing about it.",
        {"tau": "τ_b"},
        part="progress",
        label="tab:main",
    ),
    _table(
        "calibration-summary",
        "Calibration of the tail",
        "Mean γ^d of the tenth of the triples with the highest scores less that of the tenth with "
        "the lowest. Search looks at the top tenth only; near 0 it finds nothing better there.",
        {"gap": "Gap"},
        decimals=2,
        part="progress",
        label="tab:calibration-summary",
    ),
    FigureSpec(
        "good_rankers",
        "Good rankers, bad objectives",
        "compatibility",
        ("fig:good-rankers",),
        _GOOD_RANKERS,
    ),
    FigureSpec("retrieval", "Retrieval", "compatibility", ("tab:retrieval",), _RETRIEVAL),
    _table(
        "retrieval",
        "Retrieval",
        "Is the true goal distinguished from goals of other trajectories? Chance is 0.5 for the "
        "first two columns.",
        {
            "auc": "AUC",
            "hard_negative_auc": "Hard negatives",
            "recall_1": "Recall@1",
            "recall_5": "Recall@5",
            "same_trajectory": "Same trajectory",
            "nearer_goal": "Nearer goal higher",
        },
        part="compatibility",
        label="tab:retrieval",
    ),
    FigureSpec("seen", "Seen and held-out trajectories", "memory", (), _SEEN),
    _table(
        "seen",
        "Seen and held-out trajectories",
        "The same questions about trajectories of the training split (seen) and of the validation "
        "split (held out). A critic that has learned its trajectories by heart tells their goals "
        "from all others without fault and no longer knows which of two is nearer (chance: 0.5).",
        {
            "auc_held_out": "AUC, held out",
            "auc_seen": "AUC, seen",
            "hard_negative_auc_held_out": "Hard negatives, held out",
            "hard_negative_auc_seen": "Hard negatives, seen",
            "nearer_goal_held_out": "Nearer goal higher, held out",
            "nearer_goal_seen": "Nearer goal higher, seen",
            "tau_held_out": "τ_b, held out",
            "tau_seen": "τ_b, seen",
        },
        part="memory",
    ),
    FigureSpec("readout", "Training and readout", "origins", ("tab:readout",), _READOUT),
    _table(
        "readout",
        "Training against readout",
        "Kendall τ_b with γ^d when one training's embeddings are read in different ways: does the "
        "training or the readout decide the ordering?",
        {"tau": "τ_b"},
        part="origins",
        label="tab:readout",
    ),
    _table(
        "bellman",
        "Bellman consistency along recorded paths",
        "δ = f(s, a, g) − r − γ f(s′, a′, g) in units of the score's spread: 0 is an exact "
        "return-to-go.",
        {"rmse": "RMSE(δ) / std(f)", "std": "std(δ) / std(f)"},
        part="origins",
        label="tab:bellman",
    ),
    _table(
        "twohead",
        "Two heads",
        "One critic with a value head and a cosine head: τ_b with γ^d of the first, retrieval AUC "
        "of the second.",
        {"tau": "τ_b of q_td", "auc": "AUC of f_cos"},
        part="origins",
        label="tab:twohead",
    ),
    FigureSpec(
        "ogbench_curse",
        "Best-of-K over pooled triples, and local support",
        "search",
        ("fig:ogbench-curse", "fig:ogbench-drift"),
        _OGBENCH_CURSE,
    ),
    _table(
        "ogbench-curse",
        "Best-of-K over pooled triples",
        "γ^d that is lost by taking the best of K pooled triples by score; normalized: in units of "
        "what the best of K gains over a random one (0 is perfect, 1 is random).",
        {
            "regret": "Regret",
            "normalized": "Normalized",
            "value": "γ^d of the pick",
            "oracle": None,
            "random": None,
            "regret_quartiles": "Regret within quartiles",
            "centered_tau": "Centered τ_b",
            "query_std": "Spread within a query",
            "median_selected": "Median selected score",
            "share_above_0.9": "Selected scores above 0.9",
        },
        part="search",
        notes=_with_ends,
        label="tab:ogbench-curse",
    ),
    _table(
        "robustness",
        "Local support, and other pools",
        "How much more often the pick at a fixed (s, g) lies off the local support than a random "
        "candidate does, for three definitions of “local”; and the regret of pooled triples, over "
        "all of them and within quartiles of γ^d.",
        {
            "excess_off_{n}_trajectory": "Excess off support, {n} nearest of other trajectories",
            "excess_off_{n}": "Excess off support, {n} nearest",
            "regret_full": "γ^d regret",
            "regret_within_bucket": "… within quartiles of γ^d",
        },
        part="search",
        words={
            "excess_off_N": "Excess off support, N nearest",
            "excess_off_N_trajectory": "… of other trajectories",
        },
        label="tab:robustness",
    ),
    _table(
        "value-oracle",
        "Against an independent value",
        "Normalized regret of the same pooled triples against γ^d, against a separately seeded "
        "value network, and, where they are known, against the exact value and the Euclidean "
        "length of the shortest way. A critic of the same kind as that network is judged by its "
        "twin: such rows are marked circular.",
        {
            "nregret_gamma": "Against γ^d",
            "nregret_oracle": "Against the value",
            "tau_oracle": None,
            **_against(EXACT, "the exact value"),
            **_against(EUCLIDEAN, "the Euclidean way"),
            "spearman": "Spearman with γ^d",
            "spearman_oracle": "Spearman with the value",
        },
        decimals=2,
        part="search",
        words={EXACT: "Against the exact value", EUCLIDEAN: "Against the Euclidean way"},
        label="tab:value-oracle",
    ),
    _table(
        "value-oracle-diffusion",
        "Against an independent value, candidates of a behaviour model",
        "Normalized regret against the independent value, of recorded actions and of actions of "
        "diffusion behaviour models.",
        {"nregret_oracle_data": "Data actions", "nregret_oracle_diffusion": "Diffusion actions"},
        part="search",
        label="tab:value-oracle-diffusion",
    ),
    FigureSpec("temperature_sweep", "Temperature of the cosine critic", "temperature-study"),
    _table(
        "temperature",
        "Temperature of the cosine critic",
        "The paper does not state the temperature: the cosine critic at every one, under two "
        "losses.",
        {
            "tau": "τ_b",
            "auc": "AUC",
            "recall_1": "Recall@1",
            "gap": "Decile gap",
            "score_mean": "Mean score",
            "score_std": "Spread of scores",
            "collapsed": "Seeds collapsed",
        },
        part="temperature-study",
        row_name=setting_name,
    ),
)

TABLES: Final = {spec.name: spec for spec in CONTENT if isinstance(spec, TableSpec)}

FIGURES: Final = {spec.name: spec for spec in CONTENT if isinstance(spec, FigureSpec)}
