"""``choice.json`` follows its schema, and what does not is refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.audit.test_schema import CHANGES, changed, names, places
from toptail import InputError, builtin_pools, choose
from toptail.results import ChoiceResult, schema
from toptail.results.schema import choice_problem

STORED = sorted(
    (Path(__file__).parents[2] / "validation" / "results" / "choose").glob("*/choice.json")
)
VALIDATOR = jsonschema.Draft202012Validator(schema("choice"))
POOLS = builtin_pools(60, 8)


def chosen(data: Any = POOLS, **more: Any) -> dict[str, Any]:
    return choose(data, resamples=100, repeats=2, **more).to_dict()


def some_judged() -> dict[str, Any]:
    judged = np.random.default_rng(0).random((60, 8)) < 0.5
    table = {name: column.reshape(60, 8) for name, column in POOLS.scores.items()}
    value = np.where(judged, POOLS.values["value"].reshape(60, 8), np.nan)
    return chosen(table | {"value": value, "p_judged": np.full((60, 8), 0.5)}, selectors="rank")


KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "a sensible set": lambda: chosen(scores="cursed"),
    "drawn": lambda: chosen(scores="noisy", selectors=["soft", "chi2"]),
    "abstaining": lambda: chosen(selectors=["threshold"], abstain=0.2, cost=0.01),
    "judged in part": some_judged,
}


@pytest.fixture(scope="module", params=list(KINDS))
def content(request: pytest.FixtureRequest) -> dict[str, Any]:
    return KINDS[request.param]()


def test_every_kind_of_choice_follows_the_schema(content: dict[str, Any]) -> None:
    stored = json.loads(json.dumps(content, allow_nan=False))
    assert [error.message for error in VALIDATOR.iter_errors(stored)] == []
    assert choice_problem(stored) == ""


def test_the_schema_names_everything_that_is_stored(content: dict[str, Any]) -> None:
    known = {key for part in schema("choice")["$defs"].values() for key in names(part)}
    found = {
        key
        for path in places(content)
        for key in path
        if isinstance(key, str) and not {"parameters", "versions"} & set(path[:-1])
    }
    assert found <= known


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_stored_choices_follow_it(path: Path) -> None:
    stored = json.loads(path.read_text())
    assert [error.message for error in VALIDATOR.iter_errors(stored)] == []
    assert ChoiceResult.read(path.parent).to_dict() == stored


def test_both_validators_agree_on_broken_choices() -> None:
    jsonschema.Draft202012Validator.check_schema(schema("choice"))
    whole = chosen(scores="noisy", selectors=["rank"])
    rng = np.random.default_rng(0)
    every, broken = list(places(whole)), 0
    for at in rng.choice(len(every), 60, replace=False):
        for change in CHANGES:
            mutant = changed(whole, every[at], change)
            assert VALIDATOR.is_valid(mutant) == (not choice_problem(mutant)), (every[at], change)
            broken += bool(choice_problem(mutant))
    assert broken > 60


def test_a_broken_choice_is_refused_in_one_sentence(tmp_path: Path) -> None:
    whole = chosen(scores="noisy", selectors=["rank"])
    del whole["baselines"]["oracle"]
    (tmp_path / "choice.json").write_text(json.dumps(whole))
    with pytest.raises(InputError, match=r"broken, baselines\.oracle is missing; choose again"):
        ChoiceResult.read(tmp_path)
    with pytest.raises(InputError, match="cannot be read: this is no result"):
        ChoiceResult({})
