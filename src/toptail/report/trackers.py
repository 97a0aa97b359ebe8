"""Experiment trackers: numbers, pages and words sent to a run, and runs opened for trainings.

A run that is given is recognized by its methods: no tracker's package is imported for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, option
from toptail.report.text import last

STATUS: Final = {"safe": 1.0, "no gain": 0.0, "inconclusive": 0.0, "unsafe": -1.0}
"""A status as a number, for charts over time."""
_NAME: Final = re.compile(r"[^\w\-./ ]")
"""Characters that MLflow refuses in names."""


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
    if package == "mlflow" and not hasattr(run, "log_metrics"):
        run = sys.modules[package]
    html = getattr(sys.modules.get(package), "Html", None) if package == "wandb" else None
    send(run, {**found, "toptail/report": html(page, inject=False)} if html else found, step)
    if hasattr(run, "log_text"):  # MLflow
        run.log_dict(dict(content), f"toptail/{kind}.json")
        run.log_text(page, "toptail/report.html")
    elif hasattr(run, "add_text"):  # TensorBoard
        run.add_text("toptail", "\n\n".join(summary.splitlines()), step)


def send(run: Any, scalars: Mapping[str, Any], step: int | None) -> None:
    """Send numbers by name to a run of any tracker."""
    if hasattr(run, "log_metrics") and hasattr(run, "log_text"):  # MLflow
        run.log_metrics(scalars, step=step)
    elif hasattr(run, "add_scalar"):  # TensorBoard
        for name, number in scalars.items():
            run.add_scalar(name, number, step)
    elif hasattr(run, "log"):  # W&B, trackio, and what is like them
        run.log(dict(scalars), step=step)
    else:
        raise InputError(
            f"{type(run).__name__} has neither log, log_metrics nor add_scalar; give a run of W&B "
            "or trackio, the module mlflow, or a SummaryWriter of TensorBoard."
        )


# Runs that a training opens.

KINDS: Final = ("tensorboard", "trackio", "wandb")
PROJECT: Final = "toptail"
"""Name of the trackers' project."""


def require_trackers(kinds: Sequence[str]) -> None:
    """Refuse a tracker that is not known, or whose package is not installed."""
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(
                f"{option('log', kind)}: there is no such tracker; they are {', '.join(KINDS)}."
            )
        try:
            import_module("tensorboard.summary" if kind == "tensorboard" else kind)
        except ImportError:
            raise InputError(
                f"{option('log', kind)} needs the package '{kind}', which is not installed: pip "
                f"install {kind}. metrics.jsonl is written in any case."
            ) from None


def open_run(kind: str, out: Path, name: str, config: Mapping[str, Any]) -> Any:
    """A new run of a tracker; TensorBoard's event files are in ``OUT/tensorboard/NAME``."""
    if kind == "tensorboard":
        return import_module("tensorboard.summary").Writer(str(out / "tensorboard" / name))
    about = {"project": PROJECT, "name": name, "config": dict(config)}
    if kind == "trackio":
        return import_module("trackio").init(**about, resume="allow", embed=False)
    return import_module("wandb").init(**about, dir=str(out), reinit="create_new")
