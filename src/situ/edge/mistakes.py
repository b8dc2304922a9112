"""What must not happen and does: it is logged with all there is to know, and told by an id under which it is found."""

from __future__ import annotations

import logging
import uuid

from situ.catalogue import INTERNAL
from situ.errors import Problem

_log = logging.getLogger("situ.quality")


def mistake(error: Exception, what: str) -> Problem:
    """Log a mistake of ours that was made while doing something; what is told of it says nothing about others."""
    id = uuid.uuid4().hex[:8]
    _log.error("mistake %s: %s could not be negotiated", id, what, exc_info=error)
    return INTERNAL(id=id, what=type(error).__name__)
