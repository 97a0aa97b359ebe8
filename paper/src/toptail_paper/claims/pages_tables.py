"""The tables of the pages on score semantics and on the walkers, each declared in `SHOWN`.

A place ``<semantics main PointMaze raw tau 3±ci(3±)>`` says where a number is stored: study, table,
task, row and metric. Its last word is the form in which it is written (`written`), with the form of
the paper's number in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from toptail.io.json_files import read_json
from toptail.report.text import bracket, count, join, number, signed
from toptail_paper.claims.pages_power import homes
from toptail_paper.claims.reported import (
    ANT,
    HUMANOID,
    MANIPULATION,
    NAVIGATION,
    POINT,
    SOCCER,
    published,
)
from toptail_paper.study.markdown import markdown_table
from toptail_paper.study.naming import data_set

NOTHING: Final = "–"
"""A cell of a row that has no such number."""


@dataclass(frozen=True)
class Shown:
    """A table: what names its rows, its rows, and what each column shows of a row."""

    names: str
    """Headings of the cells that name a row; a bar stands between two."""
    rows: Mapping[str, str]
    """The cells that name a row, and the words that it has for ``{0}``, ``{1}`` in places."""
    at: str
    """The words with which every place begins."""
    columns: str
    """The further columns, with a bar between two: the heading, then a text with places."""
    last: str = ""
    """A last row of another kind."""

    def made(self) -> str:
        """The table in Markdown."""
        headings, texts = zip(*(x.split(" <", 1) for x in self.columns.split(" | ")), strict=True)
        shape = " | ".join(f"<{text}" for text in texts).replace("<", f"<{self.at} ")
        rows = [f"{name} | {shape.format(*words.split())}" for name, words in self.rows.items()]
        rows += [self.last.replace("<", f"<{self.at} ")] if self.last else []
        filled = [re.sub(r"<(.+?)>", lambda x: shown(*x[1].split()), row) for row in rows]
        lines = [row.split(" | ") for row in filled]
        return markdown_table([*self.names.split(" | "), *headings], lines)


def shown(study: str, table: str, task: str, row: str, metric: str, form: str) -> str:
    """A stored number, and in parentheses the paper's; the form ``(3)`` is the paper's alone."""
    found = stored(study, table, task)
    ours = found["rows"][task].get(row, {}).get(metric)
    paper = found["paper"].get(task, {}).get(row, {}).get(metric)
    own, _, other = form.removesuffix(")").partition("(")
    if not own:
        return written(paper, other)
    if ours is None:
        return NOTHING
    beside = f" ({written(paper, other)})" if other and paper is not None else ""
    return written(ours, own) + beside


def written(found: Any, form: str) -> str:
    """A stored number in a form.

    ``2`` has two decimals, ``.2`` no zero before them, ``+4`` a sign, ``%`` is a share in per cent,
    ``2m`` in thousandths, ``n`` a whole number, ``yes`` says whether it is above zero. Behind it
    ``*`` marks an interval without zero, ``±`` adds the deviation over seeds, ``ci`` the interval.
    ``seeds`` in front lists the seeds.
    """
    if form == "n":
        return count(found)
    cell = found if isinstance(found, Mapping) else {"mean": found}
    if form == "yes":
        return "yes" if cell["mean"] > 0 else "no"
    scale, unit = (100, " %") if "%" in form else (1000, "") if "m" in form else (1, "")
    places = int(re.sub(r"\D", "", form) or 0)
    if form.startswith("seeds"):
        return join(number(scale * x, places) + unit for x in cell["seeds"].values())
    text = (signed if form.startswith("+") else number)(scale * cell["mean"], places) + unit
    if "*" in form and not cell["low"] <= 0 <= cell["high"]:
        text += "*"
    if "±" in form and cell.get("std") is not None:
        text += f" ± {number(scale * cell['std'], places)}"
    if form.endswith("ci"):
        text += f" {bracket(scale * cell['low'], scale * cell['high'], places)}"
    return re.sub(r"(?<!\d)0\.", ".", text) if "." in form else text


@cache
def stored(study: str, table: str, task: str) -> Any:
    """A stored table; selection and the studies below ``zoo`` have a folder for each task."""
    folder = published() / study
    if study == "selection":
        folder = dict(homes())[task]
    elif study.startswith("zoo/"):
        folder /= data_set(task)
    return read_json(folder / "tables" / f"{table}.json")


def on(*tasks: str) -> dict[str, str]:
    """Rows of the four critics on each of some tasks."""
    return {f"{task} | {name}": f"{task} {row}" for task in tasks for name, row in FOUR.items()}


# What rows are called on the pages, and in the stored tables.
THREE: Final = {"raw bilinear": "raw", "cosine": "cosine", "hybrid": "hybrid"}
FOUR: Final = {"TD-Q": "tdq"} | THREE
JUDGED: Final = {"TD-Q (judged by its own kind)": "tdq"} | THREE
MAIN_ROWS: Final = {
    "TD-Q": "tdq",
    "raw bilinear": "raw",
    "cosine": "cosine",
    "hybrid": "hybrid",
    "most likely action": "likely",
}
HEAD: Final = {"value head": "value_head"}
REWARDS: Final = {
    "TD-Q, −1/0": "tdq",
    "TD-Q, 0/1": "tdq[reward=0_1]",
    "hybrid, −1/0": "hybrid",
    "hybrid, 0/1": "hybrid[reward=0_1]",
    "raw bilinear": "raw",
    "cosine": "cosine",
}
NETWORKS: Final = {"TD, bilinear network": "td_bilinear", "contrastive, MLP network": "nce_mlp"}
HEADS: Final = {
    f"two heads, {kind}: {head}": f"two_head_{kind}{readout}"
    for kind in ("separate", "joint")
    for head, readout in (("q_td", ""), ("f_cos", ".f_cos"))
}
SEPARATE: Final = {name: row for name, row in HEADS.items() if "separate" in row}
PICKS: Final = {"best by the reference": "reference", "logged action": "logged"}
LOSSES: Final = {"binary NCE": "binary_nce", "symmetric InfoNCE": "symmetric_info_nce"}
TEMPERATURES: Final = ("0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "1", "learned")
SIZES: Final = {"200": "semantics_checks/200_episodes", "1,000": "semantics"}
ORDER: Final = (
    "τ_b with γ^d <main PointMaze {0} tau 3±ci(3±)> | "
    "decile gap <calibration-summary PointMaze {0} gap 2±(2)> | "
    "retrieval AUC <retrieval PointMaze {0} auc 3±(3)> | "
    "regret, K = 64 <ogbench-curse PointMaze {0} regret 3±(3±)> | "
    "normalized <value-oracle PointMaze {0} nregret_gamma 2±(2)>"
)

CLOSED_LOOP: Final = " | ".join(f"K = {k} <closed_loop/K={k} %ci>" for k in (2, 4, 8, 16, 32, 64))

SHOWN: Final[Mapping[str, Shown]] = {
    "walkers_selection": Shown(
        "",
        JUDGED | HEADS | PICKS,
        "selection fixed-query",
        " | ".join(
            f"{task}: τ_b <{task} {{0}} tau_b_64 .2(.2)> | "
            f"normalized regret <{task} {{0}} nregret_64 .2(.2)> | "
            f"gain by rollouts <{task} {{0}} rollout_delta +.3*(+.3)>"
            for task in (ANT, HUMANOID)
        ),
    ),
    "walkers_triples": Shown(
        "",
        FOUR,
        "semantics",
        " | ".join(
            f"{task}: τ with γ^d <main {task} {{0}} tau .2(.2)> | "
            f"decile gap <calibration-summary {task} {{0}} gap .2(.2)> | "
            f"AUC <retrieval {task} {{0}} auc .3(.3)>"
            for task in (ANT, HUMANOID)
        ),
    ),
    "walkers_main": Shown(
        "task | critic",
        {
            f"{task} | {name}": f"{task} {row}"
            for task, more in ((ANT, HEAD), (HUMANOID, SEPARATE), (SOCCER, {}))
            for name, row in (MAIN_ROWS | more).items()
            if (task, row) != (ANT, "hybrid")  # not run
        },
        "",
        "τ with γ^d <zoo/semantics main {0} {1} tau .2(.2)> | "
        "AUC <zoo/semantics retrieval {0} {1} auc .3(.3)> | "
        "hard negatives <zoo/semantics retrieval {0} {1} hard_negative_auc .2(.2)> | "
        "τ_b, reference <zoo/selection fixed-query {0} {1} tau_b_64 .2(.2)> | "
        "regret, reference <zoo/selection fixed-query {0} {1} nregret_64 .2(.2)> | "
        "gain by rollouts <zoo/selection fixed-query {0} {1} rollout_delta +.4*ci(+.3)>",
    ),
    "walkers_main_goes_on": Shown(
        "task | picked by",
        {
            f"{task} | {name}": f"{task} {row}"
            for task in (HUMANOID, SOCCER)
            for name, row in (MAIN_ROWS | PICKS).items()
        },
        "zoo/selection",
        "the behaviour model goes on <fixed-query {0} {1} rollout_delta +.4*ci> | "
        "the collecting policy goes on <rollouts-expert {0} {1} rollout_delta +.4*ci> | "
        "the same, less raw's gain <rollouts-expert {0} {1} less_raw +.4*ci>",
    ),
    "walkers_main_deployed": Shown(
        "",
        FOUR,
        "zoo/selection deployment AntSoccer {0}",
        f"actor <actor_success %ci> | K = 1 <closed_loop/K=1 %ci> | {CLOSED_LOOP}",
    ),
    "walkers_closed_loop": Shown(
        "",
        {"TD-Q": "tdq", "raw": "raw"},
        "selection deployment AntMaze {0}",
        CLOSED_LOOP,
    ),
    "walkers_antsoccer": Shown(
        "",
        JUDGED | PICKS,
        "selection fixed-query AntSoccer {0}",
        "τ_b, reference <tau_b_64 .2ci> | regret, reference <nregret_64 .2ci> | "
        "rollouts: Δ against random <rollout_delta +.4*ci>",
    ),
    "four_critics": Shown("critic", FOUR, "semantics", ORDER),
    "other_critics": Shown("critic", NETWORKS | HEADS, "semantics", ORDER),
    "retrieval": Shown(
        "task | critic",
        on(POINT, *MANIPULATION),
        "semantics retrieval {0} {1}",
        "AUC <auc 3(3)> | hard negatives <hard_negative_auc 3(3)> | recall@1 <recall_1 3(3)> | "
        "recall@5 <recall_5 3(3)> | nearer goal higher <nearer_goal 3>",
    ),
    "episodes": Shown(
        "AUC (hard negatives) | episodes",
        {
            f"{task} | {episodes}": f"{study} {task}"
            for task in ("Cube-single", "Puzzle")
            for episodes, study in SIZES.items()
        },
        "{0} retrieval {1}",
        " | ".join(
            f"{name} <{FOUR[name]} auc 3> (<{FOUR[name]} hard_negative_auc 3>)"
            for name in ("TD-Q", "raw bilinear", "cosine")
        ),
    ),
    "seen_cube_double": Shown(
        "critic | triples",
        {
            f"{name} | {words}": f"{row} {words.replace(' ', '_')}"
            for name, row in FOUR.items()
            for words in ("held out", "seen")
        },
        "semantics",
        "AUC <seen Cube-double {0} auc_{1} 3> | "
        "hard negatives <seen Cube-double {0} hard_negative_auc_{1} 3> | "
        "nearer goal higher <seen Cube-double {0} nearer_goal_{1} 3ci> | "
        "τ_b with γ^d <seen Cube-double {0} tau_{1} 3ci>",
        "*paper, raw; cosine* | *not said* | "
        "*<retrieval Cube-double raw auc (3)>; <retrieval Cube-double cosine auc (3)>* | "
        "*<retrieval Cube-double raw hard_negative_auc (3)>; "
        "<retrieval Cube-double cosine hard_negative_auc (3)>* | – | –",
    ),
    "seen_navigation": Shown(
        "task | critic",
        on(*NAVIGATION),
        "semantics seen {0} {1}",
        "nearer, held out <nearer_goal_held_out 3ci> | nearer, seen <nearer_goal_seen 3ci> | "
        "τ_b, held out <tau_held_out 3ci> | τ_b, seen <tau_seen 3ci>",
    ),
    "seen_small_networks": Shown(
        "",
        {f"raw, {task}": f"{task} raw" for task in MANIPULATION}
        | {"TD-Q, Cube-double": "Cube-double tdq"},
        "semantics_checks/small_networks/all_tasks seen {0} {1}",
        "AUC, held out → seen <auc_held_out 3> → <auc_seen 3> | "
        "nearer goal higher, held out → seen <nearer_goal_held_out 3ci> → <nearer_goal_seen 3ci> | "
        "τ_b, held out → seen <tau_held_out 3> → <tau_seen 3>",
    ),
    "other_reward": Shown(
        "task | critic",
        {
            f"{task} | {name}": f"{task} {row}"
            for task in (POINT, ANT)
            for name, row in REWARDS.items()
            if (task, row) != (POINT, "hybrid")  # not measured
        },
        "semantics_checks/other_reward/{0}",
        "τ_b with γ^d <main {0} {1} tau 3ci> | "
        "decile gap <calibration-summary {0} {1} gap 2ci> | "
        "retrieval AUC <retrieval {0} {1} auc 3ci>",
    ),
    "other_reward_main": Shown(
        "PointMaze",
        {
            "TD-Q, −1/0": "zoo/semantics tdq",
            "TD-Q, 0/1": "semantics_checks/other_reward_main/PointMaze tdq[reward=0_1]",
        },
        "{0}",
        "τ_b with γ^d <main PointMaze {1} tau 3ci> | "
        "decile gap <calibration-summary PointMaze {1} gap 2ci> | "
        "retrieval AUC <retrieval PointMaze {1} auc 3ci> | "
        "hard negatives <retrieval PointMaze {1} hard_negative_auc 2ci>",
    ),
    "readouts": Shown(
        "training and readout",
        {
            "raw-trained, raw (deployed)": "raw_trained/raw",
            "raw-trained, cosine": "raw_trained/cosine",
            "raw-trained, ‖φ‖ alone": "raw_trained/phi_norm",
            "cosine-trained, cosine (deployed)": "cosine_trained/cosine",
            "cosine-trained, raw": "cosine_trained/raw",
            "cosine-trained, ‖φ‖ alone": "cosine_trained/phi_norm",
            "hybrid-trained, cosine (deployed)": "hybrid_trained/cosine",
            "hybrid-trained, its q_td head": "hybrid_trained/q_td",
        },
        "semantics readout PointMaze {0}",
        "τ_b with γ^d <tau 3±ci(3±)>",
    ),
    "temperatures": Shown(
        "loss | temperature",
        {f"{words} | {t}": f"{loss}@{t}" for words, loss in LOSSES.items() for t in TEMPERATURES},
        "semantics temperature PointMaze {0}",
        "τ_b <tau 3±> | AUC <auc 3±> | decile gap <gap 2> | mean score <score_mean 2> | "
        "collapsed <collapsed yes>",
    ),
    "judges": Shown(
        "critic",
        {"TD-Q (circular in the second)": "tdq 3"}  # with the decimals of the second column
        | {name: f"{row} 2" for name, row in THREE.items()}
        | {"TD, bilinear network (circular in the second)": "td_bilinear 2"}
        | {"contrastive, MLP network": "nce_mlp 2", "the task's own value": "q_star 2"},
        "semantics value-oracle PointMaze {0}",
        "by γ^d <nregret_gamma 2±ci(2)> | by an independent TD-Q <nregret_oracle {1}±ci(2)> | "
        "by the shortest way <nregret_euclidean 2±ci> | "
        "τ_b with the shortest way <tau_euclidean 3±ci>",
    ),
    "exact_judge": Shown(
        "critic",
        FOUR,
        "semantics value-oracle PointMaze {0}",
        "by the exact value <nregret_exact 4ci> | τ_b with the exact value <tau_exact 3ci>",
    ),
    "quartiles": Shown(
        "critic",
        FOUR,
        "semantics",
        "regret <robustness PointMaze {0} regret_full 3±(3)> | "
        "within quartiles of γ^d <robustness PointMaze {0} regret_within_bucket 3±(3)> | "
        "centered τ_b <ogbench-curse PointMaze {0} centered_tau 3±ci>",
    ),
    "behaviour_actions": Shown(
        "critic",
        FOUR,
        "semantics value-oracle-diffusion PointMaze {0}",
        "recorded actions <nregret_oracle_data 3±> | "
        "actions of the behaviour models <nregret_oracle_diffusion 3±>",
    ),
    "local_support": Shown(
        "critic",
        FOUR,
        "semantics robustness PointMaze {0}",
        "50 nearest <excess_off_50 3ci(3)> | 200 nearest <excess_off_200 3ci(3)> | "
        "800 nearest <excess_off_800 3ci(3)> | "
        "200 nearest of other trajectories <excess_off_200_trajectory 3ci>",
    ),
    "bellman": Shown(
        "critic",
        FOUR,
        "semantics bellman PointMaze {0}",
        "RMSE(δ)/std(f) <rmse 3±(3±)> | std(δ)/std(f) <std 3±>",
    ),
    "two_heads": Shown(
        "checkpoint",
        {
            "TD-Q alone": "tdq_ref",
            "cosine alone (τ_b of f_cos)": "cosine_ref",
            "two heads, separate networks": "separate",
            "two heads, one network": "joint",
        },
        "semantics twohead PointMaze {0}",
        "τ_b of q_td <tau 3±(3)> | AUC of f_cos <auc 3±(3)>",
    ),
}
"""The tables by the names of their parts."""
