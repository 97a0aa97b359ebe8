"""One call from a critic to its verdicts: `toptail.lab.check.run.check`, also ``toptail.check``."""
