"""``python -m toptail``."""

from toptail.cli import run

run()
