"""How statements about the order within a pool are decided: every judge is asked.

The cases of a criterion here are judges, not tasks: a folder holds one task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toptail.lab.paper.criteria import (
    WEAK,
    WEAK_OR_INVERTED,
    Condition,
    Criterion,
    at_least,
    at_most,
    below,
)
from toptail.lab.paper.findings import (
    Answer,
    Finding,
    by_intervals,
    elsewhere,
    from_parts,
    ruled,
    scope,
)
from toptail.lab.paper.numbers import (
    Interval,
    Named,
    NotMeasuredError,
    Number,
    Numbers,
    Tables,
    number,
    quotient,
)
from toptail.lab.paper.vocabulary import CONTRASTIVE, CORE, POINT, WAYS

MAIN, SQUARE = "fixed-query", "function-class"
TAU, REGRET = "tau_b_64", "nregret_64"

NAMES = {
    "tdq": "TD-Q",
    "raw": "raw",
    "cosine": "cosine",
    "hybrid": "hybrid",
    "td_bilinear": "TD bilinear",
    "nce_mlp": "contrastive MLP",
    "two_head_joint": "q_td",
    "two_head_joint.f_cos": "f_cos",
}

HEADS = ("two_head_joint", "two_head_joint.f_cos")
"""The value and the cosine of one checkpoint."""

FLAT = below(0.415)
"""The largest tau_b that the paper still calls near-flat is 0.41."""
ORDERS = at_least(0.595)
"""The smallest tau_b at which the paper says that a score orders is 0.60."""
RANDOM_LEVEL = at_least(0.655)
"""The paper calls normalized regrets from 0.66 to 1.15 random-level."""


def one_task(tables: Tables, table: str = MAIN) -> str:
    """The first task of a table; a folder holds one."""
    for task in tables.get(table, {}).get("rows", {}):
        return str(task)
    raise NotMeasuredError(table)


def only_task(table: str = MAIN) -> Callable[[Tables], Sequence[str]]:
    """The task that a criterion is asked on."""
    return lambda tables: [one_task(tables, table)]


def judges(tables: Tables, task: str, critic: str = "tdq", table: str = MAIN) -> dict[str, str]:
    """The judges that are asked about a critic, and the prefix of their metrics.

    The reference, and of those that know the maze's ways the first.
    """
    row = tables.get(table, {}).get("rows", {}).get(task, {}).get(critic, {})
    found = {"reference": ""} if TAU in row else {}
    for judge in WAYS:
        if f"{judge}/{TAU}" in row:
            found[judge] = f"{judge}/"
            break
    if not found:
        raise NotMeasuredError(f"{table}: {task}/{critic}/{TAU}")
    return found


def judged(metric: str, critics: Sequence[str]) -> Numbers:
    """A metric of several critics under every judge that saw the first of them."""

    def of(tables: Tables, task: str) -> Named:
        return {
            f"{NAMES[critic]} ({judge})": number(tables, MAIN, task, critic, prefix + metric)
            for judge, prefix in judges(tables, task, critics[0]).items()
            for critic in critics
        }

    return Numbers(of)


def caveat(tables: Tables, tasks: Sequence[str]) -> str:
    """Say so where the reference ensemble did not pass its declared criteria."""
    rows = tables.get(MAIN, {}).get("rows", {}).get(tasks[0], {})
    if any(row.get(TAU, {}).get("unreliable") for row in rows.values()):
        return " The reference ensemble did not pass its criteria here: its numbers decide little."
    return ""


def on_included(metric: str, critics: Sequence[str], condition: Condition, said: str) -> Criterion:
    """A condition on every judge's word about the task of the folder."""
    return Criterion(
        judged(metric, critics),
        CORE,
        condition,
        said,
        "first",
        digits=".2f",
        beside=(caveat,),
        chosen=only_task(),
    )


def over_seeds(
    tables: Tables, table: str, task: str, more: str, fewer: str, metric: str
) -> Interval | None:
    """Student-t interval over training seeds of the paired difference of two rows."""
    first, second = (number(tables, table, task, row, metric) for row in (more, fewer))
    return first.minus(second).interval


@ruled(
    CORE,
    f"every contrastive tau_b is {WEAK_OR_INVERTED} of TD-Q's, under every judge of every "
    "candidate",
)
def contrastive_fail_to_order(tables: Tables) -> Finding:
    """Every contrastive tau_b is below half of TD-Q's."""
    task = one_task(tables)
    parts: dict[str, Answer] = {}
    texts = []
    for judge, prefix in judges(tables, task).items():
        tdq = number(tables, MAIN, task, "tdq", prefix + TAU)
        for critic in CONTRASTIVE:
            tau = number(tables, MAIN, task, critic, prefix + TAU)
            if by_intervals([task]):
                answer = WEAK_OR_INVERTED.asked(quotient(tau, tdq))
            else:
                answer = tau.high < WEAK * tdq.mean
            parts[f"{critic} ({judge})"] = answer
            texts.append(f"{critic} {tau.mean:.2f} against {tdq.mean:.2f} ({judge})")
    first = next(iter(judges(tables, task).values()))
    raw = number(tables, MAIN, task, "raw", first + TAU)
    finding = from_parts(
        parts,
        raw,
        "Criterion: tau_b and its interval lie below half of TD-Q's, under every judge of every "
        f"candidate. On {task}: {', '.join(texts)}. The number is raw's.{caveat(tables, [task])}"
        + scope([task], CORE),
    )
    return elsewhere(finding, [task], CORE)


@ruled(
    CORE,
    f"q_td's tau_b is {ORDERS} and that of f_cos, from the same checkpoint on the same pools, "
    f"{FLAT}, under every judge of every candidate",
)
def two_head_gap(tables: Tables) -> Finding:
    """On one checkpoint q_td orders and f_cos does not."""
    task = one_task(tables)
    intervals = by_intervals([task])
    parts: dict[str, Answer] = {}
    texts, gaps = [], []
    for judge, prefix in judges(tables, task, HEADS[0]).items():
        q_td, f_cos = (number(tables, MAIN, task, head, prefix + TAU) for head in HEADS)
        parts[f"q_td orders ({judge})"] = ORDERS.asked(q_td, intervals)
        parts[f"f_cos is flat ({judge})"] = FLAT.asked(f_cos, intervals)
        texts.append(f"{judge}: q_td {q_td.mean:.2f}, f_cos {f_cos.mean:.2f}")
        gaps.append(q_td.mean - f_cos.mean)
    finding = from_parts(
        parts,
        Number(gaps[0], over_seeds(tables, MAIN, task, *HEADS, TAU)),
        f"Criterion: q_td's tau_b is {ORDERS}, the paper's 0.60, and that of f_cos, from the same "
        f"checkpoint on the same pools, {FLAT}, the paper's 0.41. On {task}, by "
        f"{'; by '.join(texts)}. The number is the gap, its interval is over training seeds."
        f"{caveat(tables, [task])}" + scope([task], CORE),
    )
    return elsewhere(finding, [task], CORE)


def square(tables: Tables, metric: str = TAU) -> dict[str, dict[str, float]]:
    """The four cells of the 2 x 2, by judge."""
    critics = ("raw", "nce_mlp", "td_bilinear", "tdq")
    return {
        judge: {c: number(tables, SQUARE, POINT, c, prefix + metric).mean for c in critics}
        for judge, prefix in judges(tables, POINT, "raw", SQUARE).items()
    }


def effect(tables: Tables, more: str, fewer: str) -> tuple[dict[str, float], Number]:
    """What one cell of the 2 x 2 has more than another, by judge; the first with an interval."""
    rises = {judge: tau[more] - tau[fewer] for judge, tau in square(tables).items()}
    over = over_seeds(tables, SQUARE, POINT, more, fewer, TAU)
    return rises, Number(next(iter(rises.values())), over)


def objective_explains_most(tables: Tables) -> Finding:
    """Each effect of the objective is larger than each effect of the function class."""
    parts, texts, least = {}, [], []
    for judge, tau in square(tables).items():
        objective = (tau["td_bilinear"] - tau["raw"], tau["tdq"] - tau["nce_mlp"])
        function = (tau["nce_mlp"] - tau["raw"], tau["tdq"] - tau["td_bilinear"])
        parts[judge] = min(objective) > max(map(abs, function))
        texts.append(
            f"{judge}: objective {objective[0]:+.2f} (bilinear) and {objective[1]:+.2f} (MLP), "
            f"function class {function[0]:+.2f} (contrastive) and {function[1]:+.2f} (Bellman)"
        )
        least.append(min(objective))
    return from_parts(
        parts,
        Number(least[0]),
        "Criterion: the smaller of the two effects of the objective on tau_b exceeds the larger of "
        f"the two of the function class. By {'; by '.join(texts)}. The number is the smaller "
        "effect of the objective.",
    )


def bellman_raises_tau(tables: Tables) -> Finding:
    """Bellman training raises tau_b in both classes by at least half of what the paper has."""
    limits = {"bilinear": at_least(0.30 / 2), "MLP": at_least(0.44 / 2)}
    bilinear, first = effect(tables, "td_bilinear", "raw")
    rises = {"bilinear": bilinear, "MLP": effect(tables, "tdq", "nce_mlp")[0]}
    texts = [
        f"{judge}: {', '.join(f'{NAMES[c]} {x:.2f}' for c, x in tau.items())}"
        for judge, tau in square(tables).items()
    ]
    return from_parts(
        {f"{n} ({judge})": limits[n](rises[n][judge]) for judge in bilinear for n in limits},
        first,
        f"Criterion: a rise of {limits['bilinear']} in the bilinear and of {limits['MLP']} in the "
        f"MLP class, half of the paper's. tau_b by {'; by '.join(texts)}. The number is the rise "
        "in the bilinear class, its interval is over training seeds.",
    )


def architecture_changes_little(tables: Tables) -> Finding:
    """Matching the architecture raises the contrastive tau_b by little."""
    little = at_most(0.12)
    rises, first = effect(tables, "nce_mlp", "raw")
    text = ", ".join(f"{judge} {rise:+.2f}" for judge, rise in rises.items())
    return from_parts(
        {judge: little(rise) for judge, rise in rises.items()},
        first,
        f"Criterion: a change of {little:+}, twice the paper's. Contrastive MLP less raw: {text}. "
        "The interval is over training seeds.",
    )


def bottleneck(tables: Tables) -> Finding:
    """The bilinear class lowers the Bellman tau_b by at least half of what the paper has."""
    much = at_least(0.105)
    drops, first = effect(tables, "tdq", "td_bilinear")
    text = ", ".join(
        f"{tau['tdq']:.2f} to {tau['td_bilinear']:.2f} ({judge})"
        for judge, tau in square(tables).items()
    )
    return from_parts(
        {judge: much(drop) for judge, drop in drops.items()},
        first,
        f"Criterion: TD bilinear's tau_b lies below TD-Q's by {much}, half of the paper's drop. "
        f"{text}. The number is the drop, its interval is over training seeds.",
    )


def worst_bellman_beats_best_contrastive(tables: Tables) -> Finding:
    """The worse Bellman cell beats the better contrastive one, in tau_b and in regret."""
    parts: dict[str, bool] = {}
    texts, margins = [], []
    regrets = square(tables, REGRET)
    for judge, tau in square(tables).items():
        regret = regrets[judge]
        worst = min(tau["td_bilinear"], tau["tdq"]), max(regret["td_bilinear"], regret["tdq"])
        best = max(tau["raw"], tau["nce_mlp"]), min(regret["raw"], regret["nce_mlp"])
        parts |= {f"tau_b ({judge})": worst[0] > best[0], f"regret ({judge})": worst[1] < best[1]}
        texts.append(
            f"{judge}: tau_b {worst[0]:.2f} against {best[0]:.2f}, regret {worst[1]:.2f} against "
            f"{best[1]:.2f}"
        )
        margins.append(worst[0] - best[0])
    return from_parts(
        parts,
        Number(margins[0]),
        f"Worse Bellman cell against better contrastive cell, by {'; by '.join(texts)}. The number "
        "is the margin in tau_b.",
    )
