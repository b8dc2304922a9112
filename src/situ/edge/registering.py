"""What both sides of quality do alike at a client: they keep what they registered, and hear about it.

When the router, or the bus, was away, everything is registered again under the same ids and versions, and what was said
meanwhile is asked for. What a client registers, and how, is for the two sides to know: :mod:`situ.edge.expectations`
and :mod:`situ.edge.capabilities`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from situ.bus.interface import Bus
from situ.catalogue import ZONE_UNREACHABLE
from situ.edge.hearing import Hearer, Hearing
from situ.edge.negotiating import Negotiating
from situ.edge.session import Session
from situ.errors import SituError
from situ.overlay.quality_messages import ChangeExpectation, ChangeProfile
from situ.quality.feedback import Feedback

_log = logging.getLogger("situ.client")


class Registered(Protocol):
    """Something of which the router has this version, or one before."""

    version: int


R = TypeVar("R", bound=Registered)
F = TypeVar("F", bound=Feedback)


class Registering(ABC, Generic[R, F]):
    """One side of quality at one client. ``kind`` is that of the feedback it hears: ``sub`` or ``pub``."""

    def __init__(self, bus: Bus, session: Session, kind: str) -> None:
        self.client = session.client
        self.registered: dict[str, R] = {}
        self._negotiating = Negotiating(session)
        self._hearing: Hearing[F] = Hearing(bus, session.client, kind)

    # ── what the node tells ──

    def back(self) -> None:
        """The router, or the bus, was away: have it know everything again, and hear what was said meanwhile."""
        if self.registered or self._hearing.begun:
            self._negotiating.begin(self._come_back())

    async def close(self) -> None:
        await self._negotiating.end()
        await self._hearing.close()

    async def _come_back(self) -> None:
        for name, each in tuple(self.registered.items()):
            async with self._negotiating.turn(name):
                if self.registered.get(name) is not each:
                    continue
                try:
                    await self._register_again(each)
                except SituError as error:
                    _log.error("%s: `%s` could not be registered again: %s", self.client, name, error)
        if self._hearing.begun:
            await self._catch_up()

    @abstractmethod
    async def _register_again(self, registered: R) -> None:
        """As it was, with its version."""

    # ── changing ──

    async def _change(self, known: R | None, message: ChangeExpectation | ChangeProfile) -> Mapping[str, Any]:
        """Whether a change was made that nobody answered is not known. Its version, and the next, are not used again:
        so another change is not taken for it, and what is registered again counts."""
        try:
            return await self._negotiating.ask(message)
        except (SituError, CancelledError) as error:
            if known is not None and message.version is not None and not _was_answered(error):
                known.version = max(known.version, message.version + 1)
            raise

    # ── hearing ──

    def _call_back(self, callback: Callable[[F], Awaitable[object] | object]) -> Hearer[F]:
        hearer = self._hearing.add(callback)
        self._negotiating.begin(self._begin_hearing())
        return hearer

    async def _begin_hearing(self) -> None:
        """What was said before anybody listened is asked for."""
        if await self._hearing.begin():
            await self._catch_up()

    @abstractmethod
    async def _catch_up(self) -> None:
        """Hear what was said while nobody listened."""


def _was_answered(error: SituError | CancelledError) -> bool:
    return isinstance(error, SituError) and not error.code.startswith("B") and error.code != ZONE_UNREACHABLE.code
