"""The contexts of a deployment at work: events into root, deliveries out of it, subscriptions mediated.

Shared by all engines. What a context does with an event type is compiled when its first event comes, and looked up by
name then; nothing searches for rules while events flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from situ.contexts.lookup_tables import TableLookups, lookup_keys
from situ.contexts.model import ROOT, Context, Direction, MissingValue, ReferenceState, former_root
from situ.contexts.table import Contexts
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.filter_rewrite import deferred_filter, rewrite_subscription
from situ.contexts.transform.function_calls import FindRow, with_rows
from situ.contexts.transform.round_trip import ShortcutPolicy, check_shortcut
from situ.contexts.transform.transformation import Transformation, transformations
from situ.event.data_reader import read_envelope
from situ.event.failures import failed, is_of_event
from situ.event.lines import encode_row
from situ.event.row import OUTBOUND, BadRow, Origin, Row, errors_of
from situ.lang.catalogue import (
    AFTER_TRANSFORMATION,
    NEVER_TRUE,
    NOT_EXECUTED,
    UNKNOWN_EVENT_CONTEXT,
    WILL_NOT_BE_EXECUTED,
)
from situ.lang.expr import tree
from situ.lang.expr.limits import ExpressionLimits
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import Definition
from situ.lang.expr.tree import Node
from situ.lang.problems import Code, Problem, Problems
from situ.lang.records import replace
from situ.lang.types.lookup import no_way_in
from situ.lang.types.table import RESERVED_EVENTS
from situ.model.deployment import Deployment
from situ.routing.delivery_groups import DeliveryGroup
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.sources.table import Keyed
from situ.stages.conversion_state import ConversionMemory, Held, PythonFunctions
from situ.stages.decode import EventDecoder
from situ.stages.interpret_out import (
    FEW,
    ConvertedDeliveries,
    DeliveryConversion,
    LateFilter,
    group_by_type,
    prefetch_inbound,
    prefetch_outbound,
)

if TYPE_CHECKING:
    from situ.routing.routing_table import RoutedRows, RoutingTable

STAGE = "interpret"
MOST_EVENTS = 10_000
"""Events of a message that are looked at; more only if the settings let the client library send more."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_encode = msgspec.json.Encoder().encode
_Extra = Literal["drop", "keep", "reject"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interpretation:
    """What the contexts of one deployment do. Equal to another if events and subscriptions mean the same under both."""

    contexts: Contexts
    clients: Mapping[str, ClientDeclaration]
    functions: Mapping[str, Definition]
    limits: ExpressionLimits
    extra: _Extra
    ahead: timedelta
    size: int
    most: int = MOST_EVENTS
    """Events of a message."""
    rows: TableLookups = field(default_factory=TableLookups)
    """The tables in use, which the engine changes between two batches or messages."""
    python: PythonFunctions = field(default_factory=PythonFunctions)
    calls_python: bool = False
    suggests: bool = True
    """Whether whoever sends an event of an unknown type is told of types that are called nearly so."""
    incoming: ConversionMemory = field(default_factory=ConversionMemory)
    outgoing: ConversionMemory = field(default_factory=ConversionMemory)
    """What conversions into root and out of it remember: the engine notes in both which events have come."""
    generation: int = 1
    """How many roots there were with the one of now: each that was replaced is a context."""
    shortcuts: str = ShortcutPolicy.SAFE
    """When events reach those of their own context as they were sent."""
    _ways: dict[tuple[str, Direction], Mapping[str, Transformation]] = field(default_factory=dict)
    _converters: dict[tuple[str, bool, str], Converter | None] = field(default_factory=dict)
    """By context, whether it is the way in, and the event type. Looked up for every event: enumerations hash slowly."""
    _refused: dict[Converter, tuple[Problem, ...]] = field(default_factory=dict)
    """Why engines do not execute one; empty: they do."""
    _intakes: dict[str, EventDecoder] = field(default_factory=dict)
    _nodes: dict[str, Mapping[str, Node]] = field(default_factory=dict)
    _decisions: dict[tuple[str, tuple[str, ...], str, str], LateFilter | None] = field(default_factory=dict)
    _kept: dict[tuple[str, str], bool] = field(default_factory=dict)
    _textless: dict[tuple[str, str], bool] = field(default_factory=dict)

    @classmethod
    def of(cls, deployment: Deployment, previous: Interpretation | None = None) -> Interpretation:
        """The contexts of a deployment; what the previous ones have compiled already is taken from there."""
        settings = deployment.settings
        made = cls(
            contexts=deployment.contexts,
            clients=deployment.clients,
            functions=deployment.definitions,
            limits=settings.expression_limits,
            extra=settings.defaults.extra,
            ahead=settings.limits.ahead,
            size=settings.limits.event,
            most=max(MOST_EVENTS, settings.batch.events),
            generation=1 + max(map(former_root, deployment.contexts.by_id), default=0),
            shortcuts=settings.defaults.shortcut,
            calls_python=any(each.python for context in deployment.contexts for each in context.functions.values()),
            suggests=not any(each.closed for each in deployment.scopes.dimensions.values()),
        )
        if previous is not None and previous == made:
            return replace(previous, clients=made.clients)
        if previous is not None:
            made = replace(made, incoming=previous.incoming, outgoing=previous.outgoing)
        made._remember()
        return made

    def resume(self) -> None:
        """Be the one at work again, after another was made that shares its memory."""
        self._remember()

    def _remember(self) -> None:
        """Have memory for all that functions want to remember; what it has stays."""
        contexts = [each for each in self.contexts if each.id not in self.contexts.faulty and remembers(each)]
        for direction, memory in ((Direction.IN, self.incoming), (Direction.OUT, self.outgoing)):
            ways = (way for each in contexts for way in self._ways_of(each, direction).values())
            memory.use(ways, self.contexts.root.types)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interpretation):
            return NotImplemented
        return (
            (self.extra, self.ahead, self.size, self.limits) == (other.extra, other.ahead, other.size, other.limits)
            and self.most == other.most
            and (self.shortcuts, self.suggests) == (other.shortcuts, other.suggests)
            and self.functions == other.functions
            and (self.contexts is other.contexts or self.contexts == other.contexts)
            and self.contexts.versions == other.contexts.versions
            and (
                self.contexts.root.types is other.contexts.root.types
                or self.contexts.root.types == other.contexts.root.types
            )
        )

    def __hash__(self) -> int:
        return hash(self.contexts)

    @property
    def remembers(self) -> bool:
        """Whether a conversion needs to know which events came before."""
        return not (self.incoming.is_empty and self.outgoing.is_empty)

    @property
    def decides_late(self) -> bool:
        """Whether filters may have to wait for what Python or memory gives."""
        return self.calls_python or not self.outgoing.is_empty

    @property
    def mediator(self) -> Interpretation | None:
        """Itself, if there is anything to mediate and all of it is known."""
        return self if len(self.contexts) > 1 and not self.contexts.faulty else None

    def context_of(self, client: str) -> str:
        """In whose terms a client speaks and hears."""
        known = self.clients.get(client)
        return ROOT if known is None else known.context

    def stamped(self, client: str) -> str:
        """The same, as events are stamped with it: the version, too, unless it is root."""
        known = self.clients.get(client)
        context = None if known is None or known.context == ROOT else self.contexts.by_id.get(known.context)
        return ROOT if context is None else context.name

    def version_of(self, context: str) -> str:
        """A context, by its id, as events are stamped with it."""
        known = self.contexts.by_id.get(context)
        return ROOT if known is None or context == ROOT else known.name

    def knows(self, context: str) -> bool:
        """Whether this version of a context is the one in force."""
        return self.contexts.get(context) is not None

    # ── into root ──

    def decode(self, body: bytes, origin: Origin, *, bare: bool = False) -> list[Row | BadRow]:
        """The events of a message, each of a type that its context has or with the reasons why it is none.

        ``bare``: they go on to :meth:`into_root` next. Until then those have no text that need none for that.
        """
        intake = self._intakes.get(origin.context)
        if intake is None:
            context = self.contexts.get(origin.context) or self.contexts.root
            intake = EventDecoder(
                context.types,
                extra=self.extra,
                ahead=self.ahead,
                limit=self.size,
                suggests=self.suggests,
                most=self.most,
            )
            self._intakes[origin.context] = intake
        needless = partial(self._needs_no_text, origin.context) if bare and origin.context != ROOT else None
        rows = intake.decode(body, origin, needless)
        if origin.context == ROOT or self.knows(origin.context):
            return rows
        unknown = errors_of([UNKNOWN_EVENT_CONTEXT(context=origin.context)])
        return [replace(row, errors=unknown) if isinstance(row, BadRow) else row for row in rows]

    def advertised(self, each: Advertisement) -> Advertisement:
        """An advertisement in root's terms. One whose type has no way there stays as it is: so do its events."""
        name = self.context_of(each.client)
        context = self.contexts.get(name) if name != ROOT else None
        way = None if context is None else self._ways_of(context, Direction.IN).get(each.type)
        return each if way is None else replace(each, type=way.target.name)

    def into_root(self, rows: list[Row | BadRow]) -> list[Row | BadRow]:
        """The events of one message, all of one context, in root's terms."""
        if not rows or rows[0].context == ROOT:
            return rows
        with prefetch_inbound(self, [rows]):
            ways: dict[str, tuple[Converter, str, bool]] = {}
            if len(rows) < FEW:
                return [self._row_into_root(row, ways) if isinstance(row, Row) else row for row in rows]
            good = [row for row in rows if isinstance(row, Row)]
            by_type = group_by_type(good, [row.type for row in good])
            left = {id(row) for some in by_type.values() for row in self._structs_into_root(some)}
            if not left:
                return rows
            return [self._row_into_root(row, ways) if isinstance(row, Row) and id(row) in left else row for row in rows]

    def _row_into_root(self, row: Row, ways: dict[str, tuple[Converter, str, bool]]) -> Row | BadRow:
        type, data, value = row.type, row.data, row.value
        try:
            return self._into_root(row, ways)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            row.type, row.data, row.value = type, data or _encode(value), None
            return failed(row, STAGE, error)

    def _structs_into_root(self, rows: list[Row]) -> Iterable[Row]:
        """Convert these events, which are of one type, as the structs that they are; those that cannot be are left."""
        context, type = rows[0].context, rows[0].type
        way = self.converter(context, Direction.IN, type)
        plan = None if way is None or way.is_identity else way.structs
        if way is None or plan is None:
            return rows
        takes = plan.takes
        fit = [row for row in rows if row.value.__class__ is takes]
        others = () if len(fit) == len(rows) else [row for row in rows if row.value.__class__ is not takes]
        try:
            values = plan.many(_NOTHING, fit)
            texts = [_encode(value) for value in values]
        except FAILURES:
            return rows  # one by one
        except Exception as error:
            if not is_of_event(error):
                raise
            return rows
        if self.keeps(context, type):
            for row in fit:
                row.sent = (type, row.data)
        target = way.transformation.target.name
        for row, value, text in zip(fit, values, texts, strict=True):
            row.type, row.data, row.value = target, text, value
        return others

    def _needs_no_text(self, context: str, type: str) -> bool:
        """Whether events go into root as the structs that they were read into."""
        key = (context, type)
        if key not in self._textless:
            way = self.converter(context, Direction.IN, type)
            converted = way is not None and not way.is_identity and way.structs is not None
            self._textless[key] = converted and not self.keeps(context, type)
        return self._textless[key]

    def _into_root(self, row: Row, ways: dict[str, tuple[Converter, str, bool]]) -> Row | BadRow:
        """``ways`` are those that events of this message took so far, by type."""
        found = ways.get(row.type)
        if found is None:
            way = self.converter(row.context, Direction.IN, row.type)
            if way is None:
                if self.contexts.get(row.context) is None:
                    return _bad(row, [UNKNOWN_EVENT_CONTEXT(context=row.context)])
                return _bad(row, [no_way_in(row.type, row.context)])
            target = way.transformation.target.name
            found = ways[row.type] = (way, target, self.keeps(row.context, row.type))
        way, target, keeps = found
        if keeps:
            row.sent = (row.type, row.data)
        if way.is_identity:
            return row
        plan = way.structs
        if plan is not None and row.value.__class__ is plan.takes:
            try:
                value = plan.call(_NOTHING, row.value)
                row.data, row.type, row.value = _encode(value), target, value
                return row
            except FAILURES:
                pass  # slowly: all that is wrong is said
        row.data, row.value = row.data or _encode(row.value), None
        text = self._text(way, row)
        if isinstance(text, BadRow):
            return text
        row.data, row.type = text, target
        return row

    def keeps(self, name: str, type: str) -> bool:
        """Whether those of its own context get an event as it was sent."""
        key = (name, type)
        if key not in self._kept:
            context = self.contexts.get(name)
            self._kept[key] = context is not None and self._takes_shortcut(context, type)
        return self._kept[key]

    def _takes_shortcut(self, context: Context, type: str) -> bool:
        inbound, outbound = (self._ways_of(context, direction) for direction in Direction)
        found = check_shortcut(inbound.get(type), outbound, keeps_extra=self.extra == "keep")
        changed = found.comes_back and not outbound[inbound[type].target.name].is_identity
        return changed and found.taken(self.shortcuts)

    # ── out of root ──

    def worded(
        self, rows: Sequence[Row], lines: Sequence[bytes], routed: RoutedRows, routing: RoutingTable
    ) -> ConvertedDeliveries:
        """What is delivered of these rows, whose lines in root's terms are given; converted once for each context."""
        if len(self.contexts) == 1:
            return ConvertedDeliveries(
                durable=[(index, group, lines[index]) for index, group in routed.durable],
                live=[(index, client, names, lines[index]) for index, client, names in routed.live],
                bad=tuple(routed.bad),
            )
        with prefetch_outbound(self, [(rows, routed)], routing):
            return DeliveryConversion(self, rows, lines).all(routed, routing, decide=self.decides_late)

    def original(self, row: Row, context: str) -> tuple[str, bytes] | None:
        """Type and data as they were sent, if they are at hand and were sent in the very terms of this context."""
        if row.sent is None or self.contexts.get(row.context) is not self.contexts.get(context):
            return None
        return row.sent

    def plain_way(self, context: str, type: str) -> Converter | None:
        way = self.converter(context, Direction.OUT, type)
        return None if way is None or way.is_identity or way.needs_envelope else way

    def in_terms(self, row: Row, context: str) -> tuple[str, bytes] | BadRow | None:
        """Type and data in the terms of a context; None if they are what they are in root."""
        try:
            return self._in_terms(row, context)
        except Held:
            raise
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            return replace(failed(row, OUTBOUND, error), context=context)

    def _in_terms(self, row: Row, context: str) -> tuple[str, bytes] | BadRow | None:
        way = self._converters.get((context, False, row.type)) or self.converter(context, Direction.OUT, row.type)
        if way is None:
            assert row.type in RESERVED_EVENTS, "only what is available in a context is matched for it"
            return None
        if way.is_identity:
            return None
        found = self._text(way, row)
        if isinstance(found, BadRow):
            return replace(found, context=way.transformation.context, stage=OUTBOUND)
        return way.transformation.target.name, found

    # ── subscriptions ──

    def decision(self, asked: DeliveryGroup | Subscription, type: str) -> LateFilter | None:
        """What is asked of events of a root type only after routing; None if they are decided by then."""
        key = (asked.context, asked.types, asked.where, type)
        if key not in self._decisions:
            self._decisions[key] = self._decision(asked, type)
        return self._decisions[key]

    def _decision(self, asked: DeliveryGroup | Subscription, type: str) -> LateFilter | None:
        context = self.contexts.get(asked.context) if asked.context != ROOT else None
        ways = self._ways_of(context, Direction.OUT) if context is not None else {}
        way = ways.get(type)
        if context is None or way is None or way.execution == "native":
            return None
        later = deferred_filter(
            asked.types,
            asked.where,
            context,
            way,
            self.functions,
            self.limits,
            node=self._nodes_of(context, ways).get(type),
            whole=with_rows(way.node, way.externals, self._finders(way)),
        )
        return None if later is None else LateFilter.of(way, later.condition)

    def observations(self, subscription: Subscription) -> Iterable[Problem]:
        """What is to say about how a subscription that can be had is decided."""
        conditions = self.conditions(subscription)
        if conditions and all(
            isinstance(each, tree.Literal) and each.value is not True for each in conditions.values()
        ):
            types = ", ".join(conditions)
            yield NEVER_TRUE(subscription=subscription.id, type=types, simplified="FALSE")
        for type in conditions:
            later = self.decision(subscription, type) if self.decides_late else None
            if later is not None:
                yield AFTER_TRANSFORMATION(subscription=subscription.id, type=type, reasons=later.reasons)

    def conditions(self, subscription: Subscription) -> Mapping[str, Any]:
        """What a subscription in the terms of a context asks of root events."""
        context = self.contexts.get(subscription.context)
        if context is None:
            context = Context(id=subscription.context)  # it sees nothing: the subscription is refused for that
        outbound = self._ways_of(context, Direction.OUT)
        return rewrite_subscription(
            subscription.id,
            subscription.types,
            subscription.where,
            context,
            outbound,
            self.functions,
            self.limits,
            nodes=self._nodes_of(context, outbound),
        )

    def _nodes_of(self, context: Context, outbound: Mapping[str, Transformation]) -> Mapping[str, Node]:
        """The expressions that look rows up, by event type: made once, so that equal filters are equal."""
        if context.id not in self._nodes:
            self._nodes[context.id] = {
                name: with_rows(way.node, way.externals, self.rows.finders(way))
                for name, way in outbound.items()
                if way.externals
            }
        return self._nodes[context.id]

    # ── ways ──

    def _text(self, way: Converter, row: Row) -> bytes | BadRow:
        """The data of a row in the terms of the other side."""
        envelope = _NOTHING
        if way.needs_envelope:
            if way not in self._refused:
                self._refused[way] = tuple(not_executed(way.transformation, NOT_EXECUTED))
            if refused := self._refused[way]:
                return _bad(row, refused)
            if way.reads_envelope:
                envelope = read_envelope(row)
        try:
            return way.text(envelope, row.data)
        except FAILURES:
            return _bad(row, way.text_faults(read_envelope(row), row.data), way.transformation.plan)

    def _finders(self, way: Transformation) -> dict[str, FindRow]:
        memory = self.incoming if way.direction is Direction.IN else self.outgoing
        return {**self.rows.finders(way), **self.python.finders(way), **memory.finders(way)} if way.externals else {}

    def converter(self, context: str, direction: Direction, type: str) -> Converter | None:
        """What converts events of a type on their way into a context's root or out of it; None if there is no way."""
        key = (context, direction is Direction.IN, type)
        if key not in self._converters:
            found = self.contexts.get(context)
            way = None if found is None else self._ways_of(found, direction).get(type)
            self._converters[key] = None if way is None else Converter(way, self._finders(way))
        return self._converters[key]

    def keyed(self, contexts: Iterable[str] | None = None) -> Mapping[str, set[Keyed]]:
        """Which tables are looked up in, and by which columns: for all events, or for what leaves to these contexts."""
        named = None if contexts is None else {each.partition("@")[0] for each in contexts}
        directions = Direction if named is None else (Direction.OUT,)
        found = (each for each in self.contexts if each.id not in self.contexts.faulty and looks_up(each))
        return lookup_keys(
            way
            for each in found
            if named is None or each.id in named
            for direction in directions
            for way in self._ways_of(each, direction).values()
        )

    def _ways_of(self, context: Context, direction: Direction) -> Mapping[str, Transformation]:
        key = (context.id, direction)
        if key not in self._ways:
            self._ways[key] = transformations(context, direction, Problems())
        return self._ways[key]


def check_executed(contexts: Contexts, problems: Problems) -> None:
    """Warn of functions that engines do not execute."""
    for context in contexts:
        if context.id in contexts.faulty or context.id == ROOT:
            continue
        for direction in Direction:
            for way in transformations(context, direction, Problems()).values():
                problems.extend(not_executed(way, WILL_NOT_BE_EXECUTED))


def not_executed(way: Transformation, code: Code) -> Iterable[Problem]:
    """What a transformation needs and engines do not do: wait on the way in, where others wait for what is stored."""
    found: dict[str, str] = {}
    for each in way.externals.values():
        if (
            isinstance(each.of, ReferenceState)
            and each.function.missing is MissingValue.HOLD
            and way.direction is Direction.IN
        ):
            found.setdefault(each.function.name, "holds events on their way into root")
    for function, what in found.items():
        yield code(type=way.source.name, context=way.context, function=function, what=what)


def looks_up(context: Context) -> bool:
    """Whether a function that it sees looks up in a table: only then its transformations need be looked at."""
    return context.id != ROOT and any(each.lookups for above in context.chain for each in above.functions.values())


def remembers(context: Context) -> bool:
    """Whether a function that it sees remembers events."""
    return context.id != ROOT and any(each.states for above in context.chain for each in above.functions.values())


def _bad(row: Row, problems: Iterable[Problem], plan: str = "") -> BadRow:
    return BadRow.of(row, STAGE, errors_of(problems), encode_row(row), plan=plan)
