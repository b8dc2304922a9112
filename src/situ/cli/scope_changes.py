"""Changes of scopes, carried out: by the operator at the registry, or by a client through its router."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situ.cli.connection import as_client
from situ.cli.registry import Adoption, refused_as_error, registry_of, roll_out
from situ.client.client import ScopeChangeReceipt
from situ.client.connection import connect
from situ.lang.problems import Problem
from situ.model import DeploymentChange
from situ.protocol.wire import problem_from_wire
from situ.registry import current_user
from situ.scopes.operations import Operation
from situ.scopes.rights import Principal

if TYPE_CHECKING:
    from situ.cli.commands.scopes import ScopeRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeChangeReport:
    """What came of it. ``waiting`` are the engines that do not work with it yet."""

    epoch: int
    version: int
    said: str
    complete: bool
    changes: tuple[DeploymentChange, ...] = ()
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


def change_as_operator(operation: Operation, asked: ScopeRequest) -> ScopeChangeReport:
    """Whoever has the project folder may change all of its scopes."""
    who = current_user()
    with refused_as_error(), registry_of(asked.project) as registered:
        by = Principal(name=who, operator=True)
        if asked.dry_run:
            planned = registered.registry.plan_scopes(operation, by, epoch=asked.epoch)
            return ScopeChangeReport(
                epoch=planned.deployment.epoch,
                version=planned.version,
                said="nothing is changed",
                complete=True,
                changes=planned.changes,
                problems=planned.problems,
            )
        applied = registered.registry.change_scopes(operation, by, epoch=asked.epoch, reason=asked.reason)
        effect: Adoption = roll_out(registered, applied.deployment)
    return ScopeChangeReport(
        epoch=applied.deployment.epoch,
        version=applied.version,
        said=str(effect),
        complete=not effect.waiting,
        changes=applied.changes,
        problems=(*applied.problems, *effect.problems),
        waiting=effect.waiting,
    )


def change_as_client(operation: Operation, asked: ScopeRequest) -> ScopeChangeReport:
    """With the rights of a client, which its router knows."""
    who = as_client(asked.project, asked.client, asked.credentials, asked.server)

    async def change() -> ScopeChangeReceipt:
        async with connect(who.place, client=who.name, **who.options) as node:
            return await node.change_scopes(operation, epoch=asked.epoch)

    with refused_as_error():
        changed = asyncio.run(change())
    missing = f"not yet in force in {', '.join(changed.missing)}" if changed.missing else "on its way into force"
    return ScopeChangeReport(
        epoch=changed.epoch,
        version=changed.version,
        said="in force" if changed.complete else missing,
        complete=changed.complete,
        problems=tuple(problem_from_wire(each.code, each.message, each.hint) for each in changed.said),
        waiting=changed.missing,
    )
