"""Run folders as training leaves them, with fresh parameters: nothing is trained or compiled."""

from __future__ import annotations

import json
from pathlib import Path

import jax

from tests.training.toy import toy_dataset
from toptail.io.files import sha256
from toptail.io.json_files import write_json
from toptail.lab.training.checkpoints import save_params
from toptail.lab.training.config import LearnerConfig
from toptail.lab.training.runs import CONFIG, METRICS, PARAMS, RECORD, logged_steps, run_folder

TRAINED_ON = toy_dataset().train.sha256


def write_run(
    config: LearnerConfig,
    seed: int,
    out: Path,
    data: str = TRAINED_ON,
    widths: tuple[int, int] = (2, 2),
) -> Path:
    """A finished run of a data set whose states and actions have these widths, or of the toy one.

    Its parameters follow from the seed.
    """
    folder = run_folder(out / config.task / config.name, seed)
    folder.mkdir(parents=True)
    save_params(folder / PARAMS, config.build().init(jax.random.key(seed), *widths, widths[0]))
    write_json(folder / CONFIG, {"hash": config.hash, "config": config.content})
    lines = [{"step": n, "loss": 1.0} for n in logged_steps(config.steps, config.log_every)]
    (folder / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = {
        "task": config.task,
        "critic": config.critic,
        "seed": seed,
        "state": "finished",
        "config_hash": config.hash,
        "params_sha256": sha256(folder / PARAMS),
        "data": {"train": data},
    }
    write_json(folder / RECORD, record)
    return folder
