"""Tables for commands that convert events: read when the first event needs them, once, and let go at once.

Beside them the Python functions, which are executed when they are first called, and what was remembered of the events
before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from situ.deployment.memory import Memory
from situ.deployment.python_functions import PythonFunctions
from situ.deployment.rows import Rows, keyed
from situ.interpretation.rows import Find
from situ.interpretation.transformation import Transformation
from situ.sources import Source
from situ.tables.in_use import TablesInUse


class LookedUp:
    """The tables of a project as they are now. Files are relative to its folder."""

    def __init__(self, sources: Mapping[str, Source], folder: Path) -> None:
        self._sources = sources
        self._folder = folder
        self._rows = Rows()
        self._python = PythonFunctions()
        self.memory = Memory()

    def find(self, way: Transformation) -> Mapping[str, Find]:
        """How what a transformation needs besides the event is found; ``SituError`` if a table cannot be used."""
        needed = keyed([way])
        missing = {name: each for name, each in needed.items() if name not in self._rows.tables}
        if missing:
            with TablesInUse(self._folder) as tables:
                self._rows.tables = {**self._rows.tables, **tables.use(self._sources, missing)}
        for name, keys in needed.items():
            for columns, as_of in keys:
                self._rows.tables[name].index(columns, as_of)
        return {**self._rows.finders(way), **self._python.finders(way), **self.memory.finders(way)}
