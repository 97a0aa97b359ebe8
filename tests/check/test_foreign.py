"""A critic of each kind that people have, through ``toptail check``, to its verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.foreign.fixtures import DATA, FOREIGN, POINT, checkpoint
from toptail.audit.verdict import STATUSES
from toptail.cli import main
from toptail.lab.tasks.files import save_file
from toptail.lab.tasks.trajectories import Trajectories

MINE = """
def make(run, epoch=1):
    def score(states, actions, goals):
        return len(run) * epoch * (actions * (goals - states)).sum(axis=1)
    return score
"""

KINDS = {
    "ogbench-crl": f"ogbench:{checkpoint('crl')}",
    "ogbench-gciql": f"ogbench:{FOREIGN}/ogbench/gciql/sd*/params_20.pkl",  # two seeds
    "ogbench-qrl": f"ogbench:{checkpoint('qrl')}",
    "ogbench-gcivl": f"ogbench:{checkpoint('gcivl')}",  # V, after a step
    "hiql": f"hiql=ogbench:{checkpoint('hiql')}",
    "d3rlpy-td3_plus_bc": f"d3rlpy:{FOREIGN}/d3rlpy/td3_plus_bc.d3",
    "own": 'own={}/mine.py:make(run="a", epoch=5)',
}
SEEDS = {"ogbench-gciql": ["ogbench-gciql@0", "ogbench-gciql@1"]}


def checked(scorers: dict[str, str], home: Path) -> dict[str, Any]:
    """One small check of all of them; returns what it wrote."""
    flags = [word for text in scorers.values() for word in ("--scorer", text)]
    line = [
        *("check", "--task", str(DATA / f"{POINT}.npz"), "--out", str(home / "out")),
        *("--per-group", "4", "--pool-size", "4", "--near", "10", "--starts", "2"),
        *("--horizon", "3", "--follow-k", "1,4", "--resamples", "100", "--pools", "uniform"),
    ]
    assert main([*line, *flags]) == 0
    content: dict[str, Any] = json.loads((home / "out" / "check.json").read_text())
    return content


def require_verdicts(content: dict[str, Any], name: str) -> None:
    """Both questions are answered by a status, and none of them by a failure of the reader."""
    (part,) = content["scorers"][name]["parts"]
    for kind in ("one_step", "closed_loop"):
        assert part[kind]["status"] in STATUSES
    assert content["not_done"] == []


def test_a_critic_of_each_kind_is_checked_to_its_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    scorers = {name: text.replace("{}", str(tmp_path)) for name, text in KINDS.items()}
    content = checked(scorers, tmp_path)
    assert set(content["scorers"]) == set(KINDS)
    said, origins = capsys.readouterr().out, content["record"]["scorers"]
    table = pq.read_table(tmp_path / "out" / "uniform" / "table.parquet")
    for name in KINDS:
        require_verdicts(content, name)
        assert f"{name}, one step, best of up to 4 uniform candidates: " in said
        for column in SEEDS.get(name, [name]):
            assert origins[column]
            assert np.ptp(table[column].to_numpy()) > 0


TORCH = """
import torch

class Critic(torch.nn.Module):
    def forward(self, s, a, g):
        return (a * (g - s)).sum(-1)

model = Critic()

@torch.no_grad()
def score(states, actions, goals):
    return model(*map(torch.from_numpy, (states, actions, goals))).numpy()
"""


def test_a_module_of_pytorch_is_checked_as_a_function(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "net.py").write_text(TORCH)
    both = {"net": f"net={tmp_path}/net.py:score", "own": f"own={tmp_path}/mine.py:make(run='a')"}
    parts = {name: each["parts"] for name, each in checked(both, tmp_path)["scorers"].items()}
    assert parts["net"] == parts["own"]  # the same function, scored by PyTorch


WIDE = """
import numpy as np

class Wide:
    def restore(self, row):
        self.at = row.observation.astype(np.float64)
        return self.at
    def step(self, action):
        self.at = self.at + 0.1 * np.tile(action.astype(np.float64), 2)
        return self.at, -float(np.linalg.norm(self.at)), False
"""


def test_a_goal_free_model_of_d3rlpy_is_checked_by_returns(tmp_path: Path) -> None:
    """Its observations have four numbers, and its task has no goals."""
    rng = np.random.default_rng(0)
    for name in ("wide", "wide-val"):
        actions = rng.uniform(-1, 1, (45 * 6, 2)).astype(np.float32)
        seen = np.tile(0.1 * np.cumsum(actions, axis=0), 2).astype(np.float32)
        ends = np.arange(len(seen)) % 6 == 5
        save_file(tmp_path / f"{name}.npz", Trajectories(seen, actions, ends))
    (tmp_path / "env.py").write_text(WIDE)
    line = [
        *("check", "--task", str(tmp_path / "wide.npz"), "--env", f"{tmp_path}/env.py:Wide"),
        *("--scorer", f"d3rlpy:{FOREIGN}/d3rlpy/cql.d3", "--out", str(tmp_path / "out")),
        *("--per-group", "15", "--pool-size", "4", "--near", "10", "--starts", "15"),
        *("--horizon", "3", "--follow-k", "1,4", "--resamples", "100", "--pools", "nearest"),
    ]
    assert main(line) == 0
    content = json.loads((tmp_path / "out" / "check.json").read_text())
    assert content["goals"] is False
    assert content["judge"]["name"] == "rollouts"
    require_verdicts(content, "d3rlpy-cql")
