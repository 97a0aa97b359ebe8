"""Score surfaces of one seed over the action square, and held-out score separation."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from toptail.lab.critics.base import Critic, Params
from toptail.lab.store.units import Arrays
from toptail.lab.tasks.controlled import exact_value
from toptail_paper.controlled.cells import Trained
from toptail_paper.controlled.config import StudyConfig
from toptail_paper.controlled.evaluate import Floats, Pools, Scores, heldout_scores

QUERY = 0
"""The query that is drawn: the first, whatever it shows."""


def surface(
    critic: Critic, params: Params, state: Floats, actions: Floats, goal: Floats
) -> tuple[Scores, Scores]:
    """Deployed score and ||grad_a f|| at actions [n, 2] of one query: [n] each."""
    read = critic.readouts()[critic.deployed]
    at = (jnp.asarray(state, jnp.float32), jnp.asarray(goal, jnp.float32))

    def score(action: jax.Array) -> jax.Array:
        return read(params, at[0], action, at[1])

    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(score)))(actions.astype(np.float32))
    return np.asarray(values), np.linalg.norm(np.asarray(slopes), axis=-1)


def landscape(units: Mapping[str, Trained], config: StudyConfig, pools: Pools) -> Arrays:
    """All arrays of ``landscape.npz``; units by critic, all of one seed."""
    world = config.world
    axis = np.linspace(-world.box, world.box, config.grid)
    x, y = np.meshgrid(axis, axis)
    grid = np.stack([x.ravel(), y.ravel()], axis=-1)
    state, goal = pools.queries.states[QUERY], pools.queries.goals[QUERY]
    distance = np.linalg.norm(pools.heldout.goals - pools.heldout.states, axis=-1)
    arrays: Arrays = {
        "axis": axis,
        "goal": goal,
        "radius": np.array(world.radius),
        "seed": np.array(next(iter(units.values())).seed),
        "candidates": pools.actions[QUERY],
        "candidate_value": pools.value[QUERY],
        "oracle_pick": np.array(pools.value[QUERY].argmax()),
        "value": exact_value(world, state, grid, goal).reshape(x.shape),
        "distance": distance,
    }
    for name, unit in units.items():
        critic, params = unit.cell.critic, unit.params()
        score, slope = surface(critic, params, state, grid, goal)
        candidate_score = unit.scores()[critic.deployed][QUERY]
        positive, negative = heldout_scores(critic, params, critic.deployed, pools)
        arrays |= {
            f"score_{name}": score.reshape(x.shape),
            f"gradient_{name}": slope.reshape(x.shape),
            f"candidate_score_{name}": candidate_score,
            f"pick_{name}": np.array(candidate_score.argmax()),
            f"positive_{name}": positive,
            f"negative_{name}": negative[:, 0],
        }
    return arrays
