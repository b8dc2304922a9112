"""Python processes of Spark, forked from one that has loaded what they need.

Spark starts Python about ten times before the first batch: to ask which data sources there are and what ours are, for
the offsets of each query, for workers. Each would load pyspark and Situ; and since Spark puts a zip file of pyspark
before all other places, each would compile pyspark, too. `forking_python` starts the server, a process that loads all
this once, and gives what Spark is to call instead of Python: a script that hands its arguments, environment and
streams to a fork of the server, and lives as long as the fork does.

This file is run in three ways. ``-m situ.spark.fork_server serve`` is the server. As a script, by its path, it is what
Spark calls: without Situ and without packages, so it imports nothing else above. ``-m situ.spark.fork_server
pyspark.worker`` is the daemon of Spark that workers are forked from, wherever it runs.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from functools import cache
from pathlib import Path

_PLACES = "PYTHONPATH"
_LAUNCHER = """#!/bin/sh
exec "{python}" -I -S "{script}" "{address}" "$@"
"""


@cache
def forking_python() -> Path:
    """The program to call instead of Python, from the server of this process, with which it ends.

    Python itself where there is no place for a server.
    """
    import subprocess
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="situ-python-"))
    address, launcher = folder / "socket", folder / "python"
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            listener.listen()  # who comes while the server loads waits for it
            # In a session of its own it gets no signal that is meant for us: a batch under way needs its processes.
            # It ends when its standard input does, however this process ends.
            server = subprocess.Popen(
                [sys.executable, "-m", __name__, "serve", str(listener.fileno()), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # if it does not start, Python does, and says why
                pass_fds=[listener.fileno()],
                env={"PYTHONHASHSEED": "0", **os.environ, "PYTHONUNBUFFERED": "YES"},  # as Spark has it for workers
                start_new_session=True,
            )
    except OSError:  # such an address must be short
        return Path(sys.executable)
    _servers.append(server)
    launcher.write_text(_LAUNCHER.format(python=sys.executable, script=Path(__file__).resolve(), address=address))
    launcher.chmod(0o700)
    return launcher


_servers: list[object] = []
"""Of this process. They end when nobody holds them."""


def load() -> None:
    """Load what Python processes of Spark need. Whatever opens a socket or starts a thread would not survive a fork."""
    import xml.etree.ElementTree  # noqa: F401 - tables in XML

    import pyarrow
    import pyspark.daemon
    import pyspark.sql.streaming.python_streaming_source_runner
    import pyspark.sql.worker.create_data_source
    import pyspark.sql.worker.lookup_data_sources
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401 - all these for forks

    import situ.policies.language.parse
    import situ.spark.detect
    import situ.spark.dispatch
    import situ.spark.partitions
    import situ.spark.source  # noqa: F401 - all these for forks
    from situ.gc_tuning import freeze_loaded
    from situ.lang.expr.syntax import locate_in, parse_syntax

    parse_syntax("0", locate_in("0"))  # the parser is loaded with the first expression,
    pyarrow.array([0])  # and pandas by Arrow, with the first column that is made
    freeze_loaded()


def _serve(listener: socket.socket) -> socket.socket | None:
    """Fork for whoever calls. Returns the caller in each fork, and None in the server when its owner has ended."""
    import select
    import signal

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system clears them away
    while True:
        ready, _, _ = select.select([sys.stdin.fileno(), listener], [], [])
        if listener not in ready:
            return None
        caller, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return caller
        caller.close()


def _run(caller: socket.socket) -> None:
    """Be the process that the caller asks for."""
    import runpy
    import warnings

    os.register_at_fork(after_in_child=caller.close)  # of what this process forks, the caller does not wait for the end
    _, streams, _, _ = socket.recv_fds(caller, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with caller.makefile("rb") as file:
        asked = json.load(file)
    caller.sendall(os.getpid().to_bytes(8))
    os.environ.clear()
    os.environ.update(asked["environment"])
    # Behind all others: what the server has loaded is not to be looked for in Spark's zip files.
    sys.path += [each for each in os.environ.get(_PLACES, "").split(os.pathsep) if each and each not in sys.path]
    _, name, *sys.argv[1:] = asked["arguments"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that the module is loaded is what all this is for
            runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise
    caller.sendall(b"\0")


def _call(address: str, arguments: list[str]) -> int:
    """Have the server fork, and wait for the end of the fork. Without a server this becomes Python itself."""
    import signal

    # Who ends this process before it knows its fork would leave the fork behind: the signal waits until then.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    with socket.socket(socket.AF_UNIX) as server:
        pid = b""
        if arguments[:1] == ["-m"]:
            try:
                server.connect(address)
                socket.send_fds(server, [b"\0"], [0, 1, 2])
                server.sendall(json.dumps({"arguments": arguments, "environment": dict(os.environ)}).encode())
                server.shutdown(socket.SHUT_WR)
                pid = server.recv(8)
            except OSError:
                pass
        if pid:
            signal.signal(signal.SIGTERM, lambda number, _: os.kill(int.from_bytes(pid), number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        if not pid:
            os.execv(sys.executable, [sys.executable, *arguments])
        return 0 if server.recv(1) else 1


if __name__ == "__main__":
    if not __package__:
        sys.exit(_call(sys.argv[1], sys.argv[2:]))
    load()
    if sys.argv[1] == "serve":
        import shutil

        _asks = _serve(socket.socket(fileno=int(sys.argv[2])))
        if _asks is not None:
            _run(_asks)
        else:
            shutil.rmtree(sys.argv[3], ignore_errors=True)
    else:
        from pyspark.daemon import manager

        manager()
