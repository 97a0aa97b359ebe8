r"""The ideal critics of the controlled world, in closed form.

One step ends an episode, so that there is no later policy: Q of the behaviour is Q*, and with d = 1
everywhere gamma^d is constant. What remains is the log-ratio. The contrastive positive of (s, a) is
the goal g that a was drawn for, and by Bayes' rule

.. math:: f^*(s, a, g) = \log\frac{p(g \mid s, a)}{p(g)} = \log\frac{p(a \mid s, g)}{p(a \mid s)}.

With m = the step towards g, at most R long, and noise of standard deviation sigma = noise * R,

.. math:: p(a \mid s, g) = \alpha\, N(a; m, \sigma^2 I) + (1 - \alpha) / (\pi R^2)
          \quad\text{for } \|a\| < R,

and on the rim, to which noise was projected, the density per angle is alpha times the integral of
r N(r e; m, sigma^2 I) over r > R. Off the disk there is no data, and the ideal is minus infinity.
p(a | s) is the mean over goals, uniform in the square: in polar coordinates around s the integral
over the length is closed, and the one over the angle is a sum over equal angles.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from toptail.errors import InputError
from toptail_paper.controlled.world import (
    ControlledWorld,
    Floats,
    exact_value,
    on_support,
    project_to_disk,
)

ANGLES = 720
"""Angles of the sum in p(a | s)."""
_RIM = 1e-9
_BLOCK = 2_048


def ideal_scores(
    world: ControlledWorld, states: Floats, actions: Floats, goals: Floats
) -> dict[str, Floats]:
    """Every ideal critic that the world has, for arrays [..., 2] that broadcast: name -> [...]."""
    value = exact_value(world, states, actions, goals)
    found = {"q_star": value, "q_behaviour": value}
    if world.aligned_noise > 0.0:  # else p(a | s, g) has no density
        found["log_ratio"] = log_ratio(world, states, actions, goals)
    return found


def log_ratio(world: ControlledWorld, states: Floats, actions: Floats, goals: Floats) -> Floats:
    """Log p(a | s, g) - log p(a | s) inside the disk, minus infinity off it.

    On the rim itself, which no candidate of a continuous proposal meets, p(a | s) has no closed
    form: use `log_likelihood`, which differs by what does not depend on the goal.
    """
    likelihood = log_likelihood(world, states, actions, goals)
    shape = np.broadcast_shapes(states.shape, actions.shape)
    pairs = [np.broadcast_to(x, shape).reshape(-1, 2) for x in (states, actions)]
    density = np.ones(len(pairs[0]))  # off support the likelihood is 0 in any case
    known = np.flatnonzero(on_support(world, pairs[1]))
    for start in range(0, len(known), _BLOCK):
        rows = known[start : start + _BLOCK]
        density[rows] = action_density(world, *(x[rows] for x in pairs))
    return np.asarray(likelihood - np.log(density).reshape(shape[:-1]))


def log_likelihood(
    world: ControlledWorld, states: Floats, actions: Floats, goals: Floats
) -> Floats:
    """Log p(a | s, g): inside the disk per area, on its rim per angle, else minus infinity."""
    _require_noise(world)
    share, radius, sigma = world.aligned_share, world.radius, world.aligned_noise * world.radius
    aimed = project_to_disk(goals - states, radius)
    area = share * _normal(actions - aimed, sigma) + (1 - share) / (np.pi * radius**2)
    length = np.linalg.norm(actions, axis=-1)
    unit = actions / np.maximum(length, 1e-300)[..., None]
    rim = share * _beyond(unit, aimed, radius, sigma)
    with np.errstate(divide="ignore"):
        inside = np.log(np.where(length >= radius * (1 - _RIM), rim, area))
    return np.where(on_support(world, actions), inside, -np.inf)


def action_density(world: ControlledWorld, states: Floats, actions: Floats) -> Floats:
    """p(a | s) per area inside the disk, for rows [n, 2]: [n]."""
    _require_noise(world)
    share, radius, sigma = world.aligned_share, world.radius, world.aligned_noise * world.radius
    angle = (np.arange(ANGLES) + 0.5) * 2 * np.pi / ANGLES
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    edge = _to_the_edge(world, states, unit)
    near = _within(actions, unit, np.minimum(edge, radius), sigma)
    far = (
        np.maximum(edge**2 - radius**2, 0.0) / 2 * _normal(actions[:, None] - radius * unit, sigma)
    )
    aimed = (near + far).sum(axis=1) * (2 * np.pi / ANGLES) / (2 * world.state_range) ** 2
    return np.asarray(share * aimed + (1 - share) / (np.pi * radius**2))


def _require_noise(world: ControlledWorld) -> None:
    if world.aligned_noise == 0.0:
        raise InputError(
            "Without noise on goal-aligned actions (aligned_noise = 0) they have no density, and "
            "the log-ratio does not exist; give them noise."
        )


def _normal(difference: Floats, sigma: float) -> Floats:
    """Density of N(0, sigma^2 I) in the plane, for [..., 2]."""
    square = (difference**2).sum(axis=-1) / sigma**2
    return np.asarray(np.exp(-0.5 * square) / (2 * np.pi * sigma**2))


def _to_the_edge(world: ControlledWorld, states: Floats, unit: Floats) -> Floats:
    """How far the square of goals reaches from states [n, 2] in directions [m, 2]: [n, m]."""
    end = np.sign(unit) * world.state_range
    with np.errstate(divide="ignore", invalid="ignore"):
        length = (end - states[:, None]) / unit
    return np.asarray(np.where(unit == 0.0, np.inf, length).min(axis=-1))


def _within(actions: Floats, unit: Floats, length: Floats, sigma: float) -> Floats:
    """Integral over 0 < r < length [n, m] of r N(a; r e, sigma^2 I), actions [n, 2]: [n, m]."""
    along = actions @ unit.T
    return _radial(actions[:, None], along, np.zeros_like(along), length, sigma)


def _beyond(unit: Floats, centre: Floats, radius: float, sigma: float) -> Floats:
    """Integral over r > radius of r N(r e; centre, sigma^2 I), for [..., 2]: [...]."""
    along = (unit * centre).sum(axis=-1)
    high = np.full(along.shape, np.inf)
    return _radial(centre, along, np.full(along.shape, radius), high, sigma)


def _radial(point: Floats, along: Floats, low: Floats, high: Floats, sigma: float) -> Floats:
    """Integral of r N(r e - point) over a ray; ``along`` is the point's component on the ray."""
    across = (point**2).sum(axis=-1) - along**2
    a, b = (low - along) / sigma, (high - along) / sigma
    bells = np.exp(-0.5 * a**2) - np.exp(-0.5 * b**2)
    inner = sigma**2 * bells + along * sigma * np.sqrt(2 * np.pi) * (ndtr(b) - ndtr(a))
    return np.asarray(np.exp(-0.5 * across / sigma**2) / (2 * np.pi * sigma**2) * inner)
