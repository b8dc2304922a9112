"""A project that runs, in a process of its own, and commands that run beside it."""

from __future__ import annotations

import json
import os
import pty
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.conftest import PATIENCE, the_command

PLANT = {
    "situ.yaml": "version: 1\nname: plant\nengine: edge\n",
    "types/events.yaml": (
        "version: 1\nevents:\n  Reading: {sensor: string, value: double °C}\n  Alarm: {text: string}\n"
    ),
    "clients/all.yaml": (
        "version: 1\n"
        "clients:\n"
        "  sensor: {advertisements: {readings: {type: Reading}}}\n"
        "  board: {subscriptions: {hot: {types: [Reading], where: 'value > 30 °C', durable: true}}}\n"
        "  panel: {subscriptions: {all: {types: [Reading]}}}\n"
    ),
}


def make_plant(folder: Path, **changed: str) -> Path:
    """A small project on the edge engine; ``situ`` is appended to its settings."""
    for file, text in PLANT.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + (changed.get("situ", "") if file == "situ.yaml" else ""))
    return folder


class Process:
    """A command that goes on. What it says is read as it comes."""

    def __init__(self, *arguments: str | Path, cwd: Path, env: dict[str, str] | None = None) -> None:
        nothing, (out, to_out), (err, to_err) = os.open(os.devnull, os.O_RDONLY), os.pipe(), os.pipe()
        streams = (nothing, to_out, to_err)
        self._process = the_command().start(*arguments, cwd=cwd, env=env, streams=streams)
        for stream in streams:
            os.close(stream)
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=_collect, args=(out, self.lines)),
            threading.Thread(target=_collect, args=(err, self.errors)),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def out(self) -> str:
        return "".join(self.lines)

    @property
    def err(self) -> str:
        return "".join(self.errors)

    def until(self, *words: str, within: float = PATIENCE) -> None:
        """Wait until all of this was said, on either stream."""
        deadline = time.monotonic() + within
        while not all(word in self.out + self.err for word in words):
            assert self._process.poll() is None, f"ended with {self._process.returncode}:\n{self.out}\n{self.err}"
            assert time.monotonic() < deadline, f"does not say {words}:\n{self.out}\n{self.err}"
            time.sleep(0.02)

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self, within: float = PATIENCE) -> int:
        """Wait for its exit code."""
        code = self._process.wait(within)
        for reader in self._readers:
            reader.join(within)
        assert "Traceback" not in self.err, self.err
        return code

    def stop(self) -> int:
        """As by Ctrl-C."""
        self.send(signal.SIGINT)
        return self.end()

    def close(self) -> None:
        """Whatever happened, nothing is left."""
        if self._process.poll() is None:
            for child in children(self.pid):
                child.kill()
            self.send(signal.SIGKILL)
            self._process.wait()
        for reader in self._readers:
            reader.join()


class Run(Process):
    """``situ run --json``."""

    @property
    def figures(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines if line.endswith("\n")]

    def until_running(self, within: float = PATIENCE) -> None:
        deadline = time.monotonic() + within
        while not (self.figures and self.figures[-1]["state"] == "running" and self.figures[-1]["version"]):
            assert self._process.poll() is None, f"ended with {self._process.returncode}:\n{self.out}\n{self.err}"
            assert time.monotonic() < deadline, f"does not run:\n{self.out}\n{self.err}"
            time.sleep(0.02)


@contextmanager
def started(*arguments: str | Path, cwd: Path, env: dict[str, str] | None = None) -> Iterator[Process]:
    process = Process(*arguments, cwd=cwd, env=env)
    try:
        yield process
    finally:
        process.close()


@contextmanager
def running(folder: Path, *arguments: str, wait: bool = True, env: dict[str, str] | None = None) -> Iterator[Run]:
    """The project runs; killed at the end, if it is not stopped before."""
    run = Run("run", "--json", *arguments, cwd=folder, env=env)
    try:
        if wait:
            run.until_running()
        yield run
    finally:
        run.close()


def in_terminal(*arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Runs the command in a terminal of 80 columns; gives the exit code and what was on the screen."""
    ours, theirs = pty.openpty()
    env = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "30", **(env or {})}
    process = the_command().start(*arguments, cwd=cwd, env=env, streams=(theirs, theirs, theirs))
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how Linux says that the other side is closed
        while piece := os.read(ours, 65_536):
            shown += piece
    os.close(ours)
    return process.wait(PATIENCE), shown.decode()


def children(pid: int, name: str = "") -> list[psutil.Process]:
    """What a process started, of this name."""
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [each for each in found if name in each.name()]


def servers_of(folder: Path) -> list[psutil.Process]:
    """Servers that work on the store of this project."""
    configuration = str(folder.resolve() / ".situ" / "nats" / "server.conf")
    found = []
    for process in psutil.process_iter():
        try:
            if configuration in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def _collect(stream: int, lines: list[str]) -> None:
    with open(stream, encoding="utf-8") as said:
        lines.extend(said)  # line by line, as they come
