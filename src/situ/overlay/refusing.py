"""How a router says no: the answers that refuse, each with its code."""

from __future__ import annotations

from situ.catalogue import (
    NO_SUCH_DECLARATION,
    NOT_UNDERSTOOD,
    SEQUENCE_GAP,
)
from situ.errors import Problem
from situ.overlay.effects import (
    Answer,
    Received,
    Report,
)
from situ.overlay.messages import (
    Nack,
)
from situ.overlay.state import Effects


def refuse(
    ticket: int,
    of: str,
    req: int,
    problem: Problem,
    *,
    retry: bool = False,
    expected: int | None = None,
    name: str = "",
) -> Effects:
    nack = Nack(
        of=of,
        req=req,
        code=problem.code.code,
        message=problem.message,
        hint=problem.hint,
        retry=retry,
        expected=expected,
        name=name,
    )
    yield Answer(ticket=ticket, message=nack)


def refuse_gap(given: Received, of: str, expected: int, found: int) -> Effects:
    problem = SEQUENCE_GAP(client=given.client, expected=expected, found=found)
    yield from refuse(given.ticket, of, 0, problem, retry=True, expected=expected)
    yield Report(client=given.client, code=problem.code.code, text=problem.message)


def bad_name(name: str) -> Problem:
    return NOT_UNDERSTOOD(kind="declaration", reason=f"`{name[:64]}` is no name: letters, digits and `-`, at most 64")


def unknown_declaration(client: str, kind: str, name: str) -> Problem:
    remedy = "Declare it first; `situ get` lists what is declared."
    return NO_SUCH_DECLARATION(client=client, reason=f"has declared no {kind} `{name[:64]}` itself", remedy=remedy)
