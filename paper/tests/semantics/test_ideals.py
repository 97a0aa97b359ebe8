"""The ideal critics among the columns of a task's triples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.critics.registry import IDEALS
from toptail.lab.judges.exact import exact_values
from toptail.lab.judges.ideals import PointIdeals
from toptail.lab.store.folder import RunFolder
from toptail.lab.tasks.files import load
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.load import read_task
from toptail_paper.semantics.measure import measure_all
from toptail_paper.semantics.scoring import score_tasks
from toptail_paper.semantics.tables import all_tables
from toptail_paper.study import ideals as study_ideals
from toptail_paper.study.naming import drawn, scorer_name

DATA = Path(__file__).parents[3] / "tests" / "tasks" / "data" / "pointmaze-medium-navigate-v0.npz"


def test_ideals_are_rows_of_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SemanticsConfig(
        (str(DATA),), triples=60, negatives=5, support_queries=5, support_pool=8, n_near=(5,),
        k=(1, 2, 8), resamples=20,
    )  # fmt: skip
    coarse = PointIdeals("pointmaze-medium-navigate-v0", 0.99, spacing=2.0)
    monkeypatch.setattr(study_ideals, "point_ideals", lambda *_: coarse)
    score_tasks(config, RunFolder(tmp_path), None, (), ideals=True)
    task = read_task(tmp_path, str(DATA))
    assert set(task.triples.scores) == set(IDEALS)
    t, val = task.triples, load(DATA).val
    states, actions = val.observations[t.rows], val.actions[t.rows][:, None]
    exact = exact_values(task.task, states, actions, val.observations[t.goal_rows], 0.99)
    np.testing.assert_allclose(t.scores["q_star"], exact[:, 0], rtol=1e-6)
    (measured,) = measure_all([task], config)
    tables = all_tables([measured], config)
    for name in ("main", "retrieval", "ogbench-curse"):
        assert set(IDEALS) <= set(tables[name]["rows"]["PointMaze"])
    with pytest.raises(InputError, match="cannot name a critic"):
        score_tasks(config, RunFolder(tmp_path), None, ("log_ratio=near.py:score",))


def test_ideals_have_titles_and_stay_out_of_figures() -> None:
    assert scorer_name("q_star") == "Ideal: Q*"
    assert drawn(["raw", "log_ratio", "mine"]) == ["raw", "mine"]
