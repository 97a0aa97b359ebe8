"""The paper's critics and tasks, as its sentences group them."""

from __future__ import annotations

TDQ = ("tdq",)
RANKERS = ("raw", "cosine")
"""The critics the paper calls near-perfect retrievers."""
BOUNDED = ("cosine", "hybrid")
CONTRASTIVE = ("raw", "cosine", "hybrid")
CRITICS = (*TDQ, *CONTRASTIVE)

POINT, ANT, HUMANOID = CORE = ("PointMaze", "AntMaze", "HumanoidMaze")
NAVIGATION = (*CORE, "AntSoccer")
MANIPULATION = ("Cube-single", "Cube-double", "Scene", "Puzzle")
EIGHT = (*NAVIGATION, *MANIPULATION)
