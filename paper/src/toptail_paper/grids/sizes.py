"""How much of everything is read."""

from __future__ import annotations

from dataclasses import dataclass

from toptail.errors import check_whole
from toptail.lab.judges.behaviour import SPACING
from toptail.lab.tasks.triples import GAMMA, MAX_OFFSET


@dataclass(frozen=True)
class Sizes:
    """How much is drawn and resampled; a plan's ``sizes`` are fields of this."""

    triples: int = 3_000
    """Triples (s, a, g) per data set."""

    negatives: int = 49
    """Goals of other trajectories that each true goal is ranked among."""

    max_offset: int = MAX_OFFSET
    """Longest distance of a triple's goal, in steps."""

    gamma: float = GAMMA
    """Discount of the return-to-go gamma^d, and of exact values."""

    k: int = 64
    """Candidates that are searched, and the triples of a pooled pool."""

    queries: int = 300
    """Decision queries (s, g)."""

    resamples: int = 200
    """Bootstrap resamples of trajectories, or of queries."""

    draw_seed: int = 1
    """Seed of everything drawn; the studies' own draws have seed 0."""

    spacing: float = SPACING
    """Spacing of the grid that ideal critics are solved on."""

    box: int = 201
    """Points per axis of the whole action box."""

    widest: int = 100_000
    """Candidates of the widest search."""

    ascent: int = 200
    """Steps of gradient ascent on the score, from each of 16 starts."""

    alphas: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    """Weights of behaviour cloning of the actors that follow a critic."""

    actor_steps: int = 100_000
    """Optimizer steps of each actor."""

    actor_hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer of the actors."""

    actor_batch: int = 1024
    """Rows per step of the actors."""

    behaviour: str = ""
    """Folder of a behaviour model's run, whose samples are searched at every step, if given."""

    episodes: int = 20
    """Episodes of each evaluation goal."""

    limit: int | None = None
    """Steps after which an episode has failed; the environment's own unless given."""

    def __post_init__(self) -> None:
        counts = ("triples", "negatives", "max_offset", "k", "queries", "resamples", "box")
        for name in (*counts, "widest", "ascent", "actor_steps", "actor_batch", "episodes"):
            check_whole(name, getattr(self, name), 1)
