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
    Kind,
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
    text_cell,
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
    percent,
    plural,
    ranked,
    value_decimals,
)

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
    rows = [
        {
            "Scorer": name_cell(name),
            "Verdict": _verdict_cell(audit, name),
            "Captured share": share,
            "Gain (value units)": number_cell(gain_at_end(scorer), decimals=decimals, sign=True),
            "Peak value": _peak_cell(scorer, decimals),
            "Safe up to K": k_cell(scorer["verdict"]["k_safe_max"]),
            "Hurts from K": k_cell(scorer["verdict"]["k_harm"]),
            "τ_b": number_cell((scorer["tau_b"] or {}).get("mean")),
        }
        for (name, scorer), share in zip(scorers.items(), shares, strict=True)
    ]
    about_peak = " Peak: the highest value over K."
    star = " *: a group of queries or the other unit has another status."
    return Table.of(
        "verdicts",
        f"Verdicts up to best of {k_max} of pools like these",
        f"Gain: what the top score of {k_max} is worth more than a random candidate, in units of "
        "the value. Captured share: the gain divided by what the best possible choice among "
        f"{k_max} would gain (the headroom), with its {percent(audit['thresholds']['level'])} "
        f"interval.{about_peak}"
        f"{star if any(row['Verdict'].detail.startswith('*') for row in rows) else ''}",
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
    k = scorer["verdict"]["k_best"]
    cell = number_cell(scorer["peak_value"], decimals=decimals)
    return cell if k is None else replace(cell, detail=f"(K = {k})")


def baseline_table(audit: Audit) -> Table:
    """Each scorer against its earlier version, on the queries that both tables have."""
    base: Mapping[str, Any] = audit.get("baseline") or {"scorers": {}}

    def old_name(name: str, old: str | None) -> str:
        return "" if old is None or old == name else f"(was “{one_line(old)}”)"

    rows = [
        {
            "Scorer": name_cell(name, old_name(name, entry.get("old"))),
            "Status": status_cell(entry["status"]),
            "New − old": interval_cell(entry, "difference", 3, sign=True),
            "at K": k_cell(entry["k"], MISSING_SHORT),
            "Why": text_cell(one_line(entry["reason"]), kind="prose"),
        }
        for name, entry in base["scorers"].items()
    ]
    caption = _baseline_caption(audit, base) if rows else ""
    return Table.of("baseline", "Against the baseline", caption, rows)


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

    def label(which: str, part: Mapping[str, Any]) -> str:
        queries = plural(part["queries"], "query", "queries")
        return f"{titles[which]} ({queries}, smallest pool {count(part['smallest_pool'])})"

    return Table.of(
        "populations",
        "With the pools left out",
        f"Value at K = {count(parts[0]['k'] if parts else None)}, the largest K that every pool "
        "allows. Where the two columns differ, the pools left out are of another kind.",
        [
            {"Scorer": name_cell(name)}
            | {
                label(*each): number_cell(each[1]["value"].get(name), decimals=decimals)
                for each in populations.items()
            }
            for name in ranked(audit)
            if parts
        ],
    )


def _over_k(first: Mapping[str, Cell], ks: Sequence[int], cells: Iterable[Cell]) -> dict[str, Cell]:
    return {**first, **{f"K = {k}": cell for k, cell in zip(ks, cells, strict=True)}}


def value_table(audit: Audit) -> Table:
    decimals, ks = value_decimals(audit), audit["k"]
    parts, random = ("value", "low", "high"), number_cell(audit["random"], decimals=decimals)
    oracle = curve_cells(audit, ("oracle", "oracle_low", "oracle_high"), decimals)
    curves = [
        (text_cell("oracle (best possible)", kind="name"), oracle),
        *((name_cell(n), curve_cells(audit["scorers"][n], parts, decimals)) for n in ranked(audit)),
        (text_cell("a random candidate", kind="name"), [random] * len(ks)),
    ]
    return Table.of(
        "values",
        "Value at each K",
        f"Expected value of the candidate with the top score of K, with pointwise "
        f"{percent(audit['thresholds']['level'])} intervals.",
        [_over_k({"Scorer": name}, ks, cells) for name, cells in curves],
        stacked=True,
    )


def captured_table(audit: Audit) -> Table:
    return Table.of(
        "captured",
        "Captured share",
        "Of what the best possible choice among K would gain over a random candidate, the share "
        "that the scorer gets: 1 is the oracle, 0 a random candidate, below 0 worse than random. "
        f"With pointwise {percent(audit['thresholds']['level'])} intervals.",
        [
            _over_k({"Scorer": name_cell(n)}, audit["k"][1:], captured_cells(audit["scorers"][n]))
            for n in ranked(audit)
        ],
        stacked=True,
    )


def ordering_table(audit: Audit) -> Table:
    decimals = value_decimals(audit)
    rows = []
    for name in ranked(audit):
        scorer = audit["scorers"][name]
        row = {
            "Scorer": name_cell(name),
            "τ_b within query": interval_cell(scorer["tau_b"]),
            "Undefined": count_cell((scorer["tau_b"] or {}).get("undefined")),
            "Decile gap, pooled": interval_cell(scorer["decile_gap"], decimals=decimals),
            "Decile gap, within": interval_cell(scorer["decile_gap_within"], decimals=decimals),
        }
        if audit["binary"]:
            auc = (scorer.get(part) for part in ("auc", "auc_low", "auc_high"))
            row["AUC, pooled"] = number_cell(*auc)
            row["AUC, within"] = interval_cell(scorer.get("auc_within"))
        rows.append(row)
    return Table.of(
        "ordering",
        "Ordering",
        "τ_b: rank agreement of score and value inside a query (1 same order, −1 reversed), "
        "undefined where a pool has no variation. Decile gap: mean value of the top score decile "
        "minus that of the bottom decile, deciles formed over all candidates (pooled) or inside "
        "each query (within).",
        rows,
        stacked=True,
    )


def off_support_table(audit: Audit) -> Table:
    rows = []
    for name in ranked(audit):
        if off := audit["scorers"][name].get("off_support"):
            excess = curve_cells(off, ("excess", "excess_low", "excess_high"), 3)
            base = number_cell(off["base_rate"], decimals=3)
            rows.append(_over_k({"Scorer": name_cell(name), "Base rate": base}, audit["k"], excess))
    return Table.of(
        "off-support",
        "Off-support excess",
        "Rate at which the top score of K lies off the data's support, minus the rate among all "
        "candidates (base rate). Above 0, search is drawn off the support.",
        rows,
        stacked=True,
    )


def seeds_table(audit: Audit) -> Table:
    decimals = value_decimals(audit)
    rows = [
        {
            "Scorer": name_cell(name),
            "Seed": Cell(one_line(seed), key=one_line(seed), kind="word"),
            "Verdict": status_cell(record["verdict"]["status"]),
            "Best K": k_cell(record["verdict"]["k_best"], MISSING_SHORT),
            "Safe up to K": k_cell(record["verdict"]["k_safe_max"]),
            "Hurts from K": k_cell(record["verdict"]["k_harm"]),
            f"Value at K = {audit['k'][-1]}": number_cell(last(record["value"]), decimals=decimals),
        }
        for name in ranked(audit)
        for seed, record in (audit["scorers"][name].get("seeds") or {}).items()
    ]
    return Table.of(
        "seeds",
        "Training seeds",
        "Each seed's own curve and verdict. The scorer's curve above is the mean over its seeds; "
        "intervals run over queries only.",
        rows,
    )


def _paired(test: Mapping[str, Any], decimals: int, **between: Cell) -> dict[str, Cell]:
    """A paired difference with its interval, its p-value, and that by Holm's correction."""
    return {
        "A − B": interval_cell(test, "difference", decimals, sign=True),
        **between,
        "p": p_cell(test["p"]),
        "Holm p": p_cell(test["p_holm"]),
    }


def _pair(names: Sequence[object], kind: Kind = "name") -> dict[str, Cell]:
    """Cells A and B: the names of the two scorers, groups or selectors of a comparison."""
    return {"A": name_cell(names[0], kind=kind), "B": name_cell(names[1], kind="word")}


def _clearest_first(tests: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(tests, key=lambda test: (test["p_holm"] is None, test["p_holm"] or 0.0))


def checks_table(audit: Audit, names: Sequence[str]) -> Table:
    rows = [
        {
            "Scorer": name_cell(name),
            "Check": text_cell(
                one_line(check["name"]), f"({one_line(check['question'])})", "prose"
            ),
            "K": text_cell(" → ".join(map(str, check["k"] or ())) or MISSING_SHORT),
            "Value": interval_cell(check, "value", 3),
            "Threshold": number_cell(check["threshold"], decimals=3),
            "Status": status_cell(check["status"]),
            "Advice": text_cell(one_line(check["advice"]), kind="prose"),
        }
        for name in names
        for check in audit["scorers"][name]["verdict"]["checks"]
    ]
    return Table.of(
        "checks",
        "Checks",
        "The numbers that decided each verdict. Steps between two K are in units of the headroom "
        "at the largest K.",
        rows,
    )


def steps_table(audit: Audit, name: str) -> Table:
    """The steps between two K that come nearest to harm; no rows if none are stored."""
    steps, grid = audit["scorers"][name]["verdict"]["steps"] or [], audit["k_grid"]
    looked_at = max(len(steps), len(grid) * (len(grid) - 1) // 2)  # not all of them are stored
    worst = sorted(steps, key=lambda s: (s["low"] is None, s["low"] or 0.0))[:MOST_STEPS]
    ends = [(step["value"], step["low"], step["high"]) for step in worst]
    cells = drawn_cells(ends, audit["thresholds"]["rho"], sign=True)
    which = f"The {MOST_STEPS} of {looked_at} steps" if looked_at > MOST_STEPS else "The steps"
    ks = (text_cell(" → ".join(map(str, step["k"])), kind="name") for step in worst)
    return Table.of(
        "steps",
        "Steps nearest to harm",
        f"{which} from one K to a larger one with the lowest lower ends, in headroom. The upper "
        "ends hold for all steps at once. The marks are zero and −ρ.",
        [{"K": k, "Change": cell} for k, cell in zip(ks, cells, strict=True)],
    )


def numbers_table(audit: Audit, name: str) -> Table:
    decimals, scorer = value_decimals(audit), audit["scorers"][name]
    band = zip(scorer["band_low"], scorer["band_high"], strict=True)
    columns: dict[str, Iterable[Cell]] = {
        "K": (Cell(str(k), key=k, kind="name") for k in audit["k"]),
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
    return Table.of(
        "numbers",
        f"Every number of {one_line(name)}",
        f"Intervals are pointwise at {percent(audit['thresholds']['level'])}; the band holds for "
        "all K at once. Divergence: ln K − (K − 1)/K, an upper bound of the divergence of the "
        "pick from the proposal.",
        (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)),
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
                name_cell(group, size),
                status_cell(scorer["verdict"]["status"]),
                share,
                k_cell(scorer["verdict"]["k_safe_max"]),
                number_cell(*value, decimals=decimals),
                number_cell(record["random"], decimals=decimals),
                number_cell(last(record["oracle"]), decimals=decimals),
                interval_cell(scorer["tau_b"]),
            )
        )
    labels = ("Captured share", "Safe up to K", "Value", "Random", "Oracle", "τ_b")
    return Table(
        "groups",
        "Groups",
        "The same audit inside each group of queries, at the group's largest K and in its own "
        "headroom. Groups are smaller, so their verdicts are more often inconclusive.",
        (Column("Scorer", "name"), _group_column(audit), *words("Verdict"), *numbers(*labels)),
        tuple(rows),
        stacked=True,
    )


def group_tests_table(audit: Audit) -> Table:
    """Differences of the captured share between every two groups, the clearest first."""
    return Table.of(
        "group-tests",
        "Between groups",
        "Difference between two groups in the captured share at the largest K, with "
        f"{percent(audit['thresholds']['level'])} intervals. Holm p is corrected for the number "
        "of pairs.",
        [
            {"Scorer": name_cell(t["scorer"]), **_pair(t["groups"], kind="word"), **_paired(t, 2)}
            for t in _clearest_first(audit.get("group_tests") or ())
        ],
    )


def heterogeneity(audit: Audit, name: str) -> str:
    """The test that a scorer's captured share is the same in all groups; empty if not made."""
    p = (audit.get("group_heterogeneity") or {}).get(name)
    if p is None:
        return ""
    return f"all groups alike: p {'' if p_value(p).startswith('<') else '= '}{p_value(p)}"


def comparisons_table(audit: Audit) -> Table:
    decimals = value_decimals(audit)
    return Table.of(
        "comparisons",
        "Paired comparisons",
        f"Difference in value between two scorers at K = {audit['k'][-1]} on the same queries. "
        "Holm p is corrected for the number of pairs.",
        [
            _pair((c["a"], c["b"])) | _paired(c, decimals)
            for c in _clearest_first(audit["comparisons"])
        ],
    )


def differences_table(audit: Audit) -> Table:
    decimals, thresholds, baseline = value_decimals(audit), audit["thresholds"], audit["baseline"]
    against = "" if baseline is None else f" The baseline is “{one_line(baseline)}”."
    rows = []
    for c in audit["comparisons"]:
        between = {
            "Detectable": number_cell(c["detectable"], decimals=decimals),
            "Variance ratio": number_cell(c["variance_ratio"], decimals=1),
            "Queries": count_cell(c["queries"]),
        }
        rows.append(_pair((c["a"], c["b"])) | _paired(c, decimals, **between))
    return Table.of(
        "differences",
        "Paired differences",
        f"Mean difference in value on the same queries, with {percent(thresholds['level'])} "
        f"intervals.{against} Detectable: the smallest true difference that this many queries "
        f"would find with {percent(thresholds['power'])} power. Variance ratio: how many times "
        "more variance the comparison would have without pairing. Holm p is corrected for the "
        "number of comparisons.",
        rows,
    )


def pick_groups_table(audit: Audit) -> Table:
    decimals = value_decimals(audit)
    rows = []
    for group, part in (audit.get("groups") or {}).items():
        for c in part["comparisons"]:
            paired = _paired(c, decimals, Queries=count_cell(c["queries"]))
            rows.append((name_cell(group), *_pair((c["a"], c["b"])).values(), *paired.values()))
    return Table(
        "groups",
        "Groups",
        "The same differences inside each group of queries. Holm p is corrected for the number of "
        "comparisons of this table.",
        (_group_column(audit), *words("A", "B"), *numbers("A − B", "Queries", "p", "Holm p")),
        tuple(rows),
    )


def _group_column(audit: Audit) -> Column:
    """Headed as in the user's table, where it may be named as another column."""
    return Column(one_line(audit.get("group_column") or "Group"), "name")


def selectors_table(audit: Audit) -> Table:
    return Table.of(
        "selectors",
        "Selectors",
        "Mean value of the picked candidates over queries; replicates of a query are averaged "
        "first.",
        [
            {
                "Selector": name_cell(name),
                "Mean value": interval_cell(entry, decimals=value_decimals(audit)),
                "Queries": count_cell(entry["queries"]),
                "Replicates": number_cell(entry["replicates"], decimals=0),
            }
            for name, entry in audit["selectors"].items()
        ],
    )
