"""Many candidates: the exact judge values all of them, rollouts the picks alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments.plane import small, write_plane
from tests.tasks.conftest import DATA
from toptail.errors import InputError
from toptail.lab.check import inputs as sizes_of
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.page import check_html, check_lines
from toptail.lab.check.result import CheckResult
from toptail.lab.check.run import check
from toptail.lab.check.verdicts import failures
from toptail.lab.judges import rollouts
from toptail.lab.judges.point import next_positions
from toptail.lab.scorers import base as scorers
from toptail.lab.tasks.files import load_file, save_file
from toptail.lab.tasks.trajectories import Trajectories
from toptail.results import PicksResult

POINT = "pointmaze-medium-navigate-v0"
SPIKE = """
import numpy as np

def spike(states, actions, goals):
    towards = goals - states
    straight = (actions * towards).sum(axis=1) / np.linalg.norm(towards, axis=1).clip(1e-6)
    return straight + 5.0 * (actions > 0.9225).all(axis=1)  # 0.15 % of the box
"""


def maze_walks(count: int, rows: int, seed: int) -> Trajectories:
    """Points that drift from the middle of cells, by the simulator's own steps.

    They stay away from walls for a while, where nothing must be simulated.
    """
    rng = np.random.default_rng(seed)
    cells = np.round(load_file(DATA / f"{POINT}.npz").observations / 4) * 4
    at = rng.choice(cells, count) + rng.uniform(-0.3, 0.3, (count, 2))
    drift = rng.choice([-1.0, 1.0], (count, 2)) * rng.uniform(0.5, 1.0, (count, 2))
    seen, taken = [], []
    for _ in range(rows):
        action = np.clip(drift + rng.normal(0, 0.4, (count, 2)), -1, 1).astype(np.float32)
        seen.append(at.astype(np.float32))
        taken.append(action)
        at = next_positions(POINT, seen[-1], action)
    positions = np.stack(seen, axis=1).reshape(-1, 2)
    ends = np.tile(np.arange(rows) == rows - 1, count)
    actions = np.stack(taken, axis=1).reshape(-1, 2)
    return Trajectories(positions, actions, ends, qpos=positions, qvel=np.zeros_like(positions))


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("maze")
    save_file(home / f"{POINT}.npz", maze_walks(20, 15, 0))
    save_file(home / f"{POINT}-val.npz", maze_walks(200, 15, 1))
    (home / "spike.py").write_text(SPIKE)
    return home


def spiked(maze: Path, **sizes: Any) -> tuple[dict[str, Any], str]:
    config = CheckConfig(**{"near": 20, "starts": 40, "horizon": 30, "resamples": 500} | sizes)
    task, scorer = maze / f"{POINT}.npz", f"{maze / 'spike.py'}:spike"
    content = check(task, scorer, pools="uniform", config=config).content
    said = "\n".join([*check_lines(content), check_html(content), *failures(content, {"safe"})])
    return content, said


@pytest.mark.slow
def test_a_critic_that_a_larger_search_ruins_is_safe_up_to_its_k_alone(maze: Path) -> None:
    small_search, said = spiked(maze, per_group=300, follow_k=(1, 64))
    (part,) = small_search["scorers"]["spike"]["parts"]
    assert part["one_step"]["status"] == part["closed_loop"]["status"] == "safe"
    assert "safe to maximize" not in said
    for line in said.splitlines():
        if line.startswith("safe ") or line.endswith(": safe"):
            assert "best of up to 64 uniform candidates" in line
    assert "a larger search, or an actor that is trained on the critic, was not looked at" in said
    large, _ = spiked(maze, per_group=45, pool_size=2_000, horizon=2)
    (part,) = large["scorers"]["spike"]["parts"]
    assert large["judge"]["name"] == "exact"
    assert part["one_step"]["status"] == "unsafe"
    assert part["one_step"]["k_max"] == 2_000


def test_a_critic_is_shown_some_rows_at_a_time(
    maze: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    (tmp_path / "mine.py").write_text(
        f"def q(s, a, g):\n    with open({str(log)!r}, 'a') as file:\n"
        "        file.write(f'{len(s)} ')\n"
        "    return (a * (g - s)).sum(axis=1)\n"
    )
    config = CheckConfig(**small(per_group=5, pool_size=7, starts=3, horizon=2, follow_k=(1, 6)))
    scorer, data = f"{tmp_path / 'mine.py'}:q", maze / f"{POINT}.npz"
    whole = check(data, scorer, pools="uniform", config=config)
    assert max(map(int, log.read_text().split())) == 15 * 7
    log.write_text("")
    monkeypatch.setattr(scorers, "MOST_ROWS", 20)
    parts = check(data, scorer, pools="uniform", config=config)
    assert max(map(int, log.read_text().split())) <= 20
    assert parts.content == whole.content


def test_sizes_have_an_end_and_near_states_say_which_flags_matter(maze: Path) -> None:
    for sizes in ({"pool_size": 10_001}, {"follow_k": (1, 20_000)}):
        with pytest.raises(InputError, match="go up to 10,000 candidates"):
            CheckConfig(**sizes)
    config = CheckConfig(**small(pool_size=30, near=20))
    task, scorer = maze / f"{POINT}.npz", f"{maze / 'spike.py'}:spike"
    with pytest.raises(InputError, match=r"of 20 near states.*near=\.\.\..*pools='uniform'"):
        check(task, scorer, pools="nearest", config=config)


PICKED = """
def gentle(states, actions):  # right, except where both numbers are large
    wrong = (actions > 0.85).all(axis=1)
    return inward(states, actions) + 5 * wrong
"""


def picked(plane: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CheckResult, list[int]]:
    judged: list[int] = []
    real = rollouts.rollout_returns

    def counted(make: Any, data: Any, starts: Any, *rest: Any) -> Any:
        judged.append(len(starts))
        return real(make, data, starts, *rest)

    monkeypatch.setattr(rollouts, "rollout_returns", counted)
    monkeypatch.setattr(sizes_of, "WHOLE", 16)
    mine = plane.parent / "mine.py"
    mine.write_text(mine.read_text() + PICKED)
    config = CheckConfig(**small(pool_size=400, horizon=3, starts=14, resamples=2_000))
    texts = [f"{name}={mine}:{name}" for name in ("inward", "gentle")]
    env = f"{mine}:ActingPlane"
    return check(plane, texts, pools="uniform", env=env, config=config), judged


def test_rollouts_judge_the_picks_alone_where_candidates_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, judged = picked(write_plane(tmp_path), monkeypatch)
    ks = (1, 4, 16, 64, 256, 400)
    assert judged == [180 * (1 + 2 * 5)]  # not 180 * 400
    content = result.content
    parts = {name: each["parts"][0] for name, each in content["scorers"].items()}
    assert parts["inward"]["one_step"]["status"] == "safe"
    assert parts["gentle"]["one_step"]["status"] == "unsafe"
    assert parts["gentle"]["one_step"]["k_max"] == 400
    said = "\n".join(check_lines(content))
    assert "of 400 candidates only the best of K = 1, 4, 16, 64, 256, 400 are judged" in said
    assert "inward, one step, best of up to 400 uniform candidates: value −" in said
    assert "(a random candidate) to K = 400" in said
    # By hand: the pick of K is the best of the first K by score, and this is what it is worth.
    (made,) = result.sources
    assert made.audit is None
    assert made.table is None
    states, actions = result.queries.states, made.pools["actions"]
    for k in ks:
        at = made.pools["scores/gentle"][:, :k].argmax(axis=1) if k > 1 else np.zeros(180, int)
        here = states + np.float32(0.1) * actions[np.arange(180), at]
        worth = np.zeros(180)
        for step in range(3):
            worth -= 0.99**step * np.linalg.norm(here, axis=1)
            here = here - np.float32(0.1) * np.clip(here, -1, 1)
        mean = parts["gentle"]["one_step"]["worth"][f"K = {k}"]["mean"]
        assert mean == pytest.approx(worth.mean(), abs=1e-5)
    result.write(tmp_path / "out")
    assert "one_step/gentle/report.html" in (tmp_path / "out" / "report.html").read_text()
    kept = PicksResult.read(tmp_path / "out" / "uniform" / "one_step" / "gentle")
    assert kept.baseline == "K = 1"
