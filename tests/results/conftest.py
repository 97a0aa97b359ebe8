"""Fixtures of these tests."""

from tests.audit.conftest import no_figures

__all__ = ["no_figures"]
