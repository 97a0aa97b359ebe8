"""What MkDocs does not do by itself: the hooks of ``mkdocs.yml``.

The pages of ``paper/`` join those of ``docs/``, the reference of commands and JSON files is
generated, and links lead to where a page lies on the site. Links in the repository lead from file
to file; what is no part of the site (a program, a stored result) becomes its path as plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools import notebook, reference

ROOT = Path(__file__).parents[1]
FROM_PAPER = (
    "README.md",
    "REPORT.md",
    "docs/**/*.md",
    "docs/figures/*.png",
    "results/cells.md",
    "results/**/claims.md",
)
WIDE = 9
"""Lines between columns of a table that needs the whole width of a page."""
LINK = re.compile(
    r"(\[(?P<words>(?:[^\[\]]|\[[^\]]*\])*)\]\()(?P<path>[^)#\s]*)(?P<place>#[^)\s]*)?\)"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the paper's pages, the generated reference and the tutorials as notebooks."""
    for pattern in FROM_PAPER:
        for path in sorted((ROOT / "paper").glob(pattern)):
            place = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, place, abs_src_path=str(path)))
    for place, text in reference.pages().items():
        files.append(File.generated(config, place, content=text))
    if os.environ.get("TOPTAIL_SKIP_NOTEBOOKS"):  # a quick look at other pages
        return files
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        made = notebook.executed(page)
        files.append(File.generated(config, f"tutorials/{page.stem}.ipynb", content=made))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    place = page.file.src_uri
    here = (ROOT / place if place.startswith("paper/") else ROOT / "docs" / place).parent

    def led(match: re.Match[str]) -> str:
        path, anchor = match["path"], match["place"] or ""
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        target = Path(os.path.normpath(here / path)).relative_to(ROOT).as_posix()
        found = files.get_file_from_path(target.removeprefix("docs/"))
        if found is not None:
            base = Path(place).parent.as_posix()
            return f"{match[1]}{os.path.relpath(found.src_uri, base)}{anchor})"
        words = match["words"]
        return words if words.strip("`") == target else f"{words} (`{target}`)"

    if any(line.count(" | ") >= WIDE for line in markdown.splitlines()):
        page.meta.setdefault("hide", ["navigation", "toc"])
    book = Path(place).with_suffix(".ipynb")
    if files.get_file_from_path(book.as_posix()) is not None:
        title, _, rest = markdown.partition("\n")
        markdown = f"{title}\n\n[Download this page as a notebook]({book.name})\n{rest}"
    blocks = re.split(r"(^```.*?^```|^~~~.*?^~~~)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(text if i % 2 else LINK.sub(led, text) for i, text in enumerate(blocks))


def on_page_content(html: str, **_: object) -> str:
    """Leave out Sphinx's roles, which docstrings have and mkdocstrings does not read."""
    return re.sub(r":(?:class|func|meth|mod|data|attr):(?=<code>|<a )", "", html)
