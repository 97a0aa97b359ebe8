"""The semantics study: what a learned score means on recorded triples, on every task.

`scoring.score_tasks` draws triples and candidates, samples behaviour models, scores all of it
with trained runs and with a user's own critics, and stores the scores. `load.read_tasks` reads
them back; tables, curves, claims, figures and the page are made of stored scores alone, without a
network and without JAX. `train.train_semantics` trains what is not there yet. What a study leaves
in its folder is listed in ``docs/semantics.md``; `draws.draw` and `draws.propose` say which arrays
``draws.npz`` and ``proposals.npz`` hold.

``scores/TASK/COLUMN.npz`` has one column (``raw@42``, ``two_head_joint.f_cos@43``, or a user's
name): ``scores`` [n], ``negatives`` [n, m], ``hard_negatives``, ``second_goals`` (NaN where there
is none) and ``next_scores`` [n], further scalars of the same network ``readout/NAME`` [n], and on
navigation tasks ``support/E/N`` [q, pool]; with behaviour models ``query_means`` and ``query_std``
[n] (divisor: the number of actions) and ``diffusion/SEED`` [n]. The header holds ``column``,
``origin`` (which run or file, with hashes), ``step_reward``, and the hashes of the ``draws`` and
``proposals`` it was scored on. The value oracle is the column ``oracle@SEED``.

A file that is there and whose hashes fit is never computed again. A column is scored again when
its run, its draws or its proposals are others; a user's critic also when it scores the triples
otherwise. Draws of other settings are refused: they belong into another folder.
"""
