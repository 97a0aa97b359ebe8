"""The leaderboard of a run of ``toptail-paper zoo``: its tables, the summary, and a page.

    python -m toptail_paper.zoo.leaderboard OUT DATASET [STORED]

The last job of each task does the same. ``OUT/leaderboard/DATASET`` has what ``paper/results/zoo``
has of PointMaze. Rows that only ``STORED`` has, the leaderboard of an earlier run on the same data,
are kept, so that a critic is added without training the others again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from toptail.commands.terminal import say
from toptail.errors import InputError
from toptail.io.files import entries, staged_folder, write_texts
from toptail.io.json_files import read_json, write_json
from toptail.lab.training.runs import METRICS, read_lines
from toptail_paper.zoo.cells import ensembles, further, leaderboard
from toptail_paper.zoo.followed import FOLLOWED, followed_table
from toptail_paper.zoo.scores import (
    SOURCES,
    followed_and_climbed,
    in_larger_pools,
    judged_again,
    score_table,
    table_name,
)
from toptail_paper.zoo.summary import IN_LARGER_POOLS, SIMULATOR, has_exact_value, summary

LARGER = "-10000"
"""End of the names of checks in larger pools, which have candidates of their own."""


EVERY = "every"
"""Name of the check of all critics at once."""


def write_leaderboard(
    out: Path, task: str, runs: Path | None = None, stored: Path | None = None
) -> Path:
    """Write ``OUT/leaderboard/TASK`` from the checks below ``out``; returns the page.

    ``runs`` is the folder of the trained runs, by default ``OUT/runs``, and ``stored`` that of an
    earlier leaderboard, whose further rows are kept.
    """
    every = [each.parent for each in entries(out / "check" / task, "*/check.json")]
    others = (LARGER, SIMULATOR, FOLLOWED)
    checks = [folder for folder in every if not folder.name.endswith(others)]
    if not every or not (checks or stored):
        raise InputError(f"{out / 'check' / task} has no check of a critic: run the command first.")
    home, tables = out / "leaderboard" / task, _tables(out / "check" / task, task, checks)
    with staged_folder(home, gone=tables) as stage:
        for name, made in tables.items():
            earlier = _if_there(None if stored is None else stored / name)
            if made is not None:
                write_scores(made(earlier), stage / name)
            elif earlier is not None:
                (stage / name).write_bytes(earlier.read_bytes())
        trained = runs_below(runs or out / "runs", task)
        if stored is not None:
            _require_same_settings(trained, _stored(stored / "runs.json"), stored)
        contents = {
            "checks.json": followed_and_climbed(checks),
            "runs.json": trained,
            IN_LARGER_POOLS: in_larger_pools(
                folder for folder in every if folder.name.endswith(LARGER)
            ),
        }
        for name, content in contents.items():
            kept = {} if stored is None else _stored(stored / name)
            if content or kept or name != IN_LARGER_POOLS:
                write_json(stage / name, content | kept)
        found = summary(stage, task)
        write_json(stage / "summary.json", found)
        parts = leaderboard(found), ensembles(found), further(found)
        write_texts(stage, {"leaderboard.md": "\n".join(parts)})
    return home / "leaderboard.md"


def write_scores(table: pa.Table, path: Path) -> None:
    """Write a compressed table; float columns that hardly repeat are split by byte, which helps."""
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    split = [name for name in floats if len(table[name].unique()) > table.num_rows / 2]
    rest = [name for name in table.column_names if name not in split]
    encoding = dict.fromkeys(split, "BYTE_STREAM_SPLIT")
    pq.write_table(
        table, path, compression="zstd", use_dictionary=rest, column_encoding=encoding or None
    )


def _require_same_settings(
    trained: Mapping[str, Any], earlier: Mapping[str, Any], stored: Path
) -> None:
    """Refuse to join a leaderboard whose critics have another size or another training."""
    settings = {key.split(" ")[0]: run.get("config_hash") for key, run in earlier.items()}
    for key, run in trained.items():
        if settings.get(key, run.get("config_hash")) != run.get("config_hash"):
            raise InputError(
                f"{stored} has {key} with other settings than this run, such as its steps or its "
                "width: give the leaderboard of a run of the same sizes, or leave it out."
            )


def _stored(path: Path) -> dict[str, Any]:
    """The content of a file of an earlier leaderboard, which need not have larger pools."""
    if path.name == IN_LARGER_POOLS and not path.is_file():
        return {}
    content: dict[str, Any] = read_json(_existing(path))
    return content


def _tables(
    home: Path, task: str, checks: Sequence[Path]
) -> dict[str, Callable[[Path | None], pa.Table] | None]:
    """Name of each table -> what makes it, given an earlier one; None where its check is missing.

    ``checks`` are the folders below ``home`` that ask for one step among all candidates.
    """

    def of(folders: Sequence[Path], source: str) -> Callable[[Path | None], pa.Table]:
        return lambda earlier: score_table(folders, source, earlier)

    in_simulator, in_episodes = home / SIMULATOR, home / FOLLOWED
    made: dict[str, Callable[[Path | None], pa.Table] | None] = {
        source: of(checks, source) if checks else None for source in SOURCES
    }
    simulated, followed = ((each / "check.json").is_file() for each in (in_simulator, in_episodes))
    if not has_exact_value(task):
        made[SIMULATOR] = of([in_simulator], SOURCES[0]) if simulated else None
    elif simulated and not checks:
        raise InputError(f"{in_simulator} needs a check of the same candidates beside it.")
    else:
        made[SIMULATOR] = partial(_again, in_simulator, checks[0]) if simulated else None
    made[FOLLOWED] = (lambda earlier: followed_table(in_episodes, earlier)) if followed else None
    return {table_name(task, kind): each for kind, each in made.items()}


def _again(check: Path, first: Path, earlier: Path | None) -> pa.Table:
    """The stored values of the other judge, or those of a check."""
    return judged_again(check, first, SOURCES[0]) if earlier is None else pq.read_table(earlier)


def _if_there(path: Path | None) -> Path | None:
    return path if path is not None and path.is_file() else None


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path} does not exist: name the folder of an earlier leaderboard.")
    return path


def runs_below(runs: Path, task: str) -> dict[str, Any]:
    """TASK/CRITIC/seed-N -> the record of that run, with its last measurements.

    Of the data's path the name is kept, and not where the machine had it.
    """
    found = {}
    for path in entries(runs / task, "*/seed-*/record.json"):
        lines = read_lines(path.parent / METRICS)
        record = read_json(path) | ({"last_metrics": lines[-1]} if lines else {})
        if source := record.get("data", {}).get("source"):
            record["data"]["source"] = Path(source).name
        found[path.parent.relative_to(runs).as_posix()] = record
    return found


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python -m toptail_paper.zoo.leaderboard OUT DATASET [STORED]")
    earlier = Path(sys.argv[3]) if len(sys.argv) == 4 else None
    say(str(write_leaderboard(Path(sys.argv[1]), sys.argv[2], stored=earlier)))
