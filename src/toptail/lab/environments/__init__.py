"""Environments that can be put into a stored row and stepped: the protocol, adapters, rollouts."""

from toptail.lab.environments.protocol import Environment, EnvironmentBatch, StoredRow, stored_rows

__all__ = ["Environment", "EnvironmentBatch", "StoredRow", "stored_rows"]
