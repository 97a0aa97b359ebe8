"""Results: what they show, give and store."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import toptail
from toptail import AuditResult, InputError, PicksResult, ScoredPools, Verdict, builtin_pools
from toptail.report.html import render_html

HOSTILE = "<script>alert(1)</script>\nname"


def seeded() -> ScoredPools:
    """Pools with seeds, groups, support and binary values."""
    rng = np.random.default_rng(0)
    value = (rng.random((40, 8)) < 0.4) * 1.0
    scores = {f"raw@{seed}": value + rng.normal(0, 0.3, value.shape) for seed in (42, 43)}
    return ScoredPools.from_arrays(
        scores | {HOSTILE: -value},
        value,
        support=rng.random(value.shape) < 0.5,
        group=["near", "far"] * 20,
    )


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return toptail.audit(builtin_pools(60, 16), resamples=300)


@pytest.fixture(scope="module")
def rich() -> AuditResult:
    return toptail.audit(seeded(), resamples=300)


@pytest.fixture(scope="module")
def picks() -> PicksResult:
    rows = [
        {"query": q, "selector": name, "value": q % 3 + gain}
        for q in range(12)
        for name, gain in (("random", 0.0), ("mine", 1.0))
    ]
    return toptail.audit_picks(rows, resamples=300)


def test_verdicts_are_a_mapping_by_scorer(result: AuditResult) -> None:
    verdict = result.verdicts["cursed"]
    assert isinstance(verdict, Verdict)
    stored = result.to_dict()["scorers"]["cursed"]["verdict"]
    assert {**vars(verdict)} == stored
    assert list(result.verdicts) == ["perfect", "noisy", "cursed", "reversed", "constant"]
    assert isinstance(hash(verdict), int)


def test_a_scorer_has_its_curve_and_diagnostics(result: AuditResult, rich: AuditResult) -> None:
    content = result.to_dict()
    scorer = result.scorers["noisy"]
    assert scorer.curve.k.tolist() == result.k == content["k"]
    assert scorer.curve.value.tolist() == content["scorers"]["noisy"]["value"]
    assert np.isnan(scorer.curve.captured[0])  # at K = 1 there is nothing to capture
    assert scorer.captured.value == content["scorers"]["noisy"]["captured"][-1]
    assert scorer.tau_b.low == content["scorers"]["noisy"]["tau_b"]["low"]
    assert scorer.auc is None
    assert scorer.seeds == {}
    raw = rich.scorers["raw"]
    assert raw.auc is not None
    assert raw.auc.value == rich.to_dict()["scorers"]["raw"]["auc"]
    assert list(raw.seeds) == [42, 43]
    assert rich.groups["near"]["raw"].verdict.status in ("safe", "inconclusive")
    assert scorer == toptail.audit(builtin_pools(60, 16), resamples=300).scorers["noisy"]
    assert repr(scorer).startswith("ScorerResult(noisy: safe up to best of 16 of pools ")
    assert repr(scorer.curve).startswith("Curve(K = 1 to 16, value 0.4")


def test_repr_has_one_line_for_each_scorer(result: AuditResult, rich: AuditResult) -> None:
    lines = repr(result).splitlines()
    assert lines[0].startswith("AuditResult: 60 queries, 960 candidates")
    assert len(lines) == 6
    cursed = result.verdicts["cursed"]
    said = f"cursed: unsafe from best of {cursed.k_harm} of pools like these (safe up to best of "
    assert lines[3].startswith(f"{said}{cursed.k_safe_max}): gain +0.")
    assert lines[3].endswith(f" at K = {cursed.k_best}")
    assert len(repr(rich).splitlines()) == 3


def test_a_notebook_shows_the_verdicts_escaped(rich: AuditResult) -> None:
    html = rich._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") == 3
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "http" not in html


def test_a_notebook_shows_colours_curves_values_and_groups(rich: AuditResult) -> None:
    html, content = unescape(rich._repr_html_()), rich.to_dict()
    assert html.count("<svg") == len(rich.scorers)
    assert html.count('stroke-width="2"') == len(rich.scorers)  # each with its own curve
    pills = re.findall(r"background:(#\w+).*?>([^<]+)</span>", html)
    assert [text for _, text in pills if text in rich.groups] == ["near", "far"] * 2
    colours = {text: colour for colour, text in pills if text not in rich.groups}
    assert len(colours) == len(set(colours.values())) == 2  # safe and unsafe
    value = rich.scorers["raw"].curve.value[-1]
    ends = (content["random"], value, content["oracle"][-1])
    assert "{:.3f} → {:.3f} of a possible {:.3f}".format(*ends) in html
    page = re.sub(r"\s+", " ", unescape(render_html(content)))
    assert "Value from a random candidate to the best of 8: {:.3f} → {:.3f}".format(*ends) in page


def test_tables_hold_every_digit(result: AuditResult, rich: AuditResult) -> None:
    names = ("verdicts", "curves", "oracle", "ordering", "deciles", "off_support")
    assert result.tables == (*names, "comparisons", "checks")
    assert rich.tables == (*names, "seeds", "groups", "comparisons", "checks")
    content = rich.to_dict()
    for name in rich.tables:
        assert isinstance(rich.table(name), pa.Table)
    curves = rich.table("curves").to_pylist()
    own = [row["value"] for row in curves if row["scorer"] == "raw"]
    assert own == content["scorers"]["raw"]["value"]
    assert curves[0]["captured"] is None
    verdicts = rich.table("verdicts").to_pylist()
    assert [row["status"] for row in verdicts] == [v.status for v in rich.verdicts.values()]
    seeds = rich.table("seeds").to_pylist()
    assert {row["seed"] for row in seeds} == {42, 43}
    for row in (*seeds, *rich.table("groups").to_pylist()):  # a status names its K
        assert row["k_safe_max"] == (8 if row["status"] == "safe" else None)
    assert len(rich.table("groups")) == 2 * 2 * len(rich.k)
    assert rich.table("comparisons").to_pylist()[0].keys() >= {"a", "b", "difference", "p_holm"}
    needed = result.table("verdicts").column("queries_needed")
    assert needed.type == pa.float64()  # nothing is inconclusive: still a column of numbers


def test_an_unknown_table_or_figure_lists_those_there_are(result: AuditResult) -> None:
    with pytest.raises(InputError, match=r"no table 'seeds'.*verdicts, curves, oracle"):
        result.table("seeds")
    with pytest.raises(InputError, match=r"no figure 'x'.*best_of_k, deciles"):
        result.plot("x")


def test_plot_gives_a_figure_of_its_own(result: AuditResult, picks: PicksResult) -> None:
    assert "Best-of-K" in result.plot("best_of_k").axes[0].get_title(loc="left")
    assert len(result.plot("deciles").axes) == 2
    assert "differences" in picks.plot().axes[0].get_title(loc="left")


def test_plotting_leaves_no_global_state() -> None:
    code = (
        "import sys, toptail, matplotlib as mpl; before = mpl.rcParams['axes.edgecolor']; "
        "toptail.audit(toptail.builtin_pools(5, 4), resamples=100).plot(); "
        "print(before == mpl.rcParams['axes.edgecolor'], 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True False"


@pytest.mark.parametrize("kind", ["result", "rich", "picks"])
def test_what_is_written_is_read_back(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    result = request.getfixturevalue(kind)
    page = result.write(tmp_path / "out")
    assert page == tmp_path / "out" / "report.html"
    assert page.is_file()
    again = type(result).read(tmp_path / "out")
    assert again == result == type(result).from_dict(result.to_dict())
    assert hash(again) == hash(result)
    assert (tmp_path / "out" / "audit.json").read_text() == json.dumps(
        result.to_dict(), indent=1, allow_nan=False
    ) + "\n"


def test_the_dictionary_is_a_copy(result: AuditResult) -> None:
    content = result.to_dict()
    content["scorers"].clear()
    assert result.verdicts
    assert result != AuditResult.from_dict(content)
    assert result != "something else"


def test_each_kind_reads_its_own(tmp_path: Path, result: AuditResult, picks: PicksResult) -> None:
    with pytest.raises(InputError, match="kind 'picks'; AuditResult takes one of kind 'pools'"):
        AuditResult.from_dict(picks.to_dict())
    result.write(tmp_path / "out")
    with pytest.raises(InputError, match="kind 'pools'; PicksResult takes one of kind 'picks'"):
        PicksResult.read(tmp_path / "out")


def test_picks_show_each_selector(picks: PicksResult) -> None:
    assert picks.baseline == "random"
    assert picks.selectors["mine"].value == pytest.approx(2.0)
    assert repr(picks).splitlines()[1].startswith("mine: 2.00 [")
    assert picks.tables == ("differences", "selectors")
    (row,) = picks.table("differences").to_pylist()
    assert (row["a"], row["b"]) == ("mine", "random")
    assert row["difference"] == pytest.approx(1.0)
    assert "mine" in picks._repr_html_()


def test_reading_renders_nothing(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result.write(tmp_path / "out")

    def broken(*_: object) -> None:
        raise AssertionError("rendered")

    for name in ("render_html", "render_latex", "render_markdown"):
        monkeypatch.setattr(f"toptail.results.{name}", broken)
    assert AuditResult.read(tmp_path / "out") == result


def test_a_choice_has_tables_a_figure_and_a_notebook_view() -> None:
    choice = toptail.choose(
        builtin_pools(40, 8), scores="cursed", selectors=["trim", "threshold"], resamples=100
    )
    assert choice.tables == ("families", "chosen", "differences", "curves", "coverage")
    families = choice.table("families").to_pylist()
    assert [row["family"] for row in families] == [
        row["family"] for row in choice.to_dict()["families"]
    ]
    assert json.loads(families[0]["parameters"]) == choice.to_dict()["families"][0]["parameters"]
    assert choice.table("curves")["k"][0].as_py() == [1, 2, 4, 8]
    with pytest.raises(InputError, match=r"no table 'x'.*families, chosen"):
        choice.table("x")
    assert len(choice.plot().axes) == 2
    with pytest.raises(InputError, match="no figure 'x'"):
        choice.plot("x")
    assert choice.answer in unescape(choice._repr_html_())
    assert choice._repr_html_().count("<tr>") == 1 + 1 + len(choice.baselines)
    assert repr(choice).startswith("ChoiceResult: ")


def test_summary_is_what_the_command_prints(result: AuditResult) -> None:
    assert "cursed" in result.summary()
    assert result.warnings == tuple(result.to_dict()["warnings"])
