"""What the study of temperatures and losses says beside a statement about the cosine critic."""

from __future__ import annotations

from dataclasses import replace

from toptail_paper.claims.criteria import Condition, Criterion, spelled
from toptail_paper.claims.findings import Answer, Finding, Ruling
from toptail_paper.claims.numbers import Tables, number

TEMPERATURE = "the temperature and the loss"
"""What a statement about cosine training depends on that some settings decide otherwise."""


Settings = dict[str, float]
"""A setting on a task, and its mean."""


def settings(
    tables: Tables, metric: str, condition: Condition
) -> tuple[Settings, Settings, Settings]:
    """Settings that meet a condition, those that do not, and those that leave it open.

    Settings in which any seed collapsed say nothing about ordering and stay out.
    """
    by: dict[Answer, Settings] = {True: {}, False: {}, None: {}}
    for task, by_setting in tables.get("temperature", {}).get("rows", {}).items():
        for setting, cells in by_setting.items():
            if metric in cells and cells["collapsed"]["mean"] == 0:
                x = number(tables, "temperature", task, setting, metric)
                by[condition.asked(x)][f"{setting} on {task}"] = x.mean
    return by[True], by[False], by[None]


def told(met: Settings, failed: Settings, left_open: Settings) -> str:
    """In how many settings a condition holds, and in which."""
    lists = {"met": met, "not met": failed, "open": left_open}
    each = [f" ({word}: {spelled(found)})" for word, found in lists.items() if found]
    return f"{len(met)} of {len(met) + len(failed) + len(left_open)}{''.join(each)}."


def with_temperatures(criterion: Criterion, metric: str, what: str) -> Ruling:
    """Turn a criterion into one that depends where another temperature decides otherwise.

    The same condition is asked of ``metric``, called ``what``, in every setting. Without that
    study the decision stands as it is.
    """

    def decide(tables: Tables) -> Finding:
        finding = criterion(tables)
        met, failed, left_open = settings(tables, metric, criterion.condition)
        if not met and not failed and not left_open:
            return finding
        comment = (
            f"{finding.comment} Over the temperature study's settings without collapse, {what} is "
            f"{criterion.condition} in {told(met, failed, left_open)}"
        )
        unlike = {"seen": failed, "not seen": met, "inconclusive": met and failed}
        if unlike.get(finding.status):
            return replace(finding, status="depends", on=TEMPERATURE, comment=comment)
        return replace(finding, comment=comment)

    said = f"{criterion.words()}; where the temperature study was run, {what} in all its settings"
    return Ruling(decide, criterion.tasks, said)
