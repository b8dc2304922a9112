"""One immutable snapshot of everything declared: what engines execute."""

from situ.model.deployment import Deployment, canonical
from situ.model.diff import ChangeDetail, DeploymentChange, diff_deployments

__all__ = ["ChangeDetail", "Deployment", "DeploymentChange", "canonical", "diff_deployments"]
