"""The sweeps' rule: a statement about the controlled world is asked in every swept setting, too.

The whole criterion is asked again of results as if a setting were the default. Critics that a
setting did not train anew are its default's: a temperature changes nothing about TD-Q.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toptail_paper.claims.findings import Answer, Decision, Finding
from toptail_paper.claims.numbers import NotMeasuredError, Tables

TASK = "controlled"
SETTING = "the setting"
"""What a statement depends on that some settings of the sweeps decide otherwise."""

UNSWEPT = "No sweep has what it asks: decided at the default setting alone."
"""What is said where a run swept nothing that a statement speaks of."""

_ANSWERS: Mapping[str, Answer] = {
    "seen": True,
    "true by construction": True,
    "inconclusive": None,
    "depends": False,
    "not seen": False,
}
_ROWS = ("toy-support", "toy-within")
"""Tables of the pick at the largest K, as sweeps have them."""
_DECOMPOSITION = "support-decomposition"


@dataclass(frozen=True)
class Swept:
    """A statement that is asked in every setting of the sweeps, too."""

    decision: Decision
    """What decides it at the default setting."""
    critics: Sequence[str]
    """The critics and readouts that it speaks of; settings that train none of them stay out."""

    def __call__(self, tables: Tables) -> Finding:
        """Decide at the default, then with what the sweeps say beside it."""
        finding = self.decision(tables)
        answers = self.answers(tables)
        if not answers:
            return replace(finding, comment=f"{finding.comment} {UNSWEPT}")
        by = {
            wanted: [name for name, answer in answers.items() if answer is wanted]
            for wanted in (True, False, None)
        }
        text = f" The whole criterion is met in {len(by[True])} of {len(answers)} swept settings"
        text += f"; not at {', '.join(by[False])}" if by[False] else ""
        text += f"; open at {', '.join(by[None])}" if by[None] else ""
        split = {
            "seen": bool(by[False]),
            "not seen": bool(by[True]),
            "inconclusive": bool(by[True] and by[False]),
        }
        comment = f"{finding.comment}{text}."
        if split.get(finding.status):
            return replace(finding, status="depends", on=SETTING, comment=comment)
        return replace(finding, comment=comment)

    def answers(self, tables: Tables) -> dict[str, Answer]:
        """Whether the whole criterion holds, by setting; those that lack a number stay out."""
        found: dict[str, Answer] = {}
        for name, row in settings(tables):
            if not set(self.critics) & set(row):
                continue
            try:
                finding = self.decision(at_setting(tables, name, row))
            except NotMeasuredError:
                continue
            found[name.partition("@")[2]] = _ANSWERS[finding.status]
        return found


def settings(tables: Tables) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every swept setting but the default, with the critics trained in it; each one once."""
    swept = [tables[name] for name in sorted(tables) if name.startswith("sweep-")]
    found = [
        (name, row)
        for table in swept
        for name, row in table["rows"].items()
        if name not in table.get("default", ())
    ]
    seen: list[Mapping[str, Any]] = []
    for name, row in sorted(found, key=lambda setting: setting[0].count("=")):
        if row not in seen:  # two sweeps may meet in a setting; its shorter name stays
            seen.append(row)
            yield name, row


def at_setting(tables: Tables, name: str, row: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The results as if a setting were the default; what was not stored of it is left out."""
    view = dict(tables)
    for table in _ROWS:
        if table in view:
            cells = view[table]["rows"][TASK]
            view[table] = {"rows": {TASK: {c: row.get(c, cell) for c, cell in cells.items()}}}
    decomposed = view.pop(_DECOMPOSITION, {}).get("rows", {})
    if name in decomposed:
        view[_DECOMPOSITION] = {"rows": {TASK: decomposed[name]}}
    if "curves" in view:
        critics = view["curves"]["critics"]
        ends = {c: _ends(y, row[c]) if c in row else y for c, y in critics.items()}
        view["curves"] = {**view["curves"], "critics": ends}
    return view


def _ends(curves: Mapping[str, Any], cells: Mapping[str, Any]) -> dict[str, Any]:
    """Curves of a critic that a setting trained: a random candidate, then the largest K.

    The pools are the same in every setting, and so is a random candidate of them.
    """
    return {
        name: {
            "seeds": {
                seed: [*y[:1], cells[name]["seeds"][seed]]
                for seed, y in curves[name]["seeds"].items()
                if seed in cells[name]["seeds"]
            },
            "mean": [curves[name]["mean"][0], cells[name]["mean"]],
        }
        for name in ("value", "off_support", "regret")
        if name in curves and name in cells
    }
