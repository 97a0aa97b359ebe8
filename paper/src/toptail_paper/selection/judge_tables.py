"""The tables ``judges``, ``rollouts-expert`` and ``deployment``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from toptail.lab.judges.reference import admission
from toptail.pools import JudgedPicks
from toptail.stats import kendall_tau_b, spearman, wilson
from toptail_paper.selection.files import CRITERIA, REFERENCE
from toptail_paper.selection.load import NO_SEED, TaskSelection
from toptail_paper.selection.measure import Resampled, by_query, tau_b_ceiling, value_levels
from toptail_paper.selection.results import INDEPENDENT, JudgeMetric, closed_loop
from toptail_paper.selection.rollout_data import RANDOM, TRAINING_SEED, agreement
from toptail_paper.selection.specs import TABLES
from toptail_paper.study.naming import TRIVIAL, is_circular
from toptail_paper.study.tables import StoredCell, cell, with_more
from toptail_paper.triples.bootstrap import TrajectoryBootstrap

ROLLOUTS, RAW = "rollouts", "raw"
SeedGains: TypeAlias = Mapping[int | None, float]
"""Training seed, None without one -> gain."""


def reference_admission(data: TaskSelection, judge: str = REFERENCE) -> dict[str, Any] | None:
    """The declared criteria applied to a judge's members; None where it has only one."""
    if judge not in data.values or len(data.values[judge]) < 2:
        return None
    criteria = {name: data.declared[name] for name in CRITERIA}
    rng = np.random.default_rng(0)
    return admission(data.members(judge), data.group, data.trajectory, rng=rng, **criteria)


def rollout_cells(
    audited: Mapping[str, Any] | None,
    by_seed: Mapping[str, Mapping[int | None, float]] | None = None,
    against: str = RANDOM,
) -> dict[str, StoredCell]:
    """Scorer -> its gain in the simulator over a random candidate, or over another selector.

    ``by_seed`` has the gains of each training seed, of which ``audited`` has the mean.
    """
    seeds = by_seed or {}
    found: dict[str, StoredCell] = {}
    for row in audited["comparisons"] if audited is not None else ():
        if against in (row["a"], row["b"]):
            name, ends = row["a"], (row["difference"], row["low"], row["high"])
            known = row["low"] is not None
            if against == name:  # the difference is that of the other one's gain
                name = row["b"]
                ends = (-ends[0], -ends[2], -ends[1]) if known else (-ends[0], None, None)
            gains = seeds.get(name, {})
            trained = {seed: gain for seed, gain in gains.items() if seed is not None}
            found[name] = cell(trained or {TRAINING_SEED: ends[0]}) | {
                "low": ends[1],
                "high": ends[2],
                "half_width": row["half_width"],
                "ci_excludes_zero": known and (row["low"] > 0 or row["high"] < 0),
                "variance_ratio": row["variance_ratio"],
                "queries": row["queries"],
            }
    return found


def rollout_draws(
    picks: JudgedPicks, cells: Mapping[str, StoredCell], resamples: int, against: str = RANDOM
) -> dict[str, StoredCell]:
    """The cells of `rollout_cells` with bootstrap replicates, which all selectors share.

    Repetitions are averaged within a query, and whole clusters of queries are resampled.
    """
    if picks.design:  # chances of judging weigh the picks: no plain mean
        return dict(cells)
    shape = len(picks.query), len(picks.selector)
    place = picks.query_at * shape[1] + picks.selector_at
    total, count = (np.bincount(place, x, shape[0] * shape[1]) for x in (picks.value, None))
    means = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(shape)
    labels = np.arange(shape[0]) if picks.cluster is None else picks.cluster.to_pylist()
    resampled = Resampled(TrajectoryBootstrap(labels, np.random.default_rng(0), resamples))
    at = {str(name): place for place, name in enumerate(picks.selector.to_pylist())}
    return {
        name: with_more(
            entry, draws=resampled.mean(means[:, at[name]] - means[:, at[against]]).draws
        )
        for name, entry in cells.items()
    }


def expert_table(
    data: TaskSelection, audited: Mapping[str, Any] | None, resamples: int
) -> dict[str, Any] | None:
    """Gains in rollouts that a policy which reaches goals continues, and less those of raw."""
    rollouts = data.rollouts_expert
    if rollouts is None:
        return None
    gains, picks = rollouts.gains(), rollouts.picks()
    found = {"rollout_delta": rollout_draws(picks, rollout_cells(audited, gains), resamples)}
    if RAW in gains:
        less = {name: _less(own, gains[RAW]) for name, own in gains.items()}
        paired = rollout_cells(audited, less, against=RAW)
        found["less_raw"] = rollout_draws(picks, paired, resamples, against=RAW)
    rows: dict[str, dict[str, StoredCell]] = {
        name: {metric: cells[name] for metric, cells in found.items() if name in cells}
        for name in found["rollout_delta"]
    }
    notes = [
        "rollout_delta: gain of the pick over random candidates of its pool, with the paired 95 % "
        "interval. less_raw: the same less the gain of raw, paired by query.",
        f"{len(rollouts.query)} queries; mean return of the random candidates "
        f"{rollouts.random_returns.mean():.4f}; share of the queries in which every rollout "
        f"returned the same {rollouts.share_same:.3f}.",
    ]
    caption = f"Gain by rollouts on {data.key}, continued by a policy that reaches goals"
    return TABLES["rollouts-expert"].table(caption, {data.key: rows}, notes)


def _less(gains: SeedGains, others: SeedGains) -> dict[int | None, float]:
    """Differences of gains by training seed; from the others' mean where the seeds differ."""
    mean = float(np.mean(list(others.values())))
    same = gains.keys() == others.keys()
    return {seed: gain - (others[seed] if same else mean) for seed, gain in gains.items()}


def agreement_cells(data: TaskSelection) -> dict[str, StoredCell]:
    """``spearman_within/JUDGE`` and ``spearman_across/JUDGE``: judges against realized returns.

    ``split_half`` stands for the returns' agreement with themselves, from half of the repetitions
    each: a perfect judge reaches more than that.
    """
    if data.rollouts is None:
        return {}
    return {
        str(JudgeMetric(f"spearman_{where}", judge)): _one(entry)
        for judge, found in agreement(data.rollouts, data.values).items()
        for where, entry in found.items()
    }


def judges_table(
    data: TaskSelection, means: Resampled, deltas: Mapping[str, StoredCell]
) -> dict[str, Any]:
    """What is known about the judges themselves, and through which of them the task enters."""
    rows: dict[str, dict[str, StoredCell]] = {}
    statuses: dict[str, Any] = {}
    for judge in data.judges:
        rows[judge] = _support_cells(data, means, judge) | _level_cells(data, means, judge)
        verdict = reference_admission(data, judge)
        if verdict is not None:
            rows[judge] |= _admission_cells(verdict)
            statuses[judge] = {"admitted": bool(verdict["admitted"]), "checks": dict(verdict)}
    for other in data.judges[1:]:
        if data.judges[0] == REFERENCE:
            rows[REFERENCE] |= _agreement_cells(data, means, other)
    if deltas:
        rows[ROLLOUTS] = _rollout_row(data, deltas) | agreement_cells(data)
        widest = rows[ROLLOUTS]["largest_half_width"]
        passed = widest["status"] == "pass"
        statuses[ROLLOUTS] = {"admitted": passed, "checks": dict(widest)}
    deciding = [name for name in (REFERENCE, ROLLOUTS) if name in statuses]
    notes = [
        "resolvability: share of the pools whose candidates the members tell apart, in the "
        "prespecified group; /GROUP by distance group. spearman: mean pairwise within-pool "
        "correlation of the members.",
        "levels_N: share of the pools whose candidates have N different values by the judge. "
        "tau_b_ceiling: what a score without ties that is in the judge's order has as its tau_b.",
        "half_width/SELECTOR: of the paired 95 % interval of its gain over random candidates.",
        "variance_ratio/SELECTOR: variance of the gain with independent random numbers over that "
        "with common ones.",
        "alike: share of the audited queries in which every rollout returned the same, most often "
        "because the goal is within the environment's tolerance from the start. random_return: "
        "mean return of the random candidates.",
        *_circularity(data, rows),
    ]
    return TABLES["judges"].table(
        f"The judges of {data.key}",
        {data.key: rows},
        notes,
        statuses=statuses,
        included_through=[name for name in deciding if statuses[name]["admitted"]],
        missing=[name for name in (REFERENCE, ROLLOUTS) if name not in deciding],
    )


def _circularity(data: TaskSelection, rows: Mapping[str, Any]) -> list[str]:
    """A note: the critics for which the reference is circular, and the judges that are not."""
    names = [name for name in data.critics if is_circular(name)]
    if REFERENCE not in rows or not names:
        return []
    left = [judge for judge in INDEPENDENT if judge in rows]
    return [
        f"{REFERENCE} is circular for {', '.join(names)}, which are trained on Bellman targets as "
        f"its members are; independent of every training here: {', '.join(left) or 'none'}."
    ]


def _one(entry: Mapping[str, Any], **more: Any) -> StoredCell:
    """A number with its interval that no training seed belongs to."""
    value, low, high = (entry[name] for name in ("value", "low", "high"))
    ends = {} if low is None or high is None else {"low": low, "high": high}
    return with_more({"mean": value, "std": None, "seeds": {str(NO_SEED): value}}, **ends, **more)


def _admission_cells(verdict: Mapping[str, Any]) -> dict[str, StoredCell]:
    cells = {}
    for metric, check in (("resolvability", "resolvability"), ("spearman", "agreement")):
        entry = verdict[check]
        limits = {name: entry[name] for name in ("threshold", "status", "advice")}
        cells[metric] = _one(entry, **limits)
        for group, numbers in verdict["by_group"].items():
            cells[str(JudgeMetric(metric, group=group))] = _one(numbers[check])
    return cells


def _support_cells(data: TaskSelection, means: Resampled, judge: str) -> dict[str, StoredCell]:
    """Within-pool Spearman of the value with nearness to the data's actions."""
    values = data.judged(judge)
    near = -data.support_distance.reshape(values.flat.shape)
    rho = by_query(spearman(values.flat, near), len(data.trajectory))
    return {"support_value_correlation": means.cell({NO_SEED: means.mean(rho)})}


def _level_cells(data: TaskSelection, means: Resampled, judge: str) -> dict[str, StoredCell]:
    """How finely the judge tells candidates apart, and the tau_b that its ties leave."""
    flat, queries = data.judged(judge).flat, len(data.trajectory)
    levels = value_levels(flat)
    shares = {f"levels_{n}": levels == n for n in (1, 2, 3)} | {"levels_more": levels > 3}
    per_pool = {name: share.astype(np.float64) for name, share in shares.items()}
    per_pool["tau_b_ceiling"] = tau_b_ceiling(flat)
    found = {name: {NO_SEED: means.mean(by_query(x, queries))} for name, x in per_pool.items()}
    return {name: means.cell(x, replicates=name not in shares) for name, x in found.items()}


def _agreement_cells(data: TaskSelection, means: Resampled, other: str) -> dict[str, StoredCell]:
    """How the reference orders the pools compared with another judge."""
    ours, theirs = data.judged(REFERENCE).flat, data.judged(other).flat
    cells = {}
    for name, statistic in (("tau_b", kendall_tau_b), ("spearman", spearman)):
        per_query = by_query(statistic(ours, theirs), len(data.trajectory))
        for group, keep in data.slices.items():
            key = JudgeMetric(name, other, group)
            cells[str(key)] = means.cell({NO_SEED: means.mean(per_query, keep)})
    return cells


def _rollout_row(data: TaskSelection, deltas: Mapping[str, StoredCell]) -> dict[str, StoredCell]:
    """Power and pairing of the simulator's comparisons."""
    row: dict[str, StoredCell] = {}
    widths = {}
    for name, delta in deltas.items():
        # One trajectory alone has no interval: nothing is known, which is never a pass.
        widths[name] = np.inf if delta["half_width"] is None else delta["half_width"]
        row[str(JudgeMetric("half_width", name))] = cell({NO_SEED: widths[name]})
        if delta["variance_ratio"] is not None:
            row[str(JudgeMetric("variance_ratio", name))] = cell({NO_SEED: delta["variance_ratio"]})
    deciding = [name for name in widths if name not in TRIVIAL] or list(widths)
    widest, e_min = max(deciding, key=lambda name: widths[name]), data.declared["e_min"]
    powered = widths[widest] < e_min
    alike = data.rollouts is not None and data.rollouts.share_same == 1
    advice = "" if powered else f"'{widest}' is known too loosely: roll out more queries"
    if alike:
        advice = "all rollouts returned the same, so that nothing was measured"
    row["largest_half_width"] = cell({NO_SEED: widths[widest]}) | {
        "selector": widest,
        "threshold": e_min,
        "status": "pass" if powered and not alike else "fail",
        "advice": advice,
    }
    row["queries"] = cell({NO_SEED: float(max(delta["queries"] for delta in deltas.values()))})
    if data.rollouts is not None:
        row["alike"] = cell({NO_SEED: data.rollouts.share_same})
        row["random_return"] = cell({NO_SEED: float(data.rollouts.random_returns.mean())})
    return row


def deployment_table(data: TaskSelection) -> dict[str, Any] | None:
    """Success of actors and of best-of-K at every step, and the spread of scores."""
    rows: dict[str, dict[str, StoredCell]] = {}

    def add(critic: str, metric: str, by_seed: Mapping[int, Mapping[str, Any]]) -> None:
        rates = {seed: entry["rate"] for seed, entry in by_seed.items()}
        hits, n = (sum(e[what] for e in by_seed.values()) for what in ("successes", "episodes"))
        low, high = wilson(hits, n)
        rows.setdefault(critic, {})[metric] = cell(rates, (float(low), float(high)))

    for critic, seeds in _critics(data, "actors").items():
        add(critic, "actor_success", seeds)
    for critic, seeds in _critics(data, "closed_loop").items():
        for k in next(iter(seeds.values()))["k"]:
            add(critic, closed_loop(k), {s: entry["k"][k] for s, entry in seeds.items()})
    for critic, seeds in _critics(data, "spread").items():
        for kind, metric in (("range", "score_spread"), ("deviation", "score_deviation")):
            for group in next(iter(seeds.values()))["spread"]:
                name = metric if group == "all" else f"{metric}/{group}"
                medians = {s: e["spread"][group][kind]["median"] for s, e in seeds.items()}
                rows.setdefault(critic, {})[name] = cell(medians)
    if not rows:
        return None
    notes = [
        "actor_success: a behaviour-regularized actor on the environment's evaluation goals; "
        "closed_loop/K: best of K by score at every step. Intervals are Wilson's, over episodes.",
        "score_spread: median over states of (max - min) / |mean| of the score over the action "
        "cube; score_deviation: of the standard deviation / |mean|.",
    ]
    weights = data.deployment.get("actors", {}).get("alphas", {})
    if weights:
        notes.append(
            "Weight of behaviour cloning in the actors, OGBench's own for this family: "
            f"{weights['value']:g} for critics that are values, {weights['contrastive']:g} for "
            "the others."
        )
    caption = f"Deployment checks on {data.key}"
    return TABLES["deployment"].table(caption, {data.key: rows}, notes)


def _critics(data: TaskSelection, name: str) -> dict[str, dict[int, Mapping[str, Any]]]:
    """Critic -> seed -> entry of one of the deployment files."""
    critics = data.deployment.get(name, {}).get("critics", {})
    return {
        critic: {int(seed): entry for seed, entry in seeds.items()}
        for critic, seeds in critics.items()
    }
