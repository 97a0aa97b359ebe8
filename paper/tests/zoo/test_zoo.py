"""The zoo: its jobs, the stored scores, and the answers by the declared rules."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toptail
from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.files import entries
from toptail.io.json_files import write_json
from toptail.lab.critics.registry import CRITICS, names
from toptail.lab.tasks.queries import load_queries
from toptail_paper.commands.zoo import ROUNDS, Zoo
from toptail_paper.study.naming import task_title
from toptail_paper.zoo import page
from toptail_paper.zoo.answers import (
    answers,
    by_its_own_kind,
    cure,
    cure_answer,
    gap,
    split,
    studied_cure,
)
from toptail_paper.zoo.cells import TARGETS, followed, than_raw
from toptail_paper.zoo.figures import OBJECTIVES, figure, small_figure
from toptail_paper.zoo.leaderboard import write_leaderboard
from toptail_paper.zoo.scores import SOURCES, joined, ranks, score_table
from toptail_paper.zoo.shares import Floats, ScoreTable, Shares
from toptail_paper.zoo.small import SmallZoo
from toptail_paper.zoo.summary import TASK, simulated, summary, title, trained_by


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
    for typed in ("tdq[reward=0_1]", "tdq[reward=0/1]"):  # a row of its own, beside TD-Q's
        zoo = Zoo(out=tmp_path, task=("PointMaze",), critics=(typed,), no_studies=True)
        jobs = zoo.jobs()
        trained = [job.name.split()[-1] for job in jobs if job.name.startswith("train")]
        assert trained == ["tdq", "raw", "tdq[reward=0_1]"]
        (check,) = (job for job in jobs if job.name == "check PointMaze every")
        assert "tdq[reward=0_1]/seed-4*" in str(check.content["command"])
    with pytest.raises(InputError, match="no critic 'nope'"):
        Zoo(out=tmp_path, task=("PointMaze",), critics=("nope",)).jobs()
    with pytest.raises(InputError, match="mazes alone"):
        Zoo(out=tmp_path, task=("Scene",)).jobs()


def test_without_the_studies_there_are_checks_alone(tmp_path: Path) -> None:
    sizes = ("hidden=128,embed_dim=64",)
    zoo = Zoo(out=tmp_path, task=("AntMaze",), critics=("ordinal",), no_studies=True, set=sizes)
    jobs = {job.name: job for job in zoo.jobs()}
    assert not [name for name in jobs if "diffusion" in name or name.startswith("s")]
    words: dict[str, Any] = {name: job.content.get("command") for name, job in jobs.items()}
    tdq, raw = (words[f"train AntMaze {critic}"] for critic in ("tdq", "raw"))
    assert tdq[tdq.index("--seeds") + 1] == "42,43,44,101,102,103"  # critics, and the reference
    assert tdq[tdq.index("--set") + 1] == "hidden=128"
    assert raw[raw.index("--set") + 1] == "hidden=128,embed_dim=64"
    simulated = words["check AntMaze simulator"]
    assert [name for name in jobs if name.startswith("check")] == [
        "check AntMaze every",
        "check AntMaze simulator",
        "check AntMaze followed",
    ]
    assert simulated.count("--scorer") == 7  # two networks of TD-Q and raw have readouts of both
    assert words["check AntMaze every"].count("--scorer") == 7
    assert words["check AntMaze followed"].count("--scorer") == 3
    for kind in ("simulator", "followed"):
        assert jobs[f"check AntMaze {kind}"].id in jobs["leaderboard of AntMaze"].needs
    point = Zoo(out=tmp_path, task=("PointMaze",), critics=("ordinal",), no_studies=True).jobs()
    checks = {j.name: str(j.content["command"]) for j in point if j.name.startswith("check")}
    kinds = ("every", "every-10000", "simulator")
    assert list(checks) == [f"check PointMaze {kind}" for kind in kinds]
    assert "10000" in checks["check PointMaze every-10000"]
    assert checks["check PointMaze every-10000"].count("--scorer") == 3  # no further readouts
    assert "'--pool-size', '64'" in checks["check PointMaze simulator"]  # those of 'every'
    with pytest.raises(InputError, match="a study has the sizes"):
        Zoo(out=tmp_path, task=("AntMaze",), no_studies=True, set=("gamma=0.5",)).jobs()


def test_every_objective_has_a_word_and_a_colour() -> None:
    objectives = {critic.trained_by for critic in CRITICS.values()}
    assert objectives <= set(TARGETS)
    assert objectives <= set(OBJECTIVES)


def test_a_row_with_settings_is_named_by_them() -> None:
    assert (title("tdq[reward=0_1]"), trained_by("tdq[reward=0_1]")) == (
        "TD-Q (reward 0/1)",
        "bellman",
    )
    assert title("tdq.q_min") == "TD-Q: minimum of 2 networks"
    assert trained_by("raw_all_lcb") == "contrastive"
    assert trained_by("straight") is None


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
    shares = ScoreTable(path).captured()
    found = toptail.audit(
        path, scores=["raw@42", "raw@43", "raw@44"], values="value", query="query"
    )
    assert shares.of("raw")[0] == pytest.approx(found.to_dict()["scorers"]["raw"]["captured"][-1])


def written(path: Path, value: Floats, **further: Floats) -> ScoreTable:
    """A stored table with the judge's repetitions ``value`` ``[r, queries, n]``."""
    queries, size = value.shape[1:]
    query = np.repeat(np.arange(queries), size)
    columns = {"query": query, "cluster": query, "group": ["near"] * len(query)}
    columns |= {"value": value.mean(axis=0).ravel()}
    columns |= {f"value_{number}": own.ravel() for number, own in enumerate(value)}
    scores = {name: own.ravel() for name, own in further.items()}
    pq.write_table(pa.table(columns | scores), path)
    return ScoreTable(path)


def test_gains_and_headroom_are_those_of_a_loop_over_queries(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    expected, scores = rng.random((2, 60, 8))
    value = expected + rng.normal(0, 0.3, (2, 60, 8))
    value[:, :, 1] = value[:, :, 0]  # candidates that are tied
    table = written(tmp_path / "t.parquet", value, raw=scores, mine=np.zeros((60, 8)))
    mean = value.mean(axis=0)
    gain = sum(v[s.argmax()] - sum(v) / 8 for v, s in zip(mean, scores, strict=True)) / 60
    best = 0.0
    for judged, picked in ((value[0], value[1]), (value[1], value[0])):
        for v, p in zip(judged, picked, strict=True):
            top = [v[n] for n in range(8) if p[n] == max(p)]
            best += (sum(top) / len(top) - sum(v) / 8) / 120
    found = simulated(table)
    assert set(found) == {"raw", "mine"}
    assert found["raw"]["gain"]["mean"] == pytest.approx(gain)
    assert found["raw"]["gain"]["low"] < gain < found["raw"]["gain"]["high"]
    assert found["raw"]["more_than_raw"] == {"mean": 0, "low": 0, "high": 0, "p": 1}
    assert found["mine"]["gain"]["mean"] == pytest.approx(0, abs=1e-12)  # all scores are equal
    assert found["mine"]["more_than_raw"]["mean"] == pytest.approx(-gain)
    assert table.headroom()["mean"] == pytest.approx(best)
    highest = sum(max(v) - sum(v) / 8 for v in mean) / 60  # the judge's mean is the value
    assert table.captured().of("raw")[0] == pytest.approx(gain / highest)
    audited = table.audit().to_dict()["scorers"]["raw"]
    assert audited["captured"][-1] == pytest.approx(gain / best)  # an audit knows that it is noisy
    assert found["raw"]["status"] == audited["verdict"]["status"]


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
        (0.05, 0.10, "not decided", "not decided"),
    ],
)
def test_answers_follow_the_declared_rules(
    more: float, spread: float, than_raw: str, answer: str
) -> None:
    shares = dict.fromkeys(("nearest", "uniform"), made_up(more, spread))
    own = rows()
    for name, found in answers(own, shares).items():
        own[name] |= found
    assert own["value_head"]["than_raw"] == than_raw
    assert cure(own, shares)["answer"] == answer


def test_a_cure_has_to_be_better_and_to_leave_the_critic_safe() -> None:
    much = [{"closed": 0.8, "low": 0.7, "high": 0.9}]
    assert cure_answer(much, better=True, safe=True) == "cured"
    assert cure_answer(much, better=True, safe=False) == "partly cured"
    assert cure_answer(much, better=False, safe=True) == "not decided"


def test_the_cure_on_a_walker_is_that_of_its_stored_replicates() -> None:
    home = page.RESULTS / "selection" / page.ANTMAZE
    found = studied_cure(home, "AntMaze")
    rows = json.loads((home / "tables" / "fixed-query.json").read_text("utf-8"))["rows"]["AntMaze"]
    raw, head, tdq = (rows[name]["nregret_64"]["mean"] for name in ("raw", "value_head", "tdq"))
    assert found["closed"] == pytest.approx((raw - head) / (raw - tdq))
    with np.load(home / "replicates" / "AntMaze.npz") as stored:
        draws = [stored[f"fixed-query/{name}/nregret_64"] for name in ("raw", "value_head", "tdq")]
    closed = sorted(
        (float(r) - float(h)) / (float(r) - float(t)) for r, h, t in zip(*draws, strict=True)
    )
    assert closed[15] < found["low"] < closed[35]
    assert found["low"] < found["closed"] < found["high"] < 0.5


def test_an_ensemble_of_tdqs_alone_calls_no_critic_with_a_bellman_loss_better() -> None:
    critics = {
        "tdq": "bellman",
        "conservative": "bellman",
        "value_head": "bellman",
        "hybrid": "both",
        "rank": "returns",
        "straight": None,
    }
    gains = {
        "tdq": {"more_than_raw": {"low": 0.001, "p": 0.01}},
        "value_head": {"more_than_raw": {"low": -1, "p": 0.01}},
        "hybrid": {"more_than_raw": {"low": 0.001, "p": 0.06}},  # not after Holm's correction
    }
    own = {name: {"trained_by": by} for name, by in critics.items()}
    assert by_its_own_kind(own, gains) == {"conservative", "value_head", "hybrid"}


def test_what_may_not_be_called_better_may_still_be_no_better() -> None:
    small, large = (dict.fromkeys(SOURCES, made_up(more, 0.001)) for more in (0.03, 0.2))
    found = [answers(rows(), own, {"value_head"})["value_head"] for own in (small, large)]
    assert [each["than_raw"] for each in found] == ["no better", "not decided"]


def test_what_a_critic_misses_is_split_at_its_ideal() -> None:
    point = np.array([0.7, 0.95, 0.8])  # raw, TD-Q, and the ideal of raw's objective
    draws = point + 0.01 * np.random.default_rng(1).normal(size=(2000, 3))
    own = Shares(["raw", "tdq", "log_ratio"], point, draws)
    found = split(dict.fromkeys(SOURCES, own))
    assert {name: row["ideal"] for name, row in found.items()} == {
        "raw": "log_ratio",
        "tdq": "q_star",
    }
    own = Shares(["raw", "tdq[reward=0_1]", "log_ratio"], point, draws)
    other = split(dict.fromkeys(SOURCES, own))  # a row with settings has its critic's ideal
    assert other["tdq[reward=0_1]"] == found["tdq"]
    raw, tdq = (found[name]["nearest"] for name in ("raw", "tdq"))
    assert raw["objective"]["mean"] == pytest.approx(0.2)
    assert raw["rest"]["mean"] == pytest.approx(0.1)
    assert raw["rest"]["low"] < 0.1 < raw["rest"]["high"]
    assert tdq["objective"] == {"mean": 0, "low": 0, "high": 0}  # judged by its own ideal
    assert tdq["rest"]["mean"] == pytest.approx(0.05)


def test_the_gap_is_split_into_what_the_head_closes_and_three_reasons() -> None:
    names = ["raw", "value_head", "fitted_phi", "fitted_inputs", "tdq"]
    point = np.array([0.3, 0.5, 0.6, 0.8, 0.9])
    draws = point + 0.01 * np.random.default_rng(1).normal(size=(2000, 5))
    found = gap({"nearest": Shares(names, point, draws)})["nearest"]
    shares = {name: cell["mean"] for name, cell in found.items()}
    wanted = {"closed": 2 / 6, "training": 1 / 6, "missing": 2 / 6, "not_fitted": 1 / 6}
    assert shares == pytest.approx(wanted)
    assert all(cell["low"] < cell["mean"] < cell["high"] for cell in found.values())


def test_a_critic_that_loses_to_raw_on_both_kinds_is_called_worse() -> None:
    less, more = {"high": -0.1}, {"high": 0.01}
    row: dict[str, Any] = {"than_raw": "no better"}
    assert than_raw(row | {"more_than_raw": {"nearest": less, "uniform": less}}) == "worse"
    assert than_raw(row | {"more_than_raw": {"nearest": less, "uniform": more}}) == "no better"
    assert than_raw({}) == "–"


def test_a_critic_that_is_not_safe_when_followed_says_so() -> None:
    loop = {"mean": 0.456, "status": "no gain"}
    assert followed({"followed": {"uniform": loop}}) == "46 %, no gain"
    assert followed({"followed": {"uniform": loop | {"status": "safe"}}}) == "46 %"


def test_rows_that_explain_others_get_no_answer_and_stand_in_no_leaderboard(tmp_path: Path) -> None:
    for critic, noise in (("tdq", 0.1), ("raw", 1.0), ("log_ratio", 0.2)):
        checked(tmp_path / "check" / TASK / critic, critic, noise)
    text = write_leaderboard(tmp_path, TASK).read_text("utf-8")
    content = json.loads((tmp_path / "leaderboard" / TASK / "summary.json").read_text("utf-8"))
    assert "Ideal" not in text
    assert "than_raw" not in content["critics"]["log_ratio"]
    assert content["split"]["raw"]["nearest"]["rest"]["mean"] > 0.2


def test_where_tdq_is_not_better_than_raw_nothing_is_asked_of_the_head() -> None:
    shares = dict.fromkeys(SOURCES, made_up(0.2, 0.01))
    own = rows()
    for name, found in answers(own, shares, {"tdq"}).items():
        own[name] |= found
    found = cure(own, shares)
    assert found["answer"] == "not asked"
    assert found["nearest"]["closed"] == pytest.approx(0.8)


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


STORED = {TASK: page.RESULTS} | {
    f"small {home.name}": home for home in entries(page.RESULTS / "small")
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_the_stored_summary_is_that_of_the_stored_scores(name: str) -> None:
    def read(text: str) -> Any:  # the last bits of sums depend on the machine's BLAS
        return json.loads(text, parse_float=lambda x: round(float(x), 9))

    stored = (STORED[name] / "summary.json").read_text("utf-8")
    assert read(json.dumps(summary(STORED[name], name.split()[-1]))) == read(stored)


def test_the_figure_has_a_point_for_each_critic_that_was_trained() -> None:
    content = json.loads((page.RESULTS / "summary.json").read_text("utf-8"))
    drawn = figure(content).axes[0].texts
    titles = {row["title"] for row in content["critics"].values() if row["auc"] is not None}
    assert titles <= {text.get_text() for text in drawn}


def test_the_small_zoo_has_a_panel_for_each_task() -> None:
    tasks = SmallZoo(page.RESULTS / "small", {}).tasks
    drawn = small_figure(tasks)
    assert [axes.get_title().split(",")[0] for axes in drawn.axes] == [*map(task_title, tasks)]
    for axes, content in zip(drawn.axes, tasks.values(), strict=True):
        trained = {row["title"] for row in content["critics"].values() if row["auc"] is not None}
        assert trained <= {text.get_text() for text in axes.texts}


def checked(folder: Path, critic: str, noise: float) -> None:
    """The files of a check that the leaderboard reads: a critic that is right but for noise."""
    queries = page.RESULTS / "selection" / TASK / "queries.npz"
    count, size, rng = len(load_queries(queries)), 4, np.random.default_rng(5)
    actions = rng.uniform(-1, 1, (count, size, 2)).astype(np.float32)
    value = rng.random((count, size)).astype(np.float32)
    scores = {f"{critic}@{seed}": value + noise * rng.normal(size=value.shape) for seed in (1, 2)}
    for source in SOURCES:
        home = folder / source
        home.mkdir(parents=True)
        query = np.repeat(np.arange(count), size)
        columns = {"query": query, "cluster": query, "group": ["near"] * len(query)}
        table = pa.table(columns | {"value": value.reshape(-1)})
        pq.write_table(table, home / "table.parquet")
        own = {f"scores/{name}": x.astype(np.float32) for name, x in scores.items()}
        write_arrays(home / "pools.npz", {"actions": actions, **own})
    shutil.copyfile(queries, folder / "queries.npz")
    worth = {"mean": 0.75, "low": 0.5, "high": 1.0}
    loop = {"status": "safe", "k_max": 64, "worth": {"K = 64": worth, "K = 1": worth}}
    parts: list[Any] = [{"pools": source, "closed_loop": loop} for source in SOURCES]
    parts.append({"pools": "ascent", "one_step": {"status": "no gain", "worth": {}}})
    check: dict[str, Any] = {"scorers": {critic: {"parts": parts}}, "settings": {}, "not_done": []}
    check["record"] = {"commit": "abc"}
    write_json(folder / "check.json", check)


def test_a_run_of_the_zoo_has_a_leaderboard(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no check of a critic"):
        write_leaderboard(tmp_path, TASK)
    for critic, noise in (("tdq", 0.1), ("raw", 1.0), ("hybrid", 0.9)):
        checked(tmp_path / "check" / TASK / critic, critic, noise)
        run = tmp_path / "runs" / TASK / critic / "seed-1"
        run.mkdir(parents=True)
        record = {"seconds": 60.0, "data": {"source": "/home/me/out/data/d.npz"}}
        write_json(run / "record.json", record)
        (run / "metrics.jsonl").write_text('{"step": 9, "auc": 0.75}\n')
    larger = {"k_max": 10000, "captured": 0.5, "captured_low": 0.25, "captured_high": 0.75}
    part = {"one_step": {"status": "unsafe", "reason": "", "queries": 180, **larger}}
    scorers = {"raw": {"parts": [part]}}
    in_larger = tmp_path / "check" / TASK / "raw-10000" / "check.json"
    in_larger.parent.mkdir()
    write_json(in_larger, {"scorers": scorers, "record": {"commit": "abc"}})
    text = write_leaderboard(tmp_path, TASK).read_text("utf-8")
    board, together, further = (
        [line.strip("| ").split(" | ") for line in part.splitlines()] for part in text.split("\n\n")
    )
    rows = {row[0]: row for row in board[2:]}
    assert list(rows)[:3] == ["TD-Q", "Hybrid", "Raw bilinear"]
    assert rows["TD-Q"][4:] == ["safe", "75 %", "better", "0.750"]
    assert rows["Straight line to the goal"][-1] == "–"
    assert len(together) == 2  # runs of one network each: no ensemble
    assert further[0] == ["critic", "τ_b", "ascent", "best of 10,000", "seconds"]
    rows = {row[0]: row for row in further[2:]}
    assert rows.keys() == {"TD-Q", "Hybrid", "Raw bilinear"}
    assert rows["TD-Q"][2:] == ["no gain", "–", "60"]
    assert rows["Raw bilinear"][3] == "unsafe, 0.50 [0.25, 0.75]"
    content = json.loads((tmp_path / "leaderboard" / TASK / "summary.json").read_text("utf-8"))
    assert "/home" not in (tmp_path / "leaderboard" / TASK / "runs.json").read_text("utf-8")
    assert content["cure"] is None
    assert content["commit"] == "abc"
    found = toptail.audit(
        tmp_path / "leaderboard" / TASK / "pointmaze_nearest.parquet",
        scores=["tdq@1", "tdq@2"],
        values="value",
        query="query",
    )
    captured = content["critics"]["tdq"]["captured"]["nearest"]["mean"]
    assert captured == pytest.approx(found.to_dict()["scorers"]["tdq"]["captured"][-1])
    straight = load_queries(page.RESULTS / "selection" / TASK / "queries.npz")
    assert straight.states.shape[1] == 2  # an action is a displacement, so that the line is a row
    assert {"straight", "random"} <= content["critics"].keys()


def test_the_value_of_a_judge_with_members_is_their_mean(tmp_path: Path) -> None:
    checked(tmp_path / "raw", "raw", 1.0)
    path = tmp_path / "raw" / "nearest" / "table.parquet"
    table = pq.read_table(path)
    value = table["value"].to_numpy()
    members = table.drop_columns("value").append_column("value_head@42", pa.array(100 * value))
    for number, shift in enumerate((0.0, 1.0, 5.0)):
        members = members.append_column(f"value_{number}", pa.array(value + np.float32(shift)))
    pq.write_table(members, path)
    found = score_table([tmp_path / "raw"], "nearest")
    np.testing.assert_allclose(found["value"].to_numpy(), value + 2.0, rtol=1e-6)
    for number, shift in enumerate((0.0, 1.0, 5.0)):  # the members stay for the verdict
        np.testing.assert_allclose(found[f"value_{number}"].to_numpy(), value + shift, rtol=1e-6)


def test_a_row_is_added_to_a_stored_leaderboard(tmp_path: Path) -> None:
    for out, critics in (("old", {"tdq": 0.1, "raw": 1.0}), ("new", {"hybrid": 0.9})):
        for critic, noise in critics.items():
            checked(tmp_path / out / "check" / TASK / critic, critic, noise)
    old = write_leaderboard(tmp_path / "old", TASK).parent
    new = write_leaderboard(tmp_path / "new", TASK, stored=old).parent
    stored, found = (pq.read_table(home / "pointmaze_nearest.parquet") for home in (old, new))
    assert found.select(stored.column_names).equals(stored)
    assert set(found.column_names) - set(stored.column_names) == {"hybrid@1", "hybrid@2"}
    content = json.loads((new / "summary.json").read_text("utf-8"))["critics"]
    assert {"tdq", "raw", "hybrid", "straight", "random"} == set(content)
    assert content["tdq"]["ascent"] == "no gain"
    checked(tmp_path / "again" / "check" / TASK / "raw", "raw", 0.3)
    again = write_leaderboard(tmp_path / "again", TASK, stored=old).parent
    assert pq.read_table(again / "pointmaze_nearest.parquet").equals(stored)  # the stored row stays
    run = tmp_path / "new" / "runs" / TASK / "raw" / "seed-1"
    run.mkdir(parents=True)
    write_json(run / "record.json", {"seconds": 1.0, "config_hash": "width 512"})
    before = {f"{TASK}/raw/seed-1": {"seconds": 1.0, "config_hash": "width 128"}}
    write_json(old / "runs.json", before)
    with pytest.raises(InputError, match="raw/seed-1 with other settings than this run"):
        write_leaderboard(tmp_path / "new", TASK, stored=old)  # small and full are never mixed
    shutil.rmtree(tmp_path / "new" / "runs")
    moved = stored.set_column(3, "value", pa.array(1 - stored["value"].to_numpy()))
    pq.write_table(moved, old / "pointmaze_nearest.parquet")
    with pytest.raises(InputError, match=r"pointmaze_nearest.parquet has other"):
        write_leaderboard(tmp_path / "new", TASK, stored=old)
    with pytest.raises(InputError, match="name the folder of an earlier leaderboard"):
        write_leaderboard(tmp_path / "new", TASK, stored=tmp_path)


def test_a_stored_simulator_stays_with_its_leaderboard(tmp_path: Path) -> None:
    for out, critics in (("old", ("tdq", "raw")), ("new", ("hybrid",))):
        for critic in critics:
            checked(tmp_path / out / "check" / TASK / critic, critic, 0.5)
    home = tmp_path / "old" / "check" / TASK / "simulator"
    checked(home, "tdq", 0.1)
    old = write_leaderboard(tmp_path / "old", TASK).parent
    new = write_leaderboard(tmp_path / "new", TASK, stored=old).parent
    stored, found = (json.loads((each / "summary.json").read_text("utf-8")) for each in (old, new))
    assert {"tdq", "raw"} <= stored["simulator"].keys()
    assert found["simulator"].keys() - stored["simulator"].keys() == {"hybrid"}
    for name, row in stored["simulator"].items():
        assert found["simulator"][name]["gain"] == row["gain"]
    shutil.rmtree(home)
    assert "simulator" not in json.loads(
        (write_leaderboard(tmp_path / "old", TASK).parent / "summary.json").read_text("utf-8")
    )


def test_another_judge_values_the_picks_of_the_stored_scores(tmp_path: Path) -> None:
    for critic, noise in (("tdq", 0.1), ("raw", 1.0)):
        checked(tmp_path / "check" / TASK / critic, critic, noise)
    again = tmp_path / "check" / TASK / "simulator"
    checked(again, "tdq", 0.1)
    path = again / "nearest" / "table.parquet"
    table = pq.read_table(path)
    value = table["value"].to_numpy()
    table = table.drop_columns("value").append_column("value_0", pa.array(1 - value))
    table = table.append_column("value_1", pa.array(np.float32(0.5) - value))
    pq.write_table(table, path)  # the reverse of the first judge
    home = write_leaderboard(tmp_path, TASK).parent
    content = json.loads((home / "summary.json").read_text("utf-8"))
    stored = pq.read_table(home / "pointmaze_nearest.parquet")
    gains = []
    for column in ("tdq@1", "tdq@2"):
        ranked = stored[column].to_numpy().reshape(-1, 4)
        for v, r in zip((0.75 - value).reshape(-1, 4), ranked, strict=True):
            gains.append(v[r.argmax()] - sum(v) / 4)
    found = content["simulator"]
    assert found["tdq"]["gain"]["mean"] == pytest.approx(sum(gains) / len(gains), abs=1e-6)
    assert found["tdq"]["more_than_raw"]["high"] < 0  # what was best is worst
    assert content["simulated_k"] == 4
    assert content["critics"]["tdq"]["than_raw"] == "better"  # the exact value decides

    other = stored.set_column(3, "value", pa.array(1 - stored["value"].to_numpy()))
    pq.write_table(other, home / "pointmaze_nearest.parquet")
    with pytest.raises(InputError, match="is about other candidates than"):
        summary(home)
    moved = read_arrays(again / "nearest" / "pools.npz")
    write_arrays(again / "nearest" / "pools.npz", {**moved, "actions": moved["actions"] + 1})
    with pytest.raises(InputError, match="has other candidates than"):
        write_leaderboard(tmp_path, TASK)


def test_a_judge_with_doubts_decides_nothing(tmp_path: Path) -> None:
    for critic, noise in (("tdq", 0.1), ("raw", 1.0)):
        home = tmp_path / "check" / TASK / critic
        checked(home, critic, noise)
        check = json.loads((home / "check.json").read_text("utf-8"))
        doubt = {"what": "one step (uniform)", "why": "The reference is not admitted."}
        write_json(home / "check.json", check | {"not_done": [doubt]})
    home = write_leaderboard(tmp_path, TASK).parent
    content = json.loads((home / "summary.json").read_text("utf-8"))
    assert content["doubts"] == {"uniform": "The reference is not admitted."}
    statuses = [cell["status"] for cell in content["critics"]["tdq"]["captured"].values()]
    assert statuses == ["safe", "inconclusive"]
    assert not content["critics"]["tdq"]["safe"]
    assert content["critics"]["tdq"]["than_raw"] == "not decided"
    assert than_raw(content["critics"]["random"]) == "not decided"


def test_checks_of_other_candidates_have_no_common_table(tmp_path: Path) -> None:
    checked(tmp_path / "raw", "raw", 1.0)
    checked(tmp_path / "tdq", "tdq", 0.1)
    path = tmp_path / "tdq" / "uniform" / "pools.npz"
    arrays = read_arrays(path)
    write_arrays(path, {**arrays, "actions": arrays["actions"] + 1})
    folders = [tmp_path / "raw", tmp_path / "tdq"]
    assert score_table(folders, "nearest").num_rows == 6000
    with pytest.raises(InputError, match="other queries, candidates or values"):
        score_table(folders, "uniform")
