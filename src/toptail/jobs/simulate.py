"""How long a graph of pieces takes on so many nodes: a discrete simulation, failures included."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toptail.jobs.job import ONE_CORE, Resources


@dataclass(frozen=True)
class TimedPiece:
    """One piece, as far as its time goes."""

    seconds: float
    """How long it takes, without the start of its worker."""
    needs: Sequence[int] = ()
    """Positions of pieces that must be done before."""
    resources: Resources = ONE_CORE
    """What it takes meanwhile."""


@dataclass(frozen=True)
class Simulated:
    """What came of it."""

    seconds: float
    """From the first start to the last end."""
    work: float
    """Seconds of all pieces together, those that were lost included."""
    lost: int
    """How often a piece was begun again."""


def simulate(
    pieces: Sequence[TimedPiece],
    nodes: Sequence[Resources],
    *,
    start: float = 0.0,
    worker: float = 0.0,
    between_failures: float | None = None,
    seed: int = 0,
) -> Simulated:
    """Begin every piece as soon as what it needs is done and a node has room, in their order.

    ``start`` is what beginning a piece costs, ``worker`` the start of a process that does pieces:
    a node has as many as it ever does pieces at once. A node fails every ``between_failures``
    seconds on average (exponentially): it is replaced at once, and what it did is begun again, by
    new processes. A piece that fits no node is an error.
    """
    rng = np.random.default_rng(seed)
    free = [[node.cpus, node.gpus] for node in nodes]
    waiting = list(range(len(pieces)))
    running: dict[int, tuple[int, float]] = {}  # piece -> node, begun
    workers = [0] * len(nodes)
    done: set[int] = set()
    events: list[tuple[float, int, int, float]] = []  # time, what, which, when that was begun
    now, work, lost = 0.0, 0.0, 0
    if between_failures is not None:
        for node in range(len(nodes)):
            heapq.heappush(events, (rng.exponential(between_failures), 1, node, 0.0))
    while len(done) < len(pieces):
        for piece in [p for p in waiting if done.issuperset(pieces[p].needs)]:
            place = _room(free, pieces[piece].resources)
            if place is not None:
                _take(free[place], pieces[piece].resources, -1)
                waiting.remove(piece)
                running[piece] = (place, now)
                busy = sum(node == place for node, _ in running.values())
                fresh, workers[place] = busy > workers[place], max(busy, workers[place])
                took = start + worker * fresh + pieces[piece].seconds
                heapq.heappush(events, (now + took, 0, piece, now))
        if not running and waiting:
            raise ValueError("a piece takes more than any node has, or pieces need each other")
        now, what, which, begun = heapq.heappop(events)
        if what == 0 and which in running and running[which][1] == begun:
            node, _ = running.pop(which)
            _take(free[node], pieces[which].resources, 1)
            work += now - begun
            done.add(which)
        elif what == 1 and between_failures is not None:
            for piece in [p for p, (node, _) in running.items() if node == which]:
                work += now - running.pop(piece)[1]
                _take(free[which], pieces[piece].resources, 1)
                waiting.append(piece)
                lost += 1
            waiting.sort()
            workers[which] = 0
            heapq.heappush(events, (now + rng.exponential(between_failures), 1, which, 0.0))
    return Simulated(now, work, lost)


def _room(free: Sequence[Sequence[float]], wanted: Resources) -> int | None:
    """The first node that has room for a piece."""
    fits = (n for n, (cpus, gpus) in enumerate(free) if wanted.cpus <= cpus and wanted.gpus <= gpus)
    return next(fits, None)


def _take(free: list[float], wanted: Resources, sign: int) -> None:
    free[0] += sign * wanted.cpus
    free[1] += sign * wanted.gpus
