"""The parts of a session: joint checkpoints, metrics, probe, memory, configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
import pytest
from scipy.stats import kendalltau

from tests.training.toy import toy_config, toy_data, toy_dataset, walks
from toptail.errors import InputError, NotDoneError
from toptail.lab.critics.base import Batch, Info, Learner, Params
from toptail.lab.critics.registry import CRITICS, setting_values
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.training import loop as memory
from toptail.lab.training.checkpoints import arrays_of, find_checkpoints, save_checkpoint, state_of
from toptail.lab.training.config import RunConfig
from toptail.lab.training.data import Probe, TaskData, data_shapes, device_data
from toptail.lab.training.loop import fresh_state, run_steps, state_shapes, with_twin
from toptail.lab.training.runs import (
    append_line,
    cut_lines,
    differences,
    logged_steps,
    metrics_line,
    read_lines,
)


def test_a_joint_state_comes_back_bit_for_bit_and_by_seed(tmp_path: Path) -> None:
    config = toy_config().training
    state = fresh_state(config, [5, 6, 7], toy_data().rows)
    save_checkpoint(tmp_path, "hash", {5: 1, 6: 2, 7: 1}, 30, arrays_of(state, 3))
    (found,) = find_checkpoints(tmp_path)
    assert (found.step, found.attempts, found.is_sound()) == (30, {5: 1, 6: 2, 7: 1}, True)
    shapes = state_shapes(config, 2, toy_data().rows)
    back = found.load(shapes, [7, 5])
    assert str(jax.tree.structure(back)) == str(jax.tree.structure(state))
    for one, other in zip(jax.tree.leaves(back), jax.tree.leaves(state), strict=True):
        plain = [jax.random.key_data(x) if x.dtype == state.key.dtype else x for x in (one, other)]
        assert plain[0].dtype == plain[1].dtype
        np.testing.assert_array_equal(plain[0], plain[1][np.array([2, 0])])


def test_a_newer_joint_checkpoint_replaces_the_one_before(tmp_path: Path) -> None:
    for step in (10, 20):
        save_checkpoint(tmp_path, "hash", {1: 1}, step, {"step": np.array([step])})
    save_checkpoint(tmp_path, "hash", {2: 1}, 5, {"step": np.array([5])})
    assert [found.step for found in find_checkpoints(tmp_path)] == [20, 5]


def test_a_joint_state_of_another_critic_is_refused(tmp_path: Path) -> None:
    config = toy_config().training
    wider = toy_config(settings=(("hidden", (9,)), ("embed_dim", 4), ("ensemble", 1))).training
    other = toy_config(critic="tdq").training
    rows = toy_data().rows
    arrays = arrays_of(fresh_state(config, [1], rows), 1)
    with pytest.raises(ValueError, match=r"is .*8.*not .*9"):
        state_of(arrays, state_shapes(wider, 2, rows))
    with pytest.raises(ValueError, match="on one side only"):
        state_of(arrays, state_shapes(other, 2, rows))
    save_checkpoint(tmp_path, "hash", {1: 1}, 10, arrays)
    (found,) = find_checkpoints(tmp_path)
    with pytest.raises(InputError, match="does not hold a state of this critic"):
        found.load(state_shapes(other, 2, rows), [1])


def test_twins() -> None:
    assert with_twin([7]) == [7, 7]
    assert with_twin([7, 8]) == [7, 8]
    assert with_twin([7, 8, 9]) == [7, 8, 9]


def test_no_metric_hides_the_number_of_a_step() -> None:
    with pytest.raises(ValueError, match="a learner calls a metric 'step'"):
        metrics_line(5, {"loss": 1.0, "step": 0.3})


def test_lines_are_cut_behind_a_step_and_torn_ones_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for step in (5, 10, 15):
        append_line(path, metrics_line(step, {"loss": step / 3, "tau": float("nan")}))
    assert read_lines(path)[0] == {"step": 5, "loss": 1.666667, "tau": None}
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"step": 20, "lo')
    assert [line["step"] for line in read_lines(path)] == [5, 10, 15]
    cut_lines(path, 15)
    assert path.read_bytes() == whole
    cut_lines(path, 14)
    assert [line["step"] for line in read_lines(path)] == [5, 10]
    cut_lines(path, 0)
    assert path.read_bytes() == b""
    cut_lines(tmp_path / "none.jsonl", 0)
    assert read_lines(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize(
    ("steps", "every", "expected"), [(14, 3, [3, 6, 9, 12, 14]), (4, 2, [2, 4]), (2, 9, [2])]
)
def test_logged_steps(steps: int, every: int, expected: list[int]) -> None:
    assert logged_steps(steps, every) == expected


@pytest.mark.parametrize("critic", ["raw", "tdq"])
def test_the_probe_reads_what_a_slow_version_reads(critic: str) -> None:
    config = toy_config(critic=critic).training
    learner = toy_config(critic=critic).build()
    params = fresh_state(config, [3, 4], toy_data().rows).params
    probe = Probe.draw(toy_dataset().val, gamma=0.9, size=50)
    own = jax.tree.map(lambda leaf: leaf[1], params)
    scores = learner.score(own, *map(jax.numpy.asarray, (probe.states, probe.actions, probe.goals)))
    read = probe.read(config.learner, params)[1]
    assert read["tau"] == pytest.approx(kendalltau(np.asarray(scores), probe.value).statistic)
    if critic == "raw":
        e = learner.embed(own, probe.states, probe.actions, probe.goals)  # type: ignore[attr-defined]
        for name, vectors in (("phi_norm", e.phi), ("psi_norm", e.psi)):
            lengths = np.linalg.norm(np.asarray(vectors), axis=-1)
            assert read[name] == pytest.approx(float(lengths.mean()), rel=1e-5)
    else:
        assert read.keys() == {"tau", "auc", "regret_50"}
    assert probe.others is not None
    rows = map(jax.numpy.asarray, (probe.states, probe.actions, probe.others))
    apart = np.asarray(learner.score(own, *rows))[None] < np.asarray(scores)[:, None]
    assert read["auc"] == pytest.approx(apart.mean(), abs=1e-3)
    picked = probe.value[int(np.argmax(scores))]  # K is the whole probe
    lost = (probe.value.max() - picked) / (probe.value.max() - probe.value.mean())
    assert read["regret_50"] == pytest.approx(lost, abs=1e-6)


def test_one_trajectory_alone_has_no_other_goals() -> None:
    params = fresh_state(toy_config().training, [3], toy_data().rows).params
    probe = Probe.draw(walks(1, 40, seed=0), gamma=0.9, size=8)
    assert probe.others is None
    assert "auc" not in probe.read(toy_config().training.learner, params)[0]


@dataclass(frozen=True)
class Constant(Learner):
    """One number, fitted to the rewards."""

    name: ClassVar[str] = "constant"

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        del key, state_dim, action_dim, goal_dim
        return {"x": jax.numpy.zeros(())}

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        return jax.numpy.mean((params["x"] - batch.rewards) ** 2), {}


def test_what_is_no_critic_trains_and_has_no_diagnostics() -> None:
    config = replace(toy_config().training, learner=Constant())
    state = fresh_state(config, [3, 4], toy_data().rows)
    steps = jax.vmap(lambda s, d: run_steps(config, s, d, 3), in_axes=(0, None))
    after, info = jax.jit(steps)(state, toy_data().rows)
    assert info["loss"].shape == (2, 3)
    assert (np.asarray(after.params["x"]) < 0).all()
    assert Probe.draw(toy_dataset().val, 0.9, 50).read(Constant(), after.params) == [{}, {}]


def test_the_probe_is_held_out_and_always_the_same() -> None:
    val = toy_dataset().val
    one, other = Probe.draw(val, 0.99), Probe.draw(val, 0.99)
    np.testing.assert_array_equal(one.states, other.states)
    rows = {row.tobytes() for row in val.observations}
    assert {row.tobytes() for row in one.states} <= rows
    assert {row.tobytes() for row in one.goals} <= rows


def test_shapes_say_how_many_bytes_the_data_will_take() -> None:
    train = toy_dataset().train
    placed = sum(array.nbytes for array in jax.tree.leaves(device_data(train)))
    assert memory.tree_bytes(data_shapes(train)) == placed
    state = fresh_state(toy_config().training, [1], toy_data().rows)
    plain = state._replace(key=jax.random.key_data(state.key))
    expected = sum(leaf.nbytes for leaf in jax.tree.leaves(plain))
    assert memory.tree_bytes(state_shapes(toy_config().training, 2, toy_data().rows)) == expected


def test_what_does_not_fit_is_refused_before_anything_is_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed = memory.tree_bytes(data_shapes(toy_dataset().train))
    config = toy_config(settings=(("hidden", (512,)),))
    needed += memory.tree_bytes(state_shapes(config.training, 3, toy_data().rows))
    monkeypatch.setattr("toptail.lab.training.data.free_bytes", lambda: needed - 2_000_000)
    with pytest.raises(
        NotDoneError,
        match=rf"^Training 3 seeds at once on 200 rows needs {needed / 1e9:.2f} GB .* are free on "
        r".*: 0\.00 GB are missing; train fewer seeds",
    ):
        TaskData.place(toy_dataset(), [config], seeds=3)
    monkeypatch.setattr("toptail.lab.training.data.free_bytes", lambda: needed)
    TaskData.place(toy_dataset(), [config], seeds=3)


def test_free_memory_is_the_machines_on_a_cpu() -> None:
    free = memory.free_bytes()
    assert free is None or free > 1_000_000

    class Accelerator:
        platform = "gpu"

        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 100, "bytes_in_use": 30}

    device: Any = Accelerator()
    assert memory.free_bytes(device) == 70
    memory.check_fits("Nothing", 71, None)


def test_images_are_refused() -> None:
    train = walks(2, 5, seed=0)
    images = Trajectories(
        np.zeros((10, 4, 4, 3), np.uint8), train.actions, train.terminals, source="images.npz"
    )
    with pytest.raises(InputError, match=r"images.npz has observations of shape \(4, 4, 3\)"):
        TaskData.place(Dataset(images, images, None))


@pytest.mark.parametrize("name", CRITICS)
def test_a_configuration_comes_back_from_its_file(name: str) -> None:
    settings = (("hidden", (8, 8)), ("temperature", 0.5), ("expectile", 0.7), ("alpha", 2.0))
    config = RunConfig("walks", name, 10, reward="0/1", settings=settings)
    back = RunConfig.from_content(json.loads(json.dumps(config.content)))
    assert back == config
    assert back.hash == config.hash
    assert back.build() == config.build()
    assert dict(config.settings).keys() == dict(settings).keys() & set(
        dict(setting_values(config.build()))
    )


def test_only_what_decides_a_result_changes_the_hash() -> None:
    raw = toy_config()
    assert toy_config(reward="0/1").hash == raw.hash
    assert toy_config(settings=(*raw.settings, ("temperature", 3.0))).hash == raw.hash
    for change in ({"steps": 15}, {"gamma": 0.9}, {"bfloat16": True}, {"batch_size": 17}):
        assert toy_config(**change).hash != raw.hash, change
    tdq = toy_config(critic="tdq")
    assert toy_config(critic="tdq", reward="0/1").hash != tdq.hash
    changed = toy_config(critic="tdq", settings=(("expectile", 0.7), ("ensemble", 1)))
    found = differences(tdq.content, changed.content)
    assert "critic_fields.bellman.expectile (0.9 and 0.7)" in found


@pytest.mark.parametrize("change", [{"steps": 0}, {"batch_size": 0}, {"log_every": 0}])
def test_settings_that_cannot_be(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="whole number of at least 1"):
        toy_config(**change)
    with pytest.raises(InputError, match="more than 0"):
        toy_config(learning_rate=0.0)


def test_a_batch_that_no_compiler_survives_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size=1000000000 must be at most"):
        toy_config(batch_size=1_000_000_000)
