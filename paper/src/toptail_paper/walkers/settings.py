"""What a walker is trained with, and the values that each body was given."""

from __future__ import annotations

from dataclasses import dataclass, replace

from toptail.errors import InputError


@dataclass(frozen=True)
class ExpertSettings:
    """Sizes and rates of one training. The defaults are the humanoid's."""

    environments: int = 1024
    """Simulations that are stepped together."""
    threads: int = 15
    """Threads that step them."""
    evaluating: float = 0.1
    """Share of simulations that run the package's starts with mode + noise: the learning curve."""
    replay: int = 8_000_000
    """Steps that the replay holds on the accelerator."""
    warmup: int = 30
    """Vector steps of random actions before the first update."""
    batch: int = 8192
    """Steps per update."""
    actor_updates: int = 4
    """Actor updates per vector step."""
    critic_updates: int = 2
    """Critic updates per actor update."""
    relabelled: float = 0.25
    """Share of a batch that gets a command in a random direction."""
    actor: tuple[int, ...] = (512, 256)
    """Widths of the actor's hidden layers."""
    critic: tuple[int, ...] = (1024, 1024, 1024)
    """Widths of the critics' hidden layers."""
    atoms: int = 96
    """Points of the critics' categorical values."""
    lowest: float = -100.0
    """Lowest of these points."""
    highest: float = 1000.0
    """Highest of these points."""
    fine: float = 50.0
    """Size of values around 0 within which the points are evenly spaced; coarser beyond."""
    discount: float = 0.99
    """Discount per environment step."""
    returns: int = 3
    """Steps of reward before the critics' own values take over."""
    rate: float = 3e-4
    """Adam's learning rate."""
    decay: float = 1e-3
    """Decoupled weight decay, relative to the learning rate."""
    target_rate: float = 0.02
    """Share of the critics that their targets take over per update."""
    value_scale: float = 100.0
    """What values are divided by in the actor's loss."""
    temperature: float = 3e-5
    """Weight of the entropy at first."""
    temperature_rate: float = 1e-3
    """Learning rate of the temperature's logarithm."""
    entropy: float = -0.5
    """Entropy per action dimension that the temperature aims at."""
    final_episodes: int = 128
    """Episodes per candidate in the final evaluation."""
    half: bool = True
    """Whether the networks' products are taken in bfloat16."""

    def __post_init__(self) -> None:
        if self.replay // self.environments <= self.returns:
            raise InputError(
                f"A replay of {self.replay} steps is too small for {self.environments} "
                "environments: give at least ten steps for each."
            )


_ANT = ExpertSettings(
    replay=4_000_000,
    batch=4096,
    actor=(256, 256),
    critic=(512, 512),
    lowest=-20.0,
    highest=100.0,
    fine=4.0,
    value_scale=5.0,
    temperature=1e-3,
)

DEFAULTS = {
    "ant": _ANT,
    "antball": replace(
        _ANT,
        batch=8192,
        critic=(512, 512, 512),
        lowest=-200.0,
        highest=500.0,
        fine=20.0,
        value_scale=30.0,
    ),
    "humanoid": ExpertSettings(),
}
"""Settings by body."""


def fitting(body: str, accelerator: bool, cores: int) -> ExpertSettings:
    """Settings for a machine; one core is left for what is not the simulator."""
    settings = DEFAULTS[body] if accelerator else small(body)
    return replace(settings, threads=max(1, cores - 1))


def small(body: str) -> ExpertSettings:
    """Settings with which two cores see a body learn in minutes."""
    return replace(
        DEFAULTS[body],
        environments=64,
        threads=1,
        replay=400_000,
        warmup=150,
        batch=256,
        actor_updates=4,
        critic=(256, 256),
        final_episodes=10,
        half=False,
    )
