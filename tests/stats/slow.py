"""Slow, independent versions of the arithmetic, written from the definitions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np


def best_of_k(scores: list[float], values: list[float], k: int) -> float:
    """Enumerate every pool of K; a tie at the top is shared evenly."""
    total, pools = Fraction(0), 0
    for pool in combinations(range(len(scores)), k):
        top = max(scores[i] for i in pool)
        tied = [i for i in pool if scores[i] == top]
        total += sum((Fraction(values[i]) for i in tied), Fraction(0)) / len(tied)
        pools += 1
    return float(total / pools)


def tau_b(x: list[float], y: list[float]) -> float:
    concordant = discordant = x_only = y_only = 0
    for i, j in combinations(range(len(x)), 2):
        a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        concordant += a * b > 0
        discordant += a * b < 0
        x_only += a == 0 and b != 0
        y_only += b == 0 and a != 0
    spread = (concordant + discordant + x_only) * (concordant + discordant + y_only)
    return (concordant - discordant) / spread**0.5 if spread else float("nan")


def auc(scores: list[float], positive: list[bool]) -> float:
    wins = [
        1.0 if a > b else 0.5 if a == b else 0.0
        for (a, p), (b, q) in product(zip(scores, positive, strict=True), repeat=2)
        if p and not q
    ]
    return sum(wins) / len(wins) if wins else float("nan")


def recall_at_k(scores: list[float], target: int, k: int) -> float:
    """Share of all tie-breaking orders that put the target among the first k."""
    above = sum(s > scores[target] for s in scores)
    tied = [i for i, s in enumerate(scores) if s == scores[target]]
    places = [above + position for position in range(len(tied))]  # the target's place, each equal
    return sum(place < k for place in places) / len(places)


def spearman(x: list[float], y: list[float]) -> float:
    def ranks(z: list[float]) -> list[float]:
        return [sum(b < a for b in z) + (sum(b == a for b in z) + 1) / 2 for a in z]

    a, b = np.array(ranks(x)), np.array(ranks(y))
    spread = a.std() * b.std()
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread else float("nan")


def decile_means(scores: list[float], values: list[float], bins: int) -> list[float]:
    """Cut every candidate into `bins` equal pieces and deal the pieces out in order.

    Within a tie group each bin takes the same share of every member: the mean value.
    """
    groups: dict[float, list[float]] = {}
    for s, v in zip(scores, values, strict=True):
        groups.setdefault(s, []).append(v)
    pieces: list[float] = []
    for s in sorted(groups):
        mean = sum(groups[s]) / len(groups[s])
        pieces += [mean] * (bins * len(groups[s]))
    n = len(scores)
    return [sum(pieces[b * n : (b + 1) * n]) / n for b in range(bins)]


def holm(p: list[float]) -> list[float]:
    """Adjusted p: the smallest alpha at which the step-down procedure rejects."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted = [0.0] * len(p)
    for place, i in enumerate(order):
        adjusted[i] = min(1.0, max((len(p) - q) * p[order[q]] for q in range(place + 1)))
    return adjusted
