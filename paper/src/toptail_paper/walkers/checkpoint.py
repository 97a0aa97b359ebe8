"""A training's checkpoint: what cannot be had again in seconds, small enough to carry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from toptail.errors import InputError, option, refusing
from toptail.lab.walkers.walker import Tensors, Walker, read_tensors, write_tensors
from toptail_paper.walkers.evaluate import Numbers
from toptail_paper.walkers.learner import SAC, Normalizer, State

_KEPT = 3
_ENOUGH = 0.8


@dataclass(frozen=True, eq=False)
class Candidate:
    """A walker and what was seen of it during training."""

    numbers: Numbers
    """A point of the learning curve."""
    actor: Walker
    """The walker at its end."""


def ranking(entries: Sequence[Numbers], by_success: bool) -> list[int]:
    """Order walkers, best first.

    Falls before return: the fewest falls among those whose return is at least 80 % of the best,
    the higher return where falls are equal, then the others by return. With goals: by success,
    then by return.
    """

    def place(i: int) -> tuple[float, ...]:
        entry = entries[i]
        if by_success:
            return (-entry["success"], -entry["return"])
        enough = entry["return"] >= best - (1 - _ENOUGH) * abs(best)
        return (0, entry["falls"], -entry["return"]) if enough else (1, -entry["return"])

    best = max(entry["return"] for entry in entries)
    return sorted(range(len(entries)), key=place)


@dataclass
class Candidates:
    """The few walkers that training keeps for the final evaluation."""

    by_success: bool
    """Whether reaching goals decides."""
    kept: list[Candidate] = field(default_factory=list)
    """The best by the rule, and the one with the best return, which the rule measures by."""

    @property
    def rule(self) -> str:
        if self.by_success:
            return "success, then return"
        return "fewest falls, then return, among those with at least 80 % of the best return"

    def add(self, candidate: Candidate) -> None:
        """Add a walker, and keep the three best by the rule and the one with the best return."""
        everyone = [*self.kept, candidate]
        order = ranking([c.numbers for c in everyone], self.by_success)
        highest = max(range(len(everyone)), key=lambda i: everyone[i].numbers["return"])
        chosen = dict.fromkeys([*order[:_KEPT], highest])
        self.kept = [everyone[i] for i in chosen]


_MACHINE = ("environments", "threads", "replay", "final_episodes")
"""Settings that may change when a training is taken up, perhaps on another machine."""


@dataclass
class Counters:
    """How far a training is, over all its parts."""

    seconds: float = 0.0
    """Time in the loop."""
    env_steps: int = 0
    updates: int = 0
    parts: int = 0
    """Times that the training was begun or taken up."""


@dataclass
class Course:
    """The state of a training, without its networks."""

    seed: int
    candidates: Candidates
    """The walkers that may be kept."""
    counters: Counters = field(default_factory=Counters)
    curve: list[Numbers] = field(default_factory=list)


def save_checkpoint(path: Path, learner: SAC, state: State, course: Course) -> None:
    """Write the checkpoint, completely or not at all; the replay is not in it."""
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
    for i, candidate in enumerate(course.candidates.kept):
        for name, value in candidate.actor.tensors().items():
            tensors[f"candidate/{i}/{name}"] = value
    metadata = {
        "body": learner.body.name,
        "seed": str(course.seed),
        "settings": json.dumps(asdict(learner.settings)),
        "counters": json.dumps(asdict(course.counters)),
        "candidates": json.dumps([c.numbers for c in course.candidates.kept]),
        "curve": json.dumps(course.curve),
    }
    write_tensors(path, tensors, metadata)


def load_checkpoint(path: Path, learner: SAC, seed: int | None) -> tuple[State, Course]:
    """Read a checkpoint back, or say why a training with these settings cannot go on from it."""
    tensors, metadata = read_tensors(path)
    what = "is no checkpoint of a walker's training"
    with refusing(path, what, "delete it, or give another folder"):
        _check_same(path, metadata, learner, seed)
        body = learner.body.name
        course = Course(
            int(metadata["seed"]),
            Candidates(by_success=learner.body.truncation_ends),
            Counters(**json.loads(metadata["counters"])),
            json.loads(metadata["curve"]),
        )
        for i, numbers in enumerate(json.loads(metadata["candidates"])):
            walker = Walker.of(body, _under(tensors, f"candidate/{i}/"))
            course.candidates.kept.append(Candidate(numbers, walker))
        key = jax.random.wrap_key_data(jnp.asarray(tensors["key"]))
        normalizer = Normalizer(
            **{k: jnp.asarray(v) for k, v in _under(tensors, "normalizer/").items()}
        )
        actor, critic = (_layers(_under(tensors, f"{part}/")) for part in ("actor", "critic"))
        return learner.state(actor, critic, tensors["log_temperature"], normalizer, key), course


def _check_same(path: Path, metadata: dict[str, str], learner: SAC, seed: int | None) -> None:
    """Refuse another body, other settings or another seed."""
    mine = json.loads(json.dumps(asdict(learner.settings)))
    stored = json.loads(metadata["settings"])
    differing = [k for k in mine if k not in _MACHINE and mine[k] != stored.get(k)]
    if metadata["body"] != learner.body.name or differing:
        what = ", ".join(differing) or "the body"
        raise InputError(
            f"{path} was made with other settings ({what}): give another folder, or the same "
            "settings."
        )
    if seed is not None and seed != int(metadata["seed"]):
        raise InputError(
            f"{path} was made with seed {metadata['seed']}: give another folder, or leave "
            f"{option('seed', seed)} out."
        )


def _under(tensors: Tensors, prefix: str) -> Tensors:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _layers(tensors: Tensors) -> list[Tensors]:
    """Put layers together from names such as ``0/kernel``."""
    count = sum(name.endswith("/kernel") for name in tensors)
    return [_under(tensors, f"{i}/") for i in range(count)]
