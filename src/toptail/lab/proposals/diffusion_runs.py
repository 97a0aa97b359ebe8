"""Behaviour models as runs: trained, recorded and resumed like the critics, loaded as policies."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import jax

from toptail.errors import InputError
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail.lab.training.checkpoint import load_params
from toptail.lab.training.config import LearnerConfig
from toptail.lab.training.policy import invalid_reason
from toptail.lab.training.run_files import PARAMS, read_run
from toptail.lab.training.runs import stored_config


@dataclass(frozen=True)
class DiffusionRun(LearnerConfig):
    """One behaviour model on one task, for `training.session.train_runs`.

    ``critic`` is "diffusion", and ``settings`` are fields of `Diffusion`. ``gamma`` is the
    discount of the goals' geometric distances; there is no reward.
    """

    def build(self) -> Diffusion:
        """The model with its settings."""
        if self.critic != Diffusion.name:
            raise InputError(
                f"'{self.critic}' is not a behaviour model: the only one is '{Diffusion.name}'."
            )
        own, known = dict(self.settings), {field.name for field in fields(Diffusion)}
        for name in own:
            if name not in known:
                raise InputError(
                    f"A diffusion model has no setting '{name}'; its settings are "
                    f"{', '.join(sorted(known))}."
                )
        return Diffusion(**{"bfloat16": self.bfloat16, **own})


def load_policy(
    folder: str | Path, task: str | None = None, config_hash: str | None = None
) -> DiffusionPolicy:
    """Load a finished run's policy; an invalid or unexpected run is refused, with the reason.

    Its parameters are put on the device once: a rollout asks it at every step.
    """
    run = read_run(folder)
    reason = invalid_reason(run, task, config_hash)
    if reason is not None:
        raise InputError(
            f"{folder} is not a valid run of a behaviour model ({reason}): train it again."
        )
    config = stored_config(run, DiffusionRun)
    return DiffusionPolicy(config.build(), jax.device_put(load_params(run.folder / PARAMS)))
