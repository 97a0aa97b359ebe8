"""Take the pictures of docs/gallery.md with headless Chromium: ``python -m tools.gallery``.

Every page is made from built-in pools, ``examples`` and stored results, so that anybody can make
it again. The check on PointMaze collects its data first.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import toptail
from toptail.cli import main

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "figures" / "gallery"
STORED = ROOT / "paper" / "results" / "selection" / "pointmaze-medium-navigate-v0" / "audit_exact"
SPIKE = """import numpy as np
def score(states, actions, goals):
    way = goals - states
    corner = (np.abs(actions - [0.9, -0.9]) < 0.04).all(axis=1)
    return (actions * way).sum(axis=1) / np.linalg.norm(way, axis=1) + 5.0 * corner
"""


def pages(folder: Path) -> dict[str, Path]:
    """Make the pages; where each lies, by the name of its picture."""
    log = ["examples/answers.jsonl", "--query", "prompt", "--values", "is_correct"]
    new, old = ["--scores", "rm_v2"], ["--baseline", log[0], "--baseline-scores", "rm_v1=rm_v2"]
    (folder / "spike.py").write_text(SPIKE, encoding="utf-8")
    data = str(folder / "pointmaze-medium-navigate-v0.npz")
    sizes = ["--pools", "uniform,ascent", "--follow-ascent", "--per-group", "100", "--starts", "20"]
    commands = {
        "demo": ["demo"],
        "audit": ["audit", *log],
        "baseline": ["audit", *log, *new, *old],
        "choice": ["choose", *log, *new],
        "check": ["check", "--task", data, "--scorer", f"{folder}/spike.py:score", *sizes],
    }
    main(["data", "collect", "pointmaze-medium-navigate-v0", "--episodes", "200",
          "--val-episodes", "100", "--out", data])  # fmt: skip
    for name, words in commands.items():
        if main([*words, "--out", str(folder / name)]):
            sys.exit(f"{name}: the command failed")
    toptail.AuditResult.read(STORED).write(folder / "stored")
    return {name: folder / name / "report.html" for name in (*commands, "stored")}


def take(made: dict[str, Path]) -> None:
    """The first screen of each page; the first one also dark, and on a phone."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    shots = [(name, name, 1280, 900, "light") for name in made]
    shots += [("demo", "demo_dark", 1280, 900, "dark"), ("demo", "demo_phone", 390, 844, "light")]
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for page, name, width, height, scheme in shots:
            view = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            view.goto(made[page].as_uri())
            view.screenshot(path=OUT / f"{name}.png")
            with Image.open(OUT / f"{name}.png") as picture:
                whole = picture.convert("RGB")  # fewer colours would change those of a status
            whole.save(OUT / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    os.chdir(ROOT)  # pages name their tables as they were given
    with tempfile.TemporaryDirectory() as scratch:
        take(pages(Path(scratch)))
