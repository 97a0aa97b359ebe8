"""A real process is killed at random moments and started again with the same command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.training.toy import toy_file
from toptail.lab.training.runs import find_runs, invalid_reason, logged_steps, read_lines

STEPS, LOG_EVERY, KILLS = 800, 5, 3


def command(task: Path, out: Path) -> list[str]:
    flags = f"--steps {STEPS} --checkpoint-every 10 --critics raw --seeds 42,43"
    flags += f" --set log_every={LOG_EVERY},batch_size=16,hidden=8,depth=1,embed_dim=4,ensemble=1"
    program = [sys.executable, "-m", "toptail", "train"]
    return [*program, "--task", str(task), "--out", str(out), *flags.split()]


def newest_step(metrics: Path) -> int:
    lines = read_lines(metrics)
    return int(lines[-1]["step"] or 0) if lines else 0


def start(task: Path, out: Path, keep_programs: bool) -> subprocess.Popen[bytes]:
    settings = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if keep_programs:
        settings["JAX_COMPILATION_CACHE_DIR"] = str(task.parent / "compiled")
        settings["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return subprocess.Popen(
        command(task, out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | settings,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    _, complaint = process.communicate(timeout=200)
    assert process.returncode == 0, complaint.decode()


def kill_on_the_way(task: Path, out: Path, step: int, delay: float) -> int:
    """Start, wait until it has logged a step and a moment more, kill -9; returns where it was."""
    metrics = out / "walks/raw/seed-42/metrics.jsonl"
    process = start(task, out, keep_programs=True)
    deadline = time.monotonic() + 120
    while newest_step(metrics) < step and process.poll() is None:
        assert time.monotonic() < deadline, "it does not get to train"
        time.sleep(0.002)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    _, complaint = process.communicate()
    assert process.returncode == -signal.SIGKILL, complaint.decode()
    return newest_step(metrics)


def files(out: Path) -> dict[str, bytes]:
    names = ("params.safetensors", "metrics.jsonl", "config.json", "curves.svg")
    found = (path for path in sorted(out.rglob("seed-*/*")) if path.name in names)
    return {str(path.relative_to(out)): path.read_bytes() for path in found}


@pytest.mark.smoke
@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    task = toy_file(tmp_path)
    # Kept programs save time here. A GPU needs them for equal bits, so there both sides share
    # them; a CPU compiles the same program every time, and this holds it to that.
    on_gpu = jax.default_backend() != "cpu"
    finish(start(task, tmp_path / "straight", keep_programs=on_gpu))
    rng = np.random.default_rng(int(time.time()))
    moments, reached = [], 0
    for _ in range(KILLS):
        step = reached + int(rng.integers(1, STEPS // (KILLS + 2)))
        moments.append((step, float(rng.uniform(0, 0.03))))
        reached = kill_on_the_way(task, tmp_path / "killed", *moments[-1])
    finish(start(task, tmp_path / "killed", keep_programs=True))

    assert files(tmp_path / "killed") == files(tmp_path / "straight"), f"killed at {moments}"
    runs = find_runs(tmp_path / "killed")
    assert [invalid_reason(run) for run in runs] == [None, None]
    # The first start may have been killed before its first checkpoint.
    assert len(runs[0].record["resumed"]) in (KILLS - 1, KILLS)
    steps = [line["step"] for line in read_lines(runs[0].folder / "metrics.jsonl")]
    assert steps == logged_steps(STEPS, LOG_EVERY)
    assert not list((tmp_path / "killed").rglob("checkpoint-*"))
    strays = [path for path in (tmp_path / "killed").rglob(".*") if path.name != ".lock"]
    assert not strays
