"""The split of search error at fixed queries: solved by hand, and on a folder of made-up scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.selection.stored_stages import Stages, paper_like
from paper.tests.selection.test_tables import measure
from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import selector_picks
from toptail_paper.selection.run import Stages as Steps
from toptail_paper.selection.stages import Selection
from toptail_paper.selection.study import STUDY, UserInputs
from toptail_paper.selection.tables import search_error_table
from toptail_paper.selection.write import write_results
from toptail_paper.study import ideals as study_ideals
from toptail_paper.study.ideals import PointIdeals
from toptail_paper.study.naming import in_order
from toptail_paper.study.store import Stored

TERMS = ("target", "estimation", "extrapolation")


def table(stages: Stages) -> dict[str, Any]:
    found = search_error_table(measure(stages))
    assert found is not None
    rows: dict[str, Any] = found["rows"]["PointMaze"]
    return rows


def change_pools(stages: Stages, **arrays: Any) -> CandidatePools:
    """Put other arrays into the stored pools."""
    pools = Stored.read(stages.folder.pools)
    changed = Stored({**pools.header, "data": "data"}, {**pools.arrays, **arrays})
    stages.folder.pools.unlink()
    changed.write(stages.folder.pools)
    stages.made_from["pools"] = changed.sha256
    return CandidatePools.read(stages.folder.pools)


@pytest.fixture
def four(tmp_path: Path) -> Stages:
    """Three queries with one pool of candidates worth 0, 1, 2 and 3, the last one off support."""
    stages = Stages(tmp_path, per_group=1, pools=1, size=4)
    stages.value = np.tile([0.0, 1.0, 2.0, 3.0, 9.0], (3, 1, 1))
    change_pools(stages, on_support=np.tile([True, True, True, False], (3, 1, 1)))
    stages.judge("exact", stages.value[None])
    stages.score("q_star", stages.value)
    return stages


def test_a_hand_solved_case(four: Stages) -> None:
    """Ideal picks 2 (regret 1), mixed 0 (3), the critic 1 (2); the headroom is 3 - 1.5."""
    four.score("log_ratio", np.tile([1.0, 2.0, 4.0, 3.0, 0.0], (3, 1, 1)))
    four.score("raw@42", np.tile([4.0, 2.0, 1.0, 3.0, 0.0], (3, 1, 1)))
    four.score("raw@43", np.tile([1.0, 2.0, 4.0, 3.0, 0.0], (3, 1, 1)))
    four.score("tdq@42", np.tile([1.0, 3.0, 2.0, 4.0, 0.0], (3, 1, 1)))
    rows = table(four)
    first = {term: rows["raw"][term]["seeds"]["42"] * 1.5 for term in (*TERMS, "total")}
    # On support the critic prefers 0: mixed, the ideal's first place, an on-support one, holds it.
    assert first == pytest.approx({"target": 1, "estimation": 2, "extrapolation": 0, "total": 3})
    assert rows["raw"]["estimation"]["mean"] == pytest.approx(1 / 1.5)
    assert [rows["tdq"][t]["mean"] for t in TERMS] == pytest.approx([0, 0, 0])
    assert rows["log_ratio"]["total"]["mean"] == pytest.approx(1 / 1.5)
    assert rows["log_ratio"]["target"] == rows["log_ratio"]["total"]


@pytest.mark.slow
def test_terms_add_up_to_the_regret_of_the_main_table(tmp_path: Path) -> None:
    stages = paper_like(tmp_path)
    for judge in ("reference", "euclidean"):
        stages.folder.values(judge).unlink()
    stages.judge("exact", stages.value[None])
    stages.score("q_star", stages.value)
    stages.score("log_ratio", stages.noisy(0.6))
    assert "search-error" in write_results(stages.path, resamples=60)
    rows = read_json(stages.path / "tables" / "search-error.json")["rows"]["PointMaze"]
    main = read_json(stages.path / "tables" / "fixed-query.json")["rows"]["PointMaze"]
    assert set(rows) >= {"tdq", "raw", "cosine", "hybrid", "two_head_joint.f_cos", "q_star"}
    for name, row in rows.items():
        for start in ("", "pooled/"):
            parts = sum(row[f"{start}{term}"]["mean"] for term in TERMS)
            assert parts == pytest.approx(row[f"{start}total"]["mean"], abs=1e-12)
            other = row[f"{start}extrapolation_first"]["mean"]
            other += row[f"{start}target"]["mean"] + row[f"{start}estimation_last"]["mean"]
            assert other == pytest.approx(row[f"{start}total"]["mean"], abs=1e-12)
        assert row["total"]["mean"] == pytest.approx(main[name]["exact/nregret_64"]["mean"])
    assert rows["tdq"]["target"]["mean"] == pytest.approx(0.0, abs=1e-12)
    assert rows["raw"]["target"]["mean"] > 0.1
    assert rows["raw"]["total"]["low"] < rows["raw"]["total"]["mean"] < rows["raw"]["total"]["high"]
    audit = (stages.path / "audit" / "audit.json").read_text("utf-8")
    assert "tdq" in audit
    assert "q_star" not in audit  # ideals are neither audited nor rolled out
    data = read_selection(stages.path)
    assert "q_star" in data.critics
    assert "q_star" not in selector_picks(data.scores, None)
    stages.folder.values("exact").unlink()
    assert search_error_table(measure(stages)) is None
    page = STUDY.page(stages.path).read_text("utf-8")
    assert "Ideal: log-ratio" in page.replace("<wbr>", "")
    assert (stages.path / "figures" / "search_error.svg").is_file()


def test_the_stage_scores_by_every_ideal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages(tmp_path, per_group=2, pools=1, size=3)
    study = Selection(stages.folder, stages.config)
    coarse = PointIdeals(stages.config.task, 0.99, spacing=2.0)
    monkeypatch.setattr(study_ideals, "point_ideals", lambda *_: coarse)
    steps = Steps(study, None, UserInputs())  # type: ignore[arg-type]
    vars(steps).update(queries=stages.queries, pools=change_pools(stages))
    assert steps._ideals() == ""
    assert set(stages.folder.columns()) == {"q_star", "q_behaviour", "log_ratio", "gamma_d"}
    header = Stored.read(stages.folder.scores("log_ratio")).header
    assert header["origin"]["spacing"] == 2.0
    assert "error" in header["origin"]["exactness"]


def test_ideals_stand_below_the_critics() -> None:
    stored = ["c_learning", "gamma_d", "mc_regression", "q_star", "raw", "td_mean", "tdq"]
    critics = ["tdq", "raw", "c_learning", "mc_regression", "td_mean"]
    assert in_order(stored) == [*critics, "gamma_d", "q_star"]


def test_a_users_scorer_cannot_pass_for_an_ideal(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=1, pools=1, size=2)
    study = Selection(stages.folder, stages.config)
    steps = Steps(study, None, UserInputs(scorers=("q_star=mine.py:score",)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot name a critic"):
        _ = steps.user_scorers
