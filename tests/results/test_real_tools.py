"""Trackers and data frames as they are: each test needs the real package, offline, or is skipped.

pip install wandb mlflow-skinny trackio tensorboardX pandas polars duckdb transformers torch
pytest tests/results/test_real_tools.py -m slow
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toptail
from toptail import AuditResult, builtin_pools
from toptail.report.trackers import metrics

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return toptail.audit(builtin_pools(100, 8), resamples=300)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_DIR": str(tmp_path),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_TRACKING_URI": (tmp_path / "ml").as_uri(),
        "TRACKIO_DIR": str(tmp_path / "trackio"),
        "HF_HUB_OFFLINE": "1",
    }.items():
        monkeypatch.setenv(name, text)


def test_wandb(result: AuditResult, tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb")
    run = wandb.init(project="toptail")
    result.log(run, step=1)
    run.finish()
    (stored,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert all(name.encode() in stored.read_bytes() for name in metrics(result.to_dict()))
    assert list(tmp_path.glob("**/media/html/toptail/*.html"))


def test_mlflow(result: AuditResult, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    with mlflow.start_run() as run:
        result.log(mlflow, step=1)
    stored = mlflow.get_run(run.info.run_id).data.metrics
    assert stored == pytest.approx(metrics(result.to_dict()))
    assert list(tmp_path.glob("ml/**/toptail/report.html"))


def test_trackio(result: AuditResult) -> None:
    trackio = pytest.importorskip("trackio")
    run = trackio.init(project="toptail")
    result.log(run)
    trackio.finish()


def test_tensorboard(result: AuditResult, tmp_path: Path) -> None:
    writers = pytest.importorskip("tensorboardX")
    writer = writers.SummaryWriter(str(tmp_path / "tb"))
    result.log(writer, step=1)
    writer.close()
    (events,) = (tmp_path / "tb").iterdir()
    assert b"toptail/cursed/status" in events.read_bytes()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames(package: str) -> None:
    frames: Any = pytest.importorskip(package)
    rows = [{"query": q, "rm": c - 1.5, "correct": c > 1} for q in range(60) for c in range(4)]
    assert toptail.read(frames.DataFrame(rows)) == toptail.read(rows)


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i // 4 as query, i % 4 - 1.5 as rm, i % 4 > 1 as correct from "
                          "range(240) t(i)")  # fmt: skip
    rows = [{"query": q, "rm": c - 1.5, "correct": c > 1} for q in range(60) for c in range(4)]
    assert toptail.read(relation).queries == toptail.read(rows).queries


def test_a_model_with_random_weights_reaches_a_verdict(tmp_path: Path) -> None:
    for package in ("torch", "transformers"):
        pytest.importorskip(package)
    program = [sys.executable, str(ROOT / "examples" / "sample_and_audit.py")]
    ran = subprocess.run(
        [*program, "--random-weights", "--out", str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (verdict,) = AuditResult.read(tmp_path / "out").verdicts.values()
    assert verdict.status == "no gain", ran.stdout
