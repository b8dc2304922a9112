"""From the project folder to the registry: what is declared, and where each thing stands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from situ.contexts.compatibility import ChangeOptions
from situ.model import Deployment
from situ.policies.model import PolicyStart
from situ.project.folder import read_folder
from situ.registry import Applied, Key, Registry
from situ.registry.object_files import Written, declared_in


def apply_folder(
    path: Path,
    deployment: Deployment,
    registry: Registry,
    *,
    who: str,
    reason: str = "",
    allowed: ChangeOptions | None = None,
    start: PolicyStart | None = None,
) -> Applied:
    """Put a folder that was checked in force; the registry learns where each thing is written.

    ``start`` is where policies start that are new.
    """
    written = find_written(path, deployment)
    return registry.apply(deployment, who, reason, written=written, allowed=allowed or ChangeOptions(), start=start)


def find_written(path: Path, deployment: Deployment, environment: Mapping[str, str] = os.environ) -> dict[Key, Written]:
    """The file and the text of everything that the folder declares, which was checked as this deployment."""
    folder = read_folder(path, environment)
    documents = (document for kind in folder.documents.values() for document in kind)
    found = {key: written for document in documents for key, written in declared_in(document)}
    for name, policy in deployment.policies.items():
        if policy.location is not None and (data := folder.policies.get(policy.location.file)) is not None:
            found[Key("policy", name)] = Written(policy.location.file, data.decode("utf-8", errors="replace"))
    return found
