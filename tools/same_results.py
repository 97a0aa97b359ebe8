"""Whether two checkouts give the same results: small runs of everything, compared bit for bit.

A change that only moves code must leave what the code makes as it was. ``make`` runs the command
line of one checkout on small inputs (collection, training of every critic, the three studies, a
grid, audits of every kind, plans, choices, a check; an audit on Ray where Ray is installed) and
renders the pages and ledgers of the stored results again; ``compare`` holds what two checkouts made
against each other:

    python tools/same_results.py make OLD_CHECKOUT /tmp/old
    python tools/same_results.py make NEW_CHECKOUT /tmp/new
    python tools/same_results.py compare /tmp/old /tmp/new

Arrays, trained parameters and the numbers of every JSON file must be equal to the last bit; pages
must have the same words. What names a time, a command, a version or a commit is left out. In a
ledger, status, number and interval must be equal; intervals that were gained and comments that
were worded anew are counted apart. Run it with a Python that has the package's dependencies.
"""

from __future__ import annotations

import csv
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet

TASK = "pointmaze-medium-navigate-v0"
SMALL = "--steps 20 --set batch_size=64,hidden=32,depth=2"
MAIN = "raw,cosine,hybrid,two_head_separate,two_head_joint,td_bilinear,nce_mlp"
COMMANDS = {
    "collect": f"data collect {TASK} --episodes 40 --val-episodes 20 --rows 201 "
    f"--out data/{TASK}.npz",
    "train": f"train --task data/{TASK}.npz {SMALL},embed_dim=16 --critics {MAIN} --out runs",
    "train-tdq": f"train --task data/{TASK}.npz {SMALL} --critics tdq "
    "--seeds 42,43,44,7,101,102,103 --out runs",
    "train-others": f"train --task data/{TASK}.npz {SMALL} --critics OTHERS --seeds 42 --out runs",
    "train-head": f"train --task data/{TASK}.npz {SMALL} --critics value_head --seeds 42 "
    f"--on runs/{TASK}/raw --out runs",
    "semantics": f"study semantics --task data/{TASK}.npz --runs runs --train --steps 20 "
    "--diffusion-steps 2 --triples 300 --negatives 9 --support-queries 40 --n-near 5,20 "
    "--resamples 50 --workers 1 --scorer mine=critic.py:score --out semantics",
    "selection": f"study selection --task data/{TASK}.npz --runs runs --per-group 8 --pool-count 2 "
    "--pool-size 64 --stage queries,pools,reference,exact,euclidean,scores,rollouts "
    "--scorer mine=critic.py:score --out selection",
    "deployment": f"study selection --task data/{TASK}.npz --runs runs --per-group 8 "
    "--pool-count 2 --pool-size 64 --stage deployment --deployed tdq,raw --actor-steps 5 "
    "--episodes 1 --episode-steps 20 --set batch_size=16,hidden=16,depth=2 --out selection",
    "selection-tables": f"study selection --task data/{TASK}.npz --stage tables --out selection",
    "controlled": "study controlled --radii none --seeds 42,43 --steps 100 --sweep loss --workers 2"
    " --out controlled",
    "demo": "demo --out demo",
    "audit": "audit scores.csv --out audit",
    "audit-groups": "audit scores.csv --group group --cluster cluster --unit query --out groups",
    "audit-picks": "audit --picks picks.csv --out picks",
    "audit-baseline": "audit scores.csv --baseline scores.csv --scores b --out baseline",
    "audit-streamed": "audit parts --out streamed",
    "audit-ray": "audit parts --ray local --out on_ray",
    "plan": "plan candidates.csv --scores b --labels 300 --out to_judge.csv",
    "audit-planned": "audit candidates.csv --scores b --plan to_judge.csv --answers answers.csv "
    "--out planned",
    "audit-bounds": "audit gaps.csv --scores b --unjudged bounds --value-range 0,1 --out bounds",
    "choose": "choose scores.csv --out chosen",
    "choose-votes": "choose votes.csv --out voted",
    "check": f"check --task data/{TASK}.npz --scorer mine=critic.py:score --pools uniform "
    "--per-group 8 --pool-size 16 --starts 14 --horizon 20 --follow-k 1,4,16 --out checked",
    "grid": "grid grid.json --small --out grid",
}
"""One command line of the package each, run in this order in an empty folder."""

LATER = ("train-others", "train-head")
"""Commands of checkouts that have critics beyond the paper's."""

CRITIC = """
import numpy as np

def score(states, actions, goals):
    return -np.abs(states[:, :2] + 0.2 * actions - goals[:, :2]).sum(axis=1)
"""

RENDER = """
from pathlib import Path
try:
    from toptail_paper import claims as paper
    from toptail_paper.study.study import studies
except ImportError:  # a checkout before there were two projects
    from toptail.lab import paper
    from toptail.lab.studies.study import studies

stored = Path("stored")
folders = {"controlled": [stored / "controlled"], "semantics": [stored / "semantics"]}
folders["selection"] = sorted(p.parent for p in stored.glob("selection/*/config.json"))
for name, found in folders.items():
    for folder in found:
        paper.annotate(folder, name)
        studies()[name].page(folder)
"""

VOLATILE = {
    *("command", "run", "seconds", "versions", "commit", "machine", "time", "times", "started"),
    *("finished", "earlier", "host", "peak", "memory", "origin", "path", "sources", "created"),
    *("code", "made_of", "config_hash"),
}
"""Keys of JSON files that name a time, a place or a version."""


def make(tree: Path, out: Path) -> None:
    """Run every command of a checkout in ``out``, which must be new."""
    out.mkdir(parents=True)
    (out / "critic.py").write_text(CRITIC)
    _write_tables(out)
    home = tree / "paper" if (tree / "paper").is_dir() else tree
    shutil.copy(home / "plans" / "positives.json", out / "grid.json")
    for name, command in COMMANDS.items():
        others = _others(tree)
        if (name == "audit-ray" and find_spec("ray") is None) or (name in LATER and not others):
            print(f"{name}: not here", flush=True)
            continue
        typed = _typed(command.replace("OTHERS", ",".join(others)).split(), tree)
        print(f"{name}: {' '.join(typed)}", flush=True)
        _run(tree, out, name, "-m", *typed)
        if name == "plan":
            _answer(out)
    for name in ("controlled", "semantics", "selection"):
        shutil.copytree(home / "results" / name, out / "stored" / name)
    print("pages and ledgers of the stored results", flush=True)
    _run(tree, out, "render", "-c", RENDER)


def _others(tree: Path) -> list[str]:
    """The critics of a checkout that no other command trains, but the one that reads a run."""
    files = sorted((tree / "src" / "toptail" / "lab" / "critics").glob("*.py"))
    found = [path.stem for path in files if "\nENTRY = Entry(" in path.read_text(encoding="utf-8")]
    named = {*MAIN.split(","), "tdq", "value_head"}
    return [name for name in found if name not in named] if "value_head" in found else []


def _typed(words: list[str], tree: Path) -> list[str]:
    """A command line as a checkout spells it: module, command, flags."""
    if not (tree / "src" / "toptail" / "commands" / "flags.py").is_file() and "--set" in words:
        at = words.index("--set")  # sizes were flags of their own
        pairs = [pair.split("=") for pair in words[at + 1].split(",")]
        flags = [word for name, x in pairs for word in (f"--{name.replace('_', '-')}", x)]
        words = [*words[:at], *flags, *words[at + 2 :]]
    if (tree / "paper").is_dir():
        return ["toptail_paper" if words[0] in ("study", "grid") else "toptail", *words]
    older = {"grid": ["study", "settle"], "demo": ["demo-pools"]}
    return ["toptail", *older.get(words[0], words[:1]), *words[1:]]


def _answer(out: Path) -> None:
    """Answer what the plan asks for with the table's values."""
    with (out / "scores.csv").open() as file:
        truth = {(row["query"], row["candidate"]): row["value"] for row in csv.DictReader(file)}
    with (out / "to_judge.csv").open() as file:
        asked = [(row["query"], row["candidate"]) for row in csv.DictReader(file)]
    lines = ["query,candidate,value", *(f"{q},{c},{truth[q, c]}" for q, c in asked)]
    (out / "answers.csv").write_text("\n".join(lines) + "\n")


def _run(tree: Path, out: Path, name: str, *arguments: str) -> None:
    home = tree.resolve()
    paths = os.pathsep.join(str(path) for path in (home / "src", home / "paper" / "src"))
    data = str((out / "data").resolve())
    environment = {**os.environ, "PYTHONPATH": paths, "TOPTAIL_DATA": data, "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=out, env=environment, capture_output=True, text=True
    )
    (out / "printed").mkdir(exist_ok=True)
    (out / "printed" / f"{name}.txt").write_text(done.stdout)
    if done.returncode:
        raise SystemExit(f"{name} failed with {done.returncode}:\n{done.stderr}")


def _write_tables(out: Path) -> None:
    """Write a table of scores with groups, clusters, seeds and ties, and one of judged picks."""
    rng = np.random.default_rng(0)
    lines = ["query,candidate,group,cluster,a@1,a@2,b,value"]
    for query in range(60):
        for candidate in range(int(rng.integers(8, 20))):
            value = rng.random()
            a, b = value + rng.normal(0, 0.3, 2)
            row = f"q{query},{candidate},g{query % 3},c{query // 2}"
            lines.append(f"{row},{a:.6f},{b:.6f},{rng.integers(5)},{value:.6f}")
    (out / "scores.csv").write_text("\n".join(lines) + "\n")
    rows = [line.split(",") for line in lines]
    for name, cells in {
        "candidates": [row[:-1] for row in rows],
        "gaps": [[*row[:-1], "" if i % 9 == 1 else row[-1]] for i, row in enumerate(rows)],
        "votes": [
            [*row, "answer" if i == 0 else f"x{int(float(row[-1]) * 4)}"]
            for i, row in enumerate(rows)
        ],
    }.items():
        (out / f"{name}.csv").write_text("\n".join(map(",".join, cells)) + "\n")
    (out / "parts").mkdir()
    table = pyarrow.csv.read_csv(out / "scores.csv")
    for i, start in enumerate(range(0, len(table), 300)):
        pyarrow.parquet.write_table(table.slice(start, 300), out / "parts" / f"part-{i}.parquet")
    picks = ["query,selector,replicate,value"]
    for query in range(40):
        for place, selector in enumerate(("random", "best", "second")):
            values = rng.normal(0.2 * place, 1, 3)
            picks += [f"q{query},{selector},{r},{x:.6f}" for r, x in enumerate(values)]
    (out / "picks.csv").write_text("\n".join(picks) + "\n")


def compare(old: Path, new: Path) -> int:
    """Print what differs between two folders that `make` wrote; return how many files do."""
    counts: dict[str, int] = {}
    reworded = _reworded(old, new)
    different = 0
    names = sorted({*_names(old), *_names(new)})
    for name in names:
        kind = "page" if name.endswith(".html") else Path(name).suffix
        problems = list(_differences(old / name, new / name, reworded.get(Path(name).parent, {})))
        counts[kind] = counts.get(kind, 0) + 1
        different += bool(problems)
        for problem in problems[:5]:
            print(f"{name}: {problem}")
    found = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    print(f"Compared {len(names)} files ({found}): {different} differ.")
    print(f"Comments in ledgers that were worded anew: {sum(map(len, reworded.values()))}.")
    return different


def _reworded(old: Path, new: Path) -> dict[Path, dict[str, str]]:
    """Folder -> comments of its old ledger, as the new one words them."""
    found: dict[Path, dict[str, str]] = {}
    for path in old.rglob("claims.json"):
        beside = new / path.relative_to(old)
        if beside.is_file():
            later = {row["id"]: row for row in json.loads(beside.read_text())}
            for one in json.loads(path.read_text()):
                other = later.get(one["id"], one)
                if one["comment"] != other["comment"]:
                    folder = found.setdefault(path.parent.relative_to(old), {})
                    folder[one["comment"]] = other["comment"]
                if one["interval"] is None and other["interval"] is not None:
                    print(f"{path.relative_to(old)}: {one['id']} gained an interval")
    return found


def _names(folder: Path) -> Iterator[str]:
    skipped = ("measured", "figures", "printed")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not set(name.parts) & set(skipped) and path.suffix != ".lock":
            yield name.as_posix()


def _differences(old: Path, new: Path, reworded: Mapping[str, str]) -> Iterator[str]:
    if not old.is_file() or not new.is_file():
        yield "is there only " + ("after" if new.is_file() else "before")
    elif old.suffix == ".npz":
        yield from _arrays(old, new)
    elif old.name == "claims.json":
        yield from _ledger(json.loads(old.read_text()), json.loads(new.read_text()))
    elif old.suffix == ".json":
        yield from _json(json.loads(old.read_text()), json.loads(new.read_text()), "")
    elif old.suffix == ".jsonl":
        lines = zip(old.read_text().splitlines(), new.read_text().splitlines(), strict=True)
        for one, other in lines:
            yield from _json(json.loads(one), json.loads(other), "")
    elif old.suffix in (".html", ".md", ".tex"):
        yield from _words(old.read_text(), new.read_text(), reworded)
    elif old.suffix == ".safetensors":
        if _tensors(old) != _tensors(new):
            yield "other tensors"
    elif old.read_bytes() != new.read_bytes():
        yield "other bytes"


def _arrays(old: Path, new: Path) -> Iterator[str]:
    def digests(path: Path) -> dict[str, str]:
        with zipfile.ZipFile(path) as members:
            return {
                name: hashlib.sha256(members.read(name)).hexdigest()
                for name in members.namelist()
                if name != "header.npy"
            }

    one, other = digests(old), digests(new)
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            yield f"array {name}"
    yield from _json(_header(old), _header(new), "")


def _header(path: Path) -> list[Any]:
    """What the header of a stored file says, less the name of its format and its hash."""
    with np.load(path) as arrays:
        words = (
            [str(word) for word in np.atleast_1d(arrays["header"])] if "header" in arrays else []
        )
    return [json.loads(word) for word in words if word.startswith("{")]


def _ledger(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Iterator[str]:
    """Everything of the claims but their comments; an interval may be gained."""
    if [entry["id"] for entry in old] != [entry["id"] for entry in new]:
        yield "other claims, or in another order"
        return
    for one, other in zip(old, new, strict=True):
        gained = {"interval"} if one["interval"] is None else set()
        less = {"comment", "run", *gained}
        yield from _json(
            {key: value for key, value in one.items() if key not in less},
            {key: value for key, value in other.items() if key not in less},
            one["id"],
        )


def _tensors(path: Path) -> dict[str, str]:
    """Names, types, shapes and bytes of a safetensors file, whatever else its header says."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    described = json.loads(content[8 : 8 + length])
    described.pop("__metadata__", None)
    data = content[8 + length :]
    return {
        name: f"{entry['dtype']} {entry['shape']} "
        + hashlib.sha256(data[slice(*entry["data_offsets"])]).hexdigest()
        for name, entry in described.items()
    }


def _json(old: Any, new: Any, where: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new} - VOLATILE):
            if key not in old or key not in new:
                yield f"{where}/{key} is there only {'after' if key in new else 'before'}"
            else:
                yield from _json(old[key], new[key], f"{where}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _json(one, other, f"{where}/{at}")
    elif old != new and not (_is_hash(old) and _is_hash(new)):
        yield f"{where}: {_short(old)} before, {_short(new)} after"


def _is_hash(value: Any) -> bool:
    """Whether a value is a hash of a file: files whose headers name versions have other ones."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{16,64}", value) is not None


def _short(value: Any) -> str:
    return json.dumps(value)[:120]


def _words(old: str, new: str, reworded: Mapping[str, str]) -> Iterator[str]:
    one, other = _text(old), _text(new)
    for before, after in reworded.items():
        one = one.replace(_text(before), _text(after))
    a, b = one.split(), other.split()
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    for what, i, j, k, m in matcher.get_opcodes() if a != b else ():
        if what != "equal":
            yield f"{' '.join(a[i:j])[:120]!r} before, {' '.join(b[k:m])[:120]!r} after"


def _text(page: str) -> str:
    """The words of a page without tags, pictures, times, versions and places."""
    bare = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page)
    bare = html.unescape(re.sub(r"(?s)<[^>]+>", " ", bare))
    dated = r"[0-9.,]+ (s|seconds|minutes)\b|\b[0-9a-f]{12,64}(\+changes)?|\S*/(tmp|work)/\S*"
    words = " ".join(re.sub(dated, "", bare).replace("\\|", "|").split())
    return re.sub(r" ([,.;:)])", r"\1", words)  # a tag before a comma is no word


def main() -> int:
    """Read the command line."""
    match sys.argv[1:]:
        case ["make", tree, out]:
            make(Path(tree), Path(out))
            return 0
        case ["compare", old, new]:
            return int(compare(Path(old), Path(new)) > 0)
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main())
