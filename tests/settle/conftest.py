"""Fixtures of these tests."""

from tests.compiling import quick_compiler as quick_compiler
