"""Copy what is kept of a folder that ``toptail-paper all`` made: tables, picks, records.

    python tools/keep_results.py OUT paper/results

Arrays of scores and candidates, networks, figures and pages stay behind: the same command makes
them again. Records of runs and data become one ``runs.json`` and ``data.json`` a study. Paths
inside OUT become relative ones, so that no record names a place of the machine that it ran on,
also where OUT was copied from another machine; arrays are compressed, which takes four fifths of
rollouts away.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toptail.io.arrays import read_arrays, write_arrays

KEPT = (
    *("config.json", "record.json", "declared.json", "scale.json", "curves.json"),
    *("claims.json", "claims.md", "queries.npz", "rollouts.npz", "picks.parquet"),
    *("rollouts_expert.npz", "picks_expert.parquet"),
    *("tables/*.json", "replicates/*.npz", "deployment/*.json"),
    *("audit*/audit.json", "audit*/audit.md"),
)
"""What is kept of a study's folder."""

ELSEWHERE = re.compile(r"(?<=[\s\"])/[^\s\"]*?/(?=(?:runs|data|selection|semantics)[/\s\"])")
"""The beginning of a path inside a folder that another machine called otherwise."""

LONG = 100_000
"""Characters above which nobody reads a JSON file: it has no indents."""


def keep(out: Path, results: Path) -> list[Path]:
    """Copy the studies of ``out``; returns the files that were written."""
    written: list[Path] = []
    for study in _studies(out):
        to = results / study.relative_to(out)
        tasks = [study.name] if study.parent.name == "selection" else _tasks(out)
        kept = [path for pattern in KEPT for path in sorted(study.glob(pattern))]
        written += [_copy(path, to / path.relative_to(study), out) for path in kept]
        written.append(_write(to / "runs.json", _runs(out, tasks), out))
        written.append(_write(to / "data.json", _data(out, tasks), out))
    return written


def _studies(out: Path) -> Iterator[Path]:
    for config in sorted(out.glob("se*/**/config.json")):
        if (config.parent / "tables").is_dir():
            yield config.parent


def _tasks(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "runs").iterdir() if path.is_dir())


def _runs(out: Path, tasks: list[str]) -> dict[str, Any]:
    """TASK/CRITIC/seed-N -> the record of that run."""
    found = {}
    for task in tasks:
        for path in sorted((out / "runs" / task).glob("*/seed-*/record.json")):
            name = path.parent.relative_to(out / "runs").as_posix()
            found[name] = json.loads(path.read_text("utf-8"))
    return found


def _data(out: Path, tasks: list[str]) -> dict[str, Any]:
    """Data set -> split -> the record of its collection, with the mean of counts per episode."""
    found: dict[str, Any] = {}
    for task in tasks:
        for split, end in (("train", ""), ("val", "-val")):
            path = out / "data" / f"{task}{end}.npz.json"
            if path.is_file():
                record = json.loads(path.read_text("utf-8"))
                goals = record.get("goals_per_episode")
                if isinstance(goals, list) and goals:
                    record["goals_per_episode"] = round(sum(goals) / len(goals), 2)
                found.setdefault(task, {})[split] = record
    return found


def _copy(path: Path, to: Path, out: Path) -> Path:
    if path.suffix == ".json":
        # Audits are long, and no statement is decided by them.
        rounded = _nine_digits if path.name == "audit.json" else None
        return _write(to, json.loads(path.read_text("utf-8"), parse_float=rounded), out)
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npz":
        write_arrays(to, read_arrays(path), compressed=True)
    else:
        shutil.copyfile(path, to)
    return to


def _write(to: Path, content: Any, out: Path) -> Path:
    """Write JSON in which paths below ``out`` are relative to it."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    if len(text) > LONG:
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    for place in {str(out), str(out.resolve())}:
        if place.startswith("/"):
            text = text.replace(f"{place}/", "").replace(place, ".")
    text = ELSEWHERE.sub("", text)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text + "\n", encoding="utf-8")
    return to


def _nine_digits(text: str) -> float:
    return float(f"{float(text):.9g}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python tools/keep_results.py OUT RESULTS")
    files = keep(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
