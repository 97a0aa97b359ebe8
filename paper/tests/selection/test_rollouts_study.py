"""The simulator's audit: its design, its power, its files, and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from toptail.errors import InputError
from toptail.lab.environments.ogbench import MazeEnvironments
from toptail.lab.judges.rollouts import ModelContinuation
from toptail.lab.tasks.files import load_file
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig, freeze_queries
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.pools import JudgedPicks
from toptail_paper.selection import rollouts as rollout_store
from toptail_paper.selection.config import RolloutSettings
from toptail_paper.selection.judge_tables import rollout_cells
from toptail_paper.selection.rollout_data import (
    RANDOM,
    RolloutAudit,
    agreement,
    audited_queries,
    power,
    random_candidates,
    selector_picks,
)
from toptail_paper.selection.rollouts import RolloutSetup, judge_by_rollouts
from toptail_paper.study.store import Stored

TASK = "pointmaze-medium-navigate-v0"
DATA = Path(__file__).parents[3] / "tests" / "tasks" / "data"
SIZE = 9
Picks = dict[str, IntArray]
SETTINGS = RolloutSettings(per_group=6, repeats=4, randoms=3, candidates=5)
ENOUGH = replace(SETTINGS, e_min=9.0)
"""With these the first queries are enough."""


def walks(count: int = 40, rows: int = 12) -> Trajectories:
    """Many short trajectories; nothing below looks at where they go."""
    rng = np.random.default_rng(0)
    n = count * rows
    place, action = (rng.uniform(-1, 1, (n, 2)).astype(np.float32) for _ in range(2))
    return Trajectories(place, action, np.arange(n) % rows == rows - 1, place, place * 0)


@dataclass(frozen=True, eq=False)
class KnownWorld(RolloutSetup):
    """Returns by a formula: quality of the candidate, and noise that a query's actions share."""

    noise: float = 0.1
    calls: list[set[tuple[int, int]]] = field(default_factory=list)
    fail_at: int | None = None

    def judge(
        self,
        query: IntArray,
        candidate: IntArray,
        settings: RolloutSettings,
        tick: Callable[[int], None],
    ) -> NDArray[np.float32]:
        if self.fail_at == len(self.calls):
            raise KeyboardInterrupt
        self.calls.append(set(zip(query.tolist(), candidate.tolist(), strict=True)))
        tick(len(query) * settings.repeats)
        return self.formula(query, candidate, settings.repeats).astype(np.float32)

    def formula(self, query: IntArray, candidate: IntArray, repeats: int) -> NDArray[np.float64]:
        shared = np.stack([np.random.default_rng([7, q]).normal(size=repeats) for q in query])
        own = [
            np.random.default_rng([q, c]).normal() for q, c in zip(query, candidate, strict=True)
        ]
        return 0.02 * candidate[:, None] + self.noise * np.array(own)[:, None] + shared


@pytest.fixture(scope="module")
def queries() -> FrozenQueries:
    config = QueryConfig(per_group=40, near=(1, 2), medium=(3, 5), far=(6, 8))
    return freeze_queries(walks(), config)


def world(queries: FrozenQueries, **settings: Any) -> KnownWorld:
    candidates = np.random.default_rng(3).uniform(-1, 1, (len(queries), SIZE + 1, 2))
    actions = candidates.astype(np.float32)
    return KnownWorld(
        TASK, walks(), queries, actions, _never, _never, {"policy": "params"}, **settings
    )


def _never(*args: object) -> Any:
    raise AssertionError(args)


@pytest.fixture(scope="module")
def picks(queries: FrozenQueries) -> Picks:
    rng, n = np.random.default_rng(5), len(queries)
    return {"good": rng.integers(6, SIZE, n), "bad": rng.integers(0, 3, n)}


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_store, "PAIRS_PER_PART", 20)


def test_audited_queries_are_balanced_nested_and_in_random_order(queries: FrozenQueries) -> None:
    few, many = audited_queries(queries, 5), audited_queries(queries, 9)
    for name in ("near", "medium", "far"):
        mine = [q for q in few if queries.group[q] == name]
        assert len(mine) == 5
        assert mine == [q for q in many if queries.group[q] == name][:5]
        assert mine != sorted(mine)
    assert sorted(audited_queries(queries, 99)) == list(range(len(queries)))


def test_random_candidates_are_distinct_members_of_the_pool(queries: FrozenQueries) -> None:
    drawn = random_candidates(queries, 64, 8)
    assert all(len(set(row)) == 8 for row in drawn.tolist())
    counts = np.bincount(drawn.ravel(), minlength=64)
    assert counts.size == 64
    assert scipy_stats.chisquare(counts).pvalue > 1e-4
    with pytest.raises(InputError, match="does not hold 8 random ones"):
        random_candidates(queries, 7, 8)


def test_selectors_maximize_the_first_pool_without_the_logged_action() -> None:
    scores = np.zeros((2, 2, 4))
    scores[0, 0] = [0, 3, 1, 9]  # the logged action's score is the highest
    scores[1, 0] = [5, 5, 1, 0]  # of equal ones, the first
    scores[:, 1, 2] = 99  # another pool
    values = np.stack([scores, -3 * scores])
    given = {"raw@42": scores, "raw@43": -scores, "mine": -scores, "td_mean@42": scores}
    picks = selector_picks(given, values)  # a factored critic is not rolled out
    assert {name: pick.tolist() for name, pick in picks.items()} == {
        "raw@42": [1, 0],
        "raw@43": [0, 2],
        "mine": [0, 2],
        "reference": [0, 2],
    }
    with pytest.raises(InputError, match="'random' cannot be a selector"):
        selector_picks({"random": scores}, None)


def test_a_critics_gain_is_the_mean_over_its_training_seeds(
    queries: FrozenQueries, picks: Picks, tmp_path: Path
) -> None:
    seeds = {"raw@42": picks["good"], "raw@43": picks["bad"], "mine": picks["good"]}
    audit = judge_by_rollouts(tmp_path, world(queries), seeds, ENOUGH)
    assert audit.selectors == ("raw@42", "raw@43", "mine", "logged")
    random = audit.random_returns.mean(axis=(1, 2))
    expected = [(audit.returns[:, i].mean(axis=1) - random).mean() for i in range(2)]
    gains = audit.gains()
    np.testing.assert_allclose([gains["raw"][42], gains["raw"][43]], expected)
    assert expected[0] > expected[1]
    compared = power(audit, 9.0)["selectors"]
    assert compared["raw"]["difference"] == pytest.approx(np.mean(expected))
    assert compared["mine"]["difference"] == pytest.approx(gains["mine"][None])
    cells = rollout_cells(
        {"comparisons": [row | {"a": name, "b": "random"} for name, row in compared.items()]}, gains
    )
    assert cells["raw"]["seeds"] == {"42": pytest.approx(expected[0]),
                                       "43": pytest.approx(expected[1])}  # fmt: skip


def test_an_audit_is_the_formula_in_every_cell(
    queries: FrozenQueries, picks: Picks, tmp_path: Path
) -> None:
    here, ticks = world(queries), list[tuple[str, float]]()
    audit = judge_by_rollouts(tmp_path, here, picks, ENOUGH, tick=lambda *at: ticks.append(at))
    np.testing.assert_array_equal(audit.query, audited_queries(queries, 6))
    assert audit.selectors == ("good", "bad", "logged")
    assert (audit.candidate[:, 2] == SIZE).all()
    for i, query in enumerate(audit.query):
        for found, candidate in (
            (audit.returns[i], audit.candidate[i]),
            (audit.random_returns[i], audit.random_candidate[i]),
        ):
            expected = here.formula(np.full(len(candidate), query), candidate, 4)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    # No pair twice: selectors and random candidates share what is the same.
    assert sum(map(len, here.calls)) == len(set().union(*here.calls))
    shares = [share for _, share in ticks]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    rollouts = 4 * sum(map(len, here.calls))
    assert ticks[-1][0] == f"rollouts: {rollouts:,} of {rollouts:,}"
    stored = Stored.read(tmp_path / "rollouts.npz")
    assert (stored.header["per_group"], stored.header["policy"]) == (6, "params")
    np.testing.assert_array_equal(RolloutAudit.of(stored).returns, audit.returns)
    table = JudgedPicks.read(tmp_path / "picks.parquet").to_arrow()
    of_random = table.filter(np.array(table["selector"]) == RANDOM)
    np.testing.assert_allclose(
        of_random["value"].to_numpy(), audit.random_returns.mean(axis=1).ravel()
    )
    assert not (tmp_path / "rollouts.parts").exists()


def half_width(difference: NDArray[Any], trajectory: IntArray) -> float:
    """1.96 standard errors of a mean over queries, from the sums of whole trajectories."""
    left = difference - difference.mean()
    sums = np.array([left[trajectory == one].sum() for one in np.unique(trajectory)])
    return float(1.96 * np.sqrt((sums**2).sum()) / len(difference))


def test_queries_are_added_until_every_half_width_is_small(
    queries: FrozenQueries, picks: Picks, tmp_path: Path
) -> None:
    here = world(queries, noise=0.1)
    settings = replace(SETTINGS, e_min=0.035)
    audit = judge_by_rollouts(tmp_path, here, picks, settings, most_per_group=40)
    per_group = len(audit.query) // 3
    assert 9 <= per_group < 40
    assert per_group % 3 == 0  # six, and three more each time
    assert power(audit, 0.035)["admitted"]
    fewer = np.isin(audit.query, audited_queries(queries, per_group - 3))
    arrays = {name: array[fewer] for name, array in vars(audit).items() if name != "selectors"}
    assert not power(replace(audit, **arrays), 0.035)["admitted"]
    # Every pair was rolled out once, although the audit was looked at several times.
    assert sum(map(len, here.calls)) == len(set().union(*here.calls))


def test_the_cap_ends_an_audit_without_power(
    queries: FrozenQueries, picks: Picks, tmp_path: Path
) -> None:
    hopeless = replace(SETTINGS, e_min=1e-6)
    audit = judge_by_rollouts(tmp_path / "a", world(queries), picks, hopeless, most_per_group=10)
    assert len(audit.query) == 30
    audit = judge_by_rollouts(tmp_path / "b", world(queries), picks, hopeless)
    assert len(audit.query) == 3 * 24
    result = power(audit, 1e-6)
    assert not result["admitted"]
    assert result["largest_half_width"] > 1e-6


def test_power_is_the_paired_mean_and_its_clustered_error(
    queries: FrozenQueries, picks: Picks, tmp_path: Path
) -> None:
    audit = judge_by_rollouts(tmp_path, world(queries), picks, replace(ENOUGH, per_group=40))
    result = power(audit, 0.012)
    assert (result["queries"], result["repeats"]) == (120, 4)
    random = audit.random_returns.mean(axis=(1, 2))
    for i, name in enumerate(audit.selectors):
        row, difference = result["selectors"][name], audit.returns[:, i].mean(axis=1) - random
        assert row["difference"] == pytest.approx(difference.mean(), abs=1e-9)
        expected = half_width(difference, audit.trajectory)
        assert row["half_width"] == pytest.approx(expected, rel=0.1)
    assert result["selectors"]["good"]["low"] > 0 > result["selectors"]["bad"]["high"]
    widths = [row["half_width"] for row in result["selectors"].values()]
    assert result["largest_half_width"] == max(widths)
    assert result["admitted"] == (max(widths) < 0.012)


def test_pairing_gains_what_the_shared_noise_is() -> None:
    # Shared noise of variance 1 and own noise of 0.25: (1.25 + 1.25) / (0.25 + 0.25) = 5.
    rng = np.random.default_rng(0)
    shape = (400, 1, 16)
    shared = rng.normal(size=shape)
    audit = made_up(*(shared + 0.5 * rng.normal(size=shape) for _ in range(2)))
    assert power(audit, 1.0)["selectors"]["s"]["variance_ratio"] == pytest.approx(5, rel=0.1)
    apart = made_up(*(rng.normal(size=shape) for _ in range(2)))
    assert power(apart, 1.0)["selectors"]["s"]["variance_ratio"] == pytest.approx(1, rel=0.1)


def made_up(returns: NDArray[Any], random_returns: NDArray[Any]) -> RolloutAudit:
    """An audit of one selector; trajectory i has the queries 2 i and 2 i + 1."""
    queries, members = random_returns.shape[:2]
    at = np.arange(queries)
    return RolloutAudit(
        query=at,
        trajectory=at // 2,
        group=np.full(queries, "near"),
        selectors=("s",),
        candidate=np.zeros((queries, 1), np.int64),
        returns=returns,
        random_candidate=np.tile(np.arange(members) * 2, (queries, 1)),
        random_returns=random_returns,
    )


def test_rollouts_that_all_return_the_same_are_no_measurement() -> None:
    ones, random = np.ones((6, 1, 3)), np.ones((6, 4, 3))
    audit = made_up(ones, random)
    result = power(audit, 0.01)
    assert audit.share_same == 1
    assert result["largest_half_width"] == 0
    assert not result["admitted"]
    random[0, 0, 0] = 0.999
    audit = made_up(ones, random)
    assert audit.share_same == pytest.approx(5 / 6)
    assert power(audit, 0.01)["admitted"]


def test_one_trajectory_knows_no_width_and_is_not_admitted() -> None:
    audit = made_up(np.ones((2, 1, 3)), np.zeros((2, 4, 3)))
    result = power(audit, 1.0)
    assert (result["admitted"], result["largest_half_width"]) == (False, None)


def test_agreement_is_spearman_within_queries_and_over_all() -> None:
    rng = np.random.default_rng(1)
    level = rng.normal(size=(30, 1, 1))
    members = level + rng.normal(size=(30, 6, 1))
    returns = members + 0.5 * rng.normal(size=(30, 6, 8))
    returns[:4] = 0.0  # nothing was reached: these queries say nothing within
    audit = made_up(returns[:, :1], returns)
    values = rng.normal(size=(2, 30, 3, 13))
    values[:, :, 0, ::2][..., :6] += 2 * members[..., 0]
    found = agreement(audit, {"judge": values}, resamples=200)
    mean = values.mean(axis=0)[:, 0, [0, 2, 4, 6, 8, 10]]
    realized = returns.mean(axis=2)
    within = [scipy_stats.spearmanr(mean[q], realized[q]).statistic for q in range(4, 30)]
    across = scipy_stats.spearmanr(mean.ravel(), realized.ravel()).statistic
    assert found["judge"]["within"]["value"] == pytest.approx(np.mean(within))
    assert found["judge"]["within"]["queries"] == 26
    assert found["judge"]["across"]["value"] == pytest.approx(across)
    for entry in found["judge"].values():
        assert entry["low"] < entry["value"] < entry["high"]
    halves = [
        scipy_stats.spearmanr(*(returns[q, :, i::2].mean(axis=1) for i in (0, 1))).statistic
        for q in range(4, 30)
    ]
    assert found["split_half"]["within"]["value"] == pytest.approx(np.mean(halves))


def test_an_interrupted_audit_goes_on_where_it_stopped(
    queries: FrozenQueries, picks: Picks, tmp_path: Path
) -> None:
    whole = judge_by_rollouts(tmp_path / "whole", world(queries), picks, ENOUGH)
    stopped, again = world(queries, fail_at=3), world(queries)
    with pytest.raises(KeyboardInterrupt):
        judge_by_rollouts(tmp_path / "cut", stopped, picks, ENOUGH)
    audit = judge_by_rollouts(tmp_path / "cut", again, picks, ENOUGH)
    np.testing.assert_array_equal(audit.returns, whole.returns)
    np.testing.assert_array_equal(audit.random_returns, whole.random_returns)
    assert len(stopped.calls) == 3
    assert not set().union(*stopped.calls) & set().union(*again.calls)
    files = [(tmp_path / name / "rollouts.npz").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]


def test_a_finished_audit_is_not_repeated_and_takes_more_selectors(
    queries: FrozenQueries, picks: Picks, tmp_path: Path
) -> None:
    first = judge_by_rollouts(tmp_path, world(queries), picks, ENOUGH)
    judge_by_rollouts(tmp_path, idle := world(queries), picks, ENOUGH)
    assert idle.calls == []
    more = {**picks, "new": np.full(len(queries), 4)}
    wider = judge_by_rollouts(tmp_path, busy := world(queries), more, ENOUGH)
    assert wider.selectors == ("good", "bad", "new", "logged")
    np.testing.assert_array_equal(wider.returns[:, :2], first.returns[:, :2])
    assert {candidate for _, candidate in set().union(*busy.calls)} == {4}
    changed = {**picks, "good": picks["good"][::-1]}
    with pytest.raises(InputError, match="other picks of 'good'"):
        judge_by_rollouts(tmp_path, world(queries), changed, ENOUGH)
    with pytest.raises(InputError, match="horizon \\(200 and 50\\)"):
        judge_by_rollouts(tmp_path, world(queries), picks, replace(ENOUGH, horizon=50))


def test_candidates_and_data_must_be_those_of_the_queries(queries: FrozenQueries) -> None:
    with pytest.raises(InputError, match="candidates for 3 queries and 120 queries"):
        replace(world(queries), candidates=np.zeros((3, 2, 2), np.float32))
    with pytest.raises(InputError, match="frozen on other data"):
        replace(world(queries), val=walks(50))


class _Drift:
    """Noise towards the goal, from the keys alone."""

    def sample_rows(
        self, keys: jax.Array, states: Any, goals: Any, steps: int | None = None
    ) -> NDArray[np.float32]:
        del steps
        noise = jax.vmap(lambda key: jax.random.normal(key, (2,)))(keys)
        return np.asarray(np.clip(3 * (goals - states) + 0.5 * noise, -1, 1), np.float32)


def test_the_simulator_sees_that_a_step_towards_the_goal_is_better(tmp_path: Path) -> None:
    val = load_file(DATA / f"{TASK}-val.npz")
    queries = freeze_queries(
        val, QueryConfig(per_group=6, near=(8, 9), medium=(10, 12), far=(13, 16))
    )
    towards = np.sign(queries.goals - queries.states)
    rng = np.random.default_rng(0)
    candidates = rng.uniform(-0.2, 0.2, (len(queries), 6, 2)).astype(np.float32)
    candidates[:, 0], candidates[:, 1] = towards, -towards
    make = partial(MazeEnvironments, parse_name(TASK).environment)
    goes_on = ModelContinuation(_Drift(), jax.random.key(0), 10)
    here = RolloutSetup(TASK, val, queries, candidates, make, goes_on, {})
    picks = {"towards": np.zeros(len(queries), int), "away": np.ones(len(queries), int)}
    settings = RolloutSettings(per_group=6, repeats=3, randoms=2, candidates=3, horizon=40)
    audit = judge_by_rollouts(tmp_path, here, picks, settings, most_per_group=6)
    result = power(audit, 0.012)["selectors"]
    assert result["towards"]["difference"] > 0 > result["away"]["difference"]
    assert audit.returns[:, 0].mean() > audit.returns[:, 1].mean()
