"""Who says what a candidate is worth."""

from toptail.lab.judges.closed_form import ClosedFormJudge

__all__ = ["ClosedFormJudge"]
