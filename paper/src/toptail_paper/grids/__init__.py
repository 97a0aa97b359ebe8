"""Questions that a grid of trainings decides: a declared plan in, an answer with its cells out.

A plan is a file that is written, and committed, before anything runs: the grid, the seeds, what is
read, and what would count as an answer. It may ask several studies' instruments, which is why this
room stands behind the studies.
"""
