"""How far the edge engine is, on disk: what is routed of the root log and of the dead letters, and of each client."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path

_log = logging.getLogger("situ.edge")


class Cursor:
    """``root`` and ``dead`` are sequences of messages up to which everything is delivered; None: not known.

    Messages are delivered in the order in which they were handed to the bus, which need not be that of the log: two
    clients are stored side by side. What is delivered before something that stands before it in the log is remembered,
    and the cursor stays: whoever goes on from it must not pass over anything.

    ``highest`` is incarnation and number of the last event of each client that was routed, or begun to be: what comes
    again from a client is told from what is new by it, also after a restart.
    """

    def __init__(self, file: Path | None) -> None:
        self.root: int | None = None
        self.dead: int | None = None
        self.highest: dict[str, tuple[int, int]] = {}
        self._ahead: dict[str, set[int]] = {"root": set(), "dead": set()}
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

    def deliver(self, log: str, seq: int) -> None:
        """A message of one of the logs is delivered."""
        at: int | None = getattr(self, log)
        ahead = self._ahead[log]
        if at is None:
            at = seq - 1
        if seq > at:
            ahead.add(seq)
        while at + 1 in ahead:
            at += 1
            ahead.remove(at)
        setattr(self, log, at)

    def pass_over(self, log: str, seq: int) -> None:
        """Everything up to this message is delivered, or there is nothing any more that could be."""
        setattr(self, log, seq)
        self._ahead[log] = {each for each in self._ahead[log] if each > seq}

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
