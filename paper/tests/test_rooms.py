"""The rooms of the reproduction: which may import which."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

import toptail
import toptail_paper
from tests.test_house import imports
from toptail.commands.flags import parse
from toptail.commands.help import command_page
from toptail.errors import InputError
from toptail_paper.claims.reported import WITHOUT_CELLS
from toptail_paper.commands.settings import flags_of, with_given
from toptail_paper.study.study import STUDIES, studies

ROOT = Path(toptail_paper.__file__).parent
REPOSITORY = Path(__file__).parents[2]
LIBRARY = Path(toptail.__file__).parent
DRAWN_BY_NOBODY = {"tab:critics"}
"""What the paper has and no run makes: a table that says what the critics are."""


def test_no_study_imports_another() -> None:
    names = set(STUDIES)
    for name in names:
        others = {f"toptail_paper.{other}" for other in names - {name}}
        for path in (ROOT / name).rglob("*.py"):
            for module in imports(path):
                assert not any(f"{module}.".startswith(f"{other}.") for other in others), (
                    f"{path} imports {module}"
                )


def test_only_commands_import_the_claims() -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] not in ("commands", "claims"):
            found = {m for m in imports(path) if f"{m}.".startswith("toptail_paper.claims.")}
            assert not found, f"{path} imports {found}"


def library_modules(path: Path) -> set[str]:
    """The modules and packages of the library that a file imports from."""
    found = {name for name in imports(path) if f"{name}.".startswith("toptail.")}
    private = {name for name in found if name.rsplit(".", 1)[-1].startswith("_")}
    assert not private, f"{path} imports {private}"
    places = {name: LIBRARY.parent / name.replace(".", "/") for name in found}
    return {n for n, at in places.items() if at.is_dir() or at.with_suffix(".py").is_file()}


def test_the_modules_of_the_library_that_the_paper_uses_are_listed() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("### What the paper uses of the library")[2]
    listed, package = set(), ""
    for line in section.split("```")[1].strip().splitlines():
        name, _, modules = line.partition("  ")
        package = name or package
        for module in re.findall(r"\w+", modules):
            listed.add(package if module == "itself" else f"{package}.{module}")
    used = {module for path in ROOT.rglob("*.py") for module in library_modules(path)}
    assert used == listed


def test_every_label_of_the_paper_is_in_a_spec() -> None:
    source = (ROOT / "claims" / "reported.json").read_text(encoding="utf-8")
    labels = {label for label in json.loads(source) if label.startswith(("tab:", "fig:"))}
    labels |= set(WITHOUT_CELLS) - DRAWN_BY_NOBODY
    known = {label for study in studies().values() for label in study.labels}
    assert labels - known == set()


def test_no_tracked_file_is_above_5_mb_and_all_results_are_below_60() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a checkout of git")
    paths = [REPOSITORY / name for name in listed.stdout.splitlines()]
    sizes = {path: path.stat().st_size for path in paths if path.is_file()}
    assert sizes
    assert {path: size for path, size in sizes.items() if size > 5_000_000} == {}
    results = REPOSITORY / "paper" / "results"
    assert sum(size for path, size in sizes.items() if results in path.parents) < 60_000_000


# Flags from a configuration's dataclass: types, help, lists, and what was not given.


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
