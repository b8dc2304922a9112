"""The embedded bus: a ``nats-server`` process that a run finds, configures, starts, watches, restarts and stops.

The first functions know the program and the process only: `find_program`, `end_stale`, `answers`. `EmbeddedServer` is
the server of one project folder.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

from situ.bus.address import TOKEN, Address, embedded_address
from situ.bus.credentials import make_folder, make_seed, public_key, seed_in, write_secret
from situ.bus.folder_lock import CREDENTIALS, STATE, private_folder
from situ.lang.catalogue import BUS_FAILED, SERVER_FAILED, SERVER_MISSING
from situ.lang.problems import SituError
from situ.protocol.permissions import BusPrincipal, users
from situ.settings import Settings

NATS = STATE / "nats"
CONFIGURATION = NATS / "server.conf"
_STALE_STOP = 10.0  # seconds
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
    _, alive = psutil.wait_procs(stale, timeout=_STALE_STOP)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=_STALE_STOP)


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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The server of a folder. Everything it has is under ``.situ``: configuration and store in ``nats/``, the key of the run
# in ``credentials/bus``, its log in ``logs/nats.log``. It listens on loopback only, on a port that a folder keeps, and
# ends with the process that started it, even if that is killed. It lets in the run, which may do everything, and the
# clients that were added, each with the permissions of :mod:`situ.protocol.permissions`; clients can be let in and shut
# out while it runs.

_log = logging.getLogger(__name__)

LOG = STATE / "logs" / "nats.log"
_START, _STOP = 60.0, 10.0  # seconds; a large store takes a while to be read
_FIRST_WAIT, _LONGEST_WAIT, _STABLE = 0.1, 10.0, 30.0
_LINES = 3
_LOOK, _MOST_LOG = 1.0, 1024 * 1024
_RELOAD = 10.0
_RELOADED, _NOT_RELOADED = "Reloaded server configuration", "Failed to reload server configuration"
_UNWRITABLE = "cannot write to its store; the disk may be full"

_CONFIGURATION = """\
# Written at every start; changes are lost.
host: 127.0.0.1
port: {port}
server_name: {name}
max_payload: 8388608
write_deadline: "30s"
logfile: {log}
logfile_size_limit: 10485760
logfile_max_num: 4
authorization {{
{users}
}}
jetstream {{ store_dir: {store}, max_mem_store: 67108864, max_file_store: {most} }}
"""
# Without a limit it takes more and more before it looks for what it can use again. With less it looks all the time at
# high rates, where what was written in the last seconds, which it keeps at hand, is more than a hundred.
_MEMORY = "384MiB"
# Streams reserve what they may grow to; how much there really is, the disk says.
_MOST = 1024**5


class EmbeddedServer:
    """``async with EmbeddedServer(folder, settings) as server:`` — or ``start`` and ``stop``.

    ``admitted`` are the clients that are let in with credentials of their own. ``on_restart`` is called when the server
    died and is back. The folder must be locked by the caller.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        *,
        admitted: Sequence[BusPrincipal] = (),
        on_restart: Callable[[], None] | None = None,
    ) -> None:
        self._folder = folder.resolve()
        self._zone = settings.zone
        self._admitted = tuple(admitted)
        self._name = ""
        self._turn = asyncio.Lock()
        self._on_restart = on_restart
        self._process: asyncio.subprocess.Process | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._stopping = False
        self._started = 0.0
        self._read = 0  # of its log
        self.port = 0
        self.restarts = 0
        self.trouble = ""

    @property
    def address(self) -> Address:
        return embedded_address(self._folder, self._zone, self.port)

    @property
    def pid(self) -> int | None:
        """Of the server; None while there is none."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        """The server takes connections; B112, B113 if it cannot."""
        program = find_program()
        self._make_folders()
        await asyncio.to_thread(end_stale, self._folder)
        self.port = self._choose_port()
        await self._launch(program)
        (self._folder / NATS / "port").write_text(str(self.port))
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise(program))

    async def stop(self) -> None:
        self._stopping = True
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)
            self._supervisor = None
        await self._end()

    async def __aenter__(self) -> EmbeddedServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.stop()

    # ── starting ──

    def _make_folders(self) -> None:
        try:
            make_folder(self._folder)
            (self._folder / NATS).mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / NATS).chmod(0o700)
            private_folder((self._folder / LOG).parent)
            key = self._folder / CREDENTIALS / TOKEN
            # Before clients had keys of their own, there was a token in it.
            if not key.exists() or seed_in(key.read_text(encoding="utf-8", errors="replace")) is None:
                write_secret(key, make_seed())
        except OSError as error:
            raise self._failure(f"`{error.filename}` cannot be written ({error.strerror})", 0) from error

    def _choose_port(self) -> int:
        try:
            port = int((self._folder / NATS / "port").read_text())
        except (OSError, ValueError):
            port = 0
        for candidate in (port, 0):
            with suppress(OSError), socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", candidate))
                return int(probe.getsockname()[1])
        raise self._failure("there is no free port", 0)

    def _configure(self) -> None:
        home = self._folder / NATS
        run = public_key(seed_in((self._folder / CREDENTIALS / TOKEN).read_text()) or "")
        text = _CONFIGURATION.format(
            port=self.port,
            name=self._name,
            log=json.dumps(str(self._folder / LOG)),
            users=users(self._zone, self._admitted, f"{{ nkey: {run} }}"),
            store=json.dumps(str(home / "jetstream")),
            most=_MOST,
        )
        write_secret(home / "server.conf", text)

    async def _launch(self, program: str) -> None:
        self._name = name = f"situ-{secrets.token_hex(8)}"
        home, log = self._folder / NATS, self._folder / LOG
        self._configure()
        start = self._read = log.stat().st_size if log.exists() else 0
        with log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                program,
                "-c",
                str(home / "server.conf"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={"GOMEMLIMIT": _MEMORY, **os.environ},
                # Ctrl-C in a terminal reaches the whole group; the server must outlive what still writes to it.
                start_new_session=True,
                preexec_fn=dies_with_parent(os.getpid()),
            )
        deadline = time.monotonic() + _START
        while not await answers(self.port, name):
            if self._process.returncode is not None:
                raise self._failure(f"it ended with exit code {self._process.returncode}", start)
            if time.monotonic() > deadline:
                await self._end()
                raise self._failure(f"it does not answer on port {self.port} after {_START:.0f} s", start)
            await asyncio.sleep(0.02)
        self._started = time.monotonic()

    def _failure(self, reason: str, start: int) -> SituError:
        lines = _last_lines(self._folder / LOG, start)
        return SituError(SERVER_FAILED(folder=str(self._folder), reason=reason, log=str(LOG), lines=lines))

    # ── letting in and shutting out ──

    async def admit(self, admitted: Sequence[BusPrincipal]) -> None:
        """Let in these clients and no others, from now on: connections of those that are no longer among them end.

        B110 if the server does not take it; then it stays as it was.
        """
        async with self._turn:
            before, self._admitted = self._admitted, tuple(admitted)
            try:
                await self._reload()
            except SituError:
                self._admitted = before
                self._configure()
                raise

    async def _reload(self) -> None:
        log = self._folder / LOG
        start = log.stat().st_size
        self._configure()
        process = self._process
        if process is None or process.returncode is not None:
            return  # it is on its way back, and reads this
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + _RELOAD
        while process.returncode is None:
            said = _since(log, start)
            if _RELOADED in said:
                return
            if _NOT_RELOADED in said or time.monotonic() > deadline:
                reason = _last_lines(log, start) or f"it does not answer within {_RELOAD:.0f} s"
                raise SituError(BUS_FAILED(what="let in other clients", reason=reason))
            await asyncio.sleep(0.01)

    # ── watching and ending ──

    async def _supervise(self, program: str) -> None:
        wait = _FIRST_WAIT
        while True:
            self.trouble = await self._end_of_server()
            _log.warning("%s; starting it again", self.trouble)
            while True:
                wait = _FIRST_WAIT if time.monotonic() - self._started > _STABLE else min(2 * wait, _LONGEST_WAIT)
                await asyncio.sleep(wait)
                try:
                    await self._launch(program)
                    break
                except (SituError, OSError) as error:
                    self.trouble = str(error)
                    _log.warning("%s", error)
            self.trouble = ""
            self.restarts += 1
            if self._on_restart is not None:
                self._on_restart()

    async def _end_of_server(self) -> str:
        """Why there is no server any more. One that could not write stays silent for good, so it is ended."""
        assert self._process is not None
        unwritable = False
        while True:
            try:
                code = await asyncio.wait_for(self._process.wait(), _LOOK)
            except TimeoutError:
                if self._cannot_write():
                    unwritable = True
                    await self._end()
            else:
                return f"the embedded bus {_UNWRITABLE if unwritable else f'ended with exit code {code}'}"

    def _cannot_write(self) -> bool:
        try:
            with (self._folder / LOG).open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._read:
                    self._read = 0  # a new file
                file.seek(self._read)
                new = file.read(_MOST_LOG)
                self._read += len(new)
        except OSError:
            return False
        return b"critical write error" in new.lower()

    async def _end(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _since(log: Path, start: int) -> str:
    """What was written to the log since it was so long; all of it if it is a new one since."""
    try:
        with log.open("rb") as file:
            file.seek(start if start <= os.fstat(file.fileno()).st_size else 0)
            return file.read()[-65_536:].decode(errors="replace")
    except OSError:
        return ""


def _last_lines(log: Path, start: int) -> str:
    lines = _since(log, start).split("\n")
    told = [line for line in lines if "[FTL]" in line or "[ERR]" in line] or [line for line in lines if line.strip()]
    return " · ".join(line.strip()[:300] for line in told[-_LINES:])
