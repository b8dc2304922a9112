"""Scopes of single epochs as the bus keeps them: what was stamped in an epoch is decided by its scopes for good."""

from __future__ import annotations

import json

from situ.deployment.snapshot import canonical
from situ.visibility.graph import ScopeGraph
from situ.visibility.json_form import scopes_as_json, scopes_from_json


def scopes_name(epoch: int) -> str:
    """The object that holds the scopes of an epoch."""
    return f"scopes-{epoch}"


def encode_scopes(graph: ScopeGraph) -> bytes:
    return canonical(scopes_as_json(graph)).encode()


def decode_scopes(content: bytes | None) -> ScopeGraph | None:
    """What :func:`encode_scopes` wrote; None if it is not there, or this release cannot read it: it shows nothing."""
    try:
        return None if content is None else scopes_from_json(json.loads(content))
    except ValueError:
        return None
