"""Tables of critics whose every number is known, and cells that equal direct calls."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.semantics.scored import CONFIG, FAMILIES, manipulation, navigation, temperature
from paper.tests.triples import world
from toptail.errors import InputError
from toptail.lab.judges.exact import exact_values
from toptail.lab.tasks.files import load
from toptail_paper.claims.reported import cells
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.load import TaskScores, read_task
from toptail_paper.semantics.measure import (
    MeasuredTask,
    distance_edges,
    measure,
    measure_all,
    measure_each,
    resampling,
)
from toptail_paper.semantics.memory import measure_trained_on, memory_table
from toptail_paper.semantics.scoring import score_tasks
from toptail_paper.semantics.tables import all_tables
from toptail_paper.semantics.temperature import temperature_table
from toptail_paper.semantics.write import all_curves
from toptail_paper.study import ideals as study_ideals
from toptail_paper.study.ideals import PointIdeals
from toptail_paper.study.naming import IDEALS, drawn, scorer_name
from toptail_paper.study.replicates import split_tables
from toptail_paper.study.store import RunFolder
from toptail_paper.triples.bootstrap import seed_mean
from toptail_paper.triples.retrieval import retrieval_auc
from toptail_paper.triples.scored import ScoredTriples
from toptail_paper.triples.search import cross_query, pooled_selection
from toptail_paper.triples.value_order import ordering

TASK = navigation()
MEASURED = measure_all([TASK, manipulation()], CONFIG)
TABLES, REPLICATES = split_tables(all_tables(MEASURED, CONFIG))
GAMMA = world.GAMMA


def cell(name: str, scorer: str, metric: str, task: str = "PointMaze") -> Any:
    return TABLES[name]["rows"][task][scorer][metric]


def test_an_exact_critic() -> None:
    assert cell("main", "tdq", "tau")["seeds"] == {"42": 1.0, "43": 1.0}
    # A quarter of the triples has each distance, so that a decile is of one distance.
    assert cell("calibration-summary", "tdq", "gap")["mean"] == pytest.approx(GAMMA - GAMMA**4)
    assert cell("retrieval", "tdq", "auc")["mean"] == 1.0
    assert cell("retrieval", "tdq", "recall_1")["mean"] == 1.0
    assert cell("retrieval", "tdq", "nearer_goal")["mean"] == 1.0
    assert cell("retrieval", "tdq", "same_trajectory")["mean"] == 0.5
    assert cell("bellman", "tdq", "rmse")["mean"] == pytest.approx(0.0, abs=1e-12)
    assert cell("ogbench-curse", "tdq", "regret")["mean"] == pytest.approx(0.0, abs=1e-12)
    assert cell("value-oracle", "tdq", "nregret_oracle")["mean"] == pytest.approx(0.0, abs=1e-12)


def test_an_inverted_critic() -> None:
    assert cell("main", "cosine", "tau")["mean"] == -1.0
    assert cell("calibration-summary", "cosine", "gap")["mean"] == pytest.approx(GAMMA**4 - GAMMA)
    assert cell("retrieval", "cosine", "nearer_goal")["mean"] == 0.0
    assert cell("ogbench-curse", "cosine", "normalized")["mean"] > 1.0


def test_a_constant_critic() -> None:
    tau = cell("main", "raw", "tau")
    assert tau == {
        "mean": None,
        "std": None,
        "seeds": {"42": None, "43": None},
        "low": None,
        "high": None,
    }
    assert cell("retrieval", "raw", "auc")["mean"] == 0.5
    curse = TABLES["ogbench-curse"]["rows"]["PointMaze"]["raw"]
    assert curse["regret"]["mean"] == pytest.approx(
        curse["oracle"]["mean"] - curse["random"]["mean"]
    )
    assert curse["normalized"]["mean"] == pytest.approx(1.0)
    assert curse["value"]["mean"] == pytest.approx(TASK.triples.value.mean())


def test_cells_equal_direct_calls() -> None:
    bootstrap = resampling(TASK.triples, CONFIG)
    direct = [ordering(TASK.triples, f"noise@{seed}", bootstrap) for seed in (42, 43)]
    stored = cell("main", "noise", "tau")
    points = [float(e.point) for e in direct]
    low, high = seed_mean(direct).interval(0.95)
    assert stored["seeds"] == dict(zip(("42", "43"), points, strict=True))
    assert stored["mean"] == pytest.approx(np.mean(points))
    assert stored["std"] == pytest.approx(np.std(points, ddof=1))
    assert (stored["low"], stored["high"]) == (low, high)
    assert low < stored["mean"] < high
    kept = REPLICATES["PointMaze"]["main/noise/tau"]
    np.testing.assert_array_equal(kept, np.mean([e.draws for e in direct], axis=0))
    auc = [float(retrieval_auc(TASK.triples, f"noise@{s}", bootstrap).point) for s in (42, 43)]
    assert cell("retrieval", "noise", "auc")["mean"] == pytest.approx(np.mean(auc))
    regret = [
        float(cross_query(TASK.triples, f"noise@{s}", (4,), bootstrap).regret.point[0])
        for s in (42, 43)
    ]
    assert cell("ogbench-curse", "noise", "regret")["mean"] == pytest.approx(np.mean(regret))
    assert cell("robustness", "noise", "regret_full") == cell("ogbench-curse", "noise", "regret")


def test_support_preference_is_read_at_the_largest_k() -> None:
    # Four candidates and K = 4: the pick is certain where the score tells the halves apart.
    for n_near in (50, 200):
        assert cell("robustness", "tdq", f"excess_off_{n_near}")["mean"] == pytest.approx(-0.5)
        assert cell("robustness", "cosine", f"excess_off_{n_near}")["mean"] == pytest.approx(0.5)
        assert cell("robustness", "raw", f"excess_off_{n_near}")["mean"] == pytest.approx(0.0)
        name = f"excess_off_{n_near}_trajectory"
        assert cell("robustness", "tdq", name)["mean"] == pytest.approx(0.5)


def test_a_score_without_its_query_means_is_centered() -> None:
    # The query means are the scores less an exact critic's: what is left orders perfectly.
    for scorer in ("tdq", "raw", "cosine"):
        assert cell("ogbench-curse", scorer, "centered_tau")["mean"] == pytest.approx(1.0)
        assert cell("ogbench-curse", scorer, "query_std")["mean"] == pytest.approx(0.25)


def test_saturation_is_told_of_bounded_scores_only() -> None:
    assert cell("ogbench-curse", "cosine", "share_above_0.9")["mean"] == 0.0
    assert "share_above_0.9" not in TABLES["ogbench-curse"]["rows"]["PointMaze"]["mine"]


def test_the_value_oracle_agrees_where_it_is_a_rising_function() -> None:
    spearman = cell("value-oracle", "oracle", "spearman")
    assert spearman["seeds"] == {"7": pytest.approx(1.0)}
    for scorer in ("raw", "noise"):
        row = TABLES["value-oracle"]["rows"]["PointMaze"][scorer]
        assert row["nregret_oracle"]["mean"] == pytest.approx(row["nregret_gamma"]["mean"])
    assert TABLES["value-oracle"]["circular"] == ["tdq", "two_head_separate"]


def test_behaviour_models_are_the_seeds_of_the_diffusion_table() -> None:
    stored = cell("value-oracle-diffusion", "noise", "nregret_oracle_diffusion")
    bootstrap = resampling(TASK.triples, CONFIG)
    for model, pools in TASK.diffusion.items():
        direct = [
            pooled_selection(pools.scores[f"noise@{s}"], pools.values, (4,), bootstrap).normalized
            for s in (42, 43)
        ]
        expected = np.mean([float(e.point[0]) for e in direct])
        assert stored["seeds"][str(model)] == pytest.approx(expected)
    assert list(stored["seeds"]) == ["42", "7"]
    assert TABLES["value-oracle-diffusion"]["loss_gaps"]["PointMaze"]["42"]["gap"] == 0.01


def test_readouts_are_rows_of_their_training() -> None:
    row = TABLES["readout"]["rows"]["PointMaze"]
    assert set(row) == {
        *("raw_trained/raw", "raw_trained/cosine", "raw_trained/phi_norm", "cosine_trained/cosine"),
        "cosine_trained/raw",
    }
    assert row["raw_trained/cosine"]["tau"]["mean"] == 1.0
    assert row["raw_trained/phi_norm"]["tau"]["mean"] == -1.0
    assert row["cosine_trained/cosine"] == TABLES["main"]["rows"]["PointMaze"]["cosine"]


def test_two_heads_are_read_from_one_checkpoint() -> None:
    row = TABLES["twohead"]["rows"]["PointMaze"]
    assert set(row) == {"tdq_ref", "cosine_ref", "separate"}
    assert row["separate"]["tau"]["mean"] == 1.0
    assert row["separate"]["auc"] == cell("retrieval", "two_head_separate.f_cos", "auc")
    assert "auc" not in row["tdq_ref"]


def test_a_users_critic_is_one_more_row() -> None:
    for name in set(TABLES) - {"readout", "twohead"}:
        assert "mine" in TABLES[name]["rows"]["PointMaze"], name
    mine = cell("main", "mine", "tau")
    assert list(mine["seeds"]) == ["none"]
    assert mine["std"] is None
    assert mine["low"] <= mine["mean"] <= mine["high"]


def test_the_temperature_of_each_training_is_kept() -> None:
    fields = {
        "cosine@42": {"temperature": 0.05, "learn_temperature": False},
        "cosine@43": {"temperature": 0.1, "learn_temperature": True},
        "raw@42": {"contrast": "binary_nce"},
    }
    origins = {column: {"critic_fields": given} for column, given in fields.items()}
    task = replace(TASK, origins=origins | {"mine": {"file": "mine.py"}})
    made = all_tables([replace(MEASURED[0], task=task)], CONFIG)
    for name in ("main", "retrieval"):
        assert made[name]["trained_at"] == {"PointMaze": {"cosine": [0.05, "learned"]}}


def test_play_data_gets_retrieval_alone() -> None:
    assert [name for name, t in TABLES.items() if "Cube-single" in t["rows"]] == ["retrieval"]
    assert TABLES["retrieval"]["rows"]["Cube-single"]["tdq"]["auc"]["mean"] == 1.0


def test_tables_are_plain_json_and_leave_the_papers_cells_open() -> None:
    for name, content in TABLES.items():
        assert json.loads(json.dumps(content, allow_nan=False)) == content
        assert content["label"] == f"tab:{name}"
        assert content["paper"] == {}
        assert cells(content["label"], content["rows"]) != {}
    main = cells(TABLES["main"]["label"], TABLES["main"]["rows"])
    assert main["PointMaze"]["tdq"]["tau"] == {"mean": 0.627, "std": 0.002}
    oracle = cells(TABLES["value-oracle"]["label"], TABLES["value-oracle"]["rows"])
    assert oracle["AntMaze"]["oracle"]["spearman"] == {"mean": 0.57}


def test_one_column_alone_gives_the_same_numbers() -> None:
    whole = MEASURED[0].columns["noise@42"]
    single = measure(TASK.only("noise@42"), "noise@42", CONFIG)
    assert set(single) == set(whole)
    for name, estimate in single.items():
        np.testing.assert_array_equal(estimate.draws, whole[name].draws)


def test_processes_and_progress_change_nothing() -> None:
    task = TASK.only("noise@42")
    both = measure_all([task, TASK.only("noise@43")], CONFIG, partial(measure_each, workers=2))
    assert isinstance(both[0], MeasuredTask)
    ticks: list[tuple[str, float]] = []
    told = partial(measure_each, tick=lambda stage, share: ticks.append((stage, share)))
    here = measure_all([task], CONFIG, told)
    for name, estimate in here[0].columns["noise@42"].items():
        np.testing.assert_array_equal(estimate.draws, both[0].columns["noise@42"][name].draws)
    assert ticks == [("diagnostics", 1.0)]


class TestTemperature:
    TABLE = temperature_table([temperature()], CONFIG)

    def row(self, setting: str) -> Any:
        assert self.TABLE is not None
        return self.TABLE["rows"]["PointMaze"][setting]

    def test_settings_stand_in_order(self) -> None:
        assert self.TABLE is not None
        assert list(self.TABLE["rows"]["PointMaze"]) == [
            *("binary_nce@0.05", "binary_nce@0.1", "binary_nce@1.0", "binary_nce@learned"),
            "symmetric_info_nce@0.05",
        ]

    def test_a_constant_score_and_a_chance_retriever_have_collapsed(self) -> None:
        assert self.row("binary_nce@1.0")["collapsed"]["mean"] == 1.0
        assert self.row("binary_nce@1.0")["score_std"]["mean"] == pytest.approx(0.0, abs=1e-12)
        assert self.row("binary_nce@0.1")["score_std"]["mean"] > 0.5
        assert self.row("binary_nce@0.1")["collapsed"]["mean"] == 1.0
        assert self.row("binary_nce@0.05")["collapsed"]["mean"] == 0.0

    def test_mean_and_spread_are_over_all_goals(self) -> None:
        stored = temperature().triples
        both = np.column_stack(
            [stored.scores["binary_nce-0.05@0"], stored.negatives["binary_nce-0.05@0"]]
        )
        assert self.row("binary_nce@0.05")["score_mean"]["mean"] == pytest.approx(both.mean())
        assert self.row("binary_nce@0.05")["score_std"]["mean"] == pytest.approx(both.std())

    def test_the_choice_is_by_retrieval_among_fixed_temperatures(self) -> None:
        assert self.TABLE is not None
        assert self.TABLE["chosen"] == 0.05
        whole = self.TABLE["tau_ranges"]["PointMaze"]["all"]
        assert (whole["lowest"], whole["highest"]) == (-1.0, 1.0)
        assert whole["lowest_at"] == "symmetric_info_nce@0.05"
        good = self.TABLE["tau_ranges"]["PointMaze"]["as_good"]
        assert good["settings"] == 2
        sound = self.TABLE["tau_ranges"]["PointMaze"]["sound"]
        rows = self.TABLE["rows"]["PointMaze"].values()
        assert sound["settings"] == sum(row["collapsed"]["mean"] == 0.0 for row in rows) < len(rows)

    def test_no_sweep_no_table(self) -> None:
        assert temperature_table([], CONFIG) is None


DATA = Path(__file__).parents[3] / "tests" / "tasks" / "data" / "pointmaze-medium-navigate-v0.npz"


def test_ideals_are_rows_of_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SemanticsConfig(
        (str(DATA),), triples=60, negatives=5, support_queries=5, support_pool=8, n_near=(5,),
        k=(1, 2, 8), resamples=20,
    )  # fmt: skip
    coarse = PointIdeals("pointmaze-medium-navigate-v0", 0.99, spacing=2.0)
    monkeypatch.setattr(study_ideals, "point_ideals", lambda *_: coarse)
    score_tasks(config, RunFolder(tmp_path), None, (), ideals=True)
    task = read_task(tmp_path, str(DATA))
    assert set(task.triples.scores) == set(IDEALS)
    t, val = task.triples, load(DATA).val
    states, actions = val.observations[t.rows], val.actions[t.rows][:, None]
    exact = exact_values(task.task, states, actions, val.observations[t.goal_rows], 0.99)
    np.testing.assert_allclose(t.scores["q_star"], exact[:, 0], rtol=1e-6)
    (measured,) = measure_all([task], config)
    tables = all_tables([measured], config)
    for name in ("main", "retrieval", "ogbench-curse"):
        assert set(IDEALS) <= set(tables[name]["rows"]["PointMaze"])
    with pytest.raises(InputError, match="cannot name a critic"):
        score_tasks(config, RunFolder(tmp_path), None, ("log_ratio=near.py:score",))


def test_ideals_have_titles_and_stay_out_of_figures() -> None:
    assert scorer_name("q_star") == "Ideal: Q*"
    assert drawn(["raw", "log_ratio", "mine"]) == ["raw", "mine"]


# Seen and held-out trajectories: a critic that learned its data by heart is found out.


REWARD = {"tdq": 0.0, "raw": 0.0, "mine": 0.0}
BOTH = ("tdq@42", "tdq@43", "raw@42", "raw@43")


def scored(critics: dict[str, str]) -> ScoredTriples:
    """Column -> which critic of the regular world it is."""
    base = world.scored()
    families: dict[str, Any] = {
        name: {column: getattr(base, name)[critic] for column, critic in critics.items()}
        for name in FAMILIES
    }
    return replace(base, **families, readouts={}, query_means={}, values={}, step_reward=REWARD)


def held_out() -> TaskScores:
    columns = dict.fromkeys((*BOTH, "mine"), "exact")
    made_from = {column: f"{column} held out" for column in columns}
    return replace(manipulation(), triples=scored(columns), made_from=made_from)


def seen() -> TaskScores:
    """TD-Q as before; raw knows whose goal it is, and nothing else."""
    columns = {c: "exact" if c.startswith("tdq") else "separator" for c in BOTH}
    made_from = {column: column for column in columns}
    return replace(manipulation(), triples=scored(columns), made_from=made_from)


def test_learned_by_heart_is_perfect_retrieval_without_any_order() -> None:
    table = memory_table(measure_all([held_out()], CONFIG), [seen()], CONFIG)
    assert table is not None
    raw, tdq = (table["rows"]["Cube-single"][scorer] for scorer in ("raw", "tdq"))
    assert raw["auc_seen"]["mean"] == 1.0
    assert raw["nearer_goal_seen"]["mean"] == 0.5  # both goals score alike: half a win each
    assert raw["tau_seen"]["mean"] == pytest.approx(0.0)
    for kind in ("held_out", "seen"):
        assert tdq[f"nearer_goal_{kind}"]["mean"] == 1.0
        assert tdq[f"tau_{kind}"]["mean"] == pytest.approx(1.0)
    assert raw["tau_held_out"] == tdq["tau_held_out"]
    fall = table["falls"]["Cube-single"]["raw"]
    assert (fall["mean"], fall["low"], fall["high"]) == (0.5, 0.5, 0.5)
    assert fall["seeds"] == {"42": 0.5, "43": 0.5}
    assert table["falls"]["Cube-single"]["tdq"]["mean"] == 0.0


def test_only_what_was_scored_on_both_is_compared() -> None:
    table = memory_table(measure_all([held_out()], CONFIG), [seen()], CONFIG)
    assert table is not None
    assert set(table["rows"]["Cube-single"]) == {"tdq", "raw"}  # "mine" was shown one split
    other = replace(seen(), task="scene-play-v0", key="Scene")
    assert memory_table(measure_all([held_out()], CONFIG), [other], CONFIG) is None
    assert memory_table(measure_all([held_out()], CONFIG), [], CONFIG) is None


def test_a_critic_that_was_scored_again_on_one_split_only_is_left_out() -> None:
    origins = {column: {"params": "old", "scores_sha256": "a"} for column in BOTH}
    own = measure_all([replace(held_out(), origins=origins)], CONFIG)
    same = {column: {"params": "old", "scores_sha256": "b"} for column in BOTH}
    assert memory_table(own, [replace(seen(), origins=same)], CONFIG) is not None
    one_new = {**same, "raw@42": {"params": "new", "scores_sha256": "b"}}
    table = memory_table(own, [replace(seen(), origins=one_new)], CONFIG)
    assert table is not None
    assert set(table["rows"]["Cube-single"]["raw"]["auc_seen"]["seeds"]) == {"43"}


def test_the_two_kinds_have_resamples_of_their_own() -> None:
    task = replace(held_out(), triples=world.noisy())
    one = measure(task, "any@7", CONFIG)["auc"]
    other = measure_trained_on(task, "any@7", CONFIG)["auc"]
    assert one.point == other.point
    assert (one.draws != other.draws).any()


def test_what_was_kept_of_another_column_is_not_read(tmp_path: Path) -> None:
    each = partial(measure_each, kept=tmp_path)
    before = memory_table(measure_all([held_out()], CONFIG), [seen()], CONFIG, each)
    assert memory_table(measure_all([held_out()], CONFIG), [seen()], CONFIG, each) == before
    worse = replace(seen(), triples=scored(dict.fromkeys(BOTH, "opposite")))
    changed = replace(worse, made_from={column: f"{column} changed" for column in BOTH})
    table = memory_table(measure_all([held_out()], CONFIG), [changed], CONFIG, each)
    assert table is not None
    assert table["rows"]["Cube-single"]["raw"]["nearer_goal_seen"]["mean"] == 0.0


# Curves of hand-solvable critics, and agreement with the tables at the largest K.


CURVES = all_curves(MEASURED, CONFIG)
POINTMAZE = CURVES["tasks"]["PointMaze"]
VALUES = [world.GAMMA**d for d in (1, 2, 3, 4)]


def test_deciles_of_an_exact_and_of_an_inverted_critic() -> None:
    near, second, third, far = VALUES
    rising = [far, far, (far + third) / 2, third, third, second, second, (second + near) / 2]
    expected = [*rising, near, near]
    assert POINTMAZE["tdq"]["deciles"]["mean"] == pytest.approx(expected)
    assert POINTMAZE["cosine"]["deciles"]["mean"] == pytest.approx(expected[::-1])


def test_profile_of_an_exact_critic_and_of_a_separator() -> None:
    edges = POINTMAZE["tdq"]["profile_edges"]
    assert edges == [1, 2, 3, 4, 5]
    assert POINTMAZE["tdq"]["profile"]["mean"] == pytest.approx([v / VALUES[0] for v in VALUES])
    assert POINTMAZE["mine"]["profile"]["mean"] == pytest.approx([1.0] * 4)
    # An inverted critic's nearest goals do not score above random ones: there is no profile.
    assert POINTMAZE["cosine"]["profile"]["mean"] == [None] * 4


def test_best_of_k_between_random_and_oracle() -> None:
    exact, constant = POINTMAZE["tdq"], POINTMAZE["raw"]
    assert exact["value"]["mean"] == pytest.approx(exact["oracle"])
    assert constant["value"]["mean"] == pytest.approx([constant["random"]] * 3)
    assert exact["random"] == pytest.approx(sum(VALUES) / 4)
    assert exact["oracle"][0] == pytest.approx(exact["random"])


def test_excess_off_support_over_k() -> None:
    # Two of four candidates are on support; best of two is off it only if both are: 1 in 6.
    assert CURVES["n_near"] == 200
    assert POINTMAZE["tdq"]["excess_off_support"]["mean"] == pytest.approx([0.0, 1 / 6 - 0.5, -0.5])
    assert POINTMAZE["cosine"]["excess_off_support"]["mean"] == pytest.approx(
        [0.0, 0.5 - 1 / 6, 0.5]
    )


def test_curves_end_where_the_tables_stand() -> None:
    tables = all_tables(MEASURED, CONFIG)
    stored = tables["ogbench-curse"]["rows"]["PointMaze"]["noise"]["value"]
    curve = POINTMAZE["noise"]["value"]
    assert curve["mean"][-1] == pytest.approx(stored["mean"])
    assert curve["std"][-1] == pytest.approx(stored["std"])
    assert curve["low"][-1] == pytest.approx(stored["low"])
    assert curve["high"][-1] == pytest.approx(stored["high"])
    assert {s: values[-1] for s, values in curve["seeds"].items()} == pytest.approx(stored["seeds"])


def test_one_seed_has_no_spread_and_play_data_no_curves() -> None:
    assert POINTMAZE["mine"]["value"]["std"] is None
    assert list(CURVES["tasks"]) == ["PointMaze"]
    assert json.loads(json.dumps(CURVES, allow_nan=False)) == CURVES


@pytest.mark.parametrize("longest", [4, 12, 60, 61])
def test_distance_edges_hold_every_distance(longest: int) -> None:
    edges = distance_edges(replace(CONFIG, max_offset=longest))
    assert edges[0] == 1
    assert edges[-1] == longest + 1
    assert list(edges) == sorted(set(edges))
    assert longest != 60 or edges == (1, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56, 61)
