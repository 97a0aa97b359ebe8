"""A kept task: small, read like the study's own, and its tables made again to the last bit."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toptail
from paper.tests.selection.conftest import write_audit
from paper.tests.selection.stored_stages import Stages, paper_like
from tests.light import run_light
from toptail.errors import InputError
from toptail.io.json_files import write_json
from toptail.lab.store.units import KEPT, Stored
from toptail_paper.claims import annotate
from toptail_paper.selection import audits
from toptail_paper.selection.audits import to_pools
from toptail_paper.selection.contract import STUDY
from toptail_paper.selection.keep import ACTIONS, keepsake
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.study.kept import TWO_HEADS, Keeping, keep

RESAMPLES = 40
MAIN = {"tdq", "raw", "cosine", "hybrid"}
CONTROLS = {"td_bilinear", "nce_mlp"}

pytestmark = pytest.mark.usefixtures("blank_figures")


def finish(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audits, "write_report", write_audit)
        STUDY.finish(folder, annotate=annotate, resamples=RESAMPLES)


def results(folder: Path) -> dict[str, Any]:
    """Every stored result by name."""
    names = ["curves.json", "claims.json", "declared.json"]
    names += [f"{p.parent.name}/{p.name}" for p in folder.glob("tables/*.json")]
    names += [f"{p.parent.name}/{p.name}" for p in folder.glob("audit*/audit.json")]
    return {name: json.loads((folder / name).read_text()) for name in sorted(names)}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished folder; the raw critic has ties, and a row in which all scores are the same."""
    stages = paper_like(tmp_path_factory.mktemp("study"))
    scores = np.round(stages.scores["raw@43"], 1)
    scores[0, 0] = 1.0
    stages.score("raw@43", scores)
    write_json(stages.path / "config.json", {"config": asdict(stages.config)})
    finish(stages.path)
    return stages.path


@pytest.fixture(scope="module")
def kept(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study, kept with the paper's critics and two heads."""
    out = tmp_path_factory.mktemp("kept") / "task"
    keep(study, out, keepsake(study, Keeping(also=(TWO_HEADS,))))
    return out


def again(kept: Path, tmp_path: Path) -> Path:
    """A copy of a kept folder in which everything was made anew."""
    copy = Path(shutil.copytree(kept, tmp_path / "again"))
    finish(copy)
    return copy


def test_every_result_is_made_again_to_the_last_bit(
    study: Path, kept: Path, tmp_path: Path
) -> None:
    assert results(kept) == results(study)
    (kept_table,) = (kept / "tables").glob("function-class.json")
    copy = again(kept, tmp_path)
    assert results(copy) == results(study)
    rows = json.loads((copy / "tables" / "fixed-query.json").read_text())["rows"]["PointMaze"]
    assert set(rows) > MAIN | CONTROLS
    assert kept_table.is_file()


def test_rows_are_made_anew_where_there_are_scores_and_stay_where_there_are_none(
    kept: Path, tmp_path: Path
) -> None:
    path = kept / "tables" / "fixed-query.json"
    copy = Path(shutil.copytree(kept, tmp_path / "copy"))
    table = json.loads(path.read_text())
    for critic in ("tdq", "td_bilinear"):
        table["rows"]["PointMaze"][critic]["tau_b_64"]["mean"] = 7.0
    (copy / "tables" / "fixed-query.json").write_text(json.dumps(table))
    finish(copy)
    rows = json.loads((copy / "tables" / "fixed-query.json").read_text())["rows"]["PointMaze"]
    assert rows["tdq"]["tau_b_64"]["mean"] < 1
    assert rows["td_bilinear"]["tau_b_64"]["mean"] == 7.0


def test_a_folder_that_is_not_kept_keeps_no_rows_without_scores(
    study: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(study, tmp_path / "copy"))
    for seed in (42, 43, 44):
        (copy / "scores" / f"td_bilinear@{seed}.npz").unlink()
    finish(copy)
    rows = json.loads((copy / "tables" / "fixed-query.json").read_text())["rows"]["PointMaze"]
    assert set(rows.get("td_bilinear", {})) <= {"rollout_delta"}


def test_what_is_read_of_it(study: Path, kept: Path) -> None:
    before, after = read_selection(study), read_selection(kept)
    assert {name.partition("@")[0].partition(".")[0] for name in after.scores} == {
        *MAIN,
        "two_head_joint",
    }
    for name, scores in after.scores.items():
        own = before.scores[name]
        assert scores.dtype == np.float32
        np.testing.assert_array_equal(scores[..., -1], own[..., -1])
        np.testing.assert_array_equal(scores[..., :-1].max(-1), own[..., :-1].max(-1))
        stored = Stored.read(kept / "scores" / f"{name}.npz")
        error = stored.header[KEPT]["arrays"]["scores"]["error"]
        spread = np.ptp(own[..., :-1], axis=-1, keepdims=True)
        assert error < 0.05
        assert (np.abs(scores - own)[..., :-1] <= error * spread * (1 + 1e-6)).all()
        assert stored.sha256 == Stored.read(study / "scores" / f"{name}.npz").sha256
    for judge, values in before.values.items():
        np.testing.assert_array_equal(after.values[judge], values)
    np.testing.assert_array_equal(after.on_support, before.on_support)
    assert CandidatePools.read(kept / "pools.npz").actions.shape[-1] == 0  # kept on request alone


def test_a_kept_column_is_audited_like_any_table(study: Path, kept: Path) -> None:
    """Verdicts, values and order to the last bit; the scores that were picked, nearly."""
    columns = sorted(f"{critic}@{seed}" for critic in MAIN for seed in (42, 43, 44))

    def scorers(folder: Path) -> Any:
        pools = to_pools(folder, "geodesic")
        result = toptail.audit(pools, scores=columns, values="value_geodesic", resamples=100)
        return result.to_dict()["scorers"]

    after, before = scorers(kept), scorers(study)
    assert set(after) == MAIN
    for name, own in before.items():
        for part in ("value", "regret", "verdict", "tau_b", "off_support"):
            assert after[name][part] == own[part], part
        np.testing.assert_allclose(after[name]["selected_score"], own["selected_score"], atol=0.02)


def test_audits_of_a_kept_folder_stay(study: Path, kept: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(kept, tmp_path / "copy"))
    shutil.rmtree(copy / "audit_rollouts")
    finish(copy)
    for name in ("audit", "audit_geodesic", "audit_rollouts"):
        audit = f"{name}/audit.json"
        assert results(copy)[audit] == results(study)[audit]


def test_the_command_needs_neither_networks_nor_data(study: Path, tmp_path: Path) -> None:
    code = "import sys; from toptail_paper.cli import main; sys.exit(main(sys.argv[1:]))"
    printed = run_light(code, "study", "keep", study, "--out", tmp_path / "kept")
    assert "scores/tdq@42.npz" in printed
    assert "Left behind: scores of 12 columns." in printed
    assert set(read_selection(tmp_path / "kept").critics) == MAIN


def wide(tmp_path: Path) -> Stages:
    """A study whose actions have three numbers."""
    stages = Stages(tmp_path / "wide", per_group=2, pools=1, size=8)
    pools = Stored.read(stages.folder.pools)
    arrays = dict(pools.arrays)
    for name in ("actions", "logged"):
        arrays[name] = np.concatenate([arrays[name], arrays[name][..., :1]], axis=-1)
    stored = Stored(pools.header, arrays)
    stored.write(stages.folder.pools)
    stages.made_from["pools"] = stored.sha256
    stages.reference()
    stages.score("tdq@42", stages.value)
    stages.roll_out({"tdq": 0.01})
    return stages


def test_wide_actions_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    stages = wide(tmp_path)
    for also in ((), (ACTIONS,)):
        out = tmp_path / f"kept{len(also)}"
        keep(stages.path, out, keepsake(stages.path, Keeping(also=also)))
        data = read_selection(out)
        assert data.rollouts is not None  # it was made of these candidates, known or not
        pools = CandidatePools.read(out / "pools.npz")
        assert pools.has_actions == bool(also)
        assert pools.scored_shape == (6, 1, 9)
        assert pools.sha256 == CandidatePools.read(stages.folder.pools).sha256
    assert pools.with_logged().shape == (6, 1, 9, 3)
    without = CandidatePools.read(tmp_path / "kept0" / "pools.npz")
    with pytest.raises(InputError, match="kept without their actions"):
        without.with_logged()


def test_what_is_asked_for_must_be_there(study: Path) -> None:
    with pytest.raises(InputError, match=r"critics='mine': there is cosine, .*tdq"):
        keepsake(study, Keeping(critics=("mine",)))
    with pytest.raises(InputError, match="also='all': there is two-heads, actions to be kept"):
        keepsake(study, Keeping(also=("all",)))
    chosen = keepsake(study, Keeping(critics=("raw", "nce_mlp")))
    scores = [file.name for file in chosen.files if file.name.startswith("scores/")]
    assert scores == [f"scores/{c}@{s}.npz" for c in ("nce_mlp", "raw") for s in (42, 43, 44)]
    assert "scores/tdq@42.npz" in chosen.left_behind
