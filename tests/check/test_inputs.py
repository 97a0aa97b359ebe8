"""What a user gives a check: functions, files, environments and data, taken as they are meant."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments.plane import small
from tests.foreign.fixtures import checkpoint
from tests.tasks.conftest import DATA
from toptail.errors import InputError
from toptail.io.json_files import write_json
from toptail.lab.check.inputs import CheckConfig, check_scorers, task_dataset
from toptail.lab.check.page import check_html, check_lines
from toptail.lab.check.run import check
from toptail.lab.scorers.user import as_score, foreign_scorers
from toptail.lab.tasks.files import TaskDataset, load_file, record_path, save_file

POINT = "pointmaze-medium-navigate-v0"
STATES, ACTIONS, GOALS = (np.full((3, 2), x, np.float32) for x in (1, 10, 100))


def asked(plane: Path, text: str, **how: Any) -> dict[str, Any]:
    """Arguments of a tiny check with a file of its own beside the plane's."""
    file = plane.parent / f"own{len(list(plane.parent.iterdir()))}.py"
    file.write_text((plane.parent / "mine.py").read_text() + text)
    sizes = small(per_group=3, starts=3, horizon=2, pool_size=4, resamples=100)
    env = f"{file}:{how.pop('env')}" if "env" in how else None
    scorer = f"{file}:{how.pop('scorer', 'inward')}"
    basic = {"data": plane, "scorers": scorer, "pools": "uniform", "env": env}
    return {**basic, "config": CheckConfig(**sizes), **how}


class Settled:
    """A function with another wrapped around it, which takes arguments by their order alone."""

    def __init__(self, function: Any) -> None:
        self.__wrapped__ = function

    def __call__(self, *rows: Any) -> Any:
        return self.__wrapped__(*rows)


def by_names(states: Any, goals: Any, actions: Any) -> Any:
    return (states + 2 * actions + 3 * goals).sum(axis=1)


def short(g: Any, a: Any, s: Any) -> Any:
    return by_names(s, g, a)


def keywords(*, observations: Any, goal: Any, action: Any) -> Any:
    return by_names(observations, goal, action)


def mixed(x: Any, goals: Any, u: Any) -> Any:
    return by_names(x, goals, u)


def by_order(x: Any, u: Any, w: Any) -> Any:
    return by_names(x, w, u)


def twice(s: Any, state: Any, g: Any) -> Any:
    return by_names(s, g, state)


def default(x: Any, u: Any, goals: Any = None, scale: float = 1.0) -> Any:
    return scale * by_names(x, goals, u)


def starred(*rows: Any) -> Any:
    return by_order(*rows)


def gravity(states: Any, actions: Any, g: float = 9.81) -> Any:
    return g * (states + 2 * actions).sum(axis=1)


def bound(states: Any, actions: Any, goals: Any) -> Any:
    return (states + 2 * actions).sum(axis=1) + goals


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        *((by_names, 642), (short, 642), (keywords, 642), (mixed, 642), (by_order, 642)),
        *((twice, 642), (default, 642), (starred, 642), (Settled(by_names), 642)),
        *((gravity, 42 * 9.81), (partial(bound, goals=7.0), 49)),
    ],
)
def test_names_of_arguments_are_honoured_and_the_others_come_in_order(
    function: Any, wanted: float
) -> None:
    found = as_score(function, "mine.py:f")(STATES, ACTIONS, GOALS)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


class Wise:
    """An object with a method, as trained critics are."""

    def score(self, states: Any, actions: Any, goals: Any) -> Any:
        return by_names(states, goals, actions)


class Layers(Wise, list[int]):
    """A network whose layers can be gone through."""


@pytest.mark.parametrize(
    ("scorers", "names"),
    [
        *((by_names, ["by_names"]), ([by_names, short], ["by_names", "short"])),
        *((Wise(), ["Wise"]), (Layers([1, 2]), ["Layers"]), (Wise().score, ["score"])),
        *((lambda s, a, g: by_names(s, g, a), ["lambda"]), ({"mine": by_names}, ["mine"])),
        (partial(bound, goals=7.0), ["partial"]),
    ],
)
def test_what_has_no_name_is_called_as_in_its_code(scorers: Any, names: list[str]) -> None:
    found = check_scorers(scorers, task_dataset(str(DATA / f"{POINT}.npz")))
    assert [scorer.column for scorer in found] == names


def test_other_things_are_no_scorers() -> None:
    task = task_dataset(str(DATA / f"{POINT}.npz"))
    with pytest.raises(InputError, match="'int' is of the type int: expected a function"):
        check_scorers(7, task)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Two scorers are called 'by_names'"):
        check_scorers([by_names, by_names], task)


def test_a_critic_of_ogbenchs_order_is_scored_as_it_is_named(plane: Path) -> None:
    text = "def ogbench(states, goals, actions):\n    return towards(states, actions, goals)\n"
    how = {"env": "GoalPlane"}
    one = check(**asked(plane, "", scorer="towards", **how)).sources[0].pools
    other = check(**asked(plane, text, scorer="ogbench", **how)).sources[0].pools
    (a,) = (x for name, x in one.items() if name.startswith("scores/"))
    (b,) = (x for name, x in other.items() if name.startswith("scores/"))
    np.testing.assert_array_equal(a, b)


def test_a_task_taken_as_goal_free_says_so(plane: Path) -> None:
    request = asked(plane, "", env="Plane", scorer="towards")
    with pytest.raises(InputError, match=r"taken as goal-free.*no method reached\(goal\)"):
        check(**request)
    content = check(**asked(plane, "", env="Plane")).content
    for text in ("\n".join(check_lines(content)), check_html(content)):
        assert "has no method reached(goal), so the task is taken as goal-free" in text


DICTIONARY = """
class Dictionary(Plane):
    def restore(self, row):
        return {"observation": super().restore(row), "desired_goal": np.zeros(2)}

class Batched(Planes):
    def observations(self):
        return {"observation": self.at}

def dictionaries(size):
    return Batched(size)
"""


@pytest.mark.parametrize("env", ["Dictionary", "dictionaries"])
def test_observations_that_are_no_vectors_are_refused(plane: Path, env: str) -> None:
    with pytest.raises(InputError, match=r"observes a dict.*expected .*numbers.*not supported"):
        check(**asked(plane, DICTIONARY, env=env))


def test_a_file_of_critic_and_environment_runs_once_and_again_when_it_changes(
    plane: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    text = f"\nwith open({str(log)!r}, 'a') as file:\n    file.write('x')\n"
    request = asked(plane, text, env="Plane")
    check(**request)
    assert log.read_text() == "x"
    file = Path(request["scorers"].rpartition(":")[0])
    file.write_text(file.read_text() + "\ndef inward(states, actions):\n    return actions[:, 0]\n")
    changed = check(**request)
    assert log.read_text() == "xx"
    pools = changed.sources[0].pools
    np.testing.assert_array_equal(pools[f"scores/{file.stem}"], pools["actions"][..., 0])


GYMNASIUM = """
import gymnasium
import numpy as np

with open("log", "a") as file:
    file.write("x")

class Corridor(gymnasium.Env):
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (2,))
    def reset(self, *, seed=None, options=None):
        self.at = np.zeros(2) if options is None else options["state"]
        return self.at, {}
    def step(self, action):
        self.at = self.at + 0.1 * action
        return self.at, 0.0, False, False, {}

gymnasium.register("Corridor-v0", Corridor)

def inward(states, actions):
    return -np.linalg.norm(states + 0.1 * actions, axis=1)
"""


def test_a_file_that_gymnasium_imports_runs_once(
    plane: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "corridor_of_this_test", None)
    del sys.modules["corridor_of_this_test"]  # and again when the test is over
    Path("corridor_of_this_test.py").write_text(GYMNASIUM)
    files = {
        "env": "gymnasium:corridor_of_this_test:Corridor-v0",
        "scorers": "corridor_of_this_test.py:inward",
    }
    check(**asked(plane, "") | files)
    assert Path("log").read_text() == "x"


def test_a_folder_in_the_place_of_a_checkpoint_names_those_in_it(tmp_path: Path) -> None:
    home = tmp_path / "exp" / "sd000"
    home.mkdir(parents=True)
    with pytest.raises(InputError, match=r"exp is a folder.*no params_\*\.pkl"):
        foreign_scorers(None, f"ogbench:{tmp_path / 'exp'}")
    for step in (20, 40):
        shutil.copy(checkpoint("crl"), home / f"params_{step}.pkl")
    with pytest.raises(InputError, match=r"expected a checkpoint.*sd000/params_20\.pkl, .*40\.pkl"):
        foreign_scorers(None, f"ogbench:{tmp_path / 'exp'}")


def test_a_data_set_is_known_by_the_record_beside_it(tmp_path: Path) -> None:
    for split in ("", "-val"):
        data = load_file(DATA / f"{POINT}{split}.npz")
        path = tmp_path / f"pm{split}.npz"
        save_file(path, data)
        write_json(record_path(path), {"name": POINT, "content_sha256": data.sha256})
    task = TaskDataset.load(str(tmp_path / "pm.npz"))
    assert task.name == POINT
    assert task.data.task is not None
    (tmp_path / "q.py").write_text("def q(s, a, g):\n    return (a * (g - s)).sum(axis=1)\n")
    config = CheckConfig(**small(per_group=2, starts=1, horizon=2, pool_size=2, resamples=100))
    content = check(tmp_path / "pm.npz", f"{tmp_path / 'q.py'}:q", config=config).content
    assert (content["judge"]["name"], content["not_done"]) == ("exact", [])
    reason = content["scorers"]["q"]["parts"][0]["closed_loop"]["reason"]
    assert "at least 40 are needed; raise --starts" in reason
    # A record of another data set does not stand in the way of a new file.
    other = load_file(DATA / "cube-single-play-v0.npz")
    save_file(tmp_path / "pm.npz", other)
