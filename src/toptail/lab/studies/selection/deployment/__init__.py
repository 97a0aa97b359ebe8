"""Deployment scope: what a critic does inside an actor, and as an objective at every step."""

from toptail.lab.studies.selection.deployment.config import DeploymentConfig
from toptail.lab.studies.selection.deployment.run import run_deployment

__all__ = ["DeploymentConfig", "run_deployment"]
