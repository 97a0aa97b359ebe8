"""Benchmarks: both sides of every speed claim, measured in one run."""
