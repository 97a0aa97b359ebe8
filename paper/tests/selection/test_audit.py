"""The study's pools and picks through the audit that any table goes through."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paper.tests.selection.stored_stages import Stages
from toptail.report.text import data_sentences
from toptail.results import read_audit
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.tables import MeasuredPicks
from toptail_paper.selection.write import audit_pools, to_pools


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
