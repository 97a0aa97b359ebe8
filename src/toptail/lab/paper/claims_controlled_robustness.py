"""Statements about the controlled study's radius sweep, noisy world and theory."""

from __future__ import annotations

import math
from typing import Any

from toptail.lab.paper.claims_controlled import (
    HERE,
    INSIDE,
    NEAR_ZERO,
    TASK,
    base_rate,
    main,
    seed_share,
)
from toptail.lab.paper.criteria import (
    Criterion,
    Words,
    at_least,
    at_most,
    exactly,
    percent,
    pick,
)
from toptail.lab.paper.findings import Decision, Finding, from_parts
from toptail.lab.paper.ledger import Claim
from toptail.lab.paper.numbers import (
    Lookup,
    Named,
    NotMeasuredError,
    Number,
    Numbers,
    Tables,
    seeded,
)
from toptail.lab.paper.vocabulary import CONTRASTIVE, CRITICS

RADII = ("0.25", "0.40", "0.55")
NOISY = f"{TASK}@sigma=0.05"
RICE_SHIFT = 0.05 * math.sqrt(math.pi / 2)
"""The paper's bound on the shift of regret under noise of standard deviation 0.05."""


def at_radius(
    tables: Tables, radius: str, critic: str, metric: str, lookup: Lookup = seeded
) -> Number:
    """A cell of the radius sweep."""
    return lookup(tables, "r-sweep", f"{TASK}@R={radius}", critic, metric)


def radius_order(tables: Tables) -> Finding:
    """The four critics come in one order of regret at every radius."""
    ours = {r: {c: at_radius(tables, r, c, "regret").mean for c in CRITICS} for r in RADII}
    paper = tables["r-sweep"].get("paper", {})
    theirs = {
        r: {c: cell["regret"]["mean"] for c, cell in paper[f"{TASK}@R={r}"].items()}
        for r in RADII
        if f"{TASK}@R={r}" in paper
    }
    orders = {r: sorted(regrets, key=lambda c: regrets[c]) for r, regrets in ours.items()}
    parts = {f"R = {r}": orders[r] == orders["0.40"] for r in RADII if r != "0.40"}
    tdq = "lowest" if all(order[0] == "tdq" for order in orders.values()) else "not always lowest"
    changes = len({_order(regrets) for regrets in theirs.values()}) > 1
    own = f" The paper's own numbers change their order: {_orders(theirs)}." if changes else ""
    return from_parts(
        parts,
        Number(float(sum(parts.values()))),
        "Criterion: the order of mean regret at R = 0.40, in all four places, at the other two "
        f"radii; the number counts them. {_orders(ours)}. TD-Q is {tdq}.{own}",
    )


def _order(regrets: dict[str, float]) -> str:
    return " < ".join(sorted(regrets, key=lambda critic: regrets[critic]))


def _orders(by_radius: dict[str, dict[str, float]]) -> str:
    return "; ".join(f"R = {r}: {_order(regrets)}" for r, regrets in by_radius.items())


def radius_at_least_80(tables: Tables) -> Finding:
    """Every contrastive critic picks off support in at least 80 % of queries, at every radius."""
    often = at_least(0.80)
    cells = {
        f"{c} at R = {r}": at_radius(tables, r, c, "off_support", seed_share)
        for r in RADII
        for c in CONTRASTIVE
    }
    name = pick(cells, "lowest")
    seeds = cells[name].seeds.values()
    return from_parts(
        {key: often(cell) for key, cell in cells.items()},
        cells[name],
        f"Criterion: means over seeds of {often:%}. The lowest is that of {name}, whose seeds lie "
        f"between {percent(min(seeds))} and {percent(max(seeds))}.{base_rate(tables)} The paper's "
        "main table has 60 % for cosine at R = 0.40.",
    )


def radius_far_more(tables: Tables) -> Finding:
    """Every contrastive regret is at least three times TD-Q's, which is near zero and inside."""
    far, near_zero, inside = at_least(Words(3.0, "three")), at_most(NEAR_ZERO), at_most(INSIDE)
    parts: dict[str, bool] = {}
    ratios: Named = {}
    for r in RADII:
        tdq = at_radius(tables, r, "tdq", "regret")
        off = at_radius(tables, r, "tdq", "off_support")
        parts[f"TD-Q at R = {r}"] = near_zero(tdq) and inside(off)
        for c in CONTRASTIVE:
            more = Number(at_radius(tables, r, c, "regret").mean / tdq.mean)
            ratios[f"{c} at R = {r}"] = more
            parts[f"{c} at R = {r}"] = far(more)
    name = pick(ratios, "lowest")
    return from_parts(
        parts,
        Number(ratios[name].mean),
        f"Criterion: {far} times TD-Q's regret, and TD-Q itself {near_zero} with {inside:%} off "
        f"support. The number is the smallest ratio, {name}.",
    )


def radius_reproduces(tables: Tables) -> Finding:
    """The sweep at R = 0.40 agrees with the main table within one standard deviation."""
    parts, gaps = {}, {}
    for c, table in main("regret", CRITICS).of(tables, TASK).items():
        gaps[c] = Number(at_radius(tables, "0.40", c, "regret").mean - table.mean)
        parts[c] = abs(gaps[c].mean) <= (table.std if math.isfinite(table.std) else 0.0)
    name = pick(gaps, "farthest from zero")
    sweep, table = (
        tables[t].get("paper", {}).get(task, {}).get("cosine", {}).get("regret", {})
        for t, task in (("r-sweep", f"{TASK}@R=0.40"), ("toy-support", TASK))
    )
    own = ""
    if sweep and table:
        own = f" The paper's own two numbers for cosine are {sweep['mean']} and {table['mean']}."
    return from_parts(
        parts,
        Number(gaps[name].mean),
        "Criterion: regret within one standard deviation of the main table. Here both come from "
        "the same runs, the sweep from fewer seeds, so this can hardly fail."
        f"{own} The number is the largest difference, {name}'s.",
    )


def picks_changed(tables: Tables, _task: str) -> Named:
    """Share of picks that noise changes, of the oracle and of every critic in the table."""
    row = tables.get("noise", {}).get("rows", {}).get(NOISY, {})
    if "oracle" not in row:
        raise NotMeasuredError("noise")
    return {c: seed_share(tables, "noise", NOISY, c, "picks_changed") for c in row}


def largest_shift(tables: Tables, _task: str) -> Named:
    """Largest shift of any query and seed, of the critics that are in the table."""
    row = tables.get("noise", {}).get("rows", {}).get(NOISY, {})
    cells = {c: seeded(tables, "noise", NOISY, c, "largest_shift") for c in CRITICS if c in row}
    if not cells:
        raise NotMeasuredError("noise")
    return {c: Number(max(cell.seeds.values())) for c, cell in cells.items()}


def theory(name: str) -> Decision:
    """Return the decision that reads one theory check by its name."""

    def read(tables: Tables) -> Finding:
        checks: list[dict[str, Any]] = list(tables.get("theory", {}).get("checks", ()))
        for check in checks:
            if check["claim"] == name:
                comment = f"{check['statement']} Compared with {check['bound']:.6g}."
                return from_parts({name: check["holds"]}, Number(check["measured"]), comment)
        raise NotMeasuredError(f"theory: {name}")

    return read


# fmt: off
ROBUSTNESS: tuple[Claim, ...] = (
    Claim("radius-order",
          "The critic ordering is preserved at every radius.", "tab:r-sweep",
          radius_order),
    Claim("radius-80",
          "Every contrastive critic selects off-support actions on at least 80 % of "
          "queries.", "app:r-sweep",
          radius_at_least_80),
    Claim("radius-far-more",
          "[Every contrastive critic] has far more regret than TD-Q, which remains within the "
          "support and has near-zero regret.", "app:r-sweep",
          radius_far_more),
    Claim("radius-reproduces",
          "The R = 0.40 results reproduce the main table.", "app:r-sweep",
          radius_reproduces),
    Claim("noise-selections",
          "Under isotropic Gaussian noise selected actions, off-support rates, and all best-of-K "
          "curves remain identical.", "sec:running-env",
          Criterion(Numbers(picks_changed), HERE, exactly(0.0),
                    "Criterion: not one pick changes. The Rice mean keeps the order of all values, "
                    "so the oracle and every fixed critic pick as before; a TD-Q trained on the "
                    "noisy reward (tdq_noisy_reward) is another network. The number is the largest "
                    "share of changed picks, that of {shown}.")),
    Claim("noise-shift",
          "Regret magnitudes shift by at most 0.063 at σ = 0.05.", "sec:running-env",
          Criterion(Numbers(largest_shift), HERE,
                    at_most(Words(RICE_SHIFT + 1e-09, f"σ√(π/2) = {RICE_SHIFT:.4f}")),
                    "Criterion: every query of every seed shifts by {condition}. The number is the "
                    "largest shift found, that of {shown}.")),
    Claim("nonidentifiability",
          "The contrastive objective imposes no constraint outside the support of its "
          "triples.", "sec:why-fail",
          theory("off-support nonidentifiability")),
    Claim("finite-inflation",
          "For any finite margin M there is a bilinear critic with bounded embeddings, equal on "
          "the support, that scores at least M on a separated region.", "thm:finite-inflation",
          theory("finite off-support inflation")),
    Claim("good-ranker",
          "Pr(pick in B) = 1 − (1 − p)^K → 1, and the expected regret reaches q_good − "
          "q_bad.", "prop:good-ranker-bad-obj",
          theory("good ranker, bad objective")),
    Claim("bounded-corollary",
          "A bounded score offers no protection once low-value actions reach the top of its "
          "range.", "cor:bounded",
          theory("boundedness is not calibration")),
    Claim("two-epsilon",
          "If the score is within ε of the value over the searched candidates, regret is at most "
          "2ε.", "rem:sufficient",
          theory("two-epsilon bound")),
    Claim("positives-unordered",
          "A binary future-positive target requires no ordering between two positive "
          "goals.", "rem:positive-ordering",
          theory("compatibility is not graded value")),
)
# fmt: on
"""The robustness checks of the supplement, the theory last."""
