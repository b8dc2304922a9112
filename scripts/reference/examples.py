"""Examples in Markdown that can be run: files to write and commands with what they say.

A block of ``yaml`` whose first line is a comment with a path, or any block with a title, is a file. In a block of
``console``, lines that begin with ``$ `` are commands (continued by lines that begin with ``> ``); what follows is
their output. A line ``…`` in it stands for any lines.

A block of ``console`` with a title is another terminal. Its command goes on until the page ends, when it is stopped as
by Ctrl-C; a further block of the same title without a command is what it says later.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"# ([\w./-]+\.yaml)\n")
_TITLE = re.compile(r' title="([\w./-]+)"')
_TERMINAL = re.compile(r' title="([^"]+)"')
_PATIENCE = 120.0
# What differs from run to run: how long something took, when it was, and numbers that begin at the clock.
_VARYING = (
    (re.compile(r"\b\d+\.\d s\b"), "0.0 s"),
    (re.compile(r"\b(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(\.\d+)?\b"), "00:00:00"),
    (re.compile(r"\b1[0-9]{12}\b"), "1793520000000"),
    (re.compile(r"\bplan [0-9a-f]{6}\b"), "plan 000000"),
)
_ELISION = "…"
# What a shell may have set and the output must not depend on.
_SETTINGS = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL", "LC_CTYPE")


@dataclass(frozen=True, slots=True)
class File:
    """A file to write before going on."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and its output if the page shows it."""

    text: str
    output: str


@dataclass(frozen=True, slots=True)
class Aside:
    """What happens in another terminal: a command that goes on, or without one, what it says now."""

    terminal: str
    text: str
    output: str


Step = File | Command | Aside


@dataclass(slots=True)
class Runner:
    """Runs the steps of one page in a folder; a command that changes the folder does so for those after it.

    Commands are looked for in ``programs`` first.
    """

    folder: Path
    colour: bool = False
    programs: Path = field(default=Path(sys.executable).parent)
    here: Path = field(init=False)
    terminals: dict[str, Terminal] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.here = self.folder

    def write(self, file: File) -> None:
        path = self.here / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.content)

    def run(self, command: Command) -> tuple[int, str]:
        """The exit code, and all that a terminal would show."""
        place = self.folder / ".place"
        script = f"{command.text}\nstatus=$?\npwd > {place}\nexit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.here,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        self.here = Path(place.read_text().rstrip("\n"))
        place.unlink()
        return done.returncode, done.stdout.decode()

    def beside(self, aside: Aside) -> str:
        """Start a command in another terminal, or listen to it further; what it has said, when that is enough."""
        if aside.text:
            self.terminals[aside.terminal] = Terminal(aside.text, self.here, self._environment())
        return self.terminals[aside.terminal].listen(aside.output)

    def close(self) -> None:
        """Stop what goes on in other terminals, the last first."""
        for terminal in reversed(self.terminals.values()):
            terminal.close()

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
        colour = {"FORCE_COLOR": "1", "TERM": "xterm-256color"} if self.colour else {}
        path = os.pathsep.join([str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        return {**kept, "LANG": "C.UTF-8", "PATH": path, **colour}


class Terminal:
    """A command that goes on, and what it says, as it comes."""

    def __init__(self, text: str, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {text}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._said: list[bytes] = []
        self._heard = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def listen(self, shown: str) -> str:
        """What it said since it was last listened to, when it agrees with what is shown or does not any more."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            ended = not self._reader.is_alive()  # it has read to the end: the process alone may end before that
            found = b"".join(self._said[self._heard :]).decode()
            if agrees(shown, found) or ended or time.monotonic() > deadline:
                self._heard += found.encode().count(b"\n")
                return found
            time.sleep(0.05)

    def close(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._said.extend(self._process.stdout)


def steps(markdown: str) -> Iterator[Step]:
    """What a page asks its reader to do, in order."""
    for language, information, body in _BLOCK.findall(markdown):
        if language == "console" and (title := _TERMINAL.match(information)):
            command = next(_commands(body), None)
            yield Aside(title[1], command.text if command else "", command.output if command else body.rstrip("\n"))
        elif language == "console":
            yield from _commands(body)
        elif found := _TITLE.match(information) or _PATH.match(body):
            yield File(found[1], body)


def agrees(shown: str, found: str) -> bool:
    """Whether the output is the one shown; times differ from run to run, and what is elided may be anything."""
    pattern = ""
    for line in _normal(shown).split("\n"):
        pattern += r"(?:.*\n)*" if line.strip() == _ELISION else re.escape(line) + "\n"
    return re.fullmatch(pattern, _normal(found) + "\n") is not None


def _normal(text: str) -> str:
    for pattern, constant in _VARYING:
        text = pattern.sub(constant, text)
    lines = text.strip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def _commands(body: str) -> Iterator[Command]:
    text: list[str] = []
    output: list[str] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            if text:
                yield Command("\n".join(text), "\n".join(output))
            text, output = [line[2:]], []
        elif line.startswith("> ") and not output:
            text.append(line[2:])
        else:
            output.append(line)
    if text:
        yield Command("\n".join(text), "\n".join(output))
