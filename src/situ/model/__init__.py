"""One immutable snapshot of everything declared: what engines execute.

It owns the deployment with its canonical form and digest, the difference of two deployments, and who sees more or less
by another one. It puts all parts together and decides nothing about their meaning. It must not know where declarations
come from (files, registry) nor how they are executed: `situ.stages.plan` compiles a deployment. No input or output.

Front door: the names below (Deployment, canonical, diff_deployments, DeploymentChange, ChangeDetail), `deployment`
(encode_scopes, decode_scopes, scopes_name, quality_environment), `visibility_diff` (visibility_changes,
VisibilityChange).
"""

from situ.model.deployment import Deployment, canonical
from situ.model.diff import ChangeDetail, DeploymentChange, diff_deployments

__all__ = ["ChangeDetail", "Deployment", "DeploymentChange", "canonical", "diff_deployments"]
