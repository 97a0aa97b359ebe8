"""Stored results follow their schemas; files of another format are refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import jsonschema
import numpy as np
import pytest

import toptail
from tests import flat
from tests.stored import problems
from toptail import AuditResult, ChoiceResult, InputError, ScoredPools, builtin_pools
from toptail.results import read_audit, schema

POOLS = builtin_pools(60, 8)
ROOT = Path(__file__).parents[2]
STORED = [
    ROOT / "paper" / "results" / "controlled" / "audit" / "audit.json",
    *sorted(ROOT.glob("validation/results/choose/controlled-*/choice.json")),
]


def everything() -> ScoredPools:
    """Pools of several sizes with seeds, groups, clusters, support, binary values."""
    rng = np.random.default_rng(0)
    value = (rng.random((40, 8)) < 0.4) * 1.0
    scores = {f"raw@{seed}": value + rng.normal(0, 0.3, value.shape) for seed in (42, 43)}
    return ScoredPools.from_arrays(
        scores | {"other": -value, "constant": np.zeros_like(value)},
        value,
        support=rng.random(value.shape) < 0.5,
        group=["near", "far"] * 20,
        cluster=np.arange(40) // 2,
        size=np.r_[1, 2, np.full(38, 8)],
    )


def noisy() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {name: rng.random((20, 4)) for name in ("mine", "v1", "v2")}


def picks(columns: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Picks of two selectors, each repeated."""
    rows = [
        {"query": q, "selector": name, "replicate": r, "value": (q * r) % 3 + gain}
        | (columns or {})
        for q in range(12)
        for r in range(2)
        for name, gain in (("random", 0.0), ("mine", 1.0))
    ]
    return toptail.audit_picks(rows, resamples=100, **more).to_dict()


def audited(data: Any, **more: Any) -> dict[str, Any]:
    return flat.audit(data, resamples=100, **more).to_dict()


def chosen(data: Any = POOLS, **more: Any) -> dict[str, Any]:
    return flat.choose(data, resamples=100, repeats=2, **more).to_dict()


def some_judged() -> dict[str, Any]:
    judged = np.random.default_rng(0).random((60, 8)) < 0.5
    table = {name: column.reshape(60, 8) for name, column in POOLS.scores.items()}
    value = np.where(judged, POOLS.values["value"].reshape(60, 8), np.nan)
    return chosen(table | {"value": value, "p_judged": np.full((60, 8), 0.5)}, selectors="rank")


KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "pools": lambda: audited(builtin_pools(60, 16)),
    "seeds, groups, clusters, support, binary": lambda: audited(everything()),
    "replicates": lambda: audited(noisy(), scores="mine", replicates=["v1", "v2"]),
    "more K": lambda: audited(builtin_pools(20, 12), k=[3, 5]),
    "one query": lambda: audited(builtin_pools(1, 4)),
    "two queries": lambda: audited(builtin_pools(2, 2)),
    "no headroom": lambda: audited({"s": [[1.0, 2.0]] * 3, "value": [[1.0, 1.0]] * 3}),
    "baseline": lambda: audited(
        everything(), baseline=builtin_pools(9, 4), baseline_scores={"noisy": "raw"}
    ),
    "baseline, few": lambda: audited(builtin_pools(2, 4), baseline=builtin_pools(2, 4, seed=1)),
    "picks": picks,
    "picks with a group": lambda: picks({"group": "near"}),
    "picks against one": lambda: picks(baseline="mine"),
    "choice": lambda: chosen(scores="cursed"),
    "choice, drawn": lambda: chosen(scores="noisy", selectors=["soft", "chi2"]),
    "choice, abstaining": lambda: chosen(selectors=["threshold"], abstain=0.2, cost=0.01),
    "choice, judged in part": some_judged,
}


@pytest.fixture(scope="module", params=list(KINDS))
def content(request: pytest.FixtureRequest) -> dict[str, Any]:
    return KINDS[request.param]()


def stored_as(content: dict[str, Any]) -> Literal["audit", "choice"]:
    return "choice" if content["kind"] == "choice" else "audit"


@pytest.mark.parametrize("what", ["audit", "choice"])
def test_the_schemas_are_schemas_and_forbid_something(what: Literal["audit", "choice"]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(what))
    whole = audited(POOLS) if what == "audit" else chosen(selectors="rank")
    assert problems(whole, what) == []
    for key in ("record", "warnings", "queries"):
        assert problems({name: x for name, x in whole.items() if name != key}, what)
        assert problems(whole | {key: 1.5}, what)


def test_every_kind_of_result_follows_the_schema(content: dict[str, Any]) -> None:
    what = stored_as(content)
    assert content["format"] == f"toptail-{what}-2"
    assert problems(json.loads(json.dumps(content, allow_nan=False)), what) == []


def test_the_schema_names_everything_that_is_stored(content: dict[str, Any]) -> None:
    """A new key fails here until the schema has it."""
    known = {key for part in schema(stored_as(content))["$defs"].values() for key in names(part)}
    assert sorted({key for key in keys(content) if key not in known}) == []


def names(part: Any) -> Iterator[str]:
    """The names of properties anywhere in a part of the schema."""
    if isinstance(part, dict):
        yield from part.get("properties", {})
    for inner in part.values() if isinstance(part, dict) else part:
        if isinstance(inner, dict | list):
            yield from names(inner)


BY_NAME = {"scorers", "selectors", "groups", "seeds", "versions", "other_unit", "value"}
BY_NAME |= {"group_heterogeneity", "parameters"}
"""Objects whose keys are names of columns, groups, packages or parameters."""


def keys(part: Any, own: bool = False) -> Iterator[str]:
    """The keys of a stored result that are no such names."""
    if isinstance(part, dict):
        for key, inner in part.items():
            if not own:
                yield key
            if key != "parameters":
                yield from keys(inner, key in BY_NAME and not own)
    elif isinstance(part, list):
        for inner in part:
            yield from keys(inner)


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_stored_results_follow_it_and_are_read(path: Path) -> None:
    stored = json.loads(path.read_text())
    assert problems(stored, stored_as(stored)) == []
    result = ChoiceResult if path.stem == "choice" else AuditResult
    assert result.read(path.parent).to_dict() == stored


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not readable as JSON"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"format": NaN}', "NaN is no number of JSON"),
        ("[]", "the format is None, not 'toptail-audit-2'"),
        ('{"format": "toptail-audit-1"}', "'toptail-audit-1'.*make it again with 'toptail audit'"),
    ],
)
def test_a_file_of_another_format_is_refused_in_one_sentence(
    text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "audit.json").write_text(text)
    with pytest.raises(InputError, match=said):
        read_audit(tmp_path)
    with pytest.raises(InputError, match=r"choice.json does not exist; .* 'toptail choose' wrote"):
        ChoiceResult.read(tmp_path)
    with pytest.raises(InputError, match="the format is None, not 'toptail-choice-2'"):
        ChoiceResult({})
