"""Every way in which a run's record finds its commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toptail.provenance import PACKAGE, VARIABLE, checked_out, commit
from toptail_paper.study.page import recorded

ROOT = PACKAGE.parent.parent


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither this machine's settings nor this checkout have a say."""
    for name in [VARIABLE, *(name for name in os.environ if name.startswith("GIT_"))]:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"NAME": "A", "EMAIL": "a@b.c"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a small package, as it may be sent somewhere."""
    package = tmp_path / "tree" / "src" / "toptail"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    shutil.copy(PACKAGE / "provenance.py", package)
    (tmp_path / "tree" / "notes.md").write_text("as committed\n")
    (tmp_path / "tree" / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "stamp.py", tmp_path / "tree" / "tools")
    return tmp_path / "tree"


def git(tree: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(tree), *args], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def checkout(tree: Path) -> str:
    """Make the tree a checkout with one commit, and name it."""
    git(tree, "init", "--quiet")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", "first")
    return git(tree, "rev-parse", "HEAD")


def stamp(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/stamp.py"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)


def test_git_names_the_commit_of_a_checkout(tree: Path) -> None:
    package = tree / "src" / "toptail"
    assert checked_out(package) is None
    head = checkout(tree)
    (tree / "COMMIT").write_text("another\n")  # left from before: git knows better
    assert commit(package) == checked_out(package) == head


def test_only_tracked_files_of_the_package_are_changes(tree: Path) -> None:
    package = tree / "src" / "toptail"
    head = checkout(tree)
    (package / "scratch.py").write_text("tried = True\n")
    (tree / "notes.md").write_text("what a run wrote into the tree\n")
    assert commit(package) == head
    (package / "__init__.py").write_text("changed = True\n")
    assert commit(package) == f"{head}+changes"
    git(tree, "add", ".")
    assert commit(package) == f"{head}+changes"


def test_a_package_inside_somebody_elses_checkout_is_not_theirs(tree: Path) -> None:
    git(tree, "init", "--quiet")
    git(tree, "add", "notes.md")
    git(tree, "commit", "--quiet", "-m", "without the package")
    assert commit(tree / "src" / "toptail") is None


@pytest.mark.parametrize("changed", [False, True])
def test_a_tree_that_was_sent_elsewhere_carries_its_commit(tree: Path, changed: bool) -> None:
    name = checkout(tree)
    if changed:
        (tree / "src" / "toptail" / "__init__.py").write_text("changed = True\n")
        name += "+changes"
    assert stamp(tree).stdout.strip() == name
    shutil.rmtree(tree / ".git")
    assert commit(tree / "src" / "toptail") == name
    shutil.move(tree / "src" / "toptail", tree / "toptail")  # sent without its surroundings
    assert commit(tree / "toptail") == name


def test_a_tree_without_git_cannot_be_stamped(tree: Path) -> None:
    done = stamp(tree)
    assert done.returncode == 1
    assert done.stderr == f"{tree} is no git checkout: there is no commit to write down.\n"
    assert not (tree / "COMMIT").exists()


def test_the_environment_names_a_commit_before_any_file_does(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tree / "src" / "toptail"
    assert commit(package) is None
    (tree / "COMMIT").write_text("4d5e6f\n")
    assert commit(package) == "4d5e6f"
    monkeypatch.setenv(VARIABLE, "1a2b3c\n")
    assert commit(package) == "1a2b3c"


def test_a_page_says_that_the_commit_is_unknown_and_which_version_ran() -> None:
    versions = {"python": "3.11", "toptail": "0.1.0"}
    assert recorded({"commit": "1a2b3c", "versions": versions})[0] == ("Code", "1a2b3c")
    assert recorded({"commit": None, "versions": versions}) == (
        ("Code", "unknown (version 0.1.0)"),
        ("Versions", "python 3.11, toptail 0.1.0"),
    )
    assert recorded({})[0] == ("Code", None)
