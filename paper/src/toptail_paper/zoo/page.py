"""The page of the zoo, its figure, and the summary that the library ships.

    python -m toptail_paper.zoo.page

makes all three of ``paper/results/zoo``; a test compares the page with what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toptail.io.files import write_texts
from toptail.io.json_files import read_json
from toptail.lab.critics.registry import CRITICS
from toptail_paper.study.markdown import markdown_table, with_parts
from toptail_paper.zoo.cells import closed, leaderboard, ranged
from toptail_paper.zoo.scores import SOURCES
from toptail_paper.zoo.small import SmallZoo
from toptail_paper.zoo.summary import (
    HEAD,
    RAW,
    REGRET,
    TASK,
    TDQ,
    TITLES,
    studied_cure,
    summary,
    verdict_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT: Final = Path(__file__).parents[4]
RESULTS: Final = ROOT / "paper" / "results" / "zoo"
PAGE: Final = ROOT / "paper" / "docs" / "results" / "zoo.md"
FIGURE: Final = ROOT / "paper" / "docs" / "figures" / "zoo.png"
ANTMAZE: Final = "antmaze-medium-navigate-v0"
SHIPPED: Final = ROOT / "src" / "toptail" / "lab" / "check" / "zoo.json"

OBJECTIVES: Final = {
    "bellman": ("Bellman targets", "#1b6ca8"),
    "contrastive": ("contrast with other goals", "#c8553d"),
    "returns": ("recorded returns", "#6a994e"),
    "both": ("contrast and Bellman targets", "#8e6bbf"),
}
"""What a critic is trained by, in words, and the colour of its point."""


def cured(content: Mapping[str, Any]) -> str:
    """The cure before and after."""
    critics, found = content["critics"], content["cure"]
    rows = []
    for source, words in zip(SOURCES, ("near actions", "whole box"), strict=True):
        cells = [ranged(critics[name]["captured"][source]) for name in (RAW, HEAD, TDQ)]
        rows.append([words, *cells, closed(found[source])])
    head = ["PointMaze, best of 64", "before (raw)", "after (value head)", "TD-Q from scratch"]
    return (
        markdown_table([*head, "gap closed"], rows)
        + f"\nBy the declared rule: **{found['answer']}**.\n"
    )


def studied(_: Mapping[str, Any]) -> str:
    """The fixed-query study: behaviour model's candidates, exact value and simulator."""
    stored = read_json(RESULTS / "selection" / TASK / "tables" / "fixed-query.json")
    own, rows = stored["rows"]["PointMaze"], []
    for name in (TDQ, HEAD, RAW, "cosine", "straight", "likely"):
        row = own[name]
        share = _captured(row[f"exact/{REGRET}"])
        best = f"{100 * row['exact/best_pick_64']['mean']:.0f} %"
        gain = "+" + ranged(row["rollout_delta"], 4)
        rows.append([_title(name), ranged(share), best, gain])
    rows.sort(key=lambda row: row[1], reverse=True)
    head = ["critic", "captured, exact value", "pick is a best one", "gain by simulator rollouts"]
    return markdown_table(head, rows)


def antmaze(_: Mapping[str, Any]) -> str:
    """AntMaze: captured share and verdict by the reference, rollouts, and recorded goals."""
    order, found = (
        read_json(RESULTS / "semantics" / ANTMAZE / "tables" / f"{name}.json")["rows"]["AntMaze"]
        for name in ("main", "retrieval")
    )
    home = RESULTS / "selection" / ANTMAZE
    picked = read_json(home / "tables" / "fixed-query.json")["rows"]["AntMaze"]
    rows = []
    for name in (TDQ, HEAD, RAW, "likely", "cosine"):
        own = picked.get(name)
        rows.append(
            [
                _title(name),
                "–" if own is None else ranged(_captured(own[REGRET])),
                "–" if own is None else f"{own['tau_b_64']['mean']:.2f}",
                "–" if own is None else verdict_of(home, name),
                "–" if own is None else "+" + ranged(own["rollout_delta"], 4),
                ranged(order[name]["tau"], 3) if name in order else "–",
                ranged(found[name]["auc"], 3) if name in found else "–",
            ]
        )
    head = ["AntMaze, published ant", "captured, reference", "τ_b", "best of 64"]
    head += ["gain by simulator rollouts", "τ with γ^d", "retrieval AUC"]
    return markdown_table(head, rows)


def cured_antmaze(_: Mapping[str, Any]) -> str:
    """The cure on AntMaze before and after, by the reference ensemble."""
    home = RESULTS / "selection" / ANTMAZE
    picked = read_json(home / "tables" / "fixed-query.json")["rows"]["AntMaze"]
    cells = [ranged(_captured(picked[name][REGRET])) for name in (RAW, HEAD, TDQ)]
    found = studied_cure(home, "AntMaze")
    head = ["AntMaze, best of 64", "before (raw)", "after (value head)", "TD-Q from scratch"]
    rows = [["behaviour model's candidates", *cells, closed(found)]]
    return (
        markdown_table([*head, "gap closed"], rows)
        + f"\nThe declared rule, put to these candidates: **{found['answer']}**.\n"
    )


def _captured(regret: Mapping[str, float]) -> dict[str, float]:
    """The captured share of a normalized regret."""
    return {"mean": 1 - regret["mean"], "low": 1 - regret["high"], "high": 1 - regret["low"]}


def _title(name: str) -> str:
    if name == "likely":
        return "Most likely action"
    return TITLES.get(name) or CRITICS[name].title


PARTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    part.__name__: part for part in (leaderboard, cured, studied, antmaze, cured_antmaze)
}
"""The parts of the page that are made of stored results."""


def refreshed(page: str, content: Mapping[str, Any]) -> str:
    """A page with its parts made anew."""
    parts = {name: partial(part, content) for name, part in PARTS.items()}
    return with_parts(page, {**parts, **SmallZoo(RESULTS / "small", content).parts()})


def figure(content: Mapping[str, Any]) -> Figure:
    """Retrieval on one axis, captured share on the other: good rankers, good objectives."""
    from toptail.report.figures import new_figure

    drawn = new_figure(7.0, 4.6)
    axes = drawn.add_subplot()
    points = [
        (row["title"], row["trained_by"], row["auc"], row["captured"]["nearest"])
        for row in content["critics"].values()
        if row["auc"] is not None
    ]
    for title, objective, auc, near in points:
        bars = [[near["mean"] - near["low"]], [near["high"] - near["mean"]]]
        _, colour = OBJECTIVES[objective]
        axes.errorbar([auc], [near["mean"]], yerr=bars, fmt="o", color=colour, capsize=3)
        crowded = any(
            auc < x <= auc + 0.01 and abs(cell["mean"] - near["mean"]) < 0.05
            for _, _, x, cell in points
        )
        place: dict[str, Any] = {"xytext": (-8 if crowded else 8, 3), "fontsize": 9}
        place |= {"ha": "right" if crowded else "left", "textcoords": "offset points"}
        axes.annotate(title, (auc, near["mean"]), **place)
    line = content["critics"]["straight"]["captured"]["nearest"]["mean"]
    axes.axhline(line, color="0.5", linestyle=":", linewidth=1)
    beside: dict[str, Any] = {
        "transform": axes.get_yaxis_transform(),
        "fontsize": 8,
        "color": "0.4",
    }
    axes.text(0.99, line, "straight line to the goal", va="bottom", ha="right", **beside)
    drawn_objectives = {objective for _, objective, _, _ in points}
    kinds = [kind for name, kind in OBJECTIVES.items() if name in drawn_objectives]
    for number, (words, colour) in enumerate(kinds):
        corner: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 9, "color": colour}
        axes.text(0.02, 0.04 + 0.05 * number, f"● trained by {words}", **corner)
    axes.set_xlabel("Retrieval AUC: is the true goal ranked above others? (good ranker →)")
    axes.set_ylabel("Captured share at best of 64 (good objective ↑)")
    axes.margins(0.25, 0.2)
    axes.spines[["top", "right"]].set_visible(False)
    return drawn


def shipped(content: Mapping[str, Any]) -> dict[str, Any]:
    """What the library ships for ``toptail check --beside zoo``: numbers without the answers."""
    ends = ("mean", "low", "high")
    critics = {
        name: {key: row[key] for key in ("title", "trained_by", "seeds", "ascent", "auc")}
        | {
            "captured": {
                source: {key: cell[key] for key in (*ends, "status")}
                for source, cell in row["captured"].items()
            },
            "followed": {
                source: {key: cell[key] for key in ends} for source, cell in row["followed"].items()
            },
            "train_seconds": row["train_seconds"],
        }
        for name, row in content["critics"].items()
    }
    return {key: value for key, value in content.items() if key != "cure"} | {"critics": critics}


def main() -> None:
    """Write summary, figure and page."""
    content = summary(RESULTS)
    for path, what in ((RESULTS / "summary.json", content), (SHIPPED, shipped(content))):
        text = json.dumps(what, indent=1, ensure_ascii=False) + "\n"
        write_texts(path.parent, {path.name: text})
    figure(content).savefig(FIGURE, dpi=130)
    write_texts(PAGE.parent, {PAGE.name: refreshed(PAGE.read_text(encoding="utf-8"), content)})


if __name__ == "__main__":
    main()
