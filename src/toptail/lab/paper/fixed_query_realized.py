"""Decisions about realized returns, the judges, local support and deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toptail.lab.paper.fixed_query_cells import (
    ANT,
    CONTRASTIVE,
    HUMANOID,
    NAMES,
    POINT,
    Number,
    alone,
    main,
    number,
    one_task,
    percent,
    stored,
    tasks,
)
from toptail.lab.paper.ledger import (
    Finding,
    NotMeasuredError,
    Tables,
    from_parts,
)

DELTA = "rollout_delta"
NOT_SELECTORS = ("random",)


def _delta(tables: Tables, task: str, selector: str) -> Number:
    return main(tables, task, selector, DELTA)


def _deltas(tables: Tables, task: str) -> dict[str, Number]:
    """Every selector's gain over a random candidate."""
    if task not in tasks(tables):
        raise NotMeasuredError(f"fixed-query: {task}")
    rows = tables["fixed-query"]["rows"][task]
    found = {name: _delta(tables, task, name) for name, row in rows.items() if DELTA in row}
    found = {name: x for name, x in found.items() if name not in NOT_SELECTORS}
    if not found:
        raise NotMeasuredError(f"fixed-query: {task}/{DELTA}")
    return found


def _text(deltas: Mapping[str, Number]) -> str:
    return ", ".join(
        f"{NAMES.get(name, name)} {x.mean:+.4f} [{x.low:+.4f}, {x.high:+.4f}]"
        for name, x in deltas.items()
    )


def reference_admitted(tables: Tables) -> Finding:
    """The reference ensemble of PointMaze passes both of its declared criteria."""
    resolved = stored(tables, "judges", POINT, "reference", "resolvability")
    agreement = stored(tables, "judges", POINT, "reference", "spearman")
    spearman = number(tables, "judges", POINT, "reference", "spearman")
    return from_parts(
        {
            "resolvability": float(resolved["mean"]) >= resolved["threshold"],
            "agreement": spearman.mean >= agreement["threshold"],
            "rollouts": _powered(tables, POINT)[0],
        },
        spearman.mean,
        spearman.interval,
        "Criterion: the declared ones. "
        f"{percent(float(resolved['mean']))} of the pools of the prespecified group are resolved "
        f"(at least {percent(resolved['threshold'])}), the members' mean pairwise within-pool "
        f"Spearman is {spearman.mean:.2f} (at least {agreement['threshold']:g}), and the largest "
        f"half-width of the rollouts is {_powered(tables, POINT)[1]['mean']:.4f} (below "
        f"{_powered(tables, POINT)[1]['threshold']:g}). The number is the Spearman; the paper has "
        "0.88.",
    )


def _powered(tables: Tables, task: str) -> tuple[bool, Mapping[str, Any]]:
    """Whether the rollouts of a task meet the power criterion, and the cell that says so."""
    cell = stored(tables, "judges", task, "rollouts", "largest_half_width")
    return float(cell["mean"]) < cell["threshold"], cell


def tdq_gains(tables: Tables) -> Finding:
    """TD-Q's pick is better than a random candidate in the simulator."""
    delta = _delta(tables, POINT, "tdq")
    return from_parts(
        {"TD-Q": delta.low > 0},
        delta.mean,
        delta.interval,
        "Criterion: the paired 95 % interval over queries lies above zero. The paper has +0.012.",
    )


def raw_half(tables: Tables) -> Finding:
    """Raw gains something, and between a quarter and three quarters of what TD-Q gains."""
    tdq, raw = _delta(tables, POINT, "tdq"), _delta(tables, POINT, "raw")
    share = raw.mean / tdq.mean if tdq.mean > 0 else float("nan")
    return from_parts(
        {"about half": 0.25 <= share <= 0.75, "raw gains": raw.low > 0},
        share,
        None,
        "Criterion: raw's interval lies above zero and its gain is between a quarter and three "
        f"quarters of TD-Q's (the paper: 0.58). {_text({'tdq': tdq, 'raw': raw})}. The number is "
        "the share.",
    )


def cosine_nothing(tables: Tables) -> Finding:
    """No gain of cosine is established."""
    delta = _delta(tables, POINT, "cosine")
    powered, cell = _powered(tables, POINT)
    return from_parts(
        {"cosine": delta.low <= 0 and powered},
        delta.mean,
        delta.interval,
        "Criterion: the paired 95 % interval does not lie above zero, and a gain would have been "
        f"noticed: the largest half-width, {cell['mean']:.4f}, is below {cell['threshold']:g}.",
    )


def costs_on_pointmaze(tables: Tables) -> Finding:
    """TD-Q gains by its pick, and each contrastive critic clearly less."""
    tdq = _delta(tables, POINT, "tdq")
    others = {critic: _delta(tables, POINT, critic) for critic in CONTRASTIVE}
    return from_parts(
        {"TD-Q gains": tdq.low > 0} | {c: x.high < tdq.mean for c, x in others.items()},
        tdq.mean,
        tdq.interval,
        "Criterion: TD-Q's gain over a random candidate has an interval above zero, and every "
        "contrastive critic's whole interval lies below TD-Q's gain. "
        f"{_text({'tdq': tdq, **others})}.",
    )


def powered_null(task: str) -> Any:
    """Decide that no selector gains on a task although the rollouts would show it."""

    def decide(tables: Tables) -> Finding:
        deltas = _deltas(tables, task)
        powered, cell = _powered(tables, task)
        best = max(deltas, key=lambda name: deltas[name].mean)
        parts = {NAMES.get(name, name): x.low <= 0 for name, x in deltas.items()}
        return from_parts(
            parts | {"well powered": powered},
            deltas[best].mean,
            deltas[best].interval,
            "Criterion: no interval lies above zero, and every half-width is below "
            f"{cell['threshold']:g}. {_text(deltas)}. The number is the largest gain.",
        )

    return decide


ant_null, humanoid_null = powered_null(ANT), powered_null(HUMANOID)


def reference_agrees_with_rollouts(tables: Tables) -> Finding:
    """Within queries, the reference's values rise with realized returns."""
    rho = number(tables, "judges", POINT, "rollouts", "spearman_within/reference")
    across = number(tables, "judges", POINT, "rollouts", "spearman_across/reference")
    return from_parts(
        {"within queries": rho.low > 0},
        rho.mean,
        rho.interval,
        "Criterion: the interval of the within-query Spearman of reference value and realized "
        f"return, over random candidates of the audited queries, lies above zero. Across queries "
        f"it is {across.mean:.2f}.",
    )


def ant_reference_invalid(tables: Tables) -> Finding:
    """On AntMaze the reference follows returns across queries, not within."""
    rho = number(tables, "judges", ANT, "rollouts", "spearman_within/reference")
    across = number(tables, "judges", ANT, "rollouts", "spearman_across/reference")
    return from_parts(
        {"within": rho.mean < 0.15, "across": across.mean > 0.2},
        rho.mean,
        rho.interval,
        f"Criterion: within queries below 0.15, across above 0.2 (here {across.mean:.2f}); the "
        "paper has 0.07 and 0.38.",
    )


def support_uncorrelated(tables: Tables) -> Finding:
    """Local support says next to nothing about the reference's value."""
    task = one_task(tables, "judges")
    rho = number(tables, "judges", task, "reference", "support_value_correlation")
    return from_parts(
        {"reference": abs(rho.mean) <= 0.10},
        rho.mean,
        rho.interval,
        "Criterion: the mean within-pool Spearman of nearness to the data's actions with the "
        f"reference value is at most 0.10 in size; on {task}. The paper has 0.03 to 0.05."
        + alone(task),
    )


def near_base_rate(tables: Tables) -> Finding:
    """On PointMaze contrastive critics pick off support about as often as chance."""
    cells = {c: main(tables, POINT, c, "off_over_base") for c in CONTRASTIVE}
    worst = max(cells, key=lambda c: abs(cells[c].mean - 1))
    text = ", ".join(f"{c} {x.mean:.2f}" for c, x in cells.items())
    return from_parts(
        {c: 2 / 3 <= x.mean <= 1.5 for c, x in cells.items()},
        cells[worst].mean,
        cells[worst].interval,
        "Criterion: between two thirds and one and a half of the pool's own rate. Picked rate over "
        f"base rate: {text}. The number is the one farthest from 1.",
    )


def ant_twice_base_rate(tables: Tables) -> Finding:
    """On AntMaze contrastive critics promote off-support candidates."""
    cells = {c: main(tables, ANT, c, "off_over_base") for c in CONTRASTIVE}
    least = min(cells, key=lambda c: cells[c].mean)
    return from_parts(
        {c: x.mean >= 1.7 for c, x in cells.items()},
        cells[least].mean,
        cells[least].interval,
        "Criterion: at least 1.7 times the pool's rate (the paper: about 2.2). "
        + ", ".join(f"{c} {x.mean:.2f}" for c, x in cells.items())
        + ".",
    )


def negative_medians(tables: Tables) -> Finding:
    """The median selected score of cosine and hybrid is negative."""
    task = one_task(tables)
    cells = {c: main(tables, task, c, "median_selected") for c in ("cosine", "hybrid")}
    return from_parts(
        {c: x.mean < 0 for c, x in cells.items()},
        cells["cosine"].mean,
        None,
        "Criterion: a negative median of the selected score. "
        + ", ".join(f"{c} {x.mean:+.2f}" for c, x in cells.items())
        + f" on {task}; the paper has -0.74 to -0.25 over its tasks. The level depends on the "
        "temperature of the cosine logits, which the paper does not state; what the picks are "
        "worth is another entry's. The number is cosine's." + alone(task),
    )


def none_above(tables: Tables) -> Finding:
    """No selected score of cosine or hybrid exceeds 0.9."""
    task = one_task(tables)
    cells = {c: main(tables, task, c, "share_above_0.9") for c in ("cosine", "hybrid")}
    top = max(cells, key=lambda c: cells[c].mean)
    return from_parts(
        {c: x.mean == 0 for c, x in cells.items()},
        cells[top].mean,
        cells[top].interval,
        "Criterion: none of the selected scores, in any pool and seed. Share above 0.9: "
        + ", ".join(f"{c} {100 * x.mean:.2f} %" for c, x in cells.items())
        + f" on {task}."
        + alone(task),
    )


def actors_comparable(tables: Tables) -> Finding:
    """Behaviour-regularized actors of all four critics reach goals about as often."""
    task = one_task(tables, "deployment")
    critics = ("tdq", *CONTRASTIVE)
    rates = {c: number(tables, "deployment", task, c, "actor_success") for c in critics}
    worst = min(rates, key=lambda c: rates[c].mean)
    gap = max(x.mean for x in rates.values()) - rates[worst].mean
    where = "" if task == ANT else f" The paper says it of AntMaze; this is {task}."
    return from_parts(
        {"every actor succeeds sometimes": rates[worst].mean > 0, "within 12 points": gap <= 0.12},
        rates[worst].mean,
        rates[worst].interval,
        "Criterion: every rate is above zero and they lie within 12 points, as the paper's do. "
        + ", ".join(f"{NAMES[c]} {percent(x.mean)}" for c, x in rates.items())
        + f".{where} The number is the lowest rate.",
    )


def tdq_worsens_with_k(tables: Tables) -> Finding:
    """TD-Q's closed-loop success at K = 64 is below that at K = 1."""
    first, last = (
        number(tables, "deployment", POINT, "tdq", f"closed_loop/K={k}") for k in (1, 64)
    )
    return from_parts(
        {"falls": last.high < first.low},
        last.mean - first.mean,
        None,
        "Criterion: the 95 % intervals of the success rates at K = 1 and K = 64 do not overlap, "
        f"the second below. {percent(first.mean)} at K = 1, {percent(last.mean)} at K = 64; the "
        "paper has 36 % and 0 %. The number is the change.",
    )


def score_spread(tables: Tables) -> Finding:
    """TD-Q's score hardly varies over the action cube; raw's does."""
    spread = {c: number(tables, "deployment", POINT, c, "score_spread") for c in ("tdq", "raw")}
    return from_parts(
        {"TD-Q about 1 %": spread["tdq"].mean <= 0.02, "raw": spread["raw"].mean >= 0.05},
        spread["tdq"].mean,
        spread["tdq"].interval,
        "Criterion: TD-Q's relative spread at most 2 %, raw's at least 5 % (the paper: 0.8 % and 7 "
        f"to 23 %). TD-Q {100 * spread['tdq'].mean:.1f} %, raw {100 * spread['raw'].mean:.1f} %.",
    )
