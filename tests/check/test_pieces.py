"""A check in pieces, done in any process and in any order, is the check."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tasks.conftest import DATA
from toptail.cli import main
from toptail.errors import Exit
from toptail.lab.check import run
from toptail.lab.check.config import CheckConfig
from toptail.lab.check.run import Piece, check
from toptail.progress import Caller, called_by


def elsewhere(done: list[Piece]) -> Callable[..., Iterator[Any]]:
    """``map`` as a cluster does it: function and results are sent, in any order."""

    def mapped(work: Callable[[Piece], Any], pieces: Sequence[Piece]) -> Iterator[Any]:
        order = random.Random(0).sample(list(pieces), len(pieces))
        sent = {piece: pickle.loads(pickle.dumps(work)) for piece in order}
        found = {piece: pickle.loads(pickle.dumps(sent[piece](piece))) for piece in order}
        done.extend(order)
        return (found[piece] for piece in pieces)

    return mapped


def test_pieces_are_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("def q(s, a, g):\n    return (a * (g - s)).sum(axis=1)\n")
    sizes = {"per_group": 3, "pool_size": 4, "near": 9, "starts": 2, "follow_k": (1, 2, 4)}
    config = CheckConfig(**sizes, horizon=3, resamples=100, follow_ascent=True)  # type: ignore[arg-type]
    data, scorer = DATA / "pointmaze-medium-navigate-v0.npz", f"{tmp_path / 'mine.py'}:q"
    names = ("nearest", "uniform", "ascent")
    alone = check(data, scorer, pools=names, judge="rollouts", config=config)
    done: list[Piece] = []
    shares: list[float] = []
    begun: list[str] = []
    real = run._Check
    monkeypatch.setattr(run, "_Check", lambda *args: begun.append("") or real(*args))  # type: ignore[func-returns-value]
    program = Caller(
        alone.content["record"]["command"], lambda _, x: shares.append(x), elsewhere(done)
    )
    with called_by(program):
        apart = check(data, scorer, pools=names, judge="rollouts", config=config)
    assert len(begun) == 2, "data and critics are read once here, and once in the other process"
    wanted = [Piece(name) for name in names]
    for name in names[:2]:  # ascent is followed among the uniform candidates, which are done once
        wanted += [Piece(name, "", 1), Piece(name, "mine", 2), Piece(name, "mine", 4)]
    assert {*done} == {*wanted, Piece("uniform", "mine", None)}
    assert len(done) == len({*done})
    assert apart.content == alone.content
    for one, other in zip(alone.sources, apart.sources, strict=True):
        for name, column in one.pools.items():
            np.testing.assert_array_equal(column, other.pools[name])
        assert one.audit == other.audit
        assert one.picked == other.picked
        assert one.followed == other.followed
    assert 1.0 in shares


def test_an_address_without_an_engine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--task", "x", "--scorer", "y", "--address", "auto"]
    assert main(words) == Exit.INPUT
    assert "give --engine ray" in capsys.readouterr().err
