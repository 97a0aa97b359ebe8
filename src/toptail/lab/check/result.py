"""The result of a check: verdicts, words for the terminal, a page, a figure, and a folder."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.arrays import write_arrays
from toptail.io.files import entries, staged_folder
from toptail.io.json_files import read_object, write_json
from toptail.lab.check.candidates import GROUPS, Source
from toptail.lab.check.closed_loop import BASELINE
from toptail.lab.check.inputs import ASCENT, NEAREST, UNIFORM, CheckConfig
from toptail.lab.check.verdicts import QUESTIONS, question, questions
from toptail.lab.tasks.maze import UNIT, Maze
from toptail.lab.tasks.names import is_ogbench, parse_name
from toptail.lab.tasks.queries import FrozenQueries
from toptail.pools import ScoredPools
from toptail.pools.columns import group_seeds
from toptail.pools.picks import JudgedPicks
from toptail.report.page import (
    Links,
    Page,
    Picture,
    Section,
    Sheet,
    data_address,
    line_style,
    notebook_table,
    pill,
    render_page,
    small_curve,
)
from toptail.report.table import (
    Cell,
    Column,
    Table,
    interval_cell,
    number_cell,
    numbers,
    status_cell,
    words,
)
from toptail.report.text import (
    MISSING_SHORT,
    NOT_MEANT,
    Ends,
    join,
    one_line,
    plural,
    short,
    with_interval,
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
        rows += [_own_row(content, name, zoo["k"]) for name in content["scorers"]]
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
            for name, part in _parts(self.content)
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
                numbers = dict(zip(("value", "low", "high"), _group_ends(found), strict=True))
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
QUESTION: Final = "Is the best of K candidates by this critic safe to take?"
ONE_STEP, CLOSED_LOOP = QUESTIONS
_CRITIC: Final = Column("Critic", "name")

ZOO: Final = Path(__file__).with_name("zoo.json")
"""Critics that this project measured on one task, with which others may be compared."""
CURE: Final = ("before", "after", "tdq")
"""Names of scorers of which the terminal also says how much of the gap was closed."""
COMPARED: Final = (NEAREST, UNIFORM)
"""The sources of candidates among which they were measured."""

Check = Mapping[str, Any]
Part = Mapping[str, Any]
"""One source of candidates of one critic, with an entry for each question."""


def check_lines(content: Check) -> list[str]:
    """The check for the terminal: verdicts first, then what could not be done."""
    lines = []
    for entry in content["scorers"].values():
        lines += [f"{entry['status']:<12}  {one_line(entry['headline'])}", *entry["warnings"]]
    lines.append("")
    for name, about, status, reason in _verdict_rows(content):
        lines.append(f"{status.text:<12}  {name.text}, {about.text}: {reason.text}")
    lines += [*_cure_lines(content), *_beside_lines(content), ""]
    return [*lines, *_measured(content), *_not_done(content)]


def captured_shares(content: Check) -> dict[str, dict[str, float]]:
    """`CheckResult.captured` of a check's content."""
    return {
        name: {
            part["pools"]: part[ONE_STEP]["captured"]
            for part in entry["parts"]
            if "captured" in (part[ONE_STEP] or ())
        }
        for name, entry in content["scorers"].items()
    }


def closed_gap(
    shares: Mapping[str, Mapping[str, float]], before: str, after: str, reference: str
) -> dict[str, float]:
    """`CheckResult.gap_closed` of captured shares by scorer and source."""
    closed = {}
    for source, first in shares[before].items():
        gap = shares[reference][source] - first
        closed[source] = (shares[after][source] - first) / gap if gap > 0 else math.nan
    return closed


def _cure_lines(content: Check) -> list[str]:
    """Where scorers are called as a cure's are, the share of the gap that it closed."""
    if not content["scorers"].keys() >= set(CURE):
        return []
    before, after, reference = CURE
    shares = closed_gap(captured_shares(content), *CURE)
    parts = [
        f"{100 * share:.0f} % ({source} candidates)"
        for source, share in shares.items()
        if not math.isnan(share)
    ]
    if not parts:
        return ["", f"'{reference}' captures no more than '{before}': there is no gap to close."]
    gap = f"of the gap from '{before}' to '{reference}'"
    return ["", f"'{after}' closes {' and '.join(parts)} {gap} in captured share."]


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


def check_html(content: Check, pictures: Sequence[Picture] = ()) -> str:
    entries = content["scorers"].values()
    tables = [_verdicts_table(content), *_groups_table(content), *_episodes_table(content)]
    tables += _beside_table(content)
    links = _links(content)
    behind = [Section("behind", [Links(links)], "Behind it")] if links else []
    return render_page(
        Page(
            brand="toptail check",
            heading=QUESTION,
            answers=[(entry["status"], one_line(entry["headline"])) for entry in entries],
            measured=_measured(content),
            warnings=[text for entry in entries for text in entry["warnings"]],
            notes=_not_done(content),
            opening=[Section(picture.name, [picture]) for picture in pictures[:1]],
            says_safe=True,
            sections=[
                *(Section(table.name, [Sheet(table)]) for table in tables),
                *(Section(each.name, [each]) for each in pictures[1:]),
                *behind,
            ],
            method=_method(content),
        )
    )


def _not_done(content: Check) -> list[str]:
    return [
        f"Not done: {each['what']}, because {each['why']}. Needed: {each['needed']}."
        for each in content["not_done"]
    ]


def _measured(content: Check) -> list[str]:
    """Queries, candidates, judge, and how the critic was followed, in sentences."""
    sizes, judge = content["settings"], content["judge"]
    queries = f"{sizes['per_group']} queries of each distance group"
    if not content["goals"]:
        queries = f"{GROUPS * sizes['per_group']} queries"
    sources = "; ".join(f"{name}: {says}" for name, says in content["candidates"].items())
    sentences = [
        f"{content['task']}: {queries}, {sizes['pool_size']} candidates each ({sources}).",
        f"A value is {judge['says']} (judge: {judge['name']}).",
    ]
    if content["environment"] is not None:
        worth = "success" if content["goals"] else "the sum of rewards"
        ks = ", ".join(map(str, sizes["follow_k"]))
        sentences.append(
            f"Followed in {content['environment']} for up to {sizes['horizon']} steps, best of K = "
            f"{ks} at each; an episode is worth {worth}."
        )
    followed = [part[CLOSED_LOOP] for _, part in _followed(content)]
    sentences += dict.fromkeys(entry["data"]["says"] for entry in followed if entry["data"])
    sentences += [f"{content['goal_free']}."] if content["goal_free"] else []
    statuses = [part[kind]["status"] for _, part in _parts(content) for kind in _answered(part)]
    if "safe" in statuses:
        sentences.append(
            "“Safe” is about these candidates, up to the K that is named: a larger search, or an "
            "actor that is trained on the critic, was not looked at (for more: --pool-size, "
            "--follow-k, --pools ascent)."
        )
    return sentences


def _parts(content: Check) -> list[tuple[str, Part]]:
    scorers = content["scorers"].items()
    return [(name, part) for name, entry in scorers for part in entry["parts"]]


def _followed(content: Check) -> list[tuple[str, Part]]:
    return [(name, part) for name, part in _parts(content) if part.get(CLOSED_LOOP)]


def _answered(part: Part) -> list[str]:
    return [kind for kind in questions(part) if part[kind] is not None]


def _verdict_rows(content: Check) -> list[tuple[Cell, ...]]:
    """One row for each critic, source of candidates and question."""
    not_done = {"status": "inconclusive", "reason": "not done"}
    rows: list[tuple[Cell, ...]] = []
    for name, part in _parts(content):
        for kind in questions(part):
            entry = part[kind] or not_done
            cells = (Cell(one_line(name)), Cell(question(part, kind)))
            rows.append((*cells, status_cell(entry["status"]), Cell(one_line(entry["reason"]))))
    return rows


def _verdicts_table(content: Check) -> Table:
    caption = "“Safe” for one step says nothing about following the critic: the row below it does."
    columns = (_CRITIC, Column("Question", "prose"), *words("Verdict"), Column("Why", "prose"))
    return Table("verdicts", "Verdicts", caption, columns, tuple(_verdict_rows(content)))


def _groups_table(content: Check) -> Iterable[Table]:
    """The verdicts of the distance groups, if there are any."""
    answers = [(name, part, kind) for name, part in _parts(content) for kind in _answered(part)]
    groups = list(dict.fromkeys(g for _, part, kind in answers for g in part[kind]["groups"]))
    rows = tuple(
        (
            Cell(one_line(name)),
            Cell(question(part, kind)),
            *(_group_cell(part[kind]["groups"][g]) for g in groups),
        )
        for name, part, kind in answers
    )
    columns = (_CRITIC, Column("Question", "prose"), *words(*groups))
    caption = "By distance of the goal; the number is the captured share, or the change of worth."
    if groups:
        yield Table("groups", "By distance group", caption, columns, rows, stacked=True)


def _group_cell(entry: Mapping[str, Any]) -> Cell:
    return status_cell(entry["status"], with_interval(*_group_ends(entry)))


def _group_ends(entry: Mapping[str, Any]) -> Ends:
    """The captured share of a group, or the change of value to the largest K."""
    if "captured" in entry:
        return entry["captured"], entry["captured_low"], entry["captured_high"]
    last = entry["comparisons"][-1]
    return last["difference"], last["low"], last["high"]


def _episodes_table(content: Check) -> Iterable[Table]:
    """What an episode is worth with every K, if the critic was followed."""
    followed = _followed(content)
    names = [BASELINE, *(f"K = {k}" for k in content["settings"]["follow_k"][1:])]
    names += [ASCENT] if any(ASCENT in part[CLOSED_LOOP]["worth"] for _, part in followed) else []
    rows = []
    for name, part in followed:
        loop = part[CLOSED_LOOP]
        cells = (Cell(one_line(name)), Cell(part["pools"]), Cell(str(loop["episodes"])))
        rows.append(
            (*cells, *map(interval_cell, [*(loop["worth"].get(k) for k in names), loop["data"]]))
        )
    columns = (_CRITIC, *words("Candidates"), *numbers("Episodes", *names, "data"))
    what = "Share of episodes that succeed" if content["goals"] else "Mean sum of rewards"
    firsts = dict.fromkeys(f"{part['pools']}: {part[CLOSED_LOOP]['first']}" for _, part in followed)
    caption = (
        f"{what}, with 95 % intervals over trajectories. K = 1 chooses nothing "
        f"({'; '.join(firsts)}); the last column has the data's own episodes."
    )
    if followed:
        yield Table("episodes", "The critic followed", caption, columns, tuple(rows), stacked=True)


def comparable_zoo(
    task: str, judge: str, sources: Collection[str], size: int, gamma: float
) -> dict[str, Any]:
    """The content of `ZOO`; an :class:`InputError` unless such a check can be compared with it."""
    zoo = read_object(ZOO, "install toptail again")
    start = "The critics to compare with were"
    if task != zoo["task"]:
        raise InputError(
            f"{start} measured on {zoo['task']}, and this check is of {task}: compare a critic of "
            "that task, or leave the comparison out."
        )
    if (judge, gamma) != (zoo["judge"], CheckConfig.gamma):
        needed = f"{option('judge', zoo['judge'])} and {option('gamma', CheckConfig.gamma)}"
        raise InputError(
            f"{start} judged by the judge '{zoo['judge']}' with a discount of "
            f"{CheckConfig.gamma:g}, and this check is by '{judge}' with {gamma:g}: give {needed}, "
            "or leave the comparison out."
        )
    if size != zoo["k"] or not set(sources) & set(COMPARED):
        needed = f"{option('pools', COMPARED)} and {option('pool_size', zoo['k'])}"
        raise InputError(
            f"{start} asked to choose among {zoo['k']} candidates, {join(COMPARED, 'or')}, and "
            f"this check has {size} ({join(sources)}): give {needed}, or leave the comparison out."
        )
    return zoo


def _own_row(content: Check, name: str, k: int) -> dict[str, Any]:
    """A critic of the check, as `ZOO` has the others.

    Episodes count only in the task's own environment and with the usual horizon, as theirs do.
    """
    parts = {part["pools"]: part for part in content["scorers"][name]["parts"]}
    steps = {source: part[ONE_STEP] for source, part in parts.items() if source in COMPARED}
    ends = {"mean": "captured", "low": "captured_low", "high": "captured_high", "status": "status"}
    usual = content["settings"]["horizon"] == CheckConfig.horizon
    usual &= content["environment"] == parse_name(content["task"]).environment
    loops = {s: parts[s][CLOSED_LOOP]["worth"] for s in steps if usual and parts[s][CLOSED_LOOP]}
    return {
        "name": name,
        "yours": True,
        "title": name,
        "trained_by": None,
        "seeds": len(group_seeds(content["record"]["scorers"])[name]),
        "captured": {
            source: {end: step[key] for end, key in ends.items()} for source, step in steps.items()
        },
        "ascent": parts[ASCENT][ONE_STEP]["status"] if ASCENT in parts else None,
        "followed": {s: worth[f"K = {k}"] for s, worth in loops.items() if f"K = {k}" in worth},
        "auc": None,
        "train_seconds": None,
    }


def _compared(content: Check) -> list[str]:
    return [source for source in content["candidates"] if source in COMPARED]


def _beside_lines(content: Check) -> list[str]:
    """The critics of the check, marked, among the others; nothing unless that was asked for."""
    if "beside" not in content:
        return []
    size, lines = content["settings"]["pool_size"], []
    width = max(len(short(row["title"], 40)) for row in content["beside"])
    for row in content["beside"]:
        line = f"{'>' if row['yours'] else ' '} {short(row['title'], 40):<{width}}"
        for source in _compared(content):
            cell = _captured_cell(row["captured"].get(source))
            line += f"  {source} {cell.detail:<20} {cell.text:<12}"
        lines.append(line.rstrip())
    return ["", f"Beside other critics, share of the headroom that best of {size} gets:", *lines]


def _captured_cell(entry: Mapping[str, Any] | None) -> Cell:
    """The status with the captured share, by which the page sorts."""
    if entry is None:
        return Cell(MISSING_SHORT)
    share = with_interval(entry["mean"], entry["low"], entry["high"])
    return Cell(entry["status"], share, key=entry["mean"], status=entry["status"])


def _about_critic(row: Mapping[str, Any]) -> str:
    """Whose critic it is, how it was trained, and how often."""
    known = "yours" if row["yours"] else row["trained_by"]
    return f"{known + ', ' if known else ''}{plural(row['seeds'], 'seed')}"


def _beside_table(content: Check) -> Iterable[Table]:
    if "beside" not in content:
        return
    sources, zoo = _compared(content), read_object(ZOO)
    rows = tuple(
        (
            Cell(one_line(row["title"]), _about_critic(row)),
            *(_captured_cell(row["captured"].get(source)) for source in sources),
            status_cell(row["ascent"]) if row["ascent"] else Cell(MISSING_SHORT),
            *(interval_cell(row["followed"].get(source)) for source in sources),
            number_cell(row["auc"]),
            number_cell(row["train_seconds"], decimals=0),
        )
        for row in content["beside"]
    )
    columns = (
        _CRITIC,
        *words(*(f"{source}, one step" for source in sources), "Ascent"),
        *numbers(*(f"{source}, followed" for source in sources)),
        *numbers("Retrieval AUC", "Training seconds"),
    )
    caption = (
        f"Share of the headroom that best of {zoo['k']} gets in one step, and share of episodes "
        f"that succeed with best of {zoo['k']} at every step. The critics without “yours” were "
        f"trained and checked by this project: {zoo['task']}, {zoo['queries']} queries, judge: "
        f"{zoo['judge']}, code: {zoo['commit']}. Where intervals overlap, the order means little."
    )
    yield Table("beside", "Beside other critics", caption, columns, rows, stacked=True)


def _links(content: Check) -> list[tuple[str, str]]:
    """Pages with everything behind the verdicts, relative to the check's folder."""
    links = []
    for source in content["candidates"]:
        parts = [(name, part) for name, part in _parts(content) if part["pools"] == source]
        if any("captured" in (part[ONE_STEP] or ()) for _, part in parts):
            links.append((f"{source}/one_step/report.html", f"{source} candidates, one step"))
        for name, part in parts:
            for kind, text in QUESTIONS.items():
                if "worth" in (part.get(kind) or ()):
                    path = f"{source}/{kind}/{name}/report.html"
                    links.append((path, f"{source} candidates, {name}, {text}"))
    return links


def _method(content: Check) -> list[tuple[str, str]]:
    record, settings = content["record"], content["settings"]
    return [
        ("Closed loop", content["closed_loop_rule"]),
        ("Settings", ", ".join(f"{n} {x}" for n, x in settings.items() if x is not None)),
        ("Data", record["train"]),
        ("Command", one_line(record["command"])),
        ("Code", record["commit"] or "unknown"),
        ("Versions", ", ".join(f"{name} {text}" for name, text in record["versions"].items())),
    ]
