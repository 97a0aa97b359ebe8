"""``toptail train``: critics on a task, all seeds at once, stopped and continued at will."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.lab.training.config import RunConfig
    from toptail.lab.training.runs import Run

_Flag = tyro.conf.FlagCreatePairsOff[bool]


@dataclass(frozen=True)
class Train:
    """Train critics on a data set, on the GPU or the CPU, whichever is there.

    Every seed of a critic is a run in OUT/TASK/CRITIC/seed-N. Killed at any moment, the same
    command goes on where it stopped and ends with the same bits. Finished runs are left alone;
    invalid ones are repeated with the same seed.
    """

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """An OGBench name, one of the paper's eight names, or the path of a training file."""

    steps: int
    """Optimizer steps."""

    out: Path
    """Folder of the runs."""

    critic: Annotated[str, tyro.conf.arg(metavar="A,B,...")] = "raw,cosine,tdq,hybrid"
    """Critics, separated by commas: raw, cosine, tdq, hybrid, two_head_separate, two_head_joint,
    td_bilinear, nce_mlp."""

    seeds: Annotated[str, tyro.conf.arg(metavar="N,N,...")] = "42,43,44"
    """Seeds, separated by commas; they train together."""

    batch_size: int = 1024
    """Rows per step."""

    learning_rate: float = 3e-4
    """Adam's step size."""

    bfloat16: _Flag = False
    """Use bfloat16 for matrix products and activations; the default on a GPU."""

    no_bfloat16: _Flag = False
    """Use float32 throughout; the default on a CPU."""

    checkpoint_every: int | None = None
    """Steps between two checkpoints; 50000 on a GPU and 1000 on a CPU unless given."""

    log_every: int | None = None
    """Steps between two lines of metrics; 500 on a GPU and 50 on a CPU unless given."""

    hidden: int | None = None
    """Width of the hidden layers; 512 unless given."""

    depth: int | None = None
    """Number of hidden layers; 3 unless given."""

    embed_dim: int | None = None
    """Dimension of phi and psi; 512 unless given."""

    ensemble: int | None = None
    """Copies of each network; 2 unless given."""

    temperature: float | None = None
    """Temperature of the cosine logits; 0.1 unless given."""

    learn_temperature: _Flag = False
    """Learn the temperature, starting from --temperature."""

    contrast: Literal["binary_nce", "symmetric_info_nce"] | None = None
    """Contrastive loss; binary_nce unless given."""

    alpha: float | None = None
    """Weight of f_cos in Q_hybrid; 1 unless given."""

    td_weight: float | None = None
    """Weight of the Bellman loss beside the contrastive one; by the value's range unless given."""

    reward: Literal["-1/0", "0/1"] | None = None
    """Reward of the value target: -1 until the goal, or 1 at the goal; -1/0 unless given."""

    expectile: float | None = None
    """Expectile of V in the value target; 0.9 unless given."""

    def run(self) -> int:
        """Train, draw the curves, and list the runs; the exit code is 1 if one is invalid."""
        seeds = self._seeds()
        configs = self._configs()
        from toptail.commands.train_progress import progress
        from toptail.lab.tasks.files import load
        from toptail.lab.training.defaults import checkpoint_every, keep_compiled
        from toptail.lab.training.session import train_runs
        from toptail.lab.training.task_data import TaskData

        keep_compiled()
        data = TaskData.place(load(self.task), configs, len(seeds))
        runs: list[Run] = []
        every = self.checkpoint_every or checkpoint_every()
        command = shlex.join(["toptail", *sys.argv[1:]])
        with progress() as watch:
            for config in configs:
                runs += train_runs(
                    config,
                    data,
                    seeds,
                    self.out,
                    checkpoint_every=every,
                    command=command,
                    watch=watch,
                )
        return _finish(runs)

    def _seeds(self) -> list[int]:
        try:
            seeds = [int(part) for part in self.seeds.split(",") if part.strip()]
        except ValueError:
            seeds = []
        if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
            raise InputError(
                f"--seeds takes different whole numbers separated by commas, as in 42,43,44; "
                f"not '{self.seeds}'."
            )
        return seeds

    def _configs(self) -> list[RunConfig]:
        """One configuration per critic; a setting that none of them has is refused."""
        from toptail.lab.critics.full import setting_names
        from toptail.lab.tasks.files import find, task_of
        from toptail.lab.training.config import RunConfig
        from toptail.lab.training.defaults import log_every, on_gpu

        if self.bfloat16 and self.no_bfloat16:
            raise InputError("Give --bfloat16 or --no-bfloat16, not both.")
        for name in ("checkpoint_every", "log_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name.replace('_', '-')} is {value}: expected at least 1.")
        path = find(self.task)
        task = task_of(path)
        given = self._settings()
        configs = [
            RunConfig(
                task=path.stem if task is None else task.name,
                critic=critic,
                steps=self.steps,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                reward=self.reward or RunConfig.reward,
                bfloat16=self.bfloat16 or (on_gpu() and not self.no_bfloat16),
                log_every=self.log_every or log_every(),
                settings=tuple(given.items()),
            )
            for critic in self._critics()
        ]
        known = {name for config in configs for name in setting_names(config.build())}
        wanted = {**given, **({"bellman": self.reward} if self.reward else {})}
        for name in wanted.keys() - known:
            flag = "reward" if name == "bellman" else name.replace("_", "-")
            raise InputError(
                f"--{flag} has no effect on {self.critic}: leave it out, or train a critic that "
                "has this setting."
            )
        return configs

    def _critics(self) -> list[str]:
        from toptail.lab.critics.registry import CRITICS

        names = [part.strip() for part in self.critic.split(",") if part.strip()]
        for name in names:
            if name not in CRITICS:
                raise InputError(
                    f"--critic: there is no critic '{name}'; the critics are {', '.join(CRITICS)}."
                )
        if not names:
            raise InputError(f"--critic names no critic; the critics are {', '.join(CRITICS)}.")
        return list(dict.fromkeys(names))

    def _settings(self) -> dict[str, Any]:
        """The critic settings that were given, by the names that the critics have for them."""
        names = (
            *("embed_dim", "ensemble", "temperature", "contrast", "alpha", "td_weight"),
            "expectile",
        )
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.learn_temperature:
            given["learn_temperature"] = True
        if self.hidden is not None or self.depth is not None:
            width = 512 if self.hidden is None else self.hidden
            given["hidden"] = (width,) * (3 if self.depth is None else self.depth)
        for name, smallest in (("hidden", 1), ("depth", 1), ("embed_dim", 1), ("ensemble", 1)):
            value = getattr(self, name)
            if value is not None and value < smallest:
                raise InputError(f"--{name.replace('_', '-')} is {value}: expected at least 1.")
        return given


def _finish(runs: Sequence[Run]) -> int:
    """Draw what is not drawn yet, and say how every run stands."""
    from toptail.commands.runs import print_runs, standing
    from toptail.lab.training.figure import save_training_figure
    from toptail.lab.training.metrics import read_lines
    from toptail.lab.training.run_files import METRICS

    for run in runs:
        if not (run.folder / "curves.png").is_file():
            title = f"{run.config['task']} · {run.config['critic']} · {run.folder.name}"
            save_training_figure(read_lines(run.folder / METRICS), title, run.folder)
    print_runs(runs)
    return 0 if all(standing(run)[0] == "finished" for run in runs) else 1
