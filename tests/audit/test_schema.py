"""``audit.json`` follows its schema, and what does not is refused in one sentence."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import toptail
from toptail import AuditResult, InputError, PicksResult, ScoredPools, builtin_pools
from toptail.cli import main
from toptail.results import read_audit, schema
from toptail.results.schema import problem

ROOT = Path(__file__).parents[2]
STORED = sorted(path.parent for path in ROOT.glob("paper/results/*/audit*/audit.json"))
VALIDATOR = jsonschema.Draft202012Validator(schema())


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
        {
            "query": q,
            "selector": name,
            "replicate": r,
            "value": (q * r) % 3 + gain,
            **(columns or {}),
        }
        for q in range(12)
        for r in range(2)
        for name, gain in (("random", 0.0), ("mine", 1.0))
    ]
    return toptail.audit_picks(rows, resamples=100, **more).to_dict()


def audited(data: Any, **more: Any) -> dict[str, Any]:
    return toptail.audit(data, resamples=100, **more).to_dict()


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
}


@pytest.fixture(scope="module", params=list(KINDS))
def content(request: pytest.FixtureRequest) -> dict[str, Any]:
    return KINDS[request.param]()


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema() is not schema()


def test_every_kind_of_result_follows_the_schema(content: dict[str, Any]) -> None:
    assert content["format"] == "toptail-audit-2"
    stored = json.loads(json.dumps(content, allow_nan=False))
    assert [error.message for error in VALIDATOR.iter_errors(stored)] == []
    assert problem(stored) == ""


def test_the_schema_names_everything_that_is_stored(content: dict[str, Any]) -> None:
    """Whoever adds a key adds it to the schema."""
    assert sorted(unknown(content)) == []


def unknown(content: dict[str, Any]) -> set[str]:
    known = {key for part in schema()["$defs"].values() for key in names(part)}
    return {key for key in keys(content) if key not in known}


def names(part: Any) -> Iterator[str]:
    """The names of properties anywhere in a part of the schema."""
    if isinstance(part, dict):
        yield from part.get("properties", {})
        for inner in part.values():
            yield from names(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from names(inner)


BY_NAME = {"scorers", "selectors", "groups", "seeds", "versions", "other_unit"}
BY_NAME |= {"group_heterogeneity", "value"}
"""Objects whose keys are somebody's own names."""


def keys(part: Any, own: bool = False) -> Iterator[str]:
    """The keys of a stored audit that are no names of a person's."""
    if isinstance(part, dict):
        for key, inner in part.items():
            if not own:
                yield key
            yield from keys(inner, key in BY_NAME and not own)
    elif isinstance(part, list):
        for inner in part:
            yield from keys(inner)


# -------------------------------------------------------------------------------- broken and older


def places(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything inside a stored audit."""
    items = part.items() if isinstance(part, dict) else enumerate(part)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


CHANGES: tuple[Any, ...] = ("drop", None, "text", -1.5, [], True)


def changed(whole: dict[str, Any], path: tuple[Any, ...], change: Any) -> dict[str, Any]:
    """A copy with something else at a path, or without it."""
    mutant = copy.deepcopy(whole)
    *outer, last = path
    inner: Any = mutant
    for step in outer:
        inner = inner[step]
    if change == "drop":
        del inner[last]
    else:
        inner[last] = change
    return mutant


def test_both_validators_agree_on_broken_audits() -> None:
    """The reader's own validator and an independent one, on what is missing or of another type."""
    one = replace(builtin_pools(4, 2), scores={"noisy": np.arange(8.0)})
    whole = audited(one, baseline=builtin_pools(4, 2, seed=1))
    rng = np.random.default_rng(0)
    every = [path for path in places(whole) if path not in {("format",), ("kind",)}]
    broken = 0
    for at in rng.choice(len(every), 60, replace=False):
        for change in CHANGES:
            mutant = changed(whole, every[at], change)
            fine = VALIDATOR.is_valid(mutant)
            found = problem(mutant)
            assert fine == (not found or "one entry for each K" in found), (every[at], change)
            broken += not fine
    assert broken > 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not readable as JSON"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"format": NaN}', "NaN is no number of JSON"),
        ("[]", "its 'format' is missing"),
        ("{}", "its 'format' is missing"),
        ('{"format": "toptail-audit-"}', "its 'format' is missing"),
        ('{"format": "toptail-audit-3"}', "up to 'toptail-audit-2'; update toptail"),
        ('{"format": "toptail-audit-2"}', "its 'kind' is None"),
        ('{"format": "toptail-audit-2", "kind": "pools"}', "broken, k is missing; audit the table"),
        ('{"format": "toptail-audit-1", "kind": "picks"}', "is missing; audit the table again"),
    ],
)
def test_what_is_no_audit_is_refused_in_one_sentence(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "audit.json").write_text(text)
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        read_audit(tmp_path)
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_curve_that_is_not_as_long_as_k_is_refused(tmp_path: Path) -> None:
    content = audited(builtin_pools(4, 4))
    content["scorers"]["noisy"]["captured"].pop()
    (tmp_path / "audit.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"scorers\.noisy\.captured does not have one entry for"):
        AuditResult.read(tmp_path)


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_stored_audits_of_the_first_edition_are_read_and_rendered(
    folder: Path, tmp_path: Path
) -> None:
    result = AuditResult.read(folder)
    assert result.to_dict()["format"] == "toptail-audit-1"
    assert result.baseline is None
    assert result.summary()
    assert result.write(tmp_path / "out").is_file()
    assert AuditResult.read(tmp_path / "out") == result


def test_there_are_stored_audits_of_the_first_edition() -> None:
    assert STORED


def test_picks_of_the_first_edition_are_read_and_rendered(tmp_path: Path) -> None:
    older = picks() | {"format": "toptail-audit-1"}
    (tmp_path / "audit.json").write_text(json.dumps(older))
    result = PicksResult.read(tmp_path)
    assert result.to_dict() == older
    assert result.write(tmp_path / "out").is_file()
