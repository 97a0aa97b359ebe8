"""``toptail-paper zoo``: train critics beyond the paper's, and ask of each whether it is safe.

What is trained and what would count as an answer is declared in ``paper/docs/zoo.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from toptail.commands.flags import DECIDE, SCALE, Names, names
from toptail.commands.train import HEAD
from toptail.errors import InputError, option
from toptail.jobs.job import Resources
from toptail.lab.critics.registry import label_of, split_label
from toptail.lab.critics.registry import names as critics_in
from toptail.lab.tasks.names import parse_name
from toptail_paper.commands.all import (
    CORES,
    FIRST_STAGES,
    HEAD_BASE,
    TaskJobs,
    is_head,
    judges_of,
)
from toptail_paper.study.naming import task_title

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail_paper.study.main_settings import MainSettings

HEADED: Final = ("tdq", HEAD_BASE, HEAD)
"""The cure, what it is made of, and what it is compared with."""
SLOW: Final = ("quasimetric", "temporal_distance")
"""Critics that take five times as long to train as raw, and longer."""
FURTHER: Final = tuple(name for name in critics_in("other") if name not in (HEAD, *SLOW))
"""Other critics that the paper did not test."""
BEST_OTHERS: Final = ("conservative", "ordinal")
"""The two of those that captured most on PointMaze, which are tried beside the cure."""
WHOLE: Final = ("PointMaze", "AntMaze")
"""Tasks on which every critic is trained."""
CURED: Final = ("HumanoidMaze", "AntSoccer")
"""Tasks on which the cure and a few others are measured."""

ROUNDS: Final = (
    (WHOLE, (*HEADED, "cosine")),
    (WHOLE[:1], FURTHER),
    (CURED, (*HEADED, "cosine")),
    (WHOLE, ("hybrid",)),
    (WHOLE[1:], FURTHER),
    (CURED, BEST_OTHERS),
    (WHOLE, SLOW),
)
"""What is trained first: tasks and critics."""

SEEDS: Final = (42, 43, 44)
"""Training seeds of every critic."""

ENSEMBLES: Final = {"tdq": ("q_min", "q_lcb"), "raw": ("f_raw_min", "f_raw_lcb")}
"""Readouts of the two networks of a run beside their mean, which are rows of their own."""

SIMULATED: Final = {
    "PointMaze": "pointmaze",
    "AntMaze": "antmaze",
    "HumanoidMaze": "humanoidmaze",
    "AntSoccer": "antsoccer",
}
"""Tasks whose picks are judged in the simulator without the studies, and the function of
`toptail_paper.zoo.mazes` that makes their maze."""

LARGER_POOLS: Final = (
    *("--pools", "uniform", "--pool-size", "10000", "--per-group", "60"),
    *("--starts", "1", "--follow-k", "1,2"),
)
"""Sizes of a check in larger pools, which hardly follows a critic."""
IN_LARGER_POOLS: Final = (*HEADED, "cosine", "ordinal", "conservative", "rank")
"""Critics that are checked in larger pools where all are checked at once."""

IN_EPISODES: Final = (
    *("--judge", "none", "--pools", "uniform", "--starts", "80", "--follow-k", "1,64"),
)
"""A check that only follows the critics, in 240 episodes of each seed."""

BESIDE: Final = Resources(0.0, 0.0)
"""A job that starts as soon as it can, beside all others."""


@dataclass(frozen=True, kw_only=True)
class Zoo(TaskJobs):
    """Ask of many critics whether they are safe to maximize, and of a value head whether it cures.

      toptail-paper zoo --task PointMaze --out runs/zoo
      toptail-paper zoo --task PointMaze --critics mine --out runs/zoo

    Collects the data, trains the critics, judges their picks in both studies, and checks each one:
    best of up to 64 and 10,000 candidates, ascent, and followed at every step. Stopped at any
    moment, the same command goes on. OUT/check has a folder for each critic, and OUT/leaderboard
    those of each task beside each other.
    """

    critics: Annotated[Names, DECIDE] = ()
    """Only these critics, beside TD-Q and raw, which they are compared with."""
    no_studies: Annotated[bool, DECIDE] = False
    """Leave both studies out, and with them the behaviour model: the checks alone."""
    starts: Annotated[int | None, SCALE] = None
    """Episodes of each distance group in which the check of all candidates follows a critic; 80 on
    PointMaze and 40 on other tasks unless given."""

    def jobs(self) -> list[Job]:
        """Collections first, then the rounds, each with what follows from it."""
        rounds = list(self._rounds())
        settings = {task: self.settings_of(task) for tasks, _ in rounds for task in tasks}
        collected = {task: self._collect(task, own) for task, own in settings.items()}
        found: dict[str, Job] = {job.id: job for job in collected.values()}
        trained: dict[str, dict[str, Job]] = {task: {} for task in settings}
        for tasks, critics in rounds:
            for task in tasks:
                of_task, own = trained[task], settings[task]
                for job in self._trainings(task, own, critics, collected[task], of_task):
                    found[job.id] = job
                for job in self._asked(task, own, critics, of_task):
                    found[job.id] = job
        for task, own in settings.items():
            for job in self._checks_of_all(task, own.data, trained[task]):
                found[job.id] = job
            checks = [job.id for job in found.values() if job.name.startswith(f"check {task} ")]
            job = self._leaderboard(task, own.data, checks)
            found[job.id] = job
        return list(found.values())

    def _leaderboard(self, task: str, name: str, needs: Sequence[str]) -> Job:
        """All critics of a task beside each other."""
        from toptail.jobs.job import Job
        from toptail_paper.zoo.leaderboard import write_leaderboard

        return Job(
            name=f"leaderboard of {task}",
            content={"checks": list(needs)},
            home=self.out,
            outputs=[self.out / "leaderboard" / name / "leaderboard.md"],
            work=lambda: write_leaderboard(self.out, name, self._runs),
            needs=needs,
            resources=BESIDE,
        )

    def _rounds(self) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        tasks, critics = names(self.task), names(self.critics)
        for task in tasks:
            if not parse_name(self.settings_of(task).data).is_maze:
                raise InputError(f"--task {task}: candidates are judged in mazes alone.")
        if critics:
            labels = (label_of(*split_label(critic)) for critic in critics)
            own = tuple(dict.fromkeys((*HEADED[:2], *labels)))
            yield tuple(tasks or WHOLE), own
            return
        for of_round, trained in ROUNDS:
            wanted = tuple(task for task in of_round if not tasks or task in tasks)
            if wanted:
                yield wanted, trained
        if others := tuple(task for task in tasks if task not in (*WHOLE, *CURED)):
            yield others, (*HEADED, "cosine", *FURTHER, *SLOW)

    def _judges_of(self, data: str) -> dict[str, tuple[int, ...]]:
        """What proposes and judges, with all seeds; for checks alone the reference ensemble."""
        if not self.no_studies:
            return judges_of(data)
        from toptail_paper.selection.config import SelectionConfig

        point = parse_name(data).family == "pointmaze"
        reference = () if point else SelectionConfig.for_task(data).reference.seeds
        return {"tdq": (*SEEDS, *reference)}

    def _trainings(
        self,
        task: str,
        settings: MainSettings,
        critics: Sequence[str],
        collected: Job,
        trained: dict[str, Job],
    ) -> Iterator[Job]:
        """The trainings of a round; ``trained`` has those of the task by critic, and gets these."""
        judges = self._judges_of(settings.data)
        seeds = SEEDS
        for critic in dict.fromkeys((*judges, *critics)):
            if critic in trained:
                continue
            below = [trained[HEAD_BASE].id] if is_head(critic) else []
            asked = judges.get(critic, seeds)
            needs = [collected.id, *below]
            trained[critic] = self._training(task, settings.data, critic, asked, needs)
            yield trained[critic]

    def _asked(
        self, task: str, settings: MainSettings, critics: Sequence[str], trained: Mapping[str, Job]
    ) -> Iterator[Job]:
        """What is asked of the critics of a round: both studies, and a check of each."""
        first = set(HEADED) <= set(critics) or bool(self.critics)
        if self.no_studies:
            return
        every, name = [job.id for job in trained.values()], settings.data
        of_judges = [trained[each].id for each in self._judges_of(name)]
        for critic in critics:
            yield from self._checks(task, name, critic, [trained[critic].id, *of_judges])
        folder = self.out / "selection" / name
        study = ["study", "selection", "--task", name, "--runs", str(self._runs)]
        study += ["--rollout-queries", str(settings.rollout_queries)]
        study += ["--out", str(folder.parent), "--stage"]
        before = []
        if first:
            scores = [folder / "scores" / f"{HEAD_BASE}@42.npz"]
            scored = self._job(f"selection {task}", [*study, FIRST_STAGES], every, scores, BESIDE)
            rollouts = [folder / "rollouts.npz"]
            words = [*study, "rollouts"]
            rolled = self._job(f"rollouts {task}", words, [scored.id], rollouts, CORES)
            before = [scored.id, rolled.id]
            yield scored
            yield rolled
        label = f"{task}, {critics[0]} to {critics[-1]}"
        semantics = self.out / "semantics" / name
        words = ["study", "semantics", "--task", name, "--runs", str(self._runs)]
        words += ["--out", str(semantics)]
        page = [semantics / "report.html"]
        yield self._job(f"semantics {label}", words, every, page, BESIDE)
        words = [*study, "scores,tables"]
        page = [folder / "report.html"]
        yield self._job(f"tables of {label}", words, [*before, *every], page, BESIDE)

    def _checks_of_all(self, task: str, name: str, trained: Mapping[str, Job]) -> Iterator[Job]:
        """Without the studies: one check of all critics, one in the simulator, one that follows.

        In the simulator the policy that collected the data goes on after a candidate: on PointMaze
        after those that the exact value has judged, too. Walkers' critics are followed at every
        step in more episodes.
        """
        from toptail_paper.zoo import mazes
        from toptail_paper.zoo.followed import FOLLOWED
        from toptail_paper.zoo.leaderboard import EVERY, LARGER
        from toptail_paper.zoo.summary import SIMULATOR

        if not self.no_studies:
            return
        needs, title = [job.id for job in trained.values()], task_title(name)
        scorers = [word for critic in trained for word in self._scorers(name, critic)]
        words = [*self._check(name), *scorers]
        lines = {EVERY: [*words, *self._sizes_of_check(name)]}
        exact = parse_name(name).family == "pointmaze"
        if exact:
            own = [w for c in trained if c in IN_LARGER_POOLS for w in self._own(name, c)]
            lines[EVERY + LARGER] = [*self._check(name), *own, *LARGER_POOLS]
        if title in SIMULATED:
            if self.walkers is not None and not exact:
                raise InputError(
                    f"{option('walkers')}: picks on {title} are rolled out by the walkers of the "
                    f"main settings. Leave it out, or {option('no_studies')}."
                )
            words = ["check", "--task", name, "--judge", "rollouts", "--pools", "nearest"]
            words += ["--env", f"{mazes.__file__}:{SIMULATED[title]}"]
            queries, size, repeats = ("200", "64", "16") if exact else ("100", "16", "2")
            words += ["--per-group", queries, "--pool-size", size, "--repeats", repeats]
            lines[SIMULATOR] = [*words, "--starts", "1", "--follow-k", "1,2", *scorers]
        if title in SIMULATED and not exact:
            own = [word for critic in trained for word in self._own(name, critic)]
            lines[FOLLOWED] = ["check", "--task", name, *IN_EPISODES, *own]
        for kind, line in lines.items():
            out = self.out / "check" / name / kind
            files = [out / "check.json"]
            words = [*line, "--out", str(out)]
            yield self._job(f"check {task} {kind}", words, needs, files, CORES)

    def _own(self, name: str, critic: str) -> list[str]:
        """Flags of a critic's own readout."""
        return ["--scorer", (self._runs / name / critic / "seed-4*").as_posix()]

    def _scorers(self, name: str, critic: str) -> list[str]:
        """The same, and those of the ensemble of its two networks."""
        flag, home = self._own(name, critic)
        both = [word for each in ENSEMBLES.get(critic, ()) for word in (flag, f"{home}:{each}")]
        return [flag, home, *both]

    def _check(self, name: str) -> list[str]:
        """The beginning of a check by the best judge of one step that needs no simulation."""
        judge = "exact" if parse_name(name).family == "pointmaze" else "reference"
        return ["check", "--task", name, "--runs", str(self._runs), "--judge", judge]

    def _sizes_of_check(self, name: str) -> list[str]:
        usual = 80 if parse_name(name).family == "pointmaze" else 40
        starts = usual if self.starts is None else self.starts
        return ["--pools", "nearest,uniform,ascent", "--starts", str(starts)]

    def _checks(self, task: str, name: str, critic: str, needs: list[str]) -> Iterator[Job]:
        """A check of a critic by the best judge of its one step, and one in larger pools."""
        from toptail_paper.zoo.leaderboard import LARGER

        check = [*self._check(name), *self._scorers(name, critic)]
        sizes: dict[str, Sequence[str]] = {"": self._sizes_of_check(name)}
        if parse_name(name).family == "pointmaze":
            sizes[LARGER] = LARGER_POOLS
        for end, words in sizes.items():
            out = self.out / "check" / name / f"{critic}{end}"
            line = [*check, *words, "--out", str(out)]
            yield self._job(
                f"check {task} {critic}{end}", line, needs, [out / "check.json"], BESIDE
            )
