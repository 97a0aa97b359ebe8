"""``toptail-paper train-walker``: a walker of one's own, stopped and continued at will."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Literal

import tyro

from toptail.commands.flags import DECIDE, OUTPUT, SCALE
from toptail.commands.terminal import progress_bar, show
from toptail.errors import Exit, InputError, check_whole


@dataclass(frozen=True)
class TrainWalker:
    """Train a walker: the low-level expert that collects AntMaze, HumanoidMaze or AntSoccer.

      toptail-paper train-walker ant --minutes 60 --out walkers/ant

    A tenth of the simulations always runs the package's own starts with the collection noise; what
    they do is shown as it goes: return, speed along the direction, falls. In the end the best
    candidates are evaluated side by side, and one is kept by a rule. Stopped in the middle, the
    same command goes on; more minutes train a finished walker further.
    """

    body: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ant|antball|humanoid")]
    """What walks: the ant, the ant that brings a ball, the humanoid."""
    out: Annotated[Path, OUTPUT]
    """Folder for actor.safetensors, record.json, curve.jsonl and checkpoint.safetensors."""
    recipe: Annotated[Literal["fast", "published"], DECIDE] = "fast"
    """How it learns; 'published' is OGBench's way with its number of steps, for ant and antball,
    and keeps the last walker."""
    minutes: Annotated[float | None, SCALE] = None
    """How long the fast recipe trains, over all parts of a training that was stopped; the last
    evaluation comes after."""
    seed: Annotated[int | None, SCALE] = None
    """Seed of networks, starts and draws; 0 unless given."""
    envs: Annotated[int | None, SCALE] = None
    """Simulations that the fast recipe steps together; unless given 1024, and 64 without an
    accelerator."""
    threads: Annotated[int | None, SCALE] = None
    """Threads that step them; unless given one per core, but for one core."""

    def run(self) -> int:
        try:
            if self.recipe == "published":
                self._train_published()
            else:
                self._print(self._trained(self._needed_minutes()))
        except KeyboardInterrupt:
            sys.stderr.write(f"toptail: interrupted; the same command goes on in {self.out}\n")
            return Exit.INTERRUPTED
        return 0

    def _needed_minutes(self) -> float:
        if self.minutes is None:
            raise InputError("The fast recipe needs --minutes: say how long it may train.")
        return self.minutes

    def _train_published(self) -> None:
        from toptail_paper.walkers.published import train_published

        if self.minutes is not None or self.envs is not None:
            raise InputError(
                "--recipe published has its own numbers of steps and simulations: leave --minutes "
                "and --envs out."
            )
        seed = 0 if self.seed is None else self.seed
        check_whole("seed", seed, 0)
        if self.threads is not None:
            check_whole("threads", self.threads, 1)
        record = train_published(self.body, self.out, seed, threads=self.threads, tell=_tell)
        final = record["acceptance"]
        show(f"{self.body}, published recipe, {record['seconds'] / 60:.1f} minutes.")
        show(f"{final['episodes']} episodes of {final['steps']:,} steps: {self._numbers(final)}.")
        show(str(self.out / "actor.safetensors"))

    def _trained(self, minutes: float) -> Mapping[str, Any]:
        from toptail.lab.training.config import keep_compiled
        from toptail_paper.walkers.train import train_expert

        keep_compiled()
        seen = ""

        def watch(point: Mapping[str, Any]) -> None:
            nonlocal seen
            seen = f" · {self._numbers(point)}"
            if not sys.stderr.isatty():
                _tell(f"{self.body} {_standing(point, minutes)}{seen}")

        with _interruptible() as interrupted, progress_bar(lines=False) as bar:

            def tick(stage: str, share: float) -> None:
                if interrupted():
                    raise KeyboardInterrupt
                bar(f"{stage}{seen}", min(share, 1.0))

            return train_expert(
                self.body,
                minutes,
                self.out,
                self.seed,
                envs=self.envs,
                threads=self.threads,
                tick=tick,
                watch=watch,
            )

    def _print(self, record: Mapping[str, Any]) -> None:
        kept = record["candidates"][record["chosen"]]
        count = len(record["candidates"])
        show(
            f"{record['body']}: {record['env_steps']:,} steps in {record['seconds'] / 60:.1f} "
            f"minutes; kept of {count} candidates ({record['rule']}): the one of minute "
            f"{kept['during']['minutes']:.1f}."
        )
        final = kept["final"]
        show(f"{final['episodes']} episodes of {final['steps']:,} steps: {self._numbers(final)}.")
        show(str(self.out / "actor.safetensors"))

    def _numbers(self, point: Mapping[str, Any]) -> str:
        texts = {"return": "return {:,.4g}", "speed": "{:.2f} m/s", "falls": "{:.2f} falls/1,000"}
        if self.body == "antball":
            texts["success"] = "{:.0%} of goals"
        return " · ".join(
            text.format(point[name]) for name, text in texts.items() if point[name] is not None
        )


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _standing(point: Mapping[str, Any], minutes: float) -> str:
    return (
        f"{point['minutes']:.2f}/{minutes:g} min · {point['env_steps']:,} steps · "
        f"{point['env_steps_per_second']:,} steps/s · {point['updates_per_second']:,} updates/s"
    )


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; a second one interrupts at once.

    Where SIGINT is ignored from the start, as in the background of a script, it stays ignored.
    """
    asked = Event()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield asked.is_set
        return

    def ask(_signal: int, _frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
