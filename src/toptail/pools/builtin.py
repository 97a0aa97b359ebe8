r"""Built-in pools whose truth is known in closed form.

Values are independent uniforms on [0, 1], so with K candidates the oracle is worth
K/(K+1), a random candidate 1/2, and the worst one 1/(K+1). One scorer is right about
every candidate except a share p of bad ones (value 0), which it puts on top: with K
draws it avoids them only with probability (1-p)^K, the optimizer's curse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toptail.errors import check_whole
from toptail.pools.scored import ScoredPools
from toptail.stats.best_of_k import Floats

CURSED_SHARE = 0.02


def builtin_pools(queries: int = 400, candidates: int = 64, seed: int = 0) -> ScoredPools:
    """Five scorers on the same pools: perfect, noisy, cursed, reversed, constant.

    A share :data:`CURSED_SHARE` of the candidates is bad (value 0) and marked off
    support; the other values are uniform on [0, 1]. ``cursed`` scores the bad ones above
    all others and is perfect elsewhere; ``noisy`` adds N(0, 0.25) to the value.

    Parameters
    ----------
    queries
        How many pools there are.
    candidates
        How many candidates each pool has.
    seed
        Seed of the draws.
    """
    check_whole("seed", seed, 0)
    rng = np.random.default_rng(seed)
    shape = (queries, candidates)
    bad = rng.random(shape) < CURSED_SHARE
    value = np.where(bad, 0.0, rng.random(shape))
    scores = {
        "perfect": value,
        "noisy": value + rng.normal(0.0, 0.25, shape),
        "cursed": np.where(bad, 2.0 + rng.random(shape), value),
        "reversed": -value,
        "constant": np.zeros(shape),
    }
    return ScoredPools.from_arrays(scores, value, support=~bad, source="built-in pools")


def expected(scorer: str) -> Callable[[Floats], Floats]:
    """Closed-form expected value of best-of-K for a built-in scorer, as a function of K.

    With p the bad share, the number of good candidates among K is binomial, and the best
    of G good ones is worth G/(G+1); the sums have closed forms. ``noisy`` has none.
    """
    p = CURSED_SHARE
    forms: dict[str, Callable[[Floats], Floats]] = {
        # E[G/(G+1)] = 1 - (1 - p^(K+1)) / ((K+1)(1-p)) for G ~ Binomial(K, 1-p)
        "perfect": lambda k: 1.0 - (1.0 - p ** (k + 1)) / ((k + 1) * (1.0 - p)),
        # Any bad draw wins and is worth 0.
        "cursed": lambda k: (1.0 - p) ** k * k / (k + 1),
        # The worst of K: 0 as soon as one is bad, else 1/(K+1).
        "reversed": lambda k: (1.0 - p) ** k / (k + 1),
        "constant": lambda k: np.full_like(k, (1.0 - p) / 2),
    }
    return forms[scorer]
