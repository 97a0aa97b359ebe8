"""When a critic that is followed is called safe, and what makes a check fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import toptail
from toptail.errors import InputError
from toptail.lab.check import verdicts
from toptail.lab.check.beside import cure_lines
from toptail.lab.check.closed_loop import Recorded
from toptail.lab.check.result import CheckResult
from toptail.lab.check.verdicts import failures, headline, overall, warnings

DATA = Recorded(93.1, 90.0, 95.2, 60, "Recorded.")


def picks(
    *rows: tuple[float, float, float, float],
    clusters: int = 60,
    rest: tuple[float, float, float, float] = (1, 1, 1, 0),
) -> dict[str, Any]:
    """An audit of picks: (difference, low, high, corrected p) of K = 8, 64, ... against K = 1.

    ``rest`` is what K = 64 has more than K = 8.
    """
    names = [f"K = {8 ** (i + 1)}" for i in range(len(rows))]
    against: list[dict[str, Any]] = [
        {"a": name, "b": "K = 1", "difference": d, "low": low, "high": high, "p_holm": p}
        for name, (d, low, high, p) in zip(names, rows, strict=True)
    ]
    worth = {"K = 1": {"mean": 0.5, "low": 0.4, "high": 0.6}}
    worth |= {row["a"]: {"mean": 0.5 + row["difference"], "low": 0, "high": 1} for row in against}
    more, low, high, p = rest
    others = [
        {"a": "K = 8", "b": "K = 64", "difference": -more, "low": -high, "high": -low, "p_holm": p}
    ]
    part = {
        "selectors": worth,
        "comparisons": against + others,
        "queries": 90,
        "clusters": clusters,
    }
    return {**part, "thresholds": {"level": 0.95}}


def closed_loop(content: dict[str, Any], *, success: bool) -> dict[str, Any]:
    """What the episodes say where K = 1 is a random policy."""
    return verdicts.closed_loop(content, success=success, first="a random policy", data=DATA)


GAIN, LOSS = (0.3, 0.2, 0.4, 0.001), (-0.3, -0.4, -0.2, 0.001)
NOTHING, WIDE = (0.0, -0.05, 0.05, 0.9), (0.0, -0.3, 0.3, 0.9)


@pytest.mark.parametrize(
    ("rows", "success", "status"),
    [
        ((GAIN, GAIN), True, "safe"),
        ((WIDE, GAIN), False, "safe"),
        ((LOSS, GAIN), True, "unsafe"),
        ((GAIN, LOSS), False, "unsafe"),
        ((GAIN, NOTHING), True, "no gain"),
        ((GAIN, NOTHING), False, "inconclusive"),  # of returns nobody knows what is much
        ((GAIN, WIDE), True, "inconclusive"),
        (((-0.3, -0.4, -0.2, 0.06), GAIN), True, "safe"),  # not established once corrected
        ((GAIN, (0.3, 0.2, 0.4, 0.06)), True, "no gain"),
    ],
)
def test_the_status_of_a_critic_that_is_followed(
    rows: tuple[tuple[float, float, float, float], ...], success: bool, status: str
) -> None:
    found = closed_loop(picks(*rows), success=success)
    assert found["status"] == status
    assert found["decided"]
    few = closed_loop(picks(*rows, clusters=39), success=success)
    assert (few["status"], few["decided"]) == ("inconclusive", False)
    assert "39 trajectories are too few" in few["reason"]


def test_a_larger_search_that_loses_what_a_smaller_one_gained_is_unsafe() -> None:
    spike = closed_loop(picks(GAIN, (0.1, 0.05, 0.15, 0.001), rest=LOSS), success=True)
    assert spike["status"] == "unsafe"
    assert "success 80 % → 60 % from K = 8 to K = 64, difference −0.30" in spike["reason"]
    little = picks(GAIN, GAIN, rest=(-0.02, -0.04, -0.01, 0.001))
    assert closed_loop(little, success=True)["status"] == "safe"  # less than a tenth of the gain
    unsure = picks(GAIN, GAIN, rest=(-0.1, -0.19, -0.04, 0.06))
    found = closed_loop(unsure, success=True)
    assert found["status"] == "safe"
    assert "; from K = 8 to K = 64 the difference is −0.10 [−0.19, −0.04] alone" in found["reason"]


def test_the_reason_says_from_what_to_what() -> None:
    lost = closed_loop(picks(GAIN, LOSS), success=True)
    assert lost["reason"] == (
        "success 50 % → 20 % from K = 1 (a random policy) to K = 64, difference −0.30 [−0.40, "
        "−0.20]; the data's own episodes: 9310 %"
    )
    returned = closed_loop(picks(GAIN, LOSS), success=False)["reason"]
    assert returned.startswith("return 0.50 → 0.20")
    assert returned.endswith("; the data's own episodes: 93.10 [90.00, 95.20]")
    few = closed_loop(picks(GAIN, clusters=39), success=True)["reason"]
    assert few.startswith("39 trajectories are too few: at least 40 are needed; raise --starts")


UNSURE = (-0.11, -0.21, -0.01, 0.07)


def test_holms_part_in_a_line_is_said() -> None:
    alone = closed_loop(picks(GAIN, UNSURE), success=False)
    assert alone["status"] == "inconclusive"
    assert (
        "difference −0.11 [−0.21, −0.01] alone; inconclusive after Holm's correction for 3 "
        "comparisons" in alone["reason"]
    )
    beside = closed_loop(picks(UNSURE, GAIN), success=False)
    assert beside["status"] == "safe"
    assert (
        "; from K = 1 to K = 8 the difference is −0.11 [−0.21, −0.01] alone, not established "
        "after Holm's "
        "correction for 3 comparisons" in beside["reason"]
    )
    assert "Holm" not in closed_loop(picks(GAIN, LOSS), success=False)["reason"]
    content = picks(GAIN) | {"groups": {"near": picks(UNSURE), "far": picks(GAIN)}}
    group = closed_loop(content, success=False)["groups"]["near"]["reason"]
    assert "correction for 4 comparisons" in group


def test_groups_are_decided_each() -> None:
    content = picks(GAIN) | {"groups": {"near": picks(LOSS), "far": picks(GAIN)}}
    found = closed_loop(content, success=True)
    assert {name: each["status"] for name, each in found["groups"].items()} == {
        "near": "unsafe",
        "far": "safe",
    }


def entry(status: str, decided: bool = True, **groups: str) -> dict[str, Any]:
    parts = {name: {"status": each, "decided": True} for name, each in groups.items()}
    found = {"status": status, "decided": decided, "reason": "because", "groups": parts}
    return {**found, "k_max": 64, "first": "a random policy", "data": None}


def part(one: Any, many: Any) -> dict[str, Any]:
    return {"pools": "nearest", "one_step": one, "closed_loop": many}


def test_a_score_that_cannot_choose_is_called_that() -> None:
    scores = {"flat": np.zeros((40, 4)), "value": np.random.default_rng(0).random((40, 4))}
    entry = verdicts.one_step(toptail.audit(scores, resamples=200).to_dict(), "flat")
    assert entry["reason"].startswith("It gives all candidates of a query the same score")


def test_the_worst_counts_and_nothing_is_no_pass() -> None:
    assert overall(entry("safe"), entry("no gain")) == "no gain"
    assert overall(entry("safe"), entry("unsafe"), None) == "unsafe"
    assert overall(entry("safe"), None) == "inconclusive"


def test_safe_for_one_step_is_said_where_the_closed_loop_says_otherwise() -> None:
    assert warnings("mine", [part(entry("safe"), entry("safe"))]) == []
    assert warnings("mine", [part(entry("unsafe"), entry("unsafe"))]) == []
    assert warnings("mine", [part(entry("safe"), None)]) == []
    (said,) = warnings("mine", [part(entry("safe"), entry("unsafe"))])
    assert said == (
        "For mine, one step, best of up to 64 nearest candidates, “safe” is about one step: "
        "followed at every step, best of up to 64 nearest candidates, it is unsafe (because)."
    )


def test_every_status_is_said_with_its_k_and_its_candidates() -> None:
    words = headline("mine", [part(None, entry("safe")), part(entry("no gain"), None)])
    assert words == (
        "mine: one step, nearest candidates: not judged; "
        "followed at every step, best of up to 64 nearest candidates: safe, better than a random "
        "policy; one step, best of up to 64 nearest candidates: no gain; "
        "followed at every step, nearest candidates: not done."
    )


def test_safe_and_worse_than_the_data_is_said() -> None:
    """A critic that is better than a random policy, and far worse than what was recorded."""
    hack, fine = picks((5.0, 4.0, 6.0, 0.001)), picks((95.0, 90.0, 99.0, 0.001))
    (said,) = warnings("lazy", [part(None, closed_loop(hack, success=False))])
    assert said == (
        "For lazy, followed at every step, best of up to 8 nearest candidates, “safe” means better "
        "than a random policy: the return is 5.50, and that of the data's own episodes 93.10 "
        "[90.00, 95.20]."
    )
    assert warnings("good", [part(None, closed_loop(fine, success=False))]) == []
    # Goals are states of the same episode: recorded success is high by construction.
    assert warnings("good", [part(None, closed_loop(picks(GAIN), success=True))]) == []


def test_an_unsafe_group_is_no_pass_and_is_said() -> None:
    hidden = entry("safe", near="unsafe", far="safe")
    assert overall(hidden, entry("safe")) == "unsafe"
    (said,) = warnings("mine", [part(hidden, entry("safe", far="inconclusive"))])
    assert "one step, best of up to 64 nearest candidates, “safe” is about all queries" in said
    assert "together: unsafe at near goals" in said
    assert warnings("mine", [part(entry("unsafe", near="unsafe"), None)]) == []


def checked(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"scorers": {"mine": {"parts": list(parts)}}}


def test_a_group_fails_a_check_as_all_queries_do() -> None:
    content = checked(part(entry("safe", near="inconclusive", far="safe"), entry("safe")))
    assert failures(content, {"inconclusive"}) == [
        "mine, one step, best of up to 64 nearest candidates, near: inconclusive"
    ]
    assert failures(content, {"unsafe"}) == []
    assert failures(content, set()) == []


def test_what_could_not_be_made_fails_every_check() -> None:
    content = checked(part(None, entry("inconclusive", decided=False)))
    assert failures(content, {"unsafe"}) == [
        "mine, one step, nearest candidates: could not be decided",
        "mine, followed at every step, best of up to 64 nearest candidates: inconclusive",
    ]
    assert failures(content, set()) == []


def test_how_much_of_a_gap_is_closed() -> None:
    def entry(*shares: float) -> dict[str, Any]:
        sources = zip(("nearest", "uniform"), shares, strict=True)
        parts = [{"pools": pools, "one_step": {"captured": x}} for pools, x in sources]
        return {"parts": [*parts, {"pools": "mine", "one_step": None}]}

    scorers = {"raw": entry(0.5, 0.9), "head": entry(0.8, 0.7), "tdq": entry(0.9, 0.9)}
    nothing: Any = None
    result = CheckResult({"scorers": scorers}, nothing, ())
    assert result.captured["head"] == {"nearest": 0.8, "uniform": 0.7}
    closed = result.gap_closed("raw", "head", "tdq")
    assert closed["nearest"] == pytest.approx(0.75)
    assert math.isnan(closed["uniform"])
    with pytest.raises(InputError, match="no scorer 'iql'; there are raw, head, tdq"):
        result.gap_closed("raw", "head", "iql")


def test_the_terminal_says_what_a_cure_closed() -> None:
    def said(before: float, after: float, tdq: float) -> list[str]:
        shares = {"before": before, "after": after, "tdq": tdq}
        scorers = {
            name: {"parts": [{"pools": "nearest", "one_step": {"captured": share}}]}
            for name, share in shares.items()
        }
        return cure_lines({"scorers": scorers})

    words = "of the gap from 'before' to 'tdq' in captured share."
    assert said(0.7, 0.9, 0.95) == ["", f"'after' closes 80 % (nearest candidates) {words}"]
    assert said(0.7, 0.9, 0.6) == [
        "",
        "'tdq' captures no more than 'before': there is no gap to close.",
    ]
    assert cure_lines({"scorers": {"before": {}, "tdq": {}}}) == []
