"""The pools of a fixed-query selection as one table, for ``toptail audit`` and ``toptail choose``.

    python tools/selection_table.py FOLDER OUT.parquet [GROUP|all [JUDGE]]

FOLDER is ``OUT/TASK`` of ``toptail study selection``. Beside scores, support and the judge's values
(the reference's members as replicates, unless another judge is named), the table has a number column
``nearness``: minus the distance of a candidate to the nearest action of the data. GROUP keeps one
distance group of the queries.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from toptail.lab.studies.selection.audits import to_pools
from toptail.lab.studies.selection.files import REFERENCE
from toptail.lab.studies.selection.load import read_selection


def main(folder: str, out: str, group: str = "all", judge: str = REFERENCE) -> None:
    """Write the table."""
    data = read_selection(folder)
    pools = to_pools(data, judge)
    nearness = -data.support_distance.reshape(-1)
    pools = replace(pools, scores={**pools.scores, "nearness": nearness})
    if group != "all":
        assert pools.group is not None
        pools = pools.select(np.array(pools.group.to_pylist()) == group)
    pools.write(Path(out))
    print(f"{out}: {pools}")


if __name__ == "__main__":
    main(*sys.argv[1:])
