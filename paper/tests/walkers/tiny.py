"""Settings with which a training takes seconds."""

from __future__ import annotations

from dataclasses import replace

from toptail_paper.walkers.settings import ExpertSettings, small


def tiny(body: str) -> ExpertSettings:
    """The smallest training that still updates, evaluates and chooses."""
    return replace(
        small(body),
        environments=10,
        replay=1000,
        batch=16,
        actor=(16,),
        critic=(16,),
        atoms=11,
        warmup=5,
        actor_updates=1,
        final_episodes=2,
    )
