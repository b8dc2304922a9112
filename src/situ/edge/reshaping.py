"""Shapes on their way into force: those that change close together become one version of the deployment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from situ.edge.mistakes import Mistakes
from situ.errors import SituError
from situ.quality.shape import Shape

_log = logging.getLogger("situ.quality")
_TOGETHER = 0.02
_PAUSE = 0.5


class Reshaping:
    """Of one zone. ``shape`` has shapes be in force, None for a subscription that has one no more."""

    def __init__(self, shape: Callable[[dict[str, Shape | None]], Awaitable[None]]) -> None:
        self.shape = shape
        self._shapes: dict[str, Shape | None] = {}
        self._reshaped = asyncio.Event()
        self.mistakes = Mistakes(_log)

    def put(self, shapes: Mapping[str, Shape | None]) -> None:
        if shapes:
            self._shapes.update(shapes)
            self._reshaped.set()

    async def run(self) -> None:
        """For ever: have what has come together be in force."""
        while True:
            await self._reshaped.wait()
            await asyncio.sleep(_TOGETHER)
            self._reshaped.clear()
            shapes, self._shapes = self._shapes, {}
            try:
                await self._put_in_force(shapes)
            except SituError as error:
                _log.warning("shapes are not in force yet: %s", error)
                self._shapes = {**shapes, **self._shapes}
                self._reshaped.set()
                await asyncio.sleep(_PAUSE)

    async def _put_in_force(self, shapes: dict[str, Shape | None]) -> None:
        """All at once; where that goes wrong, one by one: what is wrong with one must not hold up the others. It is
        tried again when it has become another, or when the router is started."""
        try:
            await self.shape(shapes)
        except SituError:
            raise
        except Exception as error:  # noqa: BLE001 - see above
            if len(shapes) == 1:
                failure = self.mistakes.note(error, "quality shape")
                _log.error("mistake %s: the shape of %s is not in force", failure.id, next(iter(shapes)))
                return
            for id, shape in shapes.items():
                await self._put_in_force({id: shape})
