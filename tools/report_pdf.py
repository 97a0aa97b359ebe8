"""A Markdown file as a PDF beside it, for ``make report``: ``python tools/report_pdf.py FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

from markdown_it import MarkdownIt
from weasyprint import HTML

STYLE = """
@page { size: A4; margin: 18mm 16mm; @bottom-center { content: counter(page); font-size: 8pt } }
body { font: 9pt/1.35 "DejaVu Serif", serif }
h1 { font-size: 15pt } h2 { font-size: 11.5pt; margin: 1em 0 .3em; break-after: avoid }
p, ul, ol { margin: .4em 0 } ul, ol { padding-left: 1.3em }
table { border-collapse: collapse; font-size: 7.5pt; width: 100%; margin: .6em 0 }
th, td { border-bottom: .4pt solid #888; padding: 1.5pt 3pt; text-align: left; vertical-align: top }
img { max-width: 78%; display: block; margin: auto }
tr { break-inside: avoid } a { color: #224; text-decoration: none } code { font-size: 8pt }
"""


def main(path: Path) -> None:
    body = MarkdownIt("commonmark").enable("table").render(path.read_text(encoding="utf-8"))
    page = f"<html lang=en><style>{STYLE}</style><body>{body}</body></html>"
    HTML(string=page, base_url=str(path.parent)).write_pdf(path.with_suffix(".pdf"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
