"""The simulation of pieces on nodes: graphs whose time is known by hand."""

from __future__ import annotations

import pytest

from toptail.jobs.job import Resources
from toptail.jobs.simulate import TimedPiece, simulate

CORE = Resources(1.0, 0.0)


def test_pieces_that_need_nothing_share_the_nodes() -> None:
    found = simulate(
        [TimedPiece(3.0), TimedPiece(1.0), TimedPiece(1.0), TimedPiece(1.0)], [CORE, CORE]
    )
    assert (found.seconds, found.work, found.lost) == (3.0, 6.0, 0)


def test_a_chain_takes_its_sum_on_any_number_of_nodes() -> None:
    chain = [TimedPiece(2.0, [at - 1] if at else ()) for at in range(4)]
    assert simulate(chain, [CORE] * 3).seconds == 8.0
    assert simulate(chain, [CORE] * 3, start=0.5).seconds == 10.0


def test_what_a_piece_takes_is_taken() -> None:
    gpu = TimedPiece(1.0, resources=Resources(1.0, 1.0))
    assert simulate([gpu] * 4, [Resources(4.0, 1.0)]).seconds == 4.0
    assert simulate([gpu] * 4, [Resources(4.0, 2.0)]).seconds == 2.0
    assert simulate([TimedPiece(1.0)] * 4, [Resources(4.0, 1.0)]).seconds == 1.0
    with pytest.raises(ValueError, match="more than any node has"):
        simulate([gpu], [CORE])


def test_a_worker_is_started_once_and_does_piece_after_piece() -> None:
    pieces = [TimedPiece(1.0)] * 6
    assert simulate(pieces, [Resources(2.0)], worker=5.0).seconds == 5.0 + 3.0
    assert simulate(pieces, [Resources(1.0)] * 3, worker=5.0, start=1.0).seconds == 5.0 + 4.0
    chain = [TimedPiece(1.0), TimedPiece(1.0, [0])]  # never two at once
    assert simulate(chain, [Resources(2.0)], worker=5.0).seconds == 5.0 + 2.0
    lost = simulate([TimedPiece(1.0)] * 50, [Resources(1.0)], worker=5.0, between_failures=20.0)
    assert lost.lost > 0
    assert lost.seconds >= 50.0 + 2 * 5.0, "what replaces a node has no process yet"


def test_what_a_lost_node_did_is_done_again() -> None:
    calm = simulate([TimedPiece(1.0)] * 40, [CORE, CORE])
    found = simulate([TimedPiece(1.0)] * 40, [CORE, CORE], between_failures=5.0)
    assert found.lost > 0
    assert calm.work < found.work <= 40.0 + found.lost
    assert found.seconds >= found.work / 2
    assert found == simulate([TimedPiece(1.0)] * 40, [CORE, CORE], between_failures=5.0)


def test_failures_cost_what_theory_says() -> None:
    """A piece of length s under failures of rate r takes (exp(rs) - 1) / r on average."""
    times = [
        simulate([TimedPiece(1.0)], [CORE], between_failures=2.0, seed=s) for s in range(2_000)
    ]
    mean = sum(found.seconds for found in times) / len(times)
    assert mean == pytest.approx(2.0 * (2.718281828**0.5 - 1.0), abs=0.08)
