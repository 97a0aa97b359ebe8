"""The fused loop: data on the device, a scan over steps, a map over seeds."""

from toptail.training.checkpoint import load_params, save_params
from toptail.training.loop import TrainConfig, TrainState, make_train, uniform_rows
from toptail.training.seeds import Snapshot, train_seeds

__all__ = [
    "Snapshot",
    "TrainConfig",
    "TrainState",
    "load_params",
    "make_train",
    "save_params",
    "train_seeds",
    "uniform_rows",
]
