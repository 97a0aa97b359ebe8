"""What the study of temperatures and losses says beside a statement about the cosine critic."""

from __future__ import annotations

from toptail.lab.paper.criteria import Condition, Criterion, spelled
from toptail.lab.paper.findings import Finding, Ruling
from toptail.lab.paper.numbers import Tables


def settings(
    tables: Tables, metric: str, condition: Condition
) -> tuple[dict[str, float], dict[str, float]]:
    """Settings that meet a condition, and those that do not.

    Settings in which any seed collapsed say nothing about ordering and stay out.
    """
    met: dict[str, float] = {}
    failed: dict[str, float] = {}
    rows = tables.get("temperature", {}).get("rows", {})
    for task, by_setting in rows.items():
        for setting, cells in by_setting.items():
            mean = cells.get(metric, {}).get("mean")
            if mean is None or cells["collapsed"]["mean"] > 0:
                continue
            (met if condition(mean) else failed)[f"{setting} on {task}"] = mean
    return met, failed


def with_temperatures(criterion: Criterion, metric: str, what: str) -> Ruling:
    """Turn a criterion into one that depends where another temperature decides otherwise.

    The same condition is asked of ``metric``, called ``what``, in every setting. Without that
    study the decision stands as it is.
    """

    def decide(tables: Tables) -> Finding:
        finding = criterion(tables)
        met, failed = settings(tables, metric, criterion.condition)
        if not met and not failed:
            return finding
        text = (
            f" Over the temperature study's settings without collapse, {what} is "
            f"{criterion.condition} in {len(met)} of {len(met) + len(failed)}"
            + (f" (met: {spelled(met)})" if met else "")
            + (f" (not met: {spelled(failed)})" if failed else "")
            + "."
        )
        unlike = {"seen": failed, "not seen": met, "inconclusive": met and failed}
        split = unlike.get(finding.status)
        status = "depends" if split else finding.status
        return Finding(status, finding.number, finding.interval, finding.comment + text)

    said = f"{criterion.words()}; where the temperature study was run, {what} in all its settings"
    return Ruling(decide, criterion.tasks, said)
