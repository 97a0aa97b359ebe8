"""Critics at full size, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from toptail.errors import InputError
from toptail.lab.critics.base import Critic
from toptail.lab.critics.bellman import Bellman, Reward
from toptail.lab.critics.registry import load, names


def full_size(
    name: str,
    *,
    reward: Reward = "-1/0",
    td_weight: float | None = None,
    **settings: Any,
) -> Critic:
    """Build the critic of that name; settings that it does not have are ignored.

    A setting is a field of the critic's class, or of the settings inside it (its encoders, say).
    Where the critic does not say otherwise, the defaults are the reference agents': three hidden
    layers of 512, embeddings of 512, two copies of each network, expectile 0.9, discount 0.99,
    target rate 0.005.

    ``td_weight`` is the weight of the Bellman loss beside the contrastive one (hybrid and
    two-head critics). Unless given, it measures the TD error in units of the value's range, which
    is 1 / (1 - gamma) for the reward -1/0 and 1 for 0/1. In plain units the Bellman loss of the
    former is ten thousand times larger and leaves nothing of the contrastive one.
    """
    for setting in settings.keys() - _known():
        raise InputError(f"No critic has a setting '{setting}'.")
    if td_weight is None:
        gamma = settings.get("gamma", Bellman.gamma)
        td_weight = (1.0 - gamma) ** 2 if reward == "-1/0" else 1.0
    critic: Critic = _filled(load(name)(), {**settings, "td_weight": td_weight})
    return critic


@cache
def _known() -> frozenset[str]:
    """Every setting that some critic has."""
    return frozenset(found for name in names() for found in setting_names(load(name)()))


def setting_names(learner: Any) -> Iterator[str]:
    """Names of all fields of a learner, and of the settings inside them."""
    for field in fields(learner):
        yield field.name
        inner = getattr(learner, field.name)
        if is_dataclass(inner):
            yield from setting_names(inner)


def _filled(default: Any, settings: Mapping[str, Any]) -> Any:
    """A dataclass with the settings that it and the dataclasses inside it have; the rest stays."""
    own = {}
    for field in fields(default):
        inner = getattr(default, field.name)
        if field.name in settings:
            own[field.name] = settings[field.name]
        elif is_dataclass(inner):
            own[field.name] = _filled(inner, settings)
    return replace(default, **own)
