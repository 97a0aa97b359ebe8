"""The parts of the page about the small zoo: networks that two CPU cores train."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from toptail.io.json_files import read_json
from toptail.report.text import number
from toptail.stats import kendall_tau_b
from toptail_paper.study.markdown import markdown_table, wrapped
from toptail_paper.study.naming import IDEALS, task_title
from toptail_paper.zoo.answers import HEAD, RAW, TDQ
from toptail_paper.zoo.cells import (
    UNTRAINED,
    auc,
    captured,
    closed,
    critics_of,
    ensemble_rows,
    followed,
    further,
    leaderboard,
    percent,
    points,
    ranged,
    than_raw,
)
from toptail_paper.zoo.scores import SOURCES
from toptail_paper.zoo.summary import TASK

SAME_ORDER, OTHER_ORDER = 0.8, 0.5
"""Agreement of the captured shares at both sizes, from which size does not change the order of the
critics, and below which it does."""
WORDS: Final = dict(zip(SOURCES, ("near actions", "whole box"), strict=True))


class SmallZoo:
    """The stored summaries of the small zoo, and what the page says of them."""

    def __init__(self, folder: Path, full: Mapping[str, Any]) -> None:
        found = {path.parent.name: read_json(path) for path in folder.glob("*/summary.json")}
        names = sorted(found, key=lambda name: (name != TASK, name))  # PointMaze is the first
        self.tasks = {name: found[name] for name in names}
        self._full = full

    def parts(self) -> dict[str, Callable[[], str]]:
        """Name of a part -> what makes its Markdown."""
        return {
            "small_leaderboard": lambda: leaderboard(self.tasks[TASK]),
            "small_ensembles": self.ensembles,
            "small_further": lambda: further(self.tasks[TASK]),
            "small_order": self.order,
            "small_cured": self.cured,
            "small_walkers": self.walkers,
            "small_simulator": self.simulator,
            "small_episodes": self.episodes,
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
        return wrapped(
            f"Does size change the order of the {len(both)} critics that have both? Their captured "
            f"shares agree at a Kendall τ_b of {found:.2f}, and {SAME_ORDER} was declared as the "
            f"limit for *no*: **{answer}**."
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
        """The critics of each walker by the reference ensemble, a table a task."""
        head = ["captured, near actions", "captured, whole box", "best of 64", "τ_b", "followed"]
        tables = []
        for name, zoo in self.tasks.items():
            if name == TASK:
                continue
            rows = [
                [
                    row["title"],
                    *captured(row),
                    number(row["captured"][SOURCES[0]]["tau_b"]),
                    followed(row) if critic not in UNTRAINED else _followed_at_random(zoo),
                    than_raw(row),
                    auc(row),
                ]
                for critic, row in critics_of(zoo)
            ]
            tables.append(markdown_table([task_title(name), *head, "than raw", "AUC"], rows))
        return "\n".join(tables)

    def ensembles(self) -> str:
        """What best of 64 near actions captures by several networks at once, a column a task."""
        by_title: dict[str, dict[str, str]] = {}
        for name, zoo in self.tasks.items():
            for title, near, *_ in ensemble_rows(zoo):
                by_title.setdefault(title, {})[name] = near
        rows = [
            [title, *(found.get(name, "–") for name in self.tasks)]
            for title, found in sorted(by_title.items(), reverse=True)
        ]
        return markdown_table(["ensemble", *map(task_title, self.tasks)], rows)

    def simulator(self) -> str:
        """The same critics where the policy that collected the data goes on after a pick."""
        rows, sentences = [], []
        for name, zoo in self.tasks.items():
            for critic, found in zoo.get("simulator", {}).items():
                row = zoo["critics"].get(critic)
                if row is None or (row["auc"] is None and critic not in UNTRAINED):
                    continue
                more = "–" if critic == RAW else ranged(found["more_than_raw"], 4)
                verdict = f"{found['status']}, best of {zoo['simulated_k']}"
                cells = [verdict, ranged(found["gain"], 4), more]
                rows.append([task_title(name), row["title"], *cells])
            if "headroom" in zoo:
                sentences.append(
                    wrapped(
                        f"How much is there to gain on {task_title(name)}? Each of the "
                        f"{zoo['simulated_k']} candidates was rolled out {zoo['repeats']} times: "
                        "the one that is best in one half of the rollouts gains "
                        f"{ranged(zoo['headroom'], 4)} in the other half, and a perfect judge "
                        "would get more."
                    )
                )
        rows.sort(key=lambda row: (row[0], -float(row[3].split()[0].replace("−", "-"))))
        head = ["task", "critic", "verdict", "gain over a random pick", "more than raw"]
        return "\n".join([markdown_table(head, rows), *sentences])

    def episodes(self) -> str:
        """The same critics followed at every step, and compared by start."""
        rows = []
        for name, zoo in self.tasks.items():
            found = zoo.get("in_episodes")
            if found is None:
                continue
            own = [
                [
                    task_title(name),
                    zoo["critics"][critic]["title"],
                    percent(row["success"]),
                    points(row["more_than_random"]),
                    points(row["more_than_raw"]) if critic != RAW else "–",
                    row.get("answer", "–"),
                ]
                for critic, row in sorted(
                    found["critics"].items(), key=lambda each: -each[1]["success"]["mean"]
                )
                if critic in zoo["critics"]
            ]
            rows += [*own, [task_title(name), "Random action", percent(found["random"]), *"–––"]]
        head = ["task", "critic", "success", "more than random", "more than raw", "than raw"]
        return markdown_table(head, rows)

    def fitted(self) -> str:
        """The gap between raw and TD-Q: what the head closes, and why it leaves the rest."""
        head = ["task", "candidates", "closed by the head", "the head's own training"]
        rows = []
        for name, zoo in self.tasks.items():
            if "gap" not in zoo:
                continue
            for source, words in WORDS.items():
                shares = [
                    percent(zoo["gap"][source][part])
                    for part in ("closed", "training", "missing", "not_fitted")
                ]
                rows.append([task_title(name), words, *shares])
        return markdown_table([*head, "missing in φ and ψ", "not fitted"], rows)

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


def _followed_at_random(zoo: Mapping[str, Any]) -> str:
    """Success of a random candidate at every step, which is the same beside every critic."""
    found = [row["followed"] for row in zoo["critics"].values() if row["followed"]]
    return f"{100 * found[0]['uniform']['random']:.0f} %" if found else "–"
