"""Columns are measured once, and again whenever scores, settings or code are others."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toptail
from paper.tests.semantics.small import WALKS, small_config
from toptail.io.json_files import write_json
from toptail_paper.semantics import measure, temperature
from toptail_paper.semantics import measure as jobs
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.draws import draw
from toptail_paper.semantics.measure import MEASURED, Estimates, code_hash
from toptail_paper.semantics.write import write_results
from toptail_paper.study.store import Stored

COLUMNS = ["a", "b@1", "b@2"]
SWEEP = ["binary_nce-0.05@0", "binary_nce-1@0"]
CONFIG = small_config(resamples=20)
TASK, SWEEP_TASK = Path("scores/walks"), Path("scores/temperature/walks")


def configure(out: Path, config: SemanticsConfig) -> None:
    write_json(out / "config.json", {"config": config.described()})


def score(folder: Path, column: str, seed: int) -> None:
    """Store made-up scores of one column, others for every seed."""
    draws, rng = Stored.read(folder / "draws.npz"), np.random.default_rng(seed)
    names = ("scores", "hard_negatives", "second_goals", "next_scores")
    arrays = {name: rng.normal(size=40) for name in names}
    arrays["negatives"] = rng.normal(size=(40, 5))
    header = {"column": column, "origin": {}, "step_reward": 0.0}
    header |= {"draws": draws.sha256, "proposals": None}
    Stored(header, arrays).write(folder / f"{column}.npz")


def judge(folder: Path, seed: int) -> None:
    draws, rng = Stored.read(folder / "draws.npz"), np.random.default_rng(seed)
    values = Stored({"draws": draws.sha256}, {"values": rng.normal(size=40)})
    values.write(folder / "values" / "euclidean.npz")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder of stored scores: one task, one judge, one sweep; nothing is measured yet."""
    path = tmp_path / "out"
    configure(path, CONFIG)
    for folder, columns in {TASK: COLUMNS, SWEEP_TASK: SWEEP}.items():
        draw(CONFIG, WALKS).write(path / folder / "draws.npz")
        for seed, column in enumerate(columns):
            score(path / folder, column, seed)
    judge(path / TASK, 7)
    return path


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns that were measured, in order."""
    seen: list[str] = []

    def counting(module: Any, name: str) -> None:
        inner = getattr(module, name)

        def outer(scores: Any, column: str, config: SemanticsConfig) -> Estimates:
            seen.append(column)
            result: Estimates = inner(scores, column, config)
            return result

        monkeypatch.setattr(module, name, outer)

    counting(measure, "measure")
    counting(temperature, "_measure")
    return seen


def made(out: Path) -> dict[str, str]:
    """Make tables and curves; returns what they say, by file."""
    write_results(out, workers=1)
    files = [*(out / "tables").glob("*.json"), out / "curves.json"]
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def check(out: Path, measured: list[str], expected: list[str]) -> dict[str, str]:
    """The next call measures these columns, and says what a folder without memory would say."""
    measured.clear()
    results = made(out)
    assert measured == expected
    forgetful = out.parent / "forgetful"
    shutil.copytree(out, forgetful, ignore=shutil.ignore_patterns(MEASURED, "tables"))
    assert made(forgetful) == results
    shutil.rmtree(forgetful)
    return results


def test_nothing_is_measured_twice_and_all_is_written_again(out: Path, measured: list[str]) -> None:
    first = check(out, measured, COLUMNS + SWEEP)
    assert {"main.json", "robustness.json", "temperature.json", "curves.json"} <= set(first)
    (out / "tables" / "main.json").unlink()
    (out / "curves.json").write_text("half a fi", encoding="utf-8")
    assert check(out, measured, []) == first
    shutil.rmtree(out / MEASURED)
    assert check(out, measured, COLUMNS + SWEEP) == first


def test_a_new_column_costs_only_itself(out: Path, measured: list[str]) -> None:
    made(out)
    score(out / TASK, "mine", 8)
    assert '"mine"' in check(out, measured, ["mine"])["main.json"]
    (out / TASK / "mine.npz").unlink()
    assert '"mine"' not in check(out, measured, [])["main.json"]


@pytest.mark.parametrize(("folder", "column"), [(TASK, "b@1"), (SWEEP_TASK, SWEEP[1])])
def test_other_scores_are_measured(
    out: Path, measured: list[str], folder: Path, column: str
) -> None:
    first = made(out)
    score(out / folder, column, 9)
    assert check(out, measured, [column]) != first


def test_another_judge_concerns_every_column_it_judges(out: Path, measured: list[str]) -> None:
    first = made(out)
    judge(out / TASK, 8)
    assert check(out, measured, COLUMNS)["value-oracle.json"] != first["value-oracle.json"]
    shutil.rmtree(out / TASK / "values")
    assert "value-oracle.json" not in check(out, measured, COLUMNS)


@pytest.mark.parametrize("change", [{"resamples": 21}, {"k": (1, 2)}, {"draw_seed": 1}])
def test_other_settings_are_measured(
    out: Path, measured: list[str], change: dict[str, Any]
) -> None:
    first = made(out)
    configure(out, small_config(**({"resamples": 20} | change)))
    assert check(out, measured, COLUMNS + SWEEP) != first


def test_which_columns_there_are_is_no_setting_of_one(out: Path, measured: list[str]) -> None:
    first = made(out)
    configure(out, small_config(resamples=20, tasks=("walks", "more"), seeds=(1, 2)))
    assert check(out, measured, []) == first


def test_a_damaged_result_is_measured_again(out: Path, measured: list[str]) -> None:
    first = made(out)
    kept = out / MEASURED / "walks"
    cut, swapped, changed = (kept / f"{column}.npz" for column in COLUMNS)
    cut.write_bytes(cut.read_bytes()[:1000])
    swapped.write_bytes(changed.read_bytes())  # whole, but of other scores
    with np.load(changed) as file:
        arrays = dict(file)
    arrays["tau"] = arrays["tau"] + 0.1
    np.savez(changed, allow_pickle=False, **arrays)
    assert check(out, measured, COLUMNS) == first
    assert check(out, measured, []) == first


def test_what_was_measured_before_a_stop_is_kept(
    out: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = measure.measure

    def stops(scores: Any, column: str, config: SemanticsConfig) -> Estimates:
        if column == "b@1":
            raise KeyboardInterrupt
        return inner(scores, column, config)

    with monkeypatch.context() as patch:
        patch.setattr(measure, "measure", stops)
        with pytest.raises(KeyboardInterrupt):
            made(out)
    check(out, measured, COLUMNS[1:] + SWEEP)


class TestCode:
    @pytest.fixture(autouse=True)
    def forget(self) -> Iterator[None]:
        code_hash.cache_clear()
        yield
        code_hash.cache_clear()

    @pytest.mark.parametrize("package", ["toptail", "numpy"])
    def test_another_version_measures_anew(
        self, out: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch, package: str
    ) -> None:
        first = made(out)
        monkeypatch.setattr(jobs, "installed", lambda n: "99" if n == package else version(n))
        code_hash.cache_clear()
        assert check(out, measured, COLUMNS + SWEEP) == first

    def test_a_changed_source_counts_where_it_measures(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package = tmp_path / "toptail"
        shutil.copytree(Path(toptail.__file__).parent, package)
        monkeypatch.setattr(toptail, "__file__", str(package / "__init__.py"))

        def changes(name: str) -> bool:
            code_hash.cache_clear()
            before, path = code_hash(), package / name
            path.write_text(path.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
            code_hash.cache_clear()
            return code_hash() != before

        assert changes("stats/rank.py")
        assert changes("audit/measure.py")
        assert not changes("report/figures.py")
