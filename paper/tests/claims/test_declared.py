"""The declared file is what the code gives; a change without an entry does not go unnoticed."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from paper.tests.semantics.results import results
from tests.light import HEAVY
from toptail.lab.training.runs import digest
from toptail_paper.claims import CLAIMS, decide, declare
from toptail_paper.claims.declare import declared, declared_claims, read_declared
from toptail_paper.claims.reported import DECLARED


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return read_declared()


def undeclared(content: Mapping[str, Any]) -> list[str]:
    """Parts that were added, dropped or changed without an entry in ``changes`` that says so."""
    last = dict(content["first"])
    for change in content["changes"]:
        last |= change["parts"]
    now = {name: part["hash"] for name, part in content["parts"].items()}
    return sorted(name for name in last.keys() | now.keys() if last.get(name) != now.get(name))


def test_the_file_is_what_the_code_gives_and_its_hash_fits(stored: dict[str, Any]) -> None:
    assert declared(stored) == stored
    assert digest({k: v for k, v in stored.items() if k != "hash"}) == stored["hash"]


def test_nothing_changed_without_saying_so(stored: dict[str, Any]) -> None:
    assert undeclared(stored) == []


def test_a_changed_criterion_needs_an_entry_with_its_hash(
    stored: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def loosened() -> Any:
        for study, claim in declared_claims():
            words = replace(claim.criterion, words="another limit")
            yield study, replace(claim, criterion=words) if claim.id == "tdq-order" else claim

    monkeypatch.setattr(declare, "declared_claims", loosened)
    changed = declared(stored)
    name = "semantics/tdq-order"
    assert changed["hash"] != stored["hash"]
    assert undeclared(changed) == [name]
    own = changed["parts"][name]["hash"]
    for digests, left in (("of an earlier change", [name]), (own, [])):
        entry = {"date": "", "what": "", "why": "", "parts": {name: digests}}
        assert undeclared(changed | {"changes": [*changed["changes"], entry]}) == left


def test_a_claim_that_was_added_or_dropped_needs_an_entry(stored: dict[str, Any]) -> None:
    content = copy.deepcopy(stored)
    content["parts"]["semantics/new"] = {"hash": "x"}
    del content["parts"]["task AntMaze"]
    assert undeclared(content) == ["semantics/new", "task AntMaze"]


def test_every_claim_that_a_declared_task_decides_is_declared() -> None:
    """Tables of the three tasks alone decide nothing that is not in the file."""
    tables = copy.deepcopy(results())
    for name, table in tables.items():
        rows = table["tasks"] if name == "curves" else table["rows"]
        for task in set(rows) - set(DECLARED):
            del rows[task]
    entries, _ = decide(CLAIMS["semantics"], tables, "")
    names = {claim.id for study, claim in declared_claims() if study == "semantics"}
    assert {entry["id"] for entry in entries} <= names
    assert len(entries) > 50


def test_the_settings_are_the_declared_ones(stored: dict[str, Any]) -> None:
    parts = stored["parts"]
    training = parts["training"]
    assert (training["steps"], training["diffusion_steps"]) == (100_000, 100_000)
    assert training["critics"]["cosine"]["temperature"] == 0.05
    assert training["critics"]["tdq"]["bellman"]["expectile"] == 0.9
    assert (training["gamma"], training["reward"]) == (0.99, "-1/0")
    per_group = {}
    for task in DECLARED:
        own = parts[f"task {task}"]
        assert own["semantics"]["seeds"] == own["selection"]["seeds"] == [42, 43, 44]
        assert own["semantics"]["oracle_seed"] == 7
        assert own["semantics"]["diffusion_seeds"] == [42, 7, 13]
        assert own["selection"]["reference"] == {
            "seeds": [101, 102, 103],
            "resolvability": 0.5,
            "spearman": 0.7,
            "prespecified_group": "near",
        }
        assert own["selection"]["rollouts"]["e_min"] == 0.012
        assert own["data"]["seed"] == 0
        per_group[task] = own["selection"]["rollouts"]["per_group"]
    assert per_group == {"AntMaze": 34, "HumanoidMaze": 136, "AntSoccer": 34}


def test_reading_it_loads_nothing_heavy() -> None:
    code = (
        "import sys; from toptail_paper.claims.declare import read_declared; read_declared(); "
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
