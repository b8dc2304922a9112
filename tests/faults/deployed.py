"""``situ run`` as a process of its own, in a project folder: started, killed, stopped, looked at."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from benchmarks.running import LOADED
from situ.bus.address import Address, resolve_address
from situ.bus.sync_bus import BlockingBus
from situ.cli.main import main
from situ.event.lines import decode_line, stored_lines
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.project.check import check_folder
from situ.settings import Settings
from tests.project_files import write

PATIENCE = 300.0
"""Seconds any wait may take on a machine that does other things too. All of them end when what they wait for is so."""

ROOT = Path(__file__).parents[2]
TYPES = """
version: 1
events:
  Reading: {sensor: string, value: double, number: int}
  Alarm: {text: string, level: int, number: int}
"""


def wait_for(condition: Callable[[], object], what: str, *, seconds: float = PATIENCE, every: float = 0.02) -> None:
    """``every`` so often it is asked; less often where to ask is to read the whole log."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(every)


_FORKS = multiprocessing.get_context("forkserver")
LOADED += [
    "situ.app.run",
    "situ.bus.nats",
    "situ.cli.app",
    "situ.project.status",
    "sqlalchemy.dialects.sqlite",
    "tests.faults.traffic",
    "typer._adapters",
]
_FORKS.set_forkserver_preload(LOADED)


class Forked:
    """A process of its own, forked from one that has loaded Situ: it need not do so itself, which takes a second."""

    def __init__(self, work: Callable[..., object], *arguments: object, folder: Path, out: Path, err: Path) -> None:
        self._process = _FORKS.Process(target=_work, args=(work, arguments, folder, out, err, environment()))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"it has not ended within {timeout} s"
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


def _work(
    work: Callable[..., object],
    arguments: tuple[object, ...],
    folder: Path,
    out: Path,
    err: Path,
    variables: dict[str, str],
) -> None:
    os.setsid()  # a Ctrl-C of the test is the test's
    for number, file in enumerate((Path(os.devnull), out, err)):
        opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT if number else os.O_RDONLY, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate("rww"))
    os.environ.update(variables)
    os.chdir(folder)
    sys.exit(work(*arguments))  # type: ignore[arg-type]


class Deployed:
    """A project folder and the run in it, if there is one now."""

    def __init__(
        self,
        folder: Path,
        *,
        engine: str,
        situ: str = "",
        files: dict[str, str] | None = None,
        variables: dict[str, str] | None = None,
        forked: bool = True,
    ) -> None:
        """Not ``forked``: the run starts from nothing, as it does for users; ``variables`` ask for that, too."""
        self.folder = folder
        self.engine = engine
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self._variables = variables or {}
        self._forked = forked and not variables
        self._commands = 0
        self._out = folder.parent / f"{folder.name}.out"
        situ = situ or "defaults: {install_timeout: 60 s}\n"  # whoever subscribes waits for an engine that is slow
        settings = f"version: 1\nname: plant\nengine: {engine}\n{situ}"
        write(folder, {"situ.yaml": settings, "types/all.yaml": TYPES, **(files or {})})

    # ── the process ──

    def start(self, *arguments: str) -> None:
        """Start a run; :meth:`ready` waits until it is up."""
        assert self.process is None
        self._log_start = len(self.log)
        if self._forked:
            command = ["run", "--quiet", *arguments]
            self.process = Forked(main, command, folder=self.folder, out=self._out, err=self._out)
            return
        with self._out.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "situ.cli.main", "run", "--quiet", *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**environment(), **self._variables},
                start_new_session=True,  # a Ctrl-C of the test is the test's
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ready(self) -> None:
        wait_for(lambda: self.said("running"), "the run is up")

    def check(self) -> None:
        """The run has not ended by itself."""
        assert self.process is not None
        assert self.process.poll() is None, f"the run ended with {self.process.returncode}"

    def said(self, text: str) -> bool:
        """Whether the log of the run that is under way has a line that ends in this."""
        self.check()
        assert self.process is not None
        mine = re.compile(rf" {self.process.pid} .*{re.escape(text)}$", re.MULTILINE)
        return mine.search(self.log[self._log_start :]) is not None

    def kill(self) -> None:
        """SIGKILL, as the machine or an administrator does it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end; the exit code."""
        assert self.process is not None
        code = self.process.wait(PATIENCE)
        self.process = None
        return code

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.ended()

    def kill_bus(self) -> None:
        """SIGKILL to the embedded server; the run starts it again."""
        server = self.bus_server()
        assert server is not None, "the embedded server runs"
        server.kill()

    def bus_server(self) -> psutil.Process | None:
        for child in psutil.Process(self.pid).children():
            with suppress(psutil.Error):
                if child.name().startswith("nats-server"):
                    return child
        return None

    def left_over(self) -> list[psutil.Process]:
        """Processes that work in this folder."""
        found, name = [], str(self.folder)
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid != os.getpid() and any(name in part for part in process.cmdline()):
                    found.append(process)
        return found

    # ── what it left ──

    def command(self, *arguments: str) -> Any:
        """What a command gives that has ``--json``."""
        self._commands += 1
        out, err = (self.folder.parent / f"command-{self._commands}.{name}" for name in ("out", "err"))
        code = Forked(main, [*arguments, "--json"], folder=self.folder, out=out, err=err).wait(PATIENCE)
        assert code == 0, err.read_text()
        return json.loads(out.read_text())

    @property
    def shown(self) -> str:
        """What it wrote for people."""
        return self._out.read_text(errors="replace") if self._out.exists() else ""

    @property
    def log(self) -> str:
        file = self.folder / ".situ" / "logs" / "situ.log"
        return file.read_text(errors="replace") if file.exists() else ""

    @cached_property
    def _settings(self) -> Settings:
        checked = check_folder(self.folder)
        assert checked.deployment is not None, checked.problems
        return checked.deployment.settings

    @property
    def address(self) -> Address:
        return resolve_address(self.folder, self._settings)

    @contextmanager
    def bus(self) -> Iterator[BlockingBus]:
        with BlockingBus(self.address, name="test") as bus:
            yield bus

    def root(self) -> list[Row]:
        """The events of the root log."""
        return [decode_line(line) for line in self._lines(BusNames("main").root_stream)]

    def dead(self) -> list[dict[str, Any]]:
        """The data of the dead letters."""
        return [json.loads(line)["data"] for line in self._lines(BusNames("main").dead_stream)]

    def _lines(self, stream: str) -> list[bytes]:
        with self.bus() as bus:
            return [line for message in bus.read(stream, 1) for line in stored_lines(message)]


def environment() -> dict[str, str]:
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "LANG": "C.UTF-8"}


@contextmanager
def deployed(
    folder: Path,
    *,
    engine: str,
    situ: str = "",
    files: dict[str, str] | None = None,
    variables: dict[str, str] | None = None,
    forked: bool = True,
    start: bool = True,
) -> Iterator[Deployed]:
    """A project whose run, and all that it started, is gone when the block ends."""
    made = Deployed(folder, engine=engine, situ=situ, files=files, variables=variables, forked=forked)
    try:
        if start:
            made.start()
            made.ready()
        yield made
    except BaseException:
        print(f"{made.shown[-2000:]}\n…\n{made.log[-6000:]}")  # shown where the test fails
        raise
    finally:
        if made.process is not None:
            made.kill()
        deadline = time.monotonic() + PATIENCE
        while (left := made.left_over()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for process in left:
            process.kill()
        assert not left, f"what a run started ends with it, but these were left: {left}"
