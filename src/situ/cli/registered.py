"""The registry a command works on: that of the project, whatever state the rest of its folder is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from situ.catalogue import UNKNOWN_OBJECT
from situ.cli.exits import Exit, Stop, exit_of
from situ.cli.in_force import settings_in_use
from situ.cli.opened import locate_project
from situ.cli.show_problems import plural
from situ.errors import SituError
from situ.registry import KINDS, Kind, Registry, open_registry
from situ.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """An open registry and the project it belongs to."""

    path: Path
    settings: Settings
    registry: Registry


@contextmanager
def registry_of(project: Path | None) -> Iterator[Registered]:
    """The registry of the project, open as long as the block runs."""
    path = locate_project(project)
    settings = settings_in_use(path)
    with open_registry(path, settings) as registry:
        yield Registered(path=path, settings=settings, registry=registry)


@contextmanager
def refusing() -> Iterator[None]:
    """A change that is not possible is refused; a registry that does not answer is another matter."""
    try:
        yield
    except SituError as error:
        code = exit_of(error)
        refused = code is Exit.NO and error.code != UNKNOWN_OBJECT.code
        raise Stop(Exit.REFUSED if refused else code, *error.problems) from None


def read_kind(text: str) -> Kind | None:
    """The kind of that name, in the singular or in the plural."""
    return next((kind for kind in KINDS if text in (kind, plural(kind))), None)
