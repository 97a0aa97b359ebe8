"""Surroundings that a machine does not allow are no findings."""

from __future__ import annotations

from tests.attack.faults import SURROUNDINGS, Odd


def test_surroundings_are_left_out_where_a_machine_does_not_allow_them() -> None:
    assert not Odd((0,), needs="no-such-command -x").possible
    assert all(odd.possible for odd in SURROUNDINGS.values() if odd.needs == Odd.needs)
