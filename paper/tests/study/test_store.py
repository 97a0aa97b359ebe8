"""Stored files: made once, found again, and refused or made anew where they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail_paper.study.store import Stale, Stored, columns, fitting, need

INPUTS: dict[str, Any] = {"draws": "ab", "sizes": (1, 2)}


def maker(number: float, made: list[float], inputs: dict[str, Any] = INPUTS) -> Any:
    """Makes a file of one number, and notes that it did."""

    def make() -> Stored:
        made.append(number)
        return Stored({**inputs, "more": "beside"}, {"x": np.array([number])})

    return make


def spoiled(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def changed(path: Path) -> None:
    write_arrays(path, {**read_arrays(path), "x": np.array([7.0])})


def of_other_inputs(path: Path) -> None:
    Stored({**INPUTS, "draws": "cd"}, {"x": np.array([7.0])}).write(path)


@pytest.mark.parametrize("stale", ["refuse", "remake"])
def test_what_fits_is_made_once(tmp_path: Path, stale: Stale) -> None:
    path, made = tmp_path / "deep" / "a.npz", list[float]()
    for _ in range(2):
        stored = need(path, INPUTS, maker(1.0, made), stale)
        assert stored.arrays["x"].tolist() == [1.0]
    assert made == [1.0]
    assert fitting(path, {"draws": "ab"}) is not None
    assert fitting(tmp_path / "b.npz", INPUTS) is None


@pytest.mark.parametrize("harm", [spoiled, changed, of_other_inputs])
def test_what_does_not_fit_is_refused_or_made_anew(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path, made = tmp_path / "a.npz", list[float]()
    need(path, INPUTS, maker(1.0, made))
    harm(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"a\.npz"):
        need(path, INPUTS, maker(2.0, made))
    assert (path.read_bytes(), made) == (before, [1.0])
    assert fitting(path, INPUTS, stale="remake") is None
    assert need(path, INPUTS, maker(3.0, made), "remake").arrays["x"].tolist() == [3.0]
    assert Stored.read(path).arrays["x"].tolist() == [3.0]


def test_a_refusal_names_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    of_other_inputs(path)
    with pytest.raises(InputError, match=r"something else .*: draws \(cd and ab\)\. Give what"):
        fitting(path, INPUTS)


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    Stored(INPUTS, {"x": np.arange(3), "a": np.zeros((2, 0))}).write(path)
    arrays = read_arrays(path)
    assert str(arrays["header"][0]) == "toptail-stored-1"
    arrays["header"] = np.array(["toptail-other-1", *arrays["header"][1:]])
    write_arrays(path, arrays)
    with pytest.raises(InputError, match="is not a file that a study stored"):
        Stored.read(path)


def test_columns_are_the_whole_files_of_a_folder(tmp_path: Path) -> None:
    assert columns(tmp_path / "nothing") == {}
    for name in ("b@2", "b@10", ".b@2.npz.x7", "a.f_cos@1"):
        Stored({}, {}).write(tmp_path / f"{name}.npz")
    (tmp_path / "notes.txt").write_text("no column")
    assert columns(tmp_path) == {
        name: tmp_path / f"{name}.npz" for name in ("a.f_cos@1", "b@10", "b@2")
    }
