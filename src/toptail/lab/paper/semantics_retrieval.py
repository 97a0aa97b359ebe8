"""Decisions about retrieval, the distance profile and the two-head control."""

from __future__ import annotations

from toptail.lab.paper.ledger import Finding, Tables, from_parts
from toptail.lab.paper.semantics_cells import (
    CONTRASTIVE,
    CORE,
    CRITICS,
    EIGHT,
    MANIPULATION,
    NAVIGATION,
    RANKERS,
    below,
    compared,
    difference,
    each,
    each_curve,
    extreme,
    known_row,
    row,
    scope,
    spelled,
    spread,
    tasks_with,
)

LEAST = (*RANKERS, "tdq")
"""A statement about TD-Q and the contrastive critics is decided where at least these are there."""

REVERSED = 0.005
"""Two critics change places only if they differ by more than this in both orders."""

rankers_auc = each(
    "retrieval",
    "auc",
    RANKERS,
    NAVIGATION,
    lambda cell: cell.mean >= 0.955,
    "AUC of at least 0.955, which rounds to the paper's 0.96",
    "lowest",
)

useful_rankers = each(
    "retrieval",
    "auc",
    RANKERS,
    EIGHT,
    lambda cell: cell.mean >= 0.90,
    "AUC of at least 0.90",
    "lowest",
)

manipulation_rankers = each(
    "retrieval",
    "auc",
    RANKERS,
    MANIPULATION,
    lambda cell: cell.mean >= 0.99,
    "AUC of at least 0.99",
    "lowest",
)

manipulation_hard = each(
    "retrieval",
    "hard_negative_auc",
    RANKERS,
    MANIPULATION,
    lambda cell: cell.mean >= 0.935,
    "a paired win rate of at least 0.935, which rounds to the paper's 0.94",
    "lowest",
)

tdq_weak_on_cube = compared(
    "retrieval",
    "auc",
    ("tdq",),
    "cosine",
    ("Cube-single", "Cube-double", "Scene"),
    difference,
    lambda less: less <= -0.2,
    "TD-Q's AUC at least 0.2 below cosine's",
    "highest",
)

tdq_well_on_puzzle = each(
    "retrieval",
    "auc",
    ("tdq",),
    ("Puzzle",),
    lambda cell: cell.mean >= 0.80,
    "AUC of at least 0.80; the paper has 0.89",
    "lowest",
)

retrieval_spread = spread(
    "retrieval",
    ("auc", "hard_negative_auc", "recall_1", "recall_5"),
    CRITICS,
    EIGHT,
    0.06,
    lambda task, critic, metric: (task, critic) == ("AntSoccer", "tdq") and "recall" in metric,
)


def hybrid_lower(tables: Tables) -> Finding:
    """Hybrid retrieves worse than raw and cosine, and varies more."""
    tasks = tasks_with(tables, "retrieval", CONTRASTIVE, "auc", NAVIGATION)
    cells = {task: row(tables, "retrieval", task, CONTRASTIVE, "auc") for task in tasks}
    lag = {t: c["hybrid"].mean - min(c["raw"].mean, c["cosine"].mean) for t, c in cells.items()}
    parts = {
        f"lower on {task}": below(c["hybrid"], c["raw"]) and below(c["hybrid"], c["cosine"])
        for task, c in cells.items()
    }
    if len(tasks) > 1:
        over = "its range over tasks"
        width = {
            critic: max(c[critic].mean for c in cells.values())
            - min(c[critic].mean for c in cells.values())
            for critic in CONTRASTIVE
        }
    else:
        over = "its standard deviation over seeds (one task was measured)"
        width = {critic: cells[tasks[0]][critic].std for critic in CONTRASTIVE}
    parts["more variable"] = width["hybrid"] > max(width["raw"], width["cosine"])
    at = extreme(lag, "highest")
    return from_parts(
        parts,
        lag[at],
        None,
        "Criterion: every seed's AUC is below all of raw's and of cosine's, and "
        f"{over} is larger than theirs: {spelled(width)}. Hybrid less the lower of the two: "
        f"{spelled(lag)}; the number is the highest." + scope(tasks, NAVIGATION),
    )


def _rates(tables: Tables, task: str, metric: str) -> dict[str, float]:
    """Mean of a retrieval metric of each of the four critics that has it."""
    cells = known_row(tables, "retrieval", task, CRITICS, metric)
    return {critic: cell.mean for critic, cell in cells.items()}


def hard_strongest(tables: Tables) -> Finding:
    """Raw or cosine is the strongest retriever under hard negatives."""
    name = "hard_negative_auc"
    tasks = tasks_with(tables, "retrieval", LEAST, name, EIGHT)
    lead = {}
    for task in tasks:
        rates = _rates(tables, task, name)
        lead[task] = max(rates[c] for c in CONTRASTIVE if c in rates) - rates["tdq"]
    at = extreme(lead, "lowest")
    return from_parts(
        {task: more > 0.0 for task, more in lead.items()},
        lead[at],
        None,
        "Criterion: the best contrastive critic wins more pairs than TD-Q. Its lead: "
        f"{spelled(lead)}; the number is the lowest." + scope(tasks, EIGHT),
    )


def hard_order(tables: Tables) -> Finding:
    """No two critics change places between random and hard negatives."""
    tasks = tasks_with(tables, "retrieval", LEAST, "hard_negative_auc", EIGHT)
    parts, swaps = {}, []
    for task in tasks:
        easy, hard = (_rates(tables, task, name) for name in ("auc", "hard_negative_auc"))
        mine = [
            f"{a} and {b} on {task}"
            for a in hard
            for b in hard
            if easy[a] > easy[b] + REVERSED and hard[b] > hard[a] + REVERSED
        ]
        parts[task] = not mine
        swaps += mine
    return from_parts(
        parts,
        float(len(swaps)),
        None,
        f"Criterion: no two of the critics change places by more than {REVERSED} in both. The "
        f"number counts those that do{': ' + ', '.join(swaps) if swaps else ''}."
        + scope(tasks, EIGHT),
    )


def hard_tdq_weakest(tables: Tables) -> Finding:
    """TD-Q wins the fewest pairs under hard negatives."""
    name = "hard_negative_auc"
    tasks = tasks_with(tables, "retrieval", LEAST, name, EIGHT)
    margin = {}
    for task in tasks:
        rates = _rates(tables, task, name)
        margin[task] = rates["tdq"] - min(rates[c] for c in CONTRASTIVE if c in rates)
    paper = tables["retrieval"].get("paper", {})
    own = [
        task
        for task, cells in paper.items()
        if any(
            cells[c][name]["mean"] < cells["tdq"][name]["mean"] for c in CONTRASTIVE if c in cells
        )
    ]
    text = f" By the paper's own cells it is not on {', '.join(own)}." if own else ""
    at = extreme(margin, "highest")
    return from_parts(
        {task: more < 0.0 for task, more in margin.items()},
        margin[at],
        None,
        "Criterion: TD-Q's win rate is below every contrastive critic's. TD-Q less the lowest of "
        f"those: {spelled(margin)}; the number is the highest.{text}" + scope(tasks, EIGHT),
    )


def hybrid_lowest_on_puzzle(tables: Tables) -> Finding:
    """Hybrid has the lowest AUC of the four critics on Puzzle."""
    cells = row(tables, "retrieval", "Puzzle", CRITICS, "auc")
    others = min(cells[c].mean for c in CRITICS if c != "hybrid")
    return from_parts(
        {"Puzzle": cells["hybrid"].mean < others},
        cells["hybrid"].mean,
        cells["hybrid"].ends,
        f"Criterion: hybrid's AUC, {cells['hybrid'].mean:.3f} (the paper has 0.79), is below those "
        f"of the other three, of which the lowest is {others:.3f}.",
    )


def reverse_pattern(tables: Tables) -> Finding:
    """TD-Q orders better and retrieves worse than raw and cosine, except on HumanoidMaze."""
    tasks = tasks_with(tables, "main", CRITICS, "tau", NAVIGATION)
    parts, lead = {}, {}
    for task in tasks:
        tau = row(tables, "main", task, CRITICS, "tau")
        auc = row(tables, "retrieval", task, CRITICS, "auc")
        lead[task] = tau["tdq"].mean - max(tau[c].mean for c in CONTRASTIVE)
        parts[f"orders better on {task}"] = lead[task] > 0.0
        if task == "HumanoidMaze":
            parts[f"retrieves nearly perfectly on {task}"] = auc["tdq"].mean >= 0.985
        else:
            lower = min(auc["raw"].mean, auc["cosine"].mean)
            parts[f"retrieves worse on {task}"] = auc["tdq"].mean < lower
    at = extreme(lead, "lowest")
    return from_parts(
        parts,
        lead[at],
        None,
        "Criterion: TD-Q's tau above every contrastive critic's, and its AUC below raw's and "
        "cosine's (on HumanoidMaze: at least 0.985). Its lead in tau: "
        f"{spelled(lead)}; the number is the lowest." + scope(tasks, NAVIGATION),
    )


profile_above = each_curve(
    "profile",
    CONTRASTIVE,
    CORE,
    lambda _tables, _task, _critic, y: min(y),
    lambda lowest: lowest >= 0.5,
    "at every distance the mean score is at least half as far above the random goals' as the "
    "nearest goals' is; the measured number is the lowest bin's",
    "lowest",
)

profile_flat = each_curve(
    "profile",
    CONTRASTIVE,
    CORE,
    lambda _tables, _task, _critic, y: max(y) - min(y),
    lambda change: change <= 0.25,
    "the profile (1: nearest goals, 0: random goals) changes by at most 0.25 over all distances",
    "highest",
)


profile_decays = each_curve(
    "profile",
    ("tdq",),
    CORE,
    lambda _tables, _task, _critic, y: y[-1],
    lambda end: end <= 0.5,
    "at the largest distances TD-Q's mean score has come at least half of the way from the "
    "nearest goals' to the random goals'; the measured number is what is left",
    "highest",
)


def same_trajectory(tables: Tables) -> Finding:
    """Every score is at chance between two goals of one trajectory: it cannot be otherwise."""
    metric = "same_trajectory"
    tasks = tasks_with(tables, "retrieval", LEAST, metric, EIGHT)
    cells = {
        f"{critic} on {task}": cell
        for task in tasks
        for critic, cell in known_row(tables, "retrieval", task, CRITICS, metric).items()
    }
    away = {key: abs(cell.mean - 0.5) for key, cell in cells.items()}
    at = extreme(away, "highest")
    return from_parts(
        {key: distance <= 0.03 for key, distance in away.items()},
        cells[at].mean,
        cells[at].ends,
        "Criterion: within 0.03 of 0.5. This holds by construction for every score, a perfect one "
        "too: both goals are drawn by one rule, so that which of them is called the goal is a coin "
        f"toss. The number is that of {at}, the farthest from 0.5 among "
        f"{len(cells)} cells." + scope(tasks, EIGHT),
    )


def temporal_precision(tables: Tables) -> Finding:
    """Asked which of the two goals is nearer, the critics do not differ."""
    metric = "nearer_goal"
    tasks = tasks_with(tables, "retrieval", CRITICS, metric, NAVIGATION)
    widths: dict[str, float] = {}
    text: dict[str, float] = {}
    for task in tasks:
        rates = {c: m.mean for c, m in row(tables, "retrieval", task, CRITICS, metric).items()}
        widths[task] = max(rates.values()) - min(rates.values())
        text |= {f"{critic} on {task}": rate for critic, rate in rates.items()}
    at = extreme(widths, "highest")
    return from_parts(
        {task: width <= 0.05 for task, width in widths.items()},
        widths[at],
        None,
        "The paper's construction cannot separate any scores (see the entry before). Asked instead "
        "how often the nearer of the two goals scores higher, criterion: at most 0.05 between the "
        f"best and the worst critic. Win rates: {spelled(text)}; the number is the largest "
        "difference." + scope(tasks, NAVIGATION),
    )


separate_order = compared(
    "twohead",
    "tau",
    ("separate",),
    "tdq_ref",
    CORE,
    difference,
    lambda more: abs(more) <= 0.03,
    "tau of q_td within 0.03 of TD-Q's",
    "farthest from zero",
)


def separate_retrieval(tables: Tables) -> Finding:
    """The separate TD head orders like TD-Q while the cosine head retrieves like cosine."""
    tasks = tasks_with(tables, "twohead", ("separate", "tdq_ref"), "tau", CORE)
    tasks = tasks_with(tables, "twohead", ("separate", "cosine_ref"), "auc", tasks)
    parts, order, retrieval = {}, {}, {}
    for task in tasks:
        tau = row(tables, "twohead", task, ("separate", "tdq_ref"), "tau")
        auc = row(tables, "twohead", task, ("separate", "cosine_ref"), "auc")
        order[task] = difference(tau["separate"], tau["tdq_ref"])
        retrieval[task] = difference(auc["separate"], auc["cosine_ref"])
        parts[f"order on {task}"] = order[task] >= -0.03
        parts[f"retrieval on {task}"] = retrieval[task] >= -0.01
    at = extreme(retrieval, "lowest")
    return from_parts(
        parts,
        retrieval[at],
        None,
        "Criterion: tau of q_td at most 0.03 below TD-Q's, and AUC of f_cos at most 0.01 below the "
        f"cosine critic's. Tau less TD-Q's: {spelled(order)}. AUC less cosine's: "
        f"{spelled(retrieval)}; the number is the lowest of these." + scope(tasks, CORE),
    )


def joint_order(tables: Tables) -> Finding:
    """The joint variant orders like TD-Q on PointMaze and AntMaze, and weakly on HumanoidMaze."""
    tasks = tasks_with(tables, "twohead", ("tdq_ref", "joint"), "tau", CORE)
    parts, less = {}, {}
    for task in tasks:
        pair = row(tables, "twohead", task, ("tdq_ref", "joint"), "tau")
        less[task] = pair["joint"].mean - pair["tdq_ref"].mean
        if task == "HumanoidMaze":
            parts[f"weak on {task}"] = pair["joint"].mean <= 0.5 * pair["tdq_ref"].mean
        else:
            parts[f"works on {task}"] = less[task] >= -0.05
    return from_parts(
        parts,
        less[tasks[0]],
        None,
        "Criterion: tau of the joint q_td at most 0.05 below TD-Q's on PointMaze and AntMaze, at "
        f"most half of it on HumanoidMaze. Joint less TD-Q: {spelled(less)}; the number is that of "
        f"{tasks[0]}." + scope(tasks, CORE),
    )


separate_near_perfect = each(
    "twohead",
    "auc",
    ("separate",),
    CORE,
    lambda cell: cell.mean >= 0.955,
    "AUC of f_cos of at least 0.955; the paper says near 0.99 and has 0.962 to 0.998",
    "lowest",
)
