"""Everything that is rendered from a stored audit."""

from __future__ import annotations

from pathlib import Path

from toptail.io.files import write_texts
from toptail.report.figures import save_figures
from toptail.report.html import render_html
from toptail.report.latex import render_latex
from toptail.report.markdown import render_markdown
from toptail.report.text import Audit


def render(audit: Audit, folder: Path) -> list[Path]:
    """Write ``audit.md``, ``audit.tex``, ``report.html`` and ``figures/``; returns their paths.

    The folder exists: the caller stages it, so that readers never see half of it.
    """
    texts = {
        "audit.md": render_markdown(audit),
        "audit.tex": render_latex(audit),
        "report.html": render_html(audit),
    }
    write_texts(folder, texts)
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    return [*(folder / name for name in texts), *save_figures(audit, figures)]
