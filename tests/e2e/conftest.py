"""The command as a user runs it: a process of its own, its two streams, its exit code.

Starting Python and loading everything takes two seconds, the commands themselves a fraction. So most runs are forked
from a process that has loaded everything already; what depends on how a process starts uses :meth:`Situ.fresh`.
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.forks import Fork

SITU = (sys.executable, "-m", "situ.cli.main")
FORKS = Path(__file__).with_name("forks.py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "smart-building"
PATIENCE = 300
# What a developer's shell may have set and a test must not depend on.
_OWN = (
    *("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE"),
    *("PYTHONIOENCODING", "PYTHONUTF8", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def __post_init__(self) -> None:
        assert "Traceback" not in self.err, self.err
        assert "Error:" not in self.err, self.err

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Situ:
    """Runs the command. Whatever it is asked, it must not show a traceback."""

    example = EXAMPLE

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="situ-e2e-")
        self._at = str(Path(self._folder.name) / "socket")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self._at)
            listening.listen()
            self._forks = subprocess.Popen(
                [sys.executable, FORKS, "serve", str(listening.fileno())],
                stdin=subprocess.PIPE,
                env=self.environment(),
                pass_fds=[listening.fileno()],
            )

    def close(self) -> None:
        self._forks.kill()
        self._forks.communicate()
        self._folder.cleanup()

    @cached_property
    def programs(self) -> Path:
        """A folder for `PATH`, with a `situ` that forks as well."""
        folder = Path(self._folder.name) / "bin"
        folder.mkdir()
        command = shlex.join([sys.executable, "-I", "-S", str(FORKS), "situ", self._at])
        (folder / "situ").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / "situ").chmod(0o755)
        return folder

    def __call__(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        """In a process forked from one that has everything loaded."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            streams = (given.fileno(), out.fileno(), err.fileno())
            code = self.start(*arguments, cwd=cwd, env=env, streams=streams).wait(PATIENCE)
            for stream in (out, err):
                stream.seek(0)
            return Ran(code, *(stream.read().decode() for stream in (out, err)))

    def start(
        self,
        *arguments: str | Path,
        streams: tuple[int, int, int],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Fork:
        """The same, and it may go on."""
        return Fork(self._at, map(str, arguments), str(cwd or Path.cwd()), self.environment(env), streams)

    def fresh(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        encoding: str = "utf-8",
    ) -> Ran:
        """In a process of its own from the start, with these variables set."""
        ran = subprocess.run(
            [*SITU, *map(str, arguments)],
            cwd=cwd,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout.decode(encoding), ran.stderr.decode(encoding))

    @staticmethod
    def environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _OWN}
        return {**kept, "LANG": "C.UTF-8", **(env or {})}


@cache
def the_command() -> Situ:
    """One for all tests of this process."""
    made = Situ()
    atexit.register(made.close)
    return made


@pytest.fixture(scope="session")
def situ() -> Situ:
    return the_command()


@pytest.fixture
def project(situ: Situ, tmp_path: Path) -> Path:
    """A new project, as `situ init` makes it."""
    folder = tmp_path / "project"
    assert situ("init", folder).code == 0
    return folder


@pytest.fixture
def broken_project(tmp_path: Path) -> Path:
    """A project with one error, in line 4 of its types."""
    folder = tmp_path / "broken"
    (folder / "types").mkdir(parents=True)
    (folder / "situ.yaml").write_text("name: broken\n")
    types = "version: 1\nevents:\n  # a unit that is none\n  Reading: {length: double cmm, at: timestamp}\n"
    (folder / "types" / "events.yaml").write_text(types)
    return folder
