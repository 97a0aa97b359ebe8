"""``toptail.choose``: what it answers, what it stores, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.flat import choose
from toptail import InputError, ScoredPools, Selector, builtin_pools
from toptail.cli import main
from toptail.results import ChoiceResult
from toptail.select.base import ScoreRule
from toptail.select.selectors import Best, FunctionSelector, Majority, Threshold, TopBy

FAST: dict[str, Any] = {"resamples": 100, "repeats": 3}
STORED = Path(__file__).parents[2] / "validation" / "results" / "choose"
POOLS = builtin_pools(queries=120, candidates=16)


def ends(result: ChoiceResult, baseline: str | None = None) -> Any:
    """The honest value, or a baseline's, with its ends."""
    content = result.to_dict()
    return content if baseline is None else content["baselines"][baseline]


def votes(queries: int = 80, size: int = 12) -> pa.Table:
    """Answers of which the right one is the most frequent, and a score that knows nothing."""
    rng = np.random.default_rng(0)
    right = rng.random((queries, size)) < 0.45
    answer = np.where(right, "right", rng.integers(6, size=right.shape).astype(str))
    return pa.table(
        {
            "query": np.repeat(np.arange(queries), size),
            "score": rng.normal(size=right.size),
            "answer": answer.reshape(-1),
            "value": right.reshape(-1).astype(float),
        }
    )


def ensemble(queries: int = 150, size: int = 16) -> ScoredPools:
    """Three seeds of which each is fooled by other candidates."""
    rng = np.random.default_rng(1)
    value = rng.random((queries, size))
    scores = {
        f"raw@{seed}": value + np.where(rng.random(value.shape) < 0.1, 1.5, 0.0)
        for seed in (42, 43, 44)
    }
    return ScoredPools.from_arrays(scores, value)


@pytest.fixture(scope="module")
def cursed() -> ChoiceResult:
    return choose(POOLS, scores="cursed", **FAST)


def test_what_repairs_a_cursed_score_is_found(cursed: ChoiceResult) -> None:
    content = cursed.to_dict()
    assert (content["selector"], content["k"]) == ("filter", 16)
    assert content["parameters"] == {"score": "cursed", "by": "support", "least": 1.0}
    assert set(content["baselines"]) >= {"random", "best_of_k_max", "oracle"}
    for entry in (content, *content["baselines"].values()):
        assert entry["low"] <= entry["value"] <= entry["high"]
    assert ends(cursed)["value"] > ends(cursed, "best_of_k_best")["value"] + 0.05
    assert ends(cursed, "best_of_k_max")["value"] < ends(cursed, "best_of_k_best")["value"]
    assert "over the plain best of 16" in cursed.answer
    assert (cursed.gain.low or 0) > 0


def test_without_support_the_top_is_dropped_instead() -> None:
    result = choose(POOLS, scores="cursed", selectors=["rank", "trim"], **FAST)
    assert result.selector.called in {"rank", "trim"}
    assert ends(result)["low"] > ends(result, "best_of_k_max")["high"]


def test_a_perfect_score_is_kept_and_a_constant_one_is_a_random_pick() -> None:
    kept = choose(POOLS, scores="perfect", **FAST)
    assert (kept.selector.called, kept.selector.k) == ("best", 16)
    assert "keep best(perfect)" in kept.answer
    none = choose(POOLS, scores="constant", selectors=["rank", "trim", "soft"], **FAST)
    assert (none.selector.called, none.selector.k) == ("random", 1)
    assert "random pick" in none.answer


@pytest.mark.parametrize("seed", range(4))
def test_scores_that_cannot_choose_are_a_random_pick_and_named(seed: int) -> None:
    """Without one draw that rounds in their favour."""
    rng = np.random.default_rng(seed)
    value = rng.random((40, 16))
    for score in (np.full(value.shape, 1.0), np.repeat(rng.random((40, 1)), 16, axis=1)):
        result = choose({"flat": score, "value": value}, selectors=["best", "rank", "poisson"])
        assert (result.selector.called, result.selector.k) == ("random", 1)
        assert "“flat” gives all candidates of a query the same score" in result.warnings[0]


def below_random(queries: int = 200) -> pa.Table:
    """Four candidates each. Votes beat a random pick; the score is a little worse than one."""
    rng = np.random.default_rng(118)
    chance = rng.beta(1.0, 1.2, queries)[:, None]
    right = rng.random((queries, 4)) < chance
    answer = np.where(right, "right", rng.integers(3, size=right.shape).astype(str))
    return pa.table(
        {
            "query": np.repeat(np.arange(queries), 4),
            "score": (rng.normal(size=right.shape) - 0.05 * right).reshape(-1),
            "answer": answer.reshape(-1),
            "value": right.reshape(-1).astype(float),
        }
    )


def test_what_beats_a_random_pick_is_deployed_though_plain_does_not() -> None:
    """Votes are shown to beat random, not plain; plain is below random, and no way out."""
    result = choose(below_random(), **FAST)
    content = result.to_dict()
    against = {each["against"]: each for each in content["differences"]}
    baselines = content["baselines"]
    assert baselines["best_of_k_max"]["value"] < baselines["random"]["value"]
    assert against["random"]["low"] > 0
    assert against["best_of_k_max"]["low"] < 0
    assert result.selector.votes
    assert "Nothing is shown" not in result.answer
    assert "it is shown to beat a random pick" in result.answer
    assert "That it beats the plain best of 4 is not shown" in result.answer


def test_the_answer_says_the_gain_and_how_stable_the_choice_is() -> None:
    clear = choose(votes(), **FAST)
    content = clear.to_dict()
    gain = next(d for d in content["differences"] if d["against"] == "best_of_k_max")
    assert clear.gain.low == gain["low"] > 0
    said = f"it gains {gain['difference']:+.3g} [{gain['low']:.3g}, {gain['high']:.3g}] over"
    assert said in clear.answer
    stable = content["stability"]
    assert f"The same selector and K were chosen in {stable['selector']:.0%}" in clear.answer
    assert stable["selector"] == content["chosen"][0]["share"]
    assert stable["family"] >= stable["selector"]
    assert sum(each["share"] for each in content["chosen"]) == pytest.approx(1.0)
    (row,) = [f for f in content["families"] if f["family"] == content["family"]]
    assert row["k"] == content["k"]
    assert [row["difference"][end] for end in ("low", "high")] == [gain["low"], gain["high"]]
    assert [row[end] for end in ("low", "high")] == [content["low"], content["high"]]


def test_intervals_of_a_share_stay_between_0_and_1() -> None:
    rng = np.random.default_rng(0)
    value = (rng.random((40, 8)) < 0.35).astype(float)
    value[:39, 0], value[39] = 1.0, 0.0  # nearly always there is a right one
    data = {"good": value + rng.normal(0, 0.01, value.shape), "value": value}
    content = choose(data, **FAST).to_dict()
    assert content["value_range"] == [0.0, 1.0]
    assert content["baselines"]["oracle"]["high"] == 1.0
    for entry in (content, *content["baselines"].values(), *content["families"]):
        assert 0.0 <= entry["low"] <= entry["value"] <= entry["high"] <= 1.0
    halved = {"good": data["good"], "value": value / 2}
    free = choose(halved, **FAST).to_dict()
    assert free["value_range"] is None
    assert free["baselines"]["oracle"]["high"] > 0.5
    told = choose(halved, value_range=(0, 0.5), **FAST).to_dict()
    assert told["baselines"]["oracle"]["high"] == 0.5
    paid = choose(data, cost=0.01, **FAST).to_dict()
    assert paid["baselines"]["oracle"]["high"] <= 0.99
    with pytest.raises(InputError, match="lies outside"):
        choose(halved, value_range=(0, 0.2), **FAST)


def test_what_a_default_set_leaves_out_is_said() -> None:
    def notes(**more: Any) -> str:
        return " ".join(choose(**{**FAST, **more}).to_dict()["notes"])

    assert "No votes were tried" in notes(source=POOLS, scores="noisy")
    assert "No votes were tried" not in notes(source=POOLS, scores="noisy", selectors=["rank"])
    assert notes(source=votes(40, 6)) == ""
    rng = np.random.default_rng(0)
    many = {f"s{at}": rng.normal(size=(40, 6)) for at in range(5)}
    assert "With 5 scorers (more than 4), these were not tried" in notes(
        source={**many, "value": rng.normal(size=(40, 6))}
    )


@pytest.mark.parametrize("shape", ["table", "dense", "file", "folder"])
def test_a_number_column_called_support_may_be_a_filter(shape: str, tmp_path: Path) -> None:
    assert POOLS.support is not None
    density = POOLS.support + np.random.default_rng(0).uniform(-0.2, 0.2, POOLS.rows)
    flat = {"cursed": POOLS.scores["cursed"], "support": density, "value": POOLS.values["value"]}
    dense = {name: column.reshape(120, 16) for name, column in flat.items()}
    table = pa.table({"query": np.repeat(np.arange(120), 16), **flat})
    pq.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "parts").mkdir()
    pq.write_table(table, tmp_path / "parts" / "rows.parquet")
    data: dict[str, Any] = {"table": table, "dense": dense}
    data |= {"file": tmp_path / "rows.parquet", "folder": tmp_path / "parts"}
    result = choose(data[shape], filter="support", **FAST)
    assert result.selector.called == "filter"
    assert result.selector.parameters["by"] == "support"
    assert 0 < result.selector.parameters["least"] < 1
    with pytest.raises(InputError, match="'support' must be true/false"):
        choose(data[shape], **FAST)


def test_a_support_that_is_named_is_the_filter_that_it_is_anyway() -> None:
    named = choose(POOLS, scores="cursed", filter="support", **FAST)
    assert named == choose(POOLS, scores="cursed", **FAST)


@pytest.mark.parametrize("asked", [{}, {"answer": "answer"}, {"filter": "score"}])
def test_a_partitioned_folder_is_the_table_in_it(asked: dict[str, str], tmp_path: Path) -> None:
    table, folder = votes(40, 6).append_column("rm", pa.array(np.arange(240.0))), tmp_path / "parts"
    for name, part in (("a", table[:120]), ("b", table[120:])):
        (folder / f"part={name}").mkdir(parents=True)
        pq.write_table(part, folder / f"part={name}" / "rows.parquet")
    how: dict[str, Any] = {**FAST, **asked, "scores": "rm", "selectors": ["majority"]}
    found, whole = choose(folder, **how).to_dict(), choose(table, **how).to_dict()
    for content in (found, whole):
        del content["record"]
    assert found == whole
    out = tmp_path / "out"
    words = ("--scores", "rm", "--resamples", "100", "--out", str(out))
    assert main(["choose", str(folder), *words]) == 0
    assert Selector.load(out).pick(folder).shape == (40,)


def test_scores_that_know_nothing_beat_no_random_pick() -> None:
    rng = np.random.default_rng(0)
    data = {"a": rng.normal(size=(100, 8)), "b": rng.normal(size=(100, 8))}
    result = choose({**data, "value": rng.normal(size=(100, 8))}, **FAST)
    content = result.to_dict()
    assert content["selector"] == "random"
    assert content["naive"]["highest"] > content["value"] + 0.05


def test_a_price_makes_k_small_and_is_paid_by_all() -> None:
    free = choose(POOLS, scores="noisy", selectors=["best"], **FAST)
    dear = choose(POOLS, scores="noisy", selectors=["best"], cost=0.02, **FAST)
    assert free.selector.k == 16
    assert dear.selector.k < 8
    for name, k in (("random", 1), ("best_of_k_max", 16), ("oracle", 16)):
        paid = ends(free, name)["value"] - ends(dear, name)["value"]
        assert paid == pytest.approx(0.02 * k)


def test_seeds_are_an_ensemble_without_further_words() -> None:
    result = choose(ensemble(), **FAST)
    assert result.selector.called in {"min", "pessimistic", "mean"}
    assert ends(result)["low"] > ends(result, "best_of_k_max")["high"]
    families = {each["family"] for each in result.to_dict()["families"]}
    assert {"best(raw)", "mean(raw)", "min(raw)", "min(raw, ranks)", "soft(raw)"} <= families


def test_votes_are_found_in_an_answer_column() -> None:
    result = choose(votes(), **FAST)
    assert result.selector.called == "majority"
    assert ends(result)["low"] > ends(result, "random")["high"]
    new = {"answer": ["x", "y", "y"]}
    np.testing.assert_allclose(result.selector.with_k(3).weights(new), [0, 0.5, 0.5])


def test_a_column_of_another_name_is_the_answer_and_order_of_rows_does_not_matter() -> None:
    table = votes()
    moved = table.take(np.random.default_rng(3).permutation(table.num_rows))
    named = moved.rename_columns(["query", "score", "text", "value"])
    how = {**FAST, "selectors": ["majority"]}
    assert ends(choose(named, answer="text", **how))["value"] == pytest.approx(
        ends(choose(table, **how))["value"], abs=0.02
    )
    with pytest.raises(InputError, match="no column 'label' to take answers from"):
        choose(table, answer="label", **how)


def test_lists_of_answers_and_dense_ones_are_the_same_table(tmp_path: Path) -> None:
    table = votes(40, 6)
    dense = {n: np.array(table[n].to_pylist()).reshape(40, 6) for n in ("score", "answer", "value")}
    lists = pa.table({name: list(column) for name, column in dense.items()})
    pq.write_table(lists, tmp_path / "lists.parquet")
    how = {**FAST, "selectors": ["majority", "best_in_majority"]}
    values = [choose(x, **how).value for x in (table, dense, lists, tmp_path / "lists.parquet")]
    assert values[1:] == values[:-1]


def test_a_number_column_filters_and_is_no_score() -> None:
    pools = builtin_pools(queries=120, candidates=16)
    assert pools.support is not None
    table = {
        "query": np.repeat(np.arange(120), 16),
        "cursed": pools.scores["cursed"],
        "density": pools.support + np.random.default_rng(0).normal(0, 0.1, pools.rows),
        "value": pools.values["value"],
    }
    result = choose(table, filter="density", **FAST)
    assert result.selector.called == "filter"
    assert result.selector.parameters["by"] == "density"
    assert result.selector.columns == ("cursed", "density")
    assert not any(
        "density)" in f["family"] and "|" not in f["family"] for f in result.to_dict()["families"]
    )


def test_abstaining_is_shown_and_chosen_only_where_it_has_a_value() -> None:
    shown = choose(POOLS, scores="noisy", selectors=["threshold"], **FAST).to_dict()
    assert shown["selector"] == "best"
    rows = [(row["coverage"], row["value_answered"]) for row in shown["coverage"] if row["k"] == 2]
    assert [c for c, _ in rows] == sorted((c for c, _ in rows), reverse=True)
    assert rows[-1][1] > rows[0][1]
    paid = choose(POOLS, scores="noisy", selectors=["threshold"], abstain=2.0, **FAST)
    assert paid.selector.called == "threshold"
    assert ends(paid)["value"] > 1.0


def test_clusters_stay_together_and_replicates_split_the_oracle() -> None:
    rng = np.random.default_rng(0)
    value = rng.normal(size=(60, 8))
    noisy = {f"value_{i}": value + rng.normal(size=value.shape) for i in range(2)}
    cluster = np.repeat(np.arange(12), 5)
    pools = ScoredPools.from_arrays({"s": value}, noisy, cluster=cluster)
    result = choose(pools, replicates=["value_0", "value_1"], selectors=["best"], **FAST)
    content = result.to_dict()
    assert content["clusters"] == 12
    assert "errs downward" in content["notes"][0]
    assert ends(result, "oracle")["value"] <= ends(result)["value"] + 0.05


def test_a_function_is_a_selector() -> None:
    def second(pool: Any) -> Any:
        order = np.argsort(pool["cursed"])
        return np.eye(order.size)[order[-2 if order.size > 1 else -1]]

    result = choose(POOLS, scores="cursed", selectors=["best", second], **FAST)
    assert result.selector.called == "second"
    families = {each["family"]: each["value"] for each in result.to_dict()["families"]}
    exact = choose(POOLS, scores="cursed", selectors=["rank:2"], **FAST).to_dict()["families"]
    (rank,) = [each["value"] for each in exact if each["family"] == "rank(cursed)"]
    assert families["second"] == pytest.approx(rank, abs=0.03)


def test_the_same_seed_gives_the_same_result(cursed: ChoiceResult) -> None:
    assert choose(POOLS, scores="cursed", **FAST) == cursed
    assert choose(POOLS, scores="cursed", seed=1, **FAST) != cursed


def test_a_stored_choice_is_read_again_and_applied(cursed: ChoiceResult, tmp_path: Path) -> None:
    page = cursed.write(tmp_path / "out")
    assert page.is_file()
    again = ChoiceResult.read(tmp_path / "out")
    assert again == cursed
    selector = Selector.load(tmp_path / "out" / "selector.json")
    assert selector == again.selector == cursed.selector == Selector.load(tmp_path / "out")
    new = {"cursed": [0.9, 0.5, 0.4], "support": [0, 1, 1]}
    np.testing.assert_allclose(selector.weights(new), [0, 1, 0])
    assert selector.pick(new).tolist() == [1]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"selectors": ["majority"]}, "there is no column 'answer'"),
        ({"selectors": ["mean"], "scores": "noisy"}, "joins several scores, and there is one"),
        ({"selectors": ["best", "worst"]}, "there is no selector 'worst'"),
        ({"selectors": ["trim:1.5"]}, "lies between 0 and 1"),
        ({"selectors": ["rank:x"]}, "at most one number"),
        ({"selectors": ["rank:0"]}, "whole number of at least 1"),
        ({"selectors": ["top"], "scores": "noisy"}, "needs a second column"),
        ({"filter": "density"}, "no column 'density' to filter by"),
        ({"selectors": [Best(score=ScoreRule.of("gone"))]}, "reads the column 'gone'"),
        ({"selectors": [Majority()]}, "reads the column 'answer'"),
        ({"k_max": 17}, "larger than the smallest pool"),
        ({"cost": -1.0}, "at least 0"),
        ({"resamples": 10}, "at least 100"),
        ({"abstain": float("nan")}, "finite"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(how: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        choose(POOLS, **how)
    assert str(error.value).count(". ") == 0


def test_a_filter_needs_support_and_a_choice_needs_queries() -> None:
    bare = ScoredPools.from_arrays(np.eye(12), np.eye(12))
    with pytest.raises(InputError, match="needs a column to filter by"):
        choose(bare, selectors=["filter"])
    with pytest.raises(InputError, match="too few to choose on some"):
        choose(builtin_pools(queries=9, candidates=4))


def test_a_function_that_gives_no_weights_is_refused() -> None:
    with pytest.raises(InputError, match="must return 2 weights"):
        choose(POOLS, scores="noisy", selectors=[lambda pool: pool["noisy"] * 9], **FAST)


def test_the_command_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = tmp_path / "scores.parquet", tmp_path / "out"
    POOLS.write(table)
    mine = tmp_path / "mine.py"
    mine.write_text("def any_one(pool):\n    n = len(pool['cursed'])\n    return [1 / n] * n\n")
    code = main(
        [
            *("choose", str(table), "--scores", "cursed", "--out", str(out), "--k-max", "8"),
            *("--selectors", f"rank,trim:0.1,{mine}:any_one", "--cost", "0.001"),
            *("--resamples", "100"),
        ]
    )
    assert code == 0
    written = {path.name for path in out.iterdir()}
    assert written >= {"choice.json", "selector.json", "choice.md", "choice.tex", "report.html"}
    content = json.loads((out / "choice.json").read_text())
    assert content["k_max"] == 8
    assert content["settings"]["cost"] == 0.001
    assert content["record"]["command"].startswith("toptail choose") or content["record"]["command"]
    assert content["answer"] in capsys.readouterr().out
    assert Selector.load(out / "selector.json").called == content["selector"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--selectors", "majority"], "there is no column 'answer'; name one with --answer"),
        (["--selectors", "gone.py:f"], "there is no file gone.py"),
        (["--filters", "gone"], "there is no column 'gone' to filter by"),
    ],
)
def test_bad_input_is_a_sentence_exit_2_and_nothing_written(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "scores.parquet", tmp_path / "out"
    POOLS.write(table)
    assert main(["choose", str(table), "--out", str(out), *words]) == 2
    assert says in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("name", sorted(path.name for path in STORED.iterdir() if path.is_dir()))
def test_stored_selectors_are_read(name: str) -> None:
    stored = json.loads((STORED / name / "selector.json").read_text())
    assert Selector.load(STORED / name).to_dict() == stored


def test_answers_that_are_numbers_are_no_score(tmp_path: Path) -> None:
    table = votes(40, 6)
    code = table["answer"].combine_chunks().dictionary_encode().indices
    named = {
        "prompt": table["query"],
        "answer": code,
        "rm": table["score"],
        "value": table["value"],
    }
    path = tmp_path / "scores.csv"
    pa.csv.write_csv(pa.table(named), path)
    result = choose(path, query="prompt", selectors=["majority"], **FAST)
    families = {each["family"] for each in result.to_dict()["families"]}
    assert families == {"best(rm)", "majority"}


# A stored selector in production: pools without values, in the shapes that people have.


SCORES = np.array([[0.1, 0.9, 0.4], [0.7, 0.2, 0.3]])
BEST = Best(score=ScoreRule.of("rm"), k=2)
WEIGHTS = np.array([[0, 2 / 3, 1 / 3], [2 / 3, 0, 1 / 3]])


def test_one_pool_several_and_bare_numbers() -> None:
    np.testing.assert_allclose(BEST.weights({"rm": SCORES[0]}), WEIGHTS[0])
    np.testing.assert_allclose(BEST.weights({"rm": SCORES, "other": None}), WEIGHTS)
    np.testing.assert_allclose(BEST.weights(SCORES), WEIGHTS)
    np.testing.assert_allclose(BEST.weights(SCORES[1].tolist()), WEIGHTS[1])


def test_tables_give_weights_in_their_own_order(tmp_path: Path) -> None:
    order = np.array([3, 0, 4, 1, 5, 2])
    table = pa.table({"query": np.repeat(["a", "b"], 3)[order], "rm": SCORES.reshape(-1)[order]})
    expected = WEIGHTS.reshape(-1)[order]
    np.testing.assert_allclose(BEST.weights(table), expected)
    np.testing.assert_allclose(BEST.weights(table.to_pylist()), expected)
    pq.write_table(table, tmp_path / "new.parquet")
    np.testing.assert_allclose(BEST.weights(tmp_path / "new.parquet"), expected)
    pools = ScoredPools.from_arrays({"rm": SCORES}, SCORES)
    np.testing.assert_allclose(BEST.weights(pools), WEIGHTS.reshape(-1))


def test_pools_of_several_sizes() -> None:
    table = {"query": [1, 1, 2, 2, 2], "rm": [0.1, 0.2, 0.9, 0.1, 0.5]}
    found = BEST.weights(table)
    np.testing.assert_allclose(found, [0, 1, 2 / 3, 0, 1 / 3])
    assert BEST.with_k(9).pick(table).tolist() == [1, 0]


def test_picks_follow_the_weights_and_abstain() -> None:
    many = np.tile(SCORES[0], (20_000, 1))
    shares = np.bincount(BEST.pick({"rm": many}), minlength=3) / 20_000
    np.testing.assert_allclose(shares, WEIGHTS[0], atol=0.02)
    strict = Threshold(score=ScoreRule.of("rm"), least=0.8, k=2)
    picked = strict.pick({"rm": many})
    assert set(picked) == {-1, 1}
    assert (picked == 1).mean() == pytest.approx(2 / 3, abs=0.02)
    assert BEST.pick({"rm": many}, seed=1).tolist() == BEST.pick({"rm": many}, seed=1).tolist()


def test_answers_are_text_or_numbers() -> None:
    vote = Majority(k=3)
    for answers in (["x", "y", "y"], [1, 2, 2], [0.5, 2.5, 2.5]):
        np.testing.assert_allclose(vote.weights({"answer": answers}), [0, 0.5, 0.5])


def test_it_is_stored_as_small_json(tmp_path: Path) -> None:
    selector = TopBy(score=ScoreRule.of("rm"), by="logp", top=4, k=16)
    path = tmp_path / "selector.json"
    selector.save(path)
    assert json.loads(path.read_text()) == {
        "format": "toptail-selector-1",
        "selector": "top",
        "k": 16,
        "parameters": {"score": "rm", "by": "logp", "top": 4},
    }
    assert path.stat().st_size < 300
    assert Selector.load(path) == selector


def test_a_function_must_be_given_again(tmp_path: Path) -> None:
    path = tmp_path / "selector.json"
    own = FunctionSelector(name="mine", reads=("rm",), function=len, k=2)
    own.save(path)
    with pytest.raises(InputError, match="is the function 'mine'"):
        Selector.load(path)
    assert Selector.load(path, function=len) == own


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not readable"),
        ("[" * 100_000, "not readable .*recursion"),
        ("[]", "not a selector"),
        ('{"format": "toptail-selector-1"}', "broken"),
        ('{"format": "toptail-selector-1", "selector": "gone", "k": 2}', "broken"),
        (
            '{"format": "toptail-selector-1", "selector": "best", "k": 2, '
            '"parameters": {"score": "rm", "more": 1}}',
            "broken",
        ),
    ],
)
def test_a_damaged_file_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "selector.json"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        Selector.load(path)
    with pytest.raises(InputError, match="not readable"):
        Selector.load(tmp_path / "gone.json")


def test_what_cannot_be_chosen_from_is_refused() -> None:
    top = TopBy(score=ScoreRule.of("rm"), by="logp", top=4, k=16)
    for candidates, says in (
        ({"other": [1.0]}, "reads the column 'rm', which is not there"),
        ({"rm": [1.0], "logp": [1.0, 2.0]}, "has shape"),
        ({"rm": [1.0, np.nan], "logp": [1.0, 2.0]}, "finite"),
        ({"rm": [], "logp": []}, "one pool"),
        ([1.0, 2.0], "by their names"),
        ({"query": [1], "rm": [1.0]}, "reads the column 'logp'"),
    ):
        with pytest.raises(InputError, match=says):
            top.weights(candidates)
    with pytest.raises(InputError, match="column 'answer'"):
        Majority(k=3).weights({"rm": [1.0]})
