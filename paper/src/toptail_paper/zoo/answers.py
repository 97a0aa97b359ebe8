"""The answers by the rules of ``paper/docs/zoo.md``, and why a critic falls short."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.io.json_files import read_json
from toptail.lab.critics.registry import CRITICS, without_settings
from toptail.stats.resample import bootstrap_p, holm
from toptail_paper.study.replicates import read_replicates
from toptail_paper.zoo.shares import Floats, Shares, cell, interval

RAW, TDQ, HEAD = "raw", "tdq", "value_head"
FROM_PHI, FROM_INPUTS = "fitted_phi", "fitted_inputs"
"""Networks that are fitted to TD-Q's values: see `toptail_paper.zoo.fitted`."""
Q_STAR: Final = "q_star"
REGRET: Final = "nregret_64"
"""Normalized regret at K = 64 in the tables of the fixed-query study: 1 less the captured share."""

NO_BETTER: Final = 0.05
"""A critic is no better than raw if it captures less than this much more."""
HALF, QUARTER = 0.5, 0.25
"""Share of the gap to TD-Q that a cure closes, and that its interval begins above."""
GOOD_OBJECTIVE: Final = 0.8
"""Captured share of a good objective."""
GOOD_RANKER: Final = 0.01
"""How far the AUC of a good ranker may lie below raw's."""
NOT_ASKED: Final = "not asked"
"""The answer about a cure where TD-Q is not shown to be better than raw."""


def answers(
    rows: Mapping[str, Mapping[str, Any]],
    shares: Mapping[str, Shares],
    undecided: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """Safe, better than raw, good ranker and good objective, of each row.

    Rows in ``undecided`` are not called better: `by_its_own_kind`.
    """
    others = [name for name in rows if name != RAW]
    differences = {
        source: {name: own.of(name)[1] - own.of(RAW)[1] for name in others}
        for source, own in shares.items()
    }
    adjusted = {
        source: dict(
            zip(others, holm([bootstrap_p(own[name][:, None])[0] for name in others]), strict=True)
        )
        for source, own in differences.items()
    }
    found: dict[str, dict[str, Any]] = {}
    for name, row in rows.items():
        captured = row["captured"].values()
        safe = all(x["status"] == "safe" for x in captured) and row["ascent"] != "unsafe"
        good = safe and all(x["mean"] >= GOOD_OBJECTIVE for x in captured)
        ranks = row["auc"] is not None and row["auc"] >= rows[RAW]["auc"] - GOOD_RANKER
        found[name] = {"safe": safe, "good_objective": good, "good_ranker": ranks}
        if name == RAW:
            continue
        more = {
            source: cell(own.of(name)[0] - own.of(RAW)[0], differences[source][name])
            for source, own in shares.items()
        }
        better = name not in undecided and all(
            x["low"] > 0 and adjusted[source][name] < 0.05 for source, x in more.items()
        )
        no_better = all(x["high"] < NO_BETTER for x in more.values())
        answer = "better" if better else "no better" if no_better else "not decided"
        found[name] |= {"than_raw": answer, "more_than_raw": more}
    return found


def by_its_own_kind(
    rows: Mapping[str, Mapping[str, Any]], simulator: Mapping[str, Any]
) -> set[str]:
    """The rows that a reference ensemble of TD-Qs alone may not call better than raw.

    Critics with a Bellman loss are fitted to the same targets as the ensemble. Their picks must
    gain more than raw's in the simulator, too, with Holm's correction.
    """

    def gains_more(name: str) -> bool:
        more = simulator.get(name, {}).get("more_than_raw")
        return more is not None and more["low"] > 0 and more["p"] < 0.05

    return {
        name
        for name, row in rows.items()
        if row["trained_by"] in ("bellman", "both") and not gains_more(name)
    }


def cure(rows: Mapping[str, Mapping[str, Any]], shares: Mapping[str, Shares]) -> dict[str, Any]:
    """The share of the gap between raw and TD-Q that the value head closes, and the answer.

    It is asked only where TD-Q is better than raw.
    """
    found: dict[str, Any] = {}
    for source, own in shares.items():
        (before, d0), (after, d1), (value, d2) = (own.of(name) for name in (RAW, HEAD, TDQ))
        low, high = interval((d1 - d0) / (d2 - d0))
        closed = (after - before) / (value - before)
        found[source] = {"closed": closed, "low": low, "high": high}
    if rows[TDQ]["than_raw"] != "better":
        return found | {"answer": NOT_ASKED}
    better = rows[HEAD]["than_raw"] == "better"
    safe = rows[HEAD]["safe"] or rows[RAW]["safe"]
    return found | {"answer": cure_answer(list(found.values()), better=better, safe=safe)}


def cure_answer(closed: Sequence[Mapping[str, float]], *, better: bool, safe: bool) -> str:
    """The declared answer, of the closed shares by kind of candidates.

    ``better`` says whether the head is better than the critic that it reads, ``safe`` whether it is
    safe to maximize, or that critic was safe already.
    """
    if all(x["high"] < QUARTER for x in closed):
        return "not cured"
    if not better:
        return "not decided"
    enough = all(x["closed"] >= HALF and x["low"] > QUARTER for x in closed)
    return "cured" if enough and safe else "partly cured"


def studied_cure(home: Path, task: str) -> dict[str, Any]:
    """The cure by the reference ensemble and the candidates of the fixed-query study in ``home``.

    The answer is that of the declared rule, put to these candidates alone: a critic is better than
    raw if both the reference and simulator rollouts say so.
    """
    rows = read_json(home / "tables" / "fixed-query.json")["rows"][task]
    stored = read_replicates(home)[task]
    names = (RAW, HEAD, TDQ)
    draws = {name: stored[f"fixed-query/{name}/{REGRET}"] for name in names}
    gains = {name: stored[f"fixed-query/{name}/rollout_delta"] for name in names}
    mean = {name: rows[name][REGRET]["mean"] for name in names}
    low, high = interval((draws[RAW] - draws[HEAD]) / (draws[RAW] - draws[TDQ]))
    closed = (mean[RAW] - mean[HEAD]) / (mean[RAW] - mean[TDQ])
    better = {
        name: all(
            interval(more)[0] > 0 for more in (draws[RAW] - draws[name], gains[name] - gains[RAW])
        )
        for name in (HEAD, TDQ)
    }
    own = {"closed": closed, "low": low, "high": high}
    if not better[TDQ]:
        return own | {"answer": NOT_ASKED}
    safe = any(verdict_of(home, name) == "safe" for name in (RAW, HEAD))
    return own | {"answer": cure_answer([own], better=better[HEAD], safe=safe)}


def verdict_of(home: Path, name: str) -> str:
    """The verdict of the fixed-query study's audit by the reference ensemble."""
    found: str = read_json(home / "audit" / "audit.json")["scorers"][name]["verdict"]["status"]
    return found


def split(shares: Mapping[str, Shares]) -> dict[str, Any]:
    """What each critic with a known ideal does not capture, of which its objective costs a part.

    ``objective`` is what the ideal does not capture, ``rest`` what the critic captures less than
    its ideal: errors of estimation, and of extrapolation where there is no data. Q* is the value
    by which all are judged, so that it captures everything.
    """
    known = {Q_STAR, *set.intersection(*(set(own.names) for own in shares.values()))}
    every = next(iter(shares.values())).names
    of = {name: CRITICS.get(without_settings(name)) for name in (*CRITICS, *every)}
    ideals = {name: critic.ideal for name, critic in of.items() if critic and critic.ideal in known}

    def captured(own: Shares, name: str) -> tuple[float, Floats]:
        return (1.0, np.ones(len(own.draws))) if name == Q_STAR else own.of(name)

    found: dict[str, Any] = {}
    for name, ideal in ideals.items():
        if ideal is None or name not in known:
            continue
        found[name] = {"ideal": ideal}
        for source, own in shares.items():
            (best, at_best), (point, draws) = captured(own, ideal), own.of(name)
            objective, rest = cell(1 - best, 1 - at_best), cell(best - point, at_best - draws)
            found[name][source] = {"objective": objective, "rest": rest}
    return found


def gap(shares: Mapping[str, Shares]) -> dict[str, dict[str, dict[str, float]]]:
    """The gap between raw and TD-Q in four shares, which add up to one.

    What the head closes; what its own training leaves open of what a fit from phi and psi closes;
    what is missing in these two, so that only a fit from state, action and goal closes it; and what
    no fit closes.
    """
    parts = ("closed", "training", "missing", "not_fitted")
    found = {}
    for source, own in shares.items():
        point, draws = zip(
            *(own.of(name) for name in (RAW, HEAD, FROM_PHI, FROM_INPUTS, TDQ)), strict=True
        )
        steps = np.diff(point) / (point[-1] - point[0])
        resampled = np.diff(draws, axis=0) / (draws[-1] - draws[0])
        found[source] = {
            name: cell(float(step), own_draws)
            for name, step, own_draws in zip(parts, steps, resampled, strict=True)
        }
    return found
