"""Flags that make a study small: what it trains, and how much of it is deployed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toptail.errors import check_whole
from toptail.lab.training.config import DEPTH, WIDTH


@dataclass(frozen=True, kw_only=True)
class TrainingSize:
    """How large the networks are that --train makes, and how long they train."""

    steps: int | None = None
    """With --train: optimizer steps of each critic; 100000 unless given, and 50000 on manipulation
    data."""
    diffusion_steps: int | None = None
    """With --train: optimizer steps of the behaviour models; 100000 unless given, 0 for none."""
    batch_size: int | None = None
    """With --train, and for actors: rows per step; 1024 unless given."""
    hidden: int | None = None
    """With --train, and for actors: width of the hidden layers; 512 unless given."""
    depth: int | None = None
    """With --train, and for actors: number of hidden layers; 3 unless given."""
    embed_dim: int | None = None
    """With --train: dimension of phi and psi; 512 unless given."""

    def given(self) -> dict[str, Any]:
        """Settings of a study's training that were given, by the names that it has for them."""
        for name in ("batch_size", "hidden", "depth", "embed_dim"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1)
        layers = (("hidden", self.layers),) if self.layers else ()
        dims = (("embed_dim", self.embed_dim),) if self.embed_dim else ()
        found = {name: getattr(self, name) for name in ("steps", "diffusion_steps", "batch_size")}
        found |= {"settings": (*layers, *dims) or None, "diffusion_settings": layers or None}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def layers(self) -> tuple[int, ...]:
        """The hidden layers that were asked for; none where they were not."""
        if self.hidden is None and self.depth is None:
            return ()
        return (self.hidden or WIDTH,) * (self.depth or DEPTH)


@dataclass(frozen=True, kw_only=True)
class DeploymentSize:
    """How much the stage deployment does."""

    actor_steps: int | None = None
    """In the stage deployment: optimizer steps of each actor; 100000 unless given."""
    episodes: int | None = None
    """In the stage deployment: episodes of each evaluation goal; 20 unless given."""
    episode_steps: int | None = None
    """In the stage deployment: steps after which an episode has failed; the environment's own
    unless given."""

    def given(self, size: TrainingSize) -> dict[str, dict[str, Any]]:
        """Settings that were given, of actors and of episodes, by the names that they have."""
        actor: dict[str, Any] = {"steps": self.actor_steps, "batch_size": size.batch_size}
        actor["hidden"] = size.layers or None
        episodes = {"per_goal": self.episodes, "limit": self.episode_steps}
        return {
            name: {key: value for key, value in settings.items() if value is not None}
            for name, settings in (("actor", actor), ("episodes", episodes))
        }
