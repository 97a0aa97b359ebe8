"""``toptail.check`` in Python: functions, objects, arrays and environments as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.environments.plane import STEP, GoalPlane, records, small
from toptail.errors import InputError
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.page import check_html
from toptail.lab.check.result import CheckResult
from toptail.lab.check.run import check
from toptail.lab.environments.protocol import Copies
from toptail.lab.judges.exact import PointSteps
from toptail.lab.tasks.files import Dataset
from toptail.report.page import STATUS_COLOURS
from toptail.results import schema

TRAIN, VAL = records(60, 12, 0), records(60, 12, 1)
CONFIG = CheckConfig(**small(per_group=10, starts=15))


def towards(states: Any, actions: Any, goals: Any) -> Any:
    return -np.linalg.norm(states + STEP * actions - goals, axis=1)


class Critic:
    """An object with a method, as trained critics are."""

    step_reward = -1.0

    def score(self, states: Any, actions: Any, goals: Any) -> Any:
        return towards(states, actions, goals)


def checked(data: Any = (TRAIN, VAL), scorers: Any = None, **how: Any) -> CheckResult:
    usual: dict[str, Any] = {"env": GoalPlane, "pools": "uniform", "config": CONFIG}
    how = usual | how
    return check(data, {"mine": towards} if scorers is None else scorers, **how)


@pytest.fixture(scope="module")
def result() -> CheckResult:
    scorers = {"towards": towards, "object": Critic(), "away": lambda s, a, g: -towards(s, a, g)}
    return checked(scorers=scorers)


def test_functions_and_objects_are_checked(result: CheckResult) -> None:
    content = result.content
    assert (content["task"], content["environment"], content["goals"]) == (
        "data",
        "GoalPlane",
        True,
    )
    assert list(result.verdicts) == ["towards", "object", "away"]
    assert result.verdicts["away"].status == "unsafe"
    parts = {name: entry["parts"] for name, entry in content["scorers"].items()}
    assert parts["towards"] == parts["object"]
    assert content["record"]["scorers"]["towards"] == {"function": f"{__name__}.towards"}
    assert content["record"]["command"] == "toptail.check(...)"


def test_the_result_is_short_in_a_console_and_a_table_in_a_notebook(result: CheckResult) -> None:
    lines = repr(result).splitlines()
    assert lines[0] == "CheckResult: data, judge: rollouts"
    assert lines[3].startswith("unsafe        away: one step, best of up to 8 uniform candidates: ")
    assert len(lines) == 4
    html = result._repr_html_()
    assert html.count("<tr>") == 1 + 3 * 2
    assert html.count("<svg") == 3 * 2
    assert html.count(STATUS_COLOURS["unsafe"]) == sum(
        status == "unsafe" for v in result.verdicts.values() for status, _ in v.answers.values()
    )
    assert (
        "<td>away</td><td>followed at every step, best of up to 8 uniform candidates</td>" in html
    )
    answers = result.verdicts["away"].answers
    assert answers["one step, best of up to 8 uniform candidates"][0] == "unsafe"
    reason = answers["followed at every step, best of up to 8 uniform candidates"][1]
    assert reason.startswith("33 trajectories are too few")
    assert result.verdicts["away"].headline.startswith("away: one step")


def test_it_is_drawn_and_written(result: CheckResult, tmp_path: Path) -> None:
    figure = result.plot()
    assert isinstance(figure, Figure)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "uniform: one step",
        "uniform: followed at every step",
    ]
    for axes in figure.axes:
        assert len(axes.lines) == 3
    figure.draw_without_rendering()
    page = result.write(tmp_path / "out")
    assert page.is_file()
    assert (tmp_path / "out" / "uniform" / "table.parquet").is_file()


def test_a_map_says_where_a_critic_helps(result: CheckResult) -> None:
    figure = result.map()
    titles = [axes.get_title(loc="left") for axes in figure.axes][:3]
    assert titles == [f"{name}, uniform candidates" for name in ("towards", "object", "away")]
    (source,) = result.sources
    assert source.table is not None
    value = source.table.values["value"].reshape(len(result.queries), -1)
    for axes, name in zip(figure.axes, ("towards", "object", "away"), strict=False):
        score = source.table.scores[name].reshape(value.shape)
        top = [
            np.mean([v for v, s in zip(worth, each, strict=True) if s == max(each)])
            for worth, each in zip(value, score, strict=True)
        ]
        gain = np.asarray(axes.collections[0].get_array())
        np.testing.assert_allclose(gain, top - value.mean(axis=1))
    page = check_html(result.content, result._pictures())
    assert page.index("helps, and where it ruins") < page.index('class="about"')
    assert figure.axes[3].get_ylabel() == "gain over a random candidate"


def test_a_lone_map_has_its_curve_beside_it_and_a_maze_has_walls() -> None:
    result = checked(scorers={"away": lambda s, a, g: -towards(s, a, g)})
    drawn, beside, _ = result.map().axes
    assert drawn.get_title(loc="left") == "away, uniform candidates"
    assert beside.get_title(loc="left") == "One step, by K"
    assert len(beside.lines) == 1
    assert not list(drawn.images)
    maze = "pointmaze-medium-navigate-v0"
    walled = replace(result, content={**result.content, "task": maze}).map().axes[0]
    (walls,) = walled.images
    assert np.asarray(walls.get_array()).sum() == PointSteps.of(maze).maze.walls.sum()
    assert list(walls.get_extent()) == [-6.0, 26.0, -6.0, 26.0]


def test_outside_a_maze_the_page_opens_with_the_curves(result: CheckResult) -> None:
    wide = np.hstack([result.queries.states, result.queries.states])
    other = replace(result, queries=replace(result.queries, states=wide))
    assert not other.has_map
    (picture,) = other._pictures()
    page = check_html(other.content, [picture])
    assert page.index("Value by K") < page.index('class="about"')


def test_the_content_follows_its_schema(result: CheckResult) -> None:
    jsonschema.validate(result.content, schema("check"))
    without = checked(env=None, judge="none")
    jsonschema.validate(without.content, schema("check"))
    broken = {**result.content, "task": 7}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema("check"))


def test_its_numbers_are_tables_and_go_to_trackers(result: CheckResult) -> None:
    assert result.tables == ("verdicts", "curves", "groups")
    verdicts = result.table("verdicts").to_pylist()
    assert [(row["critic"], row["question"]) for row in verdicts][:2] == [
        ("towards", "one step"),
        ("towards", "followed at every step"),
    ]
    curves = result.table("curves").to_pylist()
    last = next(row for row in curves if row["critic"] == "away" and row["selector"] == "K = 8")
    assert last["measure"] == "captured share"
    assert last["value"] == pytest.approx(result.captured["away"]["uniform"])
    with pytest.raises(InputError, match="there are verdicts, curves, groups"):
        result.table("other")
    logged: list[Any] = []
    run = type("Run", (), {"log": lambda _, found, step: logged.append((found, step))})()
    result.log(run, step=3)
    ((found, step),) = logged
    assert step == 3
    assert found["toptail/away/status"] == -1.0
    assert found["toptail/away/uniform/one_step/captured"] == result.captured["away"]["uniform"]
    assert "toptail/away/uniform/closed_loop/K 8" in found
    assert "unsafe" in result.summary()


def numbers(result: CheckResult) -> list[Any]:
    """Scores, values and episodes of a check."""
    (source,) = result.sources
    assert source.table is not None
    followed = [part["closed_loop"]["worth"] for part in result.content["scorers"]["mine"]["parts"]]
    return [source.table.scores["mine"], source.table.values["value"], followed]


@pytest.mark.parametrize(
    "data",
    [
        Dataset(TRAIN, VAL, None),
        tuple({n: a.astype(float) for n, a in split.arrays().items()} for split in (TRAIN, VAL)),
    ],
    ids=["dataset", "arrays"],
)
def test_arrays_are_what_trajectories_are(data: Any) -> None:
    for one, other in zip(numbers(checked(data)), numbers(checked()), strict=True):
        assert np.all(np.asarray(one) == np.asarray(other))


@pytest.mark.parametrize(
    "env", [GoalPlane(), lambda: GoalPlane(), lambda size: Copies(GoalPlane, size)]
)
def test_an_environment_its_maker_and_a_maker_of_batches_are_the_same(env: Any) -> None:
    for one, other in zip(numbers(checked(env=env)), numbers(checked()), strict=True):
        assert np.all(np.asarray(one) == np.asarray(other))


def test_of_one_set_every_fifth_trajectory_is_for_validation() -> None:
    whole = records(60, 12, 0)
    result = checked(whole, config=CheckConfig(**small(per_group=3, starts=3, horizon=2)))
    val = whole.select(np.arange(4, 60, 5))
    assert {row.tobytes() for row in result.queries.states} <= {
        row.tobytes() for row in val.observations
    }
    with pytest.raises(InputError, match=r"has 4 trajectories: expected at least 5"):
        checked(whole.select(np.arange(4)))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"data": 7}, r"of the type int: expected a name, a path"),
        ({"data": (TRAIN,)}, r"1 parts: expected training and validation"),
        ({"data": {"observations": np.zeros((4, 2))}}, r"the arrays has no array 'actions'"),
        ({"scorers": {"mine": 7}}, r"'mine' is of the type int: expected a function"),
        ({"scorers": {"two words": towards}}, r"'two words' cannot name a critic"),
        ({"scorers": {"tdq": towards}}, r"'tdq' is the name of a critic"),
        ({"scorers": {}}, r"nothing to check"),
        ({"env": 7}, r"7 returned int|int returned int without a method 'restore'"),
    ],
)
def test_anything_else_is_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        checked(**how)
