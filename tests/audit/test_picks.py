from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import toptail
from toptail import JudgedPicks
from toptail.cli import main
from toptail.results import read_audit


def audit_picks(picks: JudgedPicks, **settings: Any) -> dict[str, Any]:
    """The content of ``audit.json`` by the public call."""
    return toptail.audit_picks(picks, **settings).to_dict()


def picks(queries: int = 80, repeats: int = 4, shared: bool = True, seed: int = 0) -> pa.Table:
    """Three selectors; 'good' is 0.5 above 'random'; repetitions share their randomness or not."""
    rng = np.random.default_rng(seed)
    gain = {"random": 0.0, "good": 0.5, "bad": -0.5}
    level = rng.normal(size=queries)
    noise = rng.normal(size=(queries, repeats))
    rows: dict[str, list[Any]] = {n: [] for n in ("query", "selector", "replicate", "value", "key")}
    for name, effect in gain.items():
        own = noise if shared else rng.normal(size=noise.shape)
        for q in range(queries):
            for r in range(repeats):
                own_noise = 0.1 * rng.normal()
                rows["query"].append(q)
                rows["selector"].append(name)
                rows["replicate"].append(r)
                rows["value"].append(level[q] + effect + own[q, r] + own_noise)
                rows["key"].append(f"{q}/{r}" if shared else f"{q}/{r}/{name}")
    return pa.table(rows)


def rows(result: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["a"], r["b"]): r for r in result["comparisons"]}


def test_differences_are_paired_and_read_against_random() -> None:
    result = audit_picks(JudgedPicks.from_arrow(picks()), resamples=1_000)
    assert result["baseline"] == "random"
    gain = rows(result)["good", "random"]
    assert gain["low"] < 0.5 < gain["high"]
    assert gain["high"] - gain["low"] < 0.1  # unpaired it would be about 0.5
    assert gain["half_width"] == pytest.approx((gain["high"] - gain["low"]) / 2)
    assert gain["p_holm"] < 0.05
    assert rows(result)["bad", "random"]["high"] < 0
    assert gain["queries"] == 80
    assert result["selectors"]["good"]["replicates"] == 4


def test_difference_equals_the_mean_of_query_means() -> None:
    table = picks(queries=5)
    result = audit_picks(JudgedPicks.from_arrow(table), resamples=200)
    data = table.to_pylist()

    def mean(selector: str, query: int) -> float:
        own = [r["value"] for r in data if r["selector"] == selector and r["query"] == query]
        return float(np.mean(own))

    expected = np.mean([mean("good", q) - mean("random", q) for q in range(5)])
    assert rows(result)["good", "random"]["difference"] == pytest.approx(expected)


def test_common_random_numbers_are_worth_what_they_save() -> None:
    shared, apart = (
        rows(audit_picks(JudgedPicks.from_arrow(picks(shared=s)), resamples=200))["good", "random"]
        for s in (True, False)
    )
    assert shared["variance_ratio"] > 20
    assert apart["variance_ratio"] == pytest.approx(1.0, abs=0.2)


def test_smallest_detectable_effect_is_detected_four_times_in_five() -> None:
    """Simulate with a true difference of just that size and count how often zero is excluded."""
    rng = np.random.default_rng(0)
    n, noise = 60, 1.0
    size = (1.959964 + 0.841621) * noise / np.sqrt(n)
    detectable, found = [], 0
    for trial in range(150):
        difference = rng.normal(size, noise, n)
        table = pa.table(
            {"query": [*range(n), *range(n)], "selector": ["a"] * n + ["b"] * n}
            | {"value": [*difference, *np.zeros(n)]}
        )
        row = audit_picks(JudgedPicks.from_arrow(table), seed=trial, resamples=300)["comparisons"][
            0
        ]
        detectable.append(row["detectable"])
        found += row["low"] > 0
    assert np.mean(detectable) == pytest.approx(size, rel=0.05)
    assert 105 <= found <= 137  # 80 % of 150 is 120


def test_missing_picks_and_unshared_randomness_are_said() -> None:
    table = picks(queries=6, shared=False).slice(1)
    table = table.filter(
        pa.compute.invert(
            pa.compute.and_(
                pa.compute.equal(table["query"], 2), pa.compute.equal(table["selector"], "good")
            )
        )
    )
    result = audit_picks(JudgedPicks.from_arrow(table), resamples=200)
    assert any("1 of 6 queries" in w for w in result["warnings"])
    relabelled = table.set_column(4, "key", pa.array(range(table.num_rows)))
    result = audit_picks(JudgedPicks.from_arrow(relabelled), resamples=200)
    assert any("did not see the same randomness" in w for w in result["warnings"])


def test_one_query_has_no_interval() -> None:
    result = audit_picks(JudgedPicks.from_arrow(picks(queries=1)), resamples=200)
    assert rows(result)["good", "random"]["low"] is None


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_round_trip_and_command(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"picks.{ending}"
    table = picks(queries=6)
    JudgedPicks.from_arrow(table).write(path)
    assert JudgedPicks.read(path).to_arrow().to_pylist() == table.to_pylist()
    out = tmp_path / "out"
    assert main(["audit", "--picks", str(path), "--out", str(out), "--resamples", "200"]) == 0
    assert read_audit(out)["kind"] == "picks"
    assert (out / "report.html").is_file()


def clustered(clusters: int = 12, per: int = 6) -> dict[str, list[Any]]:
    """Queries of one document share how much better 'good' is; columns by names of one's own."""
    rng = np.random.default_rng(3)
    shared = np.repeat(rng.normal(0.4, 0.2, clusters), per)
    n = clusters * per
    good = shared + 0.05 * rng.normal(size=n)
    return {
        "prompt": [*range(n)] * 2,
        "selector": ["good"] * n + ["random"] * n,
        "reward": [*good, *np.zeros(n)],
        "document": [*(q // per for q in range(n))] * 2,
        "kind": ["even" if q // per % 2 == 0 else "odd" for q in range(n)] * 2,
    }


NAMES = ["--query", "prompt", "--values", "reward"]


def run(tmp_path: Path, *flags: str) -> int:
    path = tmp_path / "picks.parquet"
    pa.parquet.write_table(pa.table(clustered()), path)
    out = ["--out", str(tmp_path / "out"), "--resamples", "500"]
    return main(["audit", "--picks", str(path), *out, *flags])


def test_columns_of_picks_go_by_their_own_names(tmp_path: Path) -> None:
    assert run(tmp_path, *NAMES) == 0
    alone = read_audit(tmp_path / "out")
    assert run(tmp_path, *NAMES, "--cluster", "document") == 0
    together = read_audit(tmp_path / "out")
    assert (alone["clusters"], together["clusters"]) == (72, 12)
    one, other = (each["comparisons"][0]["difference"] for each in (alone, together))
    assert one == pytest.approx(other, rel=1e-12)
    # Six queries that are nearly one: about the root of six times as wide.
    ratio = together["comparisons"][0]["half_width"] / alone["comparisons"][0]["half_width"]
    assert 1.8 < ratio < 3.0


def test_groups_of_picks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, *NAMES, "--cluster", "document", "--group", "kind") == 0
    stored = read_audit(tmp_path / "out")
    assert stored["group_column"] == "kind"
    data = clustered()
    for name, part in stored["groups"].items():
        mine = [
            r
            for r, k, w in zip(data["reward"], data["kind"], data["selector"], strict=True)
            if (k, w) == (name, "good")
        ]
        assert part["comparisons"][0]["difference"] == pytest.approx(np.mean(mine))
        assert (part["queries"], part["clusters"]) == (36, 6)
        assert part["comparisons"][0]["p_holm"] >= part["comparisons"][0]["p"]
    table = toptail.PicksResult.read(tmp_path / "out").table("groups")
    assert table["group"].to_pylist() == ["even", "odd"]
    printed = capsys.readouterr().out
    assert "kind even (36 queries):" in printed
    assert "kind" in (tmp_path / "out" / "audit.md").read_text()


def test_a_group_need_not_have_every_selector() -> None:
    table = {"query": [1, 1, 2, 2, 3], "selector": ["a", "b", "a", "b", "a"]}
    table |= {"value": [1.0, 0.0, 2.0, 0.0, 5.0], "group": ["x", "x", "x", "x", "y"]}
    groups = audit_picks(JudgedPicks.from_arrow(table), resamples=100)["groups"]
    assert groups["y"]["selectors"]["a"]["mean"] == 5.0
    assert groups["y"]["selectors"]["b"] == {
        "mean": None,
        "low": None,
        "high": None,
        "queries": 0,
        "replicates": None,
    }
    assert groups["y"]["comparisons"][0]["difference"] is None
    assert groups["x"]["comparisons"][0]["difference"] == 1.5


REFUSED = {"--scores": "good", "--k": "1,2", "--rho": "0.1", "--fail-on": "unsafe"}


@pytest.mark.parametrize("flag", REFUSED)
def test_flags_that_say_nothing_about_picks_are_refused(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, *NAMES, flag, REFUSED[flag]) == 2
    assert capsys.readouterr().err == (
        f"toptail: {flag} says nothing about judged picks; leave it out.\n"
    )
    assert not (tmp_path / "out").exists()


def test_errors_about_picks_name_the_column_of_the_table() -> None:
    table = clustered() | {"reward": [float("nan")] * 144}
    with pytest.raises(toptail.InputError, match="column 'reward' holds nan in row 1"):
        toptail.audit_picks(table, query="prompt", values="reward")
    table = clustered() | {"document": list(range(144))}
    with pytest.raises(toptail.InputError, match="column 'document' must be the same"):
        toptail.audit_picks(table, query="prompt", values="reward", cluster="document")


# ------------------------------------------------------------------------- some picks were judged


def some(table: pa.Table, p: float, seed: int) -> pa.Table:
    """The table with each pick judged, in all its repetitions, with chance p."""
    rng = np.random.default_rng(seed)
    key = [f"{row['query']}/{row['selector']}" for row in table.to_pylist()]
    chosen = {each: rng.random() < p for each in dict.fromkeys(key)}
    judged = np.array([chosen[each] for each in key])
    value = np.where(judged, table["value"].to_numpy(), np.nan)
    table = table.set_column(3, "value", pa.array(value, from_pandas=True))
    own = pa.array(judged.astype(float))
    return table.append_column("p_judged", [[p] * len(key)]).append_column("own", own)


def test_picks_that_were_all_judged_need_no_chances() -> None:
    table = picks(queries=30)
    found = audit_picks(JudgedPicks.from_arrow(some(table, 1.0, 0)), resamples=200)
    assert found == audit_picks(JudgedPicks.from_arrow(table), resamples=200) | {
        "record": found["record"]
    }


def test_some_picks_give_unbiased_differences_whose_intervals_hold() -> None:
    truth, found = rows(audit_picks(JudgedPicks.from_arrow(picks()), resamples=100)), []
    for seed in range(40):
        part = JudgedPicks.from_arrow(some(picks(repeats=2, seed=seed), 0.5, seed))
        found.append(rows(audit_picks(part, resamples=200, seed=seed))["good", "random"])
    value = np.array([row["difference"] for row in found])
    assert abs(value.mean() - 0.5) < 4 * value.std() / np.sqrt(len(value))
    held = np.mean([row["low"] < 0.5 < row["high"] for row in found])
    assert held >= 0.85
    width = np.mean([row["half_width"] for row in found])
    assert width > 3 * truth["good", "random"]["half_width"]  # the level of a query is not paired


def test_an_audit_of_picks_is_that_of_a_table_of_which_nothing_else_was_judged() -> None:
    part = JudgedPicks.from_arrow(some(picks(queries=60, repeats=1), 0.6, 1))
    ours = rows(audit_picks(part, resamples=100))
    table = toptail.audit(part.as_pools(), resamples=100).to_dict()
    assert table["k_max"] == 3
    for row in table["comparisons"]:
        names = tuple(row[side].removesuffix(" first") for side in ("a", "b"))
        difference = ours[names]["difference"] if names in ours else None
        if difference is None:
            difference = -ours[names[1], names[0]]["difference"]
        assert row["difference"] == pytest.approx(difference, abs=1e-12)


def test_missing_picks_without_chances_and_chances_that_differ_are_refused() -> None:
    table = some(picks(queries=5), 0.5, 0)
    with pytest.raises(toptail.InputError, match="column 'value' has 40 missing values"):
        toptail.audit_picks(table.drop_columns(["p_judged", "own"]))
    chance = np.linspace(0.1, 0.9, table.num_rows)
    at = table.column_names.index("p_judged")
    with pytest.raises(toptail.InputError, match="a pick is chosen for judging once"):
        toptail.audit_picks(table.set_column(at, "p_judged", pa.array(chance)))


def test_some_picks_from_the_command_line(tmp_path: Path) -> None:
    table = some(picks(queries=20), 0.5, 0)
    names = ["chance" if name == "p_judged" else name for name in table.column_names]
    given = JudgedPicks.from_arrow(table.rename_columns(names), p_judged="chance")
    given.write(tmp_path / "picks.parquet")
    again = JudgedPicks.read(tmp_path / "picks.parquet")
    np.testing.assert_array_equal(again.value, given.value)
    pa.parquet.write_table(table.rename_columns(names), tmp_path / "mine.parquet")
    out = ["--out", str(tmp_path / "out"), "--resamples", "100", "--p-judged", "chance"]
    assert main(["audit", "--picks", str(tmp_path / "mine.parquet"), *out]) == 0
    assert "picks were judged" in read_audit(tmp_path / "out")["notes"][1]
