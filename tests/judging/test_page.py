"""The commands of docs/howto/partial.md: plan, judge, audit, ask for more, as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import toptail
from toptail.cli import main
from toptail.results import read_audit

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "partial.md"
QUERIES, SIZE = 100, 32


def commands(page: str) -> list[list[str]]:
    """The first block of commands, without its comments."""
    block = re.search(r"```\n(toptail plan.*?)```", page, re.DOTALL)
    assert block is not None
    lines = [line.partition("#")[0].strip() for line in block[1].splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("toptail")]


def judge(plan: Path, answers: Path) -> None:
    """Answer what a plan asks: the value of a candidate is its place."""
    rows = pq.read_table(plan).select(["query", "candidate"])
    value = rows["candidate"].to_numpy() / SIZE
    pa.csv.write_csv(rows.append_column("value", pa.array(value)), answers)


@pytest.mark.slow
def test_the_four_steps_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    place = np.tile(np.arange(SIZE), QUERIES)
    scored = {"query": np.repeat(np.arange(QUERIES), SIZE), "score": place + rng.normal(size=3200)}
    pq.write_table(pa.table(scored), "scores.parquet")  # a table without values
    plan, audit, more, again = commands(PAGE.read_text(encoding="utf-8"))
    assert [each[0] for each in (plan, audit, more, again)] == ["plan", "audit", "plan", "audit"]
    assert main(plan) == 0
    first = pq.read_table("to_judge.parquet").num_rows
    judge(Path("to_judge.parquet"), Path("judged.csv"))
    assert main([*audit, "--resamples", "200"]) == 0
    look = read_audit(Path("toptail-audit"))["judging"]["look"]
    assert (look["at"], look["of"]) == (1, 3)
    assert main(more) == 0
    assert pq.read_table("to_judge.parquet").num_rows > first
    judge(Path("to_judge.parquet"), Path("judged.csv"))
    assert main([*again, "--resamples", "200"]) == 0
    found = toptail.AuditResult.read("toptail-audit")
    assert found.to_dict()["judging"]["look"]["at"] == 2
    assert found.verdicts["score"].status == "safe"
    assert "Look 2 of 3" in capsys.readouterr().out
