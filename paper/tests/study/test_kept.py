"""A kept folder: written whole or not at all, never with less in silence, and merged by cells."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toptail
from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.json_files import write_json
from toptail.lab.store.compact import Among, InOrder, Way
from toptail.lab.store.units import KEPT, Stored, fitting
from toptail_paper.cli import main
from toptail_paper.study.kept import (
    MANIFEST,
    Keeping,
    Keepsake,
    KeptFile,
    critic_of,
    keep,
    merged,
    with_kept,
    with_kept_tables,
)
from toptail_paper.study.study import studies, study_in

RESULTS = Path(toptail.__file__).parents[2] / "paper" / "results"
RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(20, 8)).astype(np.float32)


def cell(mean: float, *seeds: int) -> dict[str, Any]:
    return {"mean": mean, "seeds": {str(seed): mean for seed in seeds}}


def table(**rows: dict[str, Any]) -> dict[str, Any]:
    return {"label": "tab:a", "rows": {"PointMaze": rows}, "paper": {}}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder of a study, with two columns."""
    folder = tmp_path / "study"
    for column in ("a", "b"):
        Stored({"draws": "x"}, {"scores": SCORES, "more": SCORES}).write(
            folder / "scores" / f"{column}.npz"
        )
    write_json(folder / "tables" / "t.json", table(a={"m": cell(1, 42)}, b={"m": cell(2, 42)}))
    write_json(folder / "config.json", {"config": {}})
    (folder / "report.html").write_text("not kept")
    return folder


def both(*columns: str, left_out: tuple[str, ...] = ()) -> Keepsake:
    files = [
        KeptFile(f"scores/{c}.npz", {"scores": InOrder(8)}, frozenset(left_out)) for c in columns
    ]
    gone = {"a", "b"} - set(columns)
    return Keepsake(files, [f"scores/{c}.npz" for c in gone])


def files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


class TestStored:
    def test_a_small_file_is_read_as_any_other(self, tmp_path: Path) -> None:
        header = {"draws": "ab", "task": "t"}
        arrays: dict[str, Any] = {"scores": SCORES, "sides": SCORES[:, :3] / 2}
        arrays |= {"rows": np.arange(20), "gone": np.zeros(3)}
        stored = Stored(header, arrays)
        ways: dict[str, Way] = {"sides": Among("scores"), "not there": InOrder(3)}
        stored.keep(tmp_path / "a.npz", ways, ("gone", "neither"), by="hand")
        back = Stored.read(tmp_path / "a.npz", {"draws": "ab"})
        assert back.sha256 == stored.sha256
        assert back.header[KEPT]["left_out"] == ["gone"]
        assert back.header[KEPT]["by"] == "hand"
        assert {name: back.header[name] for name in header} == header
        assert set(back.arrays) == {"scores", "sides", "rows"}
        np.testing.assert_array_equal(back.arrays["scores"], SCORES)
        np.testing.assert_array_equal(back.arrays["rows"], np.arange(20))
        assert back.header[KEPT]["arrays"]["sides"]["error"] <= 1 / 64 + 1e-6
        assert fitting(tmp_path / "a.npz", {"draws": "cd"}, "remake") is None

    @pytest.mark.parametrize("part", ["scores.low", "sides.codes.planes"])
    def test_a_changed_one_is_refused(self, tmp_path: Path, part: str) -> None:
        path = tmp_path / "a.npz"
        arrays: dict[str, Any] = {"scores": SCORES, "sides": SCORES[:, :3] / 2}
        Stored({}, arrays).keep(path, {"sides": Among("scores")})
        content: dict[str, Any] = dict(read_arrays(path))
        write_arrays(path, {**content, part: np.full_like(content[part], 255)})
        with pytest.raises(InputError, match=r"a\.npz .* changed after it was written"):
            Stored.read(path)

    def test_errors_of_keeping_twice_add_up(self, tmp_path: Path) -> None:
        Stored({}, {"scores": SCORES, "x": SCORES}).keep(tmp_path / "a.npz", {"scores": InOrder(6)})
        once = Stored.read(tmp_path / "a.npz")
        once.keep(tmp_path / "b.npz", {"scores": InOrder(4)}, ("x",))
        twice = Stored.read(tmp_path / "b.npz")
        first, second = (x.header[KEPT]["arrays"]["scores"]["error"] for x in (once, twice))
        spread = np.ptp(SCORES, axis=1)
        change = np.abs(twice.arrays["scores"] - SCORES).max(axis=1)
        assert first < second
        assert (change <= second * spread * (1 + 1e-6)).all()
        assert twice.header[KEPT]["left_out"] == ["x"]


class TestKeep:
    def test_results_and_arrays_are_kept_and_the_rest_is_not(self, study: Path) -> None:
        out = study.parent / "kept"
        sizes = keep(study, out, both("a"))
        assert set(sizes) == {"config.json", "tables/t.json", "scores/a.npz"}
        assert set(files(out)) == {*sizes, MANIFEST}
        assert sizes == {
            name: len(content) for name, content in files(out).items() if name in sizes
        }
        manifest = json.loads((out / MANIFEST).read_text())
        assert manifest["left_behind"] == ["scores/b.npz"]
        assert manifest["files"]["scores/a.npz"]["arrays"] == ["more", "scores"]

    def test_large_files_are_refused_before_anything_is_written(self, study: Path) -> None:
        out = study.parent / "kept"
        with pytest.raises(InputError, match=r"scores/a.npz would have 0\.0 MB, and a kept file"):
            keep(study, out, both("a"), largest=600)
        assert not out.exists()
        assert [path.name for path in study.parent.iterdir()] == ["study"]

    @pytest.mark.parametrize(
        ("less", "what"),
        [
            (both("a"), r"scores/b\.npz"),
            (both("a", "b", left_out=("more",)), r"'more' of scores/a\.npz"),
        ],
    )
    def test_less_than_before_must_be_asked_for(
        self, study: Path, less: Keepsake, what: str
    ) -> None:
        out = study.parent / "kept"
        keep(study, out, both("a", "b"))
        (out / "notes.txt").write_text("mine")
        before = files(out)
        with pytest.raises(InputError, match=f"has more than would be kept now, .*{what}"):
            keep(study, out, less)
        assert files(out) == before
        keep(study, out, less, replace=True)
        kept = {f"scores/{name}.npz" for name in ("a", "b")} & set(files(out))
        assert kept == {file.name for file in less.files}
        assert (out / "notes.txt").read_text() == "mine"

    def test_rows_of_tables_are_not_lost_either(self, study: Path) -> None:
        out = study.parent / "results"
        write_json(out / "tables" / "t.json", table(c={"m": cell(1, 42)}))
        with pytest.raises(InputError, match=r"'c' on PointMaze of tables/t\.json.*replace"):
            keep(study, out, both("a", "b"))
        keep(study, out, both("a", "b"), replace=True)
        assert set(json.loads((out / "tables/t.json").read_text())["rows"]["PointMaze"]) == {
            "a",
            "b",
        }

    def test_more_is_welcome(self, study: Path) -> None:
        out = study.parent / "kept"
        keep(study, out, both("a", left_out=("more",)))
        keep(study, out, both("a", "b"))
        assert json.loads((out / MANIFEST).read_text())["left_behind"] == []

    def test_nothing_and_itself_are_refused(self, study: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="is the study's own folder"):
            keep(study, study, both("a"))
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="there is nothing to keep"):
            keep(tmp_path / "empty", tmp_path / "out", Keepsake())

    def test_the_critic_of_a_column(self) -> None:
        assert critic_of("two_head_joint.f_cos@42") == "two_head_joint"
        own, more = Keeping(), Keeping(also=("two-heads",))
        columns = ("tdq@42", "mine", "td_bilinear@42", "two_head_joint.f_cos@42")
        assert [own.wants(c) for c in columns] == [True, True, False, False]
        assert [more.wants(c) for c in columns] == [True, True, False, True]
        assert [Keeping(critics=("mine",)).wants(c) for c in columns] == [False, True, False, False]


class TestMerged:
    def test_cells_that_could_not_be_made_stay(self) -> None:
        before = table(
            a={"m": cell(1, 42, 43), "n": cell(2, 42)}, b={"m": cell(3, 42)}, c={"m": cell(4, 42)}
        )
        before |= {"circular": ["a", "b"], "k": [1, 2, 4], "notes": ["old"], "paper": {"x": 1}}
        after = table(a={"m": cell(7, 42), "n": cell(8, 42, 43)}, c={"m": cell(9, 42)})
        after |= {"circular": ["a"], "k": [1, 2], "notes": ["new"], "more": 1}
        found = merged(before, after)
        rows = found["rows"]["PointMaze"]
        assert rows["a"] == {"m": cell(1, 42, 43), "n": cell(8, 42, 43)}
        assert (rows["b"], rows["c"]) == ({"m": cell(3, 42)}, {"m": cell(9, 42)})
        assert list(rows) == ["a", "b", "c"]
        assert (found["circular"], found["k"]) == (["a", "b"], [1, 2])
        assert (found["notes"], found["more"]) == (["new"], 1)
        assert merged({}, after) == after
        assert merged(before, {}) == before

    def test_a_task_that_came_later_stands_where_the_paper_has_it(self) -> None:
        found = merged({"PointMaze": {}, "Scene": {}}, {"AntMaze": {}, "Scene": {}})
        assert list(found) == ["PointMaze", "AntMaze", "Scene"]

    def test_only_a_kept_folder_has_anything_that_stays(self, tmp_path: Path) -> None:
        old, new = table(a={"m": cell(1, 42)}), table(b={"m": cell(2, 42)})
        write_json(tmp_path / "tables" / "t.json", old)
        write_json(tmp_path / "tables" / "gone.json", old)
        write_json(tmp_path / "curves.json", {"a": 1})
        assert with_kept_tables(tmp_path, {"t": new}) == {"t": new}
        assert with_kept(tmp_path / "curves.json", {"b": 2}) == {"b": 2}
        write_json(tmp_path / MANIFEST, {"files": {}, "left_behind": []})
        tables = with_kept_tables(tmp_path, {"t": new})
        assert set(tables["t"]["rows"]["PointMaze"]) == {"a", "b"}
        assert tables["gone"] == old
        assert with_kept(tmp_path / "curves.json", {"b": 2}) == {"a": 1, "b": 2}
        assert with_kept(tmp_path / "none.json", {"b": 2}) == {"b": 2}


class TestCommand:
    @pytest.mark.parametrize(
        ("folder", "name"),
        [
            ("controlled", "controlled"),
            ("semantics", "semantics"),
            ("selection/pointmaze-medium-navigate-v0", "selection"),
        ],
    )
    def test_every_study_in_the_results_is_known(self, folder: str, name: str) -> None:
        assert study_in(RESULTS / folder) is studies()[name]

    def test_a_stored_study_is_kept(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source = Path(shutil.copytree(RESULTS / "controlled", tmp_path / "controlled"))
        out = tmp_path / "kept"
        assert main(["study", "keep", str(source), "--out", str(out)]) == 0
        printed = capsys.readouterr().out
        assert "tables/choice.json" in printed
        assert f"files: {out}" in printed
        assert (out / "theory.json").read_bytes() == (source / "theory.json").read_bytes()

    def test_mistakes_are_named(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = str(tmp_path / "out")
        assert main(["study", "keep", str(tmp_path), "--out", out]) == 2
        assert "is not the folder of a study" in capsys.readouterr().err
        controlled = str(RESULTS / "controlled")
        assert main(["study", "keep", controlled, "--out", out, "--also", "all"]) == 2
        assert "--also all: there is two-heads to be kept" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
