"""Tables of the selection study: cases solved by hand, and slow versions of every estimate."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from paper.tests.selection.stored_stages import Stages
from toptail.errors import InputError
from toptail.report.text import data_sentences
from toptail.results import read_audit
from toptail.stats import wilson
from toptail_paper.claims.reported import cells
from toptail_paper.selection.judge_tables import (
    deployment_table,
    judges_table,
    rollout_cells,
)
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.specs import TABLES
from toptail_paper.selection.tables import (
    MeasuredPicks,
    factored_table,
    fixed_query_table,
    function_class_table,
)
from toptail_paper.selection.write import audit_pools, to_pools
from toptail_paper.study.show import show
from toptail_paper.study.store import Stored


def measure(stages: Stages, resamples: int = 50) -> MeasuredPicks:
    return MeasuredPicks(read_selection(stages.path), resamples=resamples)


def row(stages: Stages, critic: str) -> dict[str, Any]:
    return measure(stages).rows[critic]


@pytest.fixture
def four(tmp_path: Path) -> Stages:
    """Three queries with one pool of four candidates each, worth 0, 1, 2 and 3."""
    stages = Stages(tmp_path, per_group=1, pools=1, size=4)
    stages.value = np.tile([0.0, 1.0, 2.0, 3.0, 9.0], (3, 1, 1))
    stages.judge("reference", stages.value[None])
    return stages


def test_a_hand_solved_case(four: Stages) -> None:
    """Picks worth 3, 1 and 0: regret (0 + 2 + 3) / 3, headroom 3 - 1.5."""
    scores = np.array([[[0, 1, 2, 3, 0]], [[0, 3, 1, 2, 0]], [[3, 2, 1, 0, 0]]], dtype=float)
    four.score("mine", scores)
    cells = row(four, "mine")
    assert cells["nregret_4"]["mean"] == pytest.approx((5 / 3) / 1.5)
    # tau: 1; pairs (1,2), (1,3) of the second pool are out of order: (4 - 2) / 6; -1.
    assert cells["tau_b_4"]["mean"] == pytest.approx((1 + 2 / 6 - 1) / 3)
    assert cells["tau_b_4/near"]["mean"] == pytest.approx(1.0)
    assert cells["nregret_4/far"]["mean"] == pytest.approx(3 / 1.5)
    assert cells["median_selected"]["mean"] == 3.0
    assert cells["share_above_0.9"]["mean"] == 1.0


def test_regret_of_pools_with_different_stakes_by_hand(four: Stages) -> None:
    """Stakes 3 and 0.3: regrets 0 and 0.15 of headrooms 1.5 and 0.15; a flat pool has none."""
    values = four.value.copy()
    values[1] *= 0.1
    values[2, :, :4] = 1.0
    four.judge("reference", values[None])
    scores = np.array([[[0, 1, 2, 3, 0]], [[3, 2, 1, 0, 0]], [[3, 2, 1, 0, 0]]], dtype=float)
    four.score("mine", scores)
    cells = row(four, "mine")
    assert cells["nregret_4"]["mean"] == pytest.approx(0.3 / (1.5 + 0.15))
    assert cells["pool_nregret_4"]["mean"] == pytest.approx((0.0 + 2.0) / 2)


def test_the_logged_action_is_no_candidate(four: Stages) -> None:
    """It has the highest score and the highest value, and changes nothing."""
    scores = four.value.copy()
    four.score("mine", scores)
    cells = row(four, "mine")
    assert cells["nregret_4"]["mean"] == pytest.approx(0.0)
    assert cells["median_selected"]["mean"] == 3.0


def test_support_of_the_picks_by_hand(four: Stages) -> None:
    four.score("mine", four.value)
    outside = four.distance[:, 0] > 0.75
    cells = row(four, "mine")
    assert cells["off_support_rate"]["mean"] == pytest.approx(outside[:, 3].mean())
    assert cells["base_rate"]["mean"] == pytest.approx(outside.mean())
    ratio = outside[:, 3].mean() / outside.mean()
    assert cells["off_over_base"]["mean"] == pytest.approx(ratio)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    """Scorers whose rows are known: exact, reversed, noise, constant, and two seeds."""
    stages = Stages(tmp_path_factory.mktemp("world"), per_group=10)
    stages.reference()
    stages.judge("euclidean", stages.value[None])
    stages.score("exact", stages.value)
    stages.score("reversed", -stages.value)
    stages.score("noise", stages.rng.normal(size=stages.value.shape))
    stages.score("constant", np.zeros(stages.value.shape))
    stages.score("tdq@42", stages.noisy(0.6))
    stages.score("tdq@43", stages.noisy(0.5))
    return stages


@pytest.fixture(scope="module")
def measured(world: Stages) -> MeasuredPicks:
    return measure(world, resamples=80)


def test_exact_reversed_noise_and_constant_scorers(measured: MeasuredPicks) -> None:
    rows: Any = measured.rows
    assert rows["exact"]["euclidean/tau_b_64"]["mean"] == pytest.approx(1.0)
    assert rows["exact"]["euclidean/nregret_64"]["mean"] == pytest.approx(0.0, abs=1e-9)
    assert rows["reversed"]["euclidean/tau_b_64"]["mean"] == pytest.approx(-1.0)
    assert rows["reversed"]["euclidean/nregret_64"]["mean"] > 1.5
    assert rows["noise"]["euclidean/tau_b_64"]["mean"] == pytest.approx(0.0, abs=0.05)
    assert rows["noise"]["euclidean/nregret_64"]["mean"] == pytest.approx(1.0, abs=0.25)
    # Every candidate is equally likely to be picked: exactly random, and no order.
    assert rows["constant"]["nregret_64"]["mean"] == pytest.approx(1.0)
    assert rows["constant"]["tau_b_64"]["mean"] is None
    assert rows["constant"]["tau_b_64"]["undefined"] == 30


def slow_queries(world: Stages, column: str) -> list[tuple[float, float, float]]:
    """tau_b, regret and headroom of every query, pools averaged, by plain loops."""
    scores = Stored.read(world.folder.scores(column)).arrays["scores"].astype(np.float64)
    members = Stored.read(world.folder.values("reference")).arrays["values"].astype(np.float64)
    value = members.mean(axis=0)
    found = []
    for q in range(len(scores)):
        pools = []
        for p in range(world.pools):
            s, v = scores[q, p, :-1], value[q, p, :-1]
            top = v.max()
            pools.append((kendalltau(s, v).statistic, top - v[np.argmax(s)], top - v.mean()))
        tau, regret, headroom = np.mean(pools, axis=0)
        found.append((float(tau), float(regret), float(headroom)))
    return found


def slow_numbers(queries: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Mean tau_b, and mean regret over mean headroom."""
    tau, regret, headroom = (np.mean(part) for part in zip(*queries, strict=True))
    return float(tau), float(regret / headroom)


def test_cells_and_intervals_agree_with_plain_loops(world: Stages, measured: MeasuredPicks) -> None:
    cells = measured.rows["tdq"]
    slow = [slow_queries(world, f"tdq@{seed}") for seed in (42, 43)]
    by_seed = [slow_numbers(queries) for queries in slow]
    trajectory, draws = world.queries.trajectory, []
    for drawn in measured.means.bootstrap.times:
        keep = [q for q in range(30) for _ in range(drawn[trajectory[q]])]
        draws.append(
            np.mean([slow_numbers([queries[q] for q in keep]) for queries in slow], axis=0)
        )
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    for place, metric in enumerate(("tau_b_64", "nregret_64")):
        expected = [numbers[place] for numbers in by_seed]
        assert list(cells[metric]["seeds"].values()) == pytest.approx(expected)
        assert cells[metric]["mean"] == pytest.approx(np.mean(expected))
        assert cells[metric]["std"] == pytest.approx(np.std(expected, ddof=1))
        assert cells[metric]["low"] == pytest.approx(low[place])
        assert cells[metric]["high"] == pytest.approx(high[place])


def test_curves_are_exact_over_k(four: Stages) -> None:
    scores = np.array([[[2, 0, 3, 1, 0]], [[0, 3, 1, 2, 0]], [[3, 2, 1, 0, 0]]], dtype=float)
    four.score("mine", scores)
    content = measure(four).curves()
    assert content["k"] == [1, 2, 4]
    judged = content["judges"]["reference"]
    values = four.value[:, 0, :4]
    for at, k in enumerate(content["k"]):
        picks = [
            values[q, max(subset, key=lambda i: scores[q, 0, i])]
            for q in range(3)
            for subset in combinations(range(4), k)
        ]
        mine = judged["critics"]["mine"]
        assert mine["value"]["mean"][at] == pytest.approx(np.mean(picks))
        for group, own in zip(("near", "medium", "far"), np.split(np.array(picks), 3), strict=True):
            assert mine["groups"][group]["value"]["mean"][at] == pytest.approx(own.mean())
    assert judged["random"] == pytest.approx(1.5)
    assert judged["oracle"][-1] == pytest.approx(3.0)
    assert judged["critics"]["mine"]["nregret"]["mean"][0] is None  # no headroom at K = 1


def test_reference_cells_carry_their_marks(measured: MeasuredPicks) -> None:
    rows = fixed_query_table(measured, {}, reliable=False)["rows"]["PointMaze"]
    assert rows["tdq"]["tau_b_64"]["circular"]
    assert rows["tdq"]["tau_b_64/near"]["unreliable"]
    assert "circular" not in rows["tdq"]["euclidean/tau_b_64"]
    assert "unreliable" not in rows["exact"]["euclidean/tau_b_64"]
    assert "circular" not in rows["exact"]["tau_b_64"]
    sound = fixed_query_table(measured, {}, reliable=True)["rows"]["PointMaze"]
    assert "unreliable" not in sound["tdq"]["tau_b_64"]


def test_function_class_has_the_papers_layout(tmp_path: Path, measured: MeasuredPicks) -> None:
    assert function_class_table(measured) is None  # neither added cell was scored
    stages = Stages(tmp_path, per_group=2)
    stages.reference()
    for critic in ("raw", "nce_mlp", "tdq"):
        stages.score(f"{critic}@42", stages.noisy(0.5))
    content = function_class_table(measure(stages))
    assert content is not None
    assert set(content["rows"]["PointMaze"]) == {"raw", "nce_mlp", "tdq"}
    paper = cells(content["label"], content["rows"])["PointMaze"]
    assert paper["td_bilinear"]["tau_b_64"] == {"mean": 0.7, "std": 0.01}
    assert content["layout"]["td"] == {"bilinear": "td_bilinear", "mlp": "tdq"}


def test_factored_has_a_row_for_every_cell(tmp_path: Path, measured: MeasuredPicks) -> None:
    assert factored_table(measured) is None  # no critic that takes the objective apart was scored
    stages = Stages(tmp_path, per_group=2)
    stages.reference()
    for critic in ("td_mean", "nce_mlp", "tdq", "hybrid", "c_learning"):
        stages.score(f"{critic}@42", stages.noisy(0.5))
    content = factored_table(measure(stages))
    assert content is not None
    rows = content["rows"]["PointMaze"]
    assert set(rows) == {"td_mean", "nce_mlp", "tdq", "c_learning"}  # hybrid has two objectives
    assert set(rows["tdq"]) == {"tau_b_64", "nregret_64"}  # the one judge there is
    assert content["layout"]["td_mean"] == {
        "cell": ("bootstrapped", "regression", "behaviour"),
        "ideal": "q_behaviour",
    }
    shown = show(TABLES["factored"], content)
    assert [row[0].text for row in shown.rows] == [
        "Monte Carlo, classification, behaviour: Contrastive, MLP network",
        "Bootstrapped, classification, behaviour: C-learning",
        "Bootstrapped, regression, behaviour: TD-Q of the behaviour",
        "Bootstrapped, regression, optimal: TD-Q",
    ]


def test_the_exact_value_leads_the_judges_that_know_the_ways(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=2)
    for judge in ("euclidean", "mine", "exact"):
        stages.judge(judge, stages.value[None])
    stages.score("near", stages.value)
    assert measure(stages, resamples=10).data.judges == ["exact", "euclidean", "mine"]
    stages.reference()
    assert measure(stages, resamples=10).data.judges[:2] == ["reference", "exact"]


def judges_of(stages: Stages) -> dict[str, Any]:
    found = measure(stages)
    return judges_table(found.data, found.means, {})


def test_judges_that_agree_are_admitted_and_noise_is_not(tmp_path: Path, world: Stages) -> None:
    content = judges_of(world)
    cells = content["rows"]["PointMaze"]["reference"]
    assert cells["resolvability"]["mean"] == 1.0
    assert cells["spearman"]["mean"] > 0.99
    assert cells["euclidean/spearman"]["mean"] > 0.99
    assert content["statuses"]["reference"]["admitted"]
    assert content["included_through"] == ["reference"]
    assert content["missing"] == ["rollouts"]

    noisy = Stages(tmp_path, per_group=4)
    noisy.judge("reference", noisy.rng.normal(size=(3, *noisy.value.shape)))
    noisy.score("mine", noisy.value)
    content = judges_of(noisy)
    cells = content["rows"]["PointMaze"]["reference"]
    assert cells["resolvability"]["status"] == "fail"
    assert cells["spearman"]["mean"] == pytest.approx(0.0, abs=0.1)
    assert not content["statuses"]["reference"]["admitted"]
    assert content["included_through"] == []


def comparison(a: str, difference: float, half_width: float | None) -> dict[str, Any]:
    ends = {"low": None, "high": None}
    if half_width is not None:
        ends = {"low": difference - half_width, "high": difference + half_width}  # type: ignore[dict-item]
    more = {"half_width": half_width, "variance_ratio": 3.0, "queries": 102}
    return {"a": a, "b": "random", "difference": difference, **ends, **more}


def test_rollouts_are_powered_only_if_the_widest_is(measured: MeasuredPicks) -> None:
    def verdict(*rows: dict[str, Any]) -> dict[str, Any]:
        deltas = rollout_cells({"comparisons": rows})
        content = judges_table(measured.data, measured.means, deltas)
        return dict(content["rows"]["PointMaze"]["rollouts"]["largest_half_width"])

    fine = comparison("tdq", 0.02, 0.01)
    assert verdict(fine)["status"] == "pass"
    wide = verdict(fine, comparison("raw", 0.0, 0.013))
    assert (wide["status"], wide["selector"], wide["mean"]) == ("fail", "raw", 0.013)
    unknown = verdict(fine, comparison("raw", 0.0, None))
    assert (unknown["status"], unknown["mean"]) == ("fail", None)


def test_rollout_cells_say_whether_the_interval_excludes_zero() -> None:
    rows = [comparison("tdq", 0.02, 0.01), comparison("raw", 0.005, 0.01)]
    other = comparison("tdq", 0.5, 0.01) | {"b": "raw"}
    cells = rollout_cells({"comparisons": [*rows, other]})
    assert cells["tdq"]["mean"] == 0.02
    assert cells["tdq"]["ci_excludes_zero"]
    assert not cells["raw"]["ci_excludes_zero"]
    assert rollout_cells(None) == {}


def test_rollout_cells_against_a_selector_are_what_the_other_gains_more() -> None:
    first = comparison("raw", 0.02, 0.005) | {"b": "tdq"}  # raw less TD-Q
    second = comparison("cosine", 0.03, 0.01) | {"b": "raw"}
    unknown = comparison("raw", 0.01, None) | {"b": "hybrid"}
    rows = [first, second, unknown, comparison("tdq", 0.5, 0.01)]
    cells = rollout_cells({"comparisons": rows}, against="raw")
    assert set(cells) == {"tdq", "cosine", "hybrid"}
    ends = {name: [cells[name][end] for end in ("mean", "low", "high")] for name in cells}
    assert ends["tdq"] == pytest.approx([-0.02, -0.025, -0.015])
    assert ends["cosine"] == pytest.approx([0.03, 0.02, 0.04])
    assert ends["hybrid"] == [-0.01, None, None]
    assert cells["tdq"]["ci_excludes_zero"]


def test_deployment_pools_the_episodes_of_all_seeds(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=1)
    assert deployment_table(read_selection(stages.path)) is None
    stages.deploy()
    content = deployment_table(read_selection(stages.path))
    assert content is not None
    rows = content["rows"]["PointMaze"]
    low, high = wilson(36, 100)
    cell = rows["tdq"]["closed_loop/K=1"]
    assert (cell["mean"], cell["low"], cell["high"]) == pytest.approx((0.36, low, high))
    assert rows["raw"]["actor_success"]["mean"] == 0.25
    assert rows["tdq"]["score_spread/near"]["mean"] == 0.01
    assert content["paper"] == {}
    paper = cells(content["label"], content["rows"])["PointMaze"]
    assert paper["tdq"]["closed_loop/K=64"]["mean"] == 0.0


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=1)
    stages.score("mine", stages.value)
    read_selection(stages.path)
    stages.score("mine", stages.value[..., :-1])
    with pytest.raises(InputError, match=r"mine.npz: 'scores' has the shape"):
        read_selection(stages.path)
    for what in ("declared", "queries", "pools"):
        stages.made_from[what], before = "other", stages.made_from[what]
        stages.score("mine", stages.value)
        stages.made_from[what] = before
        with pytest.raises(InputError, match=rf"mine\.npz was made from .*: {what} \(other and"):
            read_selection(stages.path)
    Stored(stages.made_from, {"points": stages.value}).write(stages.folder.scores("mine"))
    with pytest.raises(InputError, match="no array 'scores'"):
        read_selection(stages.path)


def test_rollouts_of_other_candidates_or_other_picks_are_refused(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=2)
    stages.score("mine@42", stages.value)
    stages.roll_out({"mine@42": 0.1, "logged": 0.0})
    (stages.path / "picks.parquet").write_bytes(b"left behind by an earlier call")
    picks = read_selection(stages.path).picks
    assert picks is not None
    assert picks.selector.to_pylist() == ["mine", "logged", "random"]
    stages.score("mine@42", -stages.value)
    with pytest.raises(InputError, match=r"rollouts\.npz holds rollouts of other picks of 'mine@"):
        read_selection(stages.path)
    stages.score("mine@42", stages.value)
    stored = Stored.read(stages.folder.rollouts)
    other = Stored({**stored.header, "candidates": "other"}, stored.arrays)
    other.write(stages.folder.rollouts)
    with pytest.raises(InputError, match=r"rollouts\.npz was made from .*: candidates \(other and"):
        read_selection(stages.path)


def test_a_folder_without_pools_says_what_is_missing(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=1)
    stages.folder.pools.unlink()
    with pytest.raises(InputError, match=r"pools.npz does not exist"):
        read_selection(stages.path)


# The study's pools and picks through the audit that any table goes through.


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    made = Stages(tmp_path_factory.mktemp("audit"), per_group=6)
    made.reference()
    made.judge("euclidean", made.value[None])
    made.score("exact", made.value)
    made.score("reversed@1", -made.value)
    made.score("reversed@2", -made.value)
    return made


def test_a_row_is_one_pool_of_one_query(stages: Stages) -> None:
    pools = to_pools(stages.path, "reference")
    assert (pools.queries, pools.rows) == (18 * 2, 18 * 2 * 64)
    assert pools.query.to_pylist()[:3] == ["0/0", "0/1", "1/0"]
    assert pools.cluster is not None
    assert pools.cluster.to_pylist() == np.repeat(stages.queries.trajectory, 2).tolist()
    assert pools.group is not None
    assert pools.group.to_pylist()[:13] == ["near"] * 12 + ["medium"]
    assert list(pools.values) == [f"value_reference_{member}" for member in range(3)]
    assert pools.support is not None
    assert np.array_equal(pools.support, stages.distance.ravel() <= np.float32(0.75))
    expected = stages.value[0, 1, :64].astype(np.float32)  # without the logged action
    assert np.array_equal(pools.scores["exact"][64:128], expected.astype(np.float64))
    assert pools.scorers["reversed"] == {1: "reversed@1", 2: "reversed@2"}


def test_exact_gains_and_reversed_is_unsafe_under_both_judges(stages: Stages) -> None:
    data = read_selection(stages.path)
    for judge in data.judges:
        result = audit_pools(data, judge, resamples=200)
        status = {name: s["verdict"]["status"] for name, s in result["scorers"].items()}
        # Six clusters establish harm, and rule nothing out.
        assert status == {"exact": "inconclusive", "reversed": "unsafe"}
        assert result["scorers"]["exact"]["gain"]["low"][-1] > 0
        assert (result["pools"], result["queries"], result["clusters"]) == (36, 18, 6)
        assert {name: (g["pools"], g["queries"]) for name, g in result["groups"].items()} == {
            "near": (12, 6),
            "medium": (12, 6),
            "far": (12, 6),
        }
        said = " ".join(data_sentences(result))
        assert said.startswith("36 pools of 18 queries, 2,304 candidates (64 in each pool)")
        assert "resampled in 6 whole clusters (column “trajectory”)" in said
    assert result["replicates"] is None
    assert audit_pools(data, "reference", resamples=50)["replicates"] == [
        f"value_reference_{member}" for member in range(3)
    ]


def test_the_audit_and_the_table_say_the_same(stages: Stages) -> None:
    data = read_selection(stages.path)
    result = audit_pools(data, "euclidean", resamples=50)
    rows = MeasuredPicks(data, resamples=50).rows
    for name in ("exact", "reversed"):
        scorer = result["scorers"][name]
        assert scorer["nregret"][-1] == pytest.approx(rows[name]["euclidean/nregret_64"]["mean"])
        assert scorer["tau_b"]["mean"] == pytest.approx(rows[name]["euclidean/tau_b_64"]["mean"])
        rate = scorer["off_support"]["rate"][-1]
        assert rate == pytest.approx(rows[name]["off_support_rate"]["mean"])


def test_every_judge_has_its_own_report(finished: Path) -> None:
    for folder, value in (
        ("audit", "value_reference_0 + value_reference_1 + value_reference_2"),
        ("audit_euclidean", "value_euclidean"),
    ):
        assert read_audit(finished / folder)["value"] == value
    picks = read_audit(finished / "audit_rollouts")
    assert (picks["kind"], picks["baseline"]) == ("picks", "random")
