"""Scores of candidates: of trained runs, functions of the user, foreign checkpoints."""
