"""The finished selection folder, whose tables decide the claims about it."""

from paper.tests.selection.conftest import finished

__all__ = ["finished"]
