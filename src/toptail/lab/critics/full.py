"""Critics at full size, built by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from toptail.errors import InputError
from toptail.lab.critics.base import Critic
from toptail.lab.critics.bellman import Bellman, Reward
from toptail.lab.critics.registry import load, names

Settings = TypeVar("Settings")
"""A dataclass of settings, such as a critic."""


def full_size(
    name: str,
    *,
    reward: Reward = "-1/0",
    td_weight: float | None = None,
    **settings: Any,
) -> Critic:
    """Build a critic; settings that other critics have and this one has not are ignored.

    A setting is a field of the critic's class, or of the settings inside it (its encoders, say).
    The usual defaults are those of the reference agents: three hidden layers of 512, embeddings of
    512, two copies of each network, expectile 0.9, discount 0.99, target rate 0.005.

    ``td_weight`` is the weight of the Bellman loss in critics that add it to a contrastive one. By
    default the TD error is measured in units of the value's range, which is 1 / (1 - gamma) for
    the reward -1/0 and 1 for 0/1: otherwise, with -1/0, the Bellman loss is ten thousand times
    larger and leaves nothing of the contrastive one.
    """
    for setting in settings.keys() - _known():
        raise InputError(f"No critic has a setting '{setting}'.")
    if td_weight is None:
        gamma = settings.get("gamma", Bellman.gamma)
        td_weight = (1.0 - gamma) ** 2 if reward == "-1/0" else 1.0
    return with_settings(load(name)(), {**settings, "td_weight": td_weight})


@cache
def _known() -> frozenset[str]:
    return frozenset(setting for name in names() for setting, _ in setting_values(load(name)()))


def setting_values(learner: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of all fields of a learner, and of the settings inside them."""
    for field in fields(learner):
        value = getattr(learner, field.name)
        yield field.name, value
        if is_dataclass(value):
            yield from setting_values(value)


def with_settings(default: Settings, settings: Mapping[str, Any]) -> Settings:
    """A copy in which every field named in ``settings`` is replaced, also in nested dataclasses."""
    own = {}
    for field in fields(default):  # type: ignore[arg-type]
        value = getattr(default, field.name)
        if field.name in settings:
            own[field.name] = settings[field.name]
        elif is_dataclass(value):
            own[field.name] = with_settings(value, settings)
    return replace(default, **own)  # type: ignore[type-var]
