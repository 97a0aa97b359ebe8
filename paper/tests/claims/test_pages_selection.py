"""What pages say about PointMaze's judges and trivial scores is what stored scores say."""

from __future__ import annotations

import shutil
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from toptail.io.json_files import read_json, write_json
from toptail_paper.claims import pages_selection
from toptail_paper.claims.pages_selection import CHECK, ERROR, STUDY, rows
from toptail_paper.claims.reported import published


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    names = [f"{critic}@{seed}" for critic in ("tdq", "raw") for seed in (42, 43, 44)]
    columns = [*names, "value_exact"]
    table = pq.read_table(published() / STUDY / "scored_pools", columns=columns)
    return {name: table[name].to_numpy().astype(np.float64).reshape(-1, 64) for name in columns}


def test_stored_levels_are_those_of_the_stored_values(stored: dict[str, Any]) -> None:
    """Pool by pool, by sorting and counting; the exact value's steps differ in 16 bits, too."""
    shares, ceilings = {1: 0, 2: 0, 3: 0}, []
    for pool in stored["value_exact"]:
        counts = [len(list(same)) for _, same in groupby(sorted(pool))]
        shares[len(counts)] = shares.get(len(counts), 0) + 1
        tied = sum(n * (n - 1) for n in counts) / (64 * 63)
        ceilings.append(np.sqrt(1 - tied) if tied < 1 else np.nan)
    row = rows(STUDY, "judges")["exact"]
    for n in (1, 2, 3):
        assert row[f"levels_{n}"]["mean"] == pytest.approx(shares[n] / 7500)
    by_query = np.array(ceilings).reshape(1500, 5)
    known = ~np.isnan(by_query).all(axis=1)
    ceiling = np.nanmean(by_query[known], axis=1).mean()
    assert row["tau_b_ceiling"]["mean"] == pytest.approx(ceiling)
    assert f"{100 * shares[3] / 7500:.1f} %" in pages_selection.levels()


def test_stored_best_picks_are_those_of_the_stored_scores(stored: dict[str, Any]) -> None:
    best = stored["value_exact"] == stored["value_exact"].max(axis=1, keepdims=True)
    table = rows(STUDY, "fixed-query")
    assert table["random"]["exact/best_pick_64"]["mean"] == pytest.approx(best.mean())
    for critic in ("tdq", "raw"):
        shares = []
        for seed in (42, 43, 44):
            top = [np.flatnonzero(pool == pool.max()) for pool in stored[f"{critic}@{seed}"]]
            shares.append(np.mean([one[at].mean() for one, at in zip(best, top, strict=True)]))
        cell = table[critic]["exact/best_pick_64"]
        assert cell["mean"] == pytest.approx(np.mean(shares))
        assert f"{100 * np.mean(shares):.0f} % (" in pages_selection.best_picks()


def test_candidates_without_a_model_are_like_the_studys() -> None:
    """The page says so of levels and of the random pick's share of best ones."""
    own, near = (rows(folder, "judges")["exact"] for folder in (STUDY, CHECK))
    for name in ("levels_1", "levels_2", "levels_3", "tau_b_ceiling"):
        assert near[name]["mean"] == pytest.approx(own[name]["mean"], abs=0.01)
    own, near = (rows(folder, "fixed-query")["random"] for folder in (STUDY, CHECK))
    assert near["exact/best_pick_64"]["mean"] == pytest.approx(
        own["exact/best_pick_64"]["mean"], abs=0.01
    )


def test_a_study_with_its_own_trivial_scores_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [pages_selection.trivial(), pages_selection.levels(), pages_selection.judge_error()]
    for folder in (STUDY, CHECK):
        shutil.copytree(published() / folder / "tables", tmp_path / folder / "tables")
    table, check = (tmp_path / f / "tables" / "fixed-query.json" for f in (STUDY, CHECK))
    content, trivial = (read_json(path) for path in (table, check))
    straight = trivial["rows"]["PointMaze"]["straight"]
    straight["exact/nregret_64"] |= {"mean": 0.125, "low": 0.0625, "high": 0.25}
    content["rows"]["PointMaze"] |= trivial["rows"]["PointMaze"]
    write_json(table, content)
    judges = tmp_path / STUDY / "tables" / "judges.json"
    content = read_json(judges)
    other = rows(CHECK, "judges")["exact_continuous"]
    content["rows"]["PointMaze"]["exact_continuous"] = other
    write_json(judges, content)
    error = read_json(published() / CHECK / ERROR)
    write_json(tmp_path / STUDY / ERROR, {**error, "pools": 12345})
    monkeypatch.setattr(pages_selection, "published", lambda: tmp_path)
    assert "0.88 [0.75, 0.94]" in pages_selection.trivial()
    assert "¹" in before[1]
    assert "¹" not in pages_selection.levels()
    assert "12345 pools" in pages_selection.judge_error()
    assert before[0] != pages_selection.trivial()
