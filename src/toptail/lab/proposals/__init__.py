"""Where candidates come from."""

from toptail.lab.proposals.gaussian import clipped_gaussian

__all__ = ["clipped_gaussian"]
