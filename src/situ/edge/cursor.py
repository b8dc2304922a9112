"""How far the edge engine is, on disk: what is routed of the root log and of the dead letters, and of each client."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path

_log = logging.getLogger("situ.edge")


class Cursor:
    """``root`` and ``dead`` are sequences of messages up to which everything is routed; None: not known.

    ``highest`` is incarnation and number of the last event of each client that was routed, or begun to be: what comes
    again from a client is told from what is new by it, also after a restart.
    """

    def __init__(self, file: Path | None) -> None:
        self.root: int | None = None
        self.dead: int | None = None
        self.highest: dict[str, tuple[int, int]] = {}
        self._file = file
        self._saved: tuple[int | None, int | None] = (None, None)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._load(file)

    def _load(self, file: Path) -> None:
        try:
            known = json.loads(file.read_text())
            highest = {str(client): (int(one), int(two)) for client, (one, two) in known["highest"].items()}
            self.root, self.dead, self.highest = int(known["root"]), int(known["dead"]), highest
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("%s cannot be read (%s): routing goes on behind the end of the log", file, error)

    def reached(self, client: str, incarnation: int, seq: int) -> bool:
        """Whether this event of the client was routed."""
        return (incarnation, seq) <= self.highest.get(client, (0, 0))

    def reach(self, client: str, incarnation: int, seq: int) -> None:
        if (incarnation, seq) > self.highest.get(client, (0, 0)):
            self.highest[client] = (incarnation, seq)

    def save(self) -> None:
        if self._file is None or (self.root, self.dead) == self._saved:
            return
        new = self._file.with_suffix(".new")
        with suppress(OSError):  # a full disk: what is routed again after a restart is known by its ids
            new.write_text(json.dumps({"version": 1, "root": self.root, "dead": self.dead, "highest": self.highest}))
            new.replace(self._file)
            self._saved = (self.root, self.dead)
