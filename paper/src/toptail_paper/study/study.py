"""The contract of a study: what it is made of; its page and what is reproduced, written once.

A study is a package of this project, named in `STUDIES`, whose module ``study.py`` has a ``STUDY``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, refusing
from toptail.io.json_files import read_json_if_exists
from toptail.progress import Tick, no_tick
from toptail.report.page import Sheet
from toptail.report.table import Table
from toptail_paper.study.figures import Drawing, FigureSpec
from toptail_paper.study.page import Part, Shown, Texts, View, write_page
from toptail_paper.study.results import StudyResults
from toptail_paper.study.show import shown_tables
from toptail_paper.study.store import alone
from toptail_paper.study.tables import TableSpec

STUDIES: Final = ("controlled", "selection", "semantics")
"""The packages that are studies."""

_UNSHOWABLE: Final = "holds results that cannot be read"
_AGAIN: Final = "run the study again"


@dataclass(frozen=True)
class Request:
    """One call of a study; a study with further settings has a subclass."""

    config: Any
    folder: Path
    command: str
    """What to record as the command."""
    runs: Path | None = None
    """Folder of trained runs; None works without them."""
    scorers: Sequence[str] = ()
    """``[NAME=]FILE.py:FUNCTION`` of the user's own scorers."""


Annotate = Callable[[Path, str], Any]
"""Called with a folder and the study's name after the tables are written."""


@dataclass(frozen=True)
class Study:
    """One experiment: what it makes, stores and shows.

    Everything but `steps` works without the packages that train critics.
    """

    name: str
    """Its folder's name, and the word after ``toptail-paper study``."""
    steps: Callable[[Any, Tick], Sequence[str]]
    """Makes what its `Request` asks for and its folder lacks: trains, scores, judges. Returns
    sentences for the user."""
    write: Callable[..., Sequence[str]] | None
    """Stores tables and curves, from the folder's files alone; takes the folder, the progress, and
    settings of the study's own. None where the steps have done it."""
    parts: Sequence[Part]
    """The sections of its page, in order."""
    content: Sequence[Shown]
    """Its tables and figures, in the order of the page."""
    read: Callable[[Path], StudyResults]
    """Reads what was stored for a reader."""
    drawings: Callable[[Any], Sequence[Drawing]]
    """The figures that the stored results suffice for."""
    texts: Callable[[Any], Texts]
    """The page's own words."""

    def run(
        self, request: Request, tick: Tick, annotate: Annotate | None = None, **how: Any
    ) -> tuple[Path, list[str]]:
        """Make what is missing, then everything that is made of it; see `finish`.

        Returns the path of ``report.html``, and sentences for the user.
        """
        sentences = list(self.steps(request, tick))
        return self.finish(request.folder, tick, annotate, **how), sentences

    def finish(
        self, folder: str | Path, tick: Tick = no_tick, annotate: Annotate | None = None, **how: Any
    ) -> Path:
        """Write tables and curves of what is stored, and the page; returns the page's path.

        ``annotate`` adds to the tables what the study does not know, such as what a paper reports;
        ``how`` are settings of the study's own for its tables.
        """
        path = Path(folder)
        with alone(path, tick) if path.is_dir() else nullcontext():
            if self.write is not None:
                self.write(folder, tick, **how)
            tick("writing the report", 1.0)
            if annotate is not None:
                annotate(path, self.name)
            return self.page(folder)

    def page(self, folder: str | Path) -> Path:
        """Write ``figures/`` and ``report.html`` of what is stored; returns the page's path."""
        with refusing(folder, _UNSHOWABLE, _AGAIN):
            return write_page(self, Path(folder))

    @property
    def labels(self) -> tuple[str, ...]:
        """What others call its tables and figures, such as the paper's labels."""
        tables = [(s.label, *s.aliases) for s in self.content if isinstance(s, TableSpec)]
        figures = [spec.labels for spec in self.content if isinstance(spec, FigureSpec)]
        views = [(view.label,) for view in self.content if isinstance(view, View)]
        found = (label for labels in (*tables, *figures, *views) for label in labels if label)
        return tuple(dict.fromkeys(found))

    def tables(self, folder: str | Path, names: Iterable[str]) -> list[Table]:
        """The stored tables of these names or labels, as the page shows them."""
        wanted = set(names)
        with refusing(folder, _UNSHOWABLE, _AGAIN):
            results = self.read(Path(folder))
            found = [
                table
                for spec in self.content
                if isinstance(spec, TableSpec)
                and not spec.of
                and wanted & {spec.name, spec.label, *spec.aliases}
                and results.tables.get(spec.stored, {}).get("rows")
                for table in _on_terminal(spec, results)
            ]
            views = [v for v in self.content if isinstance(v, View) and v.label in wanted]
            sheets = [item for view in views for item in view.show(results)]
            return found + [sheet.table for sheet in sheets if isinstance(sheet, Sheet)]

    def figures(self, folder: str | Path, label: str) -> list[Path]:
        """Where the figures of a label are, without the ending of their names."""
        path = Path(folder)
        with refusing(folder, _UNSHOWABLE, _AGAIN):
            drawn = self.drawings(self.read(path))
        return [path / "figures" / d.name for d in drawn if label in d.labels]


@cache
def studies() -> dict[str, Study]:
    return {name: import_module(f"toptail_paper.{name}.study").STUDY for name in STUDIES}


def _on_terminal(spec: TableSpec, results: StudyResults) -> Iterator[Table]:
    """A table as the terminal shows it: with its controls, where the page sets them apart."""
    first, *controls = shown_tables(spec, results)
    yield first
    if spec.apart:
        yield from (replace(table, title=f"{table.title}: controls") for table in controls)


def study_in(folder: Path) -> Study:
    """The study that a folder's ``config.json`` names."""
    with refusing(folder / "config.json", _UNSHOWABLE, _AGAIN):
        name = (read_json_if_exists(folder / "config.json") or {}).get("study")
    if name not in studies():
        raise InputError(
            f"{folder} is not the folder of a study (its config.json names none): name the folder "
            "that 'toptail-paper study' wrote, for the selection study with its task."
        )
    return studies()[name]
