"""Results sent to experiment trackers, known by the methods that they have.

Nothing is imported: whoever has a run has its package.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from toptail.errors import InputError
from toptail.report.text import last

STATUS: Final = {"safe": 1.0, "no gain": 0.0, "inconclusive": 0.0, "unsafe": -1.0}
"""A status as a number, for charts over time."""
_NAME: Final = re.compile(r"[^\w\-./ ]")
"""What MLflow takes in no name."""


def metrics(content: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a result by name, ``toptail/rm/captured``; what is not known is left out."""
    return {
        _NAME.sub("_", f"toptail/{name}"): float(number)
        for name, number in _numbers(content)
        if number is not None
    }


def _numbers(content: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    if "kind" not in content:
        yield from _of_check(content)
    elif content["kind"] == "pools":
        yield from _of_scorers(content, "")
        for group, part in content.get("groups", {}).items():
            yield from _of_scorers(part, f"group/{group}/")
    elif content["kind"] == "picks":
        for name, entry in content["selectors"].items():
            yield f"{name}/value", entry["mean"]
    else:
        yield "choice/value", content["value"]
        yield "choice/k", content["k"]
        for each in content["differences"]:
            yield f"choice/gain over {each['against']}", each["difference"]


def _of_check(content: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    for name, scorer in content["scorers"].items():
        yield f"{name}/status", STATUS[scorer["status"]]
        for part in scorer["parts"]:
            for kind in ("one_step", "closed_loop"):
                entry = part.get(kind) or {}
                where = f"{name}/{part['pools']}/{kind}"
                if entry:
                    yield f"{where}/status", STATUS[entry["status"]]
                    yield f"{where}/captured", entry.get("captured")
                for selector, worth in entry.get("worth", {}).items():
                    yield f"{where}/{selector.replace('= ', '')}", worth["mean"]


def _of_scorers(part: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float | None]]:
    for name, scorer in part["scorers"].items():
        verdict = scorer["verdict"]
        yield f"{prefix}{name}/status", STATUS[verdict["status"]]
        yield f"{prefix}{name}/safe up to K", verdict["k_safe_max"] or 0
        for column in ("value", "captured", "captured_low", "captured_high"):
            if scorer.get(column):
                yield f"{prefix}{name}/{column}", last(scorer[column])


def log(
    run: Any, content: Mapping[str, Any], page: str, summary: str, step: int | None = None
) -> None:
    """Send numbers, and the page or the words where the tracker has a place for them."""
    found, kind = metrics(content), content.get("kind", "check")
    package = type(run).__module__.partition(".")[0]
    if package in ("mlflow", "wandb", "trackio") and not hasattr(run, "log"):
        run = sys.modules[package] if package == "mlflow" else run
    if hasattr(run, "log_metrics") and hasattr(run, "log_text"):  # MLflow
        run.log_metrics(found, step=step)
        run.log_dict(dict(content), f"toptail/{kind}.json")
        run.log_text(page, "toptail/report.html")
    elif hasattr(run, "add_scalar"):  # TensorBoard
        for name, number in found.items():
            run.add_scalar(name, number, step)
        run.add_text("toptail", "\n\n".join(summary.splitlines()), step)
    elif hasattr(run, "log"):  # W&B, trackio, and what is like them
        html = getattr(sys.modules.get(package), "Html", None)
        more = {"toptail/report": html(page, inject=False)} if package == "wandb" and html else {}
        run.log({**found, **more}, step=step)
    else:
        raise InputError(
            f"{type(run).__name__} has neither log, log_metrics nor add_scalar; give a run of W&B "
            "or trackio, the module mlflow, or a SummaryWriter of TensorBoard."
        )
