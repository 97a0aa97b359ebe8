"""The judges that know the ways, among the values of a task's triples."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from toptail.errors import InputError
from toptail.io.arrays import write_arrays
from toptail.lab.tasks.files import load
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.load import TaskScores, read_task
from toptail_paper.semantics.measure import measure_all
from toptail_paper.semantics.scoring import score_tasks
from toptail_paper.semantics.tables import all_tables
from toptail_paper.study.point_judges import POINT_JUDGES
from toptail_paper.study.store import RunFolder, Stored
from toptail_paper.triples.bootstrap import TrajectoryBootstrap
from toptail_paper.triples.search import cross_query
from toptail_paper.triples.value_order import value_agreement

DATA = Path(__file__).parents[3] / "tests" / "tasks" / "data" / "pointmaze-medium-navigate-v0.npz"
CRITIC = """
import numpy as np

def score(states, actions, goals):
    return -np.linalg.norm(states + 0.2 * actions - goals, axis=1)
"""


@pytest.fixture(scope="module")
def config() -> SemanticsConfig:
    return SemanticsConfig(
        (str(DATA),), triples=60, negatives=5, support_queries=5, support_pool=8, n_near=(5,),
        k=(1, 2, 8), resamples=20,
    )  # fmt: skip


@pytest.fixture(scope="module")
def out(config: SemanticsConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("semantics")
    (folder / "near.py").write_text(CRITIC)
    score_tasks(config, RunFolder(folder), None, (f"{folder / 'near.py'}:score",))
    return folder


@pytest.fixture(scope="module")
def task(out: Path) -> TaskScores:
    return read_task(out, str(DATA))


@pytest.mark.parametrize("judge", ["exact", "euclidean"])
def test_the_triples_are_valued_by_the_judges_that_know_the_ways(
    task: TaskScores, judge: str
) -> None:
    val, t = load(DATA).val, task.triples
    wanted = [
        POINT_JUDGES[judge].values(
            task.task,
            val.observations[[row]],
            val.actions[[row]][:, None],
            val.observations[[goal]],
            t.gamma,
        )[0, 0]
        for row, goal in zip(t.rows[:5], t.goal_rows[:5], strict=True)
    ]
    np.testing.assert_array_equal(t.values[judge][:5], wanted)


@pytest.mark.parametrize("judge", ["exact", "euclidean"])
def test_a_straight_line_critic_agrees_with_it_in_an_open_stretch(
    task: TaskScores, config: SemanticsConfig, judge: str
) -> None:
    (measured,) = measure_all([task], config)
    table = all_tables([measured], config)["value-oracle"]
    row = table["rows"]["PointMaze"]
    bootstrap = TrajectoryBootstrap(task.triples.trajectory, np.random.default_rng(0), 20)
    regret = cross_query(task.triples, "near", (8,), bootstrap, judge).normalized
    assert row["near"][f"nregret_{judge}"]["mean"] == pytest.approx(float(regret.point[0]))
    assert row["near"][f"nregret_{judge}"]["mean"] < row["near"]["nregret_gamma"]["mean"]
    assert 0.0 < row[judge]["spearman"]["mean"] < 1.0
    tau = kendalltau(task.triples.scores["near"], task.triples.values[judge]).statistic
    assert row["near"][f"tau_{judge}"]["mean"] == pytest.approx(tau)
    assert "nregret_oracle" not in row["near"]
    assert sum(note.startswith(f"{judge}: γ to the") for note in table["notes"]) == 1


def test_two_judges_that_say_the_same_agree(task: TaskScores) -> None:
    bootstrap = TrajectoryBootstrap(task.triples.trajectory, np.random.default_rng(0), 20)
    same = value_agreement(task.triples, "exact", "exact", bootstrap)
    assert float(same.point) == pytest.approx(1.0)


def test_values_of_other_triples_are_refused(out: Path, task: TaskScores, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    path = copy / "scores" / task.task / "values" / "exact.npz"
    stored = Stored.read(path)
    Stored({**stored.header, "draws": "0" * 64}, dict(stored.arrays)).write(path)
    with pytest.raises(InputError, match=r"exact\.npz was made from something else .*: draws"):
        read_task(copy, str(DATA))
    write_arrays(path, {"values": np.zeros(3)})
    with pytest.raises(InputError):
        read_task(copy, str(DATA))
