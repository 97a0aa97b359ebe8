from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.tasks.conftest import DATA
from tests.tasks.make_fixtures import collection
from toptail.errors import InputError
from toptail.lab.tasks import collect as collecting
from toptail.lab.tasks.collect import (
    Collection,
    collect,
    make_collector,
)
from toptail.lab.tasks.episodes import block_in_sight
from toptail.lab.tasks.files import load, load_file, read_record
from toptail.lab.tasks.names import SHORT_NAMES
from toptail.provenance import commit

POINT = "pointmaze-medium-navigate-v0"
MANIPULATION = [name for name in SHORT_NAMES.values() if name.endswith("play-v0")]


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three episodes at a time, so that a few episodes are several groups."""
    monkeypatch.setattr(collecting, "_MAZE_GROUP", 3)


def test_the_samples_were_collected_by_this_code() -> None:
    """PointMaze has no chaos: another machine repeats it to the precision of its storage."""
    seeds = [np.random.SeedSequence([0, 0, episode]) for episode in range(4)]
    episodes = make_collector(collection(POINT)).collect(seeds)
    stored = load_file(DATA / f"{POINT}.npz").arrays()
    for name in ("observations", "actions", "qpos", "qvel"):
        again = np.concatenate([episode.arrays[name] for episode in episodes])
        np.testing.assert_allclose(again, stored[name], atol=1e-4)


def test_the_file_does_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    hashes = set()
    for workers in (1, 2):
        out = tmp_path / str(workers) / f"{POINT}.npz"
        seen: list[tuple[str, float]] = []
        config = Collection(POINT, episodes=4, val_episodes=1, rows=21)
        paths = collect(config, out, workers, lambda *at, seen=seen: seen.append(at))
        assert seen[0] == ("collecting, 0 of 5 episodes", 0.0)
        assert seen[-1] == ("collecting, 5 of 5 episodes", 1.0)
        assert paths == {"train": out, "val": out.with_name(f"{POINT}-val.npz")}
        hashes.add(tuple(path.read_bytes() for path in paths.values()))
        assert sorted(path.name for path in out.parent.iterdir()) == [
            f"{POINT}-val.npz",
            f"{POINT}-val.npz.json",
            f"{POINT}.npz",
            f"{POINT}.npz.json",
        ]
    assert len(hashes) == 1


def test_an_interrupted_collection_goes_on_and_gives_the_same_file(tmp_path: Path) -> None:
    config = Collection(POINT, episodes=8, val_episodes=2, rows=11)
    whole = collect(config, tmp_path / "whole" / f"{POINT}.npz")
    out = tmp_path / f"{POINT}.npz"

    def stop(_stage: str, share: float) -> None:
        if share >= 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(config, out, tick=stop)
    assert not out.exists()
    done_before = {path.name for path in (tmp_path / f"{POINT}.npz.parts").glob("*.npz")}
    assert done_before == {f"train-{episode:06d}.npz" for episode in range(3)}
    (tmp_path / f"{POINT}.npz.parts" / "train-000001.npz").unlink()

    seen: list[float] = []
    paths = collect(config, out, tick=lambda _, share: seen.append(share))
    assert seen[0] == 0.2, "finished episodes are not collected again"
    for split, path in paths.items():
        assert path.read_bytes() == whole[split].read_bytes()


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's /proc")
def test_a_killed_collection_leaves_no_process_behind_and_goes_on(tmp_path: Path) -> None:
    config = Collection(POINT, episodes=60, val_episodes=1, rows=501)
    out, parts = tmp_path / f"{POINT}.npz", tmp_path / f"{POINT}.npz.parts"
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from toptail.lab.tasks import collect as collecting\n"
        "from toptail.lab.tasks.collect import Collection, collect\n"
        "collecting._MAZE_GROUP = 3\n"
        "if __name__ == '__main__':\n"
        f"    collect({config!r}, Path({str(out)!r}), workers=2)\n"
    )
    process = subprocess.Popen([sys.executable, script])
    try:
        wait_for(lambda: any(parts.glob("train-*.npz")))
        tree = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        children = [Path(f"/proc/{pid}") for pid in tree.read_text().split()]
    finally:
        process.kill()
        process.wait()
    assert len(children) >= 2
    wait_for(lambda: not any(child.exists() for child in children))
    assert not out.exists()
    seen: list[float] = []
    collect(config, out, tick=lambda _, share: seen.append(share))
    assert seen[0] > 0
    assert len(load(out).train.ends) == 60


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's /proc")
def test_interrupted_on_a_terminal_all_processes_go_at_once_and_in_one_line(tmp_path: Path) -> None:
    out, parts = tmp_path / f"{POINT}.npz", tmp_path / f"{POINT}.npz.parts"
    command = [sys.executable, "-m", "toptail", "data", "collect", POINT, "--out", str(out)]
    command += ["--episodes", "2000", "--rows", "1001", "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_for(lambda: any(parts.glob("train-*.npz")))
        tree = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        children = [Path(f"/proc/{pid}") for pid in tree.read_text().split()]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, said) == (130, "toptail: interrupted\n")
    assert len(children) >= 2
    wait_for(lambda: not any(child.exists() for child in children))
    assert len(list(parts.glob("train-*.npz"))) < 1000


def test_a_collection_that_is_finished_is_not_repeated(tmp_path: Path) -> None:
    config, out = Collection(POINT, episodes=2, rows=11), tmp_path / f"{POINT}.npz"
    collect(config, out)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert collect(config, out)["train"] == out
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_killed_while_it_clears_up_the_same_call_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, out = Collection(POINT, episodes=2, rows=11), tmp_path / f"{POINT}.npz"

    def die(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(collecting, "remove_at_once", die)
    with pytest.raises(KeyboardInterrupt):
        collect(config, out)
    monkeypatch.undo()
    collect(config, out)
    assert not (tmp_path / f"{POINT}.npz.parts").exists()


@pytest.mark.parametrize("plan", ["", "[1]", "[" * 100_000, "\udcff"])
def test_a_damaged_origin_is_named(plan: str, tmp_path: Path) -> None:
    out, parts = tmp_path / f"{POINT}.npz", tmp_path / f"{POINT}.npz.parts"
    parts.mkdir()
    (parts / "origin.json").write_bytes(plan.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"origin\.json"):
        collect(Collection(POINT, episodes=2, rows=11), out)


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def test_an_episode_depends_on_its_own_seed_alone(tmp_path: Path) -> None:
    few = collect(Collection(POINT, episodes=2, rows=11), tmp_path / "a" / f"{POINT}.npz")
    more = collect(Collection(POINT, episodes=5, rows=11), tmp_path / "b" / f"{POINT}.npz")
    a, b = load_file(few["train"]), load_file(more["train"])
    np.testing.assert_array_equal(a.observations, b.observations[: len(a)])
    val = load_file(few["val"])
    assert not np.array_equal(val.observations[:11], a.observations[:11])
    assert len({a.select(np.array([i])).sha256 for i in range(2)}) == 2


def test_another_seed_gives_other_data(tmp_path: Path) -> None:
    hashes = set()
    for seed in (0, 1):
        out = tmp_path / str(seed) / f"{POINT}.npz"
        paths = collect(Collection(POINT, episodes=1, rows=11, seed=seed), out)
        hashes.add(load_file(paths["train"]).sha256)
    assert len(hashes) == 2


def test_parts_of_another_collection_are_not_mixed_in(tmp_path: Path) -> None:
    out = tmp_path / f"{POINT}.npz"

    def stop(_stage: str, share: float) -> None:
        if share:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(Collection(POINT, episodes=6, rows=11), out, tick=stop)
    with pytest.raises(InputError, match="seed is 0 there and 1 here"):
        collect(Collection(POINT, episodes=6, rows=11, seed=1), out)


def test_a_finished_file_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / f"{POINT}.npz"
    collect(Collection(POINT, episodes=1, rows=11), out)
    before = out.read_bytes()
    with pytest.raises(InputError, match="already there"):
        collect(Collection(POINT, episodes=2, rows=11), out)
    assert out.read_bytes() == before


def test_the_record_says_how_the_file_came_about(tmp_path: Path) -> None:
    out = tmp_path / f"{POINT}.npz"
    collect(Collection(POINT, episodes=3, rows=201, seed=4), out)
    record = read_record(out)
    assert record is not None
    assert record["content_sha256"] == load_file(out).sha256
    assert (record["name"], record["seed"], record["rows"]) == (POINT, 4, 201)
    assert len(record["goals_per_episode"]) == 3
    assert sum(record["goals_per_episode"]) > 0
    assert set(record["versions"]) == {"mujoco", "ogbench", "numpy"}
    assert record["commit"] == commit()
    json.dumps(record)


@pytest.mark.parametrize("kind", ["navigate", "stitch"])
@pytest.mark.parametrize("size", ["medium", "large"])
def test_every_pointmaze_is_collected(size: str, kind: str, tmp_path: Path) -> None:
    name = f"pointmaze-{size}-{kind}-v0"
    collect(Collection(name, episodes=3, val_episodes=1, rows=31), tmp_path / f"{name}.npz")
    dataset = load(tmp_path / f"{name}.npz")
    assert dataset.train.lengths.tolist() == [31] * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", MANIPULATION)
def test_a_play_episode_does_not_depend_on_those_before_it(name: str) -> None:
    """One environment serves many episodes: nothing of an earlier one may be left in it."""
    seeds = [np.random.SeedSequence([0, 0, episode]) for episode in range(3)]
    config = Collection(name, rows=41)
    together = make_collector(config).collect(seeds)
    seeds = [np.random.SeedSequence([0, 0, episode]) for episode in range(3)]
    alone = make_collector(config).collect(seeds[2:])
    for array, expected in alone[0].arrays.items():
        np.testing.assert_array_equal(together[2].arrays[array], expected)


def test_puzzles_gripper_stays_closed_and_buttons_get_pressed() -> None:
    seeds = [np.random.SeedSequence([0, 0, 1])]
    episode = make_collector(Collection("puzzle-3x3-play-v0", rows=121)).collect(seeds)[0]
    closed = episode.arrays["observations"][10:, 17]  # three times the opening, 3 is shut
    assert closed.min() > 2.0
    states = episode.arrays["button_states"]
    assert states.dtype == np.int64
    assert episode.goals >= 2
    assert np.any(states[1:] != states[:-1])


def test_a_lost_block_is_noticed() -> None:
    inside = np.array([[0.3, 0.1, 0.02], [0.3, -0.35, 0.07], [0.3, 0.28, 0.5]])
    assert block_in_sight(inside)
    for lost in ([0.3, 0.29, 0.02], [0.3, -0.3, 0.05], [0.3, -0.31, 0.09]):
        assert not block_in_sight(np.vstack([inside, lost]))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Collection("antmaze-medium-navigate-v0"), "needs a trained walker"),
        (Collection("antmaze-teleport-explore-v0"), "a maze without teleports"),
        (Collection("pointmaze-teleport-stitch-v0", 1, 1, 11), "a maze without teleports"),
        (Collection("cube-triple-play-v0"), "expected the play data of cube-single"),
        (Collection("cube-single-noisy-v0"), "cannot be collected here"),
        (Collection("nothing"), "not the name"),
        (Collection(POINT, episodes=0), "Cannot collect 0 training"),
        (Collection(POINT, seed=-1), "a seed of at least 0"),
        (Collection(POINT, rows=1), "have no transition"),
        (Collection(POINT, rows=99999999999999999999), "are too long: expected at most 10000000"),
    ],
)
def test_what_cannot_be_collected_is_said_before_anything_is_written(
    config: Collection, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        collect(config, tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []


def test_bad_outputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not end in \.npz"):
        collect(Collection(POINT), tmp_path / "x")
    with pytest.raises(InputError, match="workers is 0"):
        collect(Collection(POINT), tmp_path / "x.npz", workers=0)
