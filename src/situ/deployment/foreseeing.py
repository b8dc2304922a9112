"""Which values Python functions will be asked for by a batch of events, found out before it is converted.

What converts and decides is run once for nothing but that; see :mod:`situ.deployment.python_functions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol

from situ.deployment.later import Decision
from situ.deployment.python_functions import PythonFunctions
from situ.deployment.wording import pairs
from situ.event.row import Bad, Row
from situ.interpretation.convert import Converter
from situ.interpretation.model import ROOT, Direction
from situ.subscription.model import Subscription
from situ.subscription.reading import read_envelope
from situ.subscription.wanted import Group

if TYPE_CHECKING:
    from situ.subscription.routing import Routed, Routing

_NOTHING = nullcontext()


class Asking(Protocol):
    """Converts events and decides about them, and may ask Python functions for that."""

    @property
    def python(self) -> PythonFunctions: ...

    @property
    def calls_python(self) -> bool: ...

    def converter(self, context: str, direction: Direction, type: str) -> Converter | None: ...

    def decision(self, asked: Group | Subscription, type: str) -> Decision | None: ...


def foreseen_in(asking: Asking, messages: Iterable[Sequence[Row | Bad]]) -> AbstractContextManager[None]:
    """Within, Python functions have been called for all of these events that are on their way into root."""
    if not asking.calls_python:
        return _NOTHING
    return asking.python.together(
        partial(way.text, read_envelope(row), row.data)
        for rows in messages
        for row in rows
        if isinstance(row, Row) and row.context != ROOT
        if (way := asking.converter(row.context, Direction.IN, row.type)) is not None and _calls(way)
    )


def foreseen_out(
    asking: Asking, messages: Sequence[tuple[Sequence[Row], Routed]], routing: Routing
) -> AbstractContextManager[None]:
    """Within, Python functions have been called for all of these events and the contexts they are for."""
    if not asking.calls_python:
        return _NOTHING
    decisions = (
        partial(later.wants, rows[index])
        for rows, routed in messages
        for index, asked in pairs(routed, routing)
        if (later := asking.decision(asked, rows[index].type)) is not None
    )
    conversions = (
        partial(way.text, read_envelope(rows[index]), rows[index].data)
        for rows, routed in messages
        for index, context in _wanted_in(asking, rows, routed, routing)
        if (way := asking.converter(context, Direction.OUT, rows[index].type)) is not None and _calls(way)
    )
    return asking.python.together(decisions, conversions)


def _wanted_in(asking: Asking, rows: Sequence[Row], routed: Routed, routing: Routing) -> Iterable[tuple[int, str]]:
    """Places of rows and the contexts in which somebody wants them, each once."""
    found: dict[tuple[int, str], None] = {}
    for index, asked in pairs(routed, routing):
        if asked.context != ROOT and (index, asked.context) not in found:
            later = asking.decision(asked, rows[index].type)
            if later is None or later.wants(rows[index]) is not False:
                found[index, asked.context] = None
    return found


def _calls(way: Converter) -> bool:
    return any(each.of is None for each in way.transformation.externals.values())
