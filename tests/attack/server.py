from __future__ import annotations
from collections.abc import Iterator
from contextlib import contextmanager
from tests.tasks.test_download import Mirror, serve
from tests.attack.world import DATA, POINT

@contextmanager
def sound_mirror() -> Iterator[str]:
    """A server that has PointMaze's data set."""
    files = {path.name: path.read_bytes() for path in DATA.glob(f"{POINT}*.npz")}
    with serve(Mirror(files)) as mirror:
        yield mirror.address
