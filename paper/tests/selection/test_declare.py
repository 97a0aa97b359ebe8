"""Criteria are written before scoring and cannot be changed afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.selection.small import small_config, small_queries
from tests.training.toy import toy_dataset
from toptail.errors import InputError
from toptail.io.arrays import write_arrays
from toptail.lab.proposals.untrained import local_rows, support_distance
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig
from toptail_paper.selection.config import (
    PoolSettings,
    ReferenceSettings,
    RolloutSettings,
    SelectionConfig,
    SupportSettings,
)
from toptail_paper.selection.files import SelectionFolder, declare, read_declared, require_declared
from toptail_paper.selection.pools import Proposal, draw_pools

CONFIG, QUERIES = small_config(), small_queries()


def test_the_papers_criteria_are_the_defaults(tmp_path: Path) -> None:
    assert SelectionConfig("walks").queries == QueryConfig()
    declared = declare(SelectionFolder(tmp_path), SelectionConfig("walks"), QUERIES)
    stored = json.loads((tmp_path / "declared.json").read_text())
    assert stored == declared
    assert (stored["resolvability"], stored["spearman"], stored["e_min"]) == (0.5, 0.7, 0.012)
    assert stored["query_sha256"] == QUERIES.sha256
    assert stored["groups"] == {"near": [1, 3], "medium": [4, 8], "far": [9, 15]}
    assert stored["pools"]["count"] == 5
    assert stored["pools"]["size"] == 64
    assert stored["rollouts"]["per_group"] == 34
    assert stored["rollouts"]["repeats"] == 16
    assert stored["support"]["nearest"] == 200
    assert "0.95 quantile" in stored["support"]["threshold"]
    assert stored["reference"]["seeds"] == [101, 102, 103]
    assert stored["seeds"] == [42, 43, 44]


def test_humanoids_get_more_queries() -> None:
    assert SelectionConfig.for_task("HumanoidMaze").rollouts.per_group == 136
    assert SelectionConfig.for_task("PointMaze").rollouts.per_group == 34
    assert SelectionConfig.for_task("PointMaze").task == "pointmaze-medium-navigate-v0"
    assert SelectionConfig.for_task("walks", seeds=(1,)) == SelectionConfig("walks", seeds=(1,))
    given = SelectionConfig.for_task("HumanoidMaze", rollouts=RolloutSettings(per_group=3))
    assert given.rollouts.per_group == 3


def test_declaring_again_changes_nothing(tmp_path: Path) -> None:
    folder = SelectionFolder(tmp_path)
    first = declare(folder, CONFIG, QUERIES)
    before = folder.declared.read_bytes()
    assert declare(folder, CONFIG, QUERIES) == first == require_declared(folder, CONFIG, QUERIES)
    assert folder.declared.read_bytes() == before


def test_what_changed_is_named(tmp_path: Path) -> None:
    folder = SelectionFolder(tmp_path)
    declare(folder, CONFIG, QUERIES)
    easier = replace(CONFIG, reference=replace(CONFIG.reference, spearman=0.6))
    with pytest.raises(InputError, match=r"other criteria .*: spearman \(0\.7 and 0\.6\)\."):
        declare(folder, easier, QUERIES)
    two = replace(easier, rollouts=replace(CONFIG.rollouts, repeats=3, e_min=0.1))
    with pytest.raises(InputError) as error:
        require_declared(folder, two, QUERIES)
    for part in ("e_min (0.012 and 0.1)", "rollouts.repeats (2 and 3)", "spearman (0.7 and 0.6)"):
        assert part in str(error.value)
    other = small_queries(small_config(queries=replace(CONFIG.queries, seed=1)))
    with pytest.raises(InputError, match="query_sha256"):
        declare(folder, CONFIG, other)


def test_a_declaration_that_was_edited_is_refused(tmp_path: Path) -> None:
    folder = SelectionFolder(tmp_path)
    content = declare(folder, CONFIG, QUERIES)
    folder.declared.write_text(json.dumps(content | {"spearman": 0.1}))
    with pytest.raises(InputError, match="was changed after it was written"):
        read_declared(folder)
    # Not even together with a configuration that says the same.
    easier = replace(CONFIG, reference=replace(CONFIG.reference, spearman=0.1))
    with pytest.raises(InputError, match="was changed after it was written"):
        declare(folder, easier, QUERIES)
    folder.declared.write_text("[]")
    with pytest.raises(InputError, match="is not a declaration"):
        read_declared(folder)
    folder.declared.unlink()
    with pytest.raises(InputError, match="declare the criteria first"):
        read_declared(folder)


@pytest.mark.parametrize("name", ["scores/mine.npz", "values/reference.npz", "rollouts.npz"])
def test_nothing_is_declared_after_scoring(tmp_path: Path, name: str) -> None:
    write_arrays(tmp_path / name, {"scores": np.zeros(3)})
    with pytest.raises(InputError, match=r"was there before .*declared\.json"):
        declare(SelectionFolder(tmp_path), CONFIG, QUERIES)
    assert not (tmp_path / "declared.json").exists()


AUDIT = partial(SelectionConfig, "walks")
CLOSE = ReferenceSettings(prespecified_group="close")


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        (AUDIT, {"seeds": (42, 101)}, "both audited and judging"),
        (AUDIT, {"reference": CLOSE}, "no distance group 'close'"),
        (AUDIT, {"pools": PoolSettings(size=32)}, "K = 64 needs pools"),
        (AUDIT, {"ks": (1, 4, 2)}, "must rise"),
        (ReferenceSettings, {"seeds": (101, 101)}, "at least two different seeds"),
        (SupportSettings, {"quantile": 1.0}, "between 0 and 1"),
        (PoolSettings, {"count": 0}, "at least one pool"),
        (RolloutSettings, {"repeats": 0}, "repeats=0 must be a whole number of at least 1"),
        (RolloutSettings, {"e_min": 0.0}, "e_min 0: expected numbers above 0"),
        (RolloutSettings, {"gamma": 1.5}, r"gamma is 1\.5"),
        (QueryConfig, {"per_group": 0}, "per_group=0 must be"),
        (QueryConfig, {"medium": (21, 5)}, r"medium group has bounds 21\.\.5"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: Any, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        settings(**given)


# Local support: distances to the actions of nearby data states, and the threshold.


def slow_distance(query: int, action: np.ndarray, nearest: int) -> float:
    """Sort all transitions by distance, then look at the actions of the first."""
    data, queries = toy_dataset().train, small_queries()
    rows = [r for r in range(len(data)) if not data.terminals[r]]
    gap = {
        r: sum((float(a) - float(b)) ** 2 for a, b in zip(o, queries.states[query], strict=True))
        for r, o in ((r, data.observations[r]) for r in rows)
    }
    near = sorted(rows, key=lambda r: (gap[r], r))[:nearest]
    return float(min(np.linalg.norm(data.actions[r].astype(float) - action) for r in near))


def test_distances_against_a_slow_version() -> None:
    data, queries = toy_dataset().train, small_queries()
    candidates = np.random.default_rng(0).uniform(-1, 1, (len(queries), 6, 2)).astype(np.float32)
    shares: list[float] = []
    local = data.actions[local_rows(data, queries.states, 5)]
    found = support_distance(local, candidates, shares.append)
    for query in range(len(queries)):
        for i in range(6):
            expected = slow_distance(query, candidates[query, i].astype(float), 5)
            np.testing.assert_allclose(found[query, i], expected, rtol=1e-6)


def test_an_action_of_the_data_is_on_support_and_the_threshold_is_the_rules() -> None:
    data, queries, config = toy_dataset().train, small_queries(), small_config()
    own = data.actions[local_rows(data, queries.states, 5)]

    def draw(of: FrozenQueries, pool: int) -> np.ndarray:
        """The nearest state's action first, then actions far outside."""
        far = np.full((len(of), 3, 2), 5.0 + pool, dtype=np.float32)
        return np.concatenate([own[:, :1], far], axis=1)

    stored = draw_pools(
        queries,
        data,
        Proposal({"kind": "test"}, draw),
        config.pools,
        config.support,
        lambda _: None,
    )
    arrays = stored.arrays
    assert (arrays["support_distance"][:, :, 0] == 0).all()
    assert arrays["on_support"][:, :, 0].all()
    assert not arrays["on_support"][:, :, 1:].any()
    logged = [slow_distance(q, queries.actions[q].astype(float), 5) for q in range(len(queries))]
    np.testing.assert_allclose(arrays["logged_support_distance"], logged, rtol=1e-6)
    np.testing.assert_allclose(stored.header["threshold"], np.quantile(logged, 0.9), rtol=1e-6)


def test_more_states_than_the_data_has_are_refused() -> None:
    data = toy_dataset().train
    with pytest.raises(InputError, match=r"190 transitions, fewer than the 191"):
        local_rows(data, data.observations[:2], 191)
