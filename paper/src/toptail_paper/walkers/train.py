"""Train a walker: simulator threads and accelerator side by side, until the time is over.

A folder that holds a checkpoint is taken up again: networks, normalizer, counters and candidates
go on; the replay is filled anew with what the walker does by then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from toptail.errors import InputError, check_whole, option
from toptail.io.files import atomic, check_folder
from toptail.io.json_files import read_object, write_json
from toptail.lab.tasks.simulator import load_module
from toptail.lab.training.config import on_gpu
from toptail.lab.training.runs import machine, now
from toptail.lab.walkers.walker import Walker
from toptail.progress import Tick, no_tick
from toptail.provenance import commit
from toptail.stats.resample import available_threads
from toptail_paper.walkers.bodies import Body, body_named
from toptail_paper.walkers.checkpoint import (
    Candidate,
    Candidates,
    Counters,
    Course,
    load_checkpoint,
    ranking,
    save_checkpoint,
)
from toptail_paper.walkers.evaluate import Numbers, RunningEpisodes, Tally, evaluate
from toptail_paper.walkers.learner import SAC, Scalars, deviation
from toptail_paper.walkers.settings import ExpertSettings, fitting

Watch = Callable[[Numbers], None]
"""Called with every new point of the learning curve."""

LINE_SECONDS = 15.0
"""Between two points of the learning curve; each leaves a candidate."""
CHECKPOINT_SECONDS = 60.0
"""Seconds between two checkpoints."""
_REFILL = 200
"""Vector steps that fill the replay before the first update after a resumption."""


class Training:
    """One walker's training, from the folder's checkpoint on if there is one."""

    def __init__(
        self,
        body: type[Body],
        settings: ExpertSettings,
        seed: int | None,
        out: Path,
        tick: Tick,
        watch: Watch,
    ) -> None:
        self.body, self.settings = body, settings
        self.out, self.tick, self.watch = out, tick, watch
        self.learner = SAC(body, settings)
        self._checkpoint = out / "checkpoint.safetensors"
        if self._checkpoint.exists():
            self._fill = _REFILL
            self.state, self.course = load_checkpoint(self._checkpoint, self.learner, seed)
        else:
            _refuse_finished(out)
            self._fill = settings.warmup
            self.course = Course(seed or 0, Candidates(by_success=body.truncation_ends))
            self.state = self.learner.init(self.course.seed)

    def loop(self, minutes: float) -> None:
        """Step and update until the training has had its minutes."""
        learner, settings, counters = self.learner, self.settings, self.course.counters
        begun = monotonic() - counters.seconds
        counters.parts += 1
        self._write_curve()  # a killed training may have noted points after its checkpoint
        self.tick("compiling", counters.seconds / (60 * minutes))
        episodes = self._episodes()
        replay, scalars = learner.empty(), None
        no, yes = jnp.asarray(False), jnp.asarray(True)
        observations = jnp.asarray(episodes.observations)
        steps, saved = 0, monotonic()
        lines = _Rates(counters)
        while (seconds := monotonic() - begun) < 60 * minutes:
            counters.seconds = seconds
            uniform = yes if steps < self._fill and counters.updates == 0 else no
            actions, self.state = learner.act(self.state, observations, uniform)
            if steps >= self._fill:
                # Queued behind the choice of actions: it runs while the simulator steps.
                self.state, scalars = learner.update(self.state, replay)
                counters.updates += settings.actor_updates * settings.critic_updates
            outcome = episodes.step(np.asarray(actions))
            replay = learner.insert(replay, observations, actions, jnp.asarray(outcome))
            observations = jnp.asarray(episodes.observations)
            steps += 1
            counters.env_steps = episodes.env_steps
            if seconds - lines.last >= LINE_SECONDS:
                self._line(lines, episodes.tally, scalars)
                episodes.tally = Tally()
            if monotonic() - saved > CHECKPOINT_SECONDS:
                self.save()
                saved = monotonic()
            self._tell("filling the replay" if scalars is None else "training", minutes)
        counters.seconds = monotonic() - begun
        self._line(lines, episodes.tally, scalars)
        self.save()

    def actor(self) -> Walker:
        layers = jax.device_get(self.state.actor)
        normalizer = self.state.normalizer
        return Walker(
            self.body.name,
            np.asarray(normalizer.mean),
            np.asarray(deviation(normalizer)),
            tuple(layer["kernel"] for layer in layers),
            tuple(layer["bias"] for layer in layers),
        )

    def finish(self) -> dict[str, Any]:
        """Evaluate the candidates side by side, store the best by the rule, and the record."""
        course = self.course
        candidates = [*course.candidates.kept, Candidate(course.curve[-1], self.actor())]
        numbers = evaluate(
            [c.actor for c in candidates],
            self.settings.final_episodes,
            course.seed + 1000,
            self.settings.threads,
            tick=self.tick,
        )
        order = ranking(numbers, course.candidates.by_success)
        candidates[order[0]].actor.save(self.out / "actor.safetensors")
        record = {
            "body": self.body.name,
            "seed": course.seed,
            "settings": asdict(self.settings),
            **asdict(course.counters),
            "rule": course.candidates.rule,
            "chosen": order[0],
            "candidates": [
                {"during": c.numbers, "final": final}
                for c, final in zip(candidates, numbers, strict=True)
            ],
            "noise": "mode + N(0, 0.2), clipped to 1",
            "curve": course.curve,
            "commit": commit(),
            "machine": machine(),
            "versions": {
                "jax": jax.__version__,
                "mujoco": load_module("mujoco").__version__,
                "numpy": np.__version__,
            },
            "made": now(),
        }
        write_json(self.out / "record.json", record)
        return record

    def finished(self) -> dict[str, Any] | None:
        """Return the record where nothing was trained since it was written."""
        path = self.out / "record.json"
        record = read_object(path) if path.is_file() else {}
        return record if record.get("seconds") == self.course.counters.seconds else None

    def save(self) -> None:
        save_checkpoint(self._checkpoint, self.learner, self.state, self.course)

    def _episodes(self) -> RunningEpisodes:
        simulations = self.body(self.settings.environments, self.settings.threads)
        counters = self.course.counters
        rng = np.random.default_rng([self.course.seed, counters.parts])
        return RunningEpisodes(
            simulations, rng, self.learner.evaluating, env_steps=counters.env_steps
        )

    def _tell(self, stage: str, minutes: float) -> None:
        """Report the progress; an interrupt here, between two steps, leaves a checkpoint."""
        try:
            self.tick(stage, self.course.counters.seconds / (60 * minutes))
        except KeyboardInterrupt:
            self.save()
            raise

    def _line(self, lines: _Rates, tally: Tally, scalars: Scalars | None) -> None:
        """Note one point of the learning curve, and the walker that made it."""
        counters = self.course.counters
        values = {name: float(value) for name, value in (scalars or {}).items()}
        self._check_finite(values)
        point: Numbers = {
            "minutes": round(counters.seconds / 60, 3),
            "env_steps": counters.env_steps,
            "updates": counters.updates,
            **tally.numbers(self.body.seconds),
            **lines.since(counters),
            **values,
            "memory_gb": _memory(),
        }
        self.course.curve.append(point)
        with (self.out / "curve.jsonl").open("a", encoding="utf-8") as file:
            file.write(_json_line(point))
        self.watch(point)
        if point["return"] is not None and scalars is not None:
            self.course.candidates.add(Candidate(point, self.actor()))

    def _check_finite(self, values: dict[str, float]) -> None:
        """Stop where learning has lost its numbers: nothing good comes after that."""
        lost = [name for name, value in values.items() if not math.isfinite(value)]
        if lost:
            raise InputError(
                f"The training in {self.out} diverged ({lost[0]} is {values[lost[0]]}): the same "
                "command goes on from the last checkpoint, another folder and seed begin anew."
            )

    def _write_curve(self) -> None:
        """Let the curve's file hold the points of the checkpoint."""
        text = "".join(_json_line(point) for point in self.course.curve)
        path = self.out / "curve.jsonl"
        atomic(path, lambda target: target.write_text(text, encoding="utf-8"))


class _Rates:
    def __init__(self, counters: Counters) -> None:
        self.last = counters.seconds
        self._steps, self._updates = counters.env_steps, counters.updates

    def since(self, counters: Counters) -> Numbers:
        """Return rates since the last call."""
        seconds = max(counters.seconds - self.last, 1e-9)
        rates = {
            "env_steps_per_second": round((counters.env_steps - self._steps) / seconds),
            "updates_per_second": round((counters.updates - self._updates) / seconds, 1),
        }
        self.last = counters.seconds
        self._steps, self._updates = counters.env_steps, counters.updates
        return rates


def train_expert(
    body: str,
    minutes: float,
    out: Path,
    seed: int | None = None,
    settings: ExpertSettings | None = None,
    *,
    envs: int | None = None,
    threads: int | None = None,
    tick: Tick = no_tick,
    watch: Watch = lambda _: None,
) -> dict[str, Any]:
    """Train a walker for some minutes, and store actor, record, curve and checkpoint.

    Parameters
    ----------
    body
        ``ant``, ``antball`` or ``humanoid``.
    minutes
        Time in the loop, compilation included, over all parts of a training that was taken up
        again. The final evaluation comes after it. A training that had them is not repeated.
    out
        Folder for ``actor.safetensors``, ``record.json``, ``curve.jsonl`` and
        ``checkpoint.safetensors``.
    seed
        Seed of networks, starts and draws; 0 unless given. A training that is taken up keeps its
        own.
    settings
        What fits this machine unless given: with an accelerator those of the package's walkers.
    envs
        Simulations that are stepped together, if others than the settings'.
    threads
        Threads that step them, if others than the settings'.
    tick
        Told after every vector step how far it is. If it raises KeyboardInterrupt, a checkpoint is
        written first.
    watch
        Called with every new point of the learning curve.

    Returns
    -------
    What ``record.json`` holds.
    """
    kind = body_named(body)
    if not 0 < minutes < math.inf:
        raise InputError(f"{option('minutes', minutes)} must be a number above 0.")
    for name, value, least in (("seed", seed, 0), ("envs", envs, 2), ("threads", threads, 1)):
        if value is not None:
            check_whole(name, value, least)
    check_folder(out)
    load_module("mujoco.batch")  # a missing simulator is said before anything is written
    settings = settings or fitting(body, on_gpu(), available_threads())
    settings = replace(
        settings,
        environments=settings.environments if envs is None else envs,
        threads=settings.threads if threads is None else threads,
    )
    training = Training(kind, settings, seed, out, tick, watch)
    if training.course.counters.seconds < 60 * minutes:
        training.loop(minutes)
    elif (record := training.finished()) is not None:
        return record
    return training.finish()


def _refuse_finished(out: Path) -> None:
    for name in ("actor.safetensors", "record.json"):
        if (out / name).exists():
            raise InputError(
                f"{out} holds a trained walker ({name}) and no checkpoint to go on from: give "
                "another folder."
            )


def _json_line(point: Numbers) -> str:
    return json.dumps(point) + "\n"


def _memory() -> float | None:
    """Most accelerator memory used so far, in GB; None where it is unknown."""
    stats = jax.devices()[0].memory_stats()
    return round(stats["peak_bytes_in_use"] / 1e9, 2) if stats else None
