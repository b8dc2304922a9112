"""What changed between two projects, or between a project and a snapshot of how it was."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from situ.deployment import Change, Deployment, difference
from situ.errors import SituError
from situ.project.check import check_folder
from situ.project.snapshot import read_snapshot


def diff_folders(old: Path, new: Path, environment: Mapping[str, str] = os.environ) -> tuple[Change, ...]:
    """What has to happen to the old to become the new. Each is a folder or a snapshot file.

    :class:`SituError` with all errors if one of them is not in order: what is wrong cannot be compared.
    """
    return difference(read_deployment(old, environment), read_deployment(new, environment))


def read_deployment(path: Path, environment: Mapping[str, str] = os.environ) -> Deployment:
    """The deployment of a project folder or of a snapshot file; :class:`SituError` if there is none."""
    if not path.is_dir():
        return read_snapshot(path)
    checked = check_folder(path, environment)
    if checked.deployment is None:
        raise SituError(*checked.errors)
    return checked.deployment
