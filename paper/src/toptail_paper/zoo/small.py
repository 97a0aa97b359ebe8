"""The parts of the page about the small zoo: networks that two CPU cores train."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from toptail.io.json_files import read_json
from toptail.stats import kendall_tau_b
from toptail_paper.study.markdown import markdown_table
from toptail_paper.study.naming import IDEALS, task_title
from toptail_paper.zoo.cells import closed, leaderboard, ranged
from toptail_paper.zoo.scores import SOURCES
from toptail_paper.zoo.summary import FROM_INPUTS, FROM_PHI, HEAD, RAW, TASK, TDQ

SAME_ORDER, OTHER_ORDER = 0.8, 0.5
"""Agreement of the captured shares at both sizes, from which size does not change the order of the
critics, and below which it does."""
WORDS: Final = dict(zip(SOURCES, ("near actions", "whole box"), strict=True))


class SmallZoo:
    """The stored summaries of the small zoo, and what the page says of them."""

    def __init__(self, folder: Path, full: Mapping[str, Any]) -> None:
        found = {path.parent.name: read_json(path) for path in folder.glob("*/summary.json")}
        first = {name: name != TASK for name in sorted(found)}  # PointMaze is the first
        self.tasks = {name: found[name] for name in sorted(first, key=first.__getitem__)}
        self._full = full

    def parts(self) -> dict[str, Callable[[], str]]:
        """Name of a part -> what makes its Markdown."""
        return {
            "small_leaderboard": lambda: leaderboard(self.tasks[TASK]),
            "small_order": self.order,
            "small_cured": self.cured,
            "small_walkers": self.walkers,
            "small_fitted": self.fitted,
            "small_split": self.split,
        }

    def order(self) -> str:
        """Whether size changes the order of the critics that have both sizes, by the rule."""
        own, full = (zoo["critics"] for zoo in (self.tasks[TASK], self._full))
        both = [name for name in own if name in full and own[name]["auc"] and full[name]["auc"]]
        small, large = (
            [critics[name]["captured"]["nearest"]["mean"] for name in both]
            for critics in (own, full)
        )
        found = float(kendall_tau_b(small, large))
        answer = "no" if found >= SAME_ORDER else "yes" if found < OTHER_ORDER else "not decided"
        return (
            f"Does size change the order of the {len(both)} critics that have both? Their captured "
            f"shares agree at a Kendall τ_b of {found:.2f}: **{answer}**.\n"
        )

    def cured(self) -> str:
        """The cure before and after, on every task."""
        head = ["task", "candidates", "before (raw)", "after (value head)", "TD-Q", "gap closed"]
        rows = []
        for name, zoo in self.tasks.items():
            for source, words in WORDS.items():
                shares = (zoo["critics"][critic]["captured"][source] for critic in (RAW, HEAD, TDQ))
                cure = zoo["cure"]
                cells = [*map(ranged, shares), closed(cure[source]), cure["answer"]]
                rows.append([task_title(name), words, *cells])
        return markdown_table([*head, "answer"], rows)

    def walkers(self) -> str:
        """The critics of the walkers by the reference ensemble and in the simulator."""
        head = ["task", "critic", "captured, near actions", "captured, whole box", "τ_b"]
        head += ["best of 64", "than raw", "AUC", "gain in the simulator", "more than raw there"]
        sentences = [
            f"In the simulator of {task_title(name)} the best candidate of one rollout gains "
            f"{ranged(zoo['one_rollout'], 4)} in another: so much, and more, could be had."
            for name, zoo in self.tasks.items()
            if "one_rollout" in zoo
        ]
        return "\n".join([markdown_table(head, self._walkers()), *sentences, ""])

    def _walkers(self) -> Iterator[list[str]]:
        for name, zoo in self.tasks.items():
            if name == TASK:
                continue
            for critic, row in zoo["critics"].items():
                if row["auc"] is None and critic != "random":
                    continue
                near, box = (row["captured"][source] for source in SOURCES)
                statuses = dict.fromkeys(cell["status"] for cell in (near, box))
                there = zoo.get("simulator", {}).get(critic)
                yield [
                    task_title(name),
                    row["title"],
                    ranged(near),
                    ranged(box),
                    f"{near['tau_b']:.2f}".replace("-", "−"),
                    " / ".join(statuses),
                    row.get("than_raw", "–"),
                    "–" if row["auc"] is None else f"{row['auc']:.3f}",
                    "–" if there is None else ranged(there["gain"], 4),
                    "–" if there is None or critic == RAW else ranged(there["more_than_raw"], 4),
                ]

    def fitted(self) -> str:
        """What a network of the head's shape reads from phi and psi, and from the inputs."""
        columns = (RAW, HEAD, FROM_PHI, FROM_INPUTS, TDQ)
        head = ["task", "candidates", "raw", "value head", "fitted from φ and ψ"]
        rows = []
        for name, zoo in self.tasks.items():
            if FROM_PHI not in zoo["critics"]:
                continue
            for source, words in WORDS.items():
                cells = [zoo["critics"][column]["captured"][source] for column in columns]
                texts = [f"{cell['mean']:.2f} (τ_b {cell['tau_b']:.2f})" for cell in cells]
                rows.append([task_title(name), words, *texts])
        return markdown_table([*head, "fitted from state, action and goal", "TD-Q"], rows)

    def split(self) -> str:
        """What the objective of each critic with a known ideal costs, and the rest."""
        sizes = {"full": self._full, "small": self.tasks[TASK]}
        found = {size: zoo["split"] for size, zoo in sizes.items() if "split" in zoo}
        rows = []
        for size, critics in found.items():
            for name, own in critics.items():
                parts = [
                    ranged(own[source][part])
                    for source in SOURCES
                    for part in ("objective", "rest")
                ]
                title = sizes[size]["critics"][name]["title"]
                rows.append([title, size, IDEALS[own["ideal"]].removeprefix("Ideal: "), *parts])
        head = ["critic", "networks", "ideal"]
        for words in WORDS.values():
            head += [f"{words}: objective", "rest"]
        return markdown_table(head, rows)
