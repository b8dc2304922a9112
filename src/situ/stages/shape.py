"""Stage shape: what is done to the events of single subscriptions, behind routing and before they get their terms.

`ShapePlan` says what is done for whom under one plan, `ShapeState` is what the filters of an engine remember, and
shapes deliveries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from situ.event.data_reader import row_reader
from situ.event.failures import failed
from situ.event.lines import encode_row
from situ.event.row import Row
from situ.lang.records import replace
from situ.lang.types.model import INT, LONG, Decimal, plain
from situ.lang.types.table import Types
from situ.model.deployment import Deployment
from situ.quality.model.shapes import UNSHAPED, Shape
from situ.quality.shaping.shaper import Mine, Shaper, shape_of
from situ.quality.shaping.watermark import LatenessBounds
from situ.routing.delivery_groups import group_of
from situ.routing.model import Subscription
from situ.routing.routing_table import RoutedRows
from situ.settings import Settings
from situ.stages.interpret_out import ConvertedDeliveries

if TYPE_CHECKING:
    from situ.stages.plan import Plan

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The shapes of a plan: what is done to the events of which subscriptions, and what filters read of their data.


_MICROSECOND = timedelta(microseconds=1)
_NO_DATA: Mapping[str, Any] = {}


def patience_of(settings: Settings) -> LatenessBounds:
    """How long is waited for events in a project."""
    defaults = settings.defaults
    return LatenessBounds(lateness=defaults.lateness // _MICROSECOND, idle=defaults.idle // _MICROSECOND)


class ShapePlan:
    """What is done for whom under one plan."""

    def __init__(self, deployment: Deployment) -> None:
        self.by_id: Mapping[str, Shape] = {
            id: shape for id, shape in deployment.shapes.items() if shape != UNSHAPED and id in deployment.subscriptions
        }
        self.subscriptions: Mapping[str, Subscription] = {
            id: deployment.as_routed(deployment.subscriptions[id]) for id in self.by_id
        }
        self.groups = {group_of(each): each.id for each in self.subscriptions.values() if each.durable}
        self.names: dict[str, frozenset[str]] = {}
        """Client → the names of its volatile subscriptions that have a shape."""
        for each in self.subscriptions.values():
            if not each.durable:
                self.names[each.client] = self.names.get(each.client, frozenset()) | {each.name}
        self.patience = patience_of(deployment.settings)
        self._types = deployment.types
        self._readers: dict[str, Callable[[Row], Mapping[str, Any]]] = {}

    @cached_property
    def goes_across(self) -> bool:
        """Whether a filter looks at all clients together."""
        return any(each.thin is not None and each.thin.across for each in self.by_id.values())

    @cached_property
    def marked(self) -> frozenset[str]:
        """Groups, and volatile subscriptions, whose events say how far they may be from the truth."""
        groups = {group for group, id in self.groups.items() if self.by_id[id].suppress}
        live = {id for id, each in self.by_id.items() if each.suppress and not self.subscriptions[id].durable}
        return frozenset(groups | live)

    def read(self, row: Row) -> Mapping[str, Any]:
        """The attributes that filters look at."""
        reader = self._readers.get(row.type)
        if reader is None:
            reader = self._readers[row.type] = self._reader(row.type)
        return reader(row)

    def _reader(self, type: str) -> Callable[[Row], Mapping[str, Any]]:
        event = self._types.event(type)
        return (lambda _: _NO_DATA) if event is None else row_reader(event, self._attributes, self._types)

    @cached_property
    def _attributes(self) -> frozenset[str]:
        found: set[str] = set()
        for shape in self.by_id.values():
            found |= {name for each in shape.suppress for name in (each.attribute, each.per) if name}
            found |= {shape.thin.per} if shape.thin is not None and shape.thin.per else set()
            found |= {shape.aggregate.attribute} if shape.aggregate is not None else set()
        return frozenset(found)

    def put(self, row: Row, attribute: str, number: float) -> bytes:
        return put_number(self._types, row, attribute, number)


def put_number(types: Types, row: Row, attribute: str, number: float) -> bytes:
    """The data of an event with another value of a numeric attribute, as its type has it."""
    event = types.event(row.type)
    declared = next((plain(each.type) for each in event.attributes if each.name == attribute), None) if event else None
    data = msgspec.json.decode(row.data)
    if declared in (INT, LONG):
        written: Any = round(number)
    elif isinstance(declared, Decimal):
        written = f"{number:.{declared.scale}f}"
    else:
        written = float(number)
    data[attribute] = str(written) if isinstance(data.get(attribute), str) else written
    return msgspec.json.encode(data)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What the filters of an engine remember; or those of a share of its clients. Rows come with their deliveries, and what
# is left of these goes on, with those of events that have waited; these stand before the others. Dead letters do not
# come here: they are told as they are.

FORMAT = 1
STAGE = "shape"
id_of = id  # ids of subscriptions are called so, too


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedDeliveries:
    """Rows with their lines, and what is delivered of them."""

    rows: Sequence[Row]
    lines: Sequence[bytes]
    routed: RoutedRows


@dataclass(slots=True)
class _Out:
    """What is being put together: deliveries of the rows that came, and of others that are let go."""

    routed: RoutedRows = field(default_factory=RoutedRows)
    others: list[tuple[Row, Subscription]] = field(default_factory=list)


class ShapeState:
    """What the filters of an engine remember."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        """Events that were not delivered, as `SUBSCRIPTION REASON`."""
        self._plan: Plan | None = None
        self._restored = False
        self._shapers: dict[str, Shaper] = {}

    @property
    def holds(self) -> bool:
        """Whether something waits that the clock lets go."""
        return any(each.holds for each in self._shapers.values())

    @property
    def goes_across(self) -> bool:
        """Whether a filter looks at all clients together."""
        shapes = (each.shape for each in self._shapers.values())
        return any(each.thin is not None and each.thin.across for each in shapes)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that another process would have to know."""
        return not self._shapers

    def adopt(self, plan: Plan) -> tuple[ShapedDeliveries, Plan]:
        """Work by this plan from now on; what is delivered because of that, and by which plan.

        What a filter that is gone has held back goes where all of its subscription went so far.
        """
        if plan is self._plan and not self._restored:
            return _NOTHING, plan
        former, self._plan, self._restored = self._plan, plan, False
        by_id, by = plan.shapes.by_id, former or plan
        out = _Out()
        for id, shaper in list(self._shapers.items()):
            subscription = by.shapes.subscriptions.get(id) or by.deployment.subscriptions.get(id)
            released = shaper.adopt(by_id.get(id, UNSHAPED))
            if subscription is not None and id in plan.deployment.subscriptions:
                out.others += [(row, subscription) for row in released]
            if id not in by_id:
                del self._shapers[id]
        for id, shape in by_id.items():
            if id not in self._shapers:
                self._shapers[id] = self._shaper(id, shape, plan.shapes.patience)
        return _put_together((), (), out, by), by

    def shape(
        self, rows: Sequence[Row], lines: Sequence[bytes], routed: RoutedRows, now: int | None = None
    ) -> ShapedDeliveries:
        """What is left of the deliveries of these rows, which are the next of the log; ``now`` is the instant at which
        their ages are taken, the same whenever this is repeated; None: when each came."""
        plan = self._plan
        assert plan is not None, "a plan is adopted first"
        places, out = _apart(routed, plan.shapes)
        if not places:
            return ShapedDeliveries(rows=rows, lines=lines, routed=routed)
        for id, own in places.items():
            shaper = self._shapers[id]
            found = {id_of(rows[place]): place for place in own}
            try:
                passed = shaper.take([rows[place] for place in own], now)
            except Exception as error:  # noqa: BLE001 - this subscription does not get them, all others do
                out.routed.bad.extend(failed(rows[place], STAGE, error) for place in own)
                continue
            self._deliver(passed, found, plan.shapes.subscriptions[id], out)
            self._count(shaper)
        return _put_together(rows, lines, out, plan)

    def tick(self, now: int) -> ShapedDeliveries:
        """What is delivered because nothing has come for long."""
        out, plan = _Out(), self._plan
        if plan is None:
            return _NOTHING
        for id, shaper in self._shapers.items():
            if shaper.holds:
                out.others += [(row, plan.shapes.subscriptions[id]) for row in shaper.tick(now)]
                self._count(shaper)
        return _put_together((), (), out, plan)

    @property
    def marks(self) -> bool:
        """Whether deliveries may say how far they may be from the truth."""
        return self._plan is not None and bool(self._plan.shapes.marked)

    def mark(self, rows: Sequence[Row], worded: ConvertedDeliveries) -> ConvertedDeliveries:
        """Deliveries that say how far they may be from the truth."""
        plan = self._plan
        if plan is None or not self.marks:
            return worded
        marked = plan.shapes.marked
        groups, durable, live = plan.shapes.groups, worded.durable, worded.live
        if not marked.isdisjoint([group for _, group, _ in durable]):
            durable = [
                (place, group, self._marked(groups[group], rows[place], line) if group in marked else line)
                for place, group, line in durable
            ]
        if not marked.isdisjoint([f"{client}/{own}" for _, client, own, _ in live]):
            live = [
                (place, client, own, self._marked(f"{client}/{own}", rows[place], line))
                for place, client, own, line in live
            ]
        return replace(worded, durable=durable, live=live)

    def _marked(self, id: str, row: Row, line: bytes) -> bytes:
        shaper = self._shapers.get(id)
        imprecision = shaper.imprecision(row) if shaper is not None else ""
        return b'{"imprecision":"%b",%b' % (imprecision.encode(), line[1:]) if imprecision else line

    def _deliver(self, passed: Sequence[Row], found: Mapping[int, int], to: Subscription, out: _Out) -> None:
        group = group_of(to) if to.durable else ""
        for row in passed:
            place = found.get(id_of(row))
            if place is None:
                out.others.append((row, to))
            elif group:
                out.routed.durable.append((place, group))
            else:
                out.routed.live.append((place, to.client, to.name))

    def _shaper(self, id: str, shape: Shape, patience: LatenessBounds) -> Shaper:
        return Shaper(id, shape, patience, self._read, self._put)

    def _read(self, row: Row) -> Mapping[str, Any]:
        return self._plan.shapes.read(row) if self._plan is not None else _NO_DATA

    def _put(self, row: Row, attribute: str, number: float) -> bytes:
        assert self._plan is not None
        return self._plan.shapes.put(row, attribute, number)

    def _count(self, shaper: Shaper) -> None:
        if shaper.dropped:
            self.dropped.update({f"{shaper.subscription} {why}": number for why, number in shaper.dropped.items()})
            shaper.dropped.clear()

    # ── kept somewhere ──

    def as_json(self) -> dict[str, Any]:
        return {"version": FORMAT, "shapers": {id: each.as_json() for id, each in self._shapers.items()}}

    def restore(self, stored: Iterable[Mapping[str, Any]], plan: Plan, mine: Mine | None = None) -> None:
        """Go on with what was written down, in one part or several, as far as it is about clients that come here.

        The plan is the one that was at work then, if it is known, else the one to be adopted next. ValueError or
        KeyError for what cannot have been written.
        """
        self._shapers.clear()
        self._plan, self._restored = plan, True
        for part in stored:
            if part["version"] != FORMAT:
                raise ValueError(f"its version is {part['version']}, this release reads {FORMAT}")
            for id, remembered in part["shapers"].items():
                if id not in self._shapers:
                    self._shapers[id] = self._shaper(id, shape_of(remembered), plan.shapes.patience)
                self._shapers[id].restore(remembered, mine)


def _apart(routed: RoutedRows, shapes: ShapePlan) -> tuple[dict[str, list[int]], _Out]:
    """The rows for each subscription that has a shape; and what is delivered to all others."""
    places: dict[str, list[int]] = {}
    groups, names, out = shapes.groups, shapes.names, _Out(RoutedRows(bad=routed.bad))
    for each in routed.durable:
        id = groups.get(each[1])
        if id is None:
            out.routed.durable.append(each)
        else:
            places.setdefault(id, []).append(each[0])
    for one in routed.live:
        place, client, own = one
        if client not in names:
            out.routed.live.append(one)
            continue
        shaped = names[client]
        for name in own.split(","):
            if name in shaped:
                places.setdefault(f"{client}/{name}", []).append(place)
        if rest := [name for name in own.split(",") if name not in shaped]:
            out.routed.live.append((place, client, ",".join(rest)))
    return places, out


def _put_together(rows: Sequence[Row], lines: Sequence[bytes], out: _Out, plan: Plan) -> ShapedDeliveries:
    """Who was let go stands before the rows that came."""
    others = [(row, to) for row, to in out.others if to.durable or _may_see(row, to, plan)]
    if not others:
        return ShapedDeliveries(rows=rows, lines=lines, routed=out.routed)
    before, routed = len(others), RoutedRows(bad=out.routed.bad)
    for place, (_, to) in enumerate(others):
        if to.durable:
            routed.durable.append((place, group_of(to)))
        else:
            routed.live.append((place, to.client, to.name))
    routed.durable.extend((place + before, group) for place, group in out.routed.durable)
    routed.live.extend((place + before, client, own) for place, client, own in out.routed.live)
    released = [row for row, _ in others]
    return ShapedDeliveries(rows=[*released, *rows], lines=[*map(encode_row, released), *lines], routed=routed)


def _may_see(row: Row, to: Subscription, plan: Plan) -> bool:
    """What is sent at once is seen by the scopes in force now; what is put into a queue is decided there."""
    return plan.seeing is None or plan.seeing.sees(plan.seeing.look(row), to.scopes)


_NOTHING = ShapedDeliveries(rows=(), lines=(), routed=RoutedRows())
