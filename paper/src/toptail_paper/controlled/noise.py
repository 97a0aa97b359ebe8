"""The noisy variant: which picks change, and how far regret moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from toptail_paper.controlled.cells import Trained
from toptail_paper.controlled.config import CONTROL
from toptail_paper.controlled.evaluate import Floats, Pools
from toptail_paper.study.tables import StoredCell, cell

Picks = NDArray[np.int64]
"""[m] index of the candidate that was picked from each pool."""


def _regret(value: Floats, pick: Picks) -> Floats:
    """Regret of picks [m] under values [m, n]."""
    regret: Floats = value.max(axis=1) - value[np.arange(len(pick)), pick]
    return regret


def noise_cells(
    picks: Mapping[int, Picks], before: Mapping[int, Picks], pools: Pools
) -> dict[str, StoredCell]:
    """Compare picks [m] by seed with what was picked without noise.

    ``largest_shift`` is the largest change, over queries, that the Rice mean makes to the regret
    of the same pick.
    """
    exact = {seed: _regret(pools.value, pick) for seed, pick in picks.items()}
    noisy = {seed: _regret(pools.value_noisy, pick) for seed, pick in picks.items()}
    return {
        "regret": cell({s: float(x.mean()) for s, x in exact.items()}),
        "regret_noisy": cell({s: float(x.mean()) for s, x in noisy.items()}),
        "largest_shift": cell({s: float(np.abs(noisy[s] - exact[s]).max()) for s in picks}),
        "picks_changed": cell({s: float((picks[s] != before[s]).mean()) for s in picks}),
    }


def critic_picks(units: Sequence[Trained]) -> dict[int, Picks]:
    """Index of the deployed scalar's pick from each pool, by seed."""
    return {u.seed: u.scores()[u.cell.critic.deployed].argmax(axis=1) for u in units}


def noise_rows(
    critics: Mapping[str, Sequence[Trained]], noisy_tdq: Sequence[Trained], pools: Pools
) -> dict[str, dict[str, StoredCell]]:
    """The oracle, each critic of the noise-free world, and TD-Q trained on noisy rewards.

    The contrastive critics never see the reached state: with noise their data, and so their
    parameters and picks, are the same.
    """
    seeds = [unit.seed for unit in noisy_tdq]
    best, best_noisy = (v.argmax(axis=1) for v in (pools.value, pools.value_noisy))
    oracle = (dict.fromkeys(seeds, best_noisy), dict.fromkeys(seeds, best))
    rows = {"oracle": noise_cells(*oracle, pools)}
    for name, units in critics.items():
        picks = critic_picks(units)
        rows[name] = noise_cells(picks, picks, pools)
    rows["tdq_noisy_reward"] = noise_cells(
        critic_picks(noisy_tdq), critic_picks(critics[CONTROL]), pools
    )
    return rows
