"""Hostile names through every writer, and the pages that come out of it in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.attack.cases import SELECTION, SEMANTICS, TRAIN
from tests.attack.cli import judged
from tests.attack.crash import Ground, battleground
from tests.attack.damage import NAMES
from tests.attack.forks import Ended, Line
from tests.attack.state import State
from tests.attack.turns import Turns
from tests.attack.world import make_world

Writer = Callable[[Path, str], list[str]]
"""Puts a name into a folder; returns the command line that meets it."""
Look = Callable[[Path], list[str]]
"""Opens a page; returns what went wrong in it."""


def _table(folder: Path, **columns: list[Any]) -> None:
    base: dict[str, list[Any]] = {
        "query": [f"q{n // 4}" for n in range(160)],
        "value": [((7 * n) % 11) / 11 for n in range(160)],
    }
    pq.write_table(pa.table({**base, **columns}), folder / "named.parquet")


def _column(folder: Path, name: str) -> list[str]:
    scores = [((3 * n) % 13) / 13 for n in range(160)]
    _table(folder, **{name: scores, "score": scores})
    return ["audit", "named.parquet", "--scores", f"score,{name}", *_AUDIT]


def _label(folder: Path, name: str) -> list[str]:
    labels = [name if n < 80 else "other" for n in range(160)]
    _table(folder, score=[n / 160 for n in range(160)], group=labels, cluster=labels)
    return ["audit", "named.parquet", *_AUDIT]


def _query(folder: Path, name: str) -> list[str]:
    queries = [f"{name}{n // 4}" for n in range(160)]
    _table(folder, query=queries, score=[n / 160 for n in range(160)])
    return ["audit", "named.parquet", *_AUDIT]


def _selector(folder: Path, name: str) -> list[str]:
    rows = [(f"q{q}", s, (q * 7 % 5) / 5) for q in range(60) for s in ("random", name)]
    columns = dict(zip(("query", "selector", "value"), zip(*rows, strict=True), strict=True))
    pq.write_table(pa.table({k: list(v) for k, v in columns.items()}), folder / "named.parquet")
    return ["audit", "--picks", "named.parquet", *_AUDIT]


def _file(folder: Path, name: str) -> list[str]:
    target = folder / f"{name}.csv"
    shutil.copy(folder / "scores.csv", target)
    return ["audit", str(target.relative_to(folder)), *_AUDIT]


def _folder(folder: Path, name: str) -> list[str]:
    del folder
    return ["audit", "scores.csv", "--resamples", "100", "--out", f"under/{name}"]


def _scorer(line: str) -> Writer:
    def write(folder: Path, name: str) -> list[str]:
        del folder
        return [w.replace("mine=critic", f"{name}=critic") for w in line.split()]

    return write


def _data(folder: Path, name: str) -> list[str]:
    for ending in ("", "-val"):
        shutil.copy(folder / "data" / f"walks{ending}.npz", folder / f"{name}{ending}.npz")
    return [w.replace("data/walks.npz", f"{name}.npz") for w in SELECTION.split()]


def _reason(folder: Path, name: str) -> list[str]:
    del folder
    return ["runs", "--invalidate", "runs/walks/cosine/seed-42", "--reason", name]


_AUDIT: Final = ("--resamples", "100", "--out", "out")

WRITERS: Final[Mapping[str, Writer]] = {
    "column": _column,
    "label": _label,
    "query": _query,
    "selector": _selector,
    "file": _file,
    "folder": _folder,
    "scorer": _scorer(SEMANTICS),
    "chosen scorer": _scorer(SELECTION),
    "data set": _data,
    "reason": _reason,
}
"""Where a name comes from."""

GOAL: Final = len(WRITERS) * len(NAMES)
"""Every name through every writer."""


@contextmanager
def browser() -> Iterator[Look | None]:
    """A browser that looks at pages; None where there is none."""
    path = shutil.which("chromium")
    if path is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    from tests.report.test_browser import ARGUMENTS

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        context = opened.new_context()

        def look(page_file: Path) -> list[str]:
            trouble: list[str] = []
            asked: list[str] = []

            def dismiss(dialog: Any) -> None:
                trouble.append("a dialog")
                dialog.dismiss()

            page = context.new_page()
            page.on("console", lambda message: trouble.append(f"console: {message.text}"))
            page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
            page.on("dialog", dismiss)
            page.on("request", lambda request: asked.append(request.url))
            page.goto(page_file.resolve().as_uri())
            page.wait_for_load_state("load")
            page.close()
            return trouble + [url for url in asked if not url.startswith(("file:", "data:"))]

        yield look
        opened.close()


def meet(ground: Ground, world: Path, work: Path, writer: str, name: str, look: Look | None) -> str:
    """Let a writer meet a name; how it ended, in a few words."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(world, work, symlinks=True)
    try:
        words = WRITERS[writer](work, name)
    except (OSError, ValueError, pa.ArrowException):  # a name that no file or table can have
        return "answered"
    if any("\x00" in word for word in words):
        return "answered"
    ended = ground.forks.run(Line(words, str(work), environment=ground.environment))
    outcome = judged(ended)
    if outcome == "answered" and ended.code == 0 and look is not None:
        outcome = _pages(work, look)
    return outcome if outcome in ("answered", "shown") else f"{outcome}: {_said(ended)}"


def _pages(work: Path, look: Look) -> str:
    """What the pages do in a browser."""
    pages = [path for path in work.rglob("report.html") if path.is_file()]
    trouble = [line for page in pages for line in look(page)]
    return f"page: {trouble[0][:100]}" if trouble else "shown"


def _said(ended: Ended) -> str:
    return ascii((ended.err + ended.out)[-300:])


def attack(state: State, home: Path, turns: Turns) -> None:
    """Let writers meet names that they have not met yet."""
    world, work = home / "world", home / "work"
    with battleground(home) as ground, browser() as look:
        _furnish(ground, world)
        for number, name in enumerate(NAMES):
            for writer in WRITERS:
                if turns.first(writer, state.left(writer, [number])) is None:
                    continue
                outcome = meet(ground, world, work, writer, name, look)
                state.add(writer, number, "names", outcome.partition(":")[0])
                if ":" in outcome:
                    state.find(writer, number, outcome, name=ascii(name))
                    print(f"  {writer} {ascii(name)[:60]}: {outcome[:300]}", flush=True)
                state.save()


def _furnish(ground: Ground, world: Path) -> None:
    """A world with a trained run."""
    shutil.rmtree(world, ignore_errors=True)
    make_world(world)
    ended = ground.forks.run(Line(TRAIN.split(), str(world), environment=ground.environment))
    if ended.code:
        raise RuntimeError(ended.err)
