"""Everything about a task in one go: collect, train, score, roll out, tabulate.

A chain is a list of commands with what each waits for and what it leaves. Each command is
resumable, so the chain is: what left its files is not called again, what was killed goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from toptail.commands.train import BEHAVIOUR
from toptail.errors import InputError
from toptail.lab.critics.registry import MAIN, names
from toptail.lab.experts.walking import guide_of
from toptail.lab.tasks.collect import Collection, check_collectable
from toptail.lab.tasks.files import split_path
from toptail.lab.tasks.names import parse_name
from toptail.lab.training.run_files import RECORD, run_folder
from toptail_paper.selection.config import SelectionConfig
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.train import SemanticsTraining

Lane: TypeAlias = Literal["accelerator", "simulator"]
"""What a piece keeps busy: the accelerator, or the processor's cores."""

CONTROLS = {"pointmaze": names("control")}
"""Families whose tables have the function-class controls."""

SEMANTICS = "semantics"
"""How the names of those pieces begin."""

FIRST_STAGES = "queries,pools,reference,exact,euclidean,scores"
"""Stages of the selection study that need the main critics and the behaviour model."""


@dataclass(frozen=True)
class Piece:
    """One command of a chain."""

    name: str
    """What it is, such as ``train AntMaze tdq``; unique in a chain."""
    command: tuple[str, ...]
    """Arguments of ``toptail``."""
    lane: Lane
    """What it keeps busy."""
    after: tuple[str, ...] = ()
    """Pieces that must be finished before."""
    leaves: tuple[Path, ...] = ()
    """Files that are there when it is finished."""


@dataclass(frozen=True)
class ChainConfig:
    """Where a chain's files go, and how much it does."""

    data: Path
    """Folder of the data sets."""
    runs: Path
    """Folder of the trained runs."""
    out: Path
    """Folder of the studies: ``OUT/semantics`` and ``OUT/selection/TASK``."""
    steps: int | None = None
    """Optimizer steps of every critic and behaviour model; the studies' own unless given."""
    two_heads: bool = True
    """Whether the two-head critics are trained, in mazes."""
    deployment: bool = True
    """Whether actors are trained and closed loops run."""


def chain(config: ChainConfig, tasks: Sequence[str]) -> list[Piece]:
    """The pieces of the tasks' chains, in the order in which they are begun where they can be."""
    if not tasks:
        raise InputError("A chain needs at least one task.")
    pieces: list[Piece] = []
    for name in dict.fromkeys(parse_name(task).name for task in tasks):
        check_collectable(Collection(name, expert=guide_of(parse_name(name))))
        before = [piece.name for piece in pieces if piece.name.startswith(SEMANTICS)]
        pieces += _task(config, name, tuple(before[-1:]))
    return pieces


def _task(config: ChainConfig, name: str, before: tuple[str, ...]) -> Iterator[Piece]:
    """One task's pieces; its semantics wait for those ``before`` it in the folder of all tasks."""
    task = parse_name(name)
    label, file = task.title, config.data / f"{name}.npz"
    collected = f"collect {label}"
    both = tuple(split_path(file, split) for split in ("train", "val"))
    command = ("data", "collect", name, "--out", str(file))
    yield Piece(collected, command, "simulator", (), both)

    trainings = {
        critic: Piece(
            f"train {label} {critic}",
            (
                *("train", "--task", name, "--out", str(config.runs), "--critics", critic),
                *("--seeds", ",".join(map(str, seeds)), "--steps", str(_steps(config, name))),
            ),
            "accelerator",
            (collected,),
            tuple(run_folder(config.runs / name / critic, seed) / RECORD for seed in seeds),
        )
        for critic, seeds in _trainings(config, name)
    }
    first = [piece for critic, piece in trainings.items() if critic in (*MAIN, BEHAVIOUR)]
    every = tuple(piece.name for piece in trainings.values())
    yield from first
    if task.is_maze:
        yield from _selection(config, name, label, tuple(piece.name for piece in first), every)
    yield from (piece for piece in trainings.values() if piece not in first)
    folder = config.out / "semantics"
    study = ("study", "semantics", "--task", name, "--runs", str(config.runs))
    yield Piece(
        f"{SEMANTICS} {label}",
        (*study, "--out", str(folder)),
        "accelerator",
        (*every, *before),
        (folder / "scores" / name / "draws.npz", folder / "report.html"),
    )


def _steps(config: ChainConfig, name: str) -> int:
    """Optimizer steps: those that were asked for, or the studies' own."""
    own = SemanticsTraining()
    usual = own.steps if parse_name(name).is_maze else own.play_steps
    return usual if config.steps is None else config.steps


def _trainings(config: ChainConfig, name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Critics and behaviour model of a task with their seeds; first what is waited for longest."""
    task = parse_name(name)
    semantics, selection = SemanticsConfig((name,)), SelectionConfig.for_task(name)
    seeds = semantics.seeds
    if not task.is_maze:
        yield from ((critic, seeds) for critic in MAIN)
        return
    yield BEHAVIOUR, semantics.diffusion_seeds
    yield "tdq", (*seeds, semantics.oracle_seed, *selection.reference.seeds)
    yield from ((critic, seeds) for critic in reversed(MAIN) if critic != "tdq")
    if config.two_heads:
        yield from ((critic, seeds) for critic in names("two_head"))
    yield from ((critic, seeds) for critic in CONTROLS.get(task.family, ()))


def _selection(
    config: ChainConfig, name: str, label: str, first: tuple[str, ...], every: tuple[str, ...]
) -> Iterator[Piece]:
    """The stages of the selection study, as early as what they need is there."""
    folder = config.out / "selection" / name
    study = (
        *("study", "selection", "--task", name),
        *("--runs", str(config.runs), "--out", str(folder.parent), "--stage"),
    )
    scored = f"selection {label}"
    main = tuple(folder / "scores" / f"{critic}@42.npz" for critic in MAIN)
    yield Piece(scored, (*study, FIRST_STAGES), "accelerator", first, main)
    rolled = f"rollouts {label}"
    rollouts = (folder / "rollouts.npz",)
    yield Piece(rolled, (*study, "rollouts"), "simulator", (scored,), rollouts)
    deployed: tuple[str, ...] = ()
    if config.deployment:
        deployed = (f"deployment {label}",)
        files = (folder / "deployment" / "actors.json", folder / "deployment" / "closed_loop.json")
        yield Piece(deployed[0], (*study, "deployment"), "accelerator", (scored,), files)
    # Critics that came later are scored, and their picks rolled out.
    yield Piece(
        f"selection {label}, all critics and tables",
        (*study, "scores,rollouts,tables"),
        "simulator",
        (scored, rolled, *deployed, *every),
        (folder / "report.html",),
    )
