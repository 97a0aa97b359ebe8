"""Deployment scope: what a critic does inside an actor, and as an objective at every step."""

from toptail_paper.selection.deployment.config import DeploymentConfig
from toptail_paper.selection.deployment.run import Deployment

__all__ = ["Deployment", "DeploymentConfig"]
