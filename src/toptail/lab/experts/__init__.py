"""Low-level walkers: bodies stepped in batches, the learner that trains them, and their actors.

`actor` and `evaluate` need NumPy and the extra `sim` alone; `learner` and `train` need JAX too.
"""
