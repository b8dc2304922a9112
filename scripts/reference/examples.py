"""Examples in Markdown that can be run: files to write and commands with what they say.

A block of ``yaml`` whose first line is a comment with a path, or any block with a title, is a file. In a block of
``console``, lines that begin with ``$ `` are commands (continued by lines that begin with ``> ``); what follows is
their output. A line ``…`` in it stands for any lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"# ([\w./-]+\.yaml)\n")
_TITLE = re.compile(r' title="([\w./-]+)"')
_SECONDS = re.compile(r"\b\d+\.\d s\b")
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


Step = File | Command


@dataclass(slots=True)
class Runner:
    """Runs the steps of one page in a folder; a command that changes the folder does so for those after it."""

    folder: Path
    colour: bool = False
    here: Path = field(init=False)

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

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
        colour = {"FORCE_COLOR": "1", "TERM": "xterm-256color"} if self.colour else {}
        return {**kept, "LANG": "C.UTF-8", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **colour}


def steps(markdown: str) -> Iterator[Step]:
    """What a page asks its reader to do, in order."""
    for language, information, body in _BLOCK.findall(markdown):
        if language == "console":
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
    lines = _SECONDS.sub("0.0 s", text).strip("\n").split("\n")
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
