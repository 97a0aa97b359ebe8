"""The norm of the pick as K grows: by hand, against all subsets, and from trained critics."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from paper.tests.selection.small import small_config, write_runs
from paper.tests.selection.stored_stages import Stages
from paper.tests.selection.test_stages import start
from paper.tests.selection.test_tables import measure
from paper.tests.semantics.fake_runs import write_run
from tests.training.toy import toy_config
from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail.lab.training.runs import load_run
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.stages import Selection, critic_scorers, score_critics
from toptail_paper.selection.tables import pick_norm_table
from toptail_paper.study.store import Stored


def rows(stages: Stages) -> dict[str, Any]:
    found = pick_norm_table(measure(stages))
    assert found is not None
    task: dict[str, Any] = found["rows"]["PointMaze"]
    return task


def test_by_hand(tmp_path: Path) -> None:
    """Of norms 1, 2, 3, 6 in the order of the scores the best of 2 has (2 + 2·3 + 3·6) / 6."""
    stages = Stages(tmp_path, per_group=1, pools=1, size=4)
    stages.reference()
    stages.score("raw@42", np.tile([0.0, 1.0, 2.0, 3.0, 9.0], (3, 1, 1)))
    stages.norm("raw@42", np.tile([1.0, 2.0, 3.0, 6.0, 99.0], (3, 1, 1)))
    raw = rows(stages)["raw"]
    assert raw["random_norm"]["mean"] == pytest.approx(3.0)
    assert raw["pick_norm_2"]["mean"] == pytest.approx(26 / 6 / 3)
    assert raw["pick_norm_4"]["mean"] == pytest.approx(2.0)
    assert "pick_norm_1" not in raw


def test_against_all_subsets(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=2, pools=2, size=8)
    stages.reference()
    for seed in (42, 43):
        stages.score(f"cosine@{seed}", np.round(stages.noisy(0.5), 1))  # with ties
        stages.norm(f"cosine@{seed}", np.exp(stages.noisy(0.2)))
    stages.score("tdq@42", stages.noisy(0.9))
    found = rows(stages)
    assert list(found) == ["cosine"]  # the other one has no embeddings
    data = read_selection(stages.path)
    for k in (2, 4, 8):
        for seed in (42, 43):
            score, norm = (x[f"cosine@{seed}"][..., :8] for x in (data.scores, data.norms))
            slow = []
            for s, n in zip(score.reshape(-1, 8), norm.reshape(-1, 8), strict=True):
                for chosen in map(list, combinations(range(8), k)):
                    best = s[chosen] == s[chosen].max()
                    slow.append(n[chosen][best].mean())
            ratio = np.mean(slow) / norm.mean()
            assert found["cosine"][f"pick_norm_{k}"]["seeds"][str(seed)] == pytest.approx(ratio)
    cell = found["cosine"]["pick_norm_8"]
    assert cell["low"] < cell["mean"] < cell["high"]


def test_the_table_is_written_and_shown(finished: Path) -> None:
    shown = (finished / "report.html").read_text("utf-8")
    assert "Does the norm of the pick grow with K?" in shown
    assert "K = 64" in shown
    grown = read_json(finished / "tables" / "pick-norm.json")["rows"]["PointMaze"]
    assert list(grown) == ["raw"]
    assert grown["raw"]["pick_norm_64"]["low"] > 1


def test_norms_of_other_pools_are_refused(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=1, pools=1, size=4)
    stages.made_from["pools"] = "others"
    stages.norm("raw@42", np.ones((3, 1, 5)))
    with pytest.raises(InputError, match=r"norms/raw@42\.npz"):
        read_selection(stages.path)


def test_critics_with_embeddings_leave_their_norms_beside_their_scores(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs")
    write_run(toy_config(critic="raw"), 42, runs)
    study = Selection.at(tmp_path / "out", small_config(), runs)
    queries, pools = start(study)
    scorers = critic_scorers(study, ["raw", "two_head_joint"])
    paths = score_critics(study, queries, pools, scorers)
    assert {column.partition("@")[0] for column in paths} == {
        *("raw", "two_head_joint", "two_head_joint.f_cos"),
    }
    assert list(study.folder.normed()) == ["raw@42"]
    stored = Stored.read(study.folder.norms("raw@42"))
    assert stored.header["origin"]["readout"] == "norm"
    norms = stored.array(study.folder.norms("raw@42"), "norms")
    critic = load_run(runs / study.config.task / "raw" / "seed-42", study.config.task)
    actions = pools.with_logged()
    for query in (0, len(queries) - 1):
        own = actions[query].reshape(-1, actions.shape[-1])
        given = (np.repeat(x[query][None], len(own), 0) for x in (queries.states, queries.goals))
        state, goal = given
        with jax.default_matmul_precision("highest"):
            phi = critic.critic.embed(critic.params, state, own, goal).phi  # type: ignore[attr-defined]
        slow = np.sqrt((np.asarray(phi) ** 2).sum(-1)).mean(0)
        np.testing.assert_allclose(norms[query].ravel(), slow, rtol=1e-5)
    before = study.folder.norms("raw@42").stat().st_mtime_ns
    score_critics(study, queries, pools, scorers)
    assert study.folder.norms("raw@42").stat().st_mtime_ns == before
