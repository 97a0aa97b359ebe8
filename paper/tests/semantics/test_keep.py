"""A kept study: small, read like the study's own, and its tables made again to the last bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.semantics.fake_runs import write_run
from paper.tests.semantics.small import small_config, walks_file
from paper.tests.semantics.test_scoring import MODEL, USER
from tests.training.toy import toy_config
from toptail.errors import InputError
from toptail.lab.store.units import KEPT, Stored
from toptail.progress import no_tick
from toptail_paper.claims import annotate
from toptail_paper.semantics.keep import SEEN_NEGATIVES, SUPPORT, keepsake
from toptail_paper.semantics.load import read_tasks
from toptail_paper.semantics.study import STUDY
from toptail_paper.study.kept import Keeping, keep
from toptail_paper.study.study import Request

pytestmark = pytest.mark.usefixtures("blank_figures")


def finish(folder: Path) -> None:
    STUDY.finish(folder, annotate=annotate, workers=1)


def results(folder: Path) -> dict[str, Any]:
    """Every stored result by name."""
    names = ["curves.json", "claims.json", *(f"tables/{p.name}" for p in folder.glob("tables/*"))]
    return {name: json.loads((folder / name).read_text()) for name in sorted(names)}


def without_profiles(curves: dict[str, Any]) -> dict[str, Any]:
    """All but what goes by the mean score of other goals, which is kept nearly."""
    tasks = {
        task: {s: {n: c for n, c in row.items() if n != "profile"} for s, row in rows.items()}
        for task, rows in curves["tasks"].items()
    }
    return {**curves, "tasks": tasks}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Critics of the paper, a control and one's own, a judge, behaviour models, a sweep."""
    home = tmp_path_factory.mktemp("study")
    walks_file(home)
    (home / "mine.py").write_text(USER)
    for critic in ("raw", "cosine", "td_bilinear"):
        write_run(toy_config(critic=critic), 42, home / "runs")
    write_run(toy_config(critic="tdq"), 7, home / "runs")
    for seed in (42, 13):
        write_run(MODEL, seed, home / "runs")
    write_run(toy_config(critic="cosine"), 0, home / "runs/temperature/binary_nce-0.05")
    config = small_config(str(home / "walks.npz"), resamples=20)
    scorers = [f"mine={home / 'mine.py'}:make_score"]
    STUDY.steps(Request(config, home / "out", "made up", home / "runs", scorers), no_tick)
    finish(home / "out")
    return home / "out"


@pytest.fixture(scope="module", params=[(), (SUPPORT, SEEN_NEGATIVES)], ids=["least", "most"])
def kept(request: pytest.FixtureRequest, study: Path) -> Path:
    """The study as it is kept unless asked for more, and with all that can be asked for."""
    out = study.parent / f"kept{len(request.param)}"
    keep(study, out, keepsake(study, Keeping(also=request.param)))
    return out


def test_every_result_is_made_again(study: Path, kept: Path, tmp_path: Path) -> None:
    assert results(kept) == results(study)
    copy = Path(shutil.copytree(kept, tmp_path / "copy"))
    finish(copy)
    before, after = results(study), results(copy)
    curves, again = before.pop("curves.json"), after.pop("curves.json")
    assert set(before) == set(after)
    for name, content in before.items():
        assert after[name] == content, name
    assert without_profiles(again) == without_profiles(curves)
    rows = before["tables/main.json"]["rows"]["walks"]
    assert {"raw", "cosine", "td_bilinear", "mine"} <= set(rows)
    assert {"tables/temperature.json", "tables/robustness.json", "tables/seen.json"} <= set(after)


def test_what_could_be_made_was_made(kept: Path, tmp_path: Path) -> None:
    """Spoiled numbers come back where there are scores of them, and only there."""
    copy = Path(shutil.copytree(kept, tmp_path / "copy"))
    for path in (copy / "tables").glob("*.json"):
        table = json.loads(path.read_text())
        for rows in table["rows"].values():
            for cells in rows.values():
                for cell in cells.values():
                    cell["mean"] = 77.0
        path.write_text(json.dumps(table))
    finish(copy)
    spoiled = {
        (name, row, metric)
        for name, table in results(copy).items()
        if name.startswith("tables/")
        for rows in table["rows"].values()
        for row, cells in rows.items()
        for metric, cell in cells.items()
        if cell["mean"] == 77.0
    }
    stay = {(name, metric) for name, row, metric in spoiled if "td_bilinear" not in row}
    gone = {(name, metric) for name, metric in stay if not name.endswith("temperature.json")}
    if kept.name == "kept0":
        assert ("tables/seen.json", "auc_seen") in gone
        assert {n for n, _ in gone} == {"tables/seen.json", "tables/robustness.json"}
    else:
        assert not gone
    assert ("tables/main.json", "td_bilinear", "tau") in spoiled
    assert len(stay) > len(gone)


def test_what_is_read_of_it(study: Path, kept: Path) -> None:
    (before,), (after,) = (read_tasks(folder) for folder in (study, kept))
    assert set(after.triples.scores) == {"raw@42", "cosine@42", "mine"}
    assert after.triples.data_sha256 == before.triples.data_sha256
    assert {c: after.made_from[c] for c in after.made_from} == {
        c: before.made_from[c] for c in after.made_from
    }
    for column in after.triples.scores:
        for exact in ("scores", "next_scores", "query_means"):
            own = getattr(before.triples, exact)[column]
            np.testing.assert_array_equal(getattr(after.triples, exact)[column], own)
        scores = before.triples.scores[column]
        own, new = (t.triples.negatives[column][..., None] for t in (before, after))
        np.testing.assert_array_equal(own < scores, new < scores)
        np.testing.assert_array_equal(own == scores, new == scores)
        assert abs(new.mean() - own.mean()) < 0.002 * np.ptp(own)
    np.testing.assert_array_equal(after.triples.values["oracle"], before.triples.values["oracle"])
    assert after.loss_gaps == before.loss_gaps
    proposals = Stored.read(kept / "scores" / "walks" / "proposals.npz")
    assert not proposals.arrays
    assert "centering" in proposals.header[KEPT]["left_out"]


def test_a_kept_task_takes_no_new_scores_and_another_task_is_welcome(
    study: Path, kept: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(kept, tmp_path / "copy"))
    home, before = study.parent, {p: p.read_bytes() for p in copy.rglob("*.npz")}
    more = [f"more={home / 'mine.py'}:make_score"]
    config = small_config(str(home / "walks.npz"), resamples=20)
    with pytest.raises(InputError, match=r"walks was kept, .* score in the study's own folder"):
        STUDY.steps(Request(config, copy, "made up", None, more), no_tick)
    for name in ("walks.npz", "walks-val.npz"):
        shutil.copy(home / name, tmp_path / name.replace("walks", "other"))
    config = small_config(str(tmp_path / "other.npz"), resamples=20)
    STUDY.steps(Request(config, copy, "made up", None, more), no_tick)
    finish(copy)
    assert {p: p.read_bytes() for p in before} == before
    own, now = (results(folder)["tables/main.json"]["rows"] for folder in (study, copy))
    assert now["walks"] == own["walks"]
    assert set(now["other"]) == {"more"}
    keep(copy, tmp_path / "both", keepsake(copy, Keeping(also=(SUPPORT, SEEN_NEGATIVES))))
    assert [task.task for task in read_tasks(tmp_path / "both")] == ["other", "walks"]


def test_a_kept_folder_can_be_kept_again_with_less(kept: Path, tmp_path: Path) -> None:
    keep(kept, tmp_path / "same", keepsake(kept, Keeping(also=(SUPPORT, SEEN_NEGATIVES))))
    for path in kept.rglob("*.npz"):
        assert (tmp_path / "same" / path.relative_to(kept)).read_bytes() == path.read_bytes()
    less = keepsake(kept, Keeping(critics=("raw",)))
    keep(kept, tmp_path / "less", less)
    (task,) = read_tasks(tmp_path / "less")
    (own,) = read_tasks(kept)
    assert set(task.triples.scores) == {"raw@42"}
    np.testing.assert_array_equal(task.triples.negatives["raw@42"], own.triples.negatives["raw@42"])
    manifest = json.loads((tmp_path / "less" / "kept.json").read_text())
    left = {name.rpartition("/")[2] for name in manifest["left_behind"]}
    assert left == {"td_bilinear@42.npz", "binary_nce-0.05@0.npz", "cosine@42.npz", "mine.npz"}
