"""The registry: every critic has an entry, every readout is classified, and no JAX is needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.light import HEAVY
from toptail.errors import InputError
from toptail.lab.critics import registry
from toptail.lab.critics.base import Critic
from toptail.lab.critics.registry import (
    CRITICS,
    MAIN,
    Group,
    label_of,
    load,
    names,
    read_entry,
    split_label,
)

HOME = Path(registry.__file__).parent


def faults(entry: Any, kind: type[Critic]) -> list[str]:
    """In what an entry and the class of its file disagree."""
    found = [] if entry.deployed == kind.deployed else [f"deployed is {kind.deployed}"]
    classified, own = [each.name for each in entry.readouts], list(kind().readouts())
    found += [f"{name} is unclassified" for name in own if name not in classified]
    return found + [f"{name} is no readout" for name in classified if name not in own]


def classes(module: Any) -> Iterator[type[Critic]]:
    """The critics that a module defines."""
    for each in vars(module).values():
        own = isinstance(each, type) and each.__module__ == module.__name__
        if own and issubclass(each, Critic) and not isabstract(each):
            yield each


@pytest.mark.parametrize("name", CRITICS)
def test_every_readout_of_every_critic_is_classified(name: str) -> None:
    assert faults(CRITICS[name], load(name)) == []


def test_the_check_finds_what_is_missing() -> None:
    assert faults(CRITICS["tdq"], load("raw")) == [
        "deployed is f_raw",
        *(f"{name} is unclassified" for name in load("raw")().readouts()),
        *(f"{each.name} is no readout" for each in CRITICS["tdq"].readouts),
    ]


@pytest.mark.parametrize("path", sorted(HOME.glob("*.py")), ids=lambda path: path.stem)
def test_what_is_read_is_what_is_imported(path: Path) -> None:
    module = import_module(f"{registry.__package__}.{path.stem}")
    assert read_entry(path) == getattr(module, "ENTRY", None)
    for kind in classes(module):
        assert CRITICS[kind.name] == module.ENTRY
        if path.stem in CRITICS:
            assert load(path.stem) is kind


def test_it_is_read_without_jax() -> None:
    code = (
        "import sys; from toptail.lab.critics.registry import CRITICS; "
        f"print(len(CRITICS), [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{len(CRITICS)} []"


ENTRY = 'Entry(name="mine", title="M", place=9, group="control", network="mlp", deployed="q", {})'


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            ENTRY.format("readouts=(Readout(NAME, 'bellman'),)"),
            "line 2: ENTRY .*'NAME'",
        ),
        (ENTRY.format("readouts=tuple(all())"), "line 2: ENTRY .*'tuple'"),
        (ENTRY.format("kind=3"), "line 2: ENTRY .*'kind'"),
        (ENTRY.format("readouts=()").replace("mine", "other"), "the name of the file, 'mine'"),
        ("{'name': 'mine'}", "must be an Entry"),
    ],
)
def test_an_entry_that_must_be_run_is_refused(source: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"NAME = 'q'\nENTRY = {source}\n")
    with pytest.raises(InputError, match=message):
        read_entry(path)


def test_places_and_groups() -> None:
    assert MAIN == ("tdq", "raw", "cosine", "hybrid")
    assert names("control") == ("td_bilinear", "nce_mlp")
    assert names("two_head") == ("two_head_separate", "two_head_joint")
    assert names("factor") == ("c_learning", "mc_regression", "td_mean", "c_learning_max")
    groups: tuple[Group, ...] = get_args(Group)
    assert names() == tuple(name for group in groups for name in names(group))
    assert names("main", "two_head") == (*MAIN, *names("two_head"))
    assert len({entry.place for entry in CRITICS.values()}) == len(CRITICS)


def test_scorers() -> None:
    assert list(CRITICS["two_head_joint"].scorers) == ["two_head_joint", "two_head_joint.f_cos"]
    assert [each.title for each in CRITICS["two_head_joint"].scorers.values()] == [
        "Two heads, joint: q_td",
        "Two heads, joint: f_cos",
    ]


def test_what_the_studies_ask() -> None:
    beside = {name: CRITICS[name].beside for name in MAIN if CRITICS[name].beside}
    assert beside == {
        "raw": {"cosine": "f_cos", "norm": "phi_norm"},
        "cosine": {"raw": "f_raw", "norm": "phi_norm"},
        "hybrid": {"q_td": "q_td", "q_hybrid": "q_hybrid"},
    }
    exchanged = {
        (entry.trained_by, entry.network): name
        for name, entry in CRITICS.items()
        if entry.group in ("main", "control") and entry.network in ("bilinear", "mlp")
    }
    assert exchanged == {
        ("contrastive", "bilinear"): "raw",
        ("contrastive", "mlp"): "nce_mlp",
        ("bellman", "bilinear"): "td_bilinear",
        ("bellman", "mlp"): "tdq",
    }


def test_the_objectives_factors_and_ideals() -> None:
    """Every cell that can be filled is, in one function class; and each names what it aims at."""
    paper = [entry for entry in CRITICS.values() if entry.group != "other"]
    found = {entry.cell: entry.name for entry in paper if entry.cell and entry.network == "mlp"}
    assert found == {
        ("monte_carlo", "classification", "behaviour"): "nce_mlp",
        ("monte_carlo", "regression", "behaviour"): "mc_regression",
        ("bootstrapped", "classification", "behaviour"): "c_learning",
        ("bootstrapped", "regression", "behaviour"): "td_mean",
        ("bootstrapped", "classification", "optimal"): "c_learning_max",
        ("bootstrapped", "regression", "optimal"): "tdq",
    }
    ideals = {entry.name: entry.ideal for entry in paper}
    assert set(ideals.values()) == {"q_star", "q_behaviour", "log_ratio", "gamma_d"}
    values = {name for entry in paper for name, each in entry.scorers.items() if each.value}
    assert {name for name, ideal in ideals.items() if str(ideal).startswith("q_")} == {
        *values,
        "c_learning_max",
    }


def test_a_label_loads_its_critic() -> None:
    assert load("raw[hidden=64]") is load("raw")


def test_an_unknown_critic() -> None:
    with pytest.raises(InputError, match="no critic 'iql'; the critics are tdq, raw, cosine"):
        load("iql")


BOTH = "cosine[contrast=symmetric_info_nce,temperature=0.1]"


def test_a_label_comes_back_in_its_one_spelling() -> None:
    critic, settings = split_label("cosine[ temperature = 0.1 , contrast=symmetric_info_nce ]")
    assert critic == "cosine"
    assert label_of(critic, settings) == BOTH
    assert split_label("raw") == ("raw", {})
    assert label_of("raw", {}) == "raw"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1.0, "1"), (1e-4, "0.0001"), (0.1 + 0.2, "0.30000000000000004"),
     (True, "on"), (False, "off"), (64, "64"), ("0/1", "0_1")],
)  # fmt: skip
def test_values_are_written_so_that_they_come_back_and_name_folders(
    value: object, text: str
) -> None:
    assert label_of("raw", {"x": value}) == f"raw[x={text}]"
    if isinstance(value, float):
        assert float(text) == value


@pytest.mark.parametrize(
    "label", ["raw[", "raw]", "raw[]", "raw[a]", "raw[a=]", "raw[a=1", "raw[a=1,a=2]",
              "raw[a=1][b=2]", "[a=1]", "raw[a=1].f_cos", "raw[a=1=2]"]
)  # fmt: skip
def test_what_is_no_label_is_refused(label: str) -> None:
    with pytest.raises(InputError, match="is not the name of a critic"):
        split_label(label)
