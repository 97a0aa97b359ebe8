"""How often the verdict is wrong, and how often it decides, beside the grid before it.

    python -m validation.verdict --tables 2000 --workers 16 --out rates.json
    python -m validation.verdict --stored rates.json --docs docs/explanation/error-rates.md

The first counts and stores; the second writes the tables of the documentation from what is stored.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.optimize import linprog

from toptail.audit.settings import Rule
from toptail.audit.verdict import LEAST_CLUSTERS, Steps, status_of
from toptail.stats.best_of_k import Floats, Ints, KGrid, selection_weights
from toptail.stats.ends import Shares, Unseen, extreme_weights, moved_weight, shares, unseen_weights
from validation.simulation import computed, flags, store
from validation.verdict_cases import CASES, Case, Clusters

QUERIES: Final = (5, 20, 40, 60, 100, 200, 400)
HIDDEN: Final = (4, 8, 16, 24, 32, 48, 64)
"""Sizes of pools for which it is computed what a grid overlooks."""
_TOGETHER: Final = 100
"""Tables that share one set of weights."""
_SEED: Final = 14
_MARKS: Final = "<!-- rates of verdicts -->\n", "<!-- end of rates -->\n"


class Counted(NamedTuple):
    """A number by each grid: how often it gave the word in question, or what it overlooks."""

    ours: float
    """By the grid of the audit."""
    before: float
    """By the powers of two alone."""


@lru_cache(maxsize=1)
def case_at(at: int) -> Case:
    """The population of this number, which its seed decides."""
    return CASES[at](np.random.default_rng([_SEED, at]))


def cells_of(
    case: Case,
    rule: Rule,
    repetitions: int,
    resamples: int,
    seed: int,
    sizes: tuple[int, ...] = QUERIES,
) -> list[Counted]:
    """The shares of one case at every number of clusters."""
    counted = case.wrong
    if counted == "none":
        counted = "safe" if case.truth().min() > -rule.delta else "unsafe"
    cells = []
    for clusters in sizes:
        rng = np.random.default_rng([_SEED, seed, clusters])
        said = np.zeros(2)
        for start in range(0, repetitions, _TOGETHER):
            tables = min(_TOGETHER, repetitions - start)
            drawn = _draw(case, tables, clusters, rng)
            both = _statuses(case, drawn, _shares(case, drawn, resamples, rng), rule)
            said += [found.count(counted) for found in both]
        cells.append(Counted(*(float(x) for x in said / repetitions)))
    return cells


def _draw(case: Case, tables: int, clusters: int, rng: np.random.Generator) -> Clusters:
    """Tables of clusters from the population: every array ``[tables, clusters, ...]``."""
    shape = tables, clusters
    bad = (rng.random(shape) < case.bad)[..., None]
    at: list[Ints] = [rng.integers(len(p.headroom), size=shape) for p in case.parts]

    def take(name: str) -> Floats:
        good, hurt = (getattr(p, name)[i] for p, i in zip(case.parts, at, strict=True))
        return np.asarray(np.where(bad if good.ndim == 3 else bad[..., 0], hurt, good))

    return Clusters(*(take(name) for name in ("value", "headroom", "ordered", "queries")))


def _statuses(case: Case, drawn: Clusters, found: Shares, rule: Rule) -> Iterator[list[str]]:
    """What is said of each table by the grid, and by the powers of two alone."""
    enough = drawn.headroom.shape[1] >= (2 if case.width is not None else LEAST_CLUSTERS)
    usable = drawn.headroom.mean(axis=1) > 1e-12
    powers = set(KGrid.up_to(case.grid.k_max).steps)
    low = found.low(rule.tail)
    for which in (range(len(case.grid.steps)), [case.grid.steps.index(s) for s in powers]):
        at = np.sort(np.array(which))
        part = _some(found, at)
        high, _ = part.simultaneous_high(1 - rule.level, rule.tail)
        k = tuple(case.grid.steps[i] for i in at)
        yield [
            status_of(Steps(k, *ends), rule, enough) if known else "inconclusive"
            for *ends, known in zip(part.value, low[:, at], high, usable, strict=True)
        ]


def _some(found: Shares, at: Ints) -> Shares:
    """Some of the entries."""
    assert found.steps is not None
    first, second = found.steps
    dd, hh, dh = found.moments
    least, most = found.unseen.least[..., at], found.unseen.most[..., at]
    return replace(
        found,
        value=found.value[..., at],
        steps=(first[at], second[at]),
        moments=(dd[..., at], hh, dh[..., at]),
        unseen=Unseen(least, most, found.unseen.headroom),
    )


def _shares(case: Case, drawn: Clusters, resamples: int, rng: np.random.Generator) -> Shares:
    """The steps of every table with draws, as an audit makes them."""
    clusters = drawn.headroom.shape[1]
    headroom = drawn.headroom[..., None]
    weights = rng.standard_exponential((resamples, clusters + 1))
    weights *= clusters / weights[:, 1:].sum(axis=1, keepdims=True)
    sums = np.concatenate([drawn.value, headroom], axis=2)
    draws = np.moveaxis(np.tensordot(weights[:, 1:], sums, (1, 1)), 0, 2)  # tables, points, draws
    k, n = case.grid.deciding, drawn.ordered.shape[2]
    first, second = np.searchsorted(k, case.grid.steps).T
    weight = unseen_weights(np.maximum(headroom, 0.0))
    if case.width is None:
        ordered = (weight * drawn.ordered).sum(axis=1)
        least, most = (ordered @ ends for ends in extreme_weights(n, k, first, second))
        unseen = Unseen(least, most, (weight * headroom).sum(axis=1))
    else:
        pools = (weight[..., 0] * drawn.queries).sum(axis=1, keepdims=True)
        most = pools * moved_weight(n, k, first, second) * case.width
        unseen = Unseen(-most, most, np.zeros((len(pools), 1)))
    curve, top = draws[:, :-1], draws[:, -1:]
    return shares(drawn.value, headroom, curve, top, weights[:, 0], unseen, (first, second))


def hidden_fall(grid: KGrid, rho: float = Rule.rho) -> float:
    """The largest fall between any two K that its steps can overlook, as a share of the headroom.

    Over all mean values of the score's ranks in pools of k_max: no step of the grid falls by
    more than ``rho``, and no rank is worth more than the headroom above the mean. 0 where the
    grid has every K.
    """
    n = grid.k_max
    weights = selection_weights(n, range(1, n + 1))
    limits = np.array([weights[a - 1] - weights[b - 1] for a, b in grid.steps])
    most, seen = 0.0, set(grid.deciding)
    for a, b in combinations(range(1, n + 1), 2):
        if not (a in seen and b in seen):
            worst = linprog(
                weights[b - 1] - weights[a - 1],
                limits,
                np.full(len(limits), rho),
                np.ones((1, n)),
                [0.0],
                (None, 1.0),
            )
            assert worst.fun is not None, worst.message
            most = max(most, -worst.fun)
    return most


def _cell(task: tuple[int, int, int, int]) -> Counted:
    """One case at one size, in a process of its own."""
    at, clusters, tables, resamples = task
    return cells_of(case_at(at), Rule(), tables, resamples, at, (clusters,))[0]


def _hidden(k_max: int) -> Counted:
    """What the grid of the audit overlooks, and what the powers of two do."""
    return Counted(hidden_fall(KGrid.fine(k_max)), hidden_fall(KGrid.up_to(k_max)))


def measured(tables: int, resamples: int, workers: int) -> dict[str, Any]:
    """Every case at every size, counted in so many processes."""
    tasks = [(at, n, tables, resamples) for at in range(len(CASES)) for n in QUERIES]
    counted = list(computed(_cell, tasks, workers))
    hidden = zip(HIDDEN, computed(_hidden, HIDDEN, workers), strict=True)
    overlooked = [{"pool": n, **each._asdict()} for n, each in hidden]
    cases = []
    for at in range(len(CASES)):
        case, part = case_at(at), counted[at * len(QUERIES) : (at + 1) * len(QUERIES)]
        cases.append(
            {
                "kind": _KINDS[case.wrong],
                "case": case.name,
                "worst_step": float(case.truth().min()),
                "ours": [cell.ours for cell in part],
                "before": [cell.before for cell in part],
            }
        )
    about = {"seed": _SEED, "tables": tables, "resamples": resamples, "queries": list(QUERIES)}
    return about | {"cases": cases, "hidden": overlooked}


_KINDS: Final = {"safe": "wrong safe", "unsafe": "wrong unsafe", "none": "decided"}
_TITLES: Final = {
    "wrong safe": "Wrong *safe*",
    "wrong unsafe": "Wrong *unsafe*",
    "decided": "Power: *safe* for good scorers, *unsafe* for harmful ones",
}


def markdown(found: Mapping[str, Any]) -> str:
    """The tables of the documentation, from what is stored."""
    parts = [
        f"{found['tables']:,} tables a cell, {found['resamples']:,} resamples, seed "
        f"{found['seed']}; a share of 5 % has a Monte Carlo error of "
        f"{100 * _error(0.05, found['tables']):.1f} points.\n"
    ]
    for kind, title in _TITLES.items():
        rows = [
            [case["case"], f"{100 * case['worst_step']:+.1f} %".replace("-", "−")]
            + [
                f"{100 * ours:.1f}/{100 * before:.1f}"
                for ours, before in zip(case["ours"], case["before"], strict=True)
            ]
            for case in found["cases"]
            if case["kind"] == kind
        ]
        first, *others = map(str, found["queries"])
        head = ["truth", "worst step", f"n = {first}", *others]
        parts.append(f"{title}:\n\n{_table(head, rows)}")
    rows = [
        ["every K up to 16, then eight to the octave"]
        + [f"{100 * each['ours']:.1f} %" if each["ours"] else "none" for each in found["hidden"]],
        ["powers of two"] + [f"{100 * each['before']:.1f} %" for each in found["hidden"]],
    ]
    sizes = [f"pools of {each['pool']}" for each in found["hidden"]]
    parts.append(f"The largest fall that no step shows:\n\n{_table(['K looked at', *sizes], rows)}")
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first, *others = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return "".join([first, "|---" * len(head), "|\n", *others])


def documented(text: str) -> str:
    """What stands between the marks of a page."""
    return text.partition(_MARKS[0])[2].partition(_MARKS[1])[0].strip("\n") + "\n"


def _error(share: float, repetitions: int) -> float:
    """Standard error of a share of this many tables."""
    return float(np.sqrt(share * (1 - share) / repetitions))


def main(argv: Sequence[str] | None = None) -> None:
    """Count and store, or write what is stored into a page."""
    parser = flags(__doc__, tables=200)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--stored", type=Path, help="a file that --out wrote, in place of counting")
    parser.add_argument("--docs", type=Path, help="page whose tables are written anew")
    given = parser.parse_args(argv)
    if given.stored is None:
        found = measured(given.tables, given.resamples, given.workers)
    else:
        found = json.loads(given.stored.read_text(encoding="utf-8"))
    store(given, "verdict", "tables resamples", found)
    if given.docs is None:
        sys.stdout.write(markdown(found))
        return
    before, _, rest = given.docs.read_text(encoding="utf-8").partition(_MARKS[0])
    after = rest.partition(_MARKS[1])[2]
    page = f"{before}{_MARKS[0]}\n{markdown(found)}\n{_MARKS[1]}{after}"
    given.docs.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
