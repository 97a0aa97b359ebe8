"""Decisions about the radius sweep and the noisy world."""

from __future__ import annotations

import math

from toptail.lab.paper.controlled_cells import (
    CONTRASTIVE,
    CRITICS,
    INSIDE,
    NEAR_ZERO,
    RADII,
    RICE_SHIFT,
    TASK,
    base_rate,
    lowest,
    main,
    percent,
)
from toptail.lab.paper.ledger import (
    Finding,
    Measured,
    NotMeasuredError,
    Tables,
    from_parts,
    measured,
)


def _sweep(tables: Tables, radius: str, critic: str, metric: str) -> Measured:
    return measured(tables, "r-sweep", f"{TASK}@R={radius}", critic, metric)


def radius_order(tables: Tables) -> Finding:
    """The four critics come in one order of regret at every radius."""
    ours: dict[str, dict[str, float]] = {
        r: {c: _sweep(tables, r, c, "regret").mean for c in CRITICS} for r in RADII
    }
    paper = tables["r-sweep"].get("paper", {})
    theirs = {
        r: {c: cell["regret"]["mean"] for c, cell in paper[f"{TASK}@R={r}"].items()}
        for r in RADII
        if f"{TASK}@R={r}" in paper
    }
    orders = {r: _order(regrets) for r, regrets in ours.items()}
    parts = {f"R = {r}": orders[r] == orders["0.40"] for r in RADII if r != "0.40"}
    tdq = "lowest" if all(order[0] == "tdq" for order in orders.values()) else "not always lowest"
    changes = len({tuple(_order(regrets)) for regrets in theirs.values()}) > 1
    own = f" The paper's own numbers change their order: {_spelled(theirs)}." if changes else ""
    return from_parts(
        parts,
        float(sum(parts.values())),
        None,
        "Criterion: the order of mean regret at R = 0.40, in all four places, at the other two "
        f"radii; the number counts them. {_spelled(ours)}. TD-Q is {tdq}.{own}",
    )


def _order(regrets: dict[str, float]) -> list[str]:
    return sorted(regrets, key=lambda critic: regrets[critic])


def _spelled(by_radius: dict[str, dict[str, float]]) -> str:
    return "; ".join(f"R = {r}: {' < '.join(_order(regrets))}" for r, regrets in by_radius.items())


def radius_at_least_80(tables: Tables) -> Finding:
    """Every contrastive critic picks off support in at least 80 % of queries, at every radius."""
    cells = {
        f"{c} at R = {r}": _sweep(tables, r, c, "off_support") for r in RADII for c in CONTRASTIVE
    }
    name, cell = lowest(cells)
    seeds = cell.seeds.values()
    return from_parts(
        {key: m.mean >= 0.80 for key, m in cells.items()},
        cell.mean,
        cell.share(),
        f"Criterion: means over seeds. The lowest is that of {name}, whose seeds lie between "
        f"{percent(min(seeds))} and {percent(max(seeds))}.{base_rate(tables)} The paper's main "
        "table has 60 % for cosine at R = 0.40.",
    )


def radius_far_more(tables: Tables) -> Finding:
    """Every contrastive regret is at least three times TD-Q's, which is near zero and inside."""
    parts: dict[str, bool] = {}
    ratios: dict[str, float] = {}
    for r in RADII:
        tdq = _sweep(tables, r, "tdq", "regret").mean
        off = _sweep(tables, r, "tdq", "off_support").mean
        parts[f"TD-Q at R = {r}"] = tdq <= NEAR_ZERO and off <= INSIDE
        for c in CONTRASTIVE:
            ratios[f"{c} at R = {r}"] = _sweep(tables, r, c, "regret").mean / tdq
            parts[f"{c} at R = {r}"] = ratios[f"{c} at R = {r}"] >= 3.0
    name = min(ratios, key=lambda key: ratios[key])
    return from_parts(
        parts,
        ratios[name],
        None,
        "Criterion: at least three times TD-Q's regret, and TD-Q itself at most "
        f"{NEAR_ZERO} with at most {percent(INSIDE)} off support. The number is the smallest "
        f"ratio, {name}.",
    )


def radius_reproduces(tables: Tables) -> Finding:
    """The sweep at R = 0.40 agrees with the main table within one standard deviation."""
    parts, gaps = {}, {}
    for c in CRITICS:
        table, sweep = main(tables, c, "regret"), _sweep(tables, "0.40", c, "regret")
        gaps[c] = sweep.mean - table.mean
        parts[c] = abs(gaps[c]) <= (table.std if math.isfinite(table.std) else 0.0)
    name = max(gaps, key=lambda c: abs(gaps[c]))
    reported = [tables[t].get("paper", {}).get(task, {}).get("cosine", {}).get("regret", {})
                for t, task in (("r-sweep", f"{TASK}@R=0.40"), ("toy-support", TASK))]  # fmt: skip
    own = ""
    if all(reported):
        own = (
            f" The paper's own two numbers for cosine are {reported[0]['mean']} and "
            f"{reported[1]['mean']}."
        )
    return from_parts(
        parts,
        gaps[name],
        None,
        "Criterion: regret within one standard deviation of the main table. Here both come from "
        "the same runs, the sweep from fewer seeds, so this can hardly fail."
        f"{own} The number is the largest difference, {name}'s.",
    )


def noise_selection(tables: Tables) -> Finding:
    """Transition noise changes no pick: not the oracle's, and not that of a TD-Q trained on it."""
    task = f"{TASK}@sigma=0.05"
    cells = {
        critic: measured(tables, "noise", task, critic, "picks_changed")
        for critic in tables.get("noise", {}).get("rows", {}).get(task, {})
    }
    if "oracle" not in cells:
        raise NotMeasuredError("noise")
    largest = max(cells, key=lambda critic: cells[critic].mean)
    return from_parts(
        {critic: cell.mean == 0.0 for critic, cell in cells.items()},
        cells[largest].mean,
        cells[largest].share(),
        "Criterion: not one pick changes. The Rice mean keeps the order of all values, so the "
        "oracle and every fixed critic pick as before; a TD-Q trained on the noisy reward "
        "(tdq_noisy_reward) is another network. The number is the largest share of changed picks.",
    )


def noise_shift(tables: Tables) -> Finding:
    """Regret moves by at most σ√(π/2) in any query."""
    task = f"{TASK}@sigma=0.05"
    cells = {
        critic: measured(tables, "noise", task, critic, "largest_shift")
        for critic in CRITICS
        if critic in tables.get("noise", {}).get("rows", {}).get(task, {})
    }
    if not cells:
        raise NotMeasuredError("noise")
    largest = max(max(cell.seeds.values()) for cell in cells.values())
    return from_parts(
        {c: max(cell.seeds.values()) <= RICE_SHIFT + 1e-9 for c, cell in cells.items()},
        largest,
        None,
        f"Criterion: no query of any seed shifts by more than σ√(π/2) = {RICE_SHIFT:.4f}. The "
        "number is the largest shift found.",
    )
