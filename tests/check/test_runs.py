"""What a check takes from trained runs: a behaviour model, and a reference ensemble."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.selection.small import DIFFUSION
from paper.tests.semantics.fake_runs import write_run
from tests.environments.plane import small, write_plane
from tests.training.toy import toy_config
from toptail.lab.check.config import CheckConfig
from toptail.lab.check.judge import REFERENCE_SEEDS
from toptail.lab.check.result import CheckResult
from toptail.lab.check.run import check
from toptail.lab.tasks.files import load_file


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, with untrained runs of a behaviour model and of three judges beside."""
    path = write_plane(tmp_path_factory.mktemp("plane"))
    sha, runs = load_file(path).sha256, path.parent / "runs"
    write_run(replace(DIFFUSION, task="plane"), 42, runs, sha, (2, 2))
    for seed in REFERENCE_SEEDS:
        write_run(toy_config(task="plane", critic="tdq"), seed, runs, sha, (2, 2))
    return path


def checked(plane: Path, **how: Any) -> CheckResult:
    mine = plane.parent / "mine.py"
    config = CheckConfig(**small(per_group=3, starts=3, horizon=3, pool_size=4))
    how = {"runs": plane.parent / "runs"} | how
    return check(plane, f"{mine}:towards", config=config, **how)


def test_a_behaviour_model_proposes_goes_on_and_is_followed(plane: Path) -> None:
    env = f"{plane.parent / 'mine.py'}:GoalPlane"
    result = checked(plane, pools=("behaviour",), env=env)
    assert result.content["judge"]["name"] == "rollouts"
    assert "behaviour model goes on" in result.content["judge"]["says"]
    (made,) = result.sources
    assert np.abs(made.pools["actions"]).max() <= 1
    assert made.table is not None
    assert list(made.table.values) == ["value_0", "value_1"]  # what goes on depends on luck
    assert list(made.followed) == ["mine"]


def test_the_reference_judges_where_there_is_no_environment(plane: Path) -> None:
    result = checked(plane, pools=("uniform",))
    assert result.content["judge"]["name"] == "reference"
    (made,) = result.sources
    assert made.table is not None
    assert len(made.table.values) == len(REFERENCE_SEEDS)
    doubts = [each for each in result.content["not_done"] if each["what"] == "one step (uniform)"]
    assert doubts
    assert all("not admitted" in each["why"] for each in doubts)
    one_step = result.content["scorers"]["mine"]["parts"][0]["one_step"]
    assert (one_step["status"], one_step["decided"]) == ("inconclusive", False)
    assert all(part["status"] == "inconclusive" for part in one_step["groups"].values())
    assert "not admitted" in one_step["reason"]
    assert checked(plane, pools=("uniform",), runs=None).content["judge"]["name"] == "none"
