"""What is released: both packages are built, and the library runs where nothing else is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
MOST_BYTES = 2_000_000


def run(*words: object, where: Path) -> str:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [str(word) for word in words],
        cwd=where,
        env={**clean, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of both packages, by name, made as ``make dist`` makes them."""
    out = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "paper"):
        run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, project, where=out)
    return {path.name.split("-")[0]: path for path in out.glob("*.whl")}


@pytest.mark.slow
def test_the_wheels_hold_the_packages_and_nothing_else(wheels: dict[str, Path]) -> None:
    assert set(wheels) == {"toptail", "toptail_paper"}
    for name, path in wheels.items():
        inside = zipfile.ZipFile(path).namelist()
        assert {file.split("/")[0] for file in inside} == {name, f"{name}-{VERSION}.dist-info"}
        assert f"{name}/py.typed" in inside
    assert wheels["toptail"].stat().st_size < MOST_BYTES


INTERPRETERS = [sys.executable, *filter(None, map(shutil.which, ("python3.12", "python3.13")))]


def works(interpreter: str) -> bool:
    """Whether it is more than the stand-in of a version manager."""
    return not subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode


@pytest.mark.slow
@pytest.mark.parametrize("interpreter", [i for i in INTERPRETERS if works(i)])
def test_an_audit_runs_in_an_empty_environment(
    interpreter: str, wheels: dict[str, Path], tmp_path: Path
) -> None:
    run(interpreter, "-m", "venv", tmp_path / "venv", where=tmp_path)
    programs = tmp_path / "venv" / "bin"
    pip = (programs / "python", "-m", "pip", "install", "-q", "--no-compile")
    run(*pip, "-c", ROOT / "constraints.txt", wheels["toptail"], where=tmp_path)
    rows = "".join(f"{q},{c - 1.5},{int(c > 1)}\n" for q in range(60) for c in range(4))
    (tmp_path / "t.csv").write_text("query,rm,correct\n" + rows)
    said = run(programs / "toptail", "audit", "t.csv", "--resamples", "300", where=tmp_path)
    assert re.search(r"^safe +rm\b", said, re.MULTILINE), said
    assert (tmp_path / "toptail-audit" / "report.html").is_file()
    version = run(programs / "toptail", "--version", where=tmp_path)
    assert VERSION in version


def test_every_place_names_one_version() -> None:
    paper = tomllib.loads((ROOT / "paper" / "pyproject.toml").read_text())["project"]
    assert paper["version"] == VERSION
    assert any(need.endswith(f"=={VERSION}") for need in paper["dependencies"])
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == VERSION
    assert f"## {VERSION}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_workflows_run_what_make_has_and_name_no_index() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert [path.stem for path in workflows] == ["docs", "release", "tests"]
    for path in workflows:
        text = path.read_text()
        assert yaml.safe_load(text)["jobs"]
        assert set(re.findall(r"run: make ([\w-]+)", text)) <= targets
        assert "://" not in text
