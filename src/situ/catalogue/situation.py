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
