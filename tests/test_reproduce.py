"""``toptail reproduce``: which study a label belongs to, and what it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toptail.commands import study_selection, study_semantics
from toptail.commands.reproduce import FIGURES, LABELS, TABLES, Reproduce
from toptail.errors import InputError

Calls = list[tuple[tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    seen: Calls = []
    for module in (study_semantics, study_selection):
        monkeypatch.setattr(module, "reproduce", lambda *args, **more: seen.append((args, more)))
    return seen


def test_every_label_has_one_study() -> None:
    parts = (TABLES, FIGURES, study_semantics.LABELS, study_selection.LABELS)
    assert sorted(LABELS) == sorted(label for part in parts for label in part)
    assert len(set(LABELS)) == len(LABELS)


@pytest.mark.parametrize("label", study_semantics.LABELS)
def test_labels_on_recorded_data(label: str, calls: Calls) -> None:
    assert Reproduce(label, task=("A", "B"), runs=Path("r"), train=True).run() == 0
    assert calls == [((label, Path("runs/semantics"), Path("r"), ("A", "B")), {"train": True})]


@pytest.mark.parametrize("label", study_selection.LABELS)
def test_labels_at_fixed_queries(label: str, calls: Calls) -> None:
    assert Reproduce(label, out=Path("there")).run() == 0
    assert calls == [((label, Path("there"), None, "PointMaze"), {"train": False})]
    with pytest.raises(InputError, match="one task at a time"):
        Reproduce(label, task=("A", "B")).run()


@pytest.mark.parametrize("flags", [{"task": ("A",)}, {"runs": Path("r")}, {"train": True}])
def test_the_2d_world_needs_no_data(flags: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leave out --task, --runs and --train"):
        Reproduce("tab:toy-support", **flags).run()


def test_an_unknown_label_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"'tab:x' is not a label .* tab:main, .* tab:fixed-query"):
        Reproduce("tab:x").run()
