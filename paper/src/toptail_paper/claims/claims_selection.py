"""The paper's statements about fixed-query selection, each with its criterion.

A folder holds one task; statements about other tasks are left open. Where a statement speaks of
value and several judges valued every candidate, it must hold under each of them to be seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from toptail_paper.claims.claim import Claim, Quoted
from toptail_paper.claims.criteria import (
    HALF,
    WEAK_OR_INVERTED,
    ZERO,
    Condition,
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
    show,
)
from toptail_paper.claims.findings import PART
from toptail_paper.claims.numbers import (
    ALONE,
    Named,
    NotMeasuredError,
    Number,
    Numbers,
    Tables,
    difference,
    each,
    each_as,
    from_seeds,
    least,
    less,
    mean,
    most,
    number,
    quotient,
    ratio,
    shifted,
    stored,
)
from toptail_paper.claims.reported import (
    ANT,
    BOUNDED,
    CONTINUOUS,
    CONTRASTIVE,
    CORE,
    CRITICS,
    HUMANOID,
    MAZE_JUDGES,
    POINT,
    SOCCER,
    TDQ,
)
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.results import JudgeMetric, SelectionMetric, closed_loop
from toptail_paper.study.naming import TRIVIAL

MAIN, SQUARE = "fixed-query", "function-class"
SQUARE_CRITICS = ("raw", "nce_mlp", "td_bilinear", "tdq")
TAU, REGRET = SelectionMetric("tau_b", 64), SelectionMetric("nregret", 64)
DELTA = "rollout_delta"
ACROSS, WITHIN = (str(JudgeMetric(f"spearman_{x}", REFERENCE)) for x in ("across", "within"))
HEADS = ("two_head_joint", "two_head_joint.f_cos")
"""The value and the cosine of one checkpoint."""
Judges: TypeAlias = Callable[[Tables, str, str, str], Sequence[str]]
"""From stored results, a task, a critic and a table to judges."""
JUDGE = "the judge"
"""What a statement depends on that one judge confirms and another does not."""

NAMES = {
    "tdq": "TD-Q",
    "raw": "raw",
    "cosine": "cosine",
    "hybrid": "hybrid",
    "two_head_joint": "q_td",
    "two_head_joint.f_cos": "f_cos",
}


def only_task(table: str = MAIN) -> Callable[[Tables], Sequence[str]]:
    """The task that a criterion is asked on: the first of a table, as a folder holds one."""

    def first(tables: Tables) -> list[str]:
        tasks = list(tables.get(table, {}).get("rows", {}))[:1]
        if not tasks:
            raise NotMeasuredError(f"no table '{table}'")
        return tasks

    return first


def judges(tables: Tables, task: str, critic: str = "tdq", table: str = MAIN) -> list[str]:
    """The judges that are asked about a critic.

    The reference, and the first judge that knows the maze's shortest ways.
    """
    known = _stored_judges((REFERENCE, *MAZE_JUDGES), tables, task, critic, table)
    return known[: 2 if known[0] == REFERENCE else 1]


def _stored_judges(
    judges: Sequence[str], tables: Tables, task: str, critic: str, table: str
) -> list[str]:
    """The judges, of those given, by which the tau_b of a critic is stored."""
    row = tables.get(table, {}).get("rows", {}).get(task, {}).get(critic, {})
    found = [judge for judge in judges if str(TAU.by(judge)) in row]
    if not found:
        raise NotMeasuredError(f"{table}: {task}/{critic}/{TAU}")
    return found


def continuous(tables: Tables, task: str, critic: str = "tdq", table: str = MAIN) -> list[str]:
    """The judges that limits on tau_b are put to.

    The reference, and the exact value without rounding to whole steps. Whole steps tie most
    candidates of a pool, which bounds the tau_b of any score far below 1.
    """
    return _stored_judges((REFERENCE, CONTINUOUS), tables, task, critic, table)


def judged(metric: SelectionMetric, critics: Sequence[str], by: Judges = judges) -> Numbers:
    """A metric of several critics under every judge that saw the first of them."""

    def of(tables: Tables, task: str) -> Named:
        return {
            f"{NAMES[critic]} ({judge})": number(tables, MAIN, task, critic, str(metric.by(judge)))
            for judge in by(tables, task, critics[0], MAIN)
            for critic in critics
        }

    return Numbers(of)


def unreliable_reference(tables: Tables, tasks: Sequence[str]) -> str:
    """Say so where the reference ensemble did not pass its declared criteria."""
    rows = tables.get(MAIN, {}).get("rows", {}).get(tasks[0], {})
    if any(row.get(str(TAU), {}).get("unreliable") for row in rows.values()):
        return " The reference ensemble did not pass its criteria here: its numbers decide little."
    return ""


def on_included(
    metric: SelectionMetric,
    critics: Sequence[str],
    condition: Condition,
    words: str,
    by: Judges = judges,
) -> Criterion:
    """A condition under every judge, on the task of the folder."""
    return Criterion(
        judged(metric, critics, by),
        CORE,
        condition,
        words,
        "first",
        digits=".2f",
        remarks=(unreliable_reference,),
        measured_on=only_task(),
        differ="the judge and the critic",
    )


def against_tdq(
    metric: SelectionMetric, by: Callable[[Number, Number], Number], what: str
) -> Numbers:
    """A metric of the contrastive critics compared with TD-Q's, under every judge."""

    def of(tables: Tables, task: str) -> Named:
        found = judged(metric, CRITICS).of(tables, task)
        return {
            f"{critic} ({judge})": by(found[f"{critic} ({judge})"], found[f"TD-Q ({judge})"])
            for judge in judges(tables, task)
            for critic in CONTRASTIVE
        }

    return Numbers(of, what)


def lead(more: str, fewer: str, table: str = MAIN, by: Judges = judges) -> Numbers:
    """What one critic has more of tau_b than another, seed by seed, under every judge."""

    def of(tables: Tables, task: str) -> Named:
        found = {}
        for judge in by(tables, task, more, table):
            x, y = (number(tables, table, task, c, str(TAU.by(judge))) for c in (more, fewer))
            found[judge] = x.minus(y)
        return found

    return Numbers(of)


def effect(more: str, fewer: str, by: Judges = judges) -> Numbers:
    """What one cell of the 2 x 2 has more than another."""
    return lead(more, fewer, SQUARE, by)


def falls(tables: Tables, task: str) -> Named:
    """tau_b of q_td less that of f_cos of the same checkpoints, by variant of the two heads."""
    found = {}
    for variant in ("joint", "separate"):
        with suppress(NotMeasuredError):
            heads = (f"two_head_{variant}", f"two_head_{variant}.f_cos")
            q_td, f_cos = (number(tables, MAIN, task, head, str(TAU)) for head in heads)
            found[variant] = q_td.minus(f_cos)
    if not found:
        raise NotMeasuredError(f"{MAIN}: {task}: no variant of two heads")
    return found


def square(metric: SelectionMetric, tables: Tables, task: str) -> dict[str, list[Number]]:
    """The cells of the 2 x 2 by judge: raw, nce_mlp, td_bilinear, tdq."""
    return {
        judge: [number(tables, SQUARE, task, c, str(metric.by(judge))) for c in SQUARE_CRITICS]
        for judge in judges(tables, task, "raw", SQUARE)
    }


def objective_less_function(tables: Tables, task: str) -> Named:
    """The smaller effect of the objective less the larger one of the function class, by judge."""

    def size(x: Number) -> Number:
        return x if x.mean >= 0 else from_seeds({seed: -value for seed, value in x.seeds.items()})

    found = {}
    for judge, (raw, nce_mlp, td_bilinear, tdq) in square(TAU, tables, task).items():
        objective, function = (
            (td_bilinear.minus(raw), tdq.minus(nce_mlp)),
            (nce_mlp.minus(raw), tdq.minus(td_bilinear)),
        )
        smaller = min(objective, key=mean)
        found[judge] = smaller.minus(max(map(size, function), key=mean))
    return found


def worst_less_best(metric: SelectionMetric, sign: int) -> Numbers:
    """The worse Bellman cell's lead over the better contrastive cell, by judge."""

    def of(tables: Tables, task: str) -> Named:
        found = {}
        for judge, cells in square(metric, tables, task).items():
            worst = min(cells[2:], key=lambda x: sign * x.mean)
            best = max(cells[:2], key=lambda x: sign * x.mean)
            found[judge] = worst.minus(best) if sign > 0 else best.minus(worst)
        return found

    return Numbers(of)


def tau_square(tables: Tables, task: str) -> Named:
    """The four cells of the 2 x 2."""
    return {
        f"{critic} ({judge})": x
        for judge, cells in square(TAU, tables, task).items()
        for critic, x in zip(SQUARE_CRITICS, cells, strict=True)
    }


TAU_SQUARE = (listed(Numbers(tau_square, "tau_b"), ".2f"),)


def gain(*selectors: str) -> Numbers:
    """Gains over a random candidate in the simulator, of every selector unless some are named."""

    def of(tables: Tables, task: str) -> Named:
        rows = tables.get(MAIN, {}).get("rows", {}).get(task, {})
        every = [s for s, row in rows.items() if DELTA in row and s not in TRIVIAL]
        found = {NAMES.get(s, s): number(tables, MAIN, task, s, DELTA) for s in selectors or every}
        if not found or any(x.interval is None for x in found.values()):
            raise NotMeasuredError(f"{MAIN}: {task}/{DELTA}")
        return found

    return Numbers(of, "Gains")


def one_training(tables: Tables, tasks: Sequence[str]) -> str:
    """Say so where the critics of one training seed alone were rolled out."""
    cell = stored(tables, MAIN, tasks[0], "tdq", DELTA)
    if len(cell["seeds"]) > 1:
        return ""
    return " One training seed was rolled out: the intervals do not contain another training."


def lower_ends(numbers: Numbers) -> Numbers:
    return each_as(numbers, lambda x: x.low).called("Lower ends")


def beyond_threshold(row: str, metric: str, name: str = "") -> Numbers:
    """A number of the table of judges less its declared threshold."""

    def of(tables: Tables, task: str) -> Named:
        threshold = float(stored(tables, "judges", task, row, metric)["threshold"])
        return {name or metric: shifted(number(tables, "judges", task, row, metric), -threshold)}

    return Numbers(of, "Less the threshold")


HALF_WIDTH = beyond_threshold("rollouts", "largest_half_width", "half-width").called(
    "Largest half-width less e_min"
)
"""The largest half-width of the rollouts' intervals less e_min, the declared threshold."""
SPEARMAN = each("judges", "spearman", ("reference",), ALONE).called("Spearman of the members")


# fmt: off
def powered_null(task: str) -> Criterion:
    """No selector gains on a task although the rollouts would show it."""
    everyone = gain().requiring(gain(*CRITICS, "reference", "logged"))
    return (show(everyone, (task,), "highest", digits="+.4f", on=PART, remarks=(one_training,))
            & Criterion(lower_ends(everyone), (task,), at_most(ZERO),
                        "no selector's paired 95 % interval over random candidates lies above "
                        "zero, the reference and the logged action among them", digits="+.4f")
            & Criterion(HALF_WIDTH, (task,), below(ZERO),
                        "every half-width is below the declared e_min", part="well powered",
                        digits="+.4f"))


def admission(task: str, rollouts: str, note: str) -> Criterion:
    """The reference misses a declared criterion, and the rollouts ``pass`` or ``fail`` theirs."""
    return (show(SPEARMAN, (task,), digits=".2f", note=f"The number is the Spearman; {note}.")
            & Criterion(Numbers(smaller_margin, "The smaller margin of the reference"), (task,),
                        below(ZERO), "the reference ensemble misses at least one of its declared "
                        "criteria (Spearman, resolvability)", part="the reference fails")
            & Criterion(HALF_WIDTH, (task,), below(ZERO) if rollouts == "pass" else at_least(ZERO),
                        f"the rollouts {rollouts} theirs: every half-width below e_min",
                        part=f"the rollouts {rollouts}", digits="+.4f"))
# fmt: on


def smaller_margin(tables: Tables, task: str) -> Named:
    """The smaller of the reference's two margins: below zero where it misses one criterion."""

    def ends(x: Number) -> tuple[float, float, float]:
        if x.missing:
            return -math.inf, 0.0, math.inf
        low, high = x.interval or (x.mean, x.mean)
        return low, x.mean, high

    margins = [
        ends(x)
        for metric in ("spearman", "resolvability")
        for x in beyond_threshold("reference", metric).of(tables, task).values()
    ]
    low, mean, high = (min(found) for found in zip(*margins, strict=True))
    return {"smaller margin": Number(mean, (low, high))}


def seeds_over_gap(tables: Tables, task: str) -> Named:
    """Standard deviation over seeds as a share of TD-Q's lead in tau_b, by contrastive critic."""
    tdq, *others = each(MAIN, str(TAU), CRITICS, ALONE).of(tables, task).values()
    found = {}
    for critic, x in zip(CONTRASTIVE, others, strict=True):
        if len(x.seeds) < 2:
            raise NotMeasuredError(f"{MAIN}: {task}: one seed alone has no spread")
        gap = tdq.mean - x.mean
        found[critic] = Number(max(x.std, tdq.std) / gap if gap > 0 else math.inf)
    return found


ACTORS = each("deployment", "actor_success", CRITICS, ALONE)

# fmt: off
SELECTION: tuple[Claim, ...] = (
    Claim("contrastive-fail-to-order",
          "[Contrastive scores] fail to order fixed-query actions by value.", "abstract",
          show(judged(TAU, ("raw",)).called("tau_b"), CORE, digits=".2f", on=JUDGE,
               remarks=(unreliable_reference,), measured_on=only_task())
          & Criterion(against_tdq(TAU, quotient, "Shares of TD-Q's"), CORE, WEAK_OR_INVERTED,
                      "every contrastive tau_b is {condition} of TD-Q's, under every judge of "
                      "every candidate", digits=".2f")),
    Claim("rollouts-reveal-costs",
          "Simulator rollouts reveal single-step selection costs on PointMaze …", "abstract",
          Criterion(gain("tdq"), (POINT,), above(ZERO),
                    "TD-Q's gain over a random candidate is {condition}", part="TD-Q gains",
                    digits="+.4f", remarks=(one_training,))
          & Criterion(less(gain(*CONTRASTIVE), gain("tdq"), "Less TD-Q's"), (POINT,), below(ZERO),
                      "every contrastive critic's less TD-Q's {condition}", digits="+.4f")),
    Claim("antmaze-null",
          "… but well-powered nulls on AntMaze: no selector, including the reference oracle or "
          "logged action, beats a random pool draw …", "sec:fixed-query", powered_null(ANT)),
    Claim("humanoidmaze-null", "… and on HumanoidMaze.", "sec:fixed-query",
          powered_null(HUMANOID)),
    Claim("negative-medians",
          "The cosine and hybrid readouts select low-value OGBench actions with negative cosine "
          "values (median −0.25 to −0.74) …", "cor:bounded",
          Criterion(each(MAIN, "median_selected", BOUNDED, ALONE), CORE, below(ZERO),
                    "the median of the selected score is {condition}", "first", digits="+.2f",
                    measured_on=only_task(), part="{} is negative")
          & Criterion(each(MAIN, "median_selected", BOUNDED, ALONE).called(""), CORE,
                      between(-0.745, -0.245),
                      "it is {condition}, which rounds to the paper's -0.74 to -0.25. The level "
                      "depends on the temperature of the cosine logits, which the paper does not "
                      "state; what the picks are worth is another entry's",
                      part="{} is in the range")),
    Claim("none-above", "… and no selected score exceeds 0.9.", "cor:bounded",
          Criterion(each(MAIN, "share_above_0.9", BOUNDED, ALONE).called("Share above 0.9"), CORE,
                    exactly(ZERO), "none of the selected scores, in any pool and seed",
                    digits=".2%", measured_on=only_task())),
    Claim("pointmaze-admitted",
          "PointMaze passes both criteria (Spearman 0.88).", "sec:fixed-query",
          show(SPEARMAN, (POINT,), digits=".2f", note="The number is the Spearman.")
          & Criterion(beyond_threshold("reference", "resolvability"), (POINT,), at_least(ZERO),
                      "the declared ones: the share of resolved pools", part="resolvability")
          & Criterion(beyond_threshold("reference", "spearman"), (POINT,), at_least(ZERO),
                      "the Spearman are not below their thresholds", part="agreement")
          & Criterion(HALF_WIDTH, (POINT,), below(ZERO),
                      "the largest half-width of the rollouts is below e_min", part="rollouts",
                      digits="+.4f")),
    Claim("tdq-orders",
          "The Bellman-trained scalar orders within-pool actions on every included task (τ_b = "
          "0.60–0.90).", "sec:fixed-query",
          on_included(TAU, ("tdq",), at_least(0.595),
                      "tau_b {condition}, which rounds to 0.60, the paper's smallest, by judges "
                      "with continuous values. The reference is of TD-Q's own family, so its word "
                      "is partly circular; the exact value's is not", continuous)),
    Claim("contrastive-flat",
          "Every deployed contrastive scalar is near-flat (τ_b ≤ 0.41) …", "sec:fixed-query",
          on_included(TAU, CONTRASTIVE, below(0.415),
                      "tau_b {condition}: at most 0.41, as the sentence says, by judges with "
                      "continuous values", continuous)),
    Claim("contrastive-random-regret",
          "… and has random-level normalized regret at K = 64.", "sec:fixed-query",
          on_included(REGRET, CONTRASTIVE, at_least(0.655),
                      "normalized regret {condition}, which rounds to 0.66, the smallest that the "
                      "paper calls random-level (1 is a random candidate)")),
    Claim("two-head-gap",
          "A same-checkpoint two-head control shows the same gap while holding the representation "
          "fixed.", "sec:fixed-query",
          Criterion(lead(*HEADS).called("q_td less f_cos"), CORE, above(ZERO),
                    "the lead in tau_b of q_td over f_cos, from the same checkpoint on the same "
                    "pools, is above zero", "first", part="a gap ({})", digits=".2f",
                    differ=JUDGE, remarks=(unreliable_reference,), measured_on=only_task())
          & Criterion(ratio(lead(*HEADS), lead("tdq", "cosine"), "As a share of that lead"), CORE,
                      at_least(HALF), "{condition} of TD-Q's over the cosine critic, under every "
                      "judge of every candidate", part="as large ({})", digits=".2f")),
    Claim("tdq-gains",
          "TD-Q gains +0.012 over random with a confidence interval excluding zero, …",
          "tab:fixed-query",
          Criterion(gain("tdq"), (POINT,), above(ZERO), "TD-Q's paired gain is {condition}",
                    digits="+.4f", remarks=(one_training,))),
    Claim("raw-half", "… raw gains about half as much, …", "tab:fixed-query",
          Criterion(ratio(gain("raw"), gain("tdq"), "Share of TD-Q's gain"), (POINT,),
                    between(Words(0.25, "a quarter"), Words(0.75, "three quarters")),
                    "raw's gain is {condition} of TD-Q's (the paper: 0.58)", part="about half",
                    digits=".2f", remarks=(one_training,))
          & Criterion(gain("raw"), (POINT,), above(ZERO), "{condition}", part="raw gains",
                      digits="+.4f")),
    Claim("cosine-nothing", "… and cosine gains nothing.", "tab:fixed-query",
          show(gain("cosine"), (POINT,), digits="+.4f", remarks=(one_training,))
          & Criterion(lower_ends(gain("cosine")), (POINT,), at_most(ZERO),
                      "the paired 95 % interval does not lie above zero", part="cosine",
                      digits="+.4f")
          & Criterion(HALF_WIDTH, (POINT,), below(ZERO),
                      "a gain would have been noticed: the largest half-width is below e_min",
                      part="cosine", digits="+.4f", premise=True)),
    Claim("hybrid-gains",
          "[Hybrid gains +0.005 over random with a confidence interval excluding zero.]",
          "tab:fixed-query",
          Criterion(gain("hybrid"), (POINT,), above(ZERO), "hybrid's paired gain is {condition}",
                    digits="+.4f", remarks=(one_training,))),
    Claim("objective-explains-most",
          "The objective explains most of the gap; function class has a smaller effect.",
          "tab:function-class",
          Criterion(Numbers(objective_less_function), (POINT,), above(ZERO),
                    "the smaller of the two effects of the objective on tau_b less the larger of "
                    "the two of the function class, seed by seed, is {condition}", "first",
                    digits="+.2f", on=JUDGE, remarks=TAU_SQUARE),
          also=(Quoted(sentence="Fixed-query and parameter-matched controls attribute reliable "
                       "ordering to the training objective.", where="sec:intro"),)),
    Claim("bellman-raises-tau",
          "Bellman training raises τ_b by 0.30 in the bilinear class and 0.44 in the MLP class.",
          "tab:function-class",
          Criterion(effect("td_bilinear", "raw", continuous).called("Bilinear"), (POINT,),
                    at_least(0.30 / 2), "by judges with continuous values, a rise of {condition} "
                    "in the bilinear class", "first", part="bilinear ({})",
                    digits=".2f", on=JUDGE, remarks=TAU_SQUARE)
          & Criterion(effect("tdq", "nce_mlp", continuous).called("MLP"), (POINT,),
                      at_least(0.44 / 2), "of {condition} in the MLP class, half of the paper's",
                      part="MLP ({})", digits=".2f")),
    Claim("architecture-changes-little",
          "The architecture match raises contrastive τ_b only from 0.40 to 0.46.",
          "tab:function-class",
          Criterion(effect("nce_mlp", "raw", continuous).called("Contrastive MLP less raw"),
                    (POINT,), at_most(0.12), "by judges with continuous values, a change of "
                    "{condition:+}, twice the paper's", "first", digits="+.2f", on=JUDGE)),
    Claim("bottleneck", "The bilinear bottleneck lowers Bellman τ_b from 0.91 to 0.70.",
          "tab:function-class",
          Criterion(effect("tdq", "td_bilinear", continuous).called("The drop"), (POINT,),
                    at_least(0.105), "by judges with continuous values, TD bilinear's tau_b lies "
                    "below TD-Q's by {condition}, half of the paper's drop", "first", digits=".2f",
                    on=JUDGE, remarks=TAU_SQUARE)),
    Claim("worst-bellman",
          "The worst Bellman cell still beats the best contrastive cell on every metric.",
          "tab:function-class",
          Criterion(worst_less_best(TAU, 1).called("In tau_b"), (POINT,), above(ZERO),
                    "the worse Bellman cell's lead over the better contrastive cell, seed by seed, "
                    "is {condition} in tau_b", "first", part="tau_b ({})", digits=".2f", on=JUDGE)
          & Criterion(worst_less_best(REGRET, -1).called("In regret"), (POINT,), above(ZERO),
                      "in regret", part="regret ({})", digits=".2f"),
          also=(Quoted(sentence="Bellman-trained TD-Q succeeds, including in a parameter-matched "
                       "function-class control.", where="abstract"),)),
    Claim("support-uncorrelated",
          "Local support and reference value are nearly uncorrelated in the fixed-query pools.",
          "sec:local-drift",
          Criterion(each("judges", "support_value_correlation", ("reference",), ALONE), CORE,
                    near(ZERO, 0.1),
                    "the mean within-pool Spearman of nearness to the data's actions with the "
                    "reference value {condition:.2f}; the paper has 0.03 to 0.05", "first",
                    measured_on=only_task("judges"))),
    Claim("near-base-rate",
          "[Contrastive critics] select [off-support] candidates near the base rate on PointMaze.",
          "sec:local-drift",
          Criterion(each(MAIN, "off_over_base", CONTRASTIVE, ALONE)
                    .called("Picked rate over base rate"), (POINT,),
                    between(Words(2 / 3, "two thirds"), Words(1.5, "one and a half")),
                    "{condition} of the pool's own rate", "farthest from 1", digits=".2f")),
    Claim("twice-base-rate",
          "Contrastive critics promote off-local-support candidates at about 2.2 times the pool "
          "base rate on AntMaze.", "sec:local-drift",
          Criterion(each(MAIN, "off_over_base", CONTRASTIVE, ALONE), (ANT,), at_least(1.7),
                    "{condition} times the pool's rate (the paper: about 2.2)", digits=".2f")),
    Claim("reference-agrees",
          "[The reference ensemble of PointMaze] agrees with rollout ground truth.",
          "app:value-oracle",
          Criterion(each("judges", WITHIN, ("rollouts",), "within queries"), (POINT,), above(ZERO),
                    "the within-query Spearman of reference value and realized return, over random "
                    "candidates of the audited queries, is {condition}", digits=".2f",
                    remarks=(listed(each("judges", ACROSS, ("rollouts",), "across queries")
                                    .called("Beside it"), ".2f"),))),
    Claim("ant-reference-invalid",
          "On AntMaze the reference has no within-query validity (ρ = 0.07, against 0.38 across).",
          "app:value-oracle",
          Criterion(each("judges", WITHIN, ("rollouts",), "within").called("Within queries"),
                    (ANT,), below(0.15), "within queries {condition}", "first")
          & Criterion(each("judges", ACROSS, ("rollouts",), "across").called("Across queries"),
                      (ANT,), above(0.2), "across {condition}; the paper has 0.07 and 0.38")),
    Claim("actors-comparable",
          "The [behaviour-regularized] actor reaches about 20–32 % AntMaze success with each of "
          "the four critics.", "app:actor",
          show(ACTORS, (ANT,), "lowest", digits=".0%", measured_on=only_task("deployment"))
          & Criterion(each_as(least(ACTORS), mean).called(""), (ANT,), above(ZERO),
                      "every actor's success is {condition}", part="every actor succeeds sometimes")
          & Criterion(less(most(ACTORS), least(ACTORS), "Highest less lowest"), (ANT,),
                      at_most(0.12), "the highest less the lowest is {condition}",
                      part="within 12 points", digits=".0%")),
    Claim("tdq-worsens",
          "Even TD-Q worsens as K grows: its PointMaze success falls from 36 % at K = 1 to 0 % at "
          "K = 64.", "app:closed-loop",
          Criterion(less(each("deployment", closed_loop(64), TDQ, "TD-Q"),
                         each("deployment", closed_loop(1), TDQ), "From K = 1 to 64"), (POINT,),
                    below(ZERO),
                    "the success rate at K = 64 less that at K = 1 is {condition}", digits="+.2f")),
    Claim("flat-one-step",
          "TD-Q's score spread across the action cube is only about 0.8 % of its magnitude, versus "
          "7–23 % for the bilinear critics.", "app:closed-loop",
          Criterion(each("deployment", "score_spread", ("tdq",), "TD-Q"), (POINT,), at_most(0.02),
                    "TD-Q's relative spread {condition:%}", "first", part="TD-Q about 1 %",
                    digits=".1%")
          & Criterion(each("deployment", "score_spread", ("raw",), ALONE).called("Raw"), (POINT,),
                      at_least(0.05), "raw's {condition:%} (the paper: 0.8 % and 7 to 23 %)",
                      digits=".1%")),
    Claim("needs-value",
          "Contrastive critics remain useful compatibility rankers, but action selection requires "
          "a value-calibrated scalar.", "abstract",
          Criterion(against_tdq(REGRET, difference, "More normalized regret than TD-Q"), CORE,
                    above(ZERO),
                    "within a query, every contrastive critic's normalized regret at K = 64 less "
                    "TD-Q's is {condition}, under every judge of every candidate", digits="+.2f",
                    part="more than TD-Q: {}", measured_on=only_task(), on=PART,
                    remarks=(unreliable_reference,))
          & Criterion(judged(REGRET, CONTRASTIVE).called("Normalized regret"), CORE,
                      at_least(HALF), "without such a scalar selection loses {condition} of what "
                      "a random candidate loses", part="much: {}", digits=".2f")),
    Claim("norms-grow",
          "Candidate maximization can exploit false positives caused by norm drift, …", "abstract",
          Criterion(each("pick-norm", "pick_norm_64", ("raw",), ALONE).called("Norm of the pick"),
                    CORE, at_least(1.05),
                    "the norm of φ of raw's pick at K = 64 is {condition} in units of a random "
                    "candidate's: it grows with K by at least the margin of the controlled world",
                    "first", measured_on=only_task("pick-norm"))),
    Claim("antmaze-judges",
          "AntMaze fails the reference criterion (Spearman 0.55) but passes the rollout-power "
          "criterion.", "sec:fixed-query", admission(ANT, "pass", "the paper has 0.55")),
    Claim("humanoidmaze-judges",
          "HumanoidMaze fails the reference criterion (Spearman 0.42) but passes the "
          "rollout-power criterion.", "sec:fixed-query",
          admission(HUMANOID, "pass", "the paper has 0.42")),
    Claim("antsoccer-excluded",
          "AntSoccer fails both criteria: it has no reliable value signal, …", "sec:fixed-query",
          admission(SOCCER, "fail", "the paper gives none")),
    Claim("antsoccer-policy",
          "… and the value-trained policy succeeds only about 5 % of the time.", "sec:fixed-query",
          Criterion(each("deployment", "actor_success", ("tdq",), "TD-Q's actor"), (SOCCER,),
                    at_most(0.10), "a success of {condition:%}, twice the paper's", "first",
                    digits=".1%")),
    Claim("two-head-antmaze",
          "The deployed scalar alone moves AntMaze τ_b from 0.73 to 0.11.", "sec:fixed-query",
          Criterion(Numbers(falls, "The fall"), (ANT,), at_least(0.31),
                    "tau_b of f_cos is lower than that of q_td of the same checkpoint by "
                    "{condition}, half of the paper's fall, in the joint and in the separate "
                    "variant; the interval is over training seeds",
                    "first", digits=".2f", differ="the variant")),
    Claim("seed-spread",
          "The three-seed standard deviation is only 1–2 % of the TD-versus-contrastive gap.",
          "app:critic-details",
          Criterion(Numbers(seeds_over_gap, "Shares"), CORE, at_most(0.025),
                    "the larger standard deviation over seeds of TD-Q's and a contrastive critic's "
                    "tau_b is {condition:%} of the gap between them, which rounds to 2 %",
                    digits=".1%", measured_on=only_task())),
    Claim("actors-level", "The actor reaches about 20–32 % AntMaze success …", "app:actor",
          Criterion(ACTORS, (ANT,), between(0.15, 0.37),
                    "every rate {condition:%}, the paper's range and five points on either side",
                    digits=".0%")),
)
# fmt: on
"""The order of the paper; then the judges of each task, and what the paper says beside tables."""
