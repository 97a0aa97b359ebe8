"""The semantics study's tables as Markdown: every measured cell beside the paper's."""

from __future__ import annotations

from pathlib import Path

from toptail_paper.semantics.results import read_semantics
from toptail_paper.semantics.specs import TABLES
from toptail_paper.study.compare import DIFFERS, where_compared
from toptail_paper.study.show import markdown_sections

_LEGEND = (
    "Measured mean ± standard deviation over seeds, the 95 % interval of that mean (whole "
    f"trajectories resampled)⟦, and the paper's number. {DIFFERS}⟧."
)


def render(out: str | Path) -> str:
    """One section per stored table of a study's folder, the paper's cell beside each measured."""
    study = read_semantics(out)
    legend = where_compared(_LEGEND, compared=study.has_paper)
    return "\n\n".join([legend, *markdown_sections(list(TABLES.values()), study)]) + "\n"
