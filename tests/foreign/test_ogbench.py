"""Critics of OGBench's checkpoints score as the networks that made them."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.foreign.fixtures import DATA, POINT, checkpoint
from toptail.errors import InputError
from toptail.lab.foreign.networks import iqe
from toptail.lab.foreign.ogbench import Stepper, read_ogbench
from toptail.lab.tasks.files import load_file
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import Simulator

OF_ACTIONS = ("crl", "gciql", "gciql_plain", "qrl", "qrl_mrn")
OF_STATES = ("gcivl", "hiql", "qrl_awr")


def outputs(path: Path) -> dict[str, Any]:
    with np.load(path.parent / "outputs.npz") as stored:
        return dict(stored)


@pytest.mark.parametrize("agent", OF_ACTIONS)
def test_scores_are_those_of_the_original_network(agent: str) -> None:
    critic, known = read_ogbench(checkpoint(agent)), outputs(checkpoint(agent))
    found = critic.score(known["states"], known["actions"], known["goals"])
    np.testing.assert_allclose(found, known["scores"], rtol=2e-5, atol=2e-6)
    assert found.dtype == np.float32
    assert critic.agent == agent.partition("_")[0]
    assert critic.seed == 0
    assert critic.step_reward == (0.0 if agent == "crl" else -1.0)


@pytest.mark.parametrize("agent", OF_STATES)
def test_values_are_those_of_the_original_network_after_a_step(
    agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    critic, known = read_ogbench(checkpoint(agent)), outputs(checkpoint(agent))
    rows = known["states"], known["actions"], known["goals"]
    stepped = critic.score(*rows)
    monkeypatch.setattr(Stepper, "next_states", lambda _, states, actions: states + 0 * actions)
    np.testing.assert_allclose(critic.score(*rows), known["scores"], rtol=2e-5, atol=2e-6)
    assert not np.allclose(stepped, known["scores"], rtol=1e-3)


def test_a_union_of_intervals_is_measured() -> None:
    """Against the length of the union, interval by interval."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5, 16)).astype(np.float32)
    slow = []
    for low, high in zip(x, y, strict=True):
        components = []
        for group in range(2):
            spans = sorted(
                (a, b)
                for a, b in zip(low.reshape(2, 8)[group], high.reshape(2, 8)[group], strict=True)
                if a < b
            )
            length, end = 0.0, -np.inf
            for a, b in spans:
                length += max(0.0, b - max(a, end))
                end = max(end, b)
            components.append(length)
        slow.append(0.3 * np.mean(components) + 0.7 * max(components))
    np.testing.assert_allclose(iqe(x, y, 0.3), slow, rtol=1e-5)


@pytest.mark.parametrize("name", [POINT, "antmaze-medium-navigate-v0"])
def test_many_steps_are_those_of_the_simulator_one_by_one(name: str) -> None:
    data = load_file(DATA / f"{name}.npz")
    rows = np.array([0, 3, 3, 7])
    actions = np.random.default_rng(0).uniform(-1, 1, (4, data.actions.shape[1]))
    found = Stepper(name).next_states(data.observations[rows], actions.astype(np.float32))
    simulator = Simulator(parse_name(name))
    for row, action, after in zip(rows, actions.astype(np.float32), found, strict=True):
        simulator.restore(data, int(row))
        np.testing.assert_allclose(after, simulator.step(action), rtol=1e-5, atol=1e-5)


def test_where_an_observation_hides_the_state_the_data_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOPTAIL_DATA", str(DATA))
    name = "cube-single-play-v0"
    data = load_file(DATA / f"{name}.npz")
    stepper = Stepper(name)
    found = stepper.next_states(data.observations[2:4], data.actions[2:4])
    np.testing.assert_allclose(found, data.observations[3:5], atol=0.05)
    with pytest.raises(InputError, match="no observation of cube-single-play-v0's data"):
        stepper.next_states(data.observations[:1] + 1, data.actions[:1])


def test_rows_of_another_task_are_refused() -> None:
    rows = np.zeros((2, 5), np.float32)
    with pytest.raises(InputError, match=r"takes 6 numbers a row, and is shown 5 \+ 5 \+ 5"):
        read_ogbench(checkpoint("gciql")).score(rows, rows, rows)
    with pytest.raises(InputError, match=r"of \(2, 2\) numbers, not of \(5, 5\)"):
        read_ogbench(checkpoint("gcivl")).score(rows, rows, rows)


def test_a_v_critic_needs_to_know_its_environment(tmp_path: Path) -> None:
    path = tmp_path / "params_20.pkl"
    shutil.copy(checkpoint("gcivl"), path)
    with pytest.raises(InputError, match=r"V-critic \(gcivl\).*flags.json with 'env_name'"):
        read_ogbench(path)
    shutil.copy(checkpoint("crl"), path)
    assert read_ogbench(path).seed is None


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ({"encoder": "impala_small"}, "sees images"),
        ({"discrete": True}, "discrete actions"),
    ],
)
def test_what_is_not_scored_is_said(agent: dict[str, Any], message: str, tmp_path: Path) -> None:
    shutil.copy(checkpoint("gciql"), tmp_path / "params_1.pkl")
    (tmp_path / "flags.json").write_text(json.dumps({"agent": agent}))
    with pytest.raises(InputError, match=message):
        read_ogbench(tmp_path / "params_1.pkl")


def test_a_pickle_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "params_1.pkl"
    others: list[Any] = [{}, {"agent": {"network": {"params": {"modules_actor": {}}}}}, [1]]
    for content in others:
        path.write_bytes(pickle.dumps(content))
        with pytest.raises(InputError, match="holds no critic that is known here"):
            read_ogbench(path)
