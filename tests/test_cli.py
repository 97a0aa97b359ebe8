"""The command line itself: what a light installation says, and what is not swallowed."""

from __future__ import annotations

from importlib.metadata import version

import pytest

import toptail
from toptail.cli import main
from toptail.commands.demo import Demo


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
    assert f"toptail[{extra}]" in message


def test_a_missing_module_of_our_own_is_a_bug_and_shows_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: Demo) -> int:
        raise ModuleNotFoundError("No module named 'toptail.gone'", name="toptail.gone")

    monkeypatch.setattr(Demo, "run", broken)
    with pytest.raises(ModuleNotFoundError):
        main(["demo"])


@pytest.mark.parametrize("command", ["", "audit", "train", "check", "study selection"])
def test_help_is_printed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert "toptail" in said
    assert "{None}" not in said  # a type of Python, of a flag that may be left out
    assert "FrozenQueries" not in said


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"toptail {toptail.__version__}\n"
    assert toptail.__version__ == version("toptail")
