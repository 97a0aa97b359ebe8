"""Environments that can be put into a stored row and stepped: the protocol, adapters, rollouts."""
