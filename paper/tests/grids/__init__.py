"""Declared plans, from their files to their answers."""
