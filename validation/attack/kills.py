"""Kills: a command ends at its n-th file operation, is typed again, and must leave the same files.

A file operation is a file opened for writing, a rename, a removal, or a folder made or removed,
below the folder in which the command runs. Python announces them to audit hooks.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from validation.attack.files import CRITIC, POINT, ROOT

_OPERATIONS: Final = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TIMES: Final = frozenset(
    {"seconds", "started", "finished", "created", "time", "when", "date", "steps_per_second",
     "resumed", "calls", "units", "commit"}
)  # fmt: skip
_DATED: Final = re.compile(rb"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00|Z)?")
_TOOK: Final = re.compile(rb"\d[\d.,]* (hours?|minutes?|seconds?|ms|s)\b")


@dataclass(frozen=True)
class Case:
    """A command line that is killed."""

    name: str
    line: str
    """What is typed after ``toptail``."""
    whole: str = ""
    """A folder that at any moment is as it was or as it becomes."""


CASES: Final = (
    Case("audit", "audit scores.csv --resamples 100 --out out", "out"),
    Case("choose", "choose scores.csv --scores b --resamples 100 --selectors rank --out out",
         "out"),
    Case("plan", "plan scores.csv --labels 150 --out to_judge.csv"),
    Case("check", f"check --task {POINT}.npz --scorer critic.py:score --pools uniform "
         "--per-group 4 --pool-size 4 --near 20 --starts 2 --follow-k 1,4 --horizon 5 "
         "--resamples 100 --out out", "out"),
    Case("collect", f"data collect {POINT} --episodes 3 --val-episodes 2 --rows 20 --workers 1 "
         f"--out own/{POINT}.npz"),
    Case("train", f"train --task {POINT}.npz --steps 6 --checkpoint-every 2 "
         "--set batch_size=16,log_every=2,hidden=8,depth=1,embed_dim=4,ensemble=1 "
         "--critics cosine --seeds 42,43 --out runs"),
)  # fmt: skip


def count_operations(at: int | None, log: Path) -> None:
    """Log every file operation of this process; end it before the given one."""
    below = str(Path.cwd()) + os.sep
    count = 0

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal count
        if event == "open":
            counts = isinstance(given[2], int) and given[2] & _WRITING
        else:
            counts = event in _OPERATIONS
        if not counts or not isinstance(given[0], str | bytes | os.PathLike):
            return
        if os.path.abspath(os.fsdecode(given[0])).startswith(below):  # noqa: PTH100
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
            os.write(descriptor, b".")

    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    sys.addaudithook(hook)


def run(case: Case, folder: Path, at: int | None = None) -> tuple[int, int, str]:
    """Exit code, number of file operations, and what was printed to standard error."""
    with tempfile.NamedTemporaryFile() as log:
        program = (
            "import sys; from pathlib import Path; from validation.attack.kills import "
            f"count_operations; count_operations({at}, Path({log.name!r})); "
            f"sys.argv = ['toptail', *{case.line.split()!r}]; "
            "from toptail.cli import run; run()"
        )
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
        )
        return ended.returncode, len(Path(log.name).read_bytes()), ended.stderr


def make_folder(folder: Path) -> None:
    """What the commands read: a table, a data set and a critic."""
    folder.mkdir(parents=True)
    rng = Random(0)
    lines = ["query,candidate,a@1,a@2,b,value"]
    for query in range(50):
        for candidate in range(6):
            value = rng.random()
            a, b = (value + rng.gauss(0, 0.3) for _ in range(2))
            lines.append(f"q{query},{candidate},{a:.6f},{b:.6f},{rng.randrange(5)},{value:.6f}")
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")
    (folder / "critic.py").write_text(CRITIC)
    for path in (ROOT / "tests" / "tasks" / "data").glob(f"{POINT}*.npz"):
        shutil.copy(path, folder)


def snapshot(folder: Path) -> dict[str, str]:
    """Hashes of all files below a folder, without recorded times.

    Locks do not count, nor does what Python compiled of a user's file, which has that file's time.
    """
    left_out = (".lock", ".pyc")
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in left_out)
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            timeless(path.suffix, path.read_bytes())
        ).hexdigest()
        for path in files
    }


def timeless(kind: str, content: bytes) -> bytes:
    """A file's content without the times that it records."""
    if kind == ".json":
        return json.dumps(_without_times(json.loads(content))).encode()
    if kind == ".jsonl":
        lines = [_without_times(json.loads(line)) for line in content.splitlines()]
        return json.dumps(lines).encode()
    if kind == ".npz":  # the archive dates its members
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return b"".join(n.encode() + archive.read(n) for n in sorted(archive.namelist()))
    if kind in (".html", ".md", ".tex", ".svg"):
        return _TOOK.sub(b"", _DATED.sub(b"", content))
    return content


def _without_times(content: Any) -> Any:
    if isinstance(content, dict):
        return {k: _without_times(v) for k, v in content.items() if k not in _TIMES}
    if isinstance(content, list):
        return [_without_times(each) for each in content]
    dated = isinstance(content, str) and _DATED.fullmatch(content.encode())
    return "" if dated else content


def _inside(tree: dict[str, str], name: str) -> dict[str, str]:
    return {path: what for path, what in tree.items() if path.startswith(f"{name}/")}


def attack_command(case: Case, kills: int) -> tuple[int, list[str]]:
    """Kill a command at some of its file operations; kills made, and what did not hold."""
    findings = []
    with tempfile.TemporaryDirectory() as name:
        sound, work = Path(name) / "sound", Path(name) / "work"
        make_folder(sound)
        before = snapshot(sound)
        code, operations, error = run(case, sound)
        after = snapshot(sound)
        if code not in (0, 1):
            return 0, [f"{case.name} undisturbed ended with {code}: {error[-300:]}"]
        points = Random(case.name).sample(range(1, operations + 1), min(kills, operations))
        for at in points:
            shutil.rmtree(work, ignore_errors=True)
            make_folder(work)
            if run(case, work, at)[0] != -signal.SIGKILL:
                findings.append(f"{case.name}: operation {at} did not come")
                continue
            left = _inside(snapshot(work), case.whole) if case.whole else {}
            if case.whole and left not in (_inside(before, case.whole), _inside(after, case.whole)):
                findings.append(f"{case.name}: killed at {at}, {case.whole} is half written")
            again, _, error = run(case, work)
            if again != code:
                findings.append(f"{case.name}: killed at {at}, then ended with {again}: {error}")
            elif (found := snapshot(work)) != after:
                differ = sorted(k for k in {*found, *after} if found.get(k) != after.get(k))
                findings.append(f"{case.name}: killed at {at}, then differs in {differ[:4]}")
        return len(points), findings
