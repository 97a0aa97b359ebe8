"""The numbers of a result as Arrow tables, unrounded: one row per scorer, K, pair or check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa

from toptail.audit.verdict import Curve
from toptail.errors import InputError
from toptail.report.text import Audit, last

Row = dict[str, Any]

_SHARES: Final = ("captured", "captured_low", "captured_high")
_REACH: Final = ("status", "k_safe_max", "k_harm")
_VERDICT: Final = ("status", "k_best", "k_safe_max", "k_harm", "queries_needed", "reason")


def table_names(audit: Audit) -> tuple[str, ...]:
    tables = _TABLES[audit["kind"]]
    return tuple(name for name, rows in tables.items() if any(rows(audit)))


def arrow_table(audit: Audit, name: str) -> pa.Table:
    """One table by its name; what is not computable is null."""
    if name not in table_names(audit):
        raise InputError(
            f"There is no table {name!r} in this result; its tables are "
            f"{', '.join(table_names(audit))}."
        )
    rows = list(_TABLES[audit["kind"]][name](audit))
    columns = {column: pa.array([row[column] for row in rows]) for column in rows[0]}
    # A column without a single number is one of numbers all the same.
    return pa.table(
        {n: c.cast(pa.float64()) if pa.types.is_null(c.type) else c for n, c in columns.items()}
    )


def _verdicts(audit: Audit) -> Iterable[Row]:
    for name, scorer in audit["scorers"].items():
        shares = {part: last(scorer[part]) for part in _SHARES}
        gain = {"gain_per_doubling": scorer["gain_per_doubling"]}
        yield {"scorer": name} | _parts(scorer["verdict"], _VERDICT) | shares | gain


def _curves(audit: Audit) -> Iterable[Row]:
    for name, scorer in audit["scorers"].items():
        yield from _over_k({"scorer": name}, audit["k"], scorer, Curve.parts())


def _oracle(audit: Audit) -> Iterable[Row]:
    parts = ("oracle", "oracle_low", "oracle_high", "headroom", "kl_bound")
    yield from _over_k({}, audit["k"], audit, parts)


def _ordering(audit: Audit) -> Iterable[Row]:
    for name, scorer in audit["scorers"].items():
        row: Row = {"scorer": name}
        for part in ("tau_b", "decile_gap", "decile_gap_within"):
            row |= _interval(part, scorer[part])
        if audit["binary"]:
            row |= _parts(scorer, ("auc", "auc_low", "auc_high"))
            row |= _interval("auc_within", scorer["auc_within"])
        yield row


def _deciles(audit: Audit) -> Iterable[Row]:
    parts = ("deciles", "deciles_low", "deciles_high", "deciles_within")
    for name, scorer in audit["scorers"].items():
        for at in range(10):
            yield {"scorer": name, "decile": at + 1} | {p: scorer[p][at] for p in parts}


def _off_support(audit: Audit) -> Iterable[Row]:
    parts = ("rate", "excess", "excess_low", "excess_high")
    for name, scorer in audit["scorers"].items():
        if "off_support" in scorer:
            yield from _over_k({"scorer": name}, audit["k"], scorer["off_support"], parts)


def _seeds(audit: Audit) -> Iterable[Row]:
    for name, scorer in audit["scorers"].items():
        for seed, entry in scorer.get("seeds", {}).items():
            head = {"scorer": name, "seed": int(seed)} | _parts(entry["verdict"], _REACH)
            yield from _over_k(head, audit["k"], entry, ("value",))


def _groups(audit: Audit) -> Iterable[Row]:
    for group, part in audit.get("groups", {}).items():
        for name, scorer in part["scorers"].items():
            head = {"group": group, "queries": part["queries"], "scorer": name}
            head |= _parts(scorer["verdict"], _REACH)
            yield from _over_k(head, part["k"], scorer, Curve.parts())


def _checks(audit: Audit) -> Iterable[Row]:
    for name, scorer in audit["scorers"].items():
        for check in scorer["verdict"]["checks"]:
            first, second = check["k"]
            rest = {part: entry for part, entry in check.items() if part != "k"}
            yield {"scorer": name, "k_from": first, "k_to": second} | rest


def _comparisons(audit: Audit) -> Iterable[Row]:
    for row in audit["comparisons"]:
        yield {"a": row["a"], "b": row["b"]} | row


def _selectors(audit: Audit) -> Iterable[Row]:
    for name, entry in audit["selectors"].items():
        yield {"selector": name} | entry


def _pick_groups(audit: Audit) -> Iterable[Row]:
    for group, part in audit.get("groups", {}).items():
        yield from ({"group": group} | row for row in _comparisons(part))


def _of_choice(choice: Mapping[str, Any], name: str) -> Iterable[Row]:
    """Rows as they are stored; parameters, which differ from row to row, are JSON texts."""
    for row in choice[name]:
        texts = {"parameters": json.dumps(row["parameters"])} if "parameters" in row else {}
        yield row | texts


_TABLES: Final[Mapping[str, Mapping[str, Callable[[Audit], Iterable[Row]]]]] = {
    "pools": {
        "verdicts": _verdicts,
        "curves": _curves,
        "oracle": _oracle,
        "ordering": _ordering,
        "deciles": _deciles,
        "off_support": _off_support,
        "seeds": _seeds,
        "groups": _groups,
        "comparisons": _comparisons,
        "checks": _checks,
    },
    "picks": {"differences": _comparisons, "selectors": _selectors, "groups": _pick_groups},
    "choice": {
        name: partial(_of_choice, name=name)
        for name in ("families", "chosen", "differences", "curves", "coverage")
    },
}
"""Kind of result -> name of a table -> its rows."""


def _parts(entry: Mapping[str, Any], names: Iterable[str]) -> Row:
    return {name: entry.get(name) for name in names}


def _interval(name: str, summary: Mapping[str, Any]) -> Row:
    return {name: summary["mean"], f"{name}_low": summary["low"], f"{name}_high": summary["high"]}


def _over_k(
    head: Row, k: Iterable[int], lists: Mapping[str, Any], names: Iterable[str]
) -> Iterable[Row]:
    """One row for each K, with its entry of each of the named lists."""
    for at, count in enumerate(k):
        yield head | {"k": count} | {name: lists[name][at] for name in names}
