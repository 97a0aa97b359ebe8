"""Every setting of the semantics study."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from toptail.errors import InputError, check_share, check_whole
from toptail.lab.tasks.names import Split
from toptail.lab.tasks.triples import GAMMA, MAX_OFFSET
from toptail_paper.study.store import plain

EXCLUSIONS = ("row", "trajectory")
"""What a support pool leaves out: the anchor's own row, or its whole trajectory."""

ORACLE = "oracle"
"""Scorer name of the reference: an independently seeded TD-Q, which only judges."""

DRAWS, PROPOSALS = "draws", "proposals"
"""Files of a task's folder that hold no column of scores."""

VALUES = "values"
"""Folder in a task's folder: what judges that are no critics say of the triples."""

SWEEP: Final = "temperature"
"""Folder of the temperature study, among runs and among scores."""

SEEN: Final = "seen"
"""Folder of the scores on trajectories that the critics were trained on."""

Beside: TypeAlias = Literal["", "temperature", "seen"]
"""Which scores: the study's own (empty), the temperature study's, or those of seen trajectories."""


@dataclass(frozen=True)
class SemanticsConfig:
    """What is drawn, scored and reported; the defaults are the paper's where it states them."""

    tasks: tuple[str, ...]
    """Data sets: OGBench names, the paper's names, or paths of training files."""
    seeds: tuple[int, ...] = (42, 43, 44)
    """Training seeds of the critics that are reported."""
    split: Split = "val"
    """The split that triples and candidates are drawn from."""
    triples: int = 3_000
    """Triples (s, a, g) per task."""
    negatives: int = 49
    """Goals of other trajectories that each true goal is ranked among."""
    max_offset: int = MAX_OFFSET
    """Longest distance d of a triple's goal, in steps."""
    gamma: float = GAMMA
    """Discount of the return-to-go gamma^d."""
    behaviour_actions: int = 64
    """Actions of the behaviour model per (s, g) that a score is centered with."""
    support_queries: int = 500
    """Triples, from the first on, whose (s, g) get support pools."""
    support_pool: int = 64
    """Candidates of a support pool; half come from near states, half from random ones."""
    n_near: tuple[int, ...] = (50, 200, 800)
    """How many nearest states count as near."""
    k: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    """Candidate counts K of best-of-K curves."""
    oracle_seed: int = 7
    """Training seed of the TD-Q that serves as independent reference."""
    diffusion_seeds: tuple[int, ...] = (42, 7, 13)
    """Training seeds of the behaviour models; the first one also centers scores."""
    draw_seed: int = 0
    """Seed of everything drawn; the temperature study draws with the next one."""
    resamples: int = 1_000
    """Bootstrap resamples of trajectories behind each interval."""

    def __post_init__(self) -> None:
        counts = ("triples", "negatives", "max_offset", "behaviour_actions", "resamples")
        for name in (*counts, "support_queries"):
            check_whole(name, getattr(self, name), 1)
        check_whole("draw_seed", self.draw_seed, 0)
        if self.split not in get_args(Split):
            raise InputError(f"There is no split '{self.split}': it is 'val' or 'train'.")
        if self.support_pool < 2 or self.support_pool % 2:
            raise InputError(
                f"support_pool is {self.support_pool}: expected an even number from 2 up, since "
                "half of a pool comes from near states."
            )
        if self.support_queries > self.triples:
            raise InputError(
                f"support_queries is {self.support_queries}, but there are only {self.triples} "
                "triples: ask for more triples or for fewer queries."
            )
        for name in ("tasks", "seeds", "n_near", "k", "diffusion_seeds"):
            listed = getattr(self, name)
            if not listed or len(set(listed)) < len(listed):
                raise InputError(f"{name} is {list(listed)}: expected different entries.")
        for name in ("n_near", "k"):
            if min(getattr(self, name)) < 1:
                raise InputError(f"{name} is {list(getattr(self, name))}: expected 1 or more.")
        check_share("gamma", self.gamma)
        if self.oracle_seed in self.seeds:
            raise InputError(
                f"The oracle's seed {self.oracle_seed} is among the critics' seeds: the oracle "
                "must be a network that is not judged."
            )

    def described(self) -> dict[str, Any]:
        return plain(asdict(self))
