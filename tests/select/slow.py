"""Every selector once more, slowly: plain Python on one pool, and all K-subsets one by one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

Columns = Mapping[str, Sequence[Any]]
Slow = Callable[[Columns], list[float]]


def over_subsets(slow: Slow, columns: Columns, k: int) -> np.ndarray:
    """Mean weights over every K-subset of one pool."""
    n = len(next(iter(columns.values())))
    total = np.zeros(n)
    chosen = list(combinations(range(n), k))
    for subset in chosen:
        part = {name: [column[i] for i in subset] for name, column in columns.items()}
        total[list(subset)] += slow(part)
    return total / len(chosen)


def place(score: str, which: Callable[[int], int]) -> Slow:
    """The candidate at a place (1 is the best), every order of tied ones counted."""

    def weights(pool: Columns) -> list[float]:
        s = pool[score]
        at = min(which(len(s)), len(s))
        found = []
        for own in s:
            better, equal = sum(x > own for x in s), sum(x == own for x in s)
            found.append(1 / equal if better < at <= better + equal else 0.0)
        return found

    return weights


def best(score: str) -> Slow:
    return place(score, lambda _: 1)


def joined(members: Sequence[str], join: Callable[[list[float]], float]) -> Slow:
    def weights(pool: Columns) -> list[float]:
        n = len(pool[members[0]])
        return best("s")({"s": [join([pool[m][i] for m in members]) for i in range(n)]})

    return weights


def of_ranks(members: Sequence[str], join: Callable[[list[float]], float]) -> Slow:
    def weights(pool: Columns) -> list[float]:
        ranks = {}
        for m in members:
            s = pool[m]
            ranks[m] = [sum(y < x for y in s) + (sum(y == x for y in s) + 1) / 2 for x in s]
        n = len(ranks[members[0]])
        return joined(members, lambda x: round(join(x), 9))({m: ranks[m][:n] for m in members})

    return weights


def reciprocal(members: Sequence[str], constant: float) -> Slow:
    def weights(pool: Columns) -> list[float]:
        total = [0.0] * len(pool[members[0]])
        for m in members:
            s = pool[m]
            for i, x in enumerate(s):
                rank = sum(y > x for y in s) + (sum(y == x for y in s) + 1) / 2
                total[i] += 1 / (constant + rank)
        return best("s")({"s": [round(x, 12) for x in total]})

    return weights


def any_member(members: Sequence[str], make: Callable[[str], Slow]) -> Slow:
    def weights(pool: Columns) -> list[float]:
        found = [make(m)(pool) for m in members]
        return [sum(each) / len(members) for each in zip(*found, strict=True)]

    return weights


def filtered(score: str, by: str, least: float) -> Slow:
    def weights(pool: Columns) -> list[float]:
        passed = [x >= least for x in pool[by]]
        column = pool[score] if any(passed) else pool[by]
        among = [c for c, p in zip(column, passed, strict=True) if p or not any(passed)]
        hits = [
            (p or not any(passed)) and c == max(among) for c, p in zip(column, passed, strict=True)
        ]
        return [h / sum(hits) for h in hits]

    return weights


def threshold(score: str, least: float) -> Slow:
    def weights(pool: Columns) -> list[float]:
        return [
            w if s >= least else 0.0 for w, s in zip(best(score)(pool), pool[score], strict=True)
        ]

    return weights


def poisson(score: str, mean: float) -> Slow:
    def weights(pool: Columns) -> list[float]:
        k = len(pool[score])
        chance = [math.exp(-(mean - 1)) * (mean - 1) ** j / math.factorial(j) for j in range(k)]
        chance[-1] = 1 - sum(chance[:-1])
        parts = [p * over_subsets(best(score), pool, j + 1) for j, p in enumerate(chance)]
        return list(np.sum(parts, axis=0))

    return weights


def soft(score: str, beta: float) -> Slow:
    def weights(pool: Columns) -> list[float]:
        s = pool[score]
        if max(s) == -math.inf:
            return [1 / len(s)] * len(s)
        raised = [0.0 if x == -math.inf else math.exp(beta * (x - max(s))) for x in s]
        return [x / sum(raised) for x in raised]

    return weights


def chi2(score: str, beta: float) -> Slow:
    """Lambda by halving an interval."""

    def weights(pool: Columns) -> list[float]:
        s = pool[score]
        k, top = len(s), max(s)
        if top == -math.inf:
            return [1 / k] * k
        low, high = top - k * beta, top
        for _ in range(200):
            middle = (low + high) / 2
            if sum(max(x - middle, 0.0) for x in s) > k * beta:
                low = middle
            else:
                high = middle
        raised = [max(x - low, 0.0) for x in s]
        return [x / sum(raised) for x in raised]

    return weights


def top_by(score: str, by: str, top: int) -> Slow:
    def weights(pool: Columns) -> list[float]:
        edge = sorted(pool[by], reverse=True)[min(top, len(pool[by])) - 1]
        inside = [b >= edge for b in pool[by]]
        most = max(s for s, i in zip(pool[score], inside, strict=True) if i)
        hits = [i and s == most for s, i in zip(pool[score], inside, strict=True)]
        return [h / sum(hits) for h in hits]

    return weights


def vote(counted: Callable[[Columns], list[float]], by: str | None = None) -> Slow:
    def weights(pool: Columns) -> list[float]:
        answers = pool["answer"]
        votes: Counter[Any] = Counter()
        for answer, count in zip(answers, counted(pool), strict=True):
            votes[answer] += count  # type: ignore[assignment]
        most = max(votes.values())
        won = [a for a, v in votes.items() if math.isclose(v, most, rel_tol=1e-9)]
        result = [0.0] * len(answers)
        for answer in won:
            own = [i for i, a in enumerate(answers) if a == answer]
            if by is not None:
                own = [i for i in own if pool[by][i] == max(pool[by][j] for j in own)]
            for i in own:
                result[i] = 1 / len(won) / len(own)
        return result

    return weights
