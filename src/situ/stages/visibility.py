"""Visibility of events: stamps what comes in, and says to whom what was stamped may be handed.

`bits_function` says which filters are true for a row, `EventVisibility` stamps rows and decides by the epoch of the
stamp and the one in force. The same for all engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from operator import and_, attrgetter
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from situ.event.data_reader import read_envelope, row_reader
from situ.event.failures import failed, is_of_event
from situ.event.lines import with_stamp
from situ.event.row import BadRow, Row
from situ.event.seal import seal_of
from situ.lang.expr.emit.python import Emitter, compile_test
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import FALSE, TRUE, Node, Read, walk
from situ.lang.problems import SituError
from situ.lang.tags import NO_TAGS, TagSet
from situ.model.deployment import Deployment
from situ.routing.visibility import VisibilityKey
from situ.scopes.dimension_plan import constant, relevant_filters
from situ.scopes.epochs import Epochs
from situ.scopes.filter_sets import FilterNumbers, numbers_in
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.scopes.stamp_codec import read_parts, stamps_in
from situ.scopes.visibility_plan import TagSetPair, VisibilityPlan, compile_visibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Which filters are true for a row: one generated function for each type and choice of filters. Only what the filters
# ask for is read, of the envelope and of the data, and nothing at all where the type alone decides.

STAGE = "stamp"
"""The stage that this is a part of: :mod:`situ.stages.stamp`, which light commands do not load."""
Bits: TypeAlias = int | Callable[[Row], int]
"""Those for all rows of a type, where the type alone decides; else a function of the row."""
_Asked = tuple[int, Node]
_Many = Callable[[Mapping[str, Any], Mapping[str, Any]], int]

_EMPTY: Mapping[str, Any] = MappingProxyType({})
_TOGETHER = 32
"""Filters in one function."""


def bits_function(filters: FilterMeanings, numbers: FilterNumbers, wanted: int, type: str) -> Bits:
    """Those of the wanted filters that are true for rows of a type."""
    texts = numbers.texts()
    always = 0
    asked: list[_Asked] = []
    for number in numbers_in(wanted):
        node = filters.node(texts[number], type)
        if node == TRUE:
            always |= 1 << number
        elif node != FALSE:
            asked.append((1 << number, node))
    event = filters.types.event(type)
    if not asked or event is None:
        return always
    reads = [each for _, node in asked for each in walk(node) if isinstance(each, Read)]
    below = [each.path for each in reads if each.variable == "data"]
    names = frozenset(path[0] for path in below) if all(below) else None
    read = row_reader(event, names, filters.types) if below else _nothing
    around = read_envelope if any(each.variable == "event" for each in reads) else _nothing
    functions = [_function(asked[start : start + _TOGETHER]) for start in range(0, len(asked), _TOGETHER)]

    def bits(row: Row) -> int:
        envelope, data = around(row), read(row)
        found = always
        for function in functions:
            found |= function(envelope, data)
        return found

    return bits


def bits_of(bits: Bits, row: Row) -> int:
    return bits if isinstance(bits, int) else bits(row)


def _nothing(whole: object) -> Mapping[str, Any]:
    """No filter asks for any of it."""
    return _EMPTY


def _function(asked: Sequence[_Asked]) -> _Many:
    """One function that asks them all; what fails is not true, and the others are asked all the same."""
    emitter = Emitter(("event", "data"))
    lines = ["    found = 0"]
    for bit, node in asked:
        test = emitter.test(node)
        lines += ["    try:", f"        if {test}: found |= {bit}", "    except FAILURES: pass"]
    emitter.constants["FAILURES"] = FAILURES
    try:
        call: _Many = emitter.block("\n".join((*lines, "    return found\n"))).call
    except SituError:  # too long for one function
        return _one_by_one(asked)
    return call


def _one_by_one(asked: Sequence[_Asked]) -> _Many:
    tests = [(bit, _test(node)) for bit, node in asked]

    def call(envelope: Mapping[str, Any], data: Mapping[str, Any]) -> int:
        return sum(bit for bit, test in tests if test(envelope, data))

    return call


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stamps and decisions. An event is handed over only if it is visible in the epoch it was stamped in and in the one in
# force. In the same epoch that is one look at the plan. For an older one there is the plan of its scopes, and filters
# that are new since then are evaluated on the event itself. Of an epoch or a tag set that nobody knows any more nothing
# is visible.
#
# Scopes of past epochs are fetched by whoever has a bus: :meth:`EventVisibility.missing` says which, and where there is
# time to wait, ``load`` gets them.

Load = Callable[[int], ScopeGraph | None]

NOBODYS = -1
"""Stands for the tags of a dead letter that came under no advertisement: only operators and its producer see it."""
_MOST_STAMPERS = 10_000
_MOST_EPOCHS = 50
"""Past epochs that the next version takes over; others are fetched again if they are asked for."""
_published_as = attrgetter("ad", "client", "type")
_T = TypeVar("_T")


class EventVisibility:
    """The scopes of one version. Made by :meth:`of`."""

    def __init__(self, deployment: Deployment, before: EventVisibility | None) -> None:
        self.graph = deployment.scopes
        self.numbers = deployment.numbers
        self.seal = seal_of(deployment.numbers.seal)
        """Of the numbers that clients get to see."""
        self.epoch = _epoch(deployment, before)
        self.load: Load | None = before.load if before is not None else None
        self._filters = _filters(deployment, before)
        self._graphs: dict[int, ScopeGraph | None] = {} if before is None else _latest(before._graphs)
        self._graphs |= {0: NO_SCOPES, self.epoch: self.graph}
        self._plans: dict[int, VisibilityPlan] = {} if before is None else _latest(before._plans)
        self._plans[self.epoch] = self.plan = _compile(deployment, before)
        self._epochs = Epochs(self._plans)
        self._tags = {id: self.numbers.of(each.scopes) for id, each in deployment.advertisements.items()}
        self._of_clients = _of_clients(deployment)
        self._policies = {name: self.numbers.of(each.publishes) for name, each in self.graph.policies.items()}
        self._mattering: dict[tuple[int, int], int] = {}
        self._stampers: dict[tuple[str, int], Bits] = {}
        if before is not None and before._filters is self._filters and before.numbers is self.numbers:
            self._stampers = before._stampers
        self._by_tags: dict[tuple[str, int], Bits] = {}

    @classmethod
    def of(cls, deployment: Deployment, before: EventVisibility | None = None) -> EventVisibility | None:
        """What a numbered deployment says of visibility; None if there are no scopes and never were."""
        return cls(deployment, before) if deployment.scopes.dimensions or deployment.numbers else None

    # ── stamping ──

    def stamp(self, rows: Sequence[Row]) -> list[BadRow]:
        """Give rows, which have their advertisements, what they know of their own visibility; those for which that
        fails, as what they are then: nobody may see them."""
        if not self.graph.dimensions:
            return []
        try:
            self._stamp(rows)
            return []
        except Exception as error:
            if not is_of_event(error):
                raise
        bad: list[BadRow] = []
        for row in rows:
            try:
                self._stamp((row,))
            except Exception as error:  # noqa: BLE001 - of this event, and of no other
                bad.append(failed(row, STAGE, error))
        return bad

    def _stamp(self, rows: Iterable[Row]) -> None:
        epoch = self.epoch
        for (ad, client, type), some in groupby(rows, _published_as):  # neighbours mostly are alike
            tags = self._tags.get(ad, NOBODYS) if ad else self._policies.get(client, 0)
            bits = self._of_tags(type, tags)
            if isinstance(bits, int):
                for row in some:
                    row.tags, row.epoch, row.bits = tags, epoch, bits
            else:
                for row in some:
                    row.tags, row.epoch, row.bits = tags, epoch, bits(row)

    def _of_tags(self, type: str, tags: int) -> Bits:
        found = self._by_tags.get((type, tags))
        if found is None:
            found = self._by_tags[type, tags] = self._stamper(type, self._matter(tags, self.epoch))
        return found

    def stamped_letter(self, bad: BadRow, line: bytes) -> bytes:
        """The line of a dead letter: it has the tags of the advertisement it came in by, and passes no filter."""
        if not self.graph.dimensions:
            return line
        # An advertisement that is another's was forged: it says nothing of who may see the letter.
        own = self._tags.get(bad.ad) if bad.ad.startswith(f"{bad.client}/") else None
        tags = self._of_clients.get(bad.client, NOBODYS) if own is None else own
        return with_stamp(line, tags, self.epoch)

    def learn(self, offered: Deployment, advertisements: Iterable[str]) -> None:
        """These advertisements of a later version hold already. Numbers are only ever added."""
        self.numbers = offered.numbered().numbers
        self._mattering.clear()
        self._tags |= {id: self.numbers.of(offered.advertisements[id].scopes) for id in advertisements}

    # ── seeing ──

    def look(self, row: Row) -> VisibilityKey:
        bits = row.bits
        if row.epoch == self.epoch:
            return row.tags, row.epoch, bits, bits, stamps_in(row.parts)
        new = self._new(row)
        return (
            row.tags,
            row.epoch,
            bits,
            bits & ~new | (bits_of(self._stamper(row.type, new), row) if new else 0),
            stamps_in(row.parts),
        )

    def asks_event(self, row: Row) -> bool:
        """Whether a look at this row takes the event itself in root's terms, not only what it was stamped with."""
        return row.epoch != self.epoch and self._new(row) != 0

    def _new(self, row: Row) -> int:
        """The filters that matter for a row now and did not when it was stamped."""
        return self._matter(row.tags, self.epoch) & ~self._matter(row.tags, row.epoch)

    def sees(self, look: VisibilityKey, subscribed: TagSet) -> bool:
        tags, epoch, then, now, parts = look
        if not self._visible(tags, epoch, then, now, subscribed):
            return False
        # Parts are not at hand: of filters that are new since they were stamped nothing is known, so they do not pass.
        return not parts or all(
            self._visible(
                each.tags,
                each.epoch,
                each.bits,
                self._known_now(each.tags, each.epoch, each.bits),
                subscribed,
                each.released,
            )
            for each in read_parts(parts)
        )

    def could_see(self, advertised: TagSet, subscribed: TagSet, types: Iterable[str]) -> bool:
        """Whether an event of one of these types, published under these tags, could be visible to those now."""
        pair = self._epochs.pair(self.epoch, advertised, subscribed)
        return any(pair.visible(self._settled(advertised, type)[1]) for type in types)

    def always_sees(self, advertised: TagSet, subscribed: TagSet, types: Iterable[str]) -> bool:
        """Whether every event of these types, published under these tags, is visible to those now, whatever it says."""
        pair = self._epochs.pair(self.epoch, advertised, subscribed)
        return all(pair.visible(self._settled(advertised, type)[0]) for type in types)

    def surely(self, advertised: TagSet, types: Iterable[str]) -> int:
        """The filters that are true for every event of these types that is published under these tags."""
        return reduce(and_, (self._settled(advertised, type)[0] for type in types), -1)

    def _settled(self, advertised: TagSet, type: str) -> tuple[int, int]:
        """Of the filters that matter: those that are true for all events of the type, and those that may be."""
        texts = self.numbers.filters.texts()
        always = perhaps = 0
        for number in numbers_in(self._matter(self.numbers.of(advertised), self.epoch)):
            node = self._filters.node(texts[number], type)
            always |= (node == TRUE) << number
            perhaps |= (node != FALSE) << number
        return always, perhaps

    def saw(self, look: VisibilityKey, subscribed: TagSet) -> bool:
        tags, epoch, then, _, parts = look
        stamps = [(tags, epoch, then, frozenset[str]())]
        stamps += [(each.tags, each.epoch, each.bits, each.released) for each in read_parts(parts)] if parts else []
        return all(self._was_visible(*each, subscribed) for each in stamps)

    def _was_visible(self, tags: int, epoch: int, bits: int, released: frozenset[str], subscribed: TagSet) -> bool:
        named = self.numbers.tag_set(tags)
        if named is None or not self._knows(epoch):
            return False
        return self._epochs.pair(epoch, named, subscribed, released).visible(bits)

    def asked(self, tags: int, epoch: int, subscribed: TagSet) -> tuple[int, int]:
        named = self.numbers.tag_set(tags)
        if named is None or not self._knows(epoch):
            return 0, 0
        then = self._epochs.pair(epoch, named, subscribed).filters
        return then, then if epoch == self.epoch else self._epochs.pair(self.epoch, named, subscribed).filters

    def pair(self, advertised: TagSet, subscribed: TagSet) -> TagSetPair:
        """The decision of now between what is published under these tags and those who subscribe under those."""
        return self._epochs.pair(self.epoch, advertised, subscribed)

    # ── for those who ask why ──

    @property
    def filters(self) -> FilterMeanings:
        """What the filters mean for events of each type."""
        return self._filters

    def scopes_of(self, epoch: int) -> ScopeGraph | None:
        """The scopes of an epoch; None if nobody knows them."""
        return self._graphs.get(epoch) if self._knows(epoch) else None

    def bits_now(self, tags: int, epoch: int, bits: int) -> int:
        """What counts in the epoch in force of something that is not at hand."""
        return self._known_now(tags, epoch, bits)

    def _visible(
        self, tags: int, epoch: int, then: int, now: int, subscribed: TagSet, released: frozenset[str] = frozenset()
    ) -> bool:
        named = self.numbers.tag_set(tags)
        if named is None or not self._knows(epoch):
            return False
        pair = self._epochs.pair
        if not pair(epoch, named, subscribed, released).visible(then):
            return False
        return epoch == self.epoch or pair(self.epoch, named, subscribed, released).visible(now)

    def _known_now(self, tags: int, epoch: int, bits: int) -> int:
        return bits if epoch == self.epoch else bits & self._matter(tags, epoch)

    # ── epochs ──

    def missing(self, rows: Sequence[Row]) -> set[int]:
        """The epochs of these rows of which it is not known yet what their scopes were."""
        epochs = {row.epoch for row in rows}
        epochs |= {part.epoch for row in rows if row.parts for part in read_parts(row.parts)}
        return {each for each in epochs if each not in self._graphs}

    def know(self, epoch: int, graph: ScopeGraph | None) -> None:
        """What the scopes of a past epoch were; None: nobody knows."""
        self._graphs[epoch] = graph

    def _knows(self, epoch: int) -> bool:
        if epoch in self._plans:
            return True
        if epoch not in self._graphs and self.load is not None:
            self._graphs[epoch] = self.load(epoch)
        graph = self._graphs.get(epoch)
        if graph is None or any(
            constant(each.text) is None and each.text not in self.numbers.filters for each in graph.filters()
        ):
            return False
        self._plans[epoch] = compile_visibility(graph, (), (), self.numbers.filters)
        return True

    # ── filters ──

    def _matter(self, tags: int, epoch: int) -> int:
        """The filters that are evaluated in an epoch for what has these tags."""
        found = self._mattering.get((tags, epoch))
        if found is None:
            named = self.numbers.tag_set(tags)
            graph = self._graphs.get(epoch) if self._knows(epoch) else None
            if named is None or graph is None:
                return 0
            found = self._mattering[tags, epoch] = relevant_filters(graph, named, self.numbers.filters)
        return found

    def _stamper(self, type: str, wanted: int) -> Bits:
        found = self._stampers.get((type, wanted))
        if found is None:
            if len(self._stampers) >= _MOST_STAMPERS:
                self._stampers.clear()
            found = self._stampers[type, wanted] = bits_function(self._filters, self.numbers.filters, wanted, type)
        return found


def _test(node: Node) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bool]:
    """A function that is true where the condition is, and false where it is false, null or fails."""
    run = compile_test(node, ("event", "data")).call

    def test(envelope: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        try:
            return bool(run(envelope, data))
        except FAILURES:
            return False

    return test


def _epoch(deployment: Deployment, before: EventVisibility | None) -> int:
    """What no registry has numbered gets numbers that no registry gives, another for other scopes."""
    if deployment.epoch or not deployment.scopes.dimensions:
        return deployment.epoch
    if before is not None and before.epoch < 0 and before.graph == deployment.scopes:
        return before.epoch
    return min(0 if before is None else before.epoch, 0) - 1


def _latest(of_epochs: Mapping[int, _T]) -> dict[int, _T]:
    # Epochs that no registry numbered count down from -1.
    latest = sorted(of_epochs, key=abs)[-_MOST_EPOCHS:]
    return {epoch: of_epochs[epoch] for epoch in latest}


def _filters(deployment: Deployment, before: EventVisibility | None) -> FilterMeanings:
    limits = deployment.settings.expression_limits
    if before is not None and before._filters.types == deployment.types and before._filters.limits == limits:
        return before._filters
    return FilterMeanings(deployment.types, limits)


def _compile(deployment: Deployment, before: EventVisibility | None) -> VisibilityPlan:
    """The plan for the tags in use; what the one before has already is taken from there."""
    graph, policies = deployment.scopes, deployment.scopes.policies.values()
    ads = {
        NO_TAGS,
        *(each.scopes for each in deployment.advertisements.values()),
        *(each.publishes for each in policies),
    }
    subs = {*(each.scopes for each in deployment.subscriptions.values()), *(each.reads for each in policies)}
    numbers = deployment.numbers.filters
    old = None if before is None else before.plan
    same = before is not None and before.graph == graph and before.numbers.filters == numbers
    if same and old is not None and old.ads.keys() == ads and old.subs.keys() == subs:
        return old
    return compile_visibility(graph, sorted(ads, key=_order), sorted(subs, key=_order), numbers, old)


def _order(tags: TagSet) -> tuple[object, ...]:
    return tags.named, tags.rest


def _of_clients(deployment: Deployment) -> dict[str, int]:
    """The tags of each client that has the same in all of its advertisements."""
    found: dict[str, set[TagSet]] = {}
    for each in deployment.advertisements.values():
        found.setdefault(each.client, set()).add(each.scopes)
    return {client: deployment.numbers.of(*tags) for client, tags in found.items() if len(tags) == 1}
