"""After a run: theory checks, claim ledger, figures and the report page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toptail.lab.paper import CONTROLLED, Claim, decide, render_markdown
from toptail.lab.paper.ledger import Tables
from toptail.lab.studies.controlled.page import write_study_report
from toptail.lab.studies.controlled.results import read_study
from toptail.lab.studies.folder import read_json, write_json
from toptail.pools.files import atomic

if TYPE_CHECKING:
    from toptail.lab.studies.controlled import StudyConfig


def finish_controlled(config: StudyConfig, out: str | Path) -> Path:
    """Check the theory on a trained critic, decide the claims, and render everything.

    Returns
    -------
    The path of ``report.html``.
    """
    from toptail.lab.studies.controlled.theory.trained import write_theory

    write_theory(config, out)
    write_claims(out)
    return write_study_report(out)


def write_claims(out: str | Path) -> list[dict[str, Any]]:
    """Decide every claim of the controlled study that its stored files decide."""
    study = read_study(out)
    return write_ledger(Path(out), CONTROLLED, study.results(), study.record)


def decide_stored(
    out: str | Path, claims: Iterable[Claim], **more: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Decide every claim that a folder's ``tables/``, and ``more`` by name, decide."""
    folder = Path(out)
    results = {path.stem: read_json(path) for path in sorted((folder / "tables").glob("*.json"))}
    record = folder / "record.json"
    return write_ledger(
        folder, claims, results | more, read_json(record) if record.is_file() else {}
    )


def write_ledger(
    out: Path, claims: Iterable[Claim], results: Tables, record: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Decide the claims that the results decide; store ``claims.json`` and ``claims.md``."""
    run = f"{record.get('command', '')} (config {record.get('config_hash', '')})"
    entries, left_open = decide(claims, results, run.strip())
    write_json(out / "claims.json", entries)
    text = "# What the paper says, and what this run saw\n\n" + render_markdown(entries)
    if left_open:
        text += "\nNot decided by this run (it made no table for them):\n\n"
        text += "".join(f"- {claim.sentence} (`{claim.where}`)\n" for claim in left_open)
    atomic(out / "claims.md", lambda path: _write(path, text))
    return entries


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
