"""A task's folder as the stages leave it, made of numbers whose tables are known by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.io.json_files import write_json
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig
from toptail.stats.resample import wilson
from toptail_paper.selection.config import PoolSettings, SelectionConfig
from toptail_paper.selection.files import SelectionFolder, declare
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import RolloutAudit, candidates_sha256, selector_picks
from toptail_paper.study.store import Stored

TASK = "pointmaze-medium-navigate-v0"
Floats = NDArray[np.float64]


@dataclass
class Stages:
    """Stage files of a small study."""

    out: Path
    per_group: int = 8
    pools: int = 2
    size: int = 64

    def __post_init__(self) -> None:
        queries = 3 * self.per_group
        self.rng = np.random.default_rng(0)
        self.folder = SelectionFolder(self.out / TASK)
        self.config = SelectionConfig(
            TASK,
            queries=QueryConfig(per_group=self.per_group),
            pools=PoolSettings(count=self.pools, size=self.size),
            ks=tuple(k for k in (1, 2, 4, 8, 16, 32, 64) if k <= self.size),
        )
        states = self.rng.normal(size=(queries, 2)).astype(np.float32)
        self.queries = FrozenQueries(
            states=states,
            actions=(states / 10).astype(np.float32),
            goals=(states + 1).astype(np.float32),
            rows=np.arange(queries),
            goal_rows=np.arange(queries) + 5,
            trajectory=np.arange(queries) % 6,
            group=np.repeat(np.array(["near", "medium", "far"]), self.per_group),
            config=self.config.queries,
            data_sha256="data",
        )
        self.queries.save(self.folder.queries)
        self.declared = declare(self.folder, self.config, self.queries)
        shape = (queries, self.pools, self.size)
        self.distance = self.rng.uniform(0.0, 1.0, shape).astype(np.float32)
        stored = Stored(
            {"queries": self.queries.sha256, "threshold": 0.75},
            {
                "actions": self.rng.normal(size=(*shape, 2)).astype(np.float32),
                "logged": self.queries.actions,
                "support_distance": self.distance,
                "on_support": self.distance <= 0.75,
                "logged_support_distance": np.zeros(queries, np.float32),
            },
        )
        stored.write(self.folder.pools)
        self.made_from = {
            "declared": self.declared["hash"],
            "queries": self.queries.sha256,
            "pools": stored.sha256,
        }
        self.value = self.rng.normal(size=(queries, self.pools, self.size + 1))
        self.scores: dict[str, Floats] = {}
        self.members: Floats | None = None

    @property
    def path(self) -> Path:
        return self.folder.path

    def _store(self, path: Path, **arrays: Floats) -> None:
        single = {name: array.astype(np.float32) for name, array in arrays.items()}
        Stored(self.made_from, single).write(path)

    def judge(self, name: str, values: Floats) -> None:
        """Store a judge's values ``[members, Q, P, N + 1]``."""
        self.members = values.astype(np.float32) if name == "reference" else self.members
        self._store(self.folder.values(name), values=values)

    def reference(self, noise: float = 0.02, members: int = 3) -> None:
        """Members that see the value through a little noise of their own."""
        seen = [self.value + noise * self.rng.normal(size=self.value.shape) for _ in range(members)]
        self.judge("reference", np.stack(seen))

    def score(self, column: str, scores: Floats) -> None:
        """Store a column ``[Q, P, N + 1]``."""
        self.scores[column] = scores.astype(np.float32)
        self._store(self.folder.scores(column), scores=scores)

    def norm(self, column: str, norms: Floats) -> None:
        """Store the norms of phi ``[Q, P, N + 1]`` of a column."""
        self._store(self.folder.norms(column), norms=norms)

    def noisy(self, share: float) -> Floats:
        """A score that is the value by ``share`` and noise by the rest."""
        return share * self.value + (1 - share) * self.rng.normal(size=self.value.shape)

    def roll_out(self, gains: Mapping[str, float], noise: float = 0.01, repeats: int = 4) -> None:
        """Returns whose gain over random is given, up to noise that selectors share by half."""
        n, rng = len(self.queries), self.rng
        base = 0.5 + 0.1 * rng.normal(size=(n, 1, 1)) + noise * rng.normal(size=(n, 1, repeats))
        gain = np.array(list(gains.values()))[None, :, None]
        drawn = np.tile(np.arange(8), (n, 1))
        # Random candidates return more the more they are worth, centred within a query.
        worth = self.value[np.arange(n)[:, None], 0, drawn]
        slope = 0.01 * (worth - worth.mean(axis=1, keepdims=True))
        own = noise / 10
        picks = selector_picks(self.scores, self.members)
        unscored = np.full(n, self.size)  # as of the logged action
        audit = RolloutAudit(
            query=np.arange(n),
            trajectory=self.queries.trajectory,
            group=self.queries.group,
            selectors=tuple(gains),
            candidate=np.stack([picks.get(name, unscored) for name in gains], axis=1),
            returns=base + gain + own * rng.normal(size=(n, len(gains), repeats)),
            random_candidate=drawn,
            random_returns=base + slope[..., None] + own * rng.normal(size=(n, 8, repeats)),
        )
        candidates = CandidatePools.read(self.folder.pools).with_logged()[:, 0]
        header = {"queries": self.queries.sha256, "candidates": candidates_sha256(candidates)}
        audit.stored(header).write(self.folder.rollouts)
        audit.picks().write(self.path / "picks.parquet")

    def deploy(self) -> None:
        """Files of the deployment checks, as their runs write them."""
        actors = {
            c: {"42": _count(25 + i)} for i, c in enumerate(("raw", "cosine", "tdq", "hybrid"))
        }
        search = {
            critic: {"42": {"k": {str(k): _count(hits) for k, hits in by_k.items()}}}
            for critic, by_k in (("tdq", {1: 36, 8: 15, 64: 1}), ("raw", {1: 35, 8: 30, 64: 20}))
        }
        spread = {c: {"42": {"spread": _spread(x)}} for c, x in {"tdq": 0.01, "raw": 0.2}.items()}
        for name, critics in (("actors", actors), ("closed_loop", search), ("spread", spread)):
            write_json(self.path / "deployment" / f"{name}.json", {"critics": critics})


def _count(hits: int, episodes: int = 100) -> dict[str, Any]:
    low, high = wilson(hits, episodes)
    counted = {"successes": hits, "episodes": episodes, "rate": hits / episodes}
    return counted | {"low": float(low), "high": float(high)}


def _spread(median: float) -> dict[str, Any]:
    return {g: {k: {"median": median} for k in ("range", "deviation")} for g in ("all", "near")}


def paper_like(out: Path, per_group: int = 8) -> Stages:
    """A folder in which everything comes out as the paper says."""
    stages = Stages(out, per_group=per_group)
    stages.reference()
    stages.judge("euclidean", stages.value[None])
    shares = {"tdq": 0.95, "td_bilinear": 0.80, "two_head_joint": 0.95, "raw": 0.25}
    shares |= {"nce_mlp": 0.30, "cosine": 0.02, "hybrid": 0.10, "two_head_joint.f_cos": 0.05}
    for critic, share in shares.items():
        for seed in (42, 43, 44):
            scores = stages.noisy(share)
            if critic in ("cosine", "hybrid"):
                scores = scores / 10 - 0.8
            stages.score(f"{critic}@{seed}", scores)
            if critic == "raw":
                stages.norm(f"raw@{seed}", 2.0 + 0.1 * scores)
    stages.roll_out(
        {"tdq": 0.012, "raw": 0.006, "cosine": -0.001, "hybrid": 0.005, "reference": 0.013}
        | {"two_head_joint": 0.012, "two_head_joint.f_cos": 0.0, "logged": 0.001}
    )
    stages.deploy()
    return stages
