"""Results for other tools: data frames, trackers, pytest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

import toptail
from toptail import AuditResult, InputError, ScoredPools, builtin_pools
from toptail.report.trackers import metrics
from toptail.testing import assert_safe


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return toptail.audit(builtin_pools(200, 16), resamples=300)


class Recorder:
    """Whatever is called is written down."""

    def __init__(self, *methods: str) -> None:
        self.calls: list[tuple[Any, ...]] = []
        for name in methods:
            setattr(self, name, self._method(name))

    def _method(self, name: str) -> Any:
        return lambda *args, **named: self.calls.append((name, args, named))


def test_numbers_of_an_audit(result: AuditResult) -> None:
    found = metrics(result.to_dict())
    verdict = result.verdicts["cursed"]
    assert found["toptail/cursed/status"] == -1.0
    assert found["toptail/cursed/safe up to K"] == (verdict.k_safe_max or 0)
    assert found["toptail/perfect/captured"] == pytest.approx(1.0)
    assert found["toptail/noisy/value"] == result.scorers["noisy"].curve.value[-1]


def test_numbers_of_groups_picks_and_choices() -> None:
    rng = np.random.default_rng(0)
    value = rng.random((40, 4))
    pools = ScoredPools.from_arrays({"r@1": value, "r@2": value}, value, group=["a%", "b"] * 20)
    audited = toptail.audit(pools, resamples=100)
    found = metrics(audited.to_dict())
    value_there = audited.groups["a%"]["r"].curve.value[-1]
    assert found["toptail/group/a_/r/value"] == value_there != found["toptail/r/value"]
    picked = {"query": [1, 1, 2, 2], "selector": ["x", "y"] * 2, "value": [0.0, 1.0, 0.0, 1.0]}
    found = metrics(toptail.audit_picks(picked, resamples=100).to_dict())
    assert (found["toptail/x/value"], found["toptail/y/value"]) == (0.0, 1.0)
    choice = toptail.choose(builtin_pools(60, 8), scores="noisy", selectors="best", resamples=100)
    run = Recorder("log")
    choice.log(run)
    logged = run.calls[0][1][0]
    assert logged["toptail/choice/value"] == choice.value.value
    assert logged["toptail/choice/k"] == choice.selector.k


def test_a_run_with_log(result: AuditResult, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of trackio; one of W&B takes the page, too."""
    run = Recorder("log")
    result.log(run, step=3)
    assert run.calls == [("log", (metrics(result.to_dict()),), {"step": 3})]
    wandb = ModuleType("wandb")
    wandb.Html = lambda page, **_: page  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    other = type("Run", (Recorder,), {"__module__": "wandb.sdk"})("log")
    result.log(other)
    assert other.calls[0][1][0]["toptail/report"].startswith("<!doctype html>")


def test_mlflow_by_its_module_or_by_a_run(
    result: AuditResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Recorder("log_metrics", "log_dict", "log_text")
    monkeypatch.setitem(sys.modules, "mlflow", module)
    active = type("ActiveRun", (), {"__module__": "mlflow.tracking"})()
    for run in (module, active):
        module.calls.clear()
        result.log(run, step=1)
        names = [name for name, _, _ in module.calls]
        assert names == ["log_metrics", "log_dict", "log_text"]
        assert module.calls[2][1][1] == "toptail/report.html"


def test_tensorboard(result: AuditResult) -> None:
    writer = Recorder("add_scalar", "add_text")
    result.log(writer, step=2)
    scalars = {args[0]: args[1:] for name, args, _ in writer.calls if name == "add_scalar"}
    assert scalars["toptail/cursed/status"] == (-1.0, 2)
    assert writer.calls[-1][0] == "add_text"


def test_something_that_is_no_tracker(result: AuditResult) -> None:
    with pytest.raises(InputError, match="dict has neither log"):
        result.log({})


def test_a_data_frame(result: AuditResult) -> None:
    pandas = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["scorer"]) == list(result.scorers)
    assert len(result.to_pandas("curves")) == len(result.scorers) * len(result.k)


def test_without_pandas_it_is_asked_for(
    result: AuditResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    class Table:
        def to_pandas(self) -> None:
            import pandas  # noqa: F401

    monkeypatch.setattr(AuditResult, "table", lambda *_: Table())
    with pytest.raises(InputError, match="pip install pandas"):
        result.to_pandas()


def test_the_page_says_of_each_tool_who_checks_it() -> None:
    """What a test with the package is said to check has one, and what is stored is there."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "howto" / "integrations.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*) \|$", page.partition("## What was tried")[2], re.MULTILINE)[1:]
    found = {cells[0]: cells[-1].strip() for cells in (row.split(" | ") for row in rows)}
    words = ("make test", "with the package", "by hand", "stored", "not run")
    assert len(found) > 12
    assert set(found.values()) == set(words)
    tests = (root / "tests" / "results" / "test_real_tools.py").read_text("utf-8")
    for tool in (name for name, who in found.items() if who == "with the package"):
        for each in tool.split(", "):
            assert {"W&B": "wandb"}.get(each, each).lower() in tests.lower(), each
    folders = {"Inspect": "inspect", "lm-evaluation-harness": "lm_eval", "datasets": "huggingface"}
    stored = [name for name, who in found.items() if who == "stored"]
    assert stored == list(folders)
    for tool in stored:
        assert "Made by the tool itself" in (
            root / "tests" / "fixtures" / "foreign" / folders[tool] / "README.md"
        ).read_text("utf-8")


ACTION = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text())


@pytest.mark.parametrize(
    ("scores", "code"),
    [pytest.param("perfect", 0, marks=pytest.mark.slow), ("perfect,reversed", 1)],
)
def test_the_step_of_the_action_fails_as_the_audit_does(
    scores: str, code: int, tmp_path: Path
) -> None:
    """The step's script runs in Bash as GitHub runs it, with the inputs in its environment."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "audit")
    builtin_pools(200, 8).write(tmp_path / "t.parquet")
    inputs = {name: given.get("default", "") for name, given in ACTION["inputs"].items()}
    inputs |= {"table": "t.parquet", "scores": scores, "args": "--resamples 200"}
    assert set(re.findall(r"inputs\.([\w-]+)", json.dumps(ACTION["runs"]))) == set(inputs)
    found = {name: inputs[text.split(".")[1].split()[0]] for name, text in step["env"].items()}
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={**os.environ, **found, **files, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == "report=toptail-audit/report.html\n"
    assert "perfect" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text()


def test_a_safe_scorer_passes_and_an_unsafe_one_says_why(
    result: AuditResult, tmp_path: Path
) -> None:
    assert_safe(result, "perfect")
    assert_safe(result, "perfect", k=16)
    with pytest.raises(AssertionError) as failed:
        assert_safe(result, "cursed")
    assert "cursed is not shown to be safe up to best of 16:\n  unsafe" in str(failed.value)
    assert result.verdicts["cursed"].reason in str(failed.value)
    result.write(tmp_path / "out")
    assert_safe(tmp_path / "out", "perfect")


def test_safe_up_to_the_k_that_is_used(result: AuditResult) -> None:
    safe = result.verdicts["cursed"].k_safe_max
    assert safe is not None
    assert_safe(result, "cursed", k=safe)
    with pytest.raises(AssertionError, match=rf"\(safe up to best of {safe}\)"):
        assert_safe(result, "cursed", k=16)


def test_a_group_that_is_not_safe_fails() -> None:
    rng = np.random.default_rng(0)
    value = rng.random((120, 8))
    score = value.copy()
    score[60:] *= -1
    group = ["good"] * 60 + ["bad"] * 60
    mixed = toptail.audit(ScoredPools.from_arrays(score, value, group=group), resamples=200)
    with pytest.raises(AssertionError, match="unsafe in the group bad"):
        assert_safe(mixed, "score")


def test_what_was_not_audited_is_an_error(result: AuditResult) -> None:
    with pytest.raises(InputError, match="no scorer 'rm'; those are perfect, noisy"):
        assert_safe(result, "rm")
    with pytest.raises(InputError, match="k=64 was not audited"):
        assert_safe(result, "perfect", k=64)
