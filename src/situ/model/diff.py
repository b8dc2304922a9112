"""What changed between two deployments, thing by thing, in the words of the files.

Compares canonical forms, so what was only written otherwise is no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from situ.lang.json_form import StoredForm
from situ.model.deployment import Deployment
from situ.model.kinds import KINDS, ComparedByKind, ComparedThing, Kind, things_in

What = Literal["added", "removed", "changed"]


class ChangeDetail(StoredForm, frozen=True, kw_only=True):
    """One part of a thing that changed: an attribute, the filter, a single setting. None where it is not there."""

    part: str
    before: str | None
    after: str | None


class DeploymentChange(StoredForm, frozen=True, kw_only=True):
    """One thing that is other than before. ``before`` and ``after`` are the whole of it, None where it is not there."""

    kind: str
    name: str
    what: What
    before: str | None
    after: str | None
    details: tuple[ChangeDetail, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.what}"


def diff_deployments(old: Deployment | None, new: Deployment) -> tuple[DeploymentChange, ...]:
    """What has to happen to the old to become the new; None stands for nothing but the default settings."""
    before, after = _things(old or Deployment()), _things(new)
    return tuple(change for kind in after for change in _changes(kind, before[kind], after[kind]))


_LATER: Mapping[Kind, Kind] = {"push": "measure", "quality": "subscription"}
"""Kinds that are shown behind another one; all others in the order of the table."""

_ORDER = sorted(KINDS, key=lambda kind: (list(KINDS).index(_LATER.get(kind, kind)), kind in _LATER))


def _things(deployment: Deployment) -> ComparedByKind:
    """All things by kind and name; of things that are made of others, these."""
    stored: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for kind, name, body in things_in(deployment):
        stored[kind][name] = body
    found: ComparedByKind = {}
    for kind in _ORDER:
        row = KINDS[kind]
        if row.compare_whole is not None:
            found |= row.compare_whole(stored[kind].get(row.only, {}), deployment)
        else:
            found[kind] = {name: row.compare(name, body, deployment) for name, body in stored[kind].items()}
    return found


def _changes(
    kind: str, before: Mapping[str, ComparedThing], after: Mapping[str, ComparedThing]
) -> Iterator[DeploymentChange]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        what: What = "added" if old is None else "removed" if new is None else "changed"
        yield DeploymentChange(
            kind=kind,
            name=name,
            what=what,
            before=old.whole if old is not None else None,
            after=new.whole if new is not None else None,
            details=tuple(_details(old.parts, new.parts)) if old is not None and new is not None else (),
        )


def _details(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[ChangeDetail]:
    """In the order of the new parts, those that are gone last."""
    for part in (*after, *(gone for gone in before if gone not in after)):
        if before.get(part) != after.get(part):
            yield ChangeDetail(part=part, before=before.get(part), after=after.get(part))
