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
    path: Path, columns: dict[str, Any], words: tuple[str, ...]
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


GENERATED = FOREIGN / "lm_eval" / "samples_sums_gen.jsonl"


def repeats(path: Path, *changes: dict[str, Any]) -> Path:
    """The log with its first line changed in several ways, one below the other."""
    first = json.loads(GENERATED.read_text().splitlines()[0])
    path.write_text("".join(json.dumps(first | change) + "\n" for change in changes))
    return path


def test_repeats_of_generated_answers_are_compared_with_the_target(tmp_path: Path) -> None:
    pools = ScoredPools.read(GENERATED)
    assert (pools.queries, pools.rows, list(pools.scores)) == (3, 12, ["agreement"])
    assert not pools.values["correct"].any()  # the dummy model's
    said = ["14", "14 ", "6", "14"]
    kept = {"doc_id": 1, "resps": [said], "filtered_resps": [said], "filter": "all"}
    solved = {"doc_id": 2, "target": "7 + 7 = 14\n#### 14"}
    first = kept | solved | {"filtered_resps": ["14"], "filter": "first", "exact_match": 1.0}
    again = ScoredPools.read(repeats(tmp_path / "s.jsonl", kept, kept | {"filter": "b"}, first))
    assert again.query.to_pylist() == ["1", "2"]
    assert again.values["correct"].tolist() == [1.0, 1.0, 0.0, 1.0] * 2
    assert again.scores["agreement"].tolist() == [0.75, 0.75, 0.25, 0.75] * 2
    assert again.further["answer"].to_pylist()[:4] == ["14", "14", "6", "14"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resps": [["It is 14.", "It is 6."]], "filtered_resps": ["14"]}, "keeps them all"),
        ({"resps": [["14"]], "filtered_resps": ["14"], "exact_match": 1.0}, "two or more repeats"),
        ({"exact_match": 1.0}, "line 1: exact_match is 1 for the answer 'lol' .*compares other"),
    ],
)
def test_generated_answers_that_cannot_be_judged_one_by_one(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        ScoredPools.read(repeats(tmp_path / "s.jsonl", change))


def answered(answers: list[str | None], grades: list[str], **more: list[Any]) -> list[Any]:
    """One sample with an epoch per answer."""
    epochs = range(len(answers))
    return [
        {
            "id": "s",
            "epoch": at + 1,
            "scores": {"match": {"value": grades[at], "answer": answers[at]}}
            | {name: {"value": column[at]} for name, column in more.items()},
        }
        for at in epochs
    ]


def test_answers_of_inspect_are_there_to_vote_on(tmp_path: Path) -> None:
    samples = answered(["4", "5", "4", None], ["C", "I", "C", "I"])
    pools = ScoredPools.read(written(tmp_path / "x.eval", samples))
    assert pools.further["answer"].to_pylist() == ["4", "5", "4", "no answer in epoch 4"]
    assert pools.scores["agreement"].tolist() == [0.5, 0.25, 0.5, 0.25]
    assert pools.values["match"].tolist() == [1.0, 0.0, 1.0, 0.0]
    scored = answered(["4", "5"], ["C", "I"], reward=[0.1, 0.2])
    pools = ScoredPools.read(written(tmp_path / "y.eval", scored))
    assert list(pools.scores) == ["reward"]
    assert "answer" in pools.further


def test_a_grader_is_a_score_beside_a_scorer_that_knows(tmp_path: Path) -> None:
    samples = answered(["4", "5"], ["C", "I"], model_graded_qa=["P", "I"])
    pools = ScoredPools.read(written(tmp_path / "x.eval", samples))
    assert pools.scores["model_graded_qa"].tolist() == [0.5, 0.0]
    assert list(pools.values) == ["match"]


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
