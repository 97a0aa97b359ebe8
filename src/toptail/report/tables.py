"""The tables of an audit, in the order in which a reader meets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from toptail.audit.settings import exact_percent
from toptail.audit.verdict import NEAREST
from toptail.report.table import (
    Cell,
    Column,
    Table,
    captured_cells,
    count_cell,
    curve_cells,
    drawn_cells,
    interval_cell,
    k_cell,
    name_cell,
    number_cell,
    numbers,
    p_cell,
    status_cell,
    words,
)
from toptail.report.text import (
    MISSING_SHORT,
    Audit,
    bracket,
    captured_at_end,
    count,
    exceptions,
    gain_at_end,
    last,
    one_line,
    p_value,
    peak,
    percent,
    plural,
    ranked,
    value_decimals,
)

SCORER: Final = Column("Scorer", "name")
MOST_STEPS: Final = NEAREST
"""How many steps a card shows."""


def tables_of(audit: Audit) -> list[Table]:
    """All tables of the audit; those without rows are left out."""
    if audit["kind"] == "picks":
        tables = [differences_table(audit), selectors_table(audit), pick_groups_table(audit)]
    else:
        tables = [
            baseline_table(audit),
            verdict_table(audit),
            populations_table(audit),
            value_table(audit),
            captured_table(audit),
            ordering_table(audit),
            off_support_table(audit),
            seeds_table(audit),
            groups_table(audit),
            group_tests_table(audit),
            comparisons_table(audit),
            checks_table(audit, ranked(audit)),
        ]
    return [table for table in tables if table.rows]


def verdict_table(audit: Audit) -> Table:
    """The leaderboard: one row for each scorer, best status and largest captured share first."""
    scorers = {name: audit["scorers"][name] for name in ranked(audit)}
    shares = drawn_cells([captured_at_end(s) for s in scorers.values()], audit["thresholds"]["rho"])
    decimals, k_max = value_decimals(audit), audit["k"][-1]
    rows = tuple(
        (
            name_cell(name),
            _verdict_cell(audit, name),
            share,
            number_cell(gain_at_end(scorer), decimals=decimals, sign=True),
            _peak_cell(scorer, decimals),
            k_cell(scorer["verdict"]["k_safe_max"]),
            k_cell(scorer["verdict"]["k_harm"]),
            number_cell((scorer["tau_b"] or {}).get("mean")),
        )
        for (name, scorer), share in zip(scorers.items(), shares, strict=True)
    )
    star = " *: a group of queries or the other unit has another status."
    return Table(
        "verdicts",
        f"Verdicts up to best of {k_max} of pools like these",
        f"Gain: what the top score of {k_max} is worth more than a random candidate, in units of "
        "the value. Captured share: the gain divided by what the best possible choice among "
        f"{k_max} would gain (the headroom), with its {percent(audit['thresholds']['level'])} "
        "interval. Peak: the highest value over K."
        f"{star if any(row[1].detail.startswith('*') for row in rows) else ''}",
        (
            SCORER,
            *words("Verdict"),
            *numbers("Captured share", "Gain (value units)", "Peak value"),
            *numbers("Safe up to K", "Hurts from K", "τ_b"),
        ),
        rows,
    )


def _verdict_cell(audit: Audit, name: str) -> Cell:
    """The status; a star if a group or the other unit differs; how many queries would decide."""
    verdict = audit["scorers"][name]["verdict"]
    needed = verdict["queries_needed"]
    more = ["*"] if exceptions(audit, name) else []
    more += [] if needed is None else [f"(needs {count(needed)} queries)"]
    return status_cell(verdict["status"], " ".join(more))


def _peak_cell(scorer: Mapping[str, Any], decimals: int) -> Cell:
    k, value = peak(scorer)
    cell = number_cell(value, decimals=decimals)
    return cell if k is None else replace(cell, detail=f"(K = {k})")


def baseline_table(audit: Audit) -> Table:
    """Each scorer against its earlier version, on the queries that both tables have."""
    base: Mapping[str, Any] = audit.get("baseline") or {"scorers": {}}

    def old_name(name: str, old: str | None) -> str:
        return "" if old is None or old == name else f"(was “{one_line(old)}”)"

    rows = tuple(
        (
            replace(name_cell(name), detail=old_name(name, entry.get("old"))),
            status_cell(entry["status"]),
            interval_cell(entry, "difference", 3, sign=True),
            k_cell(entry["k"], MISSING_SHORT),
            Cell(one_line(entry["reason"])),
        )
        for name, entry in base["scorers"].items()
    )
    caption = _baseline_caption(audit, base) if rows else ""
    columns = (SCORER, *words("Status"), *numbers("New − old", "at K"), Column("Why", "prose"))
    return Table("baseline", "Against the baseline", caption, columns, rows)


def _baseline_caption(audit: Audit, base: Mapping[str, Any]) -> str:
    shared = plural(base["shared_queries"], "shared query", "shared queries")
    alone = f"{count(base['only_new'])} only here and {count(base['only_old'])} only there"
    return (
        f"This table against “{one_line(base['source'])}”, paired over {shared} ({alone}, not "
        "compared). Differences in value, as shares of the old table's headroom at that K, with "
        f"{percent(audit['thresholds']['level'])} intervals; losing less than "
        f"{exact_percent(base['margin'])} counts as not worse."
    )


def populations_table(audit: Audit) -> Table:
    """Values of the audited pools beside those of all pools, if small pools were left out."""
    populations: Mapping[str, Any] = audit["populations"] or {}
    decimals, parts = value_decimals(audit), list(populations.values())
    titles = {"audited": "Audited", "all": "All pools"}
    labels = [
        f"{titles[which]} ({plural(part['queries'], 'query', 'queries')}, "
        f"smallest pool {count(part['smallest_pool'])})"
        for which, part in populations.items()
    ]
    rows = tuple(
        (name_cell(n), *(number_cell(part["value"].get(n), decimals=decimals) for part in parts))
        for n in ranked(audit)
        if parts
    )
    return Table(
        "populations",
        "With the pools left out",
        f"Value at K = {count(parts[0]['k'] if parts else None)}, the largest K that every pool "
        "allows. Where the two columns differ, the pools left out are of another kind.",
        (SCORER, *numbers(*labels)),
        rows,
    )


def _over(ks: Iterable[int]) -> tuple[Column, ...]:
    """A column of numbers for each K."""
    return numbers(*(f"K = {k}" for k in ks))


def value_table(audit: Audit) -> Table:
    """V(K) of every scorer between the oracle and a random candidate."""
    decimals = value_decimals(audit)
    oracle = curve_cells(audit, ("oracle", "oracle_low", "oracle_high"), decimals)
    random = number_cell(audit["random"], decimals=decimals)
    scorers = (
        (name_cell(n), *curve_cells(audit["scorers"][n], ("value", "low", "high"), decimals))
        for n in ranked(audit)
    )
    return Table(
        "values",
        "Value at each K",
        f"Expected value of the candidate with the top score of K, with pointwise "
        f"{percent(audit['thresholds']['level'])} intervals.",
        (SCORER, *_over(audit["k"])),
        (
            (Cell("oracle (best possible)"), *oracle),
            *scorers,
            (Cell("a random candidate"), *(random for _ in audit["k"])),
        ),
        stacked=True,
        over_k=True,
    )


def captured_table(audit: Audit) -> Table:
    """Captured share of the headroom at each K."""
    return Table(
        "captured",
        "Captured share",
        "Of what the best possible choice among K would gain over a random candidate, the share "
        "that the scorer gets: 1 is the oracle, 0 a random candidate, below 0 worse than random. "
        f"With pointwise {percent(audit['thresholds']['level'])} intervals.",
        (SCORER, *_over(audit["k"][1:])),
        tuple((name_cell(name), *captured_cells(audit["scorers"][name])) for name in ranked(audit)),
        stacked=True,
        over_k=True,
    )


def ordering_table(audit: Audit) -> Table:
    """How well the score orders candidates: tau_b, decile gaps, AUC."""
    decimals = value_decimals(audit)
    labels = ["τ_b within query", "Undefined", "Decile gap, pooled", "Decile gap, within"]
    if audit["binary"]:
        labels += ["AUC, pooled", "AUC, within"]
    rows = []
    for name in ranked(audit):
        scorer = audit["scorers"][name]
        row = [
            name_cell(name),
            interval_cell(scorer["tau_b"]),
            count_cell((scorer["tau_b"] or {}).get("undefined")),
            interval_cell(scorer["decile_gap"], decimals=decimals),
            interval_cell(scorer["decile_gap_within"], decimals=decimals),
        ]
        if audit["binary"]:
            row.append(number_cell(*(scorer.get(part) for part in ("auc", "auc_low", "auc_high"))))
            row.append(interval_cell(scorer.get("auc_within")))
        rows.append(tuple(row))
    return Table(
        "ordering",
        "Ordering",
        "τ_b: rank agreement of score and value inside a query (1 same order, −1 reversed), "
        "undefined where a pool has no variation. Decile gap: mean value of the top score decile "
        "minus that of the bottom decile, deciles formed over all candidates (pooled) or inside "
        "each query (within).",
        (SCORER, *numbers(*labels)),
        tuple(rows),
        stacked=True,
    )


def off_support_table(audit: Audit) -> Table:
    """Excess of off-support picks over the base rate at each K."""
    rows = []
    for name in ranked(audit):
        if off := audit["scorers"][name].get("off_support"):
            excess = curve_cells(off, ("excess", "excess_low", "excess_high"), 3)
            rows.append((name_cell(name), number_cell(off["base_rate"], decimals=3), *excess))
    return Table(
        "off-support",
        "Off-support excess",
        "Rate at which the top score of K lies off the data's support, minus the rate among all "
        "candidates (base rate). Above 0, search is drawn off the support.",
        (SCORER, *numbers("Base rate"), *_over(audit["k"])),
        tuple(rows),
        stacked=True,
        over_k=True,
    )


def seeds_table(audit: Audit) -> Table:
    """Verdict and final value of each training seed."""
    decimals = value_decimals(audit)
    rows = tuple(
        (
            name_cell(name),
            Cell(one_line(seed), key=one_line(seed)),
            status_cell(record["verdict"]["status"]),
            k_cell(record["verdict"]["k_best"], MISSING_SHORT),
            k_cell(record["verdict"]["k_safe_max"]),
            k_cell(record["verdict"]["k_harm"]),
            number_cell(last(record["value"]), decimals=decimals),
        )
        for name in ranked(audit)
        for seed, record in (audit["scorers"][name].get("seeds") or {}).items()
    )
    ks = ("Best K", "Safe up to K", "Hurts from K", f"Value at K = {audit['k'][-1]}")
    return Table(
        "seeds",
        "Training seeds",
        "Each seed's own curve and verdict. The scorer's curve above is the mean over its seeds; "
        "intervals run over queries only.",
        (SCORER, *words("Seed", "Verdict"), *numbers(*ks)),
        rows,
    )


def paired_cells(test: Mapping[str, Any], decimals: int) -> tuple[Cell, Cell, Cell]:
    """A paired difference with its interval, its p-value, and that by Holm's correction."""
    difference = interval_cell(test, "difference", decimals, sign=True)
    return difference, p_cell(test["p"]), p_cell(test["p_holm"])


def checks_table(audit: Audit, names: Sequence[str]) -> Table:
    """The checks of these scorers, each with value, interval, threshold, status, advice."""
    rows = tuple(
        (
            name_cell(name),
            Cell(one_line(check["name"]), f"({one_line(check['question'])})"),
            Cell(" → ".join(map(str, check["k"] or ())) or MISSING_SHORT),
            interval_cell(check, "value", 3),
            number_cell(check["threshold"], decimals=3),
            status_cell(check["status"]),
            Cell(one_line(check["advice"])),
        )
        for name in names
        for check in audit["scorers"][name]["verdict"]["checks"]
    )
    prose = Column("Check", "prose"), Column("Advice", "prose")
    return Table(
        "checks",
        "Checks",
        "The numbers that decided each verdict. Steps between two K are in units of the headroom "
        "at the largest K.",
        (
            SCORER,
            prose[0],
            *words("K"),
            *numbers("Value", "Threshold"),
            *words("Status"),
            prose[1],
        ),
        rows,
    )


def steps_table(audit: Audit, name: str) -> Table:
    """The steps between two K that come nearest to harm; no rows if none are stored."""
    steps, grid = audit["scorers"][name]["verdict"]["steps"] or [], audit["family"]
    looked_at = max(len(steps), len(grid) * (len(grid) - 1) // 2)  # not all of them are stored
    worst = sorted(steps, key=lambda s: (s["low"] is None, s["low"] or 0.0))[:MOST_STEPS]
    ends = [(step["value"], step["low"], step["high"]) for step in worst]
    cells = drawn_cells(ends, audit["thresholds"]["rho"], sign=True)
    which = f"The {MOST_STEPS} of {looked_at} steps" if looked_at > MOST_STEPS else "The steps"
    ks = (Cell(" → ".join(map(str, step["k"]))) for step in worst)
    return Table(
        "steps",
        "Steps nearest to harm",
        f"{which} from one K to a larger one with the lowest lower ends, in headroom. The upper "
        "ends hold for all steps at once. The marks are zero and −ρ.",
        (Column("K", "name"), Column("Change")),
        tuple(zip(ks, cells, strict=True)),
    )


def numbers_table(audit: Audit, name: str) -> Table:
    """Everything measured for one scorer, one row for each K."""
    decimals, scorer = value_decimals(audit), audit["scorers"][name]
    band = zip(scorer["band_low"], scorer["band_high"], strict=True)
    columns: dict[str, Iterable[Cell]] = {
        f"Gain / headroom at K = {audit['k'][-1]}": curve_cells(
            scorer["gain"], ("value", "low", "high"), 2
        ),
        "Value": curve_cells(scorer, ("value", "low", "high"), decimals),
        "Simultaneous band": (
            Cell(bracket(low, high, decimals) or MISSING_SHORT) for low, high in band
        ),
        "Regret": curve_cells(scorer, ("regret",), decimals),
        "Normalized regret": curve_cells(scorer, ("nregret",), 2),
        "Captured share": (Cell(MISSING_SHORT), *captured_cells(scorer)),
        "Selected score": curve_cells(scorer, ("selected_score",), 3),
    }
    if off := scorer.get("off_support"):
        columns["Off-support rate"] = curve_cells(off, ("rate",), 3)
        columns["Off-support excess"] = curve_cells(off, ("excess", "excess_low", "excess_high"), 3)
    columns["Divergence, at most (nats)"] = curve_cells(audit, ("kl_bound",), 2)
    ks = (Cell(str(k), key=k) for k in audit["k"])
    return Table(
        "numbers",
        f"Every number of {one_line(name)}",
        f"Intervals are pointwise at {percent(audit['thresholds']['level'])}; the band holds for "
        "all K at once. Divergence: ln K − (K − 1)/K, an upper bound of the divergence of the "
        "pick from the proposal.",
        (Column("K", "name"), *numbers(*columns)),
        tuple(zip(ks, *columns.values(), strict=True)),
        stacked=True,
    )


def groups_table(audit: Audit, names: Sequence[str] | None = None) -> Table:
    """These scorers (by default all) inside each group of queries, scorer by scorer."""
    decimals = value_decimals(audit)
    places = [
        (name, group, record)
        for name in ranked(audit)
        for group, record in (audit.get("groups") or {}).items()
        if name in record["scorers"]
    ]
    ends = [captured_at_end(record["scorers"][name]) for name, _, record in places]
    shares = drawn_cells(ends, audit["thresholds"]["rho"])  # one axis for all scorers
    rows = []
    for (name, group, record), share in zip(places, shares, strict=True):
        if names is not None and name not in names:
            continue
        scorer = record["scorers"][name]
        size = f"({plural(record['queries'], 'query', 'queries')}, K = {last(record['k'])})"
        value = (last(scorer[part]) for part in ("value", "low", "high"))
        rows.append(
            (
                name_cell(name),
                replace(name_cell(group), detail=size),
                status_cell(scorer["verdict"]["status"]),
                share,
                k_cell(scorer["verdict"]["k_safe_max"]),
                number_cell(*value, decimals=decimals),
                number_cell(record["random"], decimals=decimals),
                number_cell(last(record["oracle"]), decimals=decimals),
                interval_cell(scorer["tau_b"]),
            )
        )
    group_column = Column(one_line(audit.get("group_column") or "Group"), "name")
    labels = ("Captured share", "Safe up to K", "Value", "Random", "Oracle", "τ_b")
    return Table(
        "groups",
        "Groups",
        "The same audit inside each group of queries, at the group's largest K and in its own "
        "headroom. Groups are smaller, so their verdicts are more often inconclusive.",
        (SCORER, group_column, *words("Verdict"), *numbers(*labels)),
        tuple(rows),
        stacked=True,
    )


def group_tests_table(audit: Audit) -> Table:
    """Differences of the captured share between every two groups, the clearest first."""
    tests = sorted(
        audit.get("group_tests") or (), key=lambda t: (t["p_holm"] is None, t["p_holm"] or 0.0)
    )
    return Table(
        "group-tests",
        "Between groups",
        "Difference between two groups in the captured share at the largest K, with "
        f"{percent(audit['thresholds']['level'])} intervals. Holm p is corrected for the number "
        "of pairs.",
        (SCORER, *words("A", "B"), *numbers("A − B", "p", "Holm p")),
        tuple(
            (name_cell(t["scorer"]), *map(name_cell, t["groups"]), *paired_cells(t, 2))
            for t in tests
        ),
    )


def heterogeneity(audit: Audit, name: str) -> str:
    """The test that a scorer's captured share is the same in all groups; empty if not made."""
    p = (audit.get("group_heterogeneity") or {}).get(name)
    if p is None:
        return ""
    return f"all groups alike: p {'' if p_value(p).startswith('<') else '= '}{p_value(p)}"


def comparisons_table(audit: Audit) -> Table:
    """Paired differences between every two scorers, at the largest K."""
    decimals = value_decimals(audit)
    pairs = sorted(audit["comparisons"], key=lambda c: (c["p_holm"] is None, c["p_holm"] or 0.0))
    return Table(
        "comparisons",
        "Paired comparisons",
        f"Difference in value between two scorers at K = {audit['k'][-1]} on the same queries. "
        "Holm p is corrected for the number of pairs.",
        (Column("A", "name"), *words("B"), *numbers("A − B", "p", "Holm p")),
        tuple((name_cell(c["a"]), name_cell(c["b"]), *paired_cells(c, decimals)) for c in pairs),
    )


def differences_table(audit: Audit) -> Table:
    """Paired differences between selectors, of an audit of picks."""
    decimals, thresholds, baseline = value_decimals(audit), audit["thresholds"], audit["baseline"]
    against = "" if baseline is None else f" The baseline is “{one_line(baseline)}”."
    rows = []
    for c in audit["comparisons"]:
        difference, *p = paired_cells(c, decimals)
        detectable = number_cell(c["detectable"], decimals=decimals)
        ratio = number_cell(c["variance_ratio"], decimals=1)
        cells = (difference, detectable, ratio, count_cell(c["queries"]), *p)
        rows.append((name_cell(c["a"]), name_cell(c["b"]), *cells))
    return Table(
        "differences",
        "Paired differences",
        f"Mean difference in value on the same queries, with {percent(thresholds['level'])} "
        f"intervals.{against} Detectable: the smallest true difference that this many queries "
        f"would find with {percent(thresholds['power'])} power. Variance ratio: how many times "
        "more variance the comparison would have without pairing. Holm p is corrected for the "
        "number of comparisons.",
        (
            Column("A", "name"),
            *words("B"),
            *numbers("A − B", "Detectable", "Variance ratio", "Queries", "p", "Holm p"),
        ),
        tuple(rows),
    )


def pick_groups_table(audit: Audit) -> Table:
    """Paired differences between selectors inside each group of queries."""
    decimals = value_decimals(audit)
    rows = []
    for group, part in (audit.get("groups") or {}).items():
        for c in part["comparisons"]:
            difference, *p = paired_cells(c, decimals)
            names = map(name_cell, (group, c["a"], c["b"]))
            rows.append((*names, difference, count_cell(c["queries"]), *p))
    head = Column(one_line(audit.get("group_column") or "Group"), "name")
    return Table(
        "groups",
        "Groups",
        "The same differences inside each group of queries. Holm p is corrected for the number of "
        "comparisons of this table.",
        (head, *words("A", "B"), *numbers("A − B", "Queries", "p", "Holm p")),
        tuple(rows),
    )


def selectors_table(audit: Audit) -> Table:
    """Mean value of what each selector picked."""
    decimals = value_decimals(audit)
    rows = tuple(
        (
            name_cell(name),
            interval_cell(s, decimals=decimals),
            count_cell(s["queries"]),
            number_cell(s["replicates"], decimals=0),
        )
        for name, s in audit["selectors"].items()
    )
    return Table(
        "selectors",
        "Selectors",
        "Mean value of the picked candidates over queries; replicates of a query are averaged "
        "first.",
        (Column("Selector", "name"), *numbers("Mean value", "Queries", "Replicates")),
        rows,
    )
