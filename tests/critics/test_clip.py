"""The clipped raw critic: its loss, and scores that end at the limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.facts import ENCODERS, LN2, OF_RAW, Facts, of_members, raw
from tests.critics.full_cases import SLOW, Case, make, pool, random_batch
from toptail.errors import InputError
from toptail.lab.critics.clip import Clip


def clipped(products: Any) -> Any:
    return np.minimum(np.maximum(products / np.sqrt(SLOW.embed_dim), -Clip.limit), Clip.limit)


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    del frozen
    phi, psi = slow.embed(params, set_, rows.states, rows.actions, rows.goals)
    logits = [clipped(p @ q.T) for p, q in zip(phi, psi, strict=True)]
    loss, info = slow.contrast(np.array(logits), set_.contrast)
    return {"loss": loss, **info}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    phi, psi = slow.embed(params, SLOW, s, a, g)
    return raw(params, s, a, g) | of_members("f_clip", clipped((phi * psi).sum(axis=-1)))


NAMES = OF_RAW | {"f_clip", "f_clip_min", "f_clip_lcb"}
FACTS = Facts(LN2, "f_clip", ENCODERS, slow_loss, slow_reads, NAMES, embeds=True)


def test_scores_end_at_the_limit() -> None:
    c = Case(make("clip", limit=0.01))
    scores = c.read(c.params, *pool(random_batch()))["f_clip"]
    np.testing.assert_allclose(np.abs(scores).max(), 0.01, rtol=1e-6)
    for settings in ({"limit": 0.0}, {"positive_weight": 2.0}):
        with pytest.raises(InputError, match=next(iter(settings))):
            Clip(**settings)  # type: ignore[arg-type]
