"""Flags from a configuration's dataclass: types, help, lists, and what was not given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from toptail.commands.flags import parse
from toptail.commands.help import command_page
from toptail.errors import InputError
from toptail_paper.commands.settings import flags_of, with_given


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
    flags = parse(Settings, words)
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


def test_help_is_the_configurations_own() -> None:
    said = " ".join(command_page(Settings, "toptail-paper").split())
    assert "Training seeds, in their order. Unless given: 1,2." in said
    assert "Candidates of a pool. Unless given: 64." in said
    assert "Radii. Unless given: none." in said
