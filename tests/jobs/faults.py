"""Kills on a real Ray cluster of several nodes: nothing lost, nothing different.

    python -m tests.jobs.faults FOLDER [train|study|collect|audit] [KILLS]

Runs a command on this machine alone and on a cluster of two nodes whose workers and nodes are
killed at random times, then compares what both left, bit by bit. Needs the extra `ray`.
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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SMALL = (
    *("--batch-size", "16", "--log-every", "10", "--hidden", "8", "--depth", "1"),
    *("--embed-dim", "4", "--ensemble", "1", "--seeds", "42,43"),
)
_QUIET = re.compile(rb"IDLE|Agent")
"""Names of a node's processes that do no piece; a node does not live without its agents."""
NO_BITS = ("record.json", "report.html", "audit.md", "audit.tex")
"""Files that say when, where and by which command they were made."""


@dataclass
class Killed:
    """A cluster of one head without cores and two nodes of one core, and who was killed."""

    seed: int
    count: dict[str, int] = field(default_factory=lambda: {"worker": 0, "node": 0})

    def __post_init__(self) -> None:
        os.environ.setdefault("RAY_worker_niceness", "5")  # at Ray's 15 a busy machine starves them
        from ray.cluster_utils import Cluster

        small = {"object_store_memory": 400 * 2**20}
        self._small = {**small, "num_cpus": 1}
        head = {**small, "num_cpus": 0, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.cluster.add_node(**self._small) for _ in range(2)]
        self._draw = random.Random(self.seed)

    def kill(self) -> None:
        """Kill a busy worker, or now and then a whole node, which a new one replaces."""
        if self._draw.random() < 0.2:
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
        """Processes of this cluster's nodes that do a piece right now."""
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

    def wait(self, least: float, most: float) -> None:
        """Let some time pass."""
        time.sleep(self._draw.uniform(least, most))


def command(*words: object) -> list[str]:
    """A command of toptail in a process of its own."""
    return [sys.executable, "-m", "toptail", *map(str, words)]


def commands(kind: str, folder: Path) -> list[tuple[str, ...]]:
    """What is run, into the folder that the words end with."""
    if kind == "train":
        from tests.training.toy import toy_file

        for name in ("one", "two"):
            (folder / name).mkdir(parents=True)
        tasks = [toy_file(folder / name) for name in ("one", "two")]
        return [
            ("train", "--task", str(task), "--steps", steps, *SMALL,
             "--critics", "raw,cosine,tdq,hybrid", "--out", f"{{out}}/{task.parent.name}-{steps}")
            for task in tasks
            for steps in ("200", "300")
        ]  # fmt: skip
    if kind == "study":
        from tests.attack.cases import SELECTION
        from tests.attack.world import make_world

        make_world(folder / "world")
        return [(*SELECTION.split()[:-1], "{out}/selection")]
    if kind == "collect":
        return [("data", "collect", "pointmaze-medium-navigate-v0", "--episodes", "200",
                 "--rows", "201", "--out", "{out}/data.npz")]  # fmt: skip
    return [("audit", str(folder / "table"), "--out", "{out}/audit")]


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


def attack(kind: str, folder: Path, kills: int, pause: tuple[float, float]) -> dict[str, Any]:
    """Run everything here and, under fire, on a cluster; returns what was found."""
    lines = commands(kind, folder)
    start = time.monotonic()
    for words in lines:
        words = tuple(word.format(out=folder / "here") for word in words)
        subprocess.run(command(*words), check=True, stdout=subprocess.DEVNULL, cwd=_place(folder))
    alone = time.monotonic() - start
    killed, start = Killed(seed=0), time.monotonic()
    for words in lines:
        words = tuple(word.format(out=folder / "there") for word in words)
        address = ("--engine", "ray", "--address", killed.cluster.address)
        process = subprocess.Popen(
            command(*words, *address), stdout=subprocess.DEVNULL, cwd=_place(folder)
        )
        while process.poll() is None:
            killed.wait(*pause)
            if process.poll() is None and sum(killed.count.values()) < kills:
                killed.kill()
        assert process.returncode == 0, words
    here, there = (hashes(folder / name) for name in ("here", "there"))
    different = sorted(n for n in here.keys() | there.keys() if here.get(n) != there.get(n))
    return {
        "kind": kind,
        "killed": killed.count,
        "files": len(here),
        "different": different,
        "seconds": {"here": round(alone, 1), "cluster": round(time.monotonic() - start, 1)},
    }


def _place(folder: Path) -> Path:
    """Where the commands are typed."""
    return folder / "world" if (folder / "world").is_dir() else folder


def main() -> int:
    """Attack, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", choices=("train", "study", "collect", "audit"))
    parser.add_argument("kills", type=int, nargs="?", default=10)
    parser.add_argument("--pause", type=float, nargs=2, default=(3.0, 15.0))
    asked = parser.parse_args()
    found = attack(asked.kind, asked.folder.absolute(), asked.kills, tuple(asked.pause))
    sys.stdout.write(json.dumps(found) + "\n")
    return 1 if found["different"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
