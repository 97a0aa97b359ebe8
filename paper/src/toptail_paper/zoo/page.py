"""The page of the zoo, its figure, and the summary that the library ships.

    python -m toptail_paper.zoo.page

makes all three of ``paper/results/zoo``; a test compares the page with what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from toptail.io.files import entries, write_texts
from toptail.io.json_files import read_json, write_json
from toptail.lab.critics.registry import CRITICS
from toptail_paper.study.markdown import markdown_table, with_parts, wrapped
from toptail_paper.zoo.answers import HEAD, RAW, REGRET, TDQ, studied_cure, verdict_of
from toptail_paper.zoo.cells import UNTRAINED, closed, ensembles, further, leaderboard, ranged
from toptail_paper.zoo.figures import figure, small_figure
from toptail_paper.zoo.scores import SOURCES
from toptail_paper.zoo.small import SmallZoo
from toptail_paper.zoo.summary import NO_CRITICS, TASK, TITLES, summary

ROOT: Final = Path(__file__).parents[4]
RESULTS: Final = ROOT / "paper" / "results" / "zoo"
PAGE: Final = ROOT / "paper" / "docs" / "results" / "zoo.md"
FIGURE: Final = ROOT / "paper" / "docs" / "figures" / "zoo.png"
SMALL_FIGURE: Final = FIGURE.with_name("zoo_small.png")
ANTMAZE: Final = "antmaze-medium-navigate-v0"
SHIPPED: Final = ROOT / "src" / "toptail" / "lab" / "check" / "zoo.json"


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


def gone_on(content: Mapping[str, Any]) -> str:
    """The critics of PointMaze where the policy that collected the data goes on after a pick."""
    rows = []
    for name, found in content["simulator"].items():
        row = content["critics"][name]
        if row["auc"] is None and name not in UNTRAINED:
            continue
        more = "–" if name == RAW else _signed(found["more_than_raw"])
        near = ranged(row["captured"][SOURCES[0]])
        cells = [row["title"], near, _signed(found["gain"]), more, found["status"]]
        rows.append((found["gain"]["mean"], cells))
    head = ["critic", "captured, exact value", "gain when the collector goes on", "more than raw"]
    table = markdown_table([*head, "verdict"], [cells for _, cells in sorted(rows, reverse=True)])
    best, less = content["headroom"], content["head_less_tdq"]
    return f"{table}\n" + wrapped(
        f"The best of the {content['simulated_k']} candidates gains at least {ranged(best, 4)}. "
        f"The value head's pick gains {_signed(less)} more than TD-Q's."
    )


def _signed(cell: Mapping[str, float]) -> str:
    return ("" if cell["mean"] < 0 else "+") + ranged(cell, 4)


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
    part.__name__: part
    for part in (leaderboard, ensembles, further, cured, studied, gone_on, antmaze, cured_antmaze)
}
"""The parts of the page that are made of stored results."""


def refreshed(page: str, content: Mapping[str, Any]) -> str:
    """A page with its parts made anew."""
    parts = {name: partial(part, content) for name, part in PARTS.items()}
    return with_parts(page, {**parts, **SmallZoo(RESULTS / "small", content).parts()})


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
        if name not in NO_CRITICS
    }
    kept = ("format", "task", "judge", "queries", "k", "commit")
    return {key: content[key] for key in kept} | {"critics": critics}


def main() -> None:
    """Write summary, figures and page."""
    for home in entries(RESULTS / "small"):
        write_json(home / "summary.json", summary(home, home.name))
    content = summary(RESULTS)
    for path, what in ((RESULTS / "summary.json", content), (SHIPPED, shipped(content))):
        text = json.dumps(what, indent=1, ensure_ascii=False) + "\n"
        write_texts(path.parent, {path.name: text})
    figure(content).savefig(FIGURE, dpi=130)
    small = SmallZoo(RESULTS / "small", content)
    small_figure(small.tasks).savefig(SMALL_FIGURE, dpi=130)
    write_texts(PAGE.parent, {PAGE.name: refreshed(PAGE.read_text(encoding="utf-8"), content)})


if __name__ == "__main__":
    main()
