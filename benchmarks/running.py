"""Runs as users have them: ``situ run`` in a process of its own, and clients in theirs.

A client is a function that runs in a process of its own and talks over a pipe: it says that it is ready, waits for the
word to begin, and says in the end what it measured. Times are of the system's monotonic clock, the same in all
processes. Clients are forked from a process that has loaded what they need and done nothing with it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.project_files import write

_START, _STOP = 240.0, 60.0
_CLIENT = 240.0
LOADED = [
    "situ.client.connection",
    "benchmarks.clients",
    "benchmarks.interpretation_running",
    "benchmarks.situation_latency",
    "benchmarks.quality_advice",
    "benchmarks.kafka_latency",
]
"""What the process has loaded that others are forked from. There is one such in a process: tests put theirs in, too."""
Pipe = Connection


class Run:
    """A running project."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.process = process
        self.figures: Mapping[str, Any] = {}
        """What it said of itself last, at most a second old."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(ValueError):
                self.figures = json.loads(line)

    def wait_for(self, condition: Callable[[Mapping[str, Any]], bool]) -> None:
        deadline = time.monotonic() + _START
        while not condition(self.figures):
            assert self.process.poll() is None, (self.folder / "run.log").read_text()[-2000:]
            assert time.monotonic() < deadline, f"it never came to that: {self.figures}"
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def situ_run(folder: Path, files: Mapping[str, str], *, engine: str) -> Iterator[Run]:
    """``situ run`` on a project with these files, until the block ends."""
    write(folder, dict(files))
    command = [sys.executable, "-m", "situ", "run", "--engine", engine, "--project", str(folder), "--json"]
    with (folder / "run.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
    run = Run(folder, process)
    try:
        run.wait_for(lambda figures: figures.get("state") == "running")
        yield run
    finally:
        run.stop()


class Client:
    """A function at work in a process of its own; its first argument is the other end of the pipe."""

    def __init__(self, work: Callable[..., None], **arguments: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(LOADED)
        self._pipe, other = context.Pipe()
        self._name = work.__name__
        self._process = context.Process(target=_work, args=(work, other, arguments), daemon=True)
        self._process.start()
        other.close()

    def hear(self, within: float = _CLIENT) -> Any:
        """What it says next."""
        assert self._pipe.poll(within), f"{self._name} says nothing"
        try:
            return self._pipe.recv()
        except EOFError:
            raise AssertionError(f"{self._name} ended without a word") from None

    def say(self, word: object = "go") -> None:
        self._pipe.send(word)

    def end(self) -> None:
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()


def _work(work: Callable[..., None], pipe: Pipe, arguments: dict[str, Any]) -> None:
    """In the process of a client: work, but not longer than whoever wants to know is there."""
    parent = os.getppid()  # what it was forked from, which ends with whoever wants to know

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    work(pipe, **arguments)


def exchange(receiver: Client, sender: Client) -> tuple[Any, Any]:
    """Both get ready, the sender begins, both say what they measured."""
    try:
        receiver.hear()
        sender.hear()
        sender.say()
        sent = sender.hear()
        return receiver.hear(), sent
    finally:
        sender.end()
        receiver.end()


def percentile(sorted_values: list[float], share: float) -> float:
    """The value that this share of all values does not exceed."""
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))]
