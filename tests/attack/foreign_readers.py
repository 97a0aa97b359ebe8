"""Readers of other tools' files, each with a sound one made by the tool or from its format."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.attack.forks import ROOT

_FOREIGN: Final = ROOT / "tests" / "fixtures" / "foreign"


def _copied(source: str) -> Callable[[Path], None]:
    """Copy a fixture's file, or all that is in its folder."""

    def make(folder: Path) -> None:
        place = _FOREIGN / source
        if place.is_dir():
            shutil.copytree(place, folder, dirs_exist_ok=True)
        else:
            shutil.copy(place, folder)

    return make


def _shortened(source: str, lines: int) -> Callable[[Path], None]:
    """Write the first lines of a fixture's file."""

    def make(folder: Path) -> None:
        kept = (_FOREIGN / source).read_text().splitlines()[:lines]
        (folder / Path(source).name).write_text("\n".join(kept) + "\n")

    return make


def _pools(name: str, **columns: Any) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        from toptail import ScoredPools

        return ScoredPools.read(folder / name, **columns)

    return read


def _scores(text: str, width: int) -> Callable[[Path], object]:
    """Load a critic and let it score rows."""

    def read(folder: Path) -> object:
        from toptail.lab.scorers.user import user_scorers

        kind, _, name = text.partition(":")
        (scorer,) = user_scorers([f"mine={kind}:{folder / name}"], reserved=())
        return scorer.score(*np.zeros((3, 4, width), np.float32))

    return read


def _program(name: str) -> Callable[[Path], object]:
    """Look through a program of PyTorch's, which need not be installed for that."""

    def read(folder: Path) -> object:
        from toptail.errors import refusing
        from toptail.lab.foreign.torchscript import read_program, written_anew

        path = folder / name
        with refusing(path, "is no program of PyTorch that is read here"):
            if path.suffix == ".pt2":
                return read_program(path)
            return written_anew(path, {"save", "from_file"}.__contains__)

    return read


def _imported(folder: Path) -> object:
    """Import a data set beside itself, anew each time."""
    from toptail.lab.foreign.datasets import import_data

    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    return import_data(f"minari:{folder}", out / "x.npz")


FOREIGN: Final[tuple[tuple[str, str, Callable[[Path], None], Callable[[Path], object]], ...]] = (
    (
        "log of lm-eval",
        "samples_sums.jsonl",
        _shortened("lm_eval/samples_sums.jsonl", 4),
        _pools("samples_sums.jsonl"),
    ),
    ("log of Inspect", "sums.eval", _copied("inspect/sums.eval"), _pools("sums.eval")),
    (
        "log of Inspect in JSON",
        "sums.json",
        _copied("inspect/sums.json"),
        _pools("sums.json"),
    ),
    (
        "scores of RewardBench",
        "scores.json",
        _copied("rewardbench/scores.json"),
        _pools("scores.json"),
    ),
    (
        "data set's state",
        "state.json",
        _copied("huggingface/single"),
        _pools(".", query="prompt"),
    ),
    (
        "data set's rows",
        "data-00000-of-00002.arrow",
        _copied("huggingface/single"),
        _pools(".", query="prompt"),
    ),
    (
        "checkpoint of OGBench",
        "params_20.pkl",
        _copied("ogbench/gciql/sd000_20250101_000000"),
        _scores("ogbench:params_20.pkl", 2),
    ),
    (
        "flags of OGBench",
        "flags.json",
        _copied("ogbench/gciql/sd000_20250101_000000"),
        _scores("ogbench:params_20.pkl", 2),
    ),
    ("model of d3rlpy", "cql.d3", _copied("d3rlpy/cql.d3"), _scores("d3rlpy:cql.d3", 2)),
    ("script of PyTorch", "traced.pt", _copied("torch/traced.pt"), _program("traced.pt")),
    (
        "exported program of PyTorch",
        "exported.pt2",
        _copied("torch/exported.pt2"),
        _program("exported.pt2"),
    ),
    ("metadata of Minari", "data/metadata.json", _copied("minari/arrow"), _imported),
    ("episode of Minari", "data/2/part-0.arrow", _copied("minari/arrow"), _imported),
)
"""What it is called in the figures, the file that is broken, who makes it, and who reads it."""
