"""The command line itself: what a light installation says, and what is not swallowed."""

from __future__ import annotations

from importlib.metadata import version

import pytest

import toptail
from toptail.cli import main
from toptail.commands.bench import Bench


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
    def missing(_: Bench) -> int:
        raise ModuleNotFoundError(f"No module named '{package}'", name=package)

    monkeypatch.setattr(Bench, "run", missing)
    assert main(["bench", "train"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert f"toptail[{extra}]" in message


def test_a_missing_module_of_our_own_is_a_bug_and_shows_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: Bench) -> int:
        raise ModuleNotFoundError("No module named 'toptail.gone'", name="toptail.gone")

    monkeypatch.setattr(Bench, "run", broken)
    with pytest.raises(ModuleNotFoundError):
        main(["bench", "audit"])


@pytest.mark.parametrize("arguments", [["--help"], ["audit", "--help"], ["train", "--help"]])
def test_help_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    assert "toptail" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"toptail {toptail.__version__}\n"
    assert toptail.__version__ == version("toptail")
