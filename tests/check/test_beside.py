"""A critic of PointMaze beside the critics that this project measured there."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.asked import asked
from tests.check.conftest import checked
from tests.environments.plane import small
from tests.tasks.conftest import DATA
from toptail.commands.check import CheckCommand
from toptail.errors import Exit, InputError
from toptail.io.json_files import read_json
from toptail.lab.check.beside import ZOO
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.page import check_html, check_lines
from toptail.lab.check.result import CheckResult
from toptail.lab.check.run import check
from toptail.report.text import MISSING, with_interval
from toptail.results import schema

POINT = DATA / "pointmaze-medium-navigate-v0.npz"
SIZES = small(per_group=2, pool_size=64, near=100, starts=1, horizon=2, follow_k=(1, 64))
KNOWN = read_json(ZOO)
CRITICS = KNOWN["critics"]


def straight(states: Any, actions: Any, goals: Any) -> Any:
    return (actions * (goals - states)).sum(axis=1)


def back(states: Any, actions: Any, goals: Any) -> Any:
    return -straight(states, actions, goals)


@pytest.fixture(scope="module")
def result() -> CheckResult:
    pools = ("uniform", "nearest", "ascent")
    scorers = {"mine@1": straight, "mine@2": straight, "back": back}
    return check(POINT, scorers, pools=pools, config=CheckConfig(**SIZES))


def changed(result: CheckResult, **parts: Any) -> CheckResult:
    """The same check with other content: fields of ``settings``, or of the whole."""
    content = dict(result.content)
    for name, value in parts.items():
        if name in content["settings"]:
            content["settings"] = content["settings"] | {name: value}
        else:
            content[name] = value
    return replace(result, content=content)


def ends(entry: dict[str, Any]) -> bool:
    return bool(entry["low"] <= entry["mean"] <= entry["high"])


def test_the_file_has_its_format_and_is_small() -> None:
    assert ZOO.stat().st_size <= 200_000
    assert (KNOWN["format"], KNOWN["judge"], KNOWN["k"]) == ("toptail-zoo-1", "exact", 64)
    assert KNOWN["task"] == POINT.stem
    assert set(KNOWN) == {"format", "task", "judge", "queries", "k", "commit", "critics"}
    assert KNOWN["queries"] > 0
    assert KNOWN["commit"]
    row = {**schema("check"), "$ref": "#/$defs/beside"}
    for name, entry in CRITICS.items():
        jsonschema.validate({"name": name, "yours": False, **entry}, row)
        assert set(entry["captured"]) == {"nearest", "uniform"}
        assert set(entry["followed"]) <= {"nearest", "uniform"}
        assert all(map(ends, [*entry["captured"].values(), *entry["followed"].values()]))


def test_the_check_s_critics_stand_among_the_others(result: CheckResult) -> None:
    rows = result.beside()
    others = {row["name"]: row for row in rows if not row["yours"]}
    assert others == {n: {"name": n, "yours": False, **entry} for n, entry in CRITICS.items()}
    own = {row["name"]: row for row in rows if row["yours"]}
    assert (own["mine"]["seeds"], own["back"]["seeds"]) == (2, 1)
    for name, row in own.items():
        assert row["title"] == name
        parts = {part["pools"]: part for part in result.content["scorers"][name]["parts"]}
        for source, share in result.captured[name].items():
            one = parts[source]["one_step"]
            assert row["captured"][source] == {
                "mean": share,
                "low": one["captured_low"],
                "high": one["captured_high"],
                "status": one["status"],
            }
        assert set(row["captured"]) == {"uniform", "nearest"}
        assert row["ascent"] == parts["ascent"]["one_step"]["status"]
        assert row["trained_by"] is row["auc"] is row["train_seconds"] is None


def test_rows_are_sorted_by_the_first_source_of_the_check(result: CheckResult) -> None:
    for order in (("uniform", "nearest"), ("nearest", "uniform")):
        says = {source: result.content["candidates"][source] for source in order}
        shares = [
            row["captured"][order[0]]["mean"] for row in changed(result, candidates=says).beside()
        ]
        assert shares == sorted(shares, reverse=True)
        assert len(shares) == len(CRITICS) + 2


def test_a_critic_without_headroom_comes_last(result: CheckResult) -> None:
    scorers = dict(result.content["scorers"])
    (first, *others) = scorers["mine"]["parts"]
    unknown = {**first["one_step"], "captured": None, "captured_low": None, "captured_high": None}
    scorers["mine"] = {**scorers["mine"], "parts": [{**first, "one_step": unknown}, *others]}
    other = changed(result, scorers=scorers)
    rows = other.beside()
    assert rows[-1]["name"] == "mine"
    (line,) = (x for x in check_lines({**other.content, "beside": rows}) if x.startswith("> mine"))
    assert f"uniform {MISSING} " in line


def test_episodes_count_where_they_were_walked_alike(result: CheckResult) -> None:
    def followed(other: CheckResult) -> dict[str, Any]:
        (row,) = (row for row in other.beside() if row["name"] == "mine")
        found: dict[str, Any] = row["followed"]
        return found

    parts = {part["pools"]: part for part in result.content["scorers"]["mine"]["parts"]}
    usual = changed(result, horizon=CheckConfig.horizon)
    assert followed(usual) == {
        source: parts[source]["closed_loop"]["worth"]["K = 64"] for source in ("uniform", "nearest")
    }
    assert followed(result) == {}  # two steps are too few to arrive
    assert followed(changed(usual, environment="mine.py:make")) == {}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"task": "antmaze-medium-navigate-v0"}, "measured on pointmaze-.* is of antmaze-medium"),
        ({"judge": {"name": "rollouts", "says": ""}}, "judged by the judge 'exact' .*'rollouts'"),
        ({"gamma": 0.9}, r"discount of 0\.99, .* with 0\.9: give judge='exact' and gamma=0\.99"),
        ({"pool_size": 16}, "among 64 candidates, nearest or uniform, and this check has 16 "),
        ({"candidates": {"ascent": ""}}, r"has 64 \(ascent\): give pools=\('nearest', 'uniform'\)"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    result: CheckResult, parts: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        changed(result, **parts).beside()


def test_another_task_is_refused(plane: Path) -> None:
    other = checked(plane, "inward", env="ActingPlane", pools="uniform", sizes={"per_group": 2})
    with pytest.raises(InputError, match="and this check is of plane: compare a critic of that"):
        other.beside()


def test_nothing_is_said_of_others_unless_that_was_asked_for(result: CheckResult) -> None:
    assert "beside" not in result.content
    assert "Beside other critics" not in result.summary() + check_html(result.content)


def command(tmp_path: Path, **flags: Any) -> CheckCommand:
    (tmp_path / "mine.py").write_text("def score(s, a, g):\n    return (a * (g - s)).sum(axis=1)\n")
    sizes = {**SIZES, "follow_k": "1,64", "out": tmp_path / "out", "beside": "zoo"}
    scorer = f"my-critic={tmp_path / 'mine.py'}:score"
    return asked(CheckCommand, **(sizes | {"task": POINT, "scorer": scorer} | flags))


def test_the_command_prints_the_table_and_stores_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path).run() == Exit.FINE
    said = capsys.readouterr().out.splitlines()
    content = read_json(tmp_path / "out" / "check.json")
    jsonschema.validate(content, schema("check"))
    rows = content["beside"]
    start = said.index("Beside other critics, share of the headroom that best of 64 gets:") + 1
    table = said[start : start + len(rows)]
    assert said[start + len(rows)] == ""
    for line, row in zip(table, rows, strict=True):
        assert line.startswith(f"{'>' if row['yours'] else ' '} {row['title']} ")
        for source in ("nearest", "uniform"):
            found = row["captured"][source]
            words = with_interval(found["mean"], found["low"], found["high"])
            assert re.search(rf"{source} {re.escape(words)} +{found['status']}( |$)", line)
    (mine,) = (line for line in table if line.startswith(">"))
    assert "my-critic" in mine
    assert max(i for i, line in enumerate(said) if "my-critic, followed" in line) < start
    page = unescape((tmp_path / "out" / "report.html").read_text()).replace("<wbr>", "")
    text = page[page.index("Beside other critics") :]
    assert "were trained and checked by this project: pointmaze-medium-navigate-v0" in text
    assert KNOWN["commit"] in text
    heads = [re.sub("<.*?>", "", head) for head in re.findall('<th scope="row".*?</th>', text)]
    for head, row in zip(heads, rows, strict=True):
        known = "yours" if row["yours"] else row["trained_by"] or ""
        assert re.fullmatch(rf"{re.escape(row['title'])} {known}(, )?{row['seeds']} seeds?", head)
    assert "my-critic yours, 1 seed" in heads


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"task": DATA / "antmaze-medium-navigate-v0.npz"}, "this check is of antmaze-medium-nav"),
        ({"judge": "rollouts"}, "this check is by 'rollouts'"),
        ({"gamma": 0.5}, "give --judge exact and --gamma 0.99"),
        ({"pool_size": 8}, "give --pools nearest,uniform and --pool-size 64"),
        ({"pools": "ascent"}, "this check has 64 (ascent)"),
    ],
)
def test_the_command_refuses_before_it_reads_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr("toptail.lab.check.run.check", lambda *_, **__: pytest.fail("computed"))
    with pytest.raises(InputError) as error:
        command(tmp_path, **flags).run()
    assert said in error.value.for_command()
    assert not (tmp_path / "out").exists()


def test_goals_that_are_left_out_are_refused_before_anything_is_judged(tmp_path: Path) -> None:
    (tmp_path / "env.py").write_text(
        "class Env:\n"
        "    def restore(self, row):\n        self.at = row.observation\n        return self.at\n"
        "    def step(self, action):\n        return self.at, 0.0, False\n"
    )
    with pytest.raises(InputError, match="known of PointMaze without teleports"):
        command(tmp_path, env=f"{tmp_path / 'env.py'}:Env").run()
