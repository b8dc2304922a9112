"""Where the registry of a project is, and opening it."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from situ.registry.database import PATIENCE, open_postgresql, open_sqlite
from situ.registry.registry import Registry
from situ.settings import Settings

FILE = Path(".situ") / "registry.db"


def open_registry(folder: Path, settings: Settings, *, patience: float = PATIENCE) -> Registry:
    """The registry that ``registry:`` in situ.yaml names, brought to the format of this release.

    Waits for other writers and servers, here and later, for ``patience`` seconds. :class:`SituError` with D104 if it
    is locked for longer, D105 if it does not answer, D106 if a newer release wrote it.
    """
    address = settings.registry.value
    embedded = address == "embedded"
    database = (
        open_sqlite(folder / FILE, patience=patience) if embedded else open_postgresql(address, patience=patience)
    )
    return Registry(database)


def current_user() -> str:
    """Who changes something: the user of the operating system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may run as a number without a name
        return str(os.getuid())
