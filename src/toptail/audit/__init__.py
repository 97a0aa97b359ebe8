"""Diagnostics and verdicts over the containers; no drawing, no networks."""
