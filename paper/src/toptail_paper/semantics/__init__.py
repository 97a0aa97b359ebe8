"""The semantics study: what a learned score means on recorded triples, on every task.

`scoring.score_tasks` draws triples and candidates, samples behaviour models, scores all of it
with trained runs and with a user's own critics, and stores the scores. `load.read_tasks` reads
them back; tables, curves, claims, figures and the page are made of stored scores alone, without a
network and without JAX. `train.train_semantics` trains what is not there yet.

What a study leaves in its folder
---------------------------------
``config.json`` and ``record.json``
    The configuration of the last call, and where its results come from; ``units`` counts columns.
``scores/TASK/draws.npz``
    What every scorer is shown, as rows of the data set's split: the triples ``rows``,
    ``goal_rows`` and ``trajectory`` [n]; ``negative_rows`` [n, m], goals of triples on other
    trajectories; ``hard_negative_rows`` [n], the goal of the nearest state elsewhere;
    ``second_goal_rows`` [n], another goal on the same trajectory (-1 where there is none). On
    navigation tasks also support pools at the states of the first q triples:
    ``support/E/N`` [q, pool], the rows whose actions are the candidates (first half: of the N
    nearest states; second half: of random ones), and ``on_support/E/N`` [q, pool], whether a
    candidate's row is among the N nearest. E says what is left out: the anchor's own ``row`` or
    its whole ``trajectory``. Last rows of trajectories are never candidates.
``scores/TASK/proposals.npz``
    Navigation tasks with behaviour models ``RUNS/TASK/diffusion/seed-N``: ``centering``
    [n, actions, a] of the first seed's model, and one action per (s, g) of each model,
    ``diffusion/SEED`` [n, a]. The header names the runs and has each model's ``loss_gaps``.
``scores/TASK/COLUMN.npz``
    One column (``raw@42``, ``two_head_joint.f_cos@43``, or a user's name): ``scores`` [n],
    ``negatives`` [n, m], ``hard_negatives``, ``second_goals`` (NaN where there is none) and
    ``next_scores`` [n], further scalars of the same network ``readout/NAME`` [n], and on
    navigation tasks ``support/E/N`` [q, pool]; with behaviour models ``query_means`` and
    ``query_std`` [n] (divisor: the number of actions) and ``diffusion/SEED`` [n]. The header
    holds ``column``, ``origin`` (which run or file, with hashes), ``step_reward``, and the
    hashes of the ``draws`` and ``proposals`` it was scored on. The value oracle is the column
    ``oracle@SEED``.
``scores/TASK/values/NAME.npz``
    ``values`` [n]: what a judge that is no critic says of the triples. On point mazes, where the
    simulator is installed, ``exact``: gamma to the fewest steps, the action's included; and
    ``euclidean``: gamma to the Euclidean length of the shortest way from where the action leads,
    in units of 0.2.
``scores/temperature/TASK/``
    The same for the temperature study, with triples of its own and columns
    ``binary_nce-0.05@0``, ``symmetric_info_nce-learned@2``: ``scores`` and ``negatives`` only.
``scores/seen/TASK/``
    The same for triples of the training split, where the study draws from the validation split:
    every column but the oracle's, without support pools and behaviour models.
``measured/``
    The diagnostics of every column, so that none is measured twice; it may be deleted.
``tables/NAME.json``, ``curves.json``, ``claims.json``, ``claims.md``, ``figures/``, ``report.html``
    What is made of the scores.

A file that is there and whose hashes fit is never computed again. A column is scored again when
its run, its draws or its proposals are others; a user's critic also when it scores the triples
otherwise. Draws of other settings are refused: they belong into another folder.
"""
