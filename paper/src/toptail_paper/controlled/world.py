"""The controlled 2-D world: closed-form value, closed-form support.

A state is a point of the plane, an action a displacement, and one step ends the episode:

    s' = s + a + eps,   eps ~ N(0, sigma^2 I)   (sigma = 0 unless stated)
    r  = -||s' - g||
    Q*(s, a, g) = E[r] = -m(||s + a - g||),     m the identity for sigma = 0, else the Rice mean

Every logged action lies in the support disk ``||a|| <= R``. A share of the actions is aligned
with the goal the transition was logged for; the rest is uniform in the disk. That goal, not the
reached state, is the contrastive positive of (s, a).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.special
from numpy.typing import NDArray

from toptail.errors import InputError

Floats = NDArray[np.float64]

ACTION_DIM = 2
"""States, actions and goals are all points of the plane."""


@dataclass(frozen=True)
class ControlledWorld:
    """Everything that defines the world, its data and its queries."""

    radius: float = 0.40
    """Radius R of the support disk that every logged action lies in."""
    box: float = 1.0
    """Actions are restricted to [-box, box] in each coordinate."""
    state_range: float = 2.0
    """States and goals of the data are uniform in [-state_range, state_range]^2."""
    aligned_share: float = 0.5
    """Share of logged actions that point at their goal; the others are uniform in the disk."""
    aligned_noise: float = 0.25
    """Standard deviation, in units of R, of the Gaussian noise on a goal-aligned action."""
    query_share: float = 0.6
    """Query goals are uniform in the disk of radius query_share * R around the state 0."""
    proposal_scale: float = 1.2
    """Standard deviation, in units of R, of the Gaussian that candidates are drawn from."""
    sigma: float = 0.0
    """Standard deviation of the transition noise; 0 is the deterministic world of the tables."""

    def __post_init__(self) -> None:
        if not 0.0 < self.radius <= self.box:
            raise InputError(
                f"The support radius must lie in (0, {self.box}], the action box, "
                f"but it is {self.radius}; choose a smaller radius."
            )
        if not 0.0 <= self.aligned_share <= 1.0:
            raise InputError(
                f"aligned_share is a share and must lie in [0, 1], but it is {self.aligned_share}."
            )
        if self.sigma < 0.0 or self.aligned_noise < 0.0:
            raise InputError(
                "sigma and aligned_noise are standard deviations and cannot be negative: "
                f"got {self.sigma} and {self.aligned_noise}."
            )


class Transitions(NamedTuple):
    """A logged data set: n one-step episodes."""

    states: Floats
    """[n, 2] where the step began."""
    actions: Floats
    """[n, 2] what was done, always inside the support disk."""
    goals: Floats
    """[n, 2] the goal the action was drawn for: the contrastive positive."""
    next_states: Floats
    """[n, 2] where the step ended."""
    rewards: Floats
    """[n] -||s' - g||."""


class Queries(NamedTuple):
    """Decision points: m pairs of a state and a goal."""

    states: Floats
    """[m, 2] all zero."""
    goals: Floats
    """[m, 2] inside the disk of radius query_share * R, so the optimum is on support."""


def uniform_disk(n: int, radius: float, rng: np.random.Generator) -> Floats:
    """Draw n points uniformly from a disk: angle uniform, squared length uniform. [n, 2]."""
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    length = radius * np.sqrt(rng.uniform(0.0, 1.0, n))
    return np.stack([length * np.cos(angle), length * np.sin(angle)], axis=-1)


def project_to_disk(points: Floats, radius: float) -> Floats:
    """Move each point [..., 2] outside the disk to the nearest point of the disk."""
    norm = np.linalg.norm(points, axis=-1, keepdims=True)
    # An ulp inside the rim, so that rounding never leaves a data action off support.
    shrink = radius * (1.0 - 1e-12) / np.maximum(norm, np.finfo(np.float64).tiny)
    return np.where(norm > radius, points * shrink, points)


def sample_data(world: ControlledWorld, n: int, rng: np.random.Generator) -> Transitions:
    """Draw a data set of n transitions.

    With probability ``aligned_share`` the action is the goal-directed step of length
    min(||g - s||, R) plus Gaussian noise of standard deviation ``aligned_noise * R``, projected
    back into the disk; otherwise it is uniform in the disk.
    """
    states = rng.uniform(-world.state_range, world.state_range, (n, ACTION_DIM))
    goals = rng.uniform(-world.state_range, world.state_range, (n, ACTION_DIM))
    aimed = project_to_disk(goals - states, world.radius)
    noise = rng.normal(0.0, world.aligned_noise * world.radius, (n, ACTION_DIM))
    aligned = project_to_disk(aimed + noise, world.radius)
    is_aligned = rng.random((n, 1)) < world.aligned_share
    actions = np.where(is_aligned, aligned, uniform_disk(n, world.radius, rng))
    next_states = states + actions + rng.normal(0.0, world.sigma, (n, ACTION_DIM))
    rewards = -np.linalg.norm(next_states - goals, axis=-1)
    return Transitions(states, actions, goals, next_states, rewards)


def sample_queries(world: ControlledWorld, m: int, rng: np.random.Generator) -> Queries:
    """Draw m decision queries: state 0, goal uniform in the disk of radius query_share * R."""
    goals = uniform_disk(m, world.query_share * world.radius, rng)
    return Queries(np.zeros((m, ACTION_DIM)), goals)


def clipped_gaussian(
    queries: int, candidates: int, dim: int, scale: float, box: float, rng: np.random.Generator
) -> Floats:
    """Draw i.i.d. N(0, scale^2 I) candidates and clip each coordinate to [-box, box].

    They are [queries, candidates, dim] and do not depend on the query, as best-of-K theory assumes.
    """
    return np.clip(rng.normal(0.0, scale, (queries, candidates, dim)), -box, box)


def exact_value(world: ControlledWorld, states: Floats, actions: Floats, goals: Floats) -> Floats:
    """Q*(s, a, g) = -m(||s + a - g||) for arrays [..., 2] that broadcast; larger is better."""
    return -rice_mean(np.linalg.norm(states + actions - goals, axis=-1), world.sigma)


def on_support(world: ControlledWorld, actions: Floats) -> NDArray[np.bool_]:
    """True where ||a|| <= R, for actions [..., 2]."""
    return np.asarray(np.linalg.norm(actions, axis=-1) <= world.radius)


def rice_mean(distance: Floats, sigma: float) -> Floats:
    r"""Mean of ||d + eps|| for a fixed vector d of length `distance`, eps ~ N(0, sigma^2 I_2).

    .. math:: m(d) = \sigma\sqrt{\pi/2}\,
              \left[(1 + 2y)\,e^{-y}I_0(y) + 2y\,e^{-y}I_1(y)\right],\quad y = d^2/(4\sigma^2)

    m is strictly increasing with m(0) = sigma sqrt(pi/2) and m(d) - d falling to 0, so it keeps
    the order of distances and moves the difference of two by at most sigma sqrt(pi/2).
    """
    if sigma == 0.0:
        return distance
    y = (distance / (2.0 * sigma)) ** 2
    # i0e and i1e carry the factor exp(-y), so nothing overflows for a small sigma.
    bracket = (1.0 + 2.0 * y) * scipy.special.i0e(y) + 2.0 * y * scipy.special.i1e(y)
    return np.asarray(sigma * np.sqrt(np.pi / 2.0) * bracket)
