"""Collect the small samples in ``tests/tasks/data``: python tests/tasks/make_fixtures.py.

Ant, humanoid and soccer are driven by random actions: their experts are trained elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from toptail.tasks.collect import Collection, collect
from toptail.tasks.expert import RandomExpert
from toptail.tasks.files import record_path
from toptail.tasks.names import PAPER_TASKS, parse_name

DATA = Path(__file__).parent / "data"
EPISODES, VAL_EPISODES, ROWS, SEED = 4, 2, 61, 0


def collection(name: str) -> Collection:
    task = parse_name(name)
    expert = None
    if task.is_maze and task.family != "pointmaze":
        assert task.dimensions is not None
        expert = RandomExpert(task.dimensions[1])
    return Collection(name, EPISODES, VAL_EPISODES, ROWS, SEED, expert)


def main() -> None:
    for name in PAPER_TASKS.values():
        for path in DATA.glob(f"{name}*"):
            path.unlink()
        paths = collect(collection(name), DATA / f"{name}.npz")
        for path in paths.values():
            record_path(path).unlink()


if __name__ == "__main__":
    main()
