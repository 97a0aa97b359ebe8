"""After a run: theory checks, claim ledger, figures and the report page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toptail.lab.paper import annotate
from toptail.lab.studies.controlled.page import write_study_report

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
    annotate(out, "controlled")
    return write_study_report(out)
