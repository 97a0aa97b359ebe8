"""A task of one's own on a plane, for all tests of checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.environments.plane import small, write_plane
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.result import CheckResult
from toptail.lab.check.run import check


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training file; validation data and ``mine.py`` are beside it. Not to be changed."""
    return write_plane(tmp_path_factory.mktemp("plane"))


def checked(plane: Path, *scorers: str, **how: Any) -> CheckResult:
    """A small check of functions of ``mine.py``, by their names."""
    file = plane.parent / "mine.py"
    config = CheckConfig(**small(**how.pop("sizes", {})))
    if "env" in how:
        how["env"] = f"{file}:{how['env']}"
    named = {name: f"{file}:{name}" for name in scorers}
    return check(plane, named, config=config, **how)


def statuses(result: CheckResult, kind: str) -> dict[str, list[str]]:
    """Scorer -> the statuses of one question, source by source."""
    scorers = result.content["scorers"].items()
    return {name: [part[kind]["status"] for part in each["parts"]] for name, each in scorers}
