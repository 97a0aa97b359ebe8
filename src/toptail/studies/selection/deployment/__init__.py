"""Deployment scope: what a critic does inside an actor, and as an objective at every step."""

from toptail.studies.selection.deployment.config import DeploymentConfig
from toptail.studies.selection.deployment.run import run_deployment

__all__ = ["DeploymentConfig", "run_deployment"]
