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

pytestmark = pytest.mark.usefixtures("no_figures")

POOLS = builtin_pools(6, 4)
PICKS = {"query": [1, 1, 2, 2], "selector": ["a", "b"] * 2, "value": [0.0, 1.0, 1.0, 2.0]}

NAN, INF = float("nan"), float("inf")
BAD: dict[str, list[Any]] = {
    "level": [1.5, 0, 1, -0.5, NAN, INF, True, "0.95", None, [0.9]],
    "delta": [-0.1, 1.5, NAN, INF, -INF, False, "a", None],
    "rho": [-0.1, 10, NAN, INF, True, "a"],
    "seed": [-1, 1.5, NAN, True, "0", None],
    "resamples": [0, 99, -1, 1e4, NAN, True, "many", None],
    "k": [[], [0], [-1], [1.5], [True], [NAN], ["2"], "12", 4],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_audit_refuses_in_one_sentence_that_names_the_argument(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}=") as refused:
        flat.audit(POOLS, **{name: value})
    text = str(refused.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "--" not in text


@pytest.mark.parametrize(
    ("name", "value"),
    [(n, v) for n in ("level", "seed", "resamples") for v in BAD[n]]
    + [("power", v) for v in BAD["level"]],
)
def test_audit_picks_refuses_the_same(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name}="):
        toptail.audit_picks(PICKS, **{name: value})


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

CASES: dict[str, tuple[dict[str, list[Any]], str, list[str]]] = {
    # case: (columns, what Python says, what the command line says)
    "two values": (
        TWO_VALUES,
        "choose one with values=..., or name independent replicates of one judge with "
        "replicates=....",
        ["choose one with --values, or name", "with --replicates."],
    ),
    "no value": ({"query": [1], "s": [1.0]}, "name it with values=...", ["name it with --values"]),
    "no score": (
        {"query": [1], "value": [1.0]},
        "at least one with scores=...",
        ["at least one with --scores"],
    ),
    "no query": ({"s": [1.0], "value": [1.0]}, "name it with query=...", ["name it with --query"]),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_speak_python_in_python_and_flags_on_the_command_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, python, flags = CASES[case]
    with pytest.raises(InputError) as refused:
        flat.audit(columns)
    assert python in str(refused.value)
    assert "--" not in str(refused.value)
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table(columns), path)
    assert main(["audit", str(path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert all(part in said for part in flags), said
    assert "=..." not in said


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--level", "1.5"], "--level 1.5 must lie between 0 and 1."),
        (["--level", "nan"], "--level nan must lie between 0 and 1."),
        (["--resamples", "99"], "--resamples 99 must be a whole number of at least 100."),
        (["--delta", "-1"], "--delta -1.0 must be a number of at least 0."),
        (["--delta", "nan"], "--delta nan must be a number of at least 0."),
        (["--rho", "10"], "--rho 10.0 must be at most 1: it is a share of the headroom."),
        (["--k", "0,2"], "--k 0 must be a whole number of at least 1."),
    ],
)
def test_the_command_says_flags(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.parquet"
    POOLS.write(path)
    assert main(["audit", str(path), *flags]) == 2
    assert capsys.readouterr().err == f"toptail: {said}\n"


def test_an_error_keeps_both_spellings_between_processes() -> None:
    error = pickle.loads(pickle.dumps(InputError(f"Choose with {option('fail_on', ['a', 'b'])}.")))
    assert str(error) == "Choose with fail_on=['a', 'b']."
    assert error.for_command_line == "Choose with --fail-on a,b."


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


def test_verbose_says_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.parquet"
    POOLS.write(path)
    arguments = ["audit", str(path), "--out", str(tmp_path / "out"), "--resamples", "100"]
    printed = []
    for more in ([], ["-v"], ["--verbose"]):
        assert main([*arguments, *more]) == 0
        printed.append(capsys.readouterr().out.splitlines())
    short, long, same = printed
    assert long == same
    assert set(short) < set(long)
    assert sum(", captured " in line for line in short) == len(POOLS.scorers)


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
