"""The command line itself: help, what a light installation says, and progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from io import StringIO

import pytest
from rich.console import Console

import toptail
from toptail.cli import TOPTAIL, Command, main
from toptail.commands.demo import Demo
from toptail.commands.help import flags_in
from toptail.commands.terminal import progress_bar
from toptail.errors import Exit, InputError, option


@pytest.mark.parametrize(
    ("package", "extra"),
    [("jax", "train"), ("safetensors.numpy", "train"), ("mujoco", "sim")],
)
def test_a_missing_extra_is_named_in_one_sentence(
    package: str,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def missing(_: Demo) -> int:
        raise ModuleNotFoundError(f"No module named '{package}'", name=package)

    monkeypatch.setattr(Demo, "run", missing)
    assert main(["demo"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert f"pip install '.[{extra}]' in a checkout" in message


def test_a_missing_module_of_our_own_is_a_bug_and_shows_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: Demo) -> int:
        raise ModuleNotFoundError("No module named 'toptail.gone'", name="toptail.gone")

    monkeypatch.setattr(Demo, "run", broken)
    with pytest.raises(ModuleNotFoundError):
        main(["demo"])


def leaves(commands: Mapping[str, Command], name: str = "") -> Iterator[tuple[str, Command]]:
    """Every command that runs, with its full name."""
    for word, command in commands.items():
        yield from leaves(command.parts, f"{name}{word} ")
        if command.where:
            yield f"{name}{word}", command


COMMANDS = dict(leaves(TOPTAIL.commands))


def page(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_first_and_fits_the_terminal(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = page(capsys, *command.split())
    first = next(at for at, line in enumerate(lines) if not line)
    assert lines[first + 1].startswith(f"  toptail {command}")
    assert max(map(len, lines)) <= width
    assert any(line.startswith("Usage: ") for line in lines)
    for each in flags_in(COMMANDS[command].load()):
        assert each.text.endswith((".", "]")), each.name
        assert "None" not in each.takes + each.text


def test_the_list_of_commands_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["audit", "choose", "plan", "check", "data", "train", "runs", "demo"]
    assert list(TOPTAIL.commands) == names
    lines = page(capsys)
    assert len(lines) <= 40
    assert " ".join(lines).count("AI safety") == 1


def test_flags_are_few_and_a_name_takes_the_same_everywhere() -> None:
    flags = [flag for command in COMMANDS.values() for flag in flags_in(command.load())]
    assert len([flag for flag in flags if flag.name[0] == "-"]) <= 126
    takes: dict[str, set[str]] = {}
    for flag in flags:
        takes.setdefault(flag.field, set()).add(flag.takes)
    files = {"out": {"PATH", "NAME.npz"}}  # a file of this layout, where the others are folders
    assert {name: kinds for name, kinds in takes.items() if len(kinds) > 1} == files


@pytest.mark.parametrize("words", [[], ["data"]])
def test_a_command_that_is_missing_is_asked_for(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == Exit.INPUT
    assert "Commands:" in capsys.readouterr().out


def test_a_command_that_is_misspelled_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "lst"]) == Exit.INPUT
    said = capsys.readouterr().err
    assert said.startswith("toptail: 'toptail data' has no command 'lst' (did you mean 'list'?)")
    assert main(["report"]) == Exit.INPUT
    assert "has no command 'report'; it has audit, choose" in capsys.readouterr().err


def test_an_argument_without_a_flag_is_a_setting_or_spelled_as_in_python() -> None:
    error = InputError(f"Give {option('level', 2)}, {option('folds', 3)} or {option('near')}.")
    assert error.for_command() == "Give --level 2, --folds 3 or --near."
    assert error.for_command({"level"}) == "Give --level 2, folds=3 or near=...."
    known = {"level", "set"}
    assert error.for_command(known) == "Give --level 2, --set folds=3 or --set near."


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"toptail {toptail.__version__}\n"
    assert toptail.__version__ == version("toptail")


def test_elsewhere_there_is_a_plain_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("toptail.commands.terminal.time.monotonic", lambda: now)
    with progress_bar() as tick:
        for now in (1.0, 4.9, 5.0, 9.0, 10.0):
            tick("scores\x1b[31m", now / 100)
    assert capsys.readouterr().err.splitlines() == [
        r"scores\x1b[31m: 5% · 5 s",
        r"scores\x1b[31m: 10% · 10 s",
    ]


def test_a_bar_shows_the_stage_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(force_terminal=True, width=100, file=StringIO())
    monkeypatch.setattr("rich.console.Console", lambda **_: terminal)
    with progress_bar() as tick:
        tick("pools", 0.5)
        tick("scores", 0.1)  # another stage: its time is counted anew
        terminal.print("")
    said = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "scores" in said
    assert "10%" in said
    assert "-:--:--" in said  # nothing is known yet
