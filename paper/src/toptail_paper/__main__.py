"""``python -m toptail_paper``."""

from toptail_paper.cli import run

run()
