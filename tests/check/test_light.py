"""A check needs JAX only for what was trained with JAX, and few of the library's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paper.tests.selection.conftest import write_audit
from tests.asked import asked
from tests.environments.plane import small
from tests.light import run_light
from tests.tasks.conftest import DATA
from toptail.commands.check import CheckCommand
from toptail.commands.requirements import need_training
from toptail.errors import Exit, InputError
from toptail.results import result

TRAINING = ("jax", "jaxlib", "flax", "optax", "safetensors")
TASK = str(DATA / "pointmaze-medium-navigate-v0.npz")
SIZES = small(per_group=3, pool_size=3, starts=2, horizon=2, follow_k=(1, 2), resamples=100)

CHECKED = """
import json, sys
from toptail.lab.check.config import CheckConfig
from toptail.lab.check.run import check
sizes = json.loads(sys.argv[2])
config = CheckConfig(**sizes | {"follow_k": tuple(sizes["follow_k"])})
def mine(states, actions, goals):
    return (actions * (goals - states)).sum(axis=1)
for judge, pools in (("exact", ("nearest", "ascent")), ("rollouts", "uniform")):
    result = check(sys.argv[1], {"mine": mine}, judge=judge, pools=pools, config=config)
    print(judge, result.content["judge"]["name"], result.content["not_done"], list(result.verdicts))
print([name for name in MISSING if name in sys.modules])
"""


def test_a_function_of_numpy_is_checked_without_jax() -> None:
    said = run_light(CHECKED, TASK, json.dumps(SIZES), missing=TRAINING)
    assert said.splitlines() == ["exact exact [] ['mine']", "rollouts rollouts [] ['mine']", "[]"]


def test_the_command_asks_for_no_package_that_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result, "write_report", write_audit)  # pages take longer than the rest
    monkeypatch.setattr("toptail.commands.requirements.find_spec", lambda _name: None)
    (tmp_path / "mine.py").write_text("def q(s, a, g):\n    return (a * (g - s)).sum(axis=1)\n")
    flags = {"scorer": f"{tmp_path / 'mine.py'}:q", "pools": "uniform", "follow_k": "1,2"}
    command = asked(CheckCommand, task=TASK, out=tmp_path / "out", **(SIZES | flags))
    assert command.run() == Exit.FINE
    with pytest.raises(InputError, match=r"'toptail study' needs jax, flax, optax, safetensors; "):
        need_training("study")
