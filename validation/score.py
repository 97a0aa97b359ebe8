"""``python -m validation score``: full-size critics read in blocks of rows, and by factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from toptail.lab.critics.registry import MAIN
from validation.clock import seconds
from validation.table import Row

if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic
    from toptail.lab.scorers.base import Rows, Score
    from toptail.lab.tasks.trajectories import IntArray

STATE, ACTION = 29, 8
"""Columns of a state (and of a goal) and of an action: AntMaze's."""


def bench_score() -> Iterator[Row]:
    """Rows of the benchmark table, each as soon as it is measured."""
    hidden = (512, 512, 512)
    yield from bench_blocks(MAIN, rows=16_384, rounds=5, hidden=hidden)
    yield from bench_factors(MAIN, triples=3_000, goals=50, seeds=3, hidden=hidden)


def bench_blocks(
    critics: tuple[str, ...], rows: int, rounds: int, hidden: tuple[int, ...]
) -> Iterator[Row]:
    """Blocks of rows against all rows at once.

    Both sides read the deployed scalar of the same untrained critic in float32 on the same rows:
    the plain readout, and the readout as `TrainedCritic` reads it. They take turns, and medians
    over the rounds are reported.
    """
    import jax
    import jax.numpy as jnp

    from toptail.lab.critics.base import in_blocks
    from toptail.lab.critics.registry import full_size

    data = [jnp.asarray(x) for x in _normal(rows, STATE, ACTION, STATE)]
    for name in critics:
        critic = full_size(name, hidden=hidden)
        params = critic.init(jax.random.key(0), STATE, ACTION, STATE)
        plain = critic.readouts()[critic.deployed]
        sides = [jax.jit(read) for read in (plain, in_blocks(plain))]
        rounds_taken = [
            [_seconds(partial(side, params, *data)) for side in sides] for _ in range(rounds + 1)
        ]
        took = np.array(rounds_taken[1:])  # the first one compiles
        whole, blocks = np.median(took, axis=0)
        yield Row(
            f"{name}, {rows:,} rows on {jax.default_backend()}",
            f"{blocks:.3f} s, {np.median(took[:, 0] / took[:, 1]):.1f} times as fast",
            f"{whole:.3f} s for all rows at once",
        )


def bench_factors(
    critics: tuple[str, ...], triples: int, goals: int, seeds: int, hidden: tuple[int, ...]
) -> Iterator[Row]:
    """Each pair and each goal embedded once, against every triple read whole.

    Both sides answer what retrieval asks: every triple's (s, a) towards its own goal and goals of
    others. They go the way of the semantics study, block by block, and take turns, seed by seed;
    the sums over seeds are reported. A critic without factors counts on both sides of the last
    row with the same seconds.
    """
    from toptail.lab.critics.registry import full_size

    rows = _normal(triples, STATE, ACTION, STATE)
    goal = np.random.default_rng(1).integers(triples, size=(triples, goals))
    goal[:, 0] = np.arange(triples)
    asked = np.stack([np.repeat(np.arange(triples), goals), goal.ravel()], axis=1)

    def row(what: str, own: float, whole: float) -> Row:
        return Row(
            f"{what}, {triples:,} triples x {goals} goals x {seeds} seeds",
            f"{own:.2f} s, {whole / own:.1f} times as fast",
            f"{whole:.2f} s for every triple by itself",
        )

    total_own = total_whole = 0.0
    for name in critics:
        critic = full_size(name, hidden=hidden)
        own, whole = _both_sides(critic, rows, asked, seeds)
        if whole is not None:
            yield row(name, own, whole)
        total_own += own
        total_whole += own if whole is None else whole
    if len(critics) > 1:
        yield row(", ".join(critics), total_own, total_whole)


def _both_sides(
    critic: Critic, rows: list[Rows], asked: IntArray, seeds: int
) -> tuple[float, float | None]:
    """Seconds by the factors and of triples read whole; the first alone if there are no factors."""
    import jax

    from toptail.lab.critics.base import TrainedCritic
    from toptail.lab.scorers.base import score_shared
    from toptail.lab.scorers.runs import RunScore
    from toptail_paper.semantics.scoring import BLOCK

    states, actions, goals = rows

    def answer(score: Score) -> None:
        for _ in score_shared(score, states, actions, goals, asked, BLOCK):
            pass

    took = []
    for seed in range(seeds):
        params = critic.init(jax.random.key(seed), STATE, ACTION, STATE)
        score = RunScore(partial(TrainedCritic, critic, params), critic.deployed)
        sides: list[Score] = [score]
        if critic.factors(critic.deployed) is not None:
            sides.append(score.__call__)  # as a function of rows, it shows no factors
        if seed == 0:
            for side in sides:
                answer(side)  # compiles
        took.append([_seconds(partial(answer, side)) for side in sides])
    own, *whole = np.sum(took, axis=0)
    return float(own), float(whole[0]) if whole else None


def _normal(n: int, *widths: int) -> list[Rows]:
    draw = np.random.default_rng(0)
    return [draw.normal(size=(n, width)).astype(np.float32) for width in widths]


def _seconds(call: Callable[[], object]) -> float:
    import jax

    return seconds(lambda: jax.block_until_ready(call()))
