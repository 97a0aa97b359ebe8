"""Numbers with intervals, and the leaderboard, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
    low, high = (f"{cell[end]:.{digits}f}".replace("-", "−") for end in ("low", "high"))
    return f"{cell['mean']:.{digits}f} [{low}, {high}]".replace("-", "−")


def leaderboard(content: Mapping[str, Any]) -> str:
    """Every row, the highest captured share first."""
    rows = []
    for name, row in content["critics"].items():
        if name in NO_CRITICS:
            continue
        near, box = (row["captured"][source] for source in SOURCES)
        followed = row["followed"].get("uniform")
        statuses = list(dict.fromkeys(x["status"] for x in (near, box)))
        rows.append(
            [
                row["title"],
                TARGETS[row["trained_by"]] if row["trained_by"] else "–",
                ranged(near),
                ranged(box),
                f"{near['tau_b']:.2f}".replace("-", "−"),
                " / ".join(statuses),
                row["ascent"] or "–",
                "–" if followed is None else f"{100 * followed['mean']:.0f} %",
                row.get("than_raw", "–"),
                "–" if row["auc"] is None else f"{row['auc']:.3f}",
                "–" if row["train_seconds"] is None else f"{row['train_seconds']:.0f}",
            ]
        )
    head = ["critic", "trained by", "captured, near actions", "captured, whole box", "τ_b"]
    head += ["best of 64", "ascent", "followed", "than raw", "AUC", "seconds"]
    return markdown_table(head, rows)


def closed(found: Mapping[str, float]) -> str:
    """The share of a gap that is closed, in percent."""
    mean, low, high = (
        f"{100 * found[end]:.0f}".replace("-", "−") for end in ("closed", "low", "high")
    )
    return f"{mean} % [{low}, {high}]"
