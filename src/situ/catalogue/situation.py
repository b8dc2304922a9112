"""``S``: situations, from S121, S221 and S721 on; the lower numbers are those of :mod:`situ.catalogue.sources`.

Entries are written ``NAME = define("S121", …)``, as in the other modules, with
``from situ.catalogue.defining import define``.
"""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

ONE_PARTITION = define(
    "S240",
    "policy detected in one place",
    "The policy `{policy}` cannot be spread over partitions: {reason}.",
    "{remedy}",
    severity=Severity.WARNING,
    policy=str,
    reason=str,
    remedy=str,
)

EVERYTHING_EVERYWHERE = define(
    "S241",
    "policy whose events go everywhere",
    "The policy `{policy}` is spread by `{alias}`, but all events go everywhere: none counts for `{alias}` alone.",
    "It takes the memory and time of one place in each. If you can, relate what it is about by something whose "
    "identity events tell, as `A is in R` and `B is in R`.",
    severity=Severity.OBSERVATION,
    policy=str,
    alias=str,
)

# ── what was to be done and failed ────────────────────────────────────────────────────────────────

ACTION_FAILED = define(
    "S721",
    "action failed",
    "`{action}` of the policy `{policy}` was not done: {target} {reason}.",
    "{remedy}",
    action=str,
    policy=str,
    target=str,
    reason=str,
    remedy=str,
)
ACTION_NOT_DECLARED = define(
    "S722",
    "action that nobody declares any more",
    "`{action}` of the policy `{policy}` was not done: neither the policy nor `actions.yaml` says now what it says.",
    "The registry no longer has the version that asked for it. Drop it with `situ actions drop {key}`.",
    action=str,
    policy=str,
    key=str,
)
ACTION_LACKS = define(
    "S723",
    "action that lacks something from the environment",
    "`{action}` of the policy `{policy}` was not done: the environment of the run has no `{name}`.",
    "Start `situ run` where it is set, then run `situ actions retry {key}`.",
    action=str,
    policy=str,
    name=str,
    key=str,
)
