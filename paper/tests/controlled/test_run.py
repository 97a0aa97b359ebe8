"""The stored files of the study: complete, repeatable to the last bit, never computed twice."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from paper.tests.controlled.tiny import TINY
from toptail.errors import InputError
from toptail.io.arrays import read_arrays
from toptail.pools import ScoredPools
from toptail.stats import best_of_k
from toptail_paper.claims import reported
from toptail_paper.controlled import cells as cells_module
from toptail_paper.controlled import run as choice_module
from toptail_paper.controlled import run as run_module
from toptail_paper.controlled.config import (
    CONTRASTIVE,
    CONTROL,
    SWEEPS,
    TWO_HEAD,
    StudyConfig,
)
from toptail_paper.controlled.ideals import log_ratio
from toptail_paper.controlled.run import choose_default, run_controlled
from toptail_paper.controlled.trainings import COSINES, EVERY, Trainings
from toptail_paper.controlled.world import ControlledWorld, exact_value, on_support
from toptail_paper.study.batches import train_seeds
from toptail_paper.study.naming import IDEALS
from toptail_paper.study.store import RunFolder, alone


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One finished run that the tests of this module only read or copy."""
    out = tmp_path_factory.mktemp("study") / "run"
    run_controlled(TINY, out, command="toptail-paper study controlled")
    return out


@pytest.fixture(autouse=True)
def _bare_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the runs, `folder` alone has the audit's page and figures, half of the time of a run."""
    monkeypatch.setattr(run_module, "write_report", lambda *_: None)


def table(folder: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "tables" / f"{name}.json").read_text())
    return content


def table_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").iterdir())}


def test_the_registry_says_which_critics_a_sweep_is_about() -> None:
    assert EVERY == ("tdq", "raw", "cosine", "hybrid", "two_head")
    assert CONTRASTIVE == ("raw", "cosine", "hybrid", "two_head")
    assert COSINES == ("cosine", "hybrid", "two_head")
    assert (CONTROL, TWO_HEAD) == ("tdq", "two_head")


def test_record_and_configuration_say_what_was_run(folder: Path) -> None:
    record = json.loads((folder / "record.json").read_text())
    config = json.loads((folder / "config.json").read_text())
    assert record["state"] == "finished"
    assert record["command"] == "toptail-paper study controlled"
    assert record["seeds"] == [1, 2]
    assert record["units"] == {"trained": 12, "reused": 0}
    assert record["config_hash"] == config["hash"]
    assert config["config"]["world"]["radius"] == 0.4
    assert {"python", "jax", "numpy"} <= set(record["versions"])


def test_tables_have_the_promised_shape(folder: Path) -> None:
    main = table(folder, "toy-support")
    assert main["label"] == "tab:toy-support"
    rows = main["rows"]["controlled"]
    assert list(rows) == ["tdq", "raw", "cosine", "hybrid", "q_star", "q_behaviour", "log_ratio"]
    trained = [row for name, row in rows.items() if name not in IDEALS]
    assert main["paper"] == {}
    paper = reported.cells(main["label"], main["rows"])["controlled"]
    assert paper["raw"]["regret"] == {"mean": 0.978, "std": 0.106, "seeds": 5}
    within = table(folder, "toy-within")
    assert set(within["rows"]["controlled"]) == {"f_cos", "q_td", "q_hybrid"}
    for critics in (trained, within["rows"]["controlled"].values()):
        for metrics in critics:
            for metric in ("regret", "off_support", "mean_norm"):
                cell = metrics[metric]
                values = list(cell["seeds"].values())
                assert list(cell["seeds"]) == ["1", "2"]
                assert cell["mean"] == pytest.approx(np.mean(values))
                assert cell["std"] == pytest.approx(np.std(values, ddof=1))
                assert cell["low"] <= cell["mean"] <= cell["high"]


def test_numbers_follow_from_the_stored_pools_and_scores(folder: Path) -> None:
    pools = read_arrays(folder / "pools" / "R0.40.npz")
    world = ControlledWorld()
    goals = pools["goals"][:, None].astype(float)
    value = exact_value(world, np.zeros(2), pools["actions"].astype(float), goals)
    np.testing.assert_array_equal(pools["value"], value)
    np.testing.assert_array_equal(
        pools["support"], on_support(world, pools["actions"].astype(float))
    )
    main = table(folder, "toy-support")["rows"]["controlled"]
    readouts = {"tdq": "q", "raw": "f_raw", "cosine": "f_cos", "hybrid": "f_cos"}
    for critic, readout in readouts.items():
        for seed in ("1", "2"):
            score = stored_scores(folder, critic, seed)[readout].astype(float)
            pick = score.argmax(axis=1)
            rows = np.arange(len(pick))
            regret = (value.max(axis=1) - value[rows, pick]).mean()
            off = (~pools["support"][rows, pick]).mean()
            length = np.linalg.norm(pools["actions"][rows, pick].astype(float), axis=1).mean()
            assert main[critic]["regret"]["seeds"][seed] == pytest.approx(regret, rel=1e-9)
            assert main[critic]["off_support"]["seeds"][seed] == pytest.approx(off)
            assert main[critic]["mean_norm"]["seeds"][seed] == pytest.approx(length)


def stored_scores(folder: Path, critic: str, seed: str) -> dict[str, Any]:
    """The scores of one unit of the noise-free world."""
    for info in (folder / "units").glob(f"{critic}-R0.40-seed{seed}-*/unit.json"):
        if json.loads(info.read_text())["world"]["sigma"] == 0.0:
            return dict(read_arrays(info.with_name("scores.npz")))
    raise AssertionError(f"{critic} of seed {seed} is not stored")


def test_ideal_rows_and_the_split_follow_from_the_stored_pools(folder: Path) -> None:
    pools = read_arrays(folder / "pools" / "R0.40.npz")
    value, support = pools["value"].astype(float), pools["support"]
    actions, goals = pools["actions"].astype(float), pools["goals"][:, None].astype(float)
    ideal = log_ratio(ControlledWorld(), np.zeros(2), actions, goals)
    rows = np.arange(len(value))
    regret = (value.max(axis=1) - value[rows, ideal.argmax(axis=1)]).mean()
    main = table(folder, "toy-support")["rows"]["controlled"]
    assert main["log_ratio"]["regret"]["mean"] == pytest.approx(regret)
    assert main["log_ratio"]["off_support"]["mean"] == 0.0
    assert main["q_star"]["regret"]["mean"] == 0.0
    assert main["log_ratio"]["retrieval_auc"]["mean"] > 0.6
    split = table(folder, "search-error")
    terms = split["rows"]["controlled"]
    assert split["label"] == "search-error"
    assert set(terms) == {*main, "f_cos", "q_td"}
    for critic, row in terms.items():
        for start in ("", "pooled/"):
            parts = [row[f"{start}{t}"]["mean"] for t in ("target", "estimation", "extrapolation")]
            assert sum(parts) == pytest.approx(row[f"{start}total"]["mean"], abs=1e-12)
        if critic in main:
            assert row["total"]["mean"] == pytest.approx(main[critic]["regret"]["mean"])
    assert terms["raw"]["target"]["mean"] == pytest.approx(regret)
    # The ideal takes nothing off support, so that what is mixed selects among those on support.
    score = np.where(support, stored_scores(folder, "raw", "1")["f_raw"].astype(float), -np.inf)
    mixed = (value.max(axis=1) - value[rows, score.argmax(axis=1)]).mean()
    assert terms["raw"]["estimation"]["seeds"]["1"] == pytest.approx(mixed - regret)


def test_curves_are_exact_best_of_k_with_the_table_at_their_end(folder: Path) -> None:
    curves = json.loads((folder / "curves.json").read_text())
    assert curves["k"] == [1, 2, 4, 8]
    main = table(folder, "toy-support")["rows"]["controlled"]
    value = read_arrays(folder / "pools" / "R0.40.npz")["value"].astype(float)
    assert curves["oracle"] == pytest.approx(best_of_k(value, value, curves["k"]).mean(axis=0))
    assert curves["random"] == pytest.approx(value.mean())
    for critic, metrics in curves["critics"].items():
        if critic in main:
            assert metrics["regret"]["mean"][-1] == pytest.approx(main[critic]["regret"]["mean"])
        assert metrics["value"]["mean"][0] == pytest.approx(value.mean())
        assert metrics["selected_score"]["mean"] == sorted(metrics["selected_score"]["mean"])
        assert len(metrics["phi_norm"]["seeds"]["2"]) == 4


def test_landscape_surfaces_agree_with_the_stored_scores(folder: Path) -> None:
    arrays = read_arrays(folder / "landscape.npz")
    assert arrays["value"].shape == arrays["gradient_raw"].shape == (5, 5)
    for critic in ("tdq", "raw", "cosine", "hybrid"):
        pick = arrays[f"pick_{critic}"].item()
        assert pick == int(arrays[f"candidate_score_{critic}"].argmax())
        assert arrays[f"positive_{critic}"].shape == arrays[f"negative_{critic}"].shape == (20,)
    # Index [y, x]: the exact value is largest at the grid point nearest to the goal.
    y, x = np.unravel_index(arrays["value"].argmax(), (5, 5))
    nearest = [np.abs(arrays["axis"] - coordinate).argmin() for coordinate in arrays["goal"]]
    assert [x, y] == nearest
    assert np.all(np.isfinite(arrays["gradient_cosine"]))


def test_the_audit_reads_the_same_pools(folder: Path) -> None:
    audit = json.loads((folder / "audit" / "audit.json").read_text())
    pools = ScoredPools.read(folder / "audit_pools.npz")
    assert audit["record"]["source"] == "audit_pools.npz"
    assert audit["record"]["sha256"] == pools.sha256
    assert set(audit["scorers"]) == set(pools.scorers)
    assert set(pools.scorers["q_td"]) == {1, 2}
    main = table(folder, "toy-support")["rows"]["controlled"]
    assert set(main) - set(audit["scorers"]) == set(IDEALS) & set(main)  # nobody trained them
    for critic in set(main) & set(audit["scorers"]):
        cells = main[critic]
        entry = audit["scorers"][critic]
        assert entry["regret"][-1] == pytest.approx(cells["regret"]["mean"])
        assert entry["off_support"]["rate"][-1] == pytest.approx(cells["off_support"]["mean"])
        assert entry["verdict"]["status"] in ("safe", "no gain", "unsafe", "inconclusive")


def test_noise_moves_no_oracle_pick_and_regret_by_less_than_the_bound(folder: Path) -> None:
    rows = table(folder, "noise")["rows"]["controlled@sigma=0.05"]
    assert rows["oracle"]["picks_changed"]["mean"] == 0.0
    for name, cells in rows.items():
        assert cells["largest_shift"]["mean"] <= 0.05 * np.sqrt(np.pi / 2) + 1e-12, name
        assert cells["regret_noisy"]["mean"] <= cells["regret"]["mean"] + 1e-12


@pytest.mark.slow
def test_a_fresh_run_gives_the_same_tables_to_the_last_bit(folder: Path, tmp_path: Path) -> None:
    run_controlled(TINY, tmp_path)
    assert table_bytes(tmp_path) == table_bytes(folder)
    assert (tmp_path / "curves.json").read_bytes() == (folder / "curves.json").read_bytes()


@pytest.mark.slow
def test_a_seed_gives_the_same_numbers_alone(folder: Path, tmp_path: Path) -> None:
    run_controlled(replace(TINY, seeds=(2,)), tmp_path)
    alone, both = (table(path, "toy-support")["rows"]["controlled"] for path in (tmp_path, folder))
    for critic, metrics in alone.items():
        for metric, cell in metrics.items():
            if critic in IDEALS:
                assert cell["mean"] == both[critic][metric]["mean"]
            else:
                assert cell["seeds"]["2"] == both[critic][metric]["seeds"]["2"]
            assert cell["std"] is None


@pytest.mark.slow
def test_a_killed_run_goes_on_without_repeating_finished_units(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "killed"
    shutil.copytree(folder, out)
    shutil.rmtree(out / "tables")
    removed = [*(out / "units").glob("raw-R0.40-seed2-*"), *(out / "units").glob("cosine-*")]
    for unit in removed:
        shutil.rmtree(unit)
    asked: list[tuple[str, tuple[int, ...]]] = []
    train = train_seeds

    def watched(config: Any, data: Any, *rest: Any) -> Any:
        asked.append((config.learner.name, tuple(data)))
        return train(config, data, *rest)

    monkeypatch.setattr(cells_module, "train_seeds", watched)
    run = run_controlled(TINY, out)
    assert sorted(asked) == [("cosine", (1, 2)), ("raw", (2,))]
    assert (run.made, run.asked) == (3, 12)
    assert table_bytes(out) == table_bytes(folder)
    asked.clear()
    assert run_controlled(TINY, out).made == 0
    assert not asked


@pytest.mark.slow
def test_radii_and_sweeps_reuse_the_main_units(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "more"
    shutil.copytree(folder, out)
    run = run_controlled(replace(TINY, radii=(0.25, 0.4), sweeps=("bias",)), out)
    # New: 4 critics at R = 0.25 and 5 with every action aligned; 2 seeds each.
    assert run.made == 2 * (4 + 5)
    radii = table(out, "r-sweep")["rows"]
    assert set(radii) == {"controlled@R=0.25", "controlled@R=0.40"}
    main = table(out, "toy-support")["rows"]["controlled"]
    assert radii["controlled@R=0.40"] == main
    bias = table(out, "sweep-bias")
    assert set(bias["default"]) == {"controlled@aligned_share=0.5", "controlled@aligned_noise=0.25"}
    default = bias["rows"]["controlled@aligned_share=0.5"]
    assert default["raw"]["regret"]["seeds"] == main["raw"]["regret"]["seeds"]
    assert {"f_cos", "q_td", "q_hybrid"} <= set(default)


def test_every_sweep_changes_one_setting_and_contains_the_default(tmp_path: Path) -> None:
    trainings = Trainings(replace(TINY, sweeps=SWEEPS), RunFolder(tmp_path))
    expected = {
        "steps": (3, 1),
        "temperature": (3, 1),
        "loss": (2, 1),
        "bias": (3, 2),
        "layer_norm": (6, 1),
    }
    for name, (points, defaults) in expected.items():
        settings = trainings.sweeps[name]  # type: ignore[index]
        tasks = [setting.task for setting in settings]
        assert len(set(tasks)) == points
        assert sum(trainings.is_default(setting) for setting in settings) == defaults, tasks
        assert all(setting.steps in cell.steps for setting in settings for cell in setting.cells)
    losses = {
        s.task: {getattr(c.critic, "contrast", "") for c in s.cells}
        for s in trainings.sweeps["loss"]
    }
    assert losses == {
        "controlled@loss=binary_nce": {"binary_nce"},
        "controlled@loss=symmetric_info_nce": {"symmetric_info_nce"},
    }
    # The decomposition is read under both losses and needs the scores of every candidate.
    assert all(cell.keep_scores for setting in trainings.sweeps["loss"] for cell in setting.cells)


def test_the_rule_for_the_default_setting_runs_on_its_own_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not set(choice_module.CHOICE_SEEDS) & set(StudyConfig().seeds)
    assert StudyConfig().pool_seed != choice_module.CHOICE_POOL_SEED
    monkeypatch.setattr(choice_module, "CHOICE_SEEDS", (0, 3))
    chosen = choose_default(TINY, tmp_path)
    stored = table(tmp_path, "choice")
    assert stored["chosen"] == chosen
    assert list(stored["rows"]["controlled@steps=8"]["tdq"]["regret"]["seeds"]) == ["0", "3"]
    misses = {
        steps: abs(stored["rows"][f"controlled@steps={steps}"]["tdq"]["regret"]["mean"] - 0.078)
        for steps in (4, 8, 12)
    }
    assert chosen["steps"] == min(misses, key=lambda steps: misses[steps])
    auc = {
        t: stored["rows"][f"controlled@temperature={t:g}"]["cosine"]["retrieval_auc"]["mean"]
        for t in (0.1, 1.0)
    }
    assert chosen["temperature"] == max(auc, key=lambda t: auc[t])


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(InputError, match="is a file"):
        run_controlled(TINY, path)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"seeds": ()}, "Seeds"),
        ({"seeds": (1, 1)}, "Seeds"),
        ({"pool": 100}, "power of two"),
        ({"sweeps": ("weather",)}, "weather"),
        ({"steps": 0}, "steps=0 must be a whole number"),
        ({"batch_size": 10**9}, "batch_size=1000000000 must be at most 16777216"),
        ({"resamples": 1.5}, r"resamples=1\.5 must be"),
    ],
)
def test_impossible_configurations_are_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        StudyConfig(**changes)


def test_a_record_keeps_what_earlier_calls_recorded(tmp_path: Path) -> None:
    def call(command: str, steps: int) -> dict[str, Any]:
        with RunFolder(tmp_path).recording({"steps": steps}, [0], command):
            pass
        record: dict[str, Any] = json.loads((tmp_path / "record.json").read_text())
        return record

    assert "earlier" not in call("first", 1)
    assert "earlier" not in call("first", 1)  # the same again is no other call
    call("second", 1)
    record = call("third", 2)
    assert record["command"] == "third"
    assert [each["command"] for each in record["earlier"]] == ["first", "second"]
    assert all("earlier" not in each for each in record["earlier"])
    assert all(each["state"] == "finished" for each in record["earlier"])


def test_whoever_comes_second_waits(tmp_path: Path) -> None:
    waiting, done = Event(), Event()

    def second() -> None:
        with alone(tmp_path, lambda *_: waiting.set()):
            done.set()

    with alone(tmp_path):
        thread = Thread(target=second)
        thread.start()
        assert waiting.wait(60)
        assert not done.is_set()
    thread.join(60)
    assert done.is_set()


def test_a_record_keeps_a_call_that_ends_meanwhile(tmp_path: Path) -> None:
    long, short = (RunFolder(tmp_path).recording({}, [0], name) for name in ("long", "short"))
    with long, short:  # the short one ends first
        pass
    record = json.loads((tmp_path / "record.json").read_text())
    assert (record["command"], record["state"]) == ("long", "finished")
    (other,) = record["earlier"]
    assert (other["command"], other["state"]) == ("short", "finished")
