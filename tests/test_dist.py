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
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make dist`` builds, with this environment in place of ``.venv``."""
    out = tmp_path_factory.mktemp("built")
    (out / ".ready").touch()
    programs = Path(sys.executable).parent
    run("make", "dist", f"BIN={programs}", f"VENV={out}", f"DIST={out / 'dist'}", where=ROOT)
    return out / "dist"


def built(dist: Path, ending: str) -> dict[str, Path]:
    """Files of one kind, by package."""
    return {path.name.split("-")[0]: path for path in dist.glob(f"*{ending}")}


@pytest.mark.slow
def test_the_wheels_hold_the_packages_and_nothing_else(dist: Path) -> None:
    wheels = built(dist, ".whl")
    assert set(wheels) == set(built(dist, ".tar.gz")) == {"toptail", "toptail_paper"}
    for name, path in wheels.items():
        inside = zipfile.ZipFile(path).namelist()
        assert {file.split("/")[0] for file in inside} == {name, f"{name}-{VERSION}.dist-info"}
        assert f"{name}/py.typed" in inside
    library = zipfile.ZipFile(wheels["toptail"]).namelist()
    assert "toptail/lab/check/zoo.json" in library
    assert wheels["toptail"].stat().st_size < MOST_BYTES


def interpreters() -> list[str]:
    """This Python, and 3.12 and 3.13 where they are on the path or installed by pyenv."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in ("3.12", "3.13"):
        known = [shutil.which(f"python{version}")]
        known += [str(path) for path in sorted(versions.glob(f"{version}.*/bin/python"))]
        works = [each for each in known if each and _is(each, version)]
        found |= {version: works[0]} if works and version not in found else {}
    return list(found.values())


def _is(interpreter: str, version: str) -> bool:
    """Whether it runs: what a version manager puts on the path may be a stand-in that does not."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    ran = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=False)
    return ran.stdout.strip() == version


@pytest.mark.slow
@pytest.mark.parametrize("interpreter", interpreters())
def test_an_audit_runs_in_an_empty_environment(
    interpreter: str, dist: Path, tmp_path: Path
) -> None:
    audit_in_an_empty_environment(interpreter, built(dist, ".whl")["toptail"], tmp_path)


@pytest.mark.slow
def test_the_source_archive_and_the_paper_s_wheel_can_be_installed(
    dist: Path, tmp_path: Path
) -> None:
    archive = built(dist, ".tar.gz")["toptail"]
    programs = audit_in_an_empty_environment(sys.executable, archive, tmp_path)
    paper = built(dist, ".whl")["toptail_paper"]  # JAX and simulators are not needed for its help
    run(programs / "python", "-m", "pip", "install", "-q", "--no-deps", paper, where=tmp_path)
    assert "Usage: toptail-paper COMMAND" in run(
        programs / "toptail-paper", "--help", where=tmp_path
    )


def audit_in_an_empty_environment(interpreter: str, package: Path, folder: Path) -> Path:
    """Install a package where nothing else is, and audit a table; returns the programs' folder."""
    run(interpreter, "-m", "venv", folder / "venv", where=folder)
    programs = folder / "venv" / "bin"
    pip = (programs / "python", "-m", "pip", "install", "-q", "--no-compile")
    run(*pip, "-c", ROOT / "constraints.txt", package, where=folder)
    rows = "".join(f"{q},{c - 1.5},{int(c > 1)}\n" for q in range(60) for c in range(4))
    (folder / "t.csv").write_text("query,rm,correct\n" + rows)
    said = run(programs / "toptail", "audit", "t.csv", "--resamples", "300", where=folder)
    assert re.search(r"^safe +rm\b", said, re.MULTILINE), said
    assert (folder / "toptail-audit" / "report.html").is_file()
    assert VERSION in run(programs / "toptail", "--version", where=folder)
    return programs


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
