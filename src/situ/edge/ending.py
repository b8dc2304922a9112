"""Ending tasks for certain.

A task that is cancelled in the very moment in which what it waits for happens may go on as if nothing had been said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

_SAY_AGAIN = 0.1


async def end(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel these tasks until they are done; what they raise is theirs."""
    left = {task for task in tasks if task is not None and not task.done()}
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=_SAY_AGAIN)
        for task in done:
            if not task.cancelled():
                task.exception()
