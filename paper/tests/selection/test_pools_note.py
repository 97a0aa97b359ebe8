"""What a study notes of its candidates does not depend on which call drew them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paper.tests.selection.small import small_config
from tests.training.toy import toy_dataset
from toptail.io.arrays import write_arrays
from toptail_paper.selection.pools import file_proposal
from toptail_paper.selection.stages import Selection, make_pools, make_queries


def test_a_call_that_finds_the_pools_notes_the_same(tmp_path: Path) -> None:
    """Killed between the pools and the note, the next call leaves the same bytes."""
    data, study = toy_dataset(), Selection.at(tmp_path / "out", small_config())
    queries = make_queries(study, data.val)
    settings = study.config.pools
    shape = (len(queries), settings.count, settings.size, data.train.actions.shape[1])
    actions = np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)
    write_arrays(tmp_path / "own.npz", {"actions": actions})
    proposal = file_proposal(tmp_path / "own.npz", settings)
    make_pools(study, queries, data.train, proposal)
    note = study.folder.path / "scale.json"
    noted = note.read_bytes()
    note.unlink()
    make_pools(study, queries, data.train, proposal)
    assert note.read_bytes() == noted
