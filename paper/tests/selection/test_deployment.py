"""Deployment checks: episodes, best-of-K at every step, spreads, and the files they leave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.critics.slow_full import Settings, embed
from tests.training.toy import SMALL, walks
from toptail.errors import InputError
from toptail.io.files import sha256
from toptail.io.json_files import read_json, write_json
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.critics.registry import full_size
from toptail.lab.proposals.denoiser import Diffusion, row_keys
from toptail.lab.proposals.diffusion import DiffusionPolicy, DiffusionRun
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.queries import QueryConfig, freeze_queries
from toptail.lab.tasks.simulator import make_env, package_randomness
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.config import RunConfig
from toptail.lab.training.data import TaskData
from toptail.lab.training.session import train_runs
from toptail_paper.selection.deployment import Deployment, DeploymentConfig
from toptail_paper.selection.deployment.actor import ActorConfig
from toptail_paper.selection.deployment.config import EpisodeConfig, SearchConfig, SpreadConfig
from toptail_paper.selection.deployment.episodes import (
    Act,
    evaluation_episodes,
    follow,
    reset_seed,
    success,
)
from toptail_paper.selection.deployment.run import (
    ResultFile,
    load_deployed,
    score_spread,
    spread_of,
)
from toptail_paper.selection.deployment.search import Chooser

POINT = "pointmaze-medium-v0"
Floats = NDArray[np.float32]


# Episodes ----------------------------------------------------------------------------------


def walker(maze: Maze, targets: NDArray[np.float64]) -> Act:
    """Walk through the maze at full speed, and from goal 5's cells at too low a speed."""
    speed = np.where(np.arange(len(targets)) == 4, 0.1, 1.0)[:, None]

    def act(observations: Floats) -> Floats:
        near = maze.cell(observations) == maze.cell(targets)
        aim = np.where(near[:, None], targets, maze.subgoal(observations, targets))
        way = aim - observations
        steps = speed * way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 0.2)
        return np.asarray(steps, np.float32)

    return act


def test_episodes_go_as_the_environment_itself_goes() -> None:
    """Seeded resets, goals, steps, tolerance and end: one environment after another."""
    episodes = evaluation_episodes(POINT, EpisodeConfig(per_goal=1, limit=250, seed=3))
    assert episodes.starts.goals is not None
    act = walker(Maze.of(make_env(POINT)), episodes.starts.goals.astype(np.float64))
    reached = follow(episodes, act)
    assert episodes.goal.tolist() == [1, 2, 3, 4, 5]
    env = make_env(POINT)
    for i, number in enumerate(episodes.goal):
        with package_randomness(reset_seed(3, int(number), 0)) as seed:
            env.action_space.seed(seed)
            observation, info = env.reset(seed=seed, options={"task_id": int(number)})
        np.testing.assert_array_equal(episodes.goals[i], np.float32(info["goal"]))
        step, ended = 0, False
        while not ended and step < 250:
            rows = np.tile(np.float32(observation), (5, 1))
            observation, _, ended, _, _ = env.step(act(rows)[i])
            step += 1
        assert reached[i] == (step if ended else 0)
    assert (reached > 0).tolist() == [True] * 4 + [False]


def test_resets_are_seeded_noisy_and_limited_as_the_environment_says() -> None:
    many, one, other = (
        evaluation_episodes(POINT, EpisodeConfig(n, seed=seed))
        for n, seed in ((2, 0), (1, 0), (1, 1))
    )
    assert many.limit == 1000
    first, alone, others = (each.starts.trajectories.observations for each in (many, one, other))
    np.testing.assert_array_equal(first[::2], alone)
    assert (np.abs(alone - others).max(axis=1) > 0).all()
    assert (np.abs(many.goals[::2] - many.goals[1::2]).max(axis=1) > 0).all()
    # Noise of at most 1 around the start of the first task, the centre of cell (1, 1).
    assert np.abs(first[:2]).max() <= 1.0
    tiled = many.take(np.tile(np.arange(len(many)), 3))
    np.testing.assert_array_equal(tiled.goals, np.concatenate([many.goals] * 3))
    assert len(tiled) == 30


def test_success_is_counted_by_goal_with_intervals() -> None:
    found = success(np.array([1, 1, 2, 2]), np.array([10, 0, 20, 30]), limit=100)
    assert (found["successes"], found["episodes"], found["rate"]) == (3, 4, 0.75)
    assert found["mean_length"] == (10 + 100 + 20 + 30) / 4
    assert {k: v["rate"] for k, v in found["goals"].items()} == {"1": 0.5, "2": 1.0}
    # Wilson (1927): roots of (0.75 - p)^2 = z^2 p (1 - p) / 4.
    for p in (found["low"], found["high"]):
        np.testing.assert_allclose((0.75 - p) ** 2, 1.959964**2 * p * (1 - p) / 4, rtol=1e-6)
    assert found["low"] < 0.75 < found["high"]


# Search ------------------------------------------------------------------------------------

SEARCH = SearchConfig(ks=(1, 2, 5), noise=0.4, ddim_steps=3, seed=7)
STATE, ACTION, GOAL, N = 3, 2, 3, 4


@dataclass(frozen=True)
class Case:
    critic: TrainedCritic
    policy: DiffusionPolicy
    goals: Floats
    states: Floats


@cache
def case() -> Case:
    critic = full_size("tdq", hidden=(8,))
    model = Diffusion(hidden=(8,), levels=6, time_dim=4)
    params = [
        jax.jit(x.init, static_argnums=(1, 2, 3))(jax.random.key(i), STATE, ACTION, GOAL)
        for i, x in enumerate((critic, model))
    ]
    rng = np.random.default_rng(0)
    goals, states = (rng.normal(size=(n, STATE)).astype(np.float32) for n in (N, 3 * N))
    return Case(TrainedCritic(critic, params[0]), DiffusionPolicy(model, params[1]), goals, states)


def slow_actions(config: SearchConfig, critic: TrainedCritic, states: Floats, step: int) -> Floats:
    """One row at a time: sample, add noise, clip, score each candidate, take the best."""
    key_base, key_noise = jax.random.split(jax.random.key(config.seed))
    policy, goals, chosen = case().policy, case().goals, []
    for row, state in enumerate(states):
        k, episode = config.ks[row // N], row % N
        place = (np.array([episode]), np.array([step]))
        key = row_keys(key_base, *place)
        base = policy.sample_rows(key, state[None], goals[[episode]], config.ddim_steps)[0]
        (own,) = row_keys(key_noise, *place)
        noise = config.noise * np.asarray(jax.random.normal(own, (config.ks[-1], ACTION)))
        best, most = None, -np.inf
        for j in range(k):
            shift = 0.0 if config.keep_base and j == 0 else noise[j]
            candidate = np.clip(base + shift, -1, 1)
            score = float(critic.score(state, candidate, goals[episode]))
            if score > most:
                best, most = candidate, score
        chosen.append(best)
    return np.array(chosen, np.float32)


@pytest.mark.parametrize("keep_base", [False, True])
def test_every_row_executes_the_best_of_its_own_candidates(keep_base: bool) -> None:
    config = replace(SEARCH, keep_base=keep_base)
    chooser = Chooser(config, case().critic, case().policy, case().goals)
    for step in range(2):
        states = case().states + step
        expected = slow_actions(config, case().critic, states, step)
        np.testing.assert_allclose(chooser(states), expected, atol=1e-5)


def test_all_k_and_all_critics_share_their_draws() -> None:
    """From equal states: K = 1 does not ask the critic, and more candidates never score lower."""
    c = case()
    params = jax.tree.map(lambda leaf: -leaf, c.critic.params)
    states = np.tile(c.states[:N], (3, 1))
    one, other = (
        Chooser(SEARCH, critic, c.policy, c.goals)(states).reshape(3, N, ACTION)
        for critic in (c.critic, TrainedCritic(c.critic.critic, params))
    )
    np.testing.assert_array_equal(one[0], other[0])
    assert np.abs(one[2] - other[2]).max() > 0.01
    scores = c.critic.score(states.reshape(3, N, STATE), one, c.goals[None])
    assert (np.diff(scores, axis=0) >= -1e-6).all()
    assert (scores[2] > scores[0]).any()


@pytest.mark.parametrize("wrong", [{"ks": ()}, {"ks": (2, 1)}, {"ks": (0, 1)}, {"noise": -0.1}])
def test_searches_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        SearchConfig(**wrong)


# Spread ------------------------------------------------------------------------------------


def test_spread_by_hand() -> None:
    spread = spread_of(np.array([[9.0, 10.0, 11.0, 10.0], [-1.0, -3.0, -1.0, -3.0]]))
    np.testing.assert_allclose(spread.range, [2 / 10, 2 / 2])
    np.testing.assert_allclose(spread.deviation, [np.sqrt(0.5) / 10, 1 / 2])


def test_spreads_are_medians_over_states_of_the_scores_there() -> None:
    """Every action of every state scored by itself, in NumPy."""
    val = walks(4, 100, seed=3)
    network = full_size("raw", hidden=(8,), embed_dim=4)
    init = jax.jit(network.init, static_argnums=(1, 2, 3))
    critic = TrainedCritic(network, init(jax.random.key(1), 2, 2, 2))
    found = score_spread(SpreadConfig(actions=20, per_group=50, seed=2), critic, val)
    queries = freeze_queries(val, QueryConfig(per_group=50, seed=2))
    actions = np.random.default_rng([2, 1]).uniform(-1, 1, (20, 2))
    params = {name: np.asarray(leaf, np.float64) for name, leaf in critic.params.items()}
    ranges, deviations = [], []
    for query in zip(queries.states, queries.goals, strict=True):
        s, g = (np.tile(x.astype(np.float64), (20, 1)) for x in query)
        phi, psi = embed(params, Settings(embed_dim=4), s, actions, g)
        scores = (phi * psi).sum(axis=-1).mean(axis=0) / np.sqrt(4)
        ranges.append((scores.max() - scores.min()) / abs(scores.mean()))
        deviations.append(scores.std() / abs(scores.mean()))
    assert found["all"]["states"] == 150
    np.testing.assert_allclose(found["all"]["range"]["median"], np.median(ranges), rtol=1e-3)
    far = found["far"]["deviation"]
    np.testing.assert_allclose(far["median"], np.median(deviations[100:]), rtol=1e-3)
    assert far["lower_quartile"] < far["median"] < far["upper_quartile"]


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
