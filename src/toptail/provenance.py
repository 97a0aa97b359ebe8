"""What a result records of its making: versions of packages, commit, command, seed and data."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

PACKAGE = Path(__file__).parent
STAMP = "COMMIT"
"""The file in which ``tools/stamp.py`` notes the commit of a tree that is copied without git."""
VARIABLE = "TOPTAIL_COMMIT"
"""The environment variable that names the commit, for jobs that run elsewhere."""


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"


def versions() -> dict[str, str]:
    """Versions of the packages that decide a result's last digits."""
    packages = ("toptail", "numpy", "scipy", "pyarrow")
    return {"python": platform.python_version()} | {name: installed(name) for name in packages}


class _Data(Protocol):
    @property
    def source(self) -> str: ...
    @property
    def sha256(self) -> str | None: ...


def record_of(data: _Data, seed: int, command: str) -> dict[str, Any]:
    """Command, versions, seed and data of a result."""
    return {
        "command": command,
        "versions": versions(),
        "seed": seed,
        "source": data.source,
        "sha256": data.sha256,
    }


def commit(package: Path = PACKAGE) -> str | None:
    """The commit of a package's code; None where it is not known.

    The environment variable comes first: a copy of a tree may lie in another repository's
    folder. Then git is asked, in a checkout of this very package, then the file of the stamp.
    """
    return os.environ.get(VARIABLE, "").strip() or checked_out(package) or _stamped(package)


def checked_out(package: Path = PACKAGE) -> str | None:
    """The commit by git, with "+changes" if tracked files of the package differ.

    None outside a checkout. Results, notes and scratch files in the checkout do not count.
    """

    def git(*args: str) -> str:
        command = ["git", "-C", str(package), *args]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        differing = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("rev-parse", "HEAD") + ("+changes" if differing else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _stamped(package: Path) -> str | None:
    """The stamp beside the package, or one level up where the package lies in ``src``."""
    for folder in package.parents[:2]:
        if (stamp := folder / STAMP).is_file() and (name := stamp.read_text("utf-8").strip()):
            return name
    return None
