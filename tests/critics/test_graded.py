"""Graded contrast: its loss pair by pair, and what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.facts import ENCODERS, LN2, OF_RAW, Facts, raw
from toptail.errors import InputError
from toptail.lab.critics.graded import Graded


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    """Cross-entropy of each pair with its label: gamma^d on the diagonal, 0 elsewhere."""
    phi, psi = slow.embed(params, set_, rows.states, rows.actions, rows.goals)
    losses = []
    for p, q in zip(phi, psi, strict=True):
        x = p @ q.T / np.sqrt(set_.embed_dim)
        for i, j in itertools.product(range(len(x)), repeat=2):
            label = set_.gamma ** rows.offsets[i] if i == j else 0.0
            yes, no = slow.cross_entropy(x[i, j], True), slow.cross_entropy(x[i, j], False)
            losses.append(label * yes + (1 - label) * no)
    return {**slow.raw(params, frozen, rows, set_), "loss": float(np.mean(losses))}


FACTS = Facts(LN2, "f_raw", ENCODERS, slow_loss, raw, OF_RAW, embeds=True)


def test_a_softmax_has_no_labels() -> None:
    with pytest.raises(InputError, match="no labels to grade"):
        Graded(contrast="symmetric_info_nce")
