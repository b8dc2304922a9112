"""Which types a client is shown, and what is kept from it of those that it is not shown.

`TypeVisibility` says which types there are for a client, `is_context_withheld` which contexts it may not choose,
`redact_hidden_types` what dead letters tell of hidden types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from situ.event.failures import failed
from situ.event.row import BadRow, Row, errors_of
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.lang.types.lookup import unknown_event
from situ.lang.types.model import ListOf, Named, Struct, Type, supertypes
from situ.lang.types.table import RESERVED_EVENTS, Types
from situ.model.deployment import Deployment
from situ.policies.actions.action_events import published_by
from situ.routing.model import ROOT, Subscription
from situ.scopes.dimension_plan import PossibleVisibility
from situ.scopes.filters import FilterMeanings
from situ.stages.interpret import Interpretation, looks_up, remembers

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A client is shown the types of which it could ever see an event, and those that it publishes itself. What nobody could
# show it, it need not know of. Types of Situ's own are known to everybody; so is, of a type that is shown, everything
# above it. Without closed dimensions nothing is hidden.

_SUGGESTED = frozenset({"nearest", "known", "fitting"})
"""Parameters of problems that name what the client did not name."""


@dataclass(slots=True)
class TypeVisibility:
    """What one deployment shows. Made by :meth:`of`."""

    deployment: Deployment
    could_see: PossibleVisibility
    _interpretation: Interpretation | None = None
    _published: frozenset[tuple[str, TagSet]] | None = None
    """Types of root, and the tags under which they are published."""
    _shown: dict[str, frozenset[str]] = field(default_factory=dict)
    _known: dict[tuple[str, str], Types] = field(default_factory=dict)

    @classmethod
    def of(cls, deployment: Deployment, before: TypeVisibility | None = None) -> TypeVisibility | None:
        """None if nothing is hidden from anybody."""
        if not any(each.closed for each in deployment.scopes.dimensions.values()):
            return None
        could_see = before.could_see if before is not None else None
        if could_see is None or could_see.graph != deployment.scopes or could_see.filters.types != deployment.types:
            could_see = PossibleVisibility(
                deployment.scopes, FilterMeanings(deployment.types, deployment.settings.expression_limits)
            )
        return cls(deployment, could_see)

    def types(self, client: str) -> frozenset[str]:
        """The event types that a client is shown, as it calls them."""
        found = self._shown.get(client)
        if found is None:
            found = self._shown[client] = frozenset(self._types(client))
        return found

    def known(self, client: str, context: str) -> Types:
        """The types of a context that there are for a client which declares something there.

        Those that it is shown; those that nobody publishes, so that somebody can be the first; and those that the
        project declares for it. Of others it must not learn that they are there, nor what they are made of.
        """
        found = self._known.get((client, context))
        if found is None:
            there = self.deployment.contexts.get(context) if context != ROOT else None
            types = self.deployment.types if there is None else there.types
            found = self._known[client, context] = _only(types, self._known_events(client, context, types))
        return found

    def _known_events(self, client: str, context: str, types: Types) -> set[str]:
        published = {type for type, _ in self._published_types()}
        root = self._root_types(client) | (self.deployment.types.events - published)
        found = set(root if context == ROOT else self._in_context(context, types, root))
        known_as = self.deployment.clients.get(client)
        if (known_as.context if known_as is not None else ROOT) == context:
            found.update(self._own(client, types))
        for each in self.deployment.subscriptions.values():
            if each.client == client and each.context == context:
                found.update(name for type in each.types for name in _with_those_below(types, type))
        return set(_with_those_above(types, found))

    def told(self, problem: Problem, client: str) -> Problem:
        """What is wrong, as this client may know it: nothing is suggested to it that it is not shown."""
        shown = self.types(client)
        values: dict[str, Any] = {
            name: tuple(each for each in value if each in shown) if _is_suggestion(name, value) else value
            for name, value in problem.values.items()
        }
        if values.get("users"):
            values["users"] = "others use it"
        cause = None if problem.cause is None else self.told(problem.cause, client)
        return replace(problem, values=MappingProxyType(values), cause=cause)

    def names_hidden(self, problem: Problem, client: str) -> bool:
        """Whether it names a type of root that the client is not shown."""
        hidden = self.deployment.types.events - self.types(client)
        values = [value if isinstance(value, tuple) else (value,) for value in problem.values.values()]
        named = (each for value in values for each in value)
        return any(each in hidden for each in named)

    def parts(self, client: str) -> frozenset[str]:
        """The types that are no events and that are part of those that it is shown."""
        deployment = self.deployment
        known_as = deployment.clients.get(client)
        context = None if known_as is None else deployment.contexts.get(known_as.context)
        types = deployment.types if context is None else context.types
        return frozenset(name for name in _parts(types, self.types(client)) if isinstance(types.get(name), Struct))

    def _types(self, client: str) -> Iterator[str]:
        deployment = self.deployment
        known_as = deployment.clients.get(client)
        context = None if known_as is None else deployment.contexts.get(known_as.context)
        types = deployment.types if context is None else context.types
        root = self._root_types(client)
        if known_as is None or known_as.context == ROOT:
            yield from root
        else:
            yield from _with_those_above(types, self._in_context(known_as.context, types, root))
        # That it asks for a type is no reason to tell what that is: it may have guessed the name.
        yield from _with_those_above(types, self._own(client, types))

    def _root_types(self, client: str) -> frozenset[str]:
        seen = [type for type, tags in self._published_types() if self.could_see.ever(client, tags, type)]
        return frozenset(_with_those_above(self.deployment.types, seen))

    def _own(self, client: str, types: Types) -> Iterator[str]:
        """What it publishes itself, with all that is below."""
        for ad in self.deployment.advertisements.values():
            if ad.client == client:
                yield from _with_those_below(types, ad.type)

    def _in_context(self, context: str, types: Types, root: frozenset[str]) -> Iterator[str]:
        """The types of a context that something becomes which could be seen."""
        for name in types.events:
            asked = Subscription(client="shown", name="shown", types=(name,), context=context)
            try:
                becoming = self._interpreted().conditions(asked)
            except SituError:
                continue
            if any(each in root for each in becoming):
                yield name

    def _published_types(self) -> frozenset[tuple[str, TagSet]]:
        if self._published is None:
            self._published = frozenset(self._all_published())
        return self._published

    def _all_published(self) -> Iterator[tuple[str, TagSet]]:
        deployment, scopes = self.deployment, self.deployment.scopes
        for ad in deployment.advertisements.values():
            spoken = deployment.clients.get(ad.client)
            plain = spoken is None or spoken.context == ROOT
            type = ad.type if plain else self._interpreted().advertised(ad).type
            yield from ((each, ad.scopes) for each in _with_those_below(deployment.types, type))
        for name, policy in deployment.policies.items():
            publishes = scopes.tags_of(name).publishes
            yield from ((type, publishes) for type in published_by(policy, deployment.actions))

    def _interpreted(self) -> Interpretation:
        if self._interpretation is None:
            self._interpretation = Interpretation.of(self.deployment)
        return self._interpretation


def _is_suggestion(name: str, value: object) -> bool:
    """Whether these are names; a number of the same parameter, as that of a version, names nothing."""
    return name in _SUGGESTED and isinstance(value, tuple)


def _with_those_below(types: Types, name: str) -> Iterator[str]:
    event = types.event(name)
    if event is not None:
        yield from (each.name for each in types.subtypes(event) if isinstance(each, Struct))


def _only(types: Types, events: set[str]) -> Types:
    """A table with these event types alone, what they are made of, and no other type that an event is made of."""
    kept, made_of = set(events), _parts(types, types.events)
    kept |= _parts(types, events) | (types.types.keys() - types.events - made_of)
    return Types(
        types={name: each for name, each in types.types.items() if name in kept},
        events=types.events & events,
        units=types.units,
    )


def _parts(types: Types, events: Iterable[str]) -> set[str]:
    """The types that these events are made of, however deep, and those above them."""
    found: set[str] = set()
    waiting: list[Type] = [event for name in events if (event := types.event(name)) is not None]
    while waiting:
        match waiting.pop():
            case ListOf(element=element):
                waiting.append(element)
            case Struct() as struct if struct.name not in found:
                found.add(struct.name)
                waiting += [each.type for each in struct.attributes]
                waiting += struct.supers
            case Named() as named:
                found.add(named.name)
    return found


def _with_those_above(types: Types, names: Iterable[str]) -> Iterator[str]:
    for name in set(names):
        event = types.event(name)
        if event is not None:
            yield from (each.name for each in supertypes(event) if isinstance(each, Struct))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What does not exist for a client among closed dimensions: types that it is not shown, contexts that would show more.
# Of an event of such a type it is told that there is no such type. Else whoever guesses the name of a type would be
# told by dead letters what it is made of.


def is_context_withheld(deployment: Deployment, client: str, context: str, *, bound: bool) -> bool:
    """Whether a client may not choose the terms of a context by itself.

    Not where tables are looked up in, or events are remembered: neither asks who may see what it finds. And not at all
    if it is ``bound`` to its own because the project puts it there: what these terms leave out it shall not know.
    """
    if not any(each.closed for each in deployment.scopes.dimensions.values()):
        return False
    known = deployment.clients.get(client)
    found = deployment.contexts.by_id.get(context)
    if found is None or (known is not None and known.context == context):
        return False
    return looks_up(found) or remembers(found) or (bound and known is not None and known.context != ROOT)


Advertises = Callable[[str, str], bool]
"""Whether a client has an advertisement for events of a type."""


class _Typed(msgspec.Struct):
    type: str


_decode = msgspec.json.Decoder(_Typed).decode


def redact_hidden_types(
    rows: Iterable[Row | BadRow], showing: TypeVisibility, advertises: Advertises
) -> list[Row | BadRow]:
    """The rows; what is wrong with an event of a hidden type is the same as with one of no type."""
    return [row if isinstance(row, Row) else _surely_veiled(row, showing, advertises) for row in rows]


def _surely_veiled(bad: BadRow, showing: TypeVisibility, advertises: Advertises) -> BadRow:
    try:
        return _veiled(bad, showing, advertises)
    except Exception as error:  # noqa: BLE001 - nothing is told of an event of which nobody knows what may be told
        return failed(bad, bad.stage, error, bad.original)


def _veiled(bad: BadRow, showing: TypeVisibility, advertises: Advertises) -> BadRow:
    try:
        type = _decode(bad.original).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bad  # it says nothing of types
    if type in RESERVED_EVENTS or type in showing.types(bad.client) or advertises(bad.client, type):
        return bad
    shown = type[:100] if type.isprintable() else "…"
    return replace(bad, stage="decode", errors=errors_of([unknown_event(shown, ())]))
