"""Local support: distances to the actions of nearby data states, and the threshold."""

from __future__ import annotations

import numpy as np
import pytest

from paper.tests.selection.small import small_config, small_queries
from tests.training.toy import toy_dataset
from toptail.errors import InputError
from toptail.lab.proposals.untrained import local_rows, support_distance
from toptail.lab.tasks.queries import FrozenQueries
from toptail_paper.selection.pools import Proposal, draw_pools


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
