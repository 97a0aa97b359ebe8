"""Critics that are followed at every step: the table of a check's episodes, and the answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paper.tests.zoo.test_zoo import checked
from toptail.errors import InputError
from toptail.io.json_files import read_json, write_json
from toptail.pools import JudgedPicks
from toptail_paper.zoo.followed import followed_answers, followed_table
from toptail_paper.zoo.leaderboard import write_leaderboard
from toptail_paper.zoo.scores import table_name
from toptail_paper.zoo.small import SmallZoo
from toptail_paper.zoo.summary import TASK

STARTS = 120
RNG = np.random.default_rng(7)
RANDOM = RNG.random(STARTS) < 0.3
CHANCES = {"raw": 0.4, "tdq": 0.8, "rank": 0.41, "clip": 0.05}


def episodes(check: Path, chances: dict[str, float] = CHANCES, seeds: int = 3) -> None:
    """Episodes of each critic with a chance to succeed, as `toptail check` writes them."""
    for critic, chance in chances.items():
        rng = np.random.default_rng([3, len(critic), round(100 * chance)])
        start, replicate = (axis.ravel() for axis in np.indices((STARTS, seeds)))
        success = rng.random(len(start)) < chance
        parts = {"K = 64": success, "K = 1": RANDOM[start]}
        order = rng.permutation(2 * len(start))  # no order of the rows is relied on
        rows = {
            "query": np.tile(start, 2)[order],
            "selector": np.repeat(list(parts), len(start))[order],
            "replicate": [str(42 + seed) for seed in np.tile(replicate, 2)[order]],
            "value": np.concatenate(list(parts.values())).astype(float)[order],
            "cluster": np.tile(start, 2)[order] // 3,
            "group": ["near"] * len(order),
        }
        home = check / "uniform" / "closed_loop" / critic
        home.mkdir(parents=True, exist_ok=True)
        JudgedPicks.from_arrow(pa.table(rows)).write(home / "picks.parquet")
    write_json(check / "check.json", {"scorers": dict.fromkeys(chances)})


def test_answers_are_those_of_a_loop_over_starts(tmp_path: Path) -> None:
    episodes(tmp_path)
    table = followed_table(tmp_path)
    assert table["start"].to_pylist() == sorted(table["start"].to_pylist())
    assert table["random"].to_pylist() == RANDOM.astype(int).tolist()
    raw = pq.read_table(tmp_path / "uniform" / "closed_loop" / "tdq" / "picks.parquet").to_pylist()
    wanted = [
        row["value"]
        for start in range(STARTS)
        for row in raw
        if (row["query"], row["selector"], row["replicate"]) == (start, "K = 64", "43")
    ]
    assert table["tdq@43"].to_pylist() == wanted

    path = tmp_path / "followed.parquet"
    pq.write_table(table, path)
    found = followed_answers(path)
    rows = table.to_pylist()
    mean = {name: sum(row[f"{name}@{s}"] for row in rows for s in (42, 43, 44)) for name in CHANCES}
    mean = {name: total / 3 / STARTS for name, total in mean.items()}
    random = sum(row["random"] for row in rows) / STARTS
    assert found["starts"] == STARTS
    assert found["random"]["mean"] == pytest.approx(random)
    for name, own in found["critics"].items():
        assert own["seeds"] == 3
        assert own["success"]["mean"] == pytest.approx(mean[name])
        assert own["more_than_random"]["mean"] == pytest.approx(mean[name] - random)
        if name != "raw":
            assert own["more_than_raw"]["mean"] == pytest.approx(mean[name] - mean["raw"])
            assert own["more_than_raw"]["low"] < own["more_than_raw"]["mean"]
    answers = {name: own.get("answer") for name, own in found["critics"].items()}
    assert answers == {"tdq": "better", "raw": None, "rank": "not decided", "clip": "worse"}


def test_intervals_resample_trajectories_and_not_episodes(tmp_path: Path) -> None:
    episodes(tmp_path)
    table = followed_table(tmp_path)
    alike = table.set_column(1, "cluster", pa.array(np.arange(STARTS) // 30))
    width = []
    for name, own in (("many", table), ("few", alike)):
        pq.write_table(own, tmp_path / f"{name}.parquet")
        success = followed_answers(tmp_path / f"{name}.parquet")["critics"]["raw"]["success"]
        width.append(success["high"] - success["low"])
    expected = 2 * 1.96 * (0.4 * 0.6 / (3 * STARTS)) ** 0.5  # of independent episodes
    assert width[0] == pytest.approx(expected, rel=0.3)
    assert width[1] != width[0]


def test_critics_join_those_of_the_same_starts_alone(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    episodes(old, {"raw": 0.4, "tdq": 0.8})
    episodes(new, {"raw": 0.9, "rank": 0.41})
    stored = tmp_path / "stored.parquet"
    pq.write_table(followed_table(old), stored)
    found = followed_table(new, stored)
    assert {"raw@42", "tdq@42", "rank@42"} <= set(found.column_names)
    assert found["raw@42"].equals(followed_table(old)["raw@42"])  # the stored row stays
    other = pq.read_table(stored)
    other = other.set_column(3, "random", pa.array(1 - other["random"].to_numpy()))
    pq.write_table(other, stored)
    with pytest.raises(InputError, match=r"stored.parquet has other starts"):
        followed_table(new, stored)
    episodes(old, {"tdq": 0.8})  # of a check before that one, raw's files are still there
    assert "raw@42" not in followed_table(old).column_names
    write_json(old / "check.json", {"scorers": {}})
    with pytest.raises(InputError, match="has no episodes"):
        followed_table(old)


def test_episodes_stay_with_their_leaderboard(tmp_path: Path) -> None:
    for critic, noise in (("tdq", 0.1), ("raw", 1.0)):
        checked(tmp_path / "check" / TASK / critic, critic, noise)
    check = tmp_path / "check" / TASK / "followed"
    episodes(check, {"raw": 0.4, "tdq": 0.8})
    home = write_leaderboard(tmp_path, TASK).parent
    content = read_json(home / "summary.json")
    assert content["in_episodes"]["critics"]["tdq"]["answer"] == "better"
    page = SmallZoo(tmp_path / "leaderboard", {})
    lines = [line for line in page.episodes().splitlines() if "PointMaze" in line]
    assert [line.split(" | ")[1] for line in lines] == ["TD-Q", "Raw bilinear", "Random action"]
    assert lines[0].endswith("| better |")
    assert lines[1].endswith("| – | – |")

    checked(tmp_path / "new" / "check" / TASK / "hybrid", "hybrid", 0.9)
    new = write_leaderboard(tmp_path / "new", TASK, stored=home).parent
    name = table_name(TASK, "followed")
    assert (new / name).read_bytes() == (home / name).read_bytes()


def test_episodes_alone_join_a_stored_leaderboard(tmp_path: Path) -> None:
    for critic, noise in (("tdq", 0.1), ("raw", 1.0)):
        checked(tmp_path / "old" / "check" / TASK / critic, critic, noise)
    stored = write_leaderboard(tmp_path / "old", TASK).parent
    check = tmp_path / "new" / "check" / TASK / "followed"
    episodes(check, {"raw": 0.4, "tdq": 0.8})
    with pytest.raises(InputError, match="no check of a critic"):
        write_leaderboard(tmp_path / "new", TASK)
    home = write_leaderboard(tmp_path / "new", TASK, stored=stored).parent
    before, after = (read_json(each / "summary.json") for each in (stored, home))
    assert after.pop("in_episodes")["starts"] == STARTS
    assert after == before
