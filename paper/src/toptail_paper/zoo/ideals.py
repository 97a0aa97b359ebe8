"""What PointMaze's critics would score if their objectives were learned perfectly.

    python -m toptail_paper.zoo.ideals OUT pointmaze-medium-navigate-v0

scores the candidates of a run's check by the ideal critics (`toptail_paper.study.ideals`), which
takes some minutes, and writes ``OUT/check/DATASET/ideals``, whose scores join the leaderboard. The
summary then splits what a critic does not capture into what its objective costs and the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from toptail.commands.terminal import say
from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail_paper.study.ideals import knows_ideals, point_ideals
from toptail_paper.zoo.beside import checked_folder, write_beside
from toptail_paper.zoo.summary import IDEAL_ROWS

FOLDER: Final = "ideals"


def write_ideals(out: Path, task: str) -> Path:
    """Score the candidates of a run's check by every ideal but Q*, which is the value itself."""
    if not knows_ideals(task):
        raise InputError(f"No ideal critics of {task}: they are known of PointMaze navigate alone.")
    gamma = read_json(checked_folder(out, task) / "check.json")["settings"]["gamma"]
    scores = point_ideals(task, float(gamma)).scores()
    return write_beside(out, task, FOLDER, {name: scores[name] for name in IDEAL_ROWS})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m toptail_paper.zoo.ideals OUT DATASET")
    say(str(write_ideals(Path(sys.argv[1]), sys.argv[2])))
