"""Arguments are checked in the library, in the words of who asked: Python or the command line."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import toptail
from tests import flat
from toptail import InputError, builtin_pools
from toptail.cli import main
from toptail.errors import option

POOLS = builtin_pools(6, 4)
NAN, INF = float("nan"), float("inf")
BAD: dict[str, list[Any]] = {
    "level": [1.5, 0, NAN, True, "0.95", None],
    "delta": [-0.1, INF, False],
    "rho": [10, NAN],
    "seed": [-1, 1.5],
    "resamples": [99, 1e4, "many"],
    "k": [[], [0], [1.5], [True], "12", 4],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_audit_refuses_in_one_sentence_that_names_the_argument(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}=") as refused:
        flat.audit(POOLS, **{name: value})
    text = str(refused.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "--" not in text


def test_numbers_of_numpy_are_numbers() -> None:
    given: dict[str, Any] = {"k": np.array([1, 2]), "seed": np.int64(3), "resamples": np.int32(200)}
    given |= {"level": np.float64(0.9), "delta": np.float32(0)}
    result = flat.audit(POOLS, **given)
    assert result.k == [1, 2, 4]
    assert result.to_dict()["record"]["seed"] == 3


TWO_VALUES: dict[str, list[Any]] = {
    "query": [1, 1],
    "s": [1.0, 2.0],
    "value_a": [0, 1],
    "value_b": [0, 1],
}


def test_an_error_keeps_both_spellings_between_processes() -> None:
    error = pickle.loads(pickle.dumps(InputError(f"Choose with {option('fail_on', ['a', 'b'])}.")))
    assert str(error) == "Choose with fail_on=['a', 'b']."
    assert error.for_command() == "Choose with --fail-on a,b."


def test_one_name_where_several_are_possible_is_one_name() -> None:
    columns = {"query": [1, 1], "rm_logit": [1.0, 2.0], "other": [1.0, 2.0], "value": [0, 1]}
    result = flat.audit(columns, scores="rm_logit", resamples=100)
    assert list(result.verdicts) == ["rm_logit"]
    with pytest.raises(InputError, match="no score column 'x'"):
        flat.audit(columns, scores="x")
    with pytest.raises(InputError, match="at least two different value columns"):
        flat.audit(TWO_VALUES, replicates="value_a")


def test_the_value_to_judge_by_is_one() -> None:
    with pytest.raises(InputError, match=r"values=\['value_a', 'value_b'\] must name the one"):
        flat.audit(TWO_VALUES, values=["value_a", "value_b"])
    with pytest.raises(InputError, match=r"either values=... or replicates=..., not both"):
        flat.audit(TWO_VALUES, values="s", replicates=["value_a", "value_b"])
    assert flat.audit(TWO_VALUES, values="value_b").to_dict()["value"] == "value_b"


def test_names_are_given_once_and_reach_the_report() -> None:
    columns = {"prompt": [1, 1, 2, 2], "s": [1.0, 2.0, 1.0, 2.0], "value": [0, 1, 0, 1]}
    columns |= {"kind": ["a", "a", "b", "b"], "document": [5, 5, 6, 6], "id": [1, 2, 1, 2]}
    result = flat.audit(
        columns, query="prompt", group="kind", cluster="document", candidate="id", scores="s"
    )
    content = result.to_dict()
    assert (content["group_column"], content["cluster_column"]) == ("kind", "document")
    assert list(result.groups) == ["a", "b"]


FLAT = {"query": [1, 1, 2, 2], "s": [1.0, 2.0, 1.0, 2.0], "value": [0.5] * 4}


def test_a_check_that_cannot_be_made_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table(FLAT), path)
    arguments = ["audit", str(path), "--out", str(tmp_path / "out"), "--scores", "s"]
    assert main(arguments) == 0
    capsys.readouterr()
    assert main([*arguments, "--fail-on", "unsafe"]) == 1
    assert "--fail-on: s: Cannot be decided: no headroom" in capsys.readouterr().out


def test_the_check_looks_at_the_scorers_that_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.parquet"
    builtin_pools(60, 8).write(path)
    arguments = ["audit", str(path), "--out", str(tmp_path / "out"), "--resamples", "200"]
    assert main([*arguments, "--fail-on", "unsafe"]) == 2
    assert "name them with --scores" in capsys.readouterr().err
    assert main([*arguments, "--scores", "perfect", "--fail-on", "unsafe"]) == 0
    assert main([*arguments, "--scores", "perfect", "--fail-on", "unsafe, inconclusive,"]) == 0
    assert main([*arguments, "--scores", "perfect", "--fail-on", "safe,"]) == 1
    assert main([*arguments, "--scores", "perfect,reversed", "--fail-on", "unsafe"]) == 1
    assert "--fail-on: reversed is unsafe" in capsys.readouterr().out


def test_flags_reach_the_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def audit(_: Path, **arguments: Any) -> toptail.AuditResult:
        given.update(arguments)
        return flat.audit(POOLS, resamples=100)

    monkeypatch.setattr("toptail.commands.audit.audit", audit)
    flags = ["--unit", "query", "--min-pool", "3", "--value-range=-1,1", "--rho", "0.2"]
    assert main(["audit", "t.csv", "--out", str(tmp_path / "out"), *flags]) == 0
    assert given["min_pool"] == 3
    assert given["judged"] == toptail.HowJudged(value_range=(-1.0, 1.0))
    assert given["thresholds"] == toptail.Thresholds(rho=0.2, unit="query")


def test_a_comparison_that_cannot_be_made_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = tmp_path / "new.parquet", tmp_path / "old.parquet"
    both = {"query": np.repeat(range(4), 2), "s": [1.0, 2.0] * 4}
    pa.parquet.write_table(pa.table({**both, "value": [0.0, 1.0] * 4}), new)
    pa.parquet.write_table(pa.table({**both, "value": [0.5] * 8}), old)  # no headroom
    arguments = ["audit", str(new), "--baseline", str(old), "--out", str(tmp_path / "out")]
    assert main([*arguments, "--scores", "s", "--fail-on", "worse"]) == 2
    assert "no headroom to measure a difference in" in capsys.readouterr().err
