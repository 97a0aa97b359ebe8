"""Data sets of other libraries, imported into files that load."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

from tests.foreign.fixtures import DATA, FOREIGN, POINT
from tests.tasks.conftest import restore_errors
from toptail.cli import main
from toptail.errors import InputError
from toptail.lab.foreign import datasets
from toptail.lab.foreign.datasets import import_data
from toptail.lab.tasks.files import load, load_file
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import MAZE_TOLERANCE

ARROW = FOREIGN / "minari" / "arrow"
HDF5 = FOREIGN / "minari" / "hdf5"


def test_a_data_set_of_minari_is_imported_and_described(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "pendulum.npz"
    assert main(["data", "import", f"minari:{ARROW}", "--out", str(out)]) == 0
    assert "Actions of the box -2 to 2 were brought to ±1." in capsys.readouterr().out
    found = load(out)
    assert [len(split.ends) for split in (found.train, found.val)] == [5, 1]
    assert found.train.observations.shape == (105, 3)
    assert set(found.train.lengths) == {21}
    assert np.abs(found.train.actions).max() <= 1
    assert main(["data", "info", str(out)]) == 0
    assert "rows 105 trajectories 5" in " ".join(capsys.readouterr().out.split())
    assert main(["data", "import", f"minari:{ARROW}", "--out", str(out)]) == 0  # the same again


def test_actions_are_those_of_the_rows_they_were_taken_in(tmp_path: Path) -> None:
    """The second observation of a pendulum follows from the first and its action."""
    import_data(f"minari:{ARROW}", tmp_path / "p.npz")
    data = load_file(tmp_path / "p.npz")
    rows = data.transitions
    cos, sin, speed = data.observations[rows].T
    expected = speed + (15 * sin + 3 * 2 * data.actions[rows, 0]) * 0.05
    np.testing.assert_allclose(data.observations[rows + 1, 2], np.clip(expected, -8, 8), atol=1e-4)
    assert cos.shape == sin.shape


def test_hdf5_has_the_same_rows(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    import_data(f"minari:{ARROW}", tmp_path / "a.npz")
    import_data(f"minari:{HDF5}", tmp_path / "b.npz")
    a, b = (load_file(tmp_path / f"{name}.npz") for name in "ab")
    np.testing.assert_array_equal(a.observations, b.observations)
    np.testing.assert_allclose(a.actions, b.actions, atol=1e-6)


def write_d4rl(path: Path, **arrays: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name.replace("__", "/")] = array


def test_a_file_of_d4rl_is_cut_at_ends_and_time_limits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ends, limits = np.zeros((2, 12), bool)
    ends[3], limits[7] = True, True
    path = tmp_path / "d4rl.hdf5"
    arrays = {"observations": rng.normal(size=(12, 3)), "actions": rng.uniform(-1, 1, (12, 2))}
    state = {"infos__qpos": rng.normal(size=(12, 2)), "infos__qvel": rng.normal(size=(12, 2))}
    write_d4rl(path, **arrays, **state, terminals=ends, timeouts=limits, rewards=np.zeros(12))
    import_data(f"d4rl:{path}", tmp_path / "x.npz", 0.3)
    train, val = load(tmp_path / "x.npz").train, load(tmp_path / "x.npz").val
    assert [*train.lengths, *val.lengths] == [4, 4, 4]
    np.testing.assert_allclose(train.observations, arrays["observations"][:8], rtol=1e-6)
    assert train.qpos is not None
    assert train.qpos.shape == (8, 2)


def test_hdf5_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    secret = tmp_path / "secret.hdf5"
    write_d4rl(secret, observations=np.zeros((4, 2)))
    path = tmp_path / "links.hdf5"
    write_d4rl(path, actions=np.zeros((4, 2)), terminals=np.zeros(4, bool))
    with h5py.File(path, "a") as file:
        file["observations"] = h5py.ExternalLink(str(secret), "observations")
    with pytest.raises(InputError, match="'observations' is a link to somewhere else"):
        import_data(f"d4rl:{path}", tmp_path / "x.npz")
    with h5py.File(path, "w") as file:
        file.create_dataset("observations", (10**9, 100), "f8", chunks=(1000, 100))
    with pytest.raises(InputError, match=r"unpacks to .* GB or more"):
        import_data(f"d4rl:{path}", tmp_path / "x.npz")


def minari_hdf5(tmp_path: Path) -> Path:
    """A data set of Minari's without its episodes."""
    folder = tmp_path / "set" / "data"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text("{}")
    return folder / "main_data.hdf5"


def write_episode(group: Any) -> None:
    group["observations"] = np.zeros((4, 2))
    group["actions"] = np.zeros((3, 2))


def episode_of_another_file(h5py: Any, file: Any, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.hdf5", "w") as secret:
        write_episode(secret.create_group("episode_0"))
    file["episode_1"] = h5py.ExternalLink(str(tmp_path / "secret.hdf5"), "episode_0")


def soft_link(h5py: Any, file: Any, _: Path) -> None:
    file["episode_1"] = h5py.SoftLink("/episode_0")


def rows_of_another_file(_: Any, file: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(64))
    places = [(str(tmp_path / "secret"), 0, 64)]
    file["episode_0"].create_dataset("infos/qpos", (4, 2), "f8", external=places)


def virtual_rows(h5py: Any, file: Any, tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((4, 2), "f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "secret.hdf5"), "x", shape=(4, 2))
    file["episode_0"].create_virtual_dataset("infos/qpos", layout)


def many_names_of_an_episode(_: Any, file: Any, __: Path) -> None:
    file["episode_0"]["rewards"] = np.zeros(100_000)
    for i in range(1, 2_000):
        file[f"episode_{i}"] = file["episode_0"]


def groups_of_groups(_: Any, file: Any, __: Path) -> None:
    group = file["episode_0"]
    for _ in range(60):
        below = group.create_group("a")
        group["b"] = below
        group = below


def group_inside_itself(_: Any, file: Any, __: Path) -> None:
    file["episode_0"]["again"] = file["episode_0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (episode_of_another_file, "'episode_1' is a link to somewhere else"),
        (soft_link, "'episode_1' is a link to somewhere else"),
        (rows_of_another_file, "'episode_0/infos/qpos' lies outside the file"),
        (virtual_rows, "'episode_0/infos/qpos' lies outside the file"),
        (many_names_of_an_episode, r"unpacks to .* GB or more"),
        (groups_of_groups, "has more than 10,000 names"),
        (group_inside_itself, "nested too deeply"),
    ],
)
def test_hdf5_of_minari_holds_all_it_shows_and_links_are_counted(
    change: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    h5py = pytest.importorskip("h5py")
    monkeypatch.setattr(datasets, "_MOST_NAMES", 10_000)
    with h5py.File(minari_hdf5(tmp_path), "w") as file:
        write_episode(file.create_group("episode_0"))
        change(h5py, file, tmp_path)
    with pytest.raises(InputError, match=message):
        import_data(f"minari:{tmp_path / 'set'}", tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()


def test_a_file_of_ogbench_keeps_its_rows_and_what_the_recipe_says(tmp_path: Path) -> None:
    source, out = DATA / f"{POINT}.npz", tmp_path / f"{POINT}.npz"
    with np.load(source) as stored:
        arrays = {name: stored[name] for name in stored}
    loose = {name: array.astype(np.float64) for name, array in arrays.items()}
    np.savez(tmp_path / "loose.npz", **loose, rewards=np.zeros(len(arrays["terminals"])))
    assert main(["data", "import", f"ogbench:{tmp_path / 'loose.npz'}", "--out", str(out)]) == 0
    found, known = load(out), load_file(source)
    both = np.concatenate([found.train.observations, found.val.observations])
    np.testing.assert_array_equal(both, known.observations)
    assert found.train.qpos is not None
    task = parse_name(POINT)
    errors = restore_errors(task, found.train, found.train.transitions[:5])
    assert errors.max() <= MAZE_TOLERANCE


@pytest.mark.parametrize(
    ("source", "out", "message"),
    [
        ("nothing", "x.npz", "expected one of minari:..., d4rl:..., ogbench:..."),
        ("minari:no/such-v0", "x.npz", "no data set of Minari's"),
        (f"minari:{ARROW}", "x.hdf5", "expected NAME.npz"),
        (f"minari:{ARROW}", "x-val.npz", "expected NAME.npz"),
        ("ogbench:{}/mine.npz", "x.npz", "has no array 'observations'"),
    ],
)
def test_what_does_not_fit_is_said(source: str, out: str, message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", actions=np.zeros((4, 2)))
    with pytest.raises(InputError, match=message):
        import_data(source.format(tmp_path), tmp_path / out)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"action_space": '{"type": "Discrete", "n": 2}'}, "of the type Discrete"),
        ({"action_space": '{"type": "Box", "low": [1], "high": [1]}'}, "have no bounds"),
        ({"action_space": "[" * 50}, "cannot be read as a data set of Minari"),
    ],
)
def test_metadata_that_cannot_be_used_are_refused(
    facts: dict[str, Any], message: str, tmp_path: Path
) -> None:
    shutil.copytree(ARROW, tmp_path / "set")
    path = tmp_path / "set" / "data" / "metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))
    with pytest.raises(InputError, match=message):
        import_data(f"minari:{tmp_path / 'set'}", tmp_path / "x.npz")


def test_observations_of_several_parts_and_the_simulator_s_state(tmp_path: Path) -> None:
    """As Minari's goal-conditioned sets have them; the state has no row for the last step."""
    rng = np.random.default_rng(0)

    def lists(array: np.ndarray) -> pa.Array:
        flat = pa.array(array.astype(np.float32).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, array.shape[1])

    seen = [rng.normal(size=(5, 4)) for _ in range(2)]
    for number, rows in enumerate(seen):
        parts = {"observation": lists(rows), "desired_goal": lists(rows[:, :2])}
        table = pa.table(
            {
                "observations": pa.StructArray.from_arrays([*parts.values()], [*parts]),
                "actions": lists(rng.uniform(-1, 1, (5, 2))),
                "infos": pa.StructArray.from_arrays(
                    [lists(rows[:, :2]), lists(rows[:, 2:])], ["qpos", "qvel"]
                ),
            }
        )
        folder = tmp_path / "set" / str(number)
        folder.mkdir(parents=True)
        with pa.ipc.new_file(folder / "part-0.arrow", table.schema) as file:
            file.write_table(table)
    (tmp_path / "set" / "metadata.json").write_text('{"data_format": "arrow"}')
    import_data(f"minari:{tmp_path / 'set'}", tmp_path / "x.npz")
    train = load(tmp_path / "x.npz").train
    np.testing.assert_allclose(train.observations, seen[0], rtol=1e-6)
    assert train.qvel is not None
    np.testing.assert_allclose(train.qvel, seen[0][:, 2:], rtol=1e-6)


def test_other_data_is_not_written_over(tmp_path: Path) -> None:
    out = tmp_path / "walks.npz"
    shutil.copy(DATA / f"{POINT}.npz", out)
    with pytest.raises(InputError, match="is there already, with other data"):
        import_data(f"minari:{ARROW}", out)
    assert load_file(out).observations.shape[1] == 2


def test_minari_s_ids_are_looked_up_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ARROW, tmp_path / "home" / "pendulum" / "random-v0")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "home"))
    result = import_data("minari:pendulum/random-v0", tmp_path / "x.npz", 0.5)
    assert result.episodes == (3, 3)


def test_without_h5py_hdf5_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"needs h5py, which is not installed: pip install '\.\["):
        import_data(f"minari:{HDF5}", tmp_path / "x.npz")
