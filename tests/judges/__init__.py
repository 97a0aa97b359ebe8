"""Tests of what a candidate is worth."""
