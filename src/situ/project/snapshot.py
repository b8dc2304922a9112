"""Snapshots of deployments as files, and the difference between two project folders or snapshots."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from situ.lang.catalogue import FILE_UNREADABLE, NO_SNAPSHOT, SNAPSHOT_CHANGED
from situ.lang.documents import DocumentLimits, parse_json, to_data
from situ.lang.problems import Location, SituError
from situ.model import Deployment

FORMAT = 1
_LIMITS = DocumentLimits(size=256 * 1024 * 1024, nodes=20_000_000)


def write_snapshot(deployment: Deployment, file: Path) -> None:
    """Write a deployment with its digest; whoever reads the file meanwhile sees the old or the new one, whole."""
    content = {"situ": "deployment", "format": FORMAT, "digest": deployment.digest, "deployment": deployment.as_json()}
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)


def read_snapshot(file: Path) -> Deployment:
    """The deployment in a snapshot; :class:`SituError` if the file is none, or is not what was written."""
    place = Location(file=str(file))
    try:
        data = file.read_bytes()
    except OSError as error:
        remedy = "Name a folder of a project, or a snapshot that `situ check --snapshot FILE` wrote."
        raise SituError(FILE_UNREADABLE(place, reason=(error.strerror or "").lower(), remedy=remedy)) from None
    document = parse_json(data, str(file), _LIMITS)
    if document.root is None or document.problems:
        raise SituError(*document.problems)
    return _deployment(to_data(document.root), place)


def _deployment(content: Any, place: Location) -> Deployment:
    if not isinstance(content, dict) or content.get("situ") != "deployment":
        raise SituError(NO_SNAPSHOT(place, reason='it does not say `"situ": "deployment"`'))
    if content.get("format") != FORMAT:
        reason = f"its format is {content.get('format')!r}, this release reads {FORMAT}"
        raise SituError(NO_SNAPSHOT(place, reason=reason))
    try:
        deployment = Deployment.from_json(content.get("deployment"))
    except ValueError as error:
        raise SituError(NO_SNAPSHOT(place, reason=str(error))) from None
    if deployment.digest != content.get("digest"):
        said = str(content.get("digest"))
        raise SituError(SNAPSHOT_CHANGED(place, found=deployment.digest[:12], said=said[:12]))
    return deployment
