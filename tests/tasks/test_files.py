from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.tasks.conftest import DATA, SAMPLES, hand_made
from toptail.errors import InputError
from toptail.io.json_files import write_json
from toptail.lab.tasks.files import find, load, load_file, read_record, record_path, save_file
from toptail.lab.tasks.names import OGBENCH_NAMES, SHORT_NAMES, parse_name, published_recipe

POINT = "pointmaze-medium-navigate-v0"
Arrays = dict[str, NDArray[Any]]


def arrays_of(name: str) -> Arrays:
    return dict(load_file(DATA / f"{name}.npz").arrays())


def write(path: Path, arrays: Arrays) -> Path:
    with path.open("wb") as file:
        np.savez(file, allow_pickle=True, **arrays)
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_loads_with_its_dimensions(name: str) -> None:
    dataset = load(DATA / f"{name}.npz")
    assert dataset.task == parse_name(name)
    assert dataset.train.lengths.tolist() == [61] * 4
    assert dataset.val.lengths.tolist() == [61] * 2
    assert (dataset.train.button_states is not None) == parse_name(name).has_buttons


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    data = hand_made()
    save_file(tmp_path / "mine.npz", data)
    again = load_file(tmp_path / "mine.npz")
    assert again.sha256 == data.sha256
    for name, array in data.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("name", SAMPLES)
def test_ogbenchs_own_loader_reads_what_was_collected(name: str) -> None:
    utils = pytest.importorskip("ogbench.utils")
    data = load_file(DATA / f"{name}.npz")
    train, val = utils.make_env_and_datasets(
        name, dataset_path=str(DATA / f"{name}.npz"), dataset_only=True, add_info=True
    )
    rows = data.transitions
    np.testing.assert_array_equal(train["observations"], data.observations[rows])
    np.testing.assert_array_equal(train["next_observations"], data.observations[rows + 1])
    np.testing.assert_array_equal(train["qpos"], data.simulator_state(rows).qpos)
    assert len(val["actions"]) == 2 * 60


def _change(name: str, index: Any, value: Any) -> Callable[[Arrays], None]:
    return lambda arrays: arrays[name].__setitem__(index, value)


DAMAGES: dict[str, tuple[Callable[[Arrays], Any], str]] = {
    "a missing key": (lambda a: a.pop("terminals"), r"no array 'terminals' \(it has actions"),
    "float64": (lambda a: a.update(actions=a["actions"].astype(np.float64)),
        r"'actions' is float64, expected float32 .*astype\('float32'\)"),
    "terminals as numbers": (lambda a: a.update(terminals=a["terminals"].astype(np.float32)),
        "'terminals' is float32, expected bool"),
    "fewer actions": (lambda a: a.update(actions=a["actions"][:-1]),
        "'actions' has 243 rows and 'observations' has 244"),
    "one number": (lambda a: a.update(observations=np.array(7, dtype=np.uint8)),
        "rows and 'observations' has 0"),
    "fewer states": (lambda a: a.update(qpos=a["qpos"][:-1]), "'qpos' has 243 rows"),
    "flat actions": (lambda a: a.update(actions=a["actions"][:, 0]), "'actions' has shape"),
    "another task": (lambda a: a.update(observations=np.zeros((244, 29), np.float32)),
        r"has \(29,\) columns, but pointmaze-medium-navigate-v0 has \(2,\)"),
    "cut in a trajectory": (lambda a: a.update({name: array[:-5] for name, array in a.items()}),
        r"the last row \(238\) is not the end of a trajectory"),
    "no rows": (lambda a: a.update({n: x[:0] for n, x in a.items()}), "has no rows"),
    "a single row": (_change("terminals", 61, True), "the trajectory at row 61 has a single row"),
    "not a number": (_change("observations", (7, 1), np.nan), "nan at row 7, column 1"),
    "infinite velocity": (_change("qvel", (3, 0), np.inf), "'qvel' is inf at row 3"),
    "an action out of bounds": (_change("actions", (9, 1), 1.5),
        r"'actions' is 1\.5 at row 9, column 1: expected actions within ±1"),
    "half a state": (lambda a: a.pop("qvel"), "has 'qpos' but no 'qvel'"),
    "a shifted state": (lambda a: a.update(qpos=np.roll(a["qpos"], 1, axis=0)),
        "the observation of row 0 does not match its 'qpos'"),
    "pickled objects": (lambda a: a.update(observations=np.array([{}] * 244, dtype=object)),
        "pickled"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_gets_one_clear_sentence(damage: str, tmp_path: Path) -> None:
    arrays = {name: array.copy() for name, array in arrays_of(POINT).items()}
    change, message = DAMAGES[damage]
    change(arrays)
    path = write(tmp_path / f"{POINT}.npz", arrays)
    with pytest.raises(InputError, match=message) as caught:
        load_file(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (pickle.dumps({"observations": 1}), "a pickled file, which is never loaded"),
        (b"<!DOCTYPE html><html>502</html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"\x93NUMPY\x01\x00", r"a single array \(\.npy\)"),
        (b"something else", "not a zip file"),
    ],
)
def test_what_is_no_npz_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_file(path)


@pytest.mark.parametrize("keep", [0.2, 0.9, 0.999])
def test_a_truncated_file_is_refused(keep: float, tmp_path: Path) -> None:
    whole = (DATA / f"{POINT}.npz").read_bytes()
    path = tmp_path / f"{POINT}.npz"
    path.write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(InputError, match="truncated"):
        load_file(path)


def test_a_flipped_byte_is_found(tmp_path: Path) -> None:
    content = bytearray((DATA / f"{POINT}.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    path = tmp_path / f"{POINT}.npz"
    path.write_bytes(content)
    with pytest.raises(InputError):
        load_file(path)


def test_buttons_belong_to_the_state_of_scene(tmp_path: Path) -> None:
    arrays = arrays_of("scene-play-v0")
    del arrays["button_states"]
    with pytest.raises(InputError, match="no 'button_states'"):
        load_file(write(tmp_path / "scene-play-v0.npz", arrays))


def test_a_file_without_simulator_state_and_with_any_name_is_fine(tmp_path: Path) -> None:
    arrays = arrays_of(POINT)
    arrays["extra"] = np.zeros(3)
    del arrays["qpos"], arrays["qvel"]
    assert len(load_file(write(tmp_path / "my-robot.npz", arrays))) == 244


def test_image_observations_and_integer_actions_are_taken(tmp_path: Path) -> None:
    arrays: Arrays = {
        "observations": np.zeros((4, 8, 8, 3), np.uint8),
        "actions": np.zeros(4, np.int32),
        "terminals": np.array([False, True, False, True]),
    }
    assert len(load_file(write(tmp_path / "powderworld-easy-play-v0.npz", arrays)).ends) == 2


def test_a_name_is_looked_up_in_the_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"toptail data get .*toptail data collect"):
        find(POINT)
    monkeypatch.setenv("TOPTAIL_DATA", f"{tmp_path}:{DATA}")
    assert find(POINT) == DATA / f"{POINT}.npz"
    assert find("PointMaze") == DATA / f"{POINT}.npz"
    (tmp_path / f"{POINT}.npz.part").touch()
    with pytest.raises(InputError, match="only half downloaded"):
        find(POINT)


def test_a_missing_or_foreign_validation_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / f"{POINT}.npz", arrays_of(POINT))
    with pytest.raises(InputError, match=rf"no validation file .*{POINT}-val\.npz"):
        load(path)
    mine = write(tmp_path / "mine.npz", arrays_of(POINT))
    write(tmp_path / "mine-val.npz", arrays_of("scene-play-v0"))
    with pytest.raises(InputError, match="not of one data set"):
        load(mine)


def test_a_file_other_than_its_record_says_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.npz", arrays_of(POINT))
    write_json(record_path(path), {"content_sha256": load_file(path).sha256})
    load_file(path)
    write(path, arrays_of("scene-play-v0"))
    with pytest.raises(InputError, match=r"not the file that x\.npz\.json describes"):
        load_file(path)


def test_records(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    assert read_record(path) is None
    write_json(record_path(path), {"source": "here"})
    assert read_record(path) == {"source": "here"}
    record_path(path).write_text("[1]")
    with pytest.raises(InputError, match="not a JSON object"):
        read_record(path)


def test_names_are_different_and_their_parts_give_them_back() -> None:
    assert set(SHORT_NAMES.values()) <= set(OGBENCH_NAMES)
    assert len(set(OGBENCH_NAMES)) == len(OGBENCH_NAMES)
    for name in OGBENCH_NAMES:
        task = parse_name(name)
        parts = [task.family, task.variant, task.kind, "v0"]
        assert "-".join(part for part in parts if part) == name


@pytest.mark.parametrize(
    ("name", "environment", "dimensions"),
    [
        ("pointmaze-large-stitch-v0", "pointmaze-large-v0", (2, 2)),
        ("scene-play-v0", "scene-v0", (40, 5)),
        ("puzzle-4x6-noisy-v0", "puzzle-4x6-v0", (115, 5)),
        ("visual-cube-double-play-v0", "visual-cube-double-v0", None),
    ],
)
def test_environment_and_dimensions(
    name: str, environment: str, dimensions: tuple[int, int] | None
) -> None:
    task = parse_name(name)
    assert task.environment == environment
    assert task.dimensions == dimensions


def test_the_papers_name_stands_for_its_data_set() -> None:
    assert parse_name("Cube-double").name == "cube-double-play-v0"
    assert parse_name("cube-double-play-v0").title == "Cube-double"


def test_an_unknown_name_is_refused_with_the_way_to_the_list() -> None:
    with pytest.raises(InputError, match=r"'pointmaze' is not the name .*toptail data list"):
        parse_name("pointmaze")


@pytest.mark.parametrize(
    ("name", "episodes", "rows", "noise"),
    [
        ("pointmaze-medium-navigate-v0", 1000, 1001, 0.5),
        ("antmaze-large-stitch-v0", 5000, 201, 0.2),
        ("humanoidmaze-medium-navigate-v0", 1000, 2001, 0.2),
        ("humanoidmaze-medium-stitch-v0", 5000, 401, 0.2),
        ("humanoidmaze-giant-stitch-v0", 10_000, 401, 0.2),
        ("pointmaze-giant-navigate-v0", 500, 2001, 0.5),
        ("pointmaze-giant-stitch-v0", 5000, 201, 0.5),
        ("antmaze-medium-explore-v0", 10_000, 501, 1.0),
        ("antsoccer-arena-navigate-v0", 1000, 1001, 0.2),
        ("antsoccer-medium-stitch-v0", 8000, 501, 0.2),
        ("cube-triple-play-v0", 3000, 1001, 0.1),
        ("scene-play-v0", 1000, 1001, 0.1),
    ],
)
def test_published_recipes(name: str, episodes: int, rows: int, noise: float) -> None:
    recipe = published_recipe(parse_name(name))
    assert recipe is not None
    assert (recipe.episodes, recipe.rows, recipe.noise) == (episodes, rows, noise)


def test_no_recipe_is_claimed_where_none_is_known() -> None:
    assert published_recipe(parse_name("cube-single-noisy-v0")) is None
