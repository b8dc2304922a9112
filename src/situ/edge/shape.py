"""Stage shape: what single subscriptions get of the events routed to them.

What its filters remember follows the cursor: it is on disk as it was behind some message that is delivered, and what
came from there to the cursor is shown to the filters once more when a process starts. So a process that dies in the
midst of it decides everything again as it did.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.plan import Plan
from situ.deployment.shaping import Shaped, Shaping
from situ.edge.epochs import learn_epochs
from situ.edge.root_log import place, read_lines
from situ.event.row import Row
from situ.subscription.routing import Routed

_log = logging.getLogger("situ.edge")
_VERSION = 1
_SHARE = 20
"""Of the time at most one part in so many goes into writing down."""


def shape(shaping: Shaping, rows: Sequence[Row], lines: Sequence[bytes], routed: Routed) -> Shaped:
    """What is left of the deliveries of these rows. Events are as old as they were when they came."""
    return shaping.shape(rows, lines, routed)


@dataclass(frozen=True, slots=True)
class _Written:
    """What filters remembered behind a message, and how it is known that all before is delivered."""

    content: bytes
    is_delivered: Callable[[], bool]


def shaping_text(seq: int, shaping: Mapping[str, Any]) -> bytes:
    """What the file holds: what filters remember behind a message."""
    return msgspec.json.encode({"version": _VERSION, "seq": seq, "shaping": shaping})


class ShapingFile:
    """What filters remember, on disk."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._waiting: _Written | None = None
        self._last = b""
        self._next = 0.0

    def is_due(self) -> bool:
        """Whether it is time to write down what is remembered by now."""
        return self._file is not None and self._waiting is None and time.monotonic() >= self._next

    def note(self, seq: int, shaping: Shaping, is_delivered: Callable[[], bool]) -> None:
        """Take down what is remembered now, behind this message; it is written when that is delivered."""
        began = time.monotonic()
        self._waiting = _Written(shaping_text(seq, shaping.as_json()), is_delivered)
        self._next = time.monotonic() + _SHARE * (time.monotonic() - began)

    def write(self) -> None:
        """Write down what can be."""
        waiting = self._waiting
        if self._file is None or waiting is None or not waiting.is_delivered():
            return
        self._waiting = None
        if waiting.content == self._last:
            return
        beside = self._file.with_suffix(".new")
        with suppress(OSError):  # a full disk: what is on it is older, and more of the log is read again
            beside.write_bytes(waiting.content)
            beside.replace(self._file)
            self._last = waiting.content

    def forget(self) -> None:
        """Nothing is shaped any more."""
        self._waiting, self._last = None, b""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink(missing_ok=True)

    def restore(self, shaping: Shaping, plan: Plan) -> int | None:
        """Go on with what is on disk; the message behind which it was remembered. None: there is nothing."""
        self._waiting = None
        if self._file is None or not self._file.exists():
            return None
        try:
            content = msgspec.json.decode(self._file.read_bytes())
            if content["version"] != _VERSION:
                raise ValueError(f"its version is {content['version']}")
            shaping.restore([content["shaping"]], plan)
            return int(content["seq"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("%s cannot be read (%s): shaping begins anew", self._file, error)
            shaping.restore([], plan)
            return None


async def show_again(bus: Bus, plan: Plan, shaping: Shaping, behind: int, until: int) -> None:
    """Show filters what came behind one message, up to another that is delivered: they had passed it before."""
    stream = Names(plan.zone).root_stream
    async for stored in bus.read(stream, behind + 1, until):
        rows, lines = read_lines(in_terms_of_now(stored, plan.interpretation))
        await learn_epochs(bus, plan, rows)
        lines = place(rows, lines, stored.seq)
        shape(shaping, rows, lines, plan.routing.route(rows, queued=True))
