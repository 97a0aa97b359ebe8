"""Cells of the 2-D world: every critic decomposed after every training length, in every box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from toptail.errors import InputError
from toptail.jobs.job import Job
from toptail.lab.critics.base import Critic, Params
from toptail.lab.critics.registry import split_label
from toptail.lab.training.config import typed_settings
from toptail.lab.training.loop import TrainConfig
from toptail.lab.training.runs import is_finite
from toptail.progress import Tick, no_tick
from toptail.stats.resample import Estimate
from toptail_paper.controlled.cells import training_data
from toptail_paper.controlled.config import CriticSettings, StudyConfig
from toptail_paper.controlled.evaluate import Pools, read_scores, retrieval_auc
from toptail_paper.controlled.measure import bootstrap_means, counterfactual_scores, picks_of
from toptail_paper.controlled.world import ControlledWorld
from toptail_paper.grids.cells import Reading, SeedCell, cells_job, fixed
from toptail_paper.grids.grid import DeclaredGrid, Sizes
from toptail_paper.study.batches import train_seeds

WORLD = ("box", "proposal_scale")
"""What may differ between the worlds of a grid: not the data, so that one training serves all."""

DEPTH = 2
"""Hidden layers, unless a setting says otherwise."""


def controlled_jobs(declared: DeclaredGrid, folder: Path, tick: Tick = no_tick) -> list[Job]:
    """One job per critic: its training on all seeds, read after every length in every box."""
    labels = declared.labels()
    found = []
    for number, label in enumerate(labels):

        def share(stage: str, done: float, label: str = label, number: int = number) -> None:
            tick(f"{label}: {stage}", (number + done) / len(labels))

        cells = [cell for cell in declared.cells() if cell.label == label]
        units = [SeedCell.of(folder, declared, c, seed) for c in cells for seed in declared.seeds]
        work = partial(_train_critic, declared, label, units, share)
        found.append(cells_job(f"{label} of {folder}", folder, units, work))
    return found


def _train_critic(
    declared: DeclaredGrid, label: str, units: Sequence[SeedCell], tick: Tick
) -> None:
    sizes = declared.amounts
    names = ("batch_size", "data_size")
    shared = {name: x for name, x in declared.shared.items() if name in names}
    config = replace(
        StudyConfig(), queries=sizes.queries, pool=sizes.k, pool_seed=sizes.draw_seed + 1,
        resamples=sizes.resamples, **shared,
    )  # fmt: skip
    missing = [unit for unit in units if not unit.result.finished]
    pools = {data: Pools.draw(config, world_of(data)) for data in declared.data}
    critic = critic_of_label(label)
    training = TrainConfig(critic, declared.steps[-1], config.batch_size, config.learning_rate)
    world = world_of(declared.data[0])
    seeds = sorted({unit.seed for unit in missing})
    data = {seed: training_data(config, world, seed) for seed in seeds}
    for snapshot in train_seeds(training, data, declared.steps, tick):
        for unit in missing:
            if unit.cell.steps == snapshot.step:
                params = snapshot.params[unit.seed]
                _store(unit, critic, params, pools[unit.cell.data], config, sizes)


def world_of(data: str) -> ControlledWorld:
    settings = split_label(data)[1]
    for name in settings:
        if name not in WORLD:
            raise InputError(
                f"{data}: worlds of a grid differ in {' and '.join(WORLD)} alone, not '{name}'."
            )
    return ControlledWorld(**{name: float(text) for name, text in settings.items()})


def critic_of_label(label: str) -> Critic:
    """The critic of the 2-D world that a label describes; others than its settings are refused."""
    name, written = split_label(label)
    given: dict[str, Any] = typed_settings(label, written)
    width, depth = given.pop("hidden", None), given.pop("depth", DEPTH)
    if width is not None:
        given["hidden"] = (width,) * depth
    unknown = sorted(given.keys() - set(vars(CriticSettings())))
    if unknown:
        raise InputError(f"{label}: the 2-D world's critics have no setting '{unknown[0]}'.")
    return replace(CriticSettings(), **given).make(name)


def _store(
    unit: SeedCell, critic: Critic, params: Params, pools: Pools, config: StudyConfig, sizes: Sizes
) -> None:
    if not is_finite(params):
        unit.store({}, "parameters are not finite")
        return
    scores = read_scores(critic, params, pools)
    reading = decomposed(scores, critic.deployed, pools, config)
    auc = retrieval_auc(critic, params, critic.deployed, pools)
    unit.store({**reading, "auc": fixed(auc, sizes.resamples)})


def decomposed(
    scores: Mapping[str, Any], deployed: str, pools: Pools, config: StudyConfig
) -> Reading:
    """Regret, off-support rate, and the share of the regret that each counterfactual removes.

    ``norm_ratio`` is ||phi|| of the pick over its mean on the support.
    """
    changed = counterfactual_scores(scores, deployed, pools.support)
    picked = {name: picks_of(score, pools) for name, score in changed.items()}
    columns = {f"regret/{name}": regret for name, (regret, _) in picked.items()}
    columns["off_support"] = picked["deployed"][1]
    top = np.argmax(scores[deployed], axis=1)
    norms = np.take_along_axis(scores["phi_norm"], top[:, None], axis=1)[:, 0]
    columns["norm_ratio"] = norms / scores["phi_norm"][pools.support].mean()
    per_query = np.stack([np.asarray(x, np.float64) for x in columns.values()], axis=1)
    draws = bootstrap_means(per_query, config)
    found = {
        name: Estimate(np.asarray(per_query[:, i].mean()), draws[:, i])
        for i, name in enumerate(columns)
    }
    whole = found["regret/deployed"]
    one = fixed(1.0, len(whole.draws))
    for name in picked.keys() - {"deployed"}:
        found[f"share/{name}"] = one - found[f"regret/{name}"] / whole
    return {"regret": whole, **{name: found[name] for name in sorted(found)}}
