"""The audit record of scopes: every epoch there was, who made it, when, and what was different since.

What changed is worked out from the documents themselves, all of which the registry keeps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, select

from situ.registry import store
from situ.registry.objects import SCOPES, Key
from situ.registry.tables import CHANGE, OBJECT
from situ.visibility.difference import ScopeDifference, diff
from situ.visibility.graph import NO_SCOPES, ScopeGraph
from situ.visibility.json_form import scopes_from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One change of the scopes. ``epoch`` is None where it took all of them away."""

    epoch: int | None
    before: int | None
    at: datetime
    who: str
    deployment: int
    reason: str
    difference: ScopeDifference
    suspended: tuple[Key, ...] = ()
    """The declarations that lost their right with it."""

    def as_json(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "before": self.before,
            "at": self.at.isoformat(),
            "who": self.who,
            "deployment": self.deployment,
            "reason": self.reason,
            "narrows": self.difference.narrows,
            "changes": [
                {"kind": each.kind, "what": list(each.what), "before": each.before, "after": each.after}
                | {"narrows": each.narrows}
                for each in self.difference.changes
            ],
            "suspended": [{"kind": key.kind, "name": key.name} for key in self.suspended],
        }


def epochs(connection: Connection, limit: int) -> list[Epoch]:
    """The latest changes, newest first."""
    key = Key("scopes", SCOPES)
    recorded = store.changes(connection, limit=limit, key=key)
    if not recorded:
        return []
    documents = store.bodies(connection, key)
    lost = suspended_by(connection, min(each.deployment for each in recorded))
    return [
        Epoch(
            epoch=each.after,
            before=each.before,
            at=each.at,
            who=each.who,
            deployment=each.deployment,
            reason=each.reason,
            difference=diff(_graph(documents, each.before), _graph(documents, each.after)),
            suspended=tuple(lost.get(each.deployment, ())),
        )
        for each in recorded
    ]


def _graph(documents: dict[int, str], version: int | None) -> ScopeGraph:
    body = "" if version is None else documents.get(version, "")
    return scopes_from_json(json.loads(body)) if body else NO_SCOPES


def suspended_by(connection: Connection, since: int) -> dict[int, list[Key]]:
    """Deployment, from this one on → what it suspended."""
    same = and_(OBJECT.c.kind == CHANGE.c.kind, OBJECT.c.name == CHANGE.c.name, OBJECT.c.version == CHANGE.c.to_version)
    asked = (
        select(CHANGE.c.deployment, CHANGE.c.kind, CHANGE.c.name)
        .select_from(CHANGE.join(OBJECT, same))
        .where(OBJECT.c.state == store.SUSPENDED, CHANGE.c.deployment >= since)
        .order_by(CHANGE.c.kind, CHANGE.c.name)
    )
    found: dict[int, list[Key]] = {}
    for row in connection.execute(asked):
        found.setdefault(row.deployment, []).append(Key(row.kind, row.name))
    return found
