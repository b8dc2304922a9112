"""One immutable snapshot of everything declared: what engines execute.

It owns the table of kinds, the deployment with its canonical form and digest, the difference of two deployments, and
who sees more or less by another one. It puts all parts together and decides nothing about their meaning. It must not
know where declarations come from (files, registry) nor how they are executed: `situ.stages.plan` compiles a deployment.
No input or output.

Front door: the names below (Deployment, canonical, diff_deployments, DeploymentChange, ChangeDetail), `kinds` (KINDS,
PARTS, Kind, things_in, content_of), `deployment` (encode_scopes, decode_scopes, scopes_name, quality_environment),
`visibility_diff` (visibility_changes, VisibilityChange).
"""

from situ.model.deployment import Deployment
from situ.model.diff import ChangeDetail, DeploymentChange, diff_deployments
from situ.model.kinds import canonical

__all__ = ["ChangeDetail", "Deployment", "DeploymentChange", "canonical", "diff_deployments"]
