"""A critic of one's own, in PyTorch: a module behind a function of NumPy arrays.

    TORCH_CRITIC=weights.pt toptail-paper study semantics --task antmaze-medium-navigate-v0 \
        --runs RUNS --out OUT --scorer mine@42=examples/torch_critic.py:make_score

``make_score`` takes no argument and is called once; what it returns is called with blocks of rows.
Replace `Critic` by the module that was trained. The weights file is a ``state_dict``; without one
the module is untrained, which is enough to see that everything is connected.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

Rows = NDArray[np.float32]

BATCH = 4096
"""Rows on the device at a time."""


class Critic(torch.nn.Module):
    """Q(s, a, g): a plain multilayer perceptron on the concatenated inputs."""

    def __init__(self, inputs: int, hidden: int = 256) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden),
            torch.nn.GELU(),
            torch.nn.Linear(hidden, hidden),
            torch.nn.GELU(),
            torch.nn.Linear(hidden, 1),
        )

    def forward(
        self, states: torch.Tensor, actions: torch.Tensor, goals: torch.Tensor
    ) -> torch.Tensor:
        """Return one score per row ``[n]``."""
        return self.layers(torch.cat([states, actions, goals], dim=-1)).squeeze(-1)


def make_score() -> Callable[[Rows, Rows, Rows], Rows]:
    """Return ``score(states, actions, goals)``; the module is built at the first call.

    Only then are the sizes of states and actions known. If the critic was trained with a reward of
    -1 per step, set ``score.step_reward = -1.0`` so that its Bellman consistency is measured in
    its own terms.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    critic: Critic | None = None

    @torch.no_grad()
    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        nonlocal critic
        if critic is None:
            inputs = states.shape[1] + actions.shape[1] + goals.shape[1]
            critic = load(inputs).to(device).eval()
        parts = []
        for start in range(0, len(states), BATCH):
            block = slice(start, start + BATCH)
            rows = (torch.as_tensor(x[block]).to(device) for x in (states, actions, goals))
            parts.append(critic(*rows).float().cpu().numpy())
        return np.concatenate(parts)

    return score


def load(inputs: int) -> Critic:
    """Build the module, with the weights that TORCH_CRITIC names if it names any."""
    torch.manual_seed(0)  # an untrained critic is the same one every time
    critic = Critic(inputs)
    path = os.environ.get("TORCH_CRITIC")
    if path:
        # Tensors only: a weights file must not be able to run code.
        critic.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return critic
