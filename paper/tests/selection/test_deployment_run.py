"""All deployment checks on tiny critics: what is stored, what is not repeated, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.toy import SMALL, walks
from toptail.errors import InputError
from toptail.io.files import sha256
from toptail.io.json_files import read_json, write_json
from toptail.lab.proposals.actor import ActorConfig
from toptail.lab.proposals.diffusion import DiffusionRun
from toptail.lab.tasks.files import Dataset
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.config import RunConfig
from toptail.lab.training.session import train_runs
from toptail.lab.training.task_data import TaskData
from toptail_paper.selection.deployment import Deployment, DeploymentConfig
from toptail_paper.selection.deployment.config import (
    EpisodeConfig,
    SearchConfig,
    SpreadConfig,
)
from toptail_paper.selection.deployment.run import ResultFile, load_deployed

TASK = "pointmaze-medium-navigate-v0"
DATA = Dataset(walks(10, 80, seed=1), walks(4, 80, seed=2), None)
CONFIG = DeploymentConfig(
    actor=ActorConfig(4, hidden=(8,), batch_size=8),
    episodes=EpisodeConfig(per_goal=1, limit=3),
    search=SearchConfig(ks=(1, 2), ddim_steps=2),
    searched=("raw",),
    spread=SpreadConfig(actions=5, per_group=4),
)
MODEL = (("hidden", (8,)), ("levels", 4), ("time_dim", 4))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, data = tmp_path_factory.mktemp("runs"), TaskData.place(DATA)
    config = RunConfig(TASK, "raw", 2, 8, bfloat16=True, log_every=2, settings=SMALL)
    train_runs(config, data, [42], out)
    train_runs(DiffusionRun(TASK, "diffusion", 2, 8, log_every=2, settings=MODEL), data, [42], out)
    return out


def deploy(runs: Path, out: Path, config: DeploymentConfig = CONFIG, **changes: Any) -> list[str]:
    """Run the checks; returns what was being done, in order."""
    told: list[str] = []

    def tick(what: str, share: float) -> None:
        assert 0 <= share <= 1
        if what not in told:
            told.append(what)

    dataset, folder = changes.pop("dataset", DATA), out / TASK / "deployment"
    checks = Deployment(TASK, runs, folder, dataset, config, tick)
    checks.run(**({"critics": ("raw",)} | changes))
    return told


@pytest.mark.slow
def test_checks_are_stored_once_and_go_on_with_more_critics(runs: Path, tmp_path: Path) -> None:
    own = ["spread raw@42", "actor raw@42", "episodes of the actor raw@42", "best-of-K raw@42"]
    assert deploy(runs, tmp_path) == own
    folder = tmp_path / TASK / "deployment"
    first = {
        name: read_json(folder / f"{name}.json") for name in ("actors", "closed_loop", "spread")
    }
    assert all(content["task"] == TASK for content in first.values())
    entry = first["actors"]["critics"]["raw"]["42"]
    assert (entry["episodes"], entry["limit"]) == (5, 3)
    assert list(entry["goals"]) == ["1", "2", "3", "4", "5"]
    actor = folder / "actors" / "raw" / "seed-42.safetensors"
    assert entry["actor_sha256"] == sha256(actor)
    assert load_params(actor)["bias_1"].shape == (1, 2)
    searched = first["closed_loop"]["critics"]["raw"]["42"]["k"]
    assert {k: cell["episodes"] for k, cell in searched.items()} == {"1": 5, "2": 5}

    assert deploy(runs, tmp_path) == []  # nothing is left to do
    readout = "raw.f_cos"
    more = deploy(runs, tmp_path, critics=("raw", readout))
    assert more == [f"{what} {readout}@42" for what in ("spread", "actor", "episodes of the actor")]
    after = read_json(folder / "actors.json")["critics"]
    assert after["raw"] == first["actors"]["critics"]["raw"]
    assert list(after) == ["raw", readout]


def test_two_processes_may_add_critics_to_one_file(runs: Path, tmp_path: Path) -> None:
    one, other = (ResultFile(tmp_path / "actors.json", {"task": TASK}) for _ in range(2))
    raw = load_deployed(runs, TASK, "raw", 42)
    one.add(raw, {"rate": 1.0})
    other.add(replace(raw, name="raw.f_cos"), {"rate": 0.5})
    assert list(read_json(tmp_path / "actors.json")["critics"]) == ["raw", "raw.f_cos"]


def test_other_settings_and_other_runs_are_refused(runs: Path, tmp_path: Path) -> None:
    deploy(runs, tmp_path)
    other = replace(CONFIG, actor=replace(CONFIG.actor, alpha=0.3))
    with pytest.raises(InputError, match=r"actors\.json .*actor\.alpha \(0\.1 and 0\.3\)"):
        deploy(runs, tmp_path, other)
    path = tmp_path / TASK / "deployment" / "spread.json"
    content = read_json(path)
    content["critics"]["raw"]["42"]["run"]["params_sha256"] = "another"
    write_json(path, content)
    with pytest.raises(InputError, match=r"raw@42\.params_sha256 \(another and"):
        deploy(runs, tmp_path)


def test_other_data_unknown_readouts_and_missing_runs_are_refused(
    runs: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"raw/seed-42 was trained on other data than"):
        deploy(runs, tmp_path, dataset=Dataset(walks(9, 80, seed=1), DATA.val, None))
    with pytest.raises(InputError, match="'raw' has no readout 'q_td'"):
        deploy(runs, tmp_path, critics=("raw.q_td",))
    with pytest.raises(
        InputError, match=r"seed-7 is not the folder of a run.*toptail train --critics raw"
    ):
        deploy(runs, tmp_path, seeds=(7,))
    assert not (tmp_path / TASK).exists()


def test_critics_are_read_in_float32_however_they_were_trained(runs: Path) -> None:
    deployed = load_deployed(runs, TASK, "raw", 42)
    assert deployed.run.config["bfloat16"]
    full = RunConfig(TASK, "raw", 2, 8, settings=SMALL).build()
    assert deployed.trained.critic == full
    rows = [np.random.default_rng(i).normal(size=(6, 2)).astype(np.float32) for i in range(3)]
    scores = deployed.trained.score(*rows)
    # A bfloat16 number has no bits in the lower half of its float32 form.
    assert (scores.view(np.uint32) & 0xFFFF).any()
