"""Selectors, and the honest choice among them; trains nothing."""
