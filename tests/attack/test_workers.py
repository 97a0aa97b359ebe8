"""Workers share the attacks: each is made once, none is lost, and every part gets some of them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.attack.forks import ROOT
from tests.attack.state import PARTS, State
from tests.attack.turns import Turns, alone
from tests.attack.workers import route, taken, work


class TestTurns:
    def test_an_attack_is_begun_by_one_worker(self, tmp_path: Path) -> None:
        Turns.open(tmp_path / "taken", 4)
        one, other = Turns(tmp_path / "taken"), Turns(tmp_path / "taken")
        begun = [turns.first("audit", [1, 2, 3]) for turns in (one, other, one, other)]
        assert begun == [1, 2, 3, None]
        assert not other.over
        assert other.first("report", [1]) == 1
        assert one.first("report", [2]) is None
        assert one.over

    def test_what_is_large_takes_more_of_the_budget(self, tmp_path: Path) -> None:
        Turns.open(tmp_path / "taken", 3)
        turns = Turns(tmp_path / "taken")
        assert [turns.first("files", [n], size=2) for n in range(3)] == [0, 1, None]
        assert turns.begun("files") == 2
        assert turns.begun("file") == 0

    def test_nothing_is_begun_when_time_is_up(self, tmp_path: Path) -> None:
        Turns.open(tmp_path / "taken", 1)
        turns = Turns(tmp_path / "taken", seconds=-1)
        assert turns.over
        assert turns.first("audit", [1]) is None
        assert turns.begun("audit") == 0

    def test_cases_are_divided_and_then_all_are_helped_with(self, tmp_path: Path) -> None:
        shares = [Turns(tmp_path / "taken", share=(at, 3)).split("abcdefg") for at in range(3)]
        assert sorted(case for mine, _ in shares for case in mine) == list("abcdefg")
        assert all(sorted([*mine, *others]) == list("abcdefg") for mine, others in shares)


def test_one_attack_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(SystemExit, match="Another attack"), alone(tmp_path):
        pass
    with alone(tmp_path):
        pass


class TestRoutes:
    def test_every_worker_makes_every_part(self) -> None:
        for workers in (1, 2, 5, 12, 40):
            for worker in range(workers):
                made = [part for part, _ in route(worker, workers, PARTS)]
                assert sorted(made) == sorted(PARTS)

    def test_they_begin_with_different_parts_and_shares(self) -> None:
        parts = ("crash", "fuzz", "cli", "faults")
        first = [route(worker, 12, parts)[0] for worker in range(12)]
        assert Counter(part for part, _ in first) == {"crash": 5, "fuzz": 2, "cli": 2, "faults": 3}
        assert len(set(first)) == 12
        assert {share for part, share in first if part == "faults"} == {(0, 3), (1, 3), (2, 3)}


class TestStates:
    def test_workers_write_files_of_their_own_that_add_up(self, tmp_path: Path) -> None:
        states = [State(tmp_path, "crash", worker) for worker in range(3)]
        for worker, state in enumerate(states):
            state.add("audit", worker, "kills", "same")
            state.note("audit", 52)
            state.save()
        whole = State(tmp_path, "crash")
        assert whole.whole.counts == {"kills": 3, "same": 3}
        assert list(whole.left("audit", range(5))) == [3, 4]
        assert whole.whole.facts == {"audit": 52}
        whole.save()
        assert State(tmp_path, "crash").made == 3  # what others made is not written twice


def test_two_workers_share_the_attacks(tmp_path: Path) -> None:
    """Whatever each of them made, together they made what was asked for; another goes on there."""
    line = [sys.executable, "-m", "tests.attack", "server", "--workers", "2", "--budget", "4"]
    ended = subprocess.run([*line, "--state", str(tmp_path)], cwd=ROOT, capture_output=True)
    assert ended.returncode == 0, ended.stderr.decode()
    assert State(tmp_path, "server").done("behaviours") == {0, 1}
    Turns.open(taken(tmp_path, "server"), 2)
    assert work(tmp_path, "server", seconds=None).made == 6
    assert State(tmp_path, "server").done("behaviours") == {0, 1, 2}
