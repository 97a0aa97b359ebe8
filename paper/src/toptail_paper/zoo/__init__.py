"""Critics beyond the paper's: whether they are safe to maximize, and whether one can be cured."""
