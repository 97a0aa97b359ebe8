"""Numbers with intervals, and the leaderboard, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toptail.report.text import bracket, number, with_interval
from toptail_paper.study.markdown import markdown_table
from toptail_paper.zoo.scores import SOURCES
from toptail_paper.zoo.summary import NO_CRITICS

TARGETS: Final = {
    "bellman": "Bellman",
    "contrastive": "contrast",
    "returns": "returns",
    "both": "both",
}
"""What a critic is trained by, in a word; hybrid by contrast and Bellman targets."""


def ranged(cell: Mapping[str, Any], digits: int = 2) -> str:
    """A number with its interval."""
    return with_interval(cell["mean"], cell["low"], cell["high"], digits)


UNTRAINED: Final = ("straight", "random")
"""Rows of a leaderboard that nobody trains."""


def leaderboard(content: Mapping[str, Any]) -> str:
    """Every critic, the highest captured share first."""
    rows = [
        [
            row["title"],
            TARGETS[row["trained_by"]] if row["trained_by"] else "–",
            *captured(row),
            followed(row),
            than_raw(row),
            auc(row),
        ]
        for _, row in critics_of(content)
    ]
    head = ["critic", "trained by", "captured, near actions", "captured, whole box", "best of 64"]
    return markdown_table([*head, "followed", "than raw", "AUC"], rows)


def ensembles(content: Mapping[str, Any]) -> str:
    """Means, minimums and lower bounds of several networks."""
    return markdown_table(ENSEMBLE_HEAD, ensemble_rows(content))


ENSEMBLE_HEAD: Final = (
    *("ensemble", "captured, near actions", "captured, whole box"),
    *("best of 64", "than raw"),
)


def ensemble_rows(content: Mapping[str, Any]) -> list[list[str]]:
    """The cells of those rows."""
    return [
        [row["title"], *captured(row), than_raw(row)]
        for name, row in _rows(content)
        if name not in UNTRAINED and _ensemble(row)
    ]


def critics_of(content: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Trained critics, and scores that need no training, without ensembles."""
    return [each for each in _rows(content) if each[0] in UNTRAINED or not _ensemble(each[1])]


def further(content: Mapping[str, Any]) -> str:
    """What else was measured of every trained critic."""
    trained = [row for _, row in _rows(content) if not _ensemble(row)]
    largest = {row["larger"]["k_max"] for row in trained if "larger" in row}
    rows = [
        [
            row["title"],
            number(row["captured"][SOURCES[0]]["tau_b"]),
            row["ascent"] or "–",
            *([in_larger_pools(row)] if largest else []),
            "–" if row["train_seconds"] is None else f"{row['train_seconds']:.0f}",
        ]
        for row in trained
    ]
    pools = [f"best of {k:,}" for k in largest]
    return markdown_table(["critic", "τ_b", "ascent", *pools, "seconds"], rows)


def _rows(content: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, row) for name, row in content["critics"].items() if name not in NO_CRITICS]


def _ensemble(row: Mapping[str, Any]) -> bool:
    """Whether nothing was trained for a row, which joins networks of others."""
    return row["auc"] is None


def captured(row: Mapping[str, Any]) -> list[str]:
    """The captured share of both kinds of candidates, and their verdicts."""
    near, box = (row["captured"][source] for source in SOURCES)
    statuses = dict.fromkeys(cell["status"] for cell in (near, box))
    return [ranged(near), ranged(box), " / ".join(statuses)]


def auc(row: Mapping[str, Any]) -> str:
    return "–" if row["auc"] is None else f"{row['auc']:.3f}"


def in_larger_pools(row: Mapping[str, Any]) -> str:
    """The verdict in the largest pools, and the captured share."""
    found = row.get("larger")
    if found is None:
        return "–"
    low, high = found["captured_low"], found["captured_high"]
    return f"{found['status']}, {with_interval(found['captured'], low, high)}"


def followed(row: Mapping[str, Any]) -> str:
    """Success when the best of the box is taken at every step, and a verdict other than safe."""
    found = row["followed"].get("uniform")
    if found is None:
        return "–"
    status = "" if found["status"] == "safe" else f", {found['status']}"
    return f"{100 * found['mean']:.0f} %{status}"


def than_raw(row: Mapping[str, Any]) -> str:
    """The declared answer; a critic that is no better than raw may be worse."""
    more = row.get("more_than_raw", {})
    worse = more and all(cell["high"] < 0 for cell in more.values())
    return "worse" if worse else str(row.get("than_raw", "–"))


def percent(found: Mapping[str, float], name: str = "mean") -> str:
    """A share with its interval, in percent."""
    mean, low, high = (100 * found[end] for end in (name, "low", "high"))
    return f"{number(mean, 0)} % {bracket(low, high, 0)}"


def points(found: Mapping[str, float]) -> str:
    """A difference of two shares with its interval, in percentage points."""
    mean, low, high = (100 * found[end] for end in ("mean", "low", "high"))
    return f"{'+' if mean >= 0 else ''}{number(mean, 1)} {bracket(low, high, 1)}"


def closed(found: Mapping[str, float]) -> str:
    """The share of a gap that is closed, in percent."""
    return percent(found, "closed")
