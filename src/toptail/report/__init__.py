"""Figures, one self-contained HTML page, Markdown and LaTeX, from a stored audit alone."""
