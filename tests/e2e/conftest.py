"""The command as a user runs it: a process of its own, its two streams, its exit code.

Starting Python and loading everything takes a second, the commands themselves a fraction. So most runs are forked from
a process that has loaded everything already; what depends on how a process starts uses :meth:`Situ.fresh`.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SITU = (sys.executable, "-m", "situ.cli.main")
FORKS = Path(__file__).with_name("forks.py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "smart-building"
PATIENCE = 300
# What a developer's shell may have set and a test must not depend on.
_OWN = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING", "PYTHONUTF8")
# Compiled modules are kept between runs, as they are on a user's machine, whatever this one is set to.
_COMPILED = tempfile.TemporaryDirectory(prefix="situ-e2e-")


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
        self._forks = subprocess.Popen(
            [sys.executable, FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment()
        )

    def close(self) -> None:
        self._forks.kill()
        self._forks.communicate()

    def __call__(self, *arguments: str | Path, cwd: Path | None = None, stdin: bytes = b"") -> Ran:
        """In a process forked from one that has everything loaded."""
        with tempfile.TemporaryDirectory() as folder:
            streams = [Path(folder) / name for name in ("in", "out", "err")]
            for file in streams:
                file.write_bytes(stdin if file.name == "in" else b"")
            code = self._fork(
                {
                    "arguments": [*map(str, arguments)],
                    "folder": str(cwd or Path.cwd()),
                    "streams": [*map(str, streams)],
                }
            )
            return Ran(code, *(file.read_text(encoding="utf-8") for file in streams[1:]))

    def _fork(self, request: dict[str, Any]) -> int:
        requests, codes = self._forks.stdin, self._forks.stdout
        assert requests is not None
        assert codes is not None
        requests.write(json.dumps(request).encode() + b"\n")
        requests.flush()
        if not select.select([codes], [], [], PATIENCE)[0]:
            raise TimeoutError(f"situ {request['arguments']} does not end")
        return int(codes.readline())

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
        kept = {name: value for name, value in os.environ.items() if name not in (*_OWN, "PYTHONDONTWRITEBYTECODE")}
        return {**kept, "LANG": "C.UTF-8", "PYTHONPYCACHEPREFIX": _COMPILED.name, **(env or {})}


@pytest.fixture(scope="session")
def situ() -> Iterator[Situ]:
    made = Situ()
    yield made
    made.close()


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
