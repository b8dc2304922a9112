"""The program ``nats-server`` as a process: found, tied to the process that starts it, asked whether it answers, and
ended if a run that is gone left one behind. Knows nothing of its configuration.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from situ.bus.folder_lock import STATE
from situ.catalogue import SERVER_MISSING
from situ.errors import SituError

NATS = STATE / "nats"
CONFIGURATION = NATS / "server.conf"
_STOP = 10.0  # seconds
_PR_SET_PDEATHSIG = 1


def find_program() -> str:
    """The server that came with our dependencies, else one on the PATH."""
    beside = Path(sys.executable).parent / "nats-server"
    if beside.exists():
        return str(beside)
    if (found := shutil.which("nats-server")) is not None:
        return found
    raise SituError(SERVER_MISSING(python=sys.executable))


def end_stale(folder: Path) -> None:
    """End servers of runs that are gone: two on one store would ruin it. They are known by their configuration."""
    configuration = str(folder / CONFIGURATION)
    stale = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            program, *arguments = process.cmdline() or ("",)
            if "nats-server" in program and configuration in arguments:
                process.terminate()
                stale.append(process)
    _, alive = psutil.wait_procs(stale, timeout=_STOP)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=_STOP)


def dies_with_parent(parent: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)

    def ask() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask


async def answers(port: int, name: str) -> bool:
    """Whether the server of this name takes connections; another one on the port is not ours."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 1)
    except (OSError, TimeoutError):
        return False
    try:
        return name.encode() in await asyncio.wait_for(reader.readline(), 1)
    except (OSError, TimeoutError, ValueError):
        return False
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
