"""What a part of Situ writes down to go on with after a restart: values by key, all of one step or none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, select

from situ.deployment import canonical
from situ.registry.database import Database
from situ.registry.tables import STATE

_FORMAT = 1


class KeptState:
    """The values of one part. A value is JSON."""

    def __init__(self, database: Database, part: str) -> None:
        self._database = database
        self._part = part

    def read(self) -> dict[str, Any]:
        """Everything that is kept."""
        with self._database.reading() as connection:
            asked = select(STATE.c.key, STATE.c.value).where(STATE.c.part == self._part, STATE.c.version == _FORMAT)
            return {key: json.loads(value) for key, value in connection.execute(asked)}

    def keep(self, values: Mapping[str, Any]) -> None:
        """It is there for the next process when this returns; None: there is nothing under the key any more."""
        if not values:
            return
        rows = [
            {"part": self._part, "key": key, "version": _FORMAT, "value": canonical(value)}
            for key, value in values.items()
            if value is not None
        ]
        with self._database.writing() as connection:
            gone = delete(STATE).where(STATE.c.part == self._part, STATE.c.key == bindparam("gone"))
            connection.execute(gone, [{"gone": key} for key in values])
            if rows:
                connection.execute(STATE.insert(), rows)
