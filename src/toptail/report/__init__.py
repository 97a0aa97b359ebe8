"""Pages, figures, Markdown, LaTeX and text of an audit or a choice, from stored results alone."""
