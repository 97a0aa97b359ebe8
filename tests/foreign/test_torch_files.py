"""Models of d3rlpy, read without PyTorch."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.foreign.fixtures import FOREIGN
from toptail.errors import InputError
from toptail.lab.foreign.d3rlpy import read_d3rlpy
from toptail.lab.foreign.pickled import read_pickle, read_torch

MODELS = FOREIGN / "d3rlpy"


@pytest.mark.parametrize("name", ["cql", "iql", "td3_plus_bc", "qr"])
def test_a_model_scores_as_its_own_predict_value(name: str) -> None:
    critic = read_d3rlpy(MODELS / f"{name}.d3")
    with np.load(MODELS / f"{name}.npz") as known:
        states, actions, scores = known["states"], known["actions"], known["scores"]
    goals = np.zeros((len(states), 3), np.float32)
    np.testing.assert_allclose(critic.score(states, actions, goals), scores, rtol=1e-5, atol=1e-6)
    # A model that observes states and goals is shown both.
    both = critic.score(states[:, :1], actions, states[:, 1:])
    np.testing.assert_allclose(both, scores, rtol=1e-5, atol=1e-6)


def test_rows_of_another_width_are_refused() -> None:
    critic, rows = read_d3rlpy(MODELS / "cql.d3"), np.zeros((2, 7), np.float32)
    with pytest.raises(InputError, match="observes 4 numbers, and is shown states of 7"):
        critic.score(rows, rows, rows)
    with pytest.raises(InputError, match="is of 2 actions, and is shown 7"):
        critic.score(rows[:, :4], rows, rows)


def changed(tmp_path: Path, **settings: Any) -> Path:
    """A model whose settings say something else."""
    model = read_pickle((MODELS / "cql.d3").read_bytes(), "cql.d3")
    config = json.loads(model["config"])
    config["config"]["params"] |= settings
    path = tmp_path / "model.d3"
    path.write_bytes(pickle.dumps(model | {"config": json.dumps(config)}))
    return path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"q_func_factory": {"type": "iqn"}}, "its Q-function is of the type 'iqn'"),
        ({"critic_encoder_factory": {"type": "pixel"}}, "its encoder is of the type 'pixel'"),
        ({"action_scaler": {"type": "mine", "params": {}}}, "its scaler is of the type 'mine'"),
    ],
)
def test_what_is_not_read_is_said(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_d3rlpy(changed(tmp_path, **settings))


def archive(index: bytes, storage: bytes = b"\0" * 16, order: bytes = b"little") -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        file.writestr("archive/data.pkl", index)
        file.writestr("archive/byteorder", order)
        file.writestr("archive/data/0", storage)
    return target.getvalue()


def tensor(offset: int, sizes: bytes, strides: bytes, kind: bytes = b"FloatStorage") -> bytes:
    stored = b"((X\x07\x00\x00\x00storagectorch\n" + kind + b"\nX\x01\x00\x00\x000"
    place = stored + b"X\x03\x00\x00\x00cpuK\x04tQK" + bytes([offset])
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + place + sizes + strides + b"\x89NtR."


def test_a_tensor_is_laid_out_by_its_strides(tmp_path: Path) -> None:
    path = tmp_path / "x.d3"
    path.write_bytes(b"x")
    numbers = np.arange(4, dtype=np.float32).tobytes()
    turned = tensor(0, b"K\x02K\x02\x86", b"K\x01K\x02\x86")
    np.testing.assert_array_equal(read_torch(archive(turned, numbers), path), [[0, 2], [1, 3]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(tensor(0, b"K\x05\x85", b"K\x01\x85")), "more numbers than its storage has"),
        (archive(tensor(3, b"K\x02\x85", b"K\x01\x85")), "does not fit its storage"),
        (archive(tensor(0, b"K\x02K\x03\x86", b"K\x00K\x00\x86")), "more numbers than its storage"),
        (archive(tensor(0, b"K\x02\x85", b"K\x01\x85", b"Module")), "Module"),
        (
            archive(tensor(0, b"K\x04\x85", b"K\x01\x85"), b"\0"),
            "more numbers than are in the file",
        ),
        (archive(b"\x80\x02K\x01.", order=b"big"), "byte order"),
        (archive(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R."), "it asks for os.system"),
        (b"no zip", "holds no file of PyTorch"),
    ],
)
def test_damaged_and_hostile_files_are_refused(
    content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.d3"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_torch(content, path)


def test_a_model_is_no_way_to_run_code(tmp_path: Path) -> None:
    path = tmp_path / "model.d3"
    path.write_bytes(b"cos\nsystem\n(S'touch unpickled'\ntR.")
    with pytest.raises(InputError, match="cannot be read as a pickle"):
        read_d3rlpy(path)
