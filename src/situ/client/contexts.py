"""In whose terms a client speaks and hears: the context it is in, and those it defines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from situ.client.declarations import Installation
from situ.client.session import Session
from situ.lang.catalogue import NOT_AVAILABLE, NOT_INSTALLED
from situ.lang.documents import MappingNode as Fields
from situ.lang.documents import parse_yaml
from situ.lang.problems import SituError
from situ.protocol.messages import ContextAck, DefineContext, Notice, UseContext

_DEFINE_WITHIN = 30.0
_USE_WITHIN = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedContext:
    """A context that was defined. ``said`` is what is worth knowing about it, and why it may be a fork.

    >>> passed = {"truck": "string", "speed": "double mi/h"}
    >>> text = {"events": {"Passed": passed}, "maps": [{"out": "TruckSeen -> Passed"}]}
    >>> defined = await office.define_context("us", text)
    >>> defined.id
    'us'
    """

    id: str
    version: int
    """Of the deployment that has it."""
    said: tuple[Notice, ...] = ()


class ClientContext:
    """The context of one client."""

    def __init__(self, session: Session) -> None:
        self.context = ""
        """The one that the client went over to; empty while it is where the project has it."""
        self._session = session
        self._awaited = ""
        self._installing = Installation(installed=True)

    async def use(self, context: str) -> tuple[str, ...]:
        """Go over to a context, and come back when every engine knows; R012 if that takes too long.

        Gives the names of advertisements that have no meaning there.
        """
        installing = self._installing = Installation()
        self._awaited = context
        gone = (await self._ask(context)).gone
        self.context = context
        # Whoever publishes in terms that the router does not know yet loses events: this is worth to wait for.
        seconds = max(self._session.terms.install_timeout, _USE_WITHIN)
        if not await installing.wait(seconds):
            await self._ask(context)  # the word that it is may have been lost
        if not installing.done:
            missing = f": {', '.join(installing.missing)}" if installing.missing else ""
            raise SituError(NOT_INSTALLED(what="context", name=context, seconds=f"{seconds:g}", missing=missing))
        return gone

    async def _ask(self, context: str) -> ContextAck:
        answer = await self._session.ask(UseContext(req=self._session.request(), context=context))
        assert isinstance(answer, ContextAck)
        self.told(answer)
        return answer

    async def define(self, id: str, definition: Any) -> DefinedContext:
        message = DefineContext(req=self._session.request(), context=id, text=text_of(id, definition))
        answer = await self._session.ask(message, timeout=_DEFINE_WITHIN)
        assert isinstance(answer, ContextAck)
        return DefinedContext(id=answer.context, version=answer.version, said=answer.said)

    def told(self, message: ContextAck) -> None:
        if message.context == self._awaited:
            self._installing.told(message.state, message.version, message.missing)


def text_of(id: str, definition: Any) -> str:
    """A definition as the text of a file: text itself, plain values, or classes that are decorated with ``context``.

    :class:`SituError` with INT411 for Python functions, and with R102 for what is none of these.
    """
    if isinstance(definition, str):
        text = dedent(definition)
        root = parse_yaml(text, id).root
        named = not isinstance(root, Fields) or root.get("context") is not None
        return text if named else f"context: {id}\n{text}"
    if isinstance(definition, Mapping):
        return json.dumps({"context": id, **definition}, ensure_ascii=False)
    from situ.contexts.decorators import declared_contexts  # with expressions and types, which no other client needs

    members = definition if isinstance(definition, Iterable) and not isinstance(definition, type) else (definition,)
    found = [each for each in declared_contexts(*members) if each["context"] == id]
    if not found:
        remedy = f"Give its text, a dictionary, or classes that are decorated with `@context({id!r})`."
        raise SituError(NOT_AVAILABLE(what=f"A definition of `{id}` by {definition!r}", remedy=remedy))
    return json.dumps(found[0], ensure_ascii=False)
