"""Changes of scopes, carried out: by the operator at the registry, or by a client through its router."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situ.cli.as_client import as_client
from situ.cli.effective import Effect, bring_into_force
from situ.cli.registered import refusing, registry_of
from situ.deployment import Change
from situ.edge.connecting import connect
from situ.edge.rescoping import ChangedScopes
from situ.edge.told import problem_told
from situ.errors import Problem
from situ.registry import current_user
from situ.visibility.operations import Operation
from situ.visibility.rights import Principal

if TYPE_CHECKING:
    from situ.cli.rescope import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of it. ``waiting`` are the engines that do not work with it yet."""

    epoch: int
    version: int
    said: str
    complete: bool
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    waiting: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"Epoch {self.epoch}, version {self.version}, {self.said}."

    def as_json(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "version": self.version,
            "complete": self.complete,
            "waiting": list(self.waiting),
            "changes": [each.as_json() for each in self.changes],
            "problems": [each.as_json() for each in self.problems],
        }


def as_operator(operation: Operation, asked: Asked) -> Done:
    """Whoever has the project folder may change all of its scopes."""
    who = current_user()
    with refusing(), registry_of(asked.project) as registered:
        by = Principal(name=who, operator=True)
        if asked.dry_run:
            planned = registered.registry.plan_scopes(operation, by, epoch=asked.epoch)
            return Done(
                epoch=planned.deployment.epoch,
                version=planned.version,
                said="nothing is changed",
                complete=True,
                changes=planned.changes,
                problems=planned.problems,
            )
        applied = registered.registry.change_scopes(operation, by, epoch=asked.epoch, reason=asked.reason)
        effect: Effect = bring_into_force(registered, applied.deployment)
    return Done(
        epoch=applied.deployment.epoch,
        version=applied.version,
        said=str(effect),
        complete=not effect.waiting,
        changes=applied.changes,
        problems=(*applied.problems, *effect.problems),
        waiting=effect.waiting,
    )


def as_client_of(operation: Operation, asked: Asked) -> Done:
    """With the rights of a client, which its router knows."""
    who = as_client(asked.project, asked.client, asked.credentials, asked.server)

    async def change() -> ChangedScopes:
        async with connect(who.place, client=who.name, **who.options) as node:
            return await node.change_scopes(operation, epoch=asked.epoch)

    with refusing():
        changed = asyncio.run(change())
    missing = f"not yet in force in {', '.join(changed.missing)}" if changed.missing else "on its way into force"
    return Done(
        epoch=changed.epoch,
        version=changed.version,
        said="in force" if changed.complete else missing,
        complete=changed.complete,
        problems=tuple(problem_told(each.code, each.message, each.hint) for each in changed.said),
        waiting=changed.missing,
    )
