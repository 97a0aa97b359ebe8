"""Logs of other tools, audited as they are."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.foreign.fixtures import FOREIGN
from toptail import ScoredPools, TableColumns, audit
from toptail.cli import main
from toptail.errors import InputError

LM = FOREIGN / "lm_eval" / "samples_sums.jsonl"
EVAL = FOREIGN / "inspect" / "sums.eval"
BENCH = FOREIGN / "rewardbench" / "scores.json"
FOLDER = FOREIGN / "huggingface" / "single"


@pytest.mark.parametrize(
    ("path", "columns", "words"),
    [
        (LM, {}, ("60 queries, 240 candidates", "loglikelihood_per_character", "“correct”")),
        (EVAL, {}, ("45 queries, 135 candidates", "reward", "“match”")),
        (FOREIGN / "inspect" / "sums.json", {}, ("8 queries, 16 candidates", "reward", "“match”")),
        (BENCH, {}, ("48 queries, 216 candidates", "example/reward-model", "“correct”")),
        (FOREIGN / "rewardbench" / "outputs.jsonl", {}, ("45 queries, 90 candidates", "score")),
        (FOLDER, {"query": "prompt", "candidate": "answer"}, ("180 candidates", "reward")),
    ],
)
def test_a_log_is_audited_to_a_verdict(
    path: Path, columns: dict[str, str], words: tuple[str, ...]
) -> None:
    told = audit(path, resamples=100, columns=TableColumns(**columns)).summary()
    assert all(word in told for word in words), told


def test_the_command_takes_a_folder_and_its_columns(tmp_path: Path, capsys: Any) -> None:
    line = f"audit {FOLDER} --query prompt --resamples 100 --out {tmp_path / 'out'}"
    assert main(line.split()) == 0
    assert "safe          reward" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.html").is_file()


def test_what_the_harness_calls_accuracy_is_what_the_top_score_gets() -> None:
    """At K = all choices the value of the pick is acc, and acc_norm for the other score."""
    samples = [json.loads(line) for line in LM.read_text().splitlines()]
    result = audit(LM, resamples=100)
    for score, metric in (("loglikelihood", "acc"), ("loglikelihood_per_character", "acc_norm")):
        mean = sum(sample[metric] for sample in samples) / len(samples)
        assert result.scorers[score].curve.value[-1] == pytest.approx(mean)


def test_rewardbench_s_accuracy_is_what_the_top_score_gets() -> None:
    stored = json.loads(BENCH.read_text())
    known = [r for r in stored["results"] if r is not None]
    pools = ScoredPools.read(BENCH)
    group = pools.group
    assert group is not None
    keep = [label != "Ties" for label in group.to_pylist()]
    result = audit(pools.select(np.array(keep)), resamples=100)
    value = result.scorers["example/reward-model"].curve.value[-1]
    assert value == pytest.approx(sum(known) / len(known))


def test_flags_choose_other_columns() -> None:
    pools = ScoredPools.read(LM, scores="loglikelihood")
    assert list(pools.scores) == ["loglikelihood"]
    pools = ScoredPools.read(EVAL, scores="match", values="reward")
    assert (list(pools.scores), list(pools.values)) == (["match"], ["reward"])
    assert pools.sha256


def unpacked() -> list[dict[str, Any]]:
    """The samples of the small log."""
    content: list[dict[str, Any]] = json.loads((FOREIGN / "inspect" / "sums.json").read_text())[
        "samples"
    ]
    return content


def written(path: Path, samples: Any, how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for sample in samples:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("header.json", "{}")
    return path


def test_a_log_of_an_older_inspect_is_packed_otherwise(tmp_path: Path) -> None:
    found = ScoredPools.read(written(tmp_path / "older.eval", unpacked()))
    same = ScoredPools.read(FOREIGN / "inspect" / "sums.json")
    assert sorted(found.query.to_pylist()) == sorted(same.query.to_pylist())
    assert found.rows == same.rows == 16


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"a": {"value": 1}, "b": {"value": 0.5}}, "no value column.*--values.*a, b|no value"),
        ({"a": {"value": "C"}}, "no score column; name at least one"),
        ({"a": {"value": "maybe"}, "b": {"value": 1}}, "the scorer 'a' gave 'maybe'"),
        ({"a": {"value": {"x": "C", "y": "I"}}}, "no value column"),
        (None, "no value column"),
    ],
)
def test_what_is_not_said_by_a_log_is_asked_for(scores: Any, message: str, tmp_path: Path) -> None:
    samples = [sample | {"scores": scores} for sample in unpacked()]
    with pytest.raises(InputError, match=message) as refused:
        ScoredPools.read(written(tmp_path / "x.eval", samples))
    assert str(refused.value).count("\n") == 0


def test_a_log_without_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the log has no samples"):
        ScoredPools.read(written(tmp_path / "x.eval", []))
    log = {"version": 2, "status": "error", "eval": {}, "samples": None}
    (tmp_path / "x.json").write_text(json.dumps(log))
    with pytest.raises(InputError, match="the log has no samples"):
        ScoredPools.read(tmp_path / "x.json")


def test_a_sample_that_failed_is_no_value(tmp_path: Path) -> None:
    first, *others = unpacked()
    path = written(tmp_path / "x.eval", [first | {"scores": None}, *others])
    with pytest.raises(InputError, match=r"row 1\b"):
        ScoredPools.read(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "7"}, "neither the number nor the text of one choice"),
        ({"filtered_resps": [["a", "False"]] * 4}, "no log-likelihoods"),
        ({"filtered_resps": [["-1.0", "False"]]}, "4 choices and 1 log-likelihoods"),
        ({"resps": None, "doc_id": None, "target": [0, 1]}, "neither the number nor the text"),
    ],
)
def test_samples_that_cannot_be_used_are_named(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    lines = LM.read_text().splitlines()[:3]
    lines[1] = json.dumps(json.loads(lines[1]) | change)
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=f"line 2 .*{message}"):
        ScoredPools.read(path)


def test_generated_answers_have_no_score_each() -> None:
    with pytest.raises(InputError, match=r"generated answers.*score them with your reward model"):
        ScoredPools.read(FOREIGN / "lm_eval" / "samples_sums_gen.jsonl")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_correct": [9] * 48}, "row 1 has 9 right answers of 4"),
        ({"scores": [["a"]] * 48}, "row 1 has scores that are no numbers"),
        ({"scores": [[]] * 48}, "row 1 has no list of scores"),
        ({"subset": ["x"]}, "not of one length"),
    ],
)
def test_scores_of_rewardbench_that_cannot_be_used_are_named(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(json.loads(BENCH.read_text()) | change))
    with pytest.raises(InputError, match=message):
        ScoredPools.read(path)


def test_a_data_set_s_splits_and_files_are_looked_up(tmp_path: Path) -> None:
    splits = FOREIGN / "huggingface" / "splits"
    with pytest.raises(InputError, match=r"the splits test, train; give the folder of one"):
        ScoredPools.read(splits)
    assert ScoredPools.read(splits / "test", query="prompt").rows == 12
    copy = tmp_path / "copy"
    shutil.copytree(FOLDER, copy)
    one = ScoredPools.read(copy, query="prompt")
    assert one.sha256 == ScoredPools.read(FOLDER, query="prompt").sha256
    state = copy / "state.json"
    content = json.loads(state.read_text())
    content["_data_files"][0]["filename"] = "../../secret.arrow"
    state.write_text(json.dumps(content))
    with pytest.raises(InputError, match="names files that are not in the folder"):
        ScoredPools.read(copy)
    state.unlink()
    assert ScoredPools.read(copy, query="prompt").rows == one.rows
    for file in copy.glob("*.arrow"):
        file.unlink()
    with pytest.raises(InputError, match="has no Arrow files"):
        ScoredPools.read(copy)


def test_other_folders_are_still_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, not a file"):
        ScoredPools.read(tmp_path)
