"""Decisions about ordering: within-pool tau_b and regret, the two-head control, the 2 x 2."""

from __future__ import annotations

from toptail.lab.paper.fixed_query_cells import (
    CONTRASTIVE,
    NAMES,
    POINT,
    REGRET,
    TAU,
    Number,
    alone,
    caveat,
    each,
    judges,
    main,
    number,
    one_task,
    over_seeds,
)
from toptail.lab.paper.ledger import Finding, Tables, from_parts

FLAT = 0.415
"""The largest tau_b that the paper still calls near-flat is 0.41."""
ORDERS = 0.595
"""The smallest tau_b at which the paper says that a score orders is 0.60."""
RANDOM_LEVEL = 0.655
"""The paper calls normalized regrets from 0.66 to 1.15 random-level."""


def contrastive_fail_to_order(tables: Tables) -> Finding:
    """Every contrastive tau_b is below half of TD-Q's."""
    task = one_task(tables)
    parts, texts = {}, []
    for judge, prefix in judges(tables, task).items():
        tdq = main(tables, task, "tdq", prefix + TAU)
        for critic in CONTRASTIVE:
            tau = main(tables, task, critic, prefix + TAU)
            parts[f"{critic} ({judge})"] = tau.high < tdq.mean / 2
            texts.append(f"{critic} {tau.mean:.2f} against {tdq.mean:.2f} ({judge})")
    chosen = main(tables, task, "raw", next(iter(judges(tables, task).values())) + TAU)
    return from_parts(
        parts,
        chosen.mean,
        chosen.interval,
        "Criterion: tau_b and its interval lie below half of TD-Q's, under every judge of every "
        f"candidate. On {task}: {', '.join(texts)}. The number is raw's.{caveat(tables, task)}"
        + alone(task),
    )


def tdq_orders(tables: Tables) -> Finding:
    """TD-Q's tau_b reaches the smallest that the paper reports for it."""
    task = one_task(tables)
    return each(
        tables,
        task,
        ("tdq",),
        TAU,
        lambda x: x.mean >= ORDERS,
        "tau_b at least 0.60, the paper's smallest. The reference judge is of TD-Q's own family, "
        "so its word is partly circular; another judge's is not.",
        "tdq",
    )


def contrastive_flat(tables: Tables) -> Finding:
    """Every contrastive tau_b is at most the largest that the paper calls flat."""
    task = one_task(tables)
    return each(
        tables,
        task,
        CONTRASTIVE,
        TAU,
        lambda x: x.mean < FLAT,
        "tau_b at most 0.41, as the sentence says.",
        "raw",
    )


def contrastive_random_regret(tables: Tables) -> Finding:
    """Every contrastive regret is at the level of random selection."""
    task = one_task(tables)
    return each(
        tables,
        task,
        CONTRASTIVE,
        REGRET,
        lambda x: x.mean >= RANDOM_LEVEL,
        "normalized regret at least 0.66, the smallest that the paper calls random-level (1 is a "
        "random candidate).",
        "raw",
    )


def two_head_gap(tables: Tables) -> Finding:
    """On one checkpoint q_td orders and f_cos does not."""
    task = one_task(tables)
    heads = ("two_head_joint", "two_head_joint.f_cos")
    parts, texts, gap = {}, [], None
    for judge, prefix in judges(tables, task, heads[0]).items():
        q_td, f_cos = (main(tables, task, head, prefix + TAU) for head in heads)
        parts[f"q_td orders ({judge})"] = q_td.mean >= ORDERS
        parts[f"f_cos is flat ({judge})"] = f_cos.mean < FLAT
        texts.append(f"{judge}: q_td {q_td.mean:.2f}, f_cos {f_cos.mean:.2f}")
        gap = q_td.mean - f_cos.mean if gap is None else gap
    assert gap is not None
    return from_parts(
        parts,
        gap,
        over_seeds(tables, "fixed-query", task, *heads, TAU),
        "Criterion: q_td's tau_b is at least 0.60 and that of f_cos, from the same checkpoint on "
        f"the same pools, at most 0.41. On {task}, by {'; by '.join(texts)}. The number is the "
        f"gap, its interval is over training seeds.{caveat(tables, task)}" + alone(task),
    )


def _square(tables: Tables, metric: str, prefix: str = "") -> dict[str, Number]:
    """The four cells of the 2 x 2."""
    critics = ("raw", "nce_mlp", "td_bilinear", "tdq")
    return {c: number(tables, "function-class", POINT, c, prefix + metric) for c in critics}


def _square_judges(tables: Tables) -> dict[str, str]:
    row = tables.get("function-class", {}).get("rows", {}).get(POINT, {}).get("raw", {})
    known = {"reference": "", "geodesic": "geodesic/"}
    return {j: p for j, p in known.items() if p + TAU in row} or {"reference": ""}


def _cells_text(cells: dict[str, Number]) -> str:
    return ", ".join(f"{NAMES[c]} {x.mean:.2f}" for c, x in cells.items())


def objective_explains_most(tables: Tables) -> Finding:
    """Each effect of the objective is larger than each effect of the function class."""
    parts, texts, least = {}, [], None
    for judge, prefix in _square_judges(tables).items():
        tau = {c: x.mean for c, x in _square(tables, TAU, prefix).items()}
        objective = (tau["td_bilinear"] - tau["raw"], tau["tdq"] - tau["nce_mlp"])
        function = (tau["nce_mlp"] - tau["raw"], tau["tdq"] - tau["td_bilinear"])
        parts[judge] = min(objective) > max(map(abs, function))
        texts.append(
            f"{judge}: objective {objective[0]:+.2f} (bilinear) and {objective[1]:+.2f} (MLP), "
            f"function class {function[0]:+.2f} (contrastive) and {function[1]:+.2f} (Bellman)"
        )
        least = min(objective) if least is None else least
    assert least is not None
    return from_parts(
        parts,
        least,
        None,
        "Criterion: the smaller of the two effects of the objective on tau_b exceeds the larger of "
        f"the two of the function class. By {'; by '.join(texts)}. The number is the smaller "
        "effect of the objective.",
    )


def bellman_raises_tau(tables: Tables) -> Finding:
    """Bellman training raises tau_b in both classes by at least half of what the paper has."""
    parts: dict[str, bool] = {}
    texts, first = [], None
    for judge, prefix in _square_judges(tables).items():
        tau = _square(tables, TAU, prefix)
        rises = {
            "bilinear": (tau["td_bilinear"].mean - tau["raw"].mean, 0.30),
            "MLP": (tau["tdq"].mean - tau["nce_mlp"].mean, 0.44),
        }
        parts |= {f"{name} ({judge})": rise >= paper / 2 for name, (rise, paper) in rises.items()}
        texts.append(f"{judge}: {_cells_text(tau)}")
        first = rises["bilinear"][0] if first is None else first
    assert first is not None
    return from_parts(
        parts,
        first,
        over_seeds(tables, "function-class", POINT, "td_bilinear", "raw", TAU),
        "Criterion: a rise of at least half of the paper's (0.15 and 0.22). tau_b by "
        f"{'; by '.join(texts)}. The number is the rise in the bilinear class, its interval is "
        "over training seeds.",
    )


def architecture_changes_little(tables: Tables) -> Finding:
    """Matching the architecture raises the contrastive tau_b by little."""
    parts, rises = {}, {}
    for judge, prefix in _square_judges(tables).items():
        tau = _square(tables, TAU, prefix)
        rises[judge] = tau["nce_mlp"].mean - tau["raw"].mean
        parts[judge] = rises[judge] <= 0.12
    text = ", ".join(f"{judge} {rise:+.2f}" for judge, rise in rises.items())
    return from_parts(
        parts,
        next(iter(rises.values())),
        over_seeds(tables, "function-class", POINT, "nce_mlp", "raw", TAU),
        "Criterion: a change of at most +0.12, twice the paper's. Contrastive MLP less raw: "
        f"{text}. The interval is over training seeds.",
    )


def bottleneck(tables: Tables) -> Finding:
    """The bilinear class lowers the Bellman tau_b by at least half of what the paper has."""
    parts, texts, first = {}, [], None
    for judge, prefix in _square_judges(tables).items():
        tau = _square(tables, TAU, prefix)
        drop = tau["tdq"].mean - tau["td_bilinear"].mean
        parts[judge] = drop >= 0.105
        texts.append(f"{tau['tdq'].mean:.2f} to {tau['td_bilinear'].mean:.2f} ({judge})")
        first = drop if first is None else first
    assert first is not None
    return from_parts(
        parts,
        first,
        over_seeds(tables, "function-class", POINT, "tdq", "td_bilinear", TAU),
        "Criterion: TD bilinear's tau_b lies below TD-Q's by at least 0.105, half of the paper's "
        f"drop. {', '.join(texts)}. The number is the drop, its interval is over training seeds.",
    )


def worst_bellman_beats_best_contrastive(tables: Tables) -> Finding:
    """The worse Bellman cell beats the better contrastive one, in tau_b and in regret."""
    parts: dict[str, bool] = {}
    texts, margin = [], None
    for judge, prefix in _square_judges(tables).items():
        tau = {c: x.mean for c, x in _square(tables, TAU, prefix).items()}
        regret = {c: x.mean for c, x in _square(tables, REGRET, prefix).items()}
        worst = min(tau["td_bilinear"], tau["tdq"]), max(regret["td_bilinear"], regret["tdq"])
        best = max(tau["raw"], tau["nce_mlp"]), min(regret["raw"], regret["nce_mlp"])
        parts |= {f"tau_b ({judge})": worst[0] > best[0], f"regret ({judge})": worst[1] < best[1]}
        texts.append(
            f"{judge}: tau_b {worst[0]:.2f} against {best[0]:.2f}, regret {worst[1]:.2f} against "
            f"{best[1]:.2f}"
        )
        margin = worst[0] - best[0] if margin is None else margin
    assert margin is not None
    return from_parts(
        parts,
        margin,
        None,
        f"Worse Bellman cell against better contrastive cell, by {'; by '.join(texts)}. The number "
        "is the margin in tau_b.",
    )
