"""Train a walker: simulator threads and accelerator side by side, until the time is over.

    python -m toptail.lab.experts.train ant --minutes 6 --out DIR

A folder that holds a checkpoint is taken up again: networks, normalizer, counters and candidates
go on; the replay is filled anew with what the walker does by then.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from toptail.errors import InputError
from toptail.lab.experts.actor import Tensors, Walker, read_tensors, write_tensors
from toptail.lab.experts.bodies import body_named
from toptail.lab.experts.body import Body
from toptail.lab.experts.choice import Candidate, Candidates, ranking
from toptail.lab.experts.episodes import RunningEpisodes, Tally
from toptail.lab.experts.evaluate import Numbers, evaluate
from toptail.lab.experts.learner import SAC, Normalizer, State, deviation
from toptail.lab.experts.settings import DEFAULTS, ExpertSettings, small
from toptail.lab.tasks.simulator import load_module
from toptail.lab.training.records import machine, now
from toptail.provenance import commit

Watch = Callable[[str], None]

LINE_SECONDS = 15.0
"""Between two points of the learning curve; each leaves a candidate."""
CHECKPOINT_SECONDS = 60.0
"""Between two checkpoints."""
_REFILL = 200
"""Vector steps that fill the replay before the first update after a resumption."""


@dataclass
class Counters:
    """How far a training is, over all its parts."""

    seconds: float = 0.0
    """Time in the loop."""
    env_steps: int = 0
    """Environment steps."""
    updates: int = 0
    """Critic updates."""
    parts: int = 1
    """Times that the training was begun or taken up."""


class Training:
    """One walker's training, from the folder's checkpoint on if there is one."""

    def __init__(
        self, body: type[Body], settings: ExpertSettings, seed: int, out: Path, watch: Watch
    ) -> None:
        self.body, self.settings, self.seed = body, settings, seed
        self.out, self.watch = out, watch
        self.learner = SAC(body, settings)
        self.counters = Counters()
        self.candidates = Candidates(by_success=body.truncation_ends)
        self.curve: list[Numbers] = []
        self._checkpoint = out / "checkpoint.safetensors"
        self._fill = settings.warmup
        self.state = self._load() if self._checkpoint.exists() else self.learner.init(seed)

    def loop(self, minutes: float) -> None:
        """Step and update until the training has had its minutes."""
        begun = monotonic() - self.counters.seconds
        learner, settings, counters = self.learner, self.settings, self.counters
        simulations = self.body(settings.environments, settings.threads)
        rng = np.random.default_rng([self.seed, counters.parts])
        episodes = RunningEpisodes(
            simulations, rng, learner.evaluating, env_steps=counters.env_steps
        )
        replay, scalars = learner.empty(), None
        no, yes = jnp.asarray(False), jnp.asarray(True)
        observations = jnp.asarray(episodes.observations)
        steps, saved = 0, monotonic()
        lines = _Rates(counters)
        with ThreadPoolExecutor(1) as simulator:
            while (seconds := monotonic() - begun) < 60 * minutes:
                counters.seconds = seconds
                uniform = yes if steps < self._fill and counters.updates == 0 else no
                actions, self.state = learner.act(self.state, observations, uniform)
                if steps >= self._fill:
                    # Queued behind the choice of actions: it runs while the simulator steps.
                    self.state, scalars = learner.update(self.state, replay)
                    counters.updates += settings.actor_updates * settings.critic_updates
                outcome = simulator.submit(episodes.step, np.asarray(actions)).result()
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
        counters.seconds = monotonic() - begun
        self._line(lines, episodes.tally, scalars)
        self.save()

    def actor(self) -> Walker:
        """Return the walker as it is now."""
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
        candidates = [*self.candidates.kept, Candidate(self.curve[-1], self.actor())]
        threads, episodes = self.settings.threads, self.settings.final_episodes
        numbers = evaluate([c.actor for c in candidates], episodes, self.seed + 1000, threads)
        order = ranking(numbers, self.candidates.by_success)
        best = candidates[order[0]].actor
        best.save(self.out / "actor.safetensors")
        record = {
            "body": self.body.name,
            "seed": self.seed,
            "settings": asdict(self.settings),
            **asdict(self.counters),
            "rule": self.candidates.rule,
            "chosen": order[0],
            "candidates": [
                {"during": c.numbers, "final": final}
                for c, final in zip(candidates, numbers, strict=True)
            ],
            "noise": "mode + N(0, 0.2), clipped to 1",
            "curve": self.curve,
            "commit": commit(),
            "machine": machine(),
            "versions": {
                "jax": jax.__version__,
                "mujoco": load_module("mujoco").__version__,
                "numpy": np.__version__,
            },
            "made": now(),
        }
        text = json.dumps(record, indent=1)
        (self.out / "record.json").write_text(text + "\n", encoding="utf-8")
        self.watch(f"chosen: {json.dumps(numbers[order[0]])}")
        return record

    def save(self) -> None:
        """Write the checkpoint: what cannot be had again in seconds, small enough to carry."""
        state = self.state
        tensors: Tensors = {
            "log_temperature": np.asarray(state.log_temperature),
            "key": np.asarray(jax.random.key_data(state.key)),
        }
        for name, value in state.normalizer._asdict().items():
            tensors[f"normalizer/{name}"] = np.asarray(value)
        for part, layers in (("actor", state.actor), ("critic", state.critic)):
            # The critics are large, and differences of a thousandth are gone after some updates.
            kind = np.float32 if part == "actor" else np.float16
            for i, layer in enumerate(jax.device_get(layers)):
                for name, value in layer.items():
                    tensors[f"{part}/{i}/{name}"] = value.astype(kind)
        for i, candidate in enumerate(self.candidates.kept):
            for name, value in candidate.actor.tensors().items():
                tensors[f"candidate/{i}/{name}"] = value
        metadata = {
            "body": self.body.name,
            "seed": str(self.seed),
            "settings": json.dumps(asdict(self.settings)),
            "counters": json.dumps(asdict(self.counters)),
            "candidates": json.dumps([c.numbers for c in self.candidates.kept]),
            "curve": json.dumps(self.curve),
        }
        write_tensors(self._checkpoint, tensors, metadata)

    def _load(self) -> State:
        tensors, metadata = read_tensors(self._checkpoint)
        mine = json.loads(json.dumps(asdict(self.settings)))
        stored = json.loads(metadata["settings"])
        machine_only = ("environments", "threads", "replay", "final_episodes")
        differing = [k for k in mine if k not in machine_only and mine[k] != stored.get(k)]
        if metadata["body"] != self.body.name or differing:
            what = ", ".join(differing) or "the body"
            raise InputError(
                f"{self._checkpoint} was made with other settings ({what}): give another folder, "
                "or the same settings."
            )
        self.seed = int(metadata["seed"])
        self.counters = Counters(**json.loads(metadata["counters"]))
        self.counters.parts += 1
        self.curve = json.loads(metadata["curve"])
        self._fill = _REFILL
        for i, numbers in enumerate(json.loads(metadata["candidates"])):
            stored_actor = _under(tensors, f"candidate/{i}/")
            self.candidates.kept.append(Candidate(numbers, Walker.of(self.body.name, stored_actor)))
        key = jax.random.wrap_key_data(jnp.asarray(tensors["key"]))
        normalizer = Normalizer(
            **{k: jnp.asarray(v) for k, v in _under(tensors, "normalizer/").items()}
        )
        actor, critic = (_layers(_under(tensors, f"{part}/")) for part in ("actor", "critic"))
        return self.learner.state(actor, critic, tensors["log_temperature"], normalizer, key)

    def _line(self, lines: _Rates, tally: Tally, scalars: dict[str, jax.Array] | None) -> None:
        """Note one point of the learning curve, and the walker that made it."""
        numbers: Numbers = {
            "minutes": round(self.counters.seconds / 60, 3),
            "env_steps": self.counters.env_steps,
            "updates": self.counters.updates,
            **tally.numbers(self.body.seconds),
            **lines.since(self.counters),
            **{name: float(value) for name, value in (scalars or {}).items()},
            "memory_gb": _memory(),
        }
        self.curve.append(numbers)
        with (self.out / "curve.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(numbers) + "\n")
        self.watch("  ".join(f"{name} {_short(v)}" for name, v in numbers.items() if v is not None))
        if numbers["return"] is not None and scalars is not None:
            self.candidates.add(Candidate(numbers, self.actor()))


class _Rates:
    """Rates between two lines."""

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
    seed: int = 0,
    settings: ExpertSettings | None = None,
    watch: Watch = lambda _: None,
) -> dict[str, Any]:
    """Train a walker for some minutes, and store actor, record, curve and checkpoint.

    Parameters
    ----------
    body
        ``ant``, ``antball`` or ``humanoid``.
    minutes
        Time in the loop, compilation included, over all parts of a training that was taken up
        again. The final evaluation comes after it.
    out
        Folder for ``actor.safetensors``, ``record.json``, ``curve.jsonl`` and
        ``checkpoint.safetensors``.
    seed
        Seed of networks, starts and draws; a training that is taken up keeps its own.
    settings
        The body's own unless given.
    watch
        Called with a line of progress.

    Returns
    -------
    What ``record.json`` holds.
    """
    kind = body_named(body)
    out.mkdir(parents=True, exist_ok=True)
    training = Training(kind, settings or DEFAULTS[body], seed, out, watch)
    training.loop(minutes)
    return training.finish()


def _under(tensors: Tensors, prefix: str) -> Tensors:
    """Take the tensors below a prefix."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _layers(tensors: Tensors) -> list[Tensors]:
    """Put layers together from names such as ``0/kernel``."""
    count = sum(name.endswith("/kernel") for name in tensors)
    return [_under(tensors, f"{i}/") for i in range(count)]


def _memory() -> float | None:
    """Most accelerator memory used so far, in GB; None where it is not told."""
    stats = jax.devices()[0].memory_stats()
    return round(stats["peak_bytes_in_use"] / 1e9, 2) if stats else None


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def main(arguments: Sequence[str]) -> None:
    """Train from the command line."""
    parser = argparse.ArgumentParser(prog="python -m toptail.lab.experts.train")
    parser.add_argument("body")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="sizes for two cores")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(arguments)
    body_named(given.body)
    settings = small(given.body) if given.small else DEFAULTS[given.body]
    changes = dict(entry.split("=", 1) for entry in given.set)
    settings = replace(settings, **{k: ast.literal_eval(v) for k, v in changes.items()})

    def watch(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    train_expert(given.body, given.minutes, given.out, given.seed, settings, watch)


if __name__ == "__main__":
    main(sys.argv[1:])
