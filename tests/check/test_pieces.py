"""A check in pieces, done in any process and in any order, is the check."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toptail.cli import main
from toptail.errors import Exit
from toptail.lab.check import run
from toptail.lab.check.config import CheckConfig
from toptail.lab.check.request import CheckRequest
from toptail.lab.check.run import JUDGED, Piece, check
from validation.attack.files import CRITIC

DATA = Path(__file__).parent.parent / "tasks" / "data" / "pointmaze-medium-navigate-v0.npz"


def elsewhere(done: list[Piece]) -> Callable[..., Iterator[Any]]:
    """``map`` as an engine does it: what it calls and gets back was sent, in any order."""

    def mapped(work: Callable[[Piece], Any], pieces: Sequence[Piece]) -> Iterator[Any]:
        sent = pickle.loads(pickle.dumps(work))
        order = random.Random(0).sample(list(pieces), len(pieces))
        found = {piece: pickle.loads(pickle.dumps(sent(piece))) for piece in order}
        done.extend(order)
        return (found[piece] for piece in pieces)

    return mapped


def test_pieces_are_the_check(tmp_path: Path) -> None:
    (tmp_path / "critic.py").write_text(CRITIC)
    sizes = {"per_group": 3, "pool_size": 4, "near": 9, "starts": 2, "follow_k": (1, 2, 4)}
    request = CheckRequest(
        task=str(DATA),
        scorers=(f"{tmp_path / 'critic.py'}:score",),
        judge="rollouts",
        config=CheckConfig(**sizes, horizon=3, resamples=100),  # type: ignore[arg-type]
    )
    alone = check(request)
    done: list[Piece] = []
    begun = run._begun
    begun.cache_clear()
    told: list[float] = []
    apart = check(request, lambda _stage, share: told.append(share), elsewhere(done))
    names = ("nearest", "uniform")
    assert sorted(done) == [(name, i) for name in names for i in (JUDGED, 0, 1, 2)]
    assert begun.cache_info().misses == 1, "data and critics are read once in a process"
    assert apart.content == alone.content
    for one, other in zip(alone.sources, apart.sources, strict=True):
        assert one.table is not None
        assert other.table is not None
        for name, column in one.table.values.items():
            np.testing.assert_array_equal(column, other.table.values[name])
        assert one.audit == other.audit
        assert one.followed == other.followed
    assert 1.0 in told


def test_an_address_without_an_engine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--task", "x", "--scorer", "y", "--address", "auto"]
    assert main(words) == Exit.INPUT
    assert "give --engine ray" in capsys.readouterr().err
