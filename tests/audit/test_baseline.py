"""Two tables against each other: what is paired, what is said, and how often it is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import flat
from tests.audit.baseline_cases import CASES, CLUSTERED, TAIL, claims, drawn
from tests.quick import quick
from toptail import AuditResult, InputError, ScoredPools
from toptail.audit.baseline import Baseline, PairedSums, SharedQueries
from toptail.audit.settings import Settings
from toptail.cli import main
from toptail.judging.values import judged_pools

QUICK = {"resamples": 300}


def table(
    queries: int = 80,
    candidates: int = 8,
    noise: float = 0.3,
    *,
    seed: int = 0,
    name: str = "mine",
    **more: Any,
) -> ScoredPools:
    """Uniform values, the same for one seed, and a score that sees them through noise."""
    value = np.random.default_rng(seed).random((queries, candidates))
    jitter = np.random.default_rng(seed + 1).normal(0, 1, value.shape)
    return ScoredPools.from_arrays({name: value + noise * jitter}, value, **more)


def against(new: Any, old: Any, **more: Any) -> Baseline:
    baseline = flat.audit(new, baseline=old, **{**QUICK, **more}).baseline
    assert baseline is not None
    return baseline


# ------------------------------------------------------------------------------- what is compared


@pytest.mark.parametrize(("size", "old_size"), [(8, 8), (12, 5)])
def test_the_difference_is_that_of_the_two_curves_in_old_headroom(size: int, old_size: int) -> None:
    """At the smaller of the two sizes; candidates need not be the same."""
    new, old = table(80, size, noise=0.1), table(80, old_size, noise=1.0, seed=4)
    entry = against(new, old).scorers["mine"]
    curves = [flat.audit(t, k=[1, old_size], **QUICK).to_dict() for t in (new, old)]
    at = [c["k"].index(old_size) for c in curves]
    values = [c["scorers"]["mine"]["value"][i] for c, i in zip(curves, at, strict=True)]
    headroom = curves[1]["oracle"][at[1]] - curves[1]["random"]
    assert entry.k == old_size
    assert entry.difference == pytest.approx((values[0] - values[1]) / headroom)
    assert entry.status == "better"
    assert "a gain is established" in entry.reason


def test_queries_are_paired_by_label_whatever_their_order_and_type() -> None:
    labels = np.arange(40)
    old = table(40, noise=0.5, query=labels)
    order = np.random.default_rng(3).permutation(40)
    value = old.values["value"].reshape(40, 8)[order]
    score = old.scores["mine"].reshape(40, 8)[order]
    shuffled = ScoredPools.from_arrays({"mine": score}, value, query=[str(q) for q in order])
    baseline = against(shuffled, old)
    entry = baseline.scorers["mine"]
    assert baseline.shared_queries == 40
    part = against(table(50, query=np.arange(50)), table(50, query=np.arange(20, 70)))
    assert (part.shared_queries, part.only_new, part.only_old) == (30, 20, 20)
    assert entry.difference == pytest.approx(0.0, abs=1e-12)
    # Paired, all that is left is what was not seen; unpaired, the spread between queries.
    assert entry.low is not None
    assert entry.low > -0.3


def test_a_few_small_pools_do_not_decide_k_and_are_said() -> None:
    sizes = np.full(80, 8)
    sizes[:4] = [1, 2, 2, 3]
    result = flat.audit(table(), baseline=table(size=sizes, seed=5), resamples=300)
    assert result.baseline is not None
    assert result.baseline.scorers["mine"].k == 8
    assert (result.baseline.shared_queries, result.baseline.left_out) == (76, 4)
    assert any("4 of 80 queries" in warning for warning in result.warnings)


def test_clusters_are_respected() -> None:
    values = np.random.default_rng(0).random((15, 8)).repeat(8, axis=0)
    scores = [
        values + np.random.default_rng(s).normal(0, 0.5, (15, 8)).repeat(8, 0) for s in (1, 2)
    ]
    cluster = np.arange(15).repeat(8)
    old = ScoredPools.from_arrays({"mine": scores[1]}, values)
    apart = against(ScoredPools.from_arrays({"mine": scores[0]}, values), old)
    clustered = {
        "new": against(ScoredPools.from_arrays({"mine": scores[0]}, values, cluster=cluster), old),
        "old": against(
            ScoredPools.from_arrays({"mine": scores[0]}, values),
            ScoredPools.from_arrays({"mine": scores[1]}, values, cluster=cluster),
        ),
    }
    wide = apart.scorers["mine"]
    assert wide.low is not None
    for baseline in clustered.values():
        entry = baseline.scorers["mine"]
        assert (baseline.clusters, baseline.shared_queries) == (15, 120)
        assert entry.difference == pytest.approx(wide.difference)
        assert entry.low is not None
        assert entry.difference - entry.low > 1.5 * (wide.difference - wide.low)


def test_seeds_of_a_scorer_are_averaged() -> None:
    old = table(30, noise=0.5)
    columns = {f"mine@{s}": old.scores["mine"].reshape(30, 8) + s for s in (1, 2)}
    seeded = ScoredPools.from_arrays(columns, old.values["value"].reshape(30, 8))
    assert against(seeded, old).scorers["mine"].difference == pytest.approx(0.0, abs=1e-12)


def test_a_noisy_judge_is_measured_in_the_split_headroom() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((60, 8))
    judges = {f"v{i}": truth + rng.normal(0, 0.5, truth.shape) for i in (1, 2)}
    both = ("v1", "v2")
    new = ScoredPools.from_arrays({"mine": truth}, judges)
    old = ScoredPools.from_arrays({"mine": -truth}, judges)
    entry = against(new, old, replicates=both).scorers["mine"]
    content = flat.audit(old, replicates=both, k=[1, 8], resamples=300).to_dict()
    content_new = flat.audit(new, replicates=both, k=[1, 8], resamples=300).to_dict()
    values = [c["scorers"]["mine"]["value"][-1] for c in (content_new, content)]
    headroom = content["oracle"][-1] - content["random"]
    assert entry.difference == pytest.approx((values[0] - values[1]) / headroom)


def test_scorers_of_other_names_are_compared_where_told() -> None:
    old, new = table(noise=1.0, name="v1"), table(noise=0.05, name="v2")
    with pytest.raises(InputError, match=r"no scorer in common \(v2; v1\).*baseline_scores"):
        against(new, old)
    entry = against(new, old, baseline_scores={"v1": "v2"}).scorers["v2"]
    assert (entry.old, entry.status) == ("v1", "better")
    with pytest.raises(InputError, match="no scorer 'v3', which"):
        against(new, old, baseline_scores={"v1": "v3"})


def test_one_table_can_be_its_own_baseline_for_two_of_its_scorers() -> None:
    value = np.random.default_rng(0).random((200, 8))
    pools = ScoredPools.from_arrays({"good": value, "bad": -value}, value)
    baseline = against(pools, pools, baseline_scores={"good": "bad"})
    assert baseline.scorers["bad"].status == "worse"
    result = flat.audit(pools, baseline=pools, baseline_scores={"good": "bad"}, resamples=300)
    assert "Not compared with the old table: good." in result.warnings


def test_small_pools_are_left_out_as_told() -> None:
    sizes = np.r_[np.full(40, 5), np.full(40, 8)]
    old = table(size=sizes, seed=5)
    assert against(table(), old).scorers["mine"].k == 5
    told = against(table(), old, min_pool=8)
    assert (told.scorers["mine"].k, told.shared_queries, told.left_out) == (8, 40, 40)
    with pytest.raises(InputError, match="no shared query has 9 candidates in both tables"):
        against(table(80, 12), old, min_pool=9)


def test_each_query_in_its_own_headroom() -> None:
    """Scales of the queries do not count, and queries without headroom are left out."""
    rng = np.random.default_rng(0)
    value = rng.random((60, 6))
    scores = [value + rng.normal(0, noise, value.shape) for noise in (0.2, 0.6)]
    scale = np.exp(rng.normal(0, 3, (60, 1)))
    plain, scaled, flat = (
        against(
            {"mine": np.vstack([scores[0], *more]), "value": np.vstack([value * by, *more])},
            {"mine": np.vstack([scores[1], *more]), "value": np.vstack([value * by, *more])},
            unit="query",
        )
        for by, more in ((1.0, []), (scale, []), (1.0, [np.ones((5, 6))]))
    )
    own = (
        value[np.arange(60), scores[0].argmax(1)] - value[np.arange(60), scores[1].argmax(1)]
    ) / (value.max(1) - value.mean(1))
    assert plain.scorers["mine"].difference == pytest.approx(own.mean())
    assert scaled.scorers["mine"].low == pytest.approx(plain.scorers["mine"].low)
    assert flat.scorers["mine"].low == pytest.approx(plain.scorers["mine"].low)
    assert (flat.shared_queries, flat.clusters) == (65, 60)


def test_a_declared_range_counts_harm_beyond_any_candidate_seen() -> None:
    old = table(60)
    seen, declared = against(old, old), against(old, old, value_range=(-9.0, 1.0))
    ends = [baseline.scorers["mine"].low for baseline in (seen, declared)]
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[1] < 3 * ends[0] < 0


# ------------------------------------------------------------------------------------ what is said


def test_each_status_has_its_reason() -> None:
    old = table(400, noise=0.3)
    statuses = {
        "better": against(table(400, noise=0.05), old),
        "worse": against(table(400, noise=2.0), old),
        "not worse": against(old, old, margin=0.1),
        "inconclusive": against(table(12, noise=0.3, seed=0), old),
    }
    for status, baseline in statuses.items():
        entry = baseline.scorers["mine"]
        assert entry.status == status
        assert (entry.queries_needed is not None) == (status == "inconclusive")
    reasons = {status: b.scorers["mine"].reason for status, b in statuses.items()}
    assert "a loss of more than 10% is ruled out" in reasons["not worse"]
    assert "a loss of more than 2% is established" in reasons["worse"]
    assert "neither ruled out nor established; about" in reasons["inconclusive"]


def test_the_numbers_decide_the_status() -> None:
    old = table(150, noise=0.4)
    for noise in (0.05, 0.2, 0.35, 0.4, 0.45, 0.6, 1.0, 3.0):
        entry = against(table(150, noise=noise), old, margin=0.05).scorers["mine"]
        assert entry.low is not None
        assert entry.high is not None
        assert entry.low <= entry.difference <= entry.high
        if entry.low > -0.05:
            assert entry.status == ("better" if entry.low > 0 else "not worse")
        else:
            assert entry.status == ("worse" if entry.high < -0.05 else "inconclusive")


def test_few_queries_are_said_and_never_enough_for_not_worse() -> None:
    for queries in (2, 3, 9):
        same = table(queries)
        entry = against(same, same).scorers["mine"]
        assert entry.status == "inconclusive"
        assert f"These are few: {queries} queries." in entry.reason
    assert "few" not in against(table(20), table(20)).scorers["mine"].reason


def test_other_judges_and_other_scales_are_said() -> None:
    value = np.random.default_rng(0).random((30, 6))
    new = {"mine": value, "value": value}
    for old in ({"correct": value * 100}, {"value": value - 10.0}):
        warnings = flat.audit(new, baseline={"mine": value, **old}, resamples=300).warnings
        judges = any("judged by 'value' and the old one by 'correct'" in w for w in warnings)
        assert judges == ("correct" in old)
        assert any("are they on one scale?" in text for text in warnings)
    assert not flat.audit(new, baseline=new, resamples=300).warnings


@pytest.mark.parametrize(
    ("new", "old", "match"),
    [
        (table(5), table(5, query=list("abcde")), "share no query: .*'0', … and 'a', …"),
        (table(5), table(5, 1), "no shared query has 2 candidates in both tables"),
        (table(5), table(5, query=range(4, 9)), "lie in one cluster; a comparison needs at least"),
        (table(4, cluster=[0] * 4), table(4), "lie in one cluster"),
        (table(5), {"mine": np.ones((5, 3)), "value": np.ones((5, 3))}, "no headroom"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(new: Any, old: Any, match: str) -> None:
    with pytest.raises(InputError, match=match) as refused:
        against(new, old)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("margin", [0, 1, -0.1, float("nan"), True, "0.02"])
def test_a_margin_is_a_share(margin: Any) -> None:
    with pytest.raises(InputError, match=r"^margin="):
        against(table(5), table(5), margin=margin)


@pytest.mark.parametrize("flag", ["--margin=0.1", "--baseline-scores=a=b"])
def test_what_is_about_a_baseline_needs_one(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(5).write(tmp_path / "t.parquet")
    assert main(["audit", str(tmp_path / "t.parquet"), "--out", str(tmp_path / "out"), flag]) == 2
    assert "is about the table that --baseline names; give both" in capsys.readouterr().err
    assert flat.audit(table(5), **QUICK).baseline is None


def test_the_same_seed_gives_the_same_comparison_and_the_audit_is_unchanged(tmp_path: Path) -> None:
    new, old = table(40), table(40, noise=0.6)
    first, again = (flat.audit(new, baseline=old, resamples=300) for _ in range(2))
    assert first == again
    content = first.to_dict()
    content.pop("baseline")
    assert content == flat.audit(new, resamples=300).to_dict()
    first.write(tmp_path / "out")
    assert AuditResult.read(tmp_path / "out").baseline == first.baseline
    assert "Against arrays, 40 queries shared:" in first.summary()


def test_tiny_values_are_compared_like_large_ones() -> None:
    value = np.random.default_rng(0).random((50, 6))
    rng = np.random.default_rng(1)
    scores = [value + rng.normal(0, noise, value.shape) for noise in (0.3, 0.5)]
    shares = []
    for scale in (1.0, 2.0**-300, 2.0**300):
        new, old = ({"mine": score, "value": value * scale} for score in scores)
        shares.append(against(new, old).scorers["mine"])
    assert shares[0] == shares[1] == shares[2]


# ------------------------------------------------------------------------------------ command line


def written(folder: Path, **tables: ScoredPools) -> dict[str, str]:
    paths = {name: folder / f"{name}.parquet" for name in tables}
    for name, pools in tables.items():
        pools.write(paths[name])
    return {name: str(path) for name, path in paths.items()}


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(
        tmp_path,
        old=table(200, noise=0.2),
        worse=table(200, noise=3.0),
        better=table(200, noise=0.01),
        other=table(5, query=list("abcde")),
    )
    rest = ["--baseline", path["old"], "--resamples", "300", "--out", str(tmp_path / "out")]
    gate = ["--scores", "mine", "--fail-on", "worse"]
    assert main(["audit", path["worse"], *rest]) == 0
    assert "\nworse         mine: At K = 8" in capsys.readouterr().out
    assert main(["audit", path["worse"], *rest, *gate]) == 1
    stored = json.loads((tmp_path / "out" / "audit.json").read_text())["baseline"]
    assert stored["scorers"]["mine"]["status"] == "worse"
    assert (stored["source"], stored["margin"]) == (path["old"], 0.02)
    assert len(stored["sha256"]) == 64
    assert main(["audit", path["better"], *rest, *gate]) == 0
    assert main(["audit", path["worse"], *rest, *gate, "--margin", "0.99"]) == 0
    capsys.readouterr()
    assert main(["audit", path["other"], *rest, *gate]) == 2
    assert "share no query" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--fail-on", "worse"], "--fail-on worse compares two tables; give --baseline."),
        (["--baseline", "FILE", "--baseline-scores", "mine"], "'mine' does not read as OLD=NEW."),
        (["--baseline", "nowhere.parquet"], "nowhere.parquet"),
        (["--baseline", "FILE", "--fail-on", "worst"], "'worst' is not a status"),
    ],
)
def test_the_command_line_refuses_in_one_sentence(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, new=table(6))["new"]
    given = [path if flag == "FILE" else flag for flag in flags]
    out = tmp_path / "out"
    assert main(["audit", path, "--scores", "mine", "--out", str(out), *given]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_picks_have_no_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picks = tmp_path / "picks.csv"
    picks.write_text("query,selector,value\n1,a,0\n1,b,1\n2,a,1\n2,b,2\n")
    for flags in (["--baseline", "x.csv"], ["--margin", "0.1"], ["--baseline-scores", "a=b"]):
        assert main(["audit", "--picks", str(picks), *flags]) == 2
        assert flags[0] in capsys.readouterr().err


# ---------------------------------------------------------------------------------------- the ends


def test_ends_count_a_cluster_that_was_not_seen() -> None:
    """Nothing was seen to change: 1 - 0.025**(1/n) of the weight is where it was not seen."""
    for clusters in (10, 40, 200):
        zero, one = np.zeros((clusters, 1)), np.ones(clusters)
        pairs = PairedSums(zero, one, -2 * one, 3 * one)
        (ends,) = pairs.ends(np.random.default_rng(0), 20_000, TAIL)
        share = 1 - 0.025 ** (1 / clusters)
        assert ends.value == 0
        assert ends.low == pytest.approx(-2 * share, rel=0.05)
        assert ends.high == pytest.approx(3 * share, rel=0.05)


def test_no_two_scores_change_the_value_by_more_than_the_unseen_cluster_does() -> None:
    """By brute force over the orders of both pools, where the best of 3 is compared."""
    rng = np.random.default_rng(0)
    new, old = rng.normal(size=(2, 3)), rng.normal(size=(2, 4))

    def pairs(a: tuple[int, ...], b: tuple[int, ...]) -> PairedSums:
        newer, older = (
            judged_pools(ScoredPools.from_arrays(np.tile(order, (2, 1)), value))
            for order, value in ((a, new), (b, old))
        )
        return SharedQueries.of(newer, older).pairs({"score": "score"}, Settings())

    every = [pairs(a, b) for a in permutations(range(3)) for b in permutations(range(4))]
    changes = np.stack([pair.change[:, 0] for pair in every])
    assert np.allclose(changes.min(axis=0), every[0].lowest)
    assert np.allclose(changes.max(axis=0), every[0].highest)


@pytest.mark.parametrize("name", [*CASES, CLUSTERED])
@pytest.mark.parametrize("clusters", quick([10, 50, 400], [10, 50]))
def test_at_the_margin_both_claims_are_rarely_made(name: str, clusters: int) -> None:
    repetitions = 150
    # 5 % and three standard errors of such a share.
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / repetitions)
    assert max(claims(name, clusters, 0.1, repetitions, resamples=200)) <= most


def test_rare_harm_fools_ends_that_count_only_what_was_seen() -> None:
    """The cases can fail a rule: without the unseen cluster rare harm is called *not worse*."""
    rng, margin = np.random.default_rng(0), 0.1
    wrong = 0
    for _ in range(200):
        pairs = drawn("the worst pick in a few queries", rng, 20, margin)
        blind = replace(pairs, lowest=0 * pairs.lowest, highest=0 * pairs.highest)
        wrong += blind.ends(rng, 200, TAIL)[0].low > -margin
    assert wrong > 0.2 * 200
