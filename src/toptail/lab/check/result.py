"""The result of a check: verdicts, tables, figures, and a folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.arrays import write_arrays
from toptail.io.files import entries, staged_folder
from toptail.io.json_files import write_json
from toptail.lab.check.beside import COMPARED, captured_shares, closed_gap, comparable_zoo, own_row
from toptail.lab.check.candidates import Source
from toptail.lab.check.closed_loop import BASELINE
from toptail.lab.check.inputs import ASCENT
from toptail.lab.check.page import check_html, check_lines
from toptail.lab.check.verdicts import (
    ONE_STEP,
    QUESTIONS,
    Part,
    group_ends,
    parts_of,
    question,
    questions,
)
from toptail.lab.tasks.maze import UNIT, Maze
from toptail.lab.tasks.names import is_ogbench, parse_name
from toptail.lab.tasks.queries import FrozenQueries
from toptail.pools import ScoredPools
from toptail.pools.picks import JudgedPicks
from toptail.report.page import (
    Picture,
    data_address,
    line_style,
    notebook_table,
    pill,
    small_curve,
)
from toptail.report.text import (
    NOT_MEANT,
    Ends,
    one_line,
)
from toptail.results import AnyResult, AuditResult, PicksResult
from toptail.stats.best_of_k import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class SourceResult:
    """Results among the candidates of one source."""

    source: Source
    pools: Mapping[str, np.ndarray]
    """``actions [Q, N, a]``, ``support_distance``, ``on_support``, ``scores/COLUMN``, and of the
    source 'ascent' the maximizers ``ascent/COLUMN [Q, a]``."""
    table: ScoredPools | None
    """Scores and values, the input of the audit; None unless all candidates were judged."""
    audit: AuditResult | None
    """The audit of one step; None unless all candidates were judged."""
    followed: Mapping[str, PicksResult]
    """Scorer -> the audit of its episodes; empty without episodes."""
    doubts: tuple[str, ...]
    """Reasons not to believe the judge; then the audit decides nothing."""
    picked: Mapping[str, PicksResult] = field(default_factory=dict)
    """Scorer -> the audit of its picks, where these alone were judged."""

    @property
    def judged(self) -> ScoredPools | None:
        """The table, unless the judge is in doubt."""
        return None if self.doubts else self.table


@dataclass(frozen=True)
class CheckVerdict:
    """The verdict about one scorer."""

    status: str
    """The worst of its statuses: ``safe``, ``no gain``, ``unsafe`` or ``inconclusive``."""
    headline: str
    """Every question with its status, in one line."""
    answers: Mapping[str, tuple[str, str]]
    """Question -> status and reason."""
    warnings: tuple[str, ...]
    """Where a status says less than it seems to."""


@dataclass(frozen=True, eq=False, repr=False)
class CheckResult(AnyResult):
    """The result of :func:`toptail.check`."""

    content: dict[str, Any]
    """``check.json``."""
    queries: FrozenQueries
    sources: tuple[SourceResult, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_content", self.content)

    @property
    def verdicts(self) -> dict[str, CheckVerdict]:
        return {name: _verdict(entry) for name, entry in self.content["scorers"].items()}

    @property
    def captured(self) -> dict[str, dict[str, float]]:
        """Scorer -> source of candidates -> share of the headroom that best of all of them gets.

        Only where one step was audited.
        """
        return captured_shares(self.content)

    def gap_closed(self, before: str, after: str, reference: str) -> dict[str, float]:
        """How much of the gap from one scorer to a reference another one closes, by source.

        (after - before) / (reference - before) of the captured shares: 1 is as good as the
        reference, 0 no better than before. NaN where the reference is not above ``before``.
        """
        found = self.captured
        for name in (before, after, reference):
            if name not in found:
                raise InputError(f"There is no scorer '{name}'; there are {', '.join(found)}.")
        return closed_gap(found, before, after, reference)

    def beside(self) -> list[dict[str, Any]]:
        """These critics among those that this project measured on PointMaze, best first.

        A row is that of ``beside`` in ``check.json``. Rows are sorted by the captured share among
        the first source of candidates that both have. An :class:`InputError` says what is needed
        where the check is of another task, by another judge, or of other candidates.
        """
        content, settings = self.content, self.content["settings"]
        sources, judge = list(content["candidates"]), content["judge"]["name"]
        size, gamma = settings["pool_size"], settings["gamma"]
        zoo = comparable_zoo(content["task"], judge, sources, size, gamma)
        rows = [{"name": n, "yours": False, **entry} for n, entry in zoo["critics"].items()]
        rows += [own_row(content, name, zoo["k"]) for name in content["scorers"]]
        first = next(source for source in sources if source in COMPARED)

        def captured(row: Mapping[str, Any]) -> float:
            found = row["captured"].get(first, {}).get("mean")
            return -math.inf if found is None else found

        return sorted(rows, key=captured, reverse=True)

    def __repr__(self) -> str:
        first = f"CheckResult: {self.content['task']}, judge: {self.content['judge']['name']}"
        lines = (f"{v.status:<12}  {one_line(v.headline)}" for v in self.verdicts.values())
        return "\n".join([first, *lines])

    def _repr_html_(self) -> str:
        rows = []
        for name, source, part, kind in self._asked():
            entry = part[kind] or {"status": "inconclusive", "reason": "not done"}
            values = [each[0] for each in self._values(source, name, kind).values()]
            steps = list(np.linspace(0, 1, len(values)))
            curve = small_curve(steps, values, random=values[:1] * len(values)) if values else ""
            texts = name, question(part, kind), entry["reason"]
            critic, asked, reason = (escape(one_line(text)) for text in texts)
            rows.append([critic, asked, pill(entry["status"]), curve, reason])
        caption = f"{self.content['task']}, judge: {self.content['judge']['name']}"
        head = ["Critic", "Question", "Verdict", "By K", "Why"]
        return notebook_table([caption, NOT_MEANT], head, rows)

    def _asked(self) -> list[tuple[str, SourceResult, Part, str]]:
        """Critic, source, its entry and the question, in the order of the page."""
        sources = {each.source.name: each for each in self.sources}
        return [
            (name, sources[part["pools"]], part, kind)
            for name, part in parts_of(self.content)
            for kind in questions(part)
        ]

    def summary(self) -> str:
        """The check in words, as the command line prints it."""
        return "\n".join(check_lines(self.content))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that :meth:`table` gives."""
        return tuple(name for name, rows in self._rows().items() if rows)

    def table(self, name: str) -> pa.Table:
        """One of :attr:`tables` with all its digits, as an Arrow table.

        ``verdicts`` has a row for each critic, source and question; ``curves`` one for each K and
        for ascent; ``groups`` one for each distance group.
        """
        if name not in self.tables:
            raise InputError(f"There is no table {name!r}; there are {', '.join(self.tables)}.")
        return pa.Table.from_pylist(self._rows()[name])

    def _page(self) -> str:
        return check_html(self.content, self._pictures())

    def _rows(self) -> dict[str, list[dict[str, Any]]]:
        rows: dict[str, list[dict[str, Any]]] = {"verdicts": [], "curves": [], "groups": []}
        for name, source, part, kind in self._asked():
            entry = part[kind] or {"status": "inconclusive", "reason": "not done"}
            where = {"critic": name, "candidates": part["pools"], "question": QUESTIONS[kind]}
            rows["verdicts"].append(where | {end: entry[end] for end in ("status", "reason")})
            audited = kind == ONE_STEP and source.audit is not None
            measure = {"measure": "captured share" if audited else "mean value"}
            for selector, ends in self._values(source, name, kind).items():
                numbers = dict(zip(("value", "low", "high"), ends, strict=True))
                rows["curves"].append(where | measure | {"selector": selector} | numbers)
            for group, found in entry.get("groups", {}).items():
                numbers = dict(zip(("value", "low", "high"), group_ends(found), strict=True))
                rows["groups"].append(where | {"group": group, "status": found["status"]} | numbers)
        return rows

    def plot(self) -> Figure:
        """A figure: for each source the one-step value and the value of episodes by K."""
        from toptail.report.figures import new_figure

        found = [
            (source, kind)
            for kind in QUESTIONS
            for source in self.sources
            if any(self._values(source, name, kind) for name in self.content["scorers"])
        ]
        if not found:
            raise InputError("There is nothing to draw: no candidate was judged, and no episode.")
        across = {4: 2}.get(len(found), min(len(found), 3))
        down = -(-len(found) // across)
        figure = new_figure(9.0, 0.3 + 3.2 * down)
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for panel, (source, kind) in zip(axes, found, strict=False):
            self._draw(panel, source, kind)
            title = f"{source.source.name}: {QUESTIONS[kind]}"
            panel.set_title(title, fontsize=9, loc="left", fontweight="bold")
        for empty in axes[len(found) :]:
            empty.remove()
        names = len(self.content["scorers"])
        lines = {line.get_label(): line for panel in figure.axes for line in panel.lines}
        figure.legend(
            handles=lines.values(), loc="outside lower center", ncols=min(names, 4), frameon=False
        )
        return figure

    def _draw(self, axes: Axes, source: SourceResult, kind: str) -> None:
        """One source and question: a line for each critic, with its interval."""
        axes.set_xlabel("K")
        one = "value" if source.audit is None else "share of the headroom captured"
        axes.set_ylabel(one if kind == ONE_STEP else self._worth)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for rank, name in enumerate(self.content["scorers"]):
            if worth := self._values(source, name, kind):
                x, look = np.arange(len(worth)), line_style(rank).matplotlib
                mean, low, high = (_numbers([each[i] for each in worth.values()]) for i in range(3))
                axes.plot(x, mean, label=name, **look)
                axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
                axes.set_xticks(x, [selector.removeprefix("K = ") for selector in worth])

    @property
    def _worth(self) -> str:
        return "share of episodes that succeed" if self.content["goals"] else "sum of rewards"

    def _values(self, source: SourceResult, name: str, kind: str) -> dict[str, Ends]:
        """Selector (``K = 8``, ``ascent``) -> a number with its interval; empty if not judged.

        Of one step it is the share of the headroom that is captured, of episodes and of picks that
        alone were judged the mean value.
        """
        parts = self.content["scorers"][name]["parts"]
        (part,) = (each for each in parts if each["pools"] == source.source.name)
        if not part.get(kind):
            return {}
        if kind == ONE_STEP and source.audit is not None:
            audit = source.audit.to_dict()
            gain = audit["scorers"][name]["gain"]
            ends = zip(gain["value"], gain["low"], gain["high"], strict=True)
            return {f"K = {k}": each for k, each in zip(audit["k"], ends, strict=True)}
        worth = sorted(part[kind]["worth"].items(), key=lambda item: _place(item[0]))
        return {selector: (e["mean"], e["low"], e["high"]) for selector, e in worth}

    @property
    def has_map(self) -> bool:
        """Whether states are places in a plane, or begin with one as in a maze, and were judged."""
        plane = self.queries.states.shape[1] == 2 or "maze" in self.content["task"]
        return plane and bool(self._gains())

    def _gains(self) -> dict[str, Floats]:
        """Panel of the map -> what the critic's choice gains over a random candidate, by query.

        Sources without a judge, and those whose judge is in doubt, have no panel.
        """
        panels: dict[str, Floats] = {}
        for each in self.sources:
            if (table := each.judged) is not None:
                for name, columns in table.scorers.items():
                    panels[f"{name}, {each.source.name} candidates"] = top_gain(table, columns)
            for name, result in each.picked.items() if not each.doubts else ():
                if result.picks is not None:
                    choice = max(result.selectors, key=_place)
                    what = choice if choice == ASCENT else f"{each.source.name}, best of {choice}"
                    panels[f"{name}, {what}"] = picked_gain(result.picks, choice)
        return panels

    def map(self) -> Figure:
        """A figure of the states: blue where the top score gains, red where it loses.

        It has a panel for each critic and source that were judged, by a judge without doubts: the
        top score of all candidates, or for the source 'ascent' the maximizer of the score. A lone
        panel has the curve of its source beside it.
        """
        from toptail.report.figures import new_figure

        if not self.has_map:
            raise InputError("There is no map: the states of this task are not places in a plane.")
        panels, walls = self._gains(), _walls(self.content["task"])
        largest = max(float(np.abs(gain).max()) for gain in panels.values()) or 1.0
        across = {1: 2, 4: 2}.get(len(panels), min(len(panels), 3))
        down = -(-len(panels) // across)
        figure = new_figure(9.0, 0.4 + down * 8.4 / across)
        axes = figure.subplots(down, across, squeeze=False).ravel()
        x, y = self.queries.states[:, 0], self.queries.states[:, 1]
        for place, (title, gain) in zip(axes, panels.items(), strict=False):
            if walls is not None:
                rows, columns = walls.shape  # cell (i, j) has its centre at x = 4j - 4, y = 4i - 4
                ends = (-1.5 * UNIT, (columns - 1.5) * UNIT, -1.5 * UNIT, (rows - 1.5) * UNIT)
                grey = {"cmap": "Greys", "vmin": 0, "vmax": 3, "interpolation": "nearest"}
                place.imshow(walls, extent=ends, origin="lower", **grey)
                place.set_xlim(-UNIT, (columns - 2) * UNIT)  # half of the outer walls
                place.set_ylim(-UNIT, (rows - 2) * UNIT)
            look = {"c": gain, "cmap": "RdBu", "vmin": -largest, "vmax": largest, "s": 16}
            dots = place.scatter(x, y, edgecolors="#606060", linewidths=0.3, **look)
            place.set_title(title, fontsize=9, loc="left", fontweight="bold")
            place.set_aspect("equal")
            place.set_xticks([])
            place.set_yticks([])
        maps = list(axes[: len(panels)])
        label = "gain over a random candidate"
        figure.colorbar(dots, ax=maps, label=label, shrink=0.8)
        for empty in axes[len(panels) :]:
            if len(panels) > 1:
                empty.remove()
            else:
                (source,) = (each for each in self.sources if each.judged or each.picked)
                self._draw(empty, source, ONE_STEP)
                empty.set_title("One step, by K", fontsize=9, loc="left", fontweight="bold")
        return figure

    def _pictures(self) -> list[Picture]:
        """The figures of the page: the map if there is one, then the curves if there are any."""
        from toptail.report.figures import image

        says = self.content["judge"]["says"]
        found = []
        if self.has_map:
            caption = (
                "A dot is the state of a query. Blue: what the critic takes, the top score of the "
                "pool or the maximizer of the score (ascent), is worth more than a random "
                f"candidate; red: less. Grey: walls. A value is {says}."
            )
            source = data_address(image(self.map(), "png"), "png")
            found.append(Picture("map", _MAP, caption, source))
        sources, names = self.sources, self.content["scorers"]
        if any(
            self._values(s, name, kind) for s in sources for name in names for kind in QUESTIONS
        ):
            caption = (
                "With 95 % intervals: what the top score of K gains over a random candidate, as a "
                f"share of the headroom, and {self._worth} where it is taken at every step. A "
                f"value is {says}."
            )
            source = data_address(image(self.plot(), "svg"))
            found.append(Picture("curves", _CURVES, caption, source))
        return found

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write ``check.json``, the page and the files behind them; returns the page's path.

        ``SOURCE/`` has the candidates (``pools.npz``), their scores and values
        (``table.parquet``), the audit of one step and those of the episodes, each with the value of
        every episode (``picks.parquet``). Files of an earlier check about sources that this one
        does not have are removed. The folder is written whole or not at all.
        """
        out, names = Path(folder), {each.source.name for each in self.sources}
        with staged_folder(out, _older(out, names)) as stage:
            for each in self.sources:
                _write_source(each, stage / each.source.name)
            self.queries.save(stage / "queries.npz")
            write_json(stage / "check.json", self.content)
            (stage / "report.html").write_text(self._page(), encoding="utf-8")
        return out / "report.html"


def _verdict(entry: Mapping[str, Any]) -> CheckVerdict:
    answers = {
        question(part, kind): (part[kind]["status"], part[kind]["reason"])
        if part[kind]
        else ("inconclusive", "not done")
        for part in entry["parts"]
        for kind in questions(part)
    }
    return CheckVerdict(entry["status"], entry["headline"], answers, tuple(entry["warnings"]))


def _place(selector: str) -> float:
    """Selectors in the order of their K, ascent last."""
    return float(selector.removeprefix("K = ")) if "=" in selector else np.inf


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]


def _write_source(result: SourceResult, folder: Path) -> None:
    folder.mkdir()
    write_arrays(folder / "pools.npz", dict(result.pools), compressed=True)
    if result.table is not None and result.audit is not None:
        result.table.write(folder / "table.parquet")
        result.audit.write(folder / "one_step")
    for kind, results in (("one_step", result.picked), ("closed_loop", result.followed)):
        for name, audited in results.items():
            audited.write(folder / kind / name)
            if audited.picks is not None:
                audited.picks.write(folder / kind / name / "picks.parquet")


def _older(out: Path, sources: set[str]) -> list[str]:
    """Files of an earlier check about other sources."""
    stale = [p.parent for p in entries(out, "*/pools.npz") if p.parent.name not in sources]
    files = [path for folder in stale for path in entries(folder, "**/*") if path.is_file()]
    return [str(path.relative_to(out)) for path in files]


def _walls(task: str) -> NDArray[np.bool_] | None:
    """The walls of an OGBench maze; None in other tasks, and without the simulator."""
    if not is_ogbench(task) or not parse_name(task).is_maze:
        return None
    from toptail.lab.tasks.simulator import make_env  # only here: it needs the extra `sim`

    try:
        return Maze.of(make_env(parse_name(task).environment)).walls
    except InputError:
        return None


_MAP: Final = "Where the critic helps, and where it ruins"
_CURVES: Final = "Value by K"


def top_gain(table: ScoredPools, columns: Mapping[int | None, str]) -> Floats:
    """What the top score of each pool is worth more than a random candidate, averaged over seeds.

    Candidates that share the top score count alike.
    """
    value = np.mean(list(table.values.values()), axis=0)
    gains = np.zeros((len(columns), table.queries))
    for seed, column in enumerate(columns.values()):
        for block in table.blocks():
            score, worth = block.take(table.scores[column]), block.take(value)
            top = score == score.max(axis=1, keepdims=True)
            best = (worth * top).sum(axis=1) / top.sum(axis=1)
            gains[seed, block.queries] = best - worth.mean(axis=1)
    return np.asarray(gains.mean(axis=0))


def picked_gain(picks: JudgedPicks, choice: str) -> Floats:
    """What one selector's pick is worth more than a random candidate at each query.

    Seeds are averaged; queries are in the order of the check.
    """
    means = {}
    for name in (choice, BASELINE):
        rows = picks.selector_at == picks.selector.to_pylist().index(name)
        at = np.asarray(picks.query.to_numpy(zero_copy_only=False))[picks.query_at[rows]]
        total = np.bincount(at.astype(np.int64), picks.value[rows], len(picks.query))
        means[name] = total / np.bincount(at.astype(np.int64), minlength=len(picks.query))
    return np.asarray(means[choice] - means[BASELINE])
