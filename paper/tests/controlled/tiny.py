"""The controlled study in miniature: seconds instead of minutes, every part of it."""

from __future__ import annotations

from toptail_paper.controlled.config import CriticSettings, StudyConfig

TINY = StudyConfig(
    critics=CriticSettings(hidden=(4,), embed_dim=2, ensemble=1, layer_norm=False),
    steps=4,
    batch_size=8,
    data_size=64,
    seeds=(1, 2),
    queries=12,
    pool=8,
    heldout=20,
    resamples=100,
    grid=5,
    workers=1,
    sweep_steps=(4, 8, 12),
    sweep_temperatures=(0.1, 1.0),
    sweep_shares=(0.5, 1.0),
    sweep_noises=(0.25,),
)
"""A study of a few steps."""
