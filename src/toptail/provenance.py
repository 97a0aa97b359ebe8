"""Which commit the running code is, wherever it runs."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.metadata import distributions
from pathlib import Path

PACKAGE = Path(__file__).parent
STAMP = "COMMIT"
"""The file in which a tree carries its commit's name to where there is no git."""
VARIABLE = "TOPTAIL_COMMIT"
"""The environment variable with which a person, or a job that was sent elsewhere, names it."""


def commit(package: Path = PACKAGE) -> str | None:
    """Name the commit of a package's code; None where nobody wrote it down.

    The environment variable is believed first: a copy of a tree may lie in another repository's
    folder, or have an older history beside it. Then git is asked, in a checkout of this very
    package; then the file that ``tools/stamp.py`` left in a tree that was sent elsewhere, and what
    pip noted when it installed from a repository.
    """
    return (
        os.environ.get(VARIABLE, "").strip()
        or checked_out(package)
        or _stamped(package)
        or _installed_from(package)
    )


def checked_out(package: Path = PACKAGE) -> str | None:
    """Ask git, with "+changes" if tracked files of the package differ; None outside a checkout.

    Results that were written into the checkout, notes and scratch files are no change of the code.
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
    """Read the stamp beside the package, or one level up where the package lies in ``src``."""
    for folder in package.parents[:2]:
        if (stamp := folder / STAMP).is_file() and (name := stamp.read_text("utf-8").strip()):
            return name
    return None


def _installed_from(package: Path) -> str | None:
    """Read pip's note on the repository that the package was installed from."""
    for found in distributions(name=package.name, path=[str(package.parent)]):
        note = json.loads(found.read_text("direct_url.json") or "{}")
        commit_id: str | None = note.get("vcs_info", {}).get("commit_id")
        return commit_id
    return None
