"""Kills on a real Ray cluster of several nodes: nothing lost, nothing different.

    python -m tests.jobs.faults FOLDER collect|grid|study|audit|all [KILLS] [--millions N]

Runs commands on this machine alone and on a cluster of two nodes, kills a node first and then at
random times workers and now and then a node, and compares what both left, bit by bit. `grid` are
2 tasks x 4 critics x 2 variants, `study` a selection study with its trainings and rollouts, `audit`
one of N million candidates; `all` are these three. Needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.programs import program_of
from toptail.errors import Exit
from validation.scale import write_table

SIZES = "batch_size=16,hidden=8,depth=1,embed_dim=4"
TASKS = ("pointmaze-medium-navigate-v0", "pointmaze-large-navigate-v0")
ALL = ("grid", "study", "audit")
_QUIET = re.compile(rb"IDLE|Agent")
"""Names of a node's processes that run no job; a node does not live without its agents."""
NO_BITS = ("record.json", "report.html", "audit.md", "audit.tex")
"""Files that say when, where and by which command they were made."""


@dataclass
class Killed:
    """A cluster of one head without cores and two nodes of one core, and who was killed."""

    seed: int
    count: dict[str, int] = field(default_factory=lambda: {"worker": 0, "node": 0})

    def __post_init__(self) -> None:
        os.environ.setdefault("RAY_worker_niceness", "0")  # at Ray's 15 a busy machine starves them
        from ray.cluster_utils import Cluster

        small = {"object_store_memory": 400 * 2**20}
        self._small = {**small, "num_cpus": 1}
        head = {**small, "num_cpus": 0, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.cluster.add_node(**self._small) for _ in range(2)]
        self._draw = random.Random(self.seed)

    def kill(self) -> None:
        """Kill a busy worker, or first and now and then a whole node, which a new one replaces."""
        if self.count["node"] == 0 or self._draw.random() < 0.2:
            at = self._draw.randrange(2)
            self.cluster.remove_node(self.nodes[at], allow_graceful=False)
            self.nodes[at] = self.cluster.add_node(**self._small)
            self.count["node"] += 1
            return
        busy = list(self._workers())
        if busy:
            os.kill(self._draw.choice(busy), signal.SIGKILL)
            self.count["worker"] += 1

    def _workers(self) -> Iterator[int]:
        """Processes of this cluster's nodes that run a job right now."""
        raylets = {p.process.pid for n in self.nodes for p in n.all_processes["raylet"]}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                    words = (folder / "cmdline").read_bytes()
                except OSError:
                    continue
                if parent in raylets and words.startswith(b"ray::") and not _QUIET.search(words):
                    yield int(folder.name)

    def sum(self) -> int:
        """How many were killed."""
        return sum(self.count.values())

    def wait(self, least: float, most: float) -> None:
        """Let some time pass."""
        time.sleep(self._draw.uniform(least, most))


def command(*words: object) -> list[str]:
    """A command of toptail in a process of its own."""
    typed = list(map(str, words))
    return [sys.executable, "-m", program_of(typed).name.replace("-", "_"), *typed]


def collected(folder: Path) -> list[Path]:
    """Small data sets of both tasks."""
    made = [folder / "data" / f"{task}.npz" for task in TASKS]
    for path in made:
        words = ("data", "collect", path.stem, "--episodes", "20", "--rows", "201", "--out", path)
        if not path.is_file():
            subprocess.run(command(*words), check=True, stdout=subprocess.DEVNULL)
    return made


def commands(kind: str, folder: Path, millions: int) -> list[tuple[str, ...]]:
    """What is run; results go to the folder that takes the place of {out}."""
    if kind == "collect":
        return [("data", "collect", TASKS[0], "--episodes", "200", "--rows", "201",
                 "--out", "{out}/data.npz")]  # fmt: skip
    if kind == "audit":
        write_table(folder / "table", 1_000 * millions)
        return [("audit", str(folder / "table"), "--out", "{out}/audit")]
    tasks = collected(folder)
    if kind == "grid":
        return [
            ("train", "--task", str(task), "--steps", "200", "--seeds", "42,43",
             "--checkpoint-every", "50", "--critics", "raw,cosine,tdq,hybrid",
             "--set", SIZES, "--set", f"log_every=50,ensemble=2,layer_norm={norm}",
             "--out", f"{{out}}/layer-norm-{norm}")
            for task in tasks
            for norm in ("on", "off")
        ]  # fmt: skip
    return [("study", "selection", "--task", str(tasks[0]), "--train", "--steps", "50",
             "--diffusion-steps", "50", "--set", SIZES, "--seeds", "42,43",
             "--reference-seeds", "101,102", "--per-group", "9",
             "--pool-count", "1", "--pool-size", "32", "--runs", "{out}/runs",
             "--out", "{out}/selection")]  # fmt: skip


def hashes(folder: Path) -> dict[str, str]:
    """Every file that has bits of its own -> its hash, without what says where it was made."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.name not in NO_BITS and "figures" not in name:
            found[name] = hashlib.sha256(_bits(path)).hexdigest()
    return found


def _bits(path: Path) -> bytes:
    if path.suffix != ".json":
        return path.read_bytes() if path.suffix not in (".png", ".svg") else b""
    content: Any = json.loads(path.read_text())
    for name in ("record", "commit", "seconds"):
        if isinstance(content, dict):
            content.pop(name, None)
    return json.dumps(content).encode()


def attack(
    kind: str, folder: Path, kills: int, pause: tuple[float, float], millions: int = 1
) -> dict[str, Any]:
    """Run everything here and, under fire, on a cluster, until there were so many kills."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = commands(kind, folder, millions)
    start = time.monotonic()
    for words in lines:
        process = _begin(words, folder / "here")
        assert process.wait() == 0, words
    alone, different = time.monotonic() - start, set[str]()
    killed, rounds, again = Killed(seed=kills), 0, 0
    here, start = hashes(folder / "here"), time.monotonic()
    while rounds == 0 or killed.sum() < kills:
        rounds += 1
        out = folder / f"there-{rounds}"
        for words in lines:
            again += _under_fire(words, out, killed, kills, pause)
        there = hashes(out)
        different |= {n for n in here.keys() | there.keys() if here.get(n) != there.get(n)}
    seconds = {"here": round(alone, 1), "cluster": round(time.monotonic() - start, 1)}
    killed.cluster.shutdown()
    found = {"kind": kind, "rounds": rounds, "killed": killed.count, "typed again": again}
    return {**found, "files": len(here), "different": sorted(different), "seconds": seconds}


def _begin(words: Sequence[str], out: Path, *more: str) -> subprocess.Popen[bytes]:
    """Type a command whose results go to a folder."""
    typed = [word.format(out=out) for word in words]
    return subprocess.Popen(command(*typed, *more), stdout=subprocess.DEVNULL)


def _under_fire(
    words: Sequence[str], out: Path, killed: Killed, kills: int, pause: tuple[float, float]
) -> int:
    """Run a command on the cluster; how often it lost its own node and was typed again."""
    for again in range(10):
        process = _begin(words, out, "--ray", killed.cluster.address)
        while process.poll() is None:
            killed.wait(*pause)
            if process.poll() is None and killed.sum() < kills:
                killed.kill()
        if process.returncode == 0:
            return again
        assert process.returncode == Exit.NOT_DONE, words
    raise AssertionError(f"{words} did not come to its end")


def main() -> int:
    """Attack, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", choices=("collect", *ALL, "all"))
    parser.add_argument("kills", type=int, nargs="?", default=10)
    parser.add_argument("--pause", type=float, nargs=2, default=(3.0, 15.0))
    parser.add_argument("--millions", type=int, default=100)
    asked = parser.parse_args()
    bad = 0
    for kind in ALL if asked.kind == "all" else (asked.kind,):
        folder = asked.folder.absolute() / kind
        found = attack(kind, folder, asked.kills, tuple(asked.pause), asked.millions)
        bad += len(found["different"])
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
