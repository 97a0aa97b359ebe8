"""The finished selection folder, whose tables decide the claims about it."""

from tests.selection.conftest import finished

__all__ = ["finished"]
