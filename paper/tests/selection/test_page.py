"""The page: everything that is stored is shown, and what is missing is left out."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.selection.stored_stages import Stages
from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail.report.table import Table
from toptail_paper.claims import annotate
from toptail_paper.claims.reported import published
from toptail_paper.selection.figures import drawings
from toptail_paper.selection.page import summary
from toptail_paper.selection.results import JudgeMetric, SelectionResults, read_selection_results
from toptail_paper.selection.show import circular_words, group_sheets, verdict_sheets
from toptail_paper.selection.specs import TABLES
from toptail_paper.selection.study import STUDY
from toptail_paper.study.naming import scorer_name
from toptail_paper.study.page import study_page
from toptail_paper.study.show import shown_tables


@pytest.fixture(scope="module")
def study(finished: Path) -> SelectionResults:
    return read_selection_results(finished)


def shown(study: SelectionResults, name: str) -> Table:
    """The only table that a spec shows."""
    (table,) = shown_tables(TABLES[name], study)
    return table


def cells(table: Table) -> dict[str, tuple[str, ...]]:
    """First cell of each row to the others, with what stands below them."""
    return {row[0].text: tuple(cell.plain for cell in row[1:]) for row in table.rows}


def test_the_page_quotes_the_declaration_and_holds_every_part(
    finished: Path, study: SelectionResults
) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert study.declared["hash"] in page
    assert study.declared["query_sha256"] in page
    for part in ("tab:fixed-query", "tab:function-class", "verdicts", "judges", "closed_loop"):
        assert f'id="{part}"' in page
    assert page.count("<figure") == 3
    assert not re.search(r'(src|href)="(?!data:|#)', page)  # nothing is loaded
    for name in ("curves", "rollouts", "closed_loop"):
        assert (finished / "figures" / f"{name}.svg").is_file()


def test_the_main_table_has_every_judge_beside_the_papers_cells(study: SelectionResults) -> None:
    table = shown(study, "fixed-query")
    assert [column.label for column in table.columns] == [
        *("Critic", "Reference ensemble: τ_b", "Reference ensemble: regret"),
        *("Euclidean shortest way: τ_b", "Euclidean shortest way: regret"),
        "Rollouts: Δ against random",
    ]
    rows = cells(table)
    stored = study.of_task("fixed-query")
    assert f"{stored['raw']['tau_b_64']['mean']:.2f}" in rows["Raw bilinear"][0]
    assert "paper 0.41 ± 0.01" in rows["Raw bilinear"][0]
    assert "†" in rows["TD-Q"][0]
    assert "†" not in rows["TD-Q"][2]
    assert rows["TD-Q"][4].startswith("+0.01")
    assert "paper +0.012*" in rows["TD-Q"][4]
    assert rows["Logged action"][0] == "n/a"


def test_the_page_names_the_circular_rows(study: SelectionResults, finished: Path) -> None:
    rows = study.of_task("fixed-query")
    circular = [n for n, row in rows.items() if row.get("tau_b_64", {}).get("circular")]
    assert "tdq" in circular
    sentence = circular_words(study)
    for name, row in rows.items():
        if "tau_b_64" in row:
            assert (scorer_name(name) in sentence) == (name in circular)
    assert sentence in shown(study, "fixed-query").caption
    assert sentence.rstrip() in html.unescape((finished / "report.html").read_text("utf-8"))


def test_every_judge_has_its_table_by_distance(study: SelectionResults) -> None:
    reference, euclidean = (sheet.table for sheet in group_sheets(study))
    stored = study.of_task("fixed-query")["tdq"]
    for table, metric in (
        (reference, "tau_b_64/near"),
        (euclidean, "euclidean/tau_b_64/near"),
    ):
        assert f"{stored[metric]['mean']:.2f}" in cells(table)["TD-Q"][0]
    assert "†" in cells(reference)["TD-Q"][0]
    assert "†" not in cells(euclidean)["TD-Q"][0]


def test_the_square_and_the_verdicts(study: SelectionResults) -> None:
    square = shown(study, "function-class")
    assert [row[0].plain for row in square.rows][:2] == [
        "Contrastive Reference ensemble",
        "TD / Bellman Reference ensemble",
    ]
    assert "paper 0.70 ± 0.01 [0.33 ± 0.00]" in square.rows[1][1].detail
    (verdicts,) = verdict_sheets(study)
    assert (
        verdicts.table.rows[0][1].status
        == study.audits["reference"]["scorers"]["tdq"]["verdict"]["status"]
    )


def test_the_judges_stand_beside_their_declared_thresholds(study: SelectionResults) -> None:
    table = shown(study, "judges")
    rows = {row[1].text: row[2:] for row in table.rows}
    number, limit, status = rows["pools resolved, near: the prespecified group"]
    assert (number.text, limit.text, status.status) == ("1.000", "at least 0.5", "pass")
    (widest,) = (key for key in rows if key.startswith("widest half-width of a selector's gain: "))
    assert rows[widest][1].text == "below 0.012"
    assert "enters through: reference ensemble and simulator rollouts" in table.caption


@pytest.mark.usefixtures("whole_audits")
def test_a_study_of_ones_own_critic_and_judge_alone(tmp_path: Path) -> None:
    """No reference, no rollouts, no deployment, no paper's critic: still a page."""
    stages = Stages(tmp_path, per_group=2, pools=1, size=8)
    stages.judge("mine", stages.value[None])
    stages.score("my <critic>", stages.value)
    page = STUDY.finish(stages.path, annotate=annotate, resamples=50).read_text(encoding="utf-8")
    assert (stages.path / "audit" / "report.html").is_file()
    assert "my &lt;critic&gt;" in page
    assert "<critic>" not in page
    assert "No judge has passed yet." in page
    assert "tab:function-class" not in page
    study = read_selection_results(stages.path)
    assert [drawing.name for drawing in drawings(study)] == ["curves"]
    assert json.loads((stages.path / "claims.json").read_text()) == []


def test_a_failing_judge_is_named_and_the_task_excluded(study: SelectionResults) -> None:
    tables: dict[str, Any] = json.loads(json.dumps(dict(study.tables)))
    tables["judges"] |= {"included_through": [], "missing": []}
    tables["judges"]["rows"]["PointMaze"]["reference"]["spearman"]["status"] = "fail"
    changed = SelectionResults(**{**study.__dict__, "tables": tables})
    assert shown(changed, "judges").caption == "No judge passed: excluded."
    assert "fails" in study_page(STUDY, changed, [])
    why = summary(changed)[0]
    assert why.startswith("Excluded, because no judge passed: pools resolved, near")
    assert "(at least 0.7: fails)" in why
    assert "(below 0.012: passes)" in why
    assert "An actor trained on TD-Q reaches 27 % of the environment's own goals [" in why
    tables["judges"]["missing"] = ["rollouts"]
    assert not any("Excluded" in line for line in summary(changed))
    assert not any("Excluded" in line for line in summary(study))


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no tables of a selection study"):
        read_selection_results(tmp_path)
    stages = Stages(tmp_path, per_group=1)
    with pytest.raises(InputError, match="scores holds no file"):
        STUDY.finish(stages.path)


def own_critic(folder: Path) -> tuple[Stages, SelectionResults]:
    """A study of one's own critic, which is wrong about near goals alone, and one's own judge."""
    stages = Stages(folder, per_group=6, pools=1, size=8)
    near = np.asarray(stages.queries.group == "near")
    score = np.where(near[:, None, None], -stages.value, stages.value)
    stages.judge("mine", stages.value[None])
    stages.score("my critic", score)
    STUDY.finish(stages.path, annotate=annotate, resamples=50)
    return stages, read_selection_results(stages.path)


def test_the_summary_has_ones_own_critic_and_where_it_is_worse_than_random(tmp_path: Path) -> None:
    _, study = own_critic(tmp_path)
    said = "\n".join(summary(study))
    assert re.search(r"mine: within-pool τ_b .*: my critic 0\.\d\d \(", said)
    worse = (
        r"mine: worse than a random order: my critic at near goals \(τ_b −1\.00 \[.*\]\), .+ over"
    )
    assert re.search(worse, said)


def test_safe_is_about_one_step_where_the_closed_loop_says_otherwise(
    study: SelectionResults,
) -> None:
    def loop(first: float, last: float) -> list[str]:
        cells = {
            f"closed_loop/K={k}": {"mean": x, "low": x - 0.05, "high": x + 0.05}
            for k, x in ((1, first), (16, 0.9), (64, last))
        }
        tables = {**study.tables, "deployment": {"rows": {study.task: {"tdq": cells}}}}
        audits = {"reference": {"scorers": {"tdq": {"verdict": {"status": status}}}}}
        return summary(SelectionResults(**{**study.__dict__, "tables": tables, "audits": audits}))

    status = "safe"
    assert (
        "“Safe” is about one step. Followed at every step, TD-Q reaches 55 % of the goals with the "
        "best of 64 and 94 % with K = 1."
    ) in loop(0.94, 0.55)
    assert not any("one step." in line for line in loop(0.94, 0.9))
    status = "unsafe"
    assert not any("one step." in line for line in loop(0.94, 0.55))


def test_every_stored_key_of_a_judge_is_the_text_of_its_metric() -> None:
    keys = {
        key
        for path in published().glob("selection/*/tables/judges.json")
        for rows in read_json(path)["rows"].values()
        for row in rows.values()
        for key in row
    }
    assert len(keys) > 50
    assert {str(JudgeMetric.parse(key)) for key in keys} == keys
    assert JudgeMetric.parse("exact/tau_b/near") == JudgeMetric("tau_b", "exact", "near")
    assert JudgeMetric.parse("spearman/far") == JudgeMetric("spearman", group="far")
    assert JudgeMetric.parse("half_width/tdq") == JudgeMetric("half_width", "tdq")
