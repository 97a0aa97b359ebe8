"""Every reader of a file that a person gives or that a folder keeps, with a sound one each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.attack.foreign_readers import FOREIGN
from tests.attack.forks import ROOT
from tests.attack.world import CRITIC, DATA, POINT

RESULTS: Final = ROOT / "paper" / "results"


@dataclass(frozen=True)
class Reader:
    """A file of a small folder, and who reads it."""

    name: str
    """What it is called in the figures."""
    file: str
    """The file that is broken; its ending is its kind."""
    make: Callable[[Path], None]
    """Write a sound folder."""
    read: Callable[[Path], object]
    """Read the folder as a command would."""
    share: int = 1
    """How many of a round's files are of this reader."""

    @property
    def kind(self) -> str:
        """How its mutations are made."""
        return self.file.rpartition(".")[2]


@cache
def _pools() -> Any:
    from toptail import ScoredPools

    rng = np.random.default_rng(0)
    value = rng.random((8, 3))
    scores = {"a@1": value + 0.1, "a@2": value * value, "b": rng.random((8, 3))}
    return ScoredPools.from_arrays(scores, values=value)


def _write_question(folder: Path) -> None:
    shutil.copy(ROOT / "paper" / "plans" / "tdq_manipulation.json", folder / "plan.json")


def _read_question(folder: Path) -> object:
    from toptail_paper.grids.plan import read_plan

    return [list(read_plan(folder / "plan.json", small=small).cells()) for small in (True, False)]


def _write_pools(name: str) -> Callable[[Path], None]:
    return lambda folder: _pools().write(folder / name)


def _read_pools(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        from toptail import ScoredPools

        return ScoredPools.read(folder / name)

    return read


def _audited(folder: Path) -> object:
    from toptail import audit

    return audit(folder / "scores.csv", resamples=100).summary()


def _write_picks(folder: Path) -> None:
    lines = [f"q{q},{s},{r},{q * 0.5}" for q in range(6) for s in "ab" for r in (0, 1)]
    (folder / "picks.csv").write_text("query,selector,replicate,value\n" + "\n".join(lines) + "\n")


def _read_picks(folder: Path) -> object:
    from toptail import audit_picks

    return audit_picks(folder / "picks.csv", resamples=100).summary()


def _write_audit(folder: Path) -> None:
    from toptail import audit

    content = audit(_pools(), resamples=100).to_dict()
    (folder / "audit.json").write_text(json.dumps(content))


def _read_audit(folder: Path) -> object:
    from toptail.io.guard import refusing
    from toptail.report import render_html, render_latex, render_markdown, summary_lines
    from toptail.results import read_audit

    content = read_audit(folder)
    with refusing(folder, "cannot be drawn", "audit the table again"):  # as 'toptail report' does
        return [f(content) for f in (render_html, render_latex, render_markdown, summary_lines)]


def _write_picks_audit(folder: Path) -> None:
    from toptail import audit_picks

    _write_picks(folder)
    content = audit_picks(folder / "picks.csv", resamples=100).to_dict()
    (folder / "audit.json").write_text(json.dumps(content))


def _write_data(folder: Path) -> None:
    shutil.copy(DATA / f"{POINT}.npz", folder)
    record = {"file": f"{POINT}.npz", "source": "here", "bytes": 6080, "content_sha256": _hash()}
    (folder / f"{POINT}.npz.json").write_text(json.dumps(record | {"goals_per_episode": [1, 2]}))


@cache
def _hash() -> str:
    from toptail.lab.tasks.files import load_file

    return load_file(DATA / f"{POINT}.npz").sha256


def _read_data(folder: Path) -> object:
    from toptail.lab.tasks.files import load_file

    return load_file(folder / f"{POINT}.npz")


def _collection() -> Any:
    from toptail.lab.tasks.collect import Collection

    return Collection(POINT, 2, 1, 20)


def _write_plan(folder: Path) -> None:
    from toptail.lab.tasks.collect import _open_parts

    _open_parts(_collection(), folder / "own.npz", folder / "own.npz.parts")


def _read_plan(folder: Path) -> object:
    from toptail.lab.tasks.collect import _open_parts

    _open_parts(_collection(), folder / "own.npz", folder / "own.npz.parts")
    return None


def _write_critic(folder: Path) -> None:
    (folder / "critic.py").write_text(CRITIC)


def _read_critic(folder: Path) -> object:
    from toptail.lab.scorers.user import user_scorer

    rows = np.zeros((5, 2), np.float32)
    return user_scorer(f"mine={folder / 'critic.py'}:score").score(rows, rows, rows)


def _write_judge(folder: Path) -> None:
    np.savez(folder / "judge.npz", values=np.zeros((6, 1, 5)))


def _read_judge(folder: Path) -> object:
    from toptail_paper.selection.run import read_judge

    return read_judge(f"mine={folder / 'judge.npz'}")


def _write_walker(folder: Path) -> None:
    from toptail.lab.experts.actor import Walker

    Walker.shipped("ant").save(folder / "actor.safetensors")


def _read_walker(folder: Path) -> object:
    from toptail.lab.experts.actor import Walker

    return Walker.load(folder / "actor.safetensors")


def _write_params(folder: Path) -> None:
    from toptail.lab.training.checkpoints import save_params

    save_params(folder / "params.safetensors", {"a": {"w": np.zeros((3, 2)), "b": np.ones(2)}})


def _read_params(folder: Path) -> object:
    from toptail.lab.training.checkpoints import load_params

    return load_params(folder / "params.safetensors")


def _write_run(folder: Path) -> None:
    from paper.tests.semantics.fake_runs import write_run
    from tests.training.toy import toy_config

    write_run(toy_config(), 42, folder)


def _read_run(folder: Path) -> object:
    from toptail.commands.runs import state_of
    from toptail.lab.training.run_files import find_runs
    from toptail.lab.training.runs import stored_config

    for run in find_runs(folder):
        state_of(run)
        run.steps_logged()
        stored_config(run)
    return None


def _write_study(name: str) -> Callable[[Path], None]:
    """Copy what the checkout stores of a study, but for its audits."""

    def write(folder: Path) -> None:
        skipped = shutil.ignore_patterns("audit", "measured", "curves.json")
        shutil.copytree(RESULTS / name, folder, ignore=skipped, dirs_exist_ok=True)

    return write


def _read_study(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        from toptail_paper.study.study import studies, study_in

        study_in(folder)
        study = studies()[name]
        return study.tables(folder, study.labels)

    return read


READERS: Final = (
    *(
        Reader(f"table.{kind}", f"scores.{kind}", _write_pools(f"scores.{kind}"),
               _read_pools(f"scores.{kind}"), 4)
        for kind in ("csv", "jsonl", "json", "parquet", "arrow", "npz")
    ),
    Reader("audit of csv", "scores.csv", _write_pools("scores.csv"), _audited),
    Reader("picks.csv", "picks.csv", _write_picks, _read_picks),
    Reader("audit.json", "audit.json", _write_audit, _read_audit, 3),
    Reader("audit.json of picks", "audit.json", _write_picks_audit, _read_audit),
    Reader("data set", f"{POINT}.npz", _write_data, _read_data, 3),
    Reader("data set's record", f"{POINT}.npz.json", _write_data, _read_data),
    Reader("origin.json", "own.npz.parts/origin.json", _write_plan, _read_plan),
    Reader("settle's plan", "plan.json", _write_question, _read_question),
    Reader("critic.py", "critic.py", _write_critic, _read_critic, 2),
    Reader("judge.npz", "judge.npz", _write_judge, _read_judge, 2),
    Reader("walker", "actor.safetensors", _write_walker, _read_walker, 2),
    Reader("params", "params.safetensors", _write_params, _read_params, 3),
    *(
        Reader(f"run's {name}", f"walks/raw/seed-42/{name}", _write_run, _read_run)
        for name in ("record.json", "config.json", "metrics.jsonl")
    ),
    *(
        Reader(f"{study}'s {name}", name, _write_study(study), _read_study(study))
        for study in ("controlled", "semantics")
        for name in ("config.json", "tables/noise.json", "tables/main.json", "claims.json")
        if (RESULTS / study / name).is_file()
    ),
    *(Reader(*parts) for parts in FOREIGN),
)  # fmt: skip
"""Who reads what."""
