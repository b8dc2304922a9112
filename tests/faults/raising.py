"""Functions of a deployment that raise once when they are told to, in whichever of its processes they run.

A module ``sitecustomize`` on the path of all Python processes of a run calls :func:`install`, which puts a hook around
the functions named in the file ``places`` when their modules are loaded. A test arms one by a file of its name; the
first process that comes by takes the file away and raises. What is loaded by every process has to be little.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = "SITU_TEST_RAISING"
_SITE = "from tests.faults.raising import install\n\ninstall()\n"


class Raised(RuntimeError):
    """No part of Situ knows this."""


class Raising:
    """The side of the test."""

    def __init__(self, folder: Path, places: Iterable[str], root: Path) -> None:
        for each in ("site", "armed", "raised"):
            (folder / each).mkdir(parents=True)
        (folder / "site" / "sitecustomize.py").write_text(_SITE)
        (folder / "places").write_text("\n".join(places))
        self._folder = folder
        self.variables = {FOLDER: str(folder), "PYTHONPATH": f"{folder / 'site'}{os.pathsep}{root}"}

    def arm(self, place: str) -> None:
        (self._folder / "raised" / place).unlink(missing_ok=True)
        (self._folder / "armed" / place).touch()

    def disarm(self, place: str) -> None:
        (self._folder / "armed" / place).unlink(missing_ok=True)

    def has_raised(self, place: str) -> bool:
        return (self._folder / "raised" / place).exists()


def install() -> None:
    folder = os.environ.get(FOLDER)
    if folder:
        places = (Path(folder) / "places").read_text().split()
        sys.meta_path.insert(0, _Finder(folder, places))


class _Finder(MetaPathFinder):
    def __init__(self, folder: str, places: Iterable[str]) -> None:
        self._folder = folder
        self._names: dict[str, list[str]] = {}
        for place in places:
            module, _, name = place.partition(":")
            self._names.setdefault(module, []).append(name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        names = self._names.get(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if names else None
        if spec is None or spec.loader is None or names is None:
            return None
        spec.loader = _Hooked(spec.loader, self._folder, names)
        return spec


class _Hooked(Loader):
    def __init__(self, loader: Loader, folder: str, names: Iterable[str]) -> None:
        self._loader, self._folder, self._names = loader, folder, names

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for name in self._names:
            owner, _, last = name.rpartition(".")
            at: Any = getattr(module, owner) if owner else module
            setattr(at, last, _hooked(vars(at)[last], self._folder, f"{module.__name__}:{name}"))


def _hooked(work: Callable[..., Any], folder: str, place: str) -> Callable[..., Any]:
    armed, raised = (f"{folder}/{each}/{place}" for each in ("armed", "raised"))

    @functools.wraps(work)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        if os.path.exists(armed):  # noqa: PTH110 - it is asked often
            try:
                os.rename(armed, raised)  # noqa: PTH104 - one process gets it
            except FileNotFoundError:
                pass
            else:
                raise Raised(f"put in by a test: {place}")
        return work(*args, **kwargs)

    return hooked
