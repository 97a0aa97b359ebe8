"""Flags from a configuration's dataclass: types, help, lists, and what was not given."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Literal

import pytest
import tyro
from rich.console import Console

from toptail.commands.options import flags_of, respelled, with_given
from toptail.commands.progress import progress_bar
from toptail.errors import InputError


@dataclass(frozen=True)
class Inner:
    size: int = 64
    """Candidates of a pool."""


@dataclass(frozen=True)
class Config:
    """A configuration."""

    seeds: tuple[int, ...] = (1, 2)
    """Training seeds,
    in their order."""

    radii: tuple[float, ...] = ()
    """Radii."""

    sweeps: tuple[Literal["loss", "steps"], ...] = ()
    """What to sweep."""

    split: Literal["val", "train"] = "val"
    """The split."""

    pools: Inner = field(default_factory=Inner)
    """The pools."""

    def __post_init__(self) -> None:
        if self.split == "train" and self.pools.size == 64:
            raise InputError("Too many.")


Settings = flags_of(Config(), ("seeds", "radii", "split"), sweep="sweeps", pool_size="pools.size")


def parsed(*words: str, **more: Any) -> Config:
    flags = tyro.cli(Settings, args=list(words))
    config: Config = with_given(Config(), flags, **more)
    return config


def test_what_is_not_given_stays() -> None:
    assert parsed() == Config()
    stored = Config(seeds=(7,), pools=Inner(3))
    assert with_given(stored, Settings()) == stored


def test_lists_are_repeated_or_separated_by_commas() -> None:
    assert parsed("--seeds", "3, 4", "--seeds", "5").seeds == (3, 4, 5)
    assert parsed("--radii", "0.25,0.4").radii == (0.25, 0.4)
    assert parsed("--radii", "none").radii == ()
    assert parsed("--sweep", "all").sweeps == ("loss", "steps")
    assert parsed("--sweep", "steps").sweeps == ("steps",)


def test_settings_are_changed_together_wherever_they_are() -> None:
    config = parsed("--split", "train", "--pool-size", "8", seeds=(9,))
    assert config == Config(split="train", pools=Inner(8), seeds=(9,))
    with pytest.raises(InputError, match="Too many"):
        parsed("--split", "train")


@pytest.mark.parametrize("words", ["1,x", "", ","])
def test_a_bad_list_names_its_flag(words: str) -> None:
    with pytest.raises(InputError, match=r"--seeds takes whole numbers .* 42,43,44"):
        parsed("--seeds", words)


def test_help_is_the_configurations_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tyro.cli(Settings, args=["--help"])
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Training seeds, in their order. Unless given: 1,2." in said
    assert "Candidates of a pool. Unless given: 64." in said
    assert "Radii. Unless given: none." in said


def test_older_spellings_are_those_of_their_command() -> None:
    assert respelled(["study", "selection", "--critic=a.py:f", "--critic"]) == [
        *("study", "selection", "--scorer=a.py:f", "--scorer"),
    ]
    assert respelled(["train", "--critic", "raw"]) == ["train", "--critics", "raw"]
    assert respelled(["audit", "--critic", "raw"]) == ["audit", "--critic", "raw"]


def test_elsewhere_there_is_a_plain_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("toptail.commands.progress.time.monotonic", lambda: now)
    with progress_bar() as tick:
        for now in (1.0, 4.9, 5.0, 9.0, 10.0):
            tick("scores\x1b[31m", now / 100)
    assert capsys.readouterr().err.splitlines() == [
        r"scores\x1b[31m: 5% · 5 s",
        r"scores\x1b[31m: 10% · 10 s",
    ]


def test_a_bar_shows_the_stage_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(force_terminal=True, width=100, file=StringIO())
    monkeypatch.setattr("rich.console.Console", lambda **_: terminal)
    with progress_bar() as tick:
        tick("pools", 0.5)
        tick("scores", 0.1)  # another stage: its time is counted anew
        terminal.print("")
    said = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "scores" in said
    assert "10%" in said
    assert "-:--:--" in said  # nothing is known yet
