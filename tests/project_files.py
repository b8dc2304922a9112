"""Project folders for tests: from texts to files on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from situ.lang.problems import SituError
from situ.model import Deployment, DeploymentChange, diff_deployments
from situ.project.check import check_folder
from situ.project.snapshot import read_snapshot

MINIMAL = {"situ.yaml": "name: test\n"}


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Put these files into the folder, which is made if need be."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else dedent(content).encode())
    return folder


def diff_folders(old: Path, new: Path, environment: Mapping[str, str] = os.environ) -> tuple[DeploymentChange, ...]:
    """What has to happen to the old to become the new. Each is a folder or a snapshot file.

    :class:`SituError` with all errors if one of them is not in order: what is wrong cannot be compared.
    """
    return diff_deployments(read_deployment(old, environment), read_deployment(new, environment))


def read_deployment(path: Path, environment: Mapping[str, str] = os.environ) -> Deployment:
    """The deployment of a project folder or of a snapshot file; :class:`SituError` if there is none."""
    if not path.is_dir():
        return read_snapshot(path)
    checked = check_folder(path, environment)
    if checked.deployment is None:
        raise SituError(*checked.errors)
    return checked.deployment
