"""Scores where the agent walks: wide observations, no shortest way, everything else as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from paper.tests.selection.walked import WALKERS, walked, write_walker_run
from paper.tests.semantics.small import small_config
from toptail.lab.store.folder import RunFolder
from toptail.lab.store.units import Stored
from toptail.lab.tasks.files import save_file
from toptail_paper.semantics.config import VALUES
from toptail_paper.semantics.scoring import score_tasks

HUMANOID = WALKERS[1]


@pytest.mark.slow
def test_a_humanoid_is_scored_on_both_splits_with_its_own_oracle_and_proposals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, runs, out = walked(HUMANOID), tmp_path / "runs", tmp_path / "out"
    save_file(tmp_path / f"{HUMANOID}.npz", data.train)
    save_file(tmp_path / f"{HUMANOID}-val.npz", data.val)
    monkeypatch.setenv("TOPTAIL_DATA", str(tmp_path))
    for critic, seed in (("raw", 42), ("tdq", 7), ("diffusion", 42), ("diffusion", 7)):
        write_walker_run(HUMANOID, critic, seed, runs)
    config = small_config("HumanoidMaze", diffusion_seeds=(42, 7))
    score_tasks(config, RunFolder(out), runs)
    home = out / "scores" / HUMANOID
    raw, oracle = (Stored.read(home / f"{column}.npz") for column in ("raw@42", "oracle@7"))
    assert raw.arrays["scores"].shape == oracle.arrays["scores"].shape == (40,)
    assert {"diffusion/42", "diffusion/7", "query_means"} <= set(raw.arrays)
    assert raw.arrays["support/trajectory/12"].shape == (8, 6)
    assert not (home / VALUES).exists()  # nobody knows its shortest way
    seen = out / "scores" / "seen" / HUMANOID
    assert sorted(path.name for path in seen.glob("*@*")) == ["raw@42.npz"]
