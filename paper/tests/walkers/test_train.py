from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.walkers.tiny import tiny
from toptail.errors import InputError
from toptail.lab.walkers.walker import Walker
from toptail_paper.walkers import train
from toptail_paper.walkers.bodies import BODIES
from toptail_paper.walkers.checkpoint import Candidate, Candidates, ranking
from toptail_paper.walkers.evaluate import RunningEpisodes, evaluate

TINY = tiny("antball")


def test_episodes_change_directions_end_and_begin_as_the_package_does() -> None:
    body = BODIES["ant"](5)
    episodes = RunningEpisodes(body, np.random.default_rng(0), watched=2, stagger=False)
    rng = np.random.default_rng(1)
    changed, ended = [], []
    for t in range(1, 1001):
        commands, ages = body.commands.copy(), episodes.age.copy()
        outcome = episodes.step(0.1 * rng.uniform(-1, 1, (5, 8)))
        over = np.asarray(outcome[:, -2:].any(axis=1))
        np.testing.assert_array_equal(episodes.age, np.where(over, 0, ages + 1))
        new = (body.commands != commands).any(axis=1)
        np.testing.assert_array_equal(new, over | ((ages + 1) % 100 == 0))
        kept = outcome[~over, : body.observation_size]
        np.testing.assert_array_equal(kept[:, :-2], episodes.observations[~over, :-2])
        changed.append(int(new.sum()))
        ended += [t] if over[:2].any() else []
    assert sum(changed) >= 5 * 9
    assert ended, "the watched episodes never ended"
    assert len(episodes.tally.returns) >= 2
    assert episodes.tally.steps == 2000


@pytest.mark.parametrize(("name", "column"), [("antball", -2), ("humanoid", -1)])
def test_a_truncation_counts_as_an_end_only_for_the_ball(name: str, column: int) -> None:
    body = BODIES[name](2)
    episodes = RunningEpisodes(body, np.random.default_rng(0), watched=2, stagger=False)
    for _ in range(body.episode_steps):
        outcome = episodes.step(np.zeros((2, body.action_size)))
    assert (outcome[:, column] == 1).all()
    assert outcome[:, -2:].sum() == 2
    assert len(episodes.tally.returns) == 2


def test_training_episodes_that_lie_fallen_are_cut_and_watched_ones_are_not() -> None:
    body = BODIES["humanoid"](8)
    episodes = RunningEpisodes(body, np.random.default_rng(0), watched=4, stagger=False)
    cut = np.zeros(8)
    for _ in range(300):
        cut += episodes.step(np.zeros((8, 21)))[:, -1]
    assert (cut[:4] == 0).all()
    assert (cut[4:] > 0).all()


def test_falls_come_before_return_and_success_before_both() -> None:
    entries: list[dict[str, Any]] = [
        {"return": 100.0, "falls": 5.0, "success": 0.2},
        {"return": 85.0, "falls": 1.0, "success": 0.9},
        {"return": 70.0, "falls": 0.0, "success": 0.9},
        {"return": 81.0, "falls": 2.0, "success": 0.5},
    ]
    assert ranking(entries, by_success=False) == [1, 3, 0, 2]
    tied = [{"return": x, "falls": 0.0, "success": 0.0} for x in (9.0, 10.0)]
    assert ranking(tied, by_success=False) == [1, 0]
    assert ranking(entries, by_success=True) == [1, 2, 3, 0]
    none: Any = None
    kept = Candidates(by_success=False)
    for entry in [*entries, {"return": 90.0, "falls": 4.0}, {"return": 89.0, "falls": 3.0}]:
        kept.add(Candidate(entry, none))
    assert [c.numbers["return"] for c in kept.kept] == [85.0, 81.0, 89.0, 100.0]


@pytest.mark.slow
def test_a_training_is_stored_taken_up_and_refused_with_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(step=0.05)  # how often it is asked decides, not the machine
    monkeypatch.setattr(train, "monotonic", lambda: next(clock))
    monkeypatch.setattr(train, "LINE_SECONDS", 1.0)
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 2.0)
    points: list[Any] = []
    first = train.train_expert("antball", 0.1, tmp_path, 3, TINY, watch=points.append)
    assert first["updates"] > 0
    assert first["parts"] == 1
    stored = json.loads((tmp_path / "record.json").read_text())
    assert stored == json.loads(json.dumps(first))
    assert train.train_expert("antball", 0.1, tmp_path, 3, TINY) == stored  # not once more
    again = train.train_expert("antball", 0.6, tmp_path, None, TINY, watch=points.append)
    assert again["parts"] == 2
    assert again["seed"] == 3
    assert again["env_steps"] > first["env_steps"]
    assert again["updates"] > first["updates"]
    curve = [json.loads(line) for line in (tmp_path / "curve.jsonl").read_text().splitlines()]
    assert curve == again["curve"] == points
    assert {"return", "speed", "falls", "success", "env_steps_per_second"} <= curve[-1].keys()
    actor = Walker.load(tmp_path / "actor.safetensors")
    assert evaluate([actor], 2, 1003, 1)[0] == again["candidates"][again["chosen"]]["final"]
    with pytest.raises(InputError, match=r"other settings \(batch\)"):
        train.train_expert("antball", 0.4, tmp_path, None, replace(TINY, batch=8))
    with pytest.raises(InputError, match=r"made with seed 3: give .* or leave seed=4 out"):
        train.train_expert("antball", 0.4, tmp_path, 4, TINY)


def test_walkers_side_by_side_are_judged_as_alone() -> None:
    rng = np.random.default_rng(0)

    def walker() -> Walker:
        kernels = tuple(rng.normal(0, 0.3, s).astype(np.float32) for s in ((32, 8), (8, 16)))
        biases = (np.zeros(8, np.float32), np.zeros(16, np.float32))
        return Walker("ant", np.zeros(32, np.float32), np.ones(32, np.float32), kernels, biases)

    walkers = [walker(), walker()]
    together = evaluate(walkers, 3, seed=5, threads=1, steps=250)
    alone = [evaluate([w], 3, seed=5, threads=1, steps=250)[0] for w in walkers]
    assert together == alone
    assert together[0] != together[1]


@pytest.mark.slow
def test_the_shipped_walkers_walk() -> None:
    walkers = {body: Walker.shipped(body) for body in BODIES}
    ant, ball, humanoid = (
        evaluate([walkers[body]], 6, seed=11, threads=1, steps=steps)[0]
        for body, steps in (("ant", 200), ("antball", 200), ("humanoid", 400))
    )
    assert ant["speed"] > 1.5
    assert ant["falls"] == 0
    assert ball["success"] >= 0.5
    assert humanoid["standing_at_200"] >= 0.5
    assert humanoid["speed"] > 1.0


def test_a_file_that_is_no_walker_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "actor.safetensors"
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read as a stored walker"):
        Walker.load(path)
