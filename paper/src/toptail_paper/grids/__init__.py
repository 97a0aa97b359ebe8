"""Questions that a grid of trainings decides: a declared grid in, an answer with its cells out.

A grid is declared in a file that is committed before anything runs: what is trained, with which
seeds, what is read, and what would count as an answer. Grids read with the instruments of several
studies, so that this package may import all of them.
"""
