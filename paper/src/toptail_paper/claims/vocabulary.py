"""The paper's critics and tasks, as its sentences group them."""

from __future__ import annotations

TDQ = ("tdq",)
RANKERS = ("raw", "cosine")
"""The critics the paper calls near-perfect retrievers."""
BOUNDED = ("cosine", "hybrid")
CONTRASTIVE = ("raw", "cosine", "hybrid")
CRITICS = (*TDQ, *CONTRASTIVE)

POINT, ANT, HUMANOID = CORE = ("PointMaze", "AntMaze", "HumanoidMaze")
SOCCER = "AntSoccer"
NAVIGATION = (*CORE, SOCCER)
DECLARED = (ANT, HUMANOID, SOCCER)
"""The tasks whose criteria were written down before a critic was trained on them."""
MANIPULATION = ("Cube-single", "Cube-double", "Scene", "Puzzle")
EIGHT = (*NAVIGATION, *MANIPULATION)

WAYS = ("exact", "euclidean")
"""Judges that know PointMaze's ways; a claim asks the first that is stored. The last is what older
results call the second."""
