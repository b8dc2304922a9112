"""Ctrl-C and TERM for commands that run until they are stopped: the first asks, a second Ctrl-C ends at once.

Signals are taken at the lowest level, so that the second Ctrl-C works whatever the first one is waiting for.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from situ.cli.exits import Exit

T = TypeVar("T")

_SHOW_CURSOR = b"\x1b[?25h"


def run_until_stopped(work: Coroutine[Any, Any, T], stopped: T) -> T:
    """Run to the end, or until somebody asks to stop: the work is then cancelled, and ends in the way it wants to."""
    return asyncio.run(_until_stopped(work, stopped))


async def _until_stopped(work: Coroutine[Any, Any, T], stopped: T) -> T:
    task = asyncio.create_task(work)
    with _asking(asyncio.get_running_loop()) as asked:
        asking = asyncio.create_task(asked.wait())
        await asyncio.wait({task, asking}, return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()
        task.cancel()  # does nothing to one that is done
        try:
            return await task
        except asyncio.CancelledError:
            return stopped


@contextmanager
def _asking(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.Event]:
    asked = asyncio.Event()
    seen: list[int] = []

    def ask(number: int, _: object) -> None:
        if seen and number == signal.SIGINT:
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), _SHOW_CURSOR)
            os._exit(Exit.INTERRUPTED)
        seen.append(number)
        loop.call_soon_threadsafe(asked.set)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
