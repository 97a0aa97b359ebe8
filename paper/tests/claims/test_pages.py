"""Pages that quote stored results are what the command makes of them."""

from __future__ import annotations

import json
import re
import shutil
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from toptail.errors import InputError
from toptail.io.arrays import read_arrays
from toptail.io.json_files import read_json, write_json
from toptail_paper.claims import pages, pages_power, pages_selection, pages_tables, pages_time
from toptail_paper.claims import report as module
from toptail_paper.claims.numbers import Number, difference
from toptail_paper.claims.pages import (
    DOCS,
    EVERY,
    LEDGERS,
    PAGES,
    PARTS,
    REPORT,
    ROOT,
    ledger,
    refreshed,
)
from toptail_paper.claims.pages_power import PAIRS
from toptail_paper.claims.pages_selection import CHECK, ERROR, MAIN, STUDY, rows
from toptail_paper.claims.report import printed, report, template
from toptail_paper.claims.reported import NAVIGATION, published
from toptail_paper.study.naming import data_set

RESULTS = ROOT / "paper" / "results"
FOLDERS = (STUDY, MAIN)
WALKERS = NAVIGATION[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_is_made(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert refreshed(text) == text, "run python -m toptail_paper.claims.pages"


def test_every_part_stands_on_a_page_and_every_ledger_is_counted() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"<!-- made: (\w+) -->", texts)) == set(PARTS)
    stored = {path.parent.relative_to(RESULTS).as_posix() for path in RESULTS.rglob("claims.json")}
    assert set(LEDGERS) == {name for name in stored if not name.startswith("variants/")}


def test_a_variant_stands_beside_the_main_settings_where_they_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in EVERY:
        entries = [{**entry, "depends_on": None} for entry in ledger(name)[:3]]
        changed = [{**entry, "status": "seen"} for entry in entries]
        changed[0]["status"] = "not seen"
        entries[0]["status"], entries[1]["status"] = "depends", "seen"
        entries[2]["status"] = "seen"
        write_json(tmp_path / name / "claims.json", entries)
        write_json(tmp_path / "variants" / "old walkers" / name / "claims.json", changed)
    monkeypatch.setattr(pages, "published", lambda: tmp_path)
    lines = pages.variants().splitlines()
    assert lines[0] == "| entry | ledger | main settings | old walkers |"
    assert len(lines) == 2 + len(EVERY)
    assert all(line.endswith("| depends | not seen |") for line in lines[2:])


def test_a_part_is_replaced_between_its_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PARTS", {"x": lambda: "new\n"})
    page = "a\n<!-- made: x -->\nold\nlines\n<!-- end: x -->\nb\n"
    assert refreshed(page) == "a\n<!-- made: x -->\nnew\n<!-- end: x -->\nb\n"


# What pages say about PointMaze's judges and trivial scores is what stored scores say.


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    names = [f"{critic}@{seed}" for critic in ("tdq", "raw") for seed in (42, 43, 44)]
    columns = [*names, "value_exact"]
    table = pq.read_table(published() / STUDY / "scored_pools", columns=columns)
    return {name: table[name].to_numpy().astype(np.float64).reshape(-1, 64) for name in columns}


def test_stored_levels_are_those_of_the_stored_values(stored: dict[str, Any]) -> None:
    """Pool by pool, by sorting and counting; the exact value's steps differ in 16 bits, too."""
    shares, ceilings = {1: 0, 2: 0, 3: 0}, []
    for pool in stored["value_exact"]:
        counts = [len(list(same)) for _, same in groupby(sorted(pool))]
        shares[len(counts)] = shares.get(len(counts), 0) + 1
        tied = sum(n * (n - 1) for n in counts) / (64 * 63)
        ceilings.append(np.sqrt(1 - tied) if tied < 1 else np.nan)
    row = rows(STUDY, "judges")["exact"]
    for n in (1, 2, 3):
        assert row[f"levels_{n}"]["mean"] == pytest.approx(shares[n] / 7500)
    by_query = np.array(ceilings).reshape(1500, 5)
    known = ~np.isnan(by_query).all(axis=1)
    ceiling = np.nanmean(by_query[known], axis=1).mean()
    assert row["tau_b_ceiling"]["mean"] == pytest.approx(ceiling)
    assert f"{100 * shares[3] / 7500:.1f} %" in pages_selection.levels()


def test_stored_best_picks_are_those_of_the_stored_scores(stored: dict[str, Any]) -> None:
    best = stored["value_exact"] == stored["value_exact"].max(axis=1, keepdims=True)
    table = rows(STUDY, "fixed-query")
    assert table["random"]["exact/best_pick_64"]["mean"] == pytest.approx(best.mean())
    for critic in ("tdq", "raw"):
        shares = []
        for seed in (42, 43, 44):
            top = [np.flatnonzero(pool == pool.max()) for pool in stored[f"{critic}@{seed}"]]
            shares.append(np.mean([one[at].mean() for one, at in zip(best, top, strict=True)]))
        cell = table[critic]["exact/best_pick_64"]
        assert cell["mean"] == pytest.approx(np.mean(shares))
        assert f"{100 * np.mean(shares):.0f} % (" in pages_selection.best_picks()


def test_candidates_without_a_model_are_like_the_studys() -> None:
    """The judges' error is measured on them: levels and best picks at random agree."""
    own, near = (rows(folder, "judges")["exact"] for folder in (STUDY, CHECK))
    for name in ("levels_1", "levels_2", "levels_3", "tau_b_ceiling"):
        assert near[name]["mean"] == pytest.approx(own[name]["mean"], abs=0.01)
    own, near = (rows(folder, "fixed-query")["random"] for folder in (STUDY, CHECK))
    assert near["exact/best_pick_64"]["mean"] == pytest.approx(
        own["exact/best_pick_64"]["mean"], abs=0.01
    )


def test_the_main_settings_have_the_studys_queries_and_candidates() -> None:
    """The pages put numbers of both runs side by side."""
    found = [read_arrays(published() / folder / "rollouts.npz")["header"] for folder in FOLDERS]
    own, main = (json.loads(str(header[1])) for header in found)
    for name in ("queries", "candidates", "policy", "seed", "repeats", "horizon"):
        assert own[name] == main[name]


def test_trivial_scores_and_the_continuous_judge_are_the_main_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (STUDY, MAIN, CHECK):
        shutil.copytree(published() / folder / "tables", tmp_path / folder / "tables")
    table, judges = (tmp_path / MAIN / "tables" / f"{n}.json" for n in ("fixed-query", "judges"))
    content = read_json(table)
    ends = {"mean": 0.125, "low": 0.0625, "high": 0.25}
    content["rows"]["PointMaze"]["straight"]["exact/nregret_64"] |= ends
    write_json(table, content)
    content = read_json(judges)
    content["rows"]["PointMaze"]["exact_continuous"]["tau_b_ceiling"]["mean"] = 0.5
    write_json(judges, content)
    error = read_json(published() / CHECK / ERROR)
    write_json(tmp_path / STUDY / ERROR, {**error, "pools": 12345})
    monkeypatch.setattr(pages_selection, "published", lambda: tmp_path)
    assert "straight line gets 0.88 [0.75, 0.94]" in " ".join(pages_selection.trivial().split())
    assert "| Exact value, continuous | 18.2 % | 0.6 % | 0.3 % | 80.9 % | 0.50 |" in (
        pages_selection.levels()
    )
    assert "12345 pools" in pages_selection.judge_error()


# Gains and differences of the rollouts are what the stored returns say.


@pytest.fixture(scope="module", params=NAVIGATION)
def returned(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any], Any]:
    task: str = request.param
    arrays = read_arrays(published() / f"zoo/selection/{data_set(task)}" / "rollouts.npz")
    random = arrays["random_returns"].astype(np.float64).mean(axis=(1, 2))
    picked = arrays["returns"].astype(np.float64).mean(axis=2)
    names = np.array([str(name).partition("@")[0] for name in arrays["selectors"]])
    gains = {n: picked[:, names == n].mean(axis=1) - random for n in set(names)}
    return task, gains, arrays["trajectory"]


def test_a_difference_of_gains_is_that_of_the_returns(
    returned: tuple[str, dict[str, Any], Any],
) -> None:
    """By a bootstrap of its own, trajectory by trajectory."""
    task, gains, trajectory = returned
    pairs = [pair for pair in PAIRS if set(pair) <= gains.keys()]
    assert len(pairs) >= 4
    for a, b in pairs:
        each = gains[a] - gains[b]
        found = pages_power.less(a, b, task)
        assert found.mean == pytest.approx(each.mean(), abs=1e-7)
        of = [each[trajectory == t] for t in np.unique(trajectory)]
        rng = np.random.default_rng(1)
        drawn = [
            np.concatenate([of[i] for i in rng.integers(0, len(of), len(of))]).mean()
            for _ in range(2000)
        ]
        low, high = np.percentile(drawn, [2.5, 97.5])
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.15 * (high - low))
        assert (found.low > 0 or found.high < 0) == (low > 0 or high < 0)


def gain(task: str, name: str) -> Number:
    return pages_power.gain(pages_power.main_rollouts(task), task, name)


def test_the_readme_s_numbers_are_the_stored_ones() -> None:
    text = " ".join((pages.ROOT / "README.md").read_text(encoding="utf-8").split())
    changed, every = re.match(r"(\d+) of (\d+) criteria", pages.change_counts()).groups()  # type: ignore[union-attr]
    assert f"Each of {every} statements" in text
    assert f"{changed} of {every} criteria changed" in text
    picks = rows(STUDY, "fixed-query")
    metric = pages_selection.by_exact("best_pick")
    tdq, raw, random = (f"{100 * picks[x][metric]['mean']:.0f} %" for x in ("tdq", "raw", "random"))
    main = read_json(published() / f"zoo/{STUDY}/tables/fixed-query.json")["rows"]["PointMaze"]
    straight = f"{100 * main['straight'][metric]['mean']:.0f} %"
    assert f"finds a best action in {tdq} of the pools, counting whole steps" in text
    assert (
        f"does in {raw} (a random pick: {random}, a straight line to the goal: {straight})" in text
    )
    ratio = pages_power.times("tdq", "raw").mean
    assert f"TD-Q's picks gain {ratio:.1f} times as much over a random one as raw's" in text
    auc = [
        cells[critic]["auc"]["mean"]
        for cells in read_json(published() / "semantics/tables/retrieval.json")["rows"].values()
        for critic in ("raw", "cosine")
        if critic in cells
    ]
    assert f"(AUC {min(auc):.2f} to {max(auc):.2f})" in text
    for task in WALKERS:
        tables = pages_power.rollouts()[task]
        for other in ("raw", "cosine", "hybrid"):
            both = (pages_power.gain(tables, task, name) for name in ("tdq", other))
            assert difference(*both).low < 0
    for task in WALKERS:
        others = ("raw",) if task == "AntMaze" else ("raw", "cosine", "hybrid")
        assert all(pages_power.less("tdq", other, task).low < 0 for other in others)
    assert {task for task in WALKERS if gain(task, "tdq").low > 0} == {"AntMaze"}
    assert gain("AntMaze", "raw").low > 0
    for name in ("raw", "cosine", "hybrid"):
        assert gain("HumanoidMaze", name).low > 0
        assert gain("AntSoccer", name).low < 0


def test_the_sum_of_all_pieces_is_that_of_the_records() -> None:
    runs = read_json(published() / "semantics" / "runs.json")
    groups = {}
    for key, run in runs.items():
        task, critic, _ = key.split("/")
        groups[task, critic, tuple(run["trained_with"])] = run["seconds"]
    text = pages_time.pieces()
    assert f"| {len(groups)} | {round(sum(groups.values())):,} |" in text
    rollouts = [
        call["seconds"]
        for path in (published() / "selection").glob("*/record.json")
        for call in (lambda record: (record, *record.get("earlier", ())))(read_json(path))
        if "rollouts" in call["command"]
    ]
    assert f"| rollouts | cores | {len(rollouts)} | {round(sum(rollouts)):,} |" in text


def test_a_task_alone_is_decided_as_its_own_ledger_is() -> None:
    home = published() / "selection" / "antmaze-medium-navigate-v0"
    alone = pages.decided("selection", home, "AntMaze")
    ledger = {entry["id"]: entry for entry in json.loads((home / "claims.json").read_text("utf-8"))}
    assert alone.keys() <= ledger.keys()
    assert len(alone) >= 12
    for claim, entry in alone.items():
        assert entry["status"] == ledger[claim]["status"]
        assert entry["number"] == pytest.approx(ledger[claim]["number"])


def test_what_is_said_of_gains_is_so() -> None:
    """The page's sentences below its tables of gains."""
    critics = {
        "PointMaze": ["tdq", "raw", "cosine", "value_head"],
        "AntMaze": ["tdq", "raw", "value_head"],
    }
    for task, names in critics.items():
        for name in names:
            found = gain(task, name)
            assert found.low > 0
            assert min(found.seeds.values()) > 0
    for pair in (("tdq", "raw"), ("tdq", "value_head"), ("reference", "tdq")):
        found = pages_power.less(*pair, "AntMaze")
        assert found.low < 0 < found.high
    assert pages_power.less("value_head", "reference").low > 0
    for name in ("straight", "likely"):
        assert pages_power.less(name, "raw").mean > 0
    assert abs(pages_power.less("raw", "cosine").mean) < 0.001
    text = " ".join((DOCS / "results" / "selection.md").read_text(encoding="utf-8").split())
    assert f"{pages_power.LEAST:.2f} half-widths" in text
    assert "501 queries of 99 trajectories" in text


def test_what_is_said_of_both_continuations_is_so() -> None:
    """The walkers' page: who gains where, and how far the reference agrees with rollouts."""
    selectors = {*("tdq", "raw", "cosine", "hybrid"), *("likely", "logged", "reference")}
    gaining = {
        "HumanoidMaze": selectors - {"tdq", "reference"},
        "AntSoccer": {"likely", "logged"},
    }
    for task, names in gaining.items():
        assert {name for name in selectors if gain(task, name).low > 0} == names
        table = pages_tables.stored("zoo/selection", "rollouts-expert", task)
        by_expert = table["rows"][task]
        assert by_expert.keys() == selectors
        assert all(
            cell["low"] < 0 < cell["high"] for x in by_expert.values() for cell in x.values()
        )
    assert max(gain("HumanoidMaze", name).mean for name in selectors) < 0.006
    for other in ("raw", "cosine", "hybrid"):
        seeds = pages_power.seed_differences(
            pages_power.main_rollouts("HumanoidMaze"), "HumanoidMaze", "tdq", other
        )
        assert max(seeds) < 0


def test_decidable_is_a_true_difference_that_is_shown_in_four_runs_of_five() -> None:
    half = 1.0
    rng = np.random.default_rng(0)
    estimates = rng.normal(pages_power.LEAST * half, half / 1.959964, 100_000)
    assert np.mean(np.abs(estimates) > half) == pytest.approx(0.8, abs=0.005)


def test_the_table_of_power_says_what_the_paper_could_not_decide() -> None:
    text = pages_power.power()
    rows = {
        r.split(" | ")[0]: r.split(" | ") for r in re.findall(r"^\| (.+: TD.+) \|$", text, re.M)
    }
    assert len(rows) == 12
    for name, (_, paper, _, forecast, measured, least, decidable) in rows.items():
        width = float(measured or forecast)
        assert float(least) == pytest.approx(1.4294 * width, abs=2e-4), name
        if paper == "–":
            assert decidable == "–"
            continue
        decided = abs(float(paper.replace("−", "-"))) >= float(least)
        assert decidable == ("yes" if decided else "no"), name
        task, _, words = name.partition(": ")
        assert (f"{words} on {task}" in " ".join(text.split())) == (not decided)


# The report is what is made of stored files, and has no number of its own.


NAMES = r"c74733e|113013f|2532265|95 %|2-D|0/1|−1/0|K = 64|^\d\. |γ\^d"
"""What has a digit and is no result: commits, the level of intervals, names, a list's numbers."""


@pytest.fixture(scope="module")
def written() -> str:
    return report()


def test_the_report_is_what_is_made(written: str) -> None:
    assert REPORT.read_text(encoding="utf-8") == written, "run python -m toptail_paper.claims.pages"


def test_every_number_is_a_placeholder() -> None:
    text = re.sub(r"\{\{.+?\}\}|\]\(.+?\)|`.+?`", "", template(), flags=re.DOTALL)
    assert re.findall(r".*\d.*", re.sub(NAMES, "", text, flags=re.MULTILINE)) == []


def test_every_section_begins_with_its_result(written: str) -> None:
    sections = written.split("\n## ")[1:]
    assert len(sections) == 10
    for section in sections:
        assert re.match(r".+\n\n\*\*[^*]+\.", section), section[:60]


def test_the_sentence_about_central_claims_fits_their_statuses(written: str) -> None:
    """Where a status changes, the first sentence of the section has to be written anew."""
    table = written.split("## Scope and claims")[1].split("## Method")[0]
    rows = [row.split(" | ")[-1].split()[0] for row in re.findall(r"^\| (.+) \|$", table, re.M)]
    assert rows[1:] == ["seen", "seen", "depends", "depends", "seen", *["depends"] * 3]


@pytest.mark.parametrize(
    ("found", "form", "text"),
    [
        (1234, "n", "1,234"),
        ({"mean": -0.016, "low": -0.03, "high": 0.004}, "2ci", "−0.02 [−0.03, 0.00]"),
        ({"mean": 0.0125, "low": 0.008, "high": 0.0174}, "+4ci", "+0.0125 [0.0080, 0.0174]"),
        ({"mean": 0.978, "low": 0.972, "high": 0.983}, "%ci", "98 % [97, 98]"),
        ({"mean": 0.00537}, "2m", "5.37"),
        ({"mean": 0.6, "seeds": {"0": 0.85, "1": 0.5}}, "seeds%", "85 % and 50 %"),
        (0.056793, "3", "0.057"),
        ({"mean": 0.5, "std": 0.02, "low": 0.4, "high": 0.6}, "2±ci", "0.50 ± 0.02 [0.40, 0.60]"),
        ({"mean": 0.5, "std": None}, "2±", "0.50"),
        ({"mean": -0.5, "low": -10.5, "high": -0.1}, "+.1*ci", "−.5* [−10.5, −.1]"),
        ({"mean": 0.5, "low": 0.0, "high": 0.9}, "+1*", "+0.5"),
        ({"mean": 0.0}, "yes", "no"),
    ],
)
def test_a_number_is_written_in_its_form(found: Any, form: str, text: str) -> None:
    assert pages_tables.written(found, form) == text


def test_a_place_has_our_number_the_papers_or_both() -> None:
    place = ("semantics", "twohead", "PointMaze")
    assert pages_tables.shown(*place, "separate", "auc", "2±(1)") == "0.94 ± 0.00 (1.0)"
    assert pages_tables.shown(*place, "separate", "auc", "(3)") == "0.962"
    assert pages_tables.shown(*place, "tdq_ref", "auc", "3(3)") == pages_tables.NOTHING


def test_a_printed_table_is_read_by_row_column_and_line() -> None:
    table, column = "Selection at K = 64", "Rollouts: Δ against random"
    assert printed(table, "Hybrid", column) == "+0.0105"
    assert printed(table, "Hybrid", column, "1") == "[0.0063, 0.0148]"
    assert printed(table, "Hybrid", column, "2") == "−0.018"
    assert printed(table, "TD-Q", "Reference ensemble: τ_b") == "0.70 ± 0.00"
    assert printed("Ordering", "Cosine", "AntMaze") == "0.321 ± 0.001"


@pytest.mark.parametrize(
    "placeholder",
    ["cell semantics main PointMaze tdq nothing 2", "printed Ordering Nobody AntMaze", "what 2"],
)
def test_a_placeholder_that_names_nothing_is_refused(
    placeholder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "template", lambda: f"{{{{{placeholder}}}}}")
    with pytest.raises(InputError, match="names nothing stored"):
        report()


def test_every_link_leads_to_a_heading_that_is_there(written: str) -> None:
    for name, place in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", written):
        page = REPORT.parent / name if name else REPORT
        assert page.exists(), name
        if place:
            headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            known = [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
            assert place in known, f"{name}#{place}"
