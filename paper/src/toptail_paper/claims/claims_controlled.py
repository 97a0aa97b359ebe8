"""The paper's statements about the controlled world, each with its criterion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from toptail_paper.claims.claim import TASK, Claim, Quoted, Sweeps
from toptail_paper.claims.criteria import (
    HALF,
    ZERO,
    Criterion,
    Words,
    above,
    at_least,
    at_most,
    below,
    between,
    exactly,
    listed,
    near,
    short_by_at_most,
    show,
)
from toptail_paper.claims.grids import CellCheck, SettledGrid
from toptail_paper.claims.numbers import (
    ALONE,
    RESAMPLED,
    Lookup,
    Named,
    NotMeasuredError,
    Number,
    Numbers,
    Tables,
    each,
    each_as,
    lowest_seed,
    paired,
    quotient,
    ratio,
    seed_curve,
    seeded,
    spread_ratio,
    stored,
    together,
)
from toptail_paper.claims.reported import BOUNDED, CONTRASTIVE, CRITICS, RANKERS, TDQ

HERE = (TASK,)
HEADS = ("f_cos", "q_td", "q_hybrid")
RADIUS, RADII, NOISY = 0.40, ("0.25", "0.40", "0.55"), f"{TASK}@sigma=0.05"
MATERIAL = 0.05
"""A norm that changes by less than this share neither falls nor drifts."""
AUC_NEAR = 0.005
"""Training lengths whose held-out AUCs differ by no more than this count as equally good."""
RICE_SHIFT = 0.05 * math.sqrt(math.pi / 2)
"""The paper's bound on the shift of regret under noise of standard deviation 0.05."""
GAMMA = 0.99
"""The discount of the geometric offsets that the critics of recorded data are trained with."""

MOST = above(HALF)
FAILS, NEAR_ORACLE = above(0.10), at_most(0.10)
"""The paper calls regrets of 0.065 to 0.087 near zero."""
INSIDE = at_most(0.05)
"""The share of picks off support of a critic that selects inside it; the paper has 3 %."""
SAME = near(0.0, 0.02)
FAR = at_least(2 * RADIUS)


def seed_share(tables: Tables, table: str, task: str, row: str, metric: str) -> Number:
    """Look up a share with its interval over seeds, cut at 0 and 1."""
    cell = seeded(tables, table, task, row, metric)
    if cell.interval is None:
        return cell
    return replace(cell, interval=(max(0.0, cell.interval[0]), min(1.0, cell.interval[1])))


def _lookup(metric: str) -> Lookup:
    return seed_share if metric == "off_support" else seeded


def main(metric: str, critics: Sequence[str], table: str = "toy-support") -> Numbers:
    return each(table, metric, critics, ALONE, lookup=_lookup(metric))


def readout(metric: str, *names: str) -> Numbers:
    return main(metric, names, "toy-within")


first, last = itemgetter(0), itemgetter(-1)
"""A curve at K = 1, a random candidate, and at the largest K."""


def change(y: Sequence[float]) -> float:
    """From a random candidate to the largest K."""
    return y[-1] - y[0]


def multiple(y: Sequence[float]) -> float:
    """The largest K as a multiple of a random candidate."""
    return y[-1] / y[0]


BASE_RATE = listed(
    seed_curve("off_support", ("raw",), first, "of random candidates").called("Off support"), ".0%"
)


def training_length(tables: Tables, _tasks: Sequence[str] = HERE) -> str:
    """Say how the training length was chosen, and what held-out retrieval would have chosen."""
    text = (
        " The training length was fitted to the paper: it is the one at which, on other seeds, "
        "TD-Q's regret comes nearest to the reported one."
    )
    rows = tables.get("sweep-steps", {}).get("rows", {})
    auc = {
        task: max(row[c]["retrieval_auc"]["mean"] for c in RANKERS)
        for task, row in rows.items()
        if set(RANKERS) <= set(row)
    }
    shares = [
        f"at {task.partition('=')[2]} steps raw picks off support in "
        f"{100 * rows[task]['raw']['off_support']['mean']:.1f} %"
        for task in auc
        if max(auc.values()) - auc[task] <= AUC_NEAR
    ]
    more = f" By held-out retrieval AUC it would be longer: {', '.join(shares)}."
    return text + more if shares else text


def removed(key: str, name: str) -> Numbers:
    """The share of raw's regret that one change removes, all queries and seeds pooled."""

    def pooled(tables: Tables, table: str, task: str, row: str, metric: str) -> Number:
        cell = stored(tables, table, task, row, metric, "pooled")
        ends = None if cell.get("low") is None else (cell["low"], cell["high"])
        return Number(cell["pooled"], ends, over=RESAMPLED[table])

    return each("support-decomposition", f"share/{key}", ("raw",), name, lookup=pooled)


NORM_REMOVED = together(
    removed("norm_cap", "norm capped at its in-support 99th percentile"),
    removed("norm_cap_data", "norm capped at the data's 99th percentile"),
    removed("cosine_readout", "cosine readout of the same embeddings"),
).called("Shares removed")
SUPPORT_REMOVED = removed("support_only", "").called("Restricting the pools to the support removes")


NORM_GRID = SettledGrid(
    ("norm_drift",),
    (CellCheck("regret", at_least(0.2)), CellCheck("share/norm_cap", MOST)),
    "raw fails (a regret of at least 0.2) and capping the norm removes more than half of it",
)
"""The question of that grid, as it was declared."""


def drawn(*critics: str) -> Numbers:
    """Norms of critics' picks in the drawn run, in units of the support's radius."""

    def of(tables: Tables, _task: str) -> Named:
        try:
            radius, norms = tables["landscape"]["radius"], tables["landscape"]["pick_norm"]
            return {critic: Number(norms[critic] / radius) for critic in critics}
        except KeyError as missing:
            raise NotMeasuredError("landscape") from missing

    return Numbers(of)


def drawn_outside(tables: Tables, task: str) -> Named:
    """How many contrastive critics pick outside the support in the drawn run."""
    picks = drawn(*CONTRASTIVE).of(tables, task).values()
    return {"contrastive picks outside": Number(float(sum(x.mean > 1 for x in picks)))}


def wider(tables: Tables, task: str) -> Named:
    """Standard deviation over seeds of cosine's regret over raw's."""
    regret = main("regret", RANKERS).of(tables, task)
    return {"cosine over raw": spread_ratio(regret["cosine"], regret["raw"])}


def at_radius(metric: str, critics: Sequence[str], radii: Sequence[str] = RADII) -> Numbers:
    """A metric of the radius sweep, of every critic at every radius."""
    name = "{{critic}} at R = {}"

    def of(tables: Tables, _task: str) -> Named:
        found: Named = {}
        for r in radii:
            cells = each("r-sweep", metric, critics, name.format(r), lookup=_lookup(metric))
            found |= cells.of(tables, f"{TASK}@R={r}")
        return found

    return Numbers(of)


def radius_gaps(tables: Tables, task: str) -> Named:
    """Regret of each critic less that of the one before it in the order at R = 0.40."""
    regret = at_radius("regret", CRITICS).of(tables, task)
    order = sorted(CRITICS, key=lambda critic: regret[f"{critic} at R = 0.40"].mean)
    return {
        f"{fewer} < {more} at R = {r}": regret[f"{more} at R = {r}"].minus(
            regret[f"{fewer} at R = {r}"]
        )
        for r in RADII
        for fewer, more in pairwise(order)
    }


def radius_multiples(tables: Tables, task: str) -> Named:
    """Contrastive regret as a multiple of TD-Q's, at every radius."""
    regret = at_radius("regret", CRITICS).of(tables, task)
    return {
        f"{c} at R = {r}": quotient(regret[f"{c} at R = {r}"], regret[f"tdq at R = {r}"])
        for r in RADII
        for c in CONTRASTIVE
    }


def sweep_less_table(tables: Tables, task: str) -> Named:
    """Regret of the sweep at R = 0.40 less that of the main table."""
    sweep = at_radius("regret", CRITICS, ("0.40",)).of(tables, task)
    table = main("regret", CRITICS).of(tables, task)
    return {c: Number(sweep[f"{c} at R = 0.40"].mean - x.mean) for c, x in table.items()}


def beyond_std(tables: Tables, task: str) -> Named:
    """By how much the same differs beyond one standard deviation over seeds."""
    table = main("regret", CRITICS).of(tables, task)
    stds = {c: x.std if math.isfinite(x.std) else 0.0 for c, x in table.items()}
    return {c: Number(abs(x.mean) - stds[c]) for c, x in sweep_less_table(tables, task).items()}


RETRAINED = "tdq_noisy_reward"
"""TD-Q trained on noisy rewards: another network, and no critic of the statement."""


def picks_changed(tables: Tables, _task: str) -> Named:
    """Share of picks that noise changes, of the oracle and of every critic that it leaves as is."""
    row = tables.get("noise", {}).get("rows", {}).get(NOISY, {})
    if "oracle" not in row:
        raise NotMeasuredError("noise")
    fixed = [c for c in row if c != RETRAINED]
    return {c: seed_share(tables, "noise", NOISY, c, "picks_changed") for c in fixed}


def retrained(tables: Tables, _task: str) -> Named:
    """Share of picks in which a TD-Q that is trained on noisy rewards differs."""
    return {"": seed_share(tables, "noise", NOISY, RETRAINED, "picks_changed")}


def largest_shift(tables: Tables, _task: str) -> Named:
    """Largest shift of any query and seed, of the critics that are in the table."""
    row = tables.get("noise", {}).get("rows", {}).get(NOISY, {})
    cells = {c: seeded(tables, "noise", NOISY, c, "largest_shift") for c in CRITICS if c in row}
    if not cells:
        raise NotMeasuredError("noise")
    return {c: Number(max(cell.seeds.values())) for c, cell in cells.items()}


def check_of(tables: Tables, name: str) -> Mapping[str, Any]:
    for check in tables.get("theory", {}).get("checks", ()):
        if check["claim"] == name:
            found: Mapping[str, Any] = check
            return found
    raise NotMeasuredError(f"theory: {name}")


def holds(name: str, part: str = "{}") -> Criterion:
    numbers = Numbers(lambda tables, _: {name: Number(float(check_of(tables, name)["holds"]))}, "")
    return Criterion(numbers, HERE, exactly(1.0), part=part)


def theory(name: str) -> Criterion:
    """A stored check of the theory holds; shows what it measured."""

    def statement(tables: Tables, _tasks: Sequence[str]) -> str:
        check = check_of(tables, name)
        return f" {check['statement']} Compared with {check['bound']:.6g}."

    measured = Numbers(lambda tables, _: {name: Number(check_of(tables, name)["measured"])})
    words = "the stored check of the theory holds"
    return show(measured, HERE, words=words, remarks=(statement,), certain=True) & holds(name)


COMPATIBLE = "compatibility is not graded value"


def lead_of_nearer(tables: Tables, _task: str) -> Named:
    """Lead in nats of the nearer of two positives when offsets are geometric."""
    d_near, d_far = check_of(tables, COMPATIBLE)["details"]["distances"]
    return {"the nearer positive's lead": Number((d_far - d_near) * math.log(1 / GAMMA))}


# fmt: off
CONTROLLED: tuple[Claim, ...] = (
    Claim("norm-drift",
          "A controlled support decomposition attributes most raw bilinear regret to norm drift.",
          "abstract",
          Criterion(NORM_REMOVED.requiring(SUPPORT_REMOVED), HERE, MOST,
                    "the share of the regret on the same pools that each way of taking the norm "
                    "out of play removes is {condition}", "first", digits=".0%",
                    remarks=(listed(SUPPORT_REMOVED, ".0%"),),
                    differ="the way of taking the norm out"),
          Sweeps(("raw",)), grids=(NORM_GRID,)),
    Claim("bounded-off-support",
          "Cosine and hybrid critics nevertheless select off-support actions from most pools …",
          "abstract",
          Criterion(main("off_support", BOUNDED), HERE, MOST,
                    "the share of the pools, mean over seeds, is {condition}", digits=".0%",
                    remarks=(BASE_RATE,)),
          Sweeps(BOUNDED)),
    Claim("bounded-comparable-regret", "… and incur comparable regret.", "abstract",
          Criterion(ratio(main("regret", BOUNDED), main("regret", ("raw",)),
                          "As a multiple of raw"), HERE, between(HALF, Words(2.0, "twice")),
                    "mean regret {condition} raw's", digits=".2f",
                    remarks=(listed(main("regret", CONTRASTIVE).called("Regret"), ".2f"),)),
          Sweeps(CONTRASTIVE)),
    Claim("selection-costs",
          "[There are] single-step selection costs on … the exact-Q* toy.", "abstract",
          Criterion(paired(main("regret", CONTRASTIVE), main("regret", TDQ)), HERE, above(ZERO),
                    "regret less TD-Q's, seed by seed, is {condition}"),
          Sweeps(CRITICS)),
    Claim("below-cap", "Our failures occur below the cap.", "sec:intro",
          Criterion(main("selected_score", BOUNDED).called("Selected scores"), HERE, at_most(0.9),
                    "mean selected score {condition}, the line the paper draws on OGBench"),
          Sweeps(BOUNDED)),
    Claim("mixed-pools",
          "Clipped Gaussian candidate pools contain actions from both inside and outside the "
          "disk.", "sec:toy-support",
          Criterion(seed_curve("off_support", ("raw",), first, "of all candidates")
                    .called("Off support"), HERE, between(0.05, 0.95),
                    "the share of all candidates that are off support is {condition:%}", "first",
                    digits=".0%", certain=True,
                    note="The proposal puts exp(−1/(2·1.2²)) = 71 % of its mass there: most "
                    "candidates are off support before any critic chooses.")),
    Claim("landscape",
          "Raw bilinear, cosine, and hybrid select outside the support disk in this representative "
          "run; TD-Q selects inside.", "fig:landscape",
          show(Numbers(drawn_outside), HERE, digits=".0f",
               note="One run and one query: the first seed and the first query.")
          & Criterion(drawn("tdq").called("Norms over R, TD-Q"), HERE, at_most(1.0),
                      "the norm of TD-Q's pick is {condition} times R", part="TD-Q inside",
                      digits=".2f")
          & Criterion(drawn(*CONTRASTIVE).called("The others"), HERE, above(1.0),
                      "that of every other {condition}", part="{} outside", digits=".2f")),
    Claim("only-tdq", "Only TD-Q selects inside support with near-zero regret.", "tab:toy-support",
          Criterion(main("regret", TDQ), HERE, NEAR_ORACLE, "TD-Q's regret {condition}", "first",
                    part="TD-Q's regret", remarks=(training_length,))
          & Criterion(main("off_support", TDQ).called("Off support"), HERE, INSIDE,
                      "{condition:%} of its picks off support", part="TD-Q's support", digits=".0%")
          & Criterion(main("regret", CONTRASTIVE).called("The others' regret"), HERE, FAILS,
                      "every other regret {condition}", part="{}'s regret"),
          Sweeps(CRITICS)),
    Claim("cosine-less-severe",
          "Cosine is less severe and more variable than raw.", "tab:toy-support",
          Criterion(paired(main("regret", ("cosine",)), main("regret", ("raw",)),
                           "Regret less raw's"), HERE, below(ZERO),
                    "the paired difference in regret is {condition}", "first", part="less severe",
                    remarks=(listed(main("regret", RANKERS).called("Regret")),))
          & Criterion(Numbers(wider, "Ratio of the deviations"), HERE, above(1.0),
                      "the standard deviation over seeds {condition} times raw's, by Fisher's F",
                      part="more variable", digits=".2f"),
          Sweeps(RANKERS)),
    Claim("hybrid-as-often-as-raw",
          "Hybrid [selects off support] nearly as often as raw.", "tab:toy-support",
          Criterion(paired(main("off_support", ("hybrid",)), main("off_support", ("raw",)),
                           "Less raw's rate"), HERE, short_by_at_most(0.2),
                    "{condition} raw's rate, the paper's own gap being 0.16", "first",
                    digits=".0%",
                    remarks=(listed(main("off_support", ("hybrid", "raw")).called("Rates"), ".0%"),
                             BASE_RATE)),
          Sweeps(("hybrid", "raw"))),
    Claim("mean-norms",
          "The mean norm of the pick is below R for TD-Q, above R for cosine and far above R for "
          "raw and hybrid.", "tab:toy-support",
          Criterion(main("mean_norm", ("raw", "hybrid")), HERE, FAR,
                    "the mean norm of the pick is {condition} (twice R) for raw and hybrid",
                    "first", part="{} ≫ R")
          & Criterion(main("mean_norm", TDQ).called("TD-Q"), HERE, below(RADIUS),
                      "{condition} for TD-Q", part="TD-Q < R")
          & Criterion(main("mean_norm", ("cosine",)).called("Cosine"), HERE, above(RADIUS),
                      "{condition} for cosine", part="cosine > R"),
          Sweeps(CRITICS)),
    Claim("readout-control",
          "Replacing the cosine readout with a TD-calibrated head on the same network restores "
          "near-oracle selection.", "tab:toy-within",
          show(paired(readout("regret", "f_cos"), readout("regret", "q_td"),
                      "Regret that the change of readout removes"), HERE)
          & Criterion(readout("regret", "f_cos").called("Regret"), HERE, FAILS,
                      "the cosine readout's regret {condition}", part="the cosine readout fails")
          & Criterion(readout("off_support", "f_cos").called("Off support"), HERE, MOST,
                      "with off-support picks {condition} the time",
                      part="the cosine readout picks off support", digits=".1%")
          & Criterion(readout("regret", "q_td").called("Regret"), HERE, NEAR_ORACLE,
                      "the TD head's {condition}", part="the TD head is near-oracle")
          & Criterion(readout("off_support", "q_td").called("Off support"), HERE, at_most(0.01),
                      "with {condition:%} off support", part="the TD head stays inside",
                      digits=".1%"),
          Sweeps(HEADS)),
    Claim("sum-readout",
          "The full sum Q_hybrid = q_td + α f_cos gives nearly identical results.",
          "tab:toy-within",
          Criterion(paired(readout("regret", "q_hybrid"), readout("regret", "q_td"),
                           "Regret less the head's"), HERE, SAME,
                    "regret less the head's {condition}", part="regret")
          & Criterion(paired(readout("off_support", "q_hybrid"), readout("off_support", "q_td"),
                             "Off support less the head's"), HERE, SAME,
                      "off-support share, too", part="off support"),
          Sweeps(HEADS)),
    Claim("score-rises",
          "The selected proxy score rises for every contrastive critic as K grows …", "fig:curse",
          Criterion(each_as(seed_curve("selected_score", CONTRASTIVE,
                                       lambda y: float(np.diff(y).min())), lowest_seed)
                    .called("Smallest rise over one doubling of K"), HERE,
                    at_least(ZERO), "{condition} in every seed", digits=".3g", certain=True,
                    note="This holds by arithmetic: the largest of more scores is never smaller.")),
    Claim("value-falls", "… but the selected action's true value falls.", "fig:curse",
          Criterion(seed_curve("value", CONTRASTIVE, change).called("Change from K = 1"), HERE,
                    below(ZERO), "the value at the largest K less that of a random candidate "
                    "(K = 1) is {condition}", digits="+.3f"),
          Sweeps(CONTRASTIVE)),
    Claim("tdq-near-oracle", "Only TD-Q remains near the oracle.", "fig:curse",
          Criterion(seed_curve("regret", TDQ, max, "TD-Q").called("Largest regret over K"), HERE,
                    NEAR_ORACLE,
                    "TD-Q's regret {condition} at every K (in the sweeps, at the largest)",
                    "first", remarks=(training_length,))
          & Criterion(seed_curve("regret", CONTRASTIVE, last).called("At the largest K"), HERE,
                      FAILS, "every other critic's {condition} at the largest K"),
          Sweeps(CRITICS)),
    Claim("raw-norm-high", "Raw norms stay high as K increases …", "fig:toy-regret",
          Criterion(seed_curve("phi_norm", ("raw",), multiple), HERE, at_least(1 - MATERIAL),
                    "the embedding norm of raw's pick at the largest K relative to that of a "
                    f"random candidate is {{condition}}, within {MATERIAL:.0%}", "first",
                    part=f"a norm within {MATERIAL:.0%} of a random candidate's")
          & Criterion(seed_curve("phi_norm", ("raw",), multiple).called(""), HERE, at_least(1.0),
                      "{condition}", part="a norm not below a random candidate's")),
    Claim("other-norms-fall",
          "… while bounded and calibrated critic norms fall.", "fig:toy-regret",
          Criterion(seed_curve("phi_norm", BOUNDED, multiple), HERE, at_most(1 - MATERIAL),
                    "the norm at the largest K relative to that at K = 1 is {condition}",
                    note="TD-Q's half cannot be asked: it has no phi, and its last hidden layer, "
                    "which could stand in, is the output of a LayerNorm, whose norm is nearly "
                    "constant by construction.")
          & Criterion(Numbers(lambda *_: {"TD-Q": Number(math.nan)}, ""), HERE,
                      at_most(1 - MATERIAL))),
    Claim("search-finds-more",
          "High-score false positives exist, and stronger search finds them more often.",
          "sec:toy-support",
          Criterion(seed_curve("off_support", CONTRASTIVE, change).called("Changes"), HERE,
                    above(ZERO),
                    "the off-support rate at the largest K less that of a random candidate is "
                    "{condition}",
                    remarks=(listed(seed_curve("off_support", CONTRASTIVE, last)
                                    .called("At the largest K"), ".0%"), BASE_RATE)),
          Sweeps(CONTRASTIVE)),
    Claim("radius-order", "The critic ordering is preserved at every radius.", "tab:r-sweep",
          Criterion(Numbers(radius_gaps), HERE, above(ZERO),
                    "the order of regret at R = 0.40 holds at every radius, each critic's regret "
                    "less that of the one before it {condition}", differ="the radius and the pair",
                    note="The paper's own numbers change their order with the radius.")),
    Claim("radius-80",
          "Every contrastive critic selects off-support actions on at least 80 % of queries.",
          "app:r-sweep",
          Criterion(at_radius("off_support", CONTRASTIVE), HERE, at_least(0.80),
                    "means over seeds of {condition:%}", digits=".0%", remarks=(BASE_RATE,),
                    differ="the radius and the critic",
                    note="The paper's main table has 60 % for cosine at R = 0.40.")),
    Claim("radius-far-more",
          "[Every contrastive critic] has far more regret than TD-Q, which remains within the "
          "support and has near-zero regret.", "app:r-sweep",
          Criterion(Numbers(radius_multiples, "Multiples"), HERE, at_least(Words(3.0, "three")),
                    "{condition} times TD-Q's regret", digits=".2f", on="the radius")
          & Criterion(at_radius("regret", TDQ).called("Its regret"), HERE, NEAR_ORACLE,
                      "TD-Q itself {condition}", part="regret of {}")
          & Criterion(at_radius("off_support", TDQ).called("Off support"), HERE, INSIDE,
                      "with {condition:%} off support", part="support of {}", digits=".0%")),
    Claim("radius-reproduces", "The R = 0.40 results reproduce the main table.", "app:r-sweep",
          show(Numbers(sweep_less_table, "Regret less the table's"), HERE, "farthest from zero",
               certain=True,
               words="regret within one standard deviation of the main table",
               note="Both come from the same runs here, the sweep from some of the seeds, and then "
               "the difference is never as large. The paper's own two numbers for cosine differ.")
          & Criterion(Numbers(beyond_std, ""), HERE, at_most(ZERO))),
    Claim("noise-selections",
          "Under isotropic Gaussian noise selected actions, off-support rates, and all best-of-K "
          "curves remain identical.", "sec:running-env",
          Criterion(Numbers(picks_changed, "Share of picks changed"), HERE, exactly(0.0),
                    "not one pick of the oracle or of a critic changes", digits=".0%",
                    certain=True,
                    note="The Rice mean keeps the order of all values, and noise changes nothing "
                    "about a critic that is trained already. A TD-Q trained on noisy rewards is "
                    "another network.",
                    remarks=(listed(Numbers(retrained, "It changes"), ".0%"),))),
    Claim("noise-shift", "Regret magnitudes shift by at most 0.063 at σ = 0.05.", "sec:running-env",
          Criterion(Numbers(largest_shift, "Largest shifts"), HERE,
                    at_most(Words(RICE_SHIFT + 1e-09, f"σ√(π/2) = {RICE_SHIFT:.4f}")),
                    "every query of every seed shifts by {condition}", digits=".4f", certain=True,
                    note="No pick could shift by more: the Rice mean lies above its distance by at "
                    "most that.")),
    Claim("nonidentifiability",
          "The contrastive objective imposes no constraint outside the support of its triples.",
          "sec:why-fail", theory("off-support nonidentifiability")),
    Claim("finite-inflation",
          "For any finite margin M there is a bilinear critic with bounded embeddings, equal on "
          "the support, that scores at least M on a separated region.", "thm:finite-inflation",
          theory("finite off-support inflation"), also=(
              Quoted(sentence="An off-support sequence with growing norm and fixed alignment has a "
                     "score without bound; the objective does not rule it out.",
                     where="sec:norm-inflation"),
              Quoted(sentence="Unbounded bilinear scores can let large embedding norms inflate "
                     "off-support values.", where="abstract"))),
    Claim("good-ranker",
          "Pr(pick in B) = 1 − (1 − p)^K → 1, and the expected regret reaches q_good − q_bad.",
          "prop:good-ranker-bad-obj", theory("good ranker, bad objective")),
    Claim("bounded-corollary",
          "A bounded score offers no protection once low-value actions reach the top of its range.",
          "cor:bounded", theory("boundedness is not calibration")),
    Claim("two-epsilon",
          "If the score is within ε of the value over the searched candidates, regret is at most "
          "2ε.", "rem:sufficient", theory("two-epsilon bound")),
    Claim("positives-unordered",
          "A binary future-positive target requires no ordering between two positive goals.",
          "rem:positive-ordering",
          Criterion(Numbers(lead_of_nearer, "In nats"), HERE, at_most(ZERO),
                    "the loss orders two positives that are drawn by geometric offsets by "
                    "{condition}", part="geometric offsets", on="how often each positive is drawn",
                    note="The loss is least at log p(g | s, a) − log p(g) up to a constant, so "
                    "that geometric offsets, by which every critic on recorded data is trained, "
                    "order the two where goals are equally frequent by themselves.")
          & replace(holds(COMPATIBLE, "equally frequent positives"),
                    words="the theory's check holds for positives drawn equally often")),
)
# fmt: on
"""From the abstract to the supplement, the theory last."""
