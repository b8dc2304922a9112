"""Commands forked from one process that has loaded all that commands need, instead of a new Python for each.

``forks.py serve NUMBER`` is that process; NUMBER is an open socket that listens. Who connects to it hands over three
streams, arguments, folder and variables. What comes back is the id of the process, and at its end the exit code, one a
line. It ends with its input. ``forks.py situ SOCKET ARGUMENT…`` is the command for shells: it has one forked, passes
signals on, and ends as it ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NoReturn

# What commands load when they run, beside the modules that they are in.
LOADED = (
    "alembic.command",
    "situ.app.replay",
    "situ.app.run",
    "situ.bus.nats",
    "situ.cli.project",
    "situ.cli.registry",
    "situ.cli.render.check",
    "situ.cli.render.dead_letters",
    "situ.cli.render.event",
    "situ.cli.render.expression",
    "situ.cli.render.registry",
    "situ.cli.render.run",
    "situ.cli.render.status",
    "situ.cli.render.transform",
    "situ.cli.render.types",
    "situ.client.connection",
    "situ.explain.conversion",
    "situ.explain.event",
    "situ.explain.expression",
    "situ.explain.visibility",
    "situ.lang.types.json_schema",
    "situ.project.create",
    "situ.project.format",
    "situ.project.status",
    "sqlalchemy.dialects.sqlite",
    "typer._adapters",  # typer loads it with the first command that has parameters
)


class Fork:
    """A command that was forked for us: what :class:`subprocess.Popen` offers, as far as anybody needs it."""

    def __init__(
        self, at: str, arguments: Iterable[str], folder: str, environment: Mapping[str, str], streams: Iterable[int]
    ) -> None:
        self.returncode: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(at)
        mask = os.umask(0o077)
        os.umask(mask)
        request = {"arguments": [*arguments], "folder": folder, "environment": {**environment}, "mask": mask}
        socket.send_fds(self._connection, [b" "], [*streams])
        self._connection.sendall(json.dumps(request).encode())
        self._connection.shutdown(socket.SHUT_WR)
        self._said = self._connection.makefile("rb")
        self.pid = int(self._said.readline())

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except TimeoutError:
            return None

    def wait(self, within: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], within)[0]:
                raise TimeoutError(f"process {self.pid} does not end")
            self.returncode = int(self._said.readline())
            self._said.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def command(at: str, arguments: list[str]) -> int:
    """What a shell starts in place of the command, with its streams and variables."""
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    fork = Fork(at, arguments, os.getcwd(), os.environ, (0, 1, 2))  # noqa: PTH109 - quick to start
    for number in signals:
        signal.signal(number, lambda number, _: os.kill(fork.pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    code = fork.wait()
    return code if code >= 0 else 128 - code


def serve(listening: socket.socket) -> None:
    import gc
    import importlib
    import selectors

    from situ.cli.app import COMMANDS
    from situ.lang.units import Units

    for name in (*LOADED, *(place.partition(":")[0] for place, _ in COMMANDS.values())):
        importlib.import_module(name)
    Units().parse("m")
    gc.collect()
    gc.freeze()  # so that looking for garbage leaves these pages shared
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    ended, wakeup = socket.socketpair()
    for each in (ended, wakeup):
        each.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup.fileno())
    connections: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for source in (0, ended, listening):
            selector.register(source, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if 0 in ready:
                return
            if ended in ready:
                ended.recv(4096)
                tell_ends(connections)
            if listening in ready:
                connection, _ = listening.accept()
                _, streams, _, _ = socket.recv_fds(connection, 1, 3)
                with connection.makefile("rb") as rest:
                    request = json.load(rest)
                child = os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    for each in (ended, wakeup, listening, connection, *connections.values()):
                        each.close()
                    selector.close()
                    run(streams, **request)
                for stream in streams:
                    os.close(stream)
                connections[child] = connection
                connection.sendall(f"{child}\n".encode())


def tell_ends(connections: dict[int, socket.socket]) -> None:
    """Each exit code to who asked for the process."""
    while connections:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        with connections.pop(child) as connection, suppress(OSError):  # who asked may be gone
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def run(streams: list[int], arguments: list[str], folder: str, environment: dict[str, str], mask: int) -> NoReturn:
    """The command, as a shell would start it: from the state of a new process to the end of one."""
    import atexit
    import threading

    from situ.cli.main import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.umask(mask)
    code = 1
    try:
        code = main(arguments)
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BaseException:  # noqa: BLE001 - told as Python tells it
        sys.excepthook(*sys.exc_info())
    finally:
        # All that Python does at the end, but to take apart what was loaded: that takes longer than most commands.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for file in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # closed, or nobody reads it any more
                file.flush()
        os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        sys.exit(command(sys.argv[2], sys.argv[3:]))
