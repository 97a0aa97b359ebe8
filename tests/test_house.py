"""The house: which room may import which, and what a light install may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import toptail
from tests.light import HEAVY
from toptail import cli
from toptail.lab.critics.registry import CRITICS, full_size

ROOT = Path(toptail.__file__).parent
DOWNSTAIRS = (
    *(
        "stats",
        "io",
        "pools",
        "jobs",
        "judging",
        "audit",
        "select",
        "report",
        "results",
        "testing",
        "api",
    ),
)
"""The instrument, left to right: a room imports only from rooms before it."""
UPSTAIRS = (
    *("tasks", "environments", "foreign", "critics", "training", "walkers", "proposals", "judges"),
    *("scorers", "check"),
)
"""The lab, left to right; every room of it may use the instrument."""
SMALL = {"errors", "progress", "provenance"}
"""What everybody may import."""
ABOVE = ("commands", "cli")
"""What uses both storeys."""


def imports(path: Path) -> set[str]:
    """Modules of this package and others that a file imports, wherever it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own(path: Path) -> set[str]:
    """What a file imports of this package, as ``room`` or ``lab.room``."""
    found = set()
    for module in imports(path):
        parts = module.split(".")
        if parts[0] == "toptail" and len(parts) > 1 and (ROOT / parts[1]).exists():
            found.add(".".join(parts[1:3]) if parts[1] == "lab" else parts[1])
        elif parts[0] == "toptail" and len(parts) > 1 and (ROOT / f"{parts[1]}.py").exists():
            found.add(parts[1])
    return found - {"lab"}


def files(room: str) -> list[Path]:
    """Every module of a room."""
    place = ROOT / room.replace(".", "/")
    return list(place.rglob("*.py")) or [place.with_suffix(".py")]


@pytest.mark.parametrize("room", DOWNSTAIRS)
def test_the_instrument_imports_only_to_its_left_and_nothing_heavy(room: str) -> None:
    allowed = {*SMALL, *DOWNSTAIRS[: DOWNSTAIRS.index(room) + 1]}
    for path in files(room):
        assert own(path) <= allowed, f"{path} imports {own(path) - allowed}"
        heavy = {module.split(".")[0] for module in imports(path)} & set(HEAVY)
        assert not heavy, f"{path} imports {heavy}"


@pytest.mark.parametrize("room", UPSTAIRS)
def test_the_lab_imports_only_to_its_left(room: str) -> None:
    left = UPSTAIRS[: UPSTAIRS.index(room) + 1]
    allowed = {*SMALL, *DOWNSTAIRS, *(f"lab.{name}" for name in left)}
    for path in files(f"lab.{room}"):
        assert own(path) <= allowed, f"{path} imports {own(path) - allowed}"


def test_only_commands_and_benchmarks_import_from_above() -> None:
    for i, room in enumerate(ABOVE):
        below = {f"lab.{name}" for name in UPSTAIRS}
        allowed = {*SMALL, *DOWNSTAIRS, *below, *ABOVE[: i + 1]}
        for path in files(room):
            assert own(path) <= allowed, f"{path} imports {own(path) - allowed}"


def test_the_library_knows_nothing_of_the_paper_s_project() -> None:
    for path in ROOT.rglob("*.py"):
        others = {module.split(".")[0] for module in imports(path)} & {
            "toptail_paper",
            "validation",
        }
        assert not others, f"{path} imports {others}"


def test_folders_are_listed_by_one_function_that_leaves_temporary_files_out() -> None:
    listing = {"glob", "rglob", "iterdir", "walk", "listdir", "scandir"}
    for path in ROOT.rglob("*.py"):
        called = [node.func for node in ast.walk(ast.parse(path.read_text()))
                  if isinstance(node, ast.Call)]  # fmt: skip
        found = {f.attr for f in called if isinstance(f, ast.Attribute)} & listing
        if path.relative_to(ROOT).as_posix() not in ("io/files.py",):
            walks = found - ({"walk"} if "ast" in imports(path) else set())
            assert not walks, f"{path}: use toptail.io.files.entries"


def test_no_two_classes_share_a_name() -> None:
    found = [
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert sorted(name for name in set(found) if found.count(name) > 1) == []


def test_every_critic_is_classified() -> None:
    for name, found in CRITICS.items():
        readouts = {each.name for each in found.readouts}
        assert found.deployed in readouts, name
        assert readouts == set(full_size(name).readouts()), name


def test_every_room_has_its_place() -> None:
    ignored = {"__pycache__", "__init__", "__main__", "lab", "py", *SMALL}
    rooms = {p.stem for p in ROOT.iterdir() if p.is_dir() or p.suffix == ".py"} - ignored
    assert rooms == {*DOWNSTAIRS, *ABOVE}
    lab = {p.stem for p in (ROOT / "lab").iterdir() if p.is_dir() or p.suffix == ".py"}
    assert lab - ignored == set(UPSTAIRS)


def test_importing_toptail_and_its_command_line_loads_nothing_heavy() -> None:
    code = (
        "import sys, toptail, toptail.cli; "
        f"print([m for m in {HEAVY!r} if m in sys.modules], 'scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"


def loaded(code: str) -> list[str]:
    """Modules that a fresh process has after some code."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr.split()


HELP = "import toptail.cli\ntry: toptail.cli.main(['--help'])\nexcept SystemExit: pass"
AUDIT = "import toptail; print(toptail.audit(toptail.builtin_pools(20, 4), resamples=100))"
CHOOSE = (
    "import toptail; r = toptail.choose(toptail.builtin_pools(20, 4), scores='noisy', "
    "selectors=['trim'], resamples=100); r.summary(), r._repr_html_(), r.table('families')"
)


@pytest.mark.parametrize(
    ("code", "never"),
    [
        ("import toptail", ("pyarrow", "scipy", "matplotlib", "tyro", "toptail.lab")),
        (HELP, ("pyarrow", "scipy", "matplotlib", "toptail.lab")),
        (AUDIT, ("matplotlib", "tyro", "toptail.lab", "toptail.commands")),
        (CHOOSE, ("matplotlib", "tyro", "toptail.lab", "toptail.commands")),
        ("import toptail.commands.audit, toptail.commands.choose", ("toptail.lab",)),
    ],
    ids=["import", "help", "audit", "choose", "commands"],
)
def test_what_is_light_loads_little(code: str, never: tuple[str, ...]) -> None:
    found = loaded(code)
    assert "toptail.errors" in found
    assert [name for name in found if f"{name}.".startswith(tuple(f"{n}." for n in never))] == []


def test_everything_in_front_is_there_and_nothing_else() -> None:
    for name in toptail.__all__:
        assert getattr(toptail, name) is not None
    assert dir(toptail) == sorted(toptail.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        toptail.nothing  # noqa: B018


def test_every_command_in_the_list_is_there() -> None:
    data = cli.TOPTAIL.commands["data"].parts.values()
    for command in (*cli.TOPTAIL.commands.values(), *data):
        assert command.parts or callable(command.load().run)  # type: ignore[attr-defined]
        assert command.sentence.endswith(".")
