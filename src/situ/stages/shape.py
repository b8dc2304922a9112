"""Stage shape: what is done to the events of single subscriptions, behind routing and before they get their terms.

What the filters of an engine remember; or those of a share of its clients. Rows come with their deliveries, and what is
left of these goes on, with those of events that have waited; these stand before the others. Dead letters do not come
here: they are told as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from situ.deployment.shapes import Shapes
from situ.deployment.wording import Worded
from situ.event.isolation import failed
from situ.event.lines import encode_row
from situ.event.row import Row
from situ.quality.shape import UNSHAPED, Shape
from situ.quality.shaping.shaper import Mine, Shaper, shape_of
from situ.quality.shaping.track import Patience
from situ.subscription.model import Subscription
from situ.subscription.routing import Routed
from situ.subscription.targets import group_of

if TYPE_CHECKING:
    from situ.deployment.plan import Plan

FORMAT = 1
STAGE = "shape"
_NO_DATA: Mapping[str, Any] = {}
id_of = id  # ids of subscriptions are called so, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """Rows with their lines, and what is delivered of them."""

    rows: Sequence[Row]
    lines: Sequence[bytes]
    routed: Routed


@dataclass(slots=True)
class _Out:
    """What is being put together: deliveries of the rows that came, and of others that are let go."""

    routed: Routed = field(default_factory=Routed)
    others: list[tuple[Row, Subscription]] = field(default_factory=list)


class Shaping:
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

    def adopt(self, plan: Plan) -> tuple[Shaped, Plan]:
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

    def shape(self, rows: Sequence[Row], lines: Sequence[bytes], routed: Routed, now: int | None = None) -> Shaped:
        """What is left of the deliveries of these rows, which are the next of the log; ``now`` is the instant at which
        their ages are taken, the same whenever this is repeated; None: when each came."""
        plan = self._plan
        assert plan is not None, "a plan is adopted first"
        places, out = _apart(routed, plan.shapes)
        if not places:
            return Shaped(rows=rows, lines=lines, routed=routed)
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

    def tick(self, now: int) -> Shaped:
        """What is delivered because nothing has come for long."""
        out, plan = _Out(), self._plan
        if plan is None:
            return _NOTHING
        for id, shaper in self._shapers.items():
            if shaper.holds:
                out.others += [(row, plan.shapes.subscriptions[id]) for row in shaper.tick(now)]
                self._count(shaper)
        return _put_together((), (), out, plan)

    def mark(self, rows: Sequence[Row], worded: Worded) -> Worded:
        """Deliveries that say how far they may be from the truth."""
        plan = self._plan
        marked = plan.shapes.marked if plan is not None else frozenset()
        if plan is None or not marked:
            return worded
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

    def _shaper(self, id: str, shape: Shape, patience: Patience) -> Shaper:
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


def _apart(routed: Routed, shapes: Shapes) -> tuple[dict[str, list[int]], _Out]:
    """The rows for each subscription that has a shape; and what is delivered to all others."""
    places: dict[str, list[int]] = {}
    groups, names, out = shapes.groups, shapes.names, _Out(Routed(bad=routed.bad))
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


def _put_together(rows: Sequence[Row], lines: Sequence[bytes], out: _Out, plan: Plan) -> Shaped:
    """Who was let go stands before the rows that came."""
    others = [(row, to) for row, to in out.others if to.durable or _may_see(row, to, plan)]
    if not others:
        return Shaped(rows=rows, lines=lines, routed=out.routed)
    before, routed = len(others), Routed(bad=out.routed.bad)
    for place, (_, to) in enumerate(others):
        if to.durable:
            routed.durable.append((place, group_of(to)))
        else:
            routed.live.append((place, to.client, to.name))
    routed.durable.extend((place + before, group) for place, group in out.routed.durable)
    routed.live.extend((place + before, client, own) for place, client, own in out.routed.live)
    released = [row for row, _ in others]
    return Shaped(rows=[*released, *rows], lines=[*map(encode_row, released), *lines], routed=routed)


def _may_see(row: Row, to: Subscription, plan: Plan) -> bool:
    """What is sent at once is seen by the scopes in force now; what is put into a queue is decided there."""
    return plan.seeing is None or plan.seeing.sees(plan.seeing.look(row), to.scopes)


_NOTHING = Shaped(rows=(), lines=(), routed=Routed())
