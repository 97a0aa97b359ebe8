"""A user's scorer never passes for a trained critic, and one scorer is one group of columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paper.tests.selection.small import small_config as selection_config
from paper.tests.selection.stored_stages import Stages as StoredStages
from paper.tests.semantics.small import small_config, walks_file
from paper.tests.semantics.test_load import store
from tests.training.toy import toy_dataset
from toptail.errors import InputError
from toptail.lab.critics.registry import CRITICS, entry, without_settings
from toptail.pools.columns import group_seeds
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.run import Stages
from toptail_paper.selection.stages import Selection
from toptail_paper.selection.study import UserInputs
from toptail_paper.semantics.load import read_task
from toptail_paper.semantics.scoring import score_tasks
from toptail_paper.study.naming import (
    critic_of,
    drawn,
    ideal_of,
    in_order,
    is_circular,
    is_control,
    readout,
    scorer_name,
    title,
)
from toptail_paper.study.store import RunFolder, Stored

SCORE = "def score(states, actions, goals):\n    return actions[:, 0]\n"
BOTH = "cosine[contrast=symmetric_info_nce,temperature=0.1]"
OF_CRITICS = ("raw", "raw@42", "two_head_joint.f_cos", "two_head_separate.f_cos@3", "tdq.mine")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SCORE)
    return path


@pytest.mark.parametrize("name", OF_CRITICS)
def test_a_critics_name_is_refused_before_anything_is_scored(file: Path, name: str) -> None:
    out, text = file.parent / "out", f"{name}={file}:score"
    config = small_config(walks_file(file.parent))
    with pytest.raises(InputError, match="is the name of a critic that is trained here"):
        score_tasks(config, RunFolder(out), None, [text])
    study = Selection.at(out, selection_config())
    with pytest.raises(InputError, match="is the name of a critic that is trained here"):
        Stages(study, toy_dataset(), UserInputs(scorers=(text,))).run()
    assert not out.exists()


def test_the_files_own_name_may_be_a_critics_too(file: Path) -> None:
    cosine = file.rename(file.with_name("cosine.py"))
    with pytest.raises(InputError, match="'cosine' is the name of a critic"):
        score_tasks(small_config(), RunFolder(file.parent / "out"), None, [f"{cosine}:score"])


@pytest.mark.parametrize("name", ["reference", "logged", "random@1"])
def test_selectors_of_the_study_are_no_names_for_a_scorer(file: Path, name: str) -> None:
    study = Selection.at(file.parent / "out", selection_config())
    with pytest.raises(InputError, match=f"'{name}' cannot name a critic; .* and not reference"):
        Stages(study, toy_dataset(), UserInputs(scorers=(f"{name}={file}:score",))).run()
    assert not study.folder.path.exists()


def test_a_scorer_stands_alone_or_with_seeds(file: Path) -> None:
    config, out = small_config(walks_file(file.parent)), file.parent / "out"
    both = [f"mine={file}:score", f"mine@1={file}:score"]
    with pytest.raises(InputError, match="'mine' and 'mine@1' both claim to be the scorer"):
        score_tasks(config, RunFolder(out), None, both)
    assert not out.exists()
    score_tasks(config, RunFolder(out), None, both[:1])
    with pytest.raises(InputError, match="'mine' and 'mine@1' both claim to be the scorer"):
        score_tasks(config, RunFolder(out), None, both[1:])
    assert set(read_task(out, "walks").triples.scores) == {"mine"}


def test_stored_columns_are_grouped_alike_in_all_studies(tmp_path: Path) -> None:
    store(tmp_path, {"raw": 0.0, "raw@42": 0.0})
    with pytest.raises(InputError, match="'raw' and 'raw@42' both claim to be the scorer"):
        read_task(tmp_path, "walks")
    stages = StoredStages(tmp_path / "selection", per_group=1)
    stages.score("mine", stages.value)
    assert read_selection(stages.path).critics == {"mine": {0: "mine"}}
    hidden = stages.folder.scores(".mine.npz.w2f")  # still being written by another process
    Stored({}, {"scores": np.zeros(1)}).write(hidden)
    assert set(read_selection(stages.path).scores) == {"mine"}
    stages.score("mine@0", stages.value)  # would have taken the place of 'mine'
    with pytest.raises(InputError, match="'mine' and 'mine@0' both claim to be the scorer"):
        read_selection(stages.path)


def test_groups_keep_the_order_of_first_appearance() -> None:
    columns = ["b@10", "a", "b@9", "odd@x", "b.f_cos@9"]
    groups = group_seeds(columns)
    assert groups == {
        "b": {10: "b@10", 9: "b@9"},
        "a": {None: "a"},
        "odd@x": {None: "odd@x"},
        "b.f_cos": {9: "b.f_cos@9"},
    }
    assert list(groups["b"]) == [10, 9]
    with pytest.raises(InputError, match="'b@9' and 'b' both claim to be the scorer 'b'"):
        group_seeds(["b@9", "b"])


def test_values_that_a_value_network_judges_are_marked() -> None:
    scorers = [scorer for entry in CRITICS.values() for scorer in entry.scorers]
    marked = {scorer for scorer in scorers if is_circular(scorer)}
    # The two heads' q_td are values whether or not their network is shared.
    paper = {"tdq", "td_mean", "td_bilinear", "two_head_separate", "two_head_joint"}
    assert marked == {*paper, "value_head", "conservative"}
    assert not is_circular("mine")


def test_a_users_scorer_is_no_control() -> None:
    assert is_control("two_head_joint.f_cos")
    assert is_control("nce_mlp")
    assert not is_control("raw")
    assert not is_control("mine")
    assert not is_control("quasimetric")


def test_figures_leave_out_what_has_a_table_of_its_own() -> None:
    apart = ["two_head_joint", "two_head_joint.f_cos", "c_learning", "td_mean"]
    assert drawn(["mine", *apart, "nce_mlp", "raw"]) == ["raw", "mine", "nce_mlp"]
    assert drawn(apart) == apart  # unless there is nothing else


def test_variants_stand_behind_their_critic_with_their_settings() -> None:
    warm = "cosine[temperature=0.1]"
    assert in_order([warm, "mine", "cosine", "raw"]) == ["raw", "cosine", warm, "mine"]
    assert scorer_name(warm) == "Cosine (temperature 0.1)"
    norm = f"{warm}_trained/phi_norm"
    assert scorer_name(norm) == "Cosine-trained (temperature 0.1), ‖φ‖ alone"
    assert is_circular("tdq[gamma=0.9]")
    assert drawn([warm, "two_head_joint[alpha=2]"]) == [warm]


def test_which_scorers_are_values() -> None:
    paper = [entry for entry in CRITICS.values() if entry.group not in ("factor", "other")]
    scorers = {name: each for entry in paper for name, each in entry.scorers.items()}
    values = {name for name, each in scorers.items() if each.value}
    assert values == {"tdq", "two_head_separate", "two_head_joint", "td_bilinear"}
    assert all(each.step_reward("-1/0") == -float(each.value) for each in scorers.values())
    assert all(each.step_reward("0/1") == 0.0 for each in scorers.values())


def test_the_registry_reads_a_variant_as_its_critic() -> None:
    assert readout(BOTH) is readout("cosine")
    assert critic_of("two_head_joint[alpha=2].f_cos") is critic_of("two_head_joint.f_cos")
    assert ideal_of(BOTH) == ideal_of("cosine")
    assert entry(BOTH).name == "cosine"
    assert without_settings("two_head_joint[alpha=2].f_cos") == "two_head_joint.f_cos"
    assert without_settings("mine [2024]") == "mine [2024]"


def test_a_reader_sees_the_settings_behind_the_title() -> None:
    assert title("cosine[temperature=0.1]") == "Cosine (temperature 0.1)"
    assert title("raw") == "Raw bilinear"
    assert title("mine [2024]") == "mine [2024]"


def test_scorers_and_their_titles() -> None:
    joint = CRITICS["two_head_joint"]
    assert list(joint.scorers) == ["two_head_joint", "two_head_joint.f_cos"]
    assert title("two_head_joint") == "Two heads, joint: q_td"
    assert title("two_head_joint.f_cos") == "Two heads, joint: f_cos"
    assert title("raw") == "Raw bilinear"
    assert critic_of("two_head_joint.f_cos") is joint
    assert (readout("mine"), critic_of("mine"), readout("raw.f_cos")) == (None, None, None)
    assert title("mine") == "mine"
