"""The zoo: its jobs, the stored scores, and the answers by the declared rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toptail
from toptail.errors import InputError
from toptail.lab.critics.registry import names
from toptail_paper.commands.zoo import ROUNDS, Zoo
from toptail_paper.zoo import page
from toptail_paper.zoo.scores import joined, ranks
from toptail_paper.zoo.summary import Shares, answers, captured_shares, cure


def test_every_critic_beyond_the_paper_is_trained_and_checked_on_pointmaze(tmp_path: Path) -> None:
    jobs = {job.name: job for job in Zoo(out=tmp_path, task=("PointMaze",)).jobs()}
    for critic in names("other"):
        assert f"train PointMaze {critic}" in jobs
        check = jobs[f"check PointMaze {critic}"]
        assert jobs[f"train PointMaze {critic}"].id in check.needs
    head = jobs["train PointMaze value_head"]
    assert jobs["train PointMaze raw"].id in head.needs
    words: Any = head.content["command"]
    assert words[words.index("--on") + 1].endswith("pointmaze-medium-navigate-v0/raw")


def test_the_cure_is_measured_on_four_tasks() -> None:
    cured = {task for tasks, critics in ROUNDS for task in tasks if "value_head" in critics}
    assert cured == {"PointMaze", "AntMaze", "HumanoidMaze", "AntSoccer"}


def test_a_critic_of_ones_own_is_trained_beside_those_that_it_is_compared_with(
    tmp_path: Path,
) -> None:
    jobs = Zoo(out=tmp_path, task=("PointMaze",), critics=("clip",)).jobs()
    trained = [job.name.split()[-1] for job in jobs if job.name.startswith("train")]
    assert trained == ["diffusion", "tdq", "raw", "clip"]
    with pytest.raises(InputError, match="mazes alone"):
        Zoo(out=tmp_path, task=("Scene",)).jobs()


def test_ranks_keep_the_order_and_the_ties_of_a_query() -> None:
    scores = np.array([[0.5, -1.0, 0.5, 7.0], [3.0, 2.0, 1.0, 0.0]])
    assert ranks(scores).tolist() == [[1, 0, 1, 3], [3, 2, 1, 0]]


def test_ensembles_of_all_networks_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    networks = rng.normal(size=(3, 2, 4, 5)).astype(np.float32)  # seeds, networks, queries, n
    stored = {f"tdq@{seed}": own.mean(axis=0) for seed, own in enumerate(networks)}
    stored |= {f"tdq.q_min@{seed}": own.min(axis=0) for seed, own in enumerate(networks)}
    found = dict(joined(stored))
    flat = networks.reshape(6, 4, 5)
    for q, n in np.ndindex(4, 5):
        members = [float(x[q, n]) for x in flat]
        mean = sum(members) / 6
        spread = (sum((x - mean) ** 2 for x in members) / 6) ** 0.5
        assert found["tdq_all_mean"][q, n] == pytest.approx(mean, abs=1e-5)
        assert found["tdq_all_min"][q, n] == pytest.approx(min(members), abs=1e-5)
        assert found["tdq_all_lcb"][q, n] == pytest.approx(mean - spread, abs=1e-5)
    assert set(found) == {"tdq_all_mean", "tdq_all_min", "tdq_all_lcb"}


def test_captured_shares_are_those_of_the_audit() -> None:
    path = page.RESULTS / "pointmaze_nearest.parquet"
    shares = captured_shares(path)
    found = toptail.audit(
        path, scores=["raw@42", "raw@43", "raw@44"], values="value", query="query"
    )
    assert shares.of("raw")[0] == pytest.approx(found.to_dict()["scorers"]["raw"]["captured"][-1])


def made_up(more: float, spread: float) -> Shares:
    """raw at .7, TD-Q at .95, and a head that captures ``more`` than raw, with a spread."""
    rng = np.random.default_rng(1)
    point = np.array([0.7, 0.7 + more, 0.95])
    draws = point + spread * rng.normal(size=(2000, 3)) * [0, 1, 0]
    return Shares(["raw", "value_head", "tdq"], point, draws)


def rows() -> dict[str, dict[str, Any]]:
    captured = {source: {"mean": 0.9, "status": "safe"} for source in ("nearest", "uniform")}
    row = {"captured": captured, "ascent": "safe", "auc": 0.95}
    return {name: json.loads(json.dumps(row)) for name in ("raw", "value_head", "tdq")}


@pytest.mark.parametrize(
    ("more", "spread", "than_raw", "answer"),
    [
        (0.20, 0.01, "better", "cured"),
        (0.10, 0.01, "better", "partly cured"),
        (0.00, 0.01, "no better", "not cured"),
        (0.05, 0.10, "not decided", "partly cured"),
    ],
)
def test_answers_follow_the_declared_rules(
    more: float, spread: float, than_raw: str, answer: str
) -> None:
    shares = dict.fromkeys(("nearest", "uniform"), made_up(more, spread))
    assert answers(rows(), shares)["value_head"]["than_raw"] == than_raw
    assert cure(shares)["answer"] == answer


def test_safe_needs_both_kinds_of_candidates_and_the_ascent() -> None:
    shares = dict.fromkeys(("nearest", "uniform"), made_up(0.2, 0.01))
    own = rows()
    own["tdq"]["ascent"] = "unsafe"
    own["value_head"]["captured"]["uniform"]["status"] = "inconclusive"
    found = answers(own, shares)
    assert [found[name]["safe"] for name in ("raw", "value_head", "tdq")] == [True, False, False]


def test_the_page_and_the_library_s_summary_are_made_of_what_is_stored() -> None:
    content = json.loads((page.RESULTS / "summary.json").read_text("utf-8"))
    text = page.PAGE.read_text("utf-8")
    assert page.refreshed(text, content) == text
    assert json.loads(page.SHIPPED.read_text("utf-8")) == page.shipped(content)
    assert page.SHIPPED.stat().st_size < 200_000


@pytest.mark.slow
def test_the_stored_summary_is_that_of_the_stored_scores() -> None:
    from toptail_paper.zoo.summary import summary

    stored = json.loads((page.RESULTS / "summary.json").read_text("utf-8"))
    assert json.loads(json.dumps(summary(page.RESULTS))) == stored


def test_the_figure_has_a_point_for_each_critic_that_was_trained() -> None:
    content = json.loads((page.RESULTS / "summary.json").read_text("utf-8"))
    drawn = page.figure(content).axes[0].texts
    titles = {row["title"] for row in content["critics"].values() if row["auc"] is not None}
    assert titles <= {text.get_text() for text in drawn}
