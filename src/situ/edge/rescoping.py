"""Scopes as a node changes them: who joins and leaves, and every other operation, for those who administer them.

The router knows who asks. A change is answered when the registry has it; when every engine works with it is told later.
"""

from __future__ import annotations

from dataclasses import dataclass

from situ.edge.declared import Installing
from situ.edge.session import Session
from situ.overlay.messages import ChangeScopes, Said, ScopeAck
from situ.visibility.operation_form import operation_as_json
from situ.visibility.operations import Operation

_CHANGE_WITHIN = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedScopes:
    """Scopes as they were asked to be. ``missing`` are engines that did not work with them yet after a while."""

    epoch: int
    version: int
    """Of the deployment that has them."""
    complete: bool
    missing: tuple[str, ...] = ()
    said: tuple[Said, ...] = ()
    """What is worth knowing, such as declarations that are suspended by the change."""


class Rescoping:
    """Changes of scopes of one client."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._awaited: dict[int, Installing] = {}

    async def change(self, operation: Operation, epoch: int | None) -> ChangedScopes:
        """Have scopes changed; what the registry refuses is raised."""
        req = self._session.request()
        installing = self._awaited[req] = Installing()
        try:
            message = ChangeScopes(req=req, operation=operation_as_json(operation), epoch=epoch)
            answer = await self._session.ask(message, timeout=_CHANGE_WITHIN)
            assert isinstance(answer, ScopeAck)
            self.told(answer)
            complete = await installing.wait(self._session.terms.install_timeout)
        finally:
            del self._awaited[req]
        return ChangedScopes(
            epoch=answer.epoch,
            version=answer.version,
            complete=complete,
            missing=() if complete else installing.missing,
            said=answer.said,
        )

    def told(self, message: ScopeAck) -> None:
        if message.req in self._awaited:
            word = "installed" if message.state == "complete" else message.state
            self._awaited[message.req].told(word, message.version, message.missing)
