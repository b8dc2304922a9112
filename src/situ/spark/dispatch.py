"""The second half of a batch in Spark's workers: rows are interpreted, stamped, routed, shaped and published.

`publish` and `BusWriter` are the bus as a sink. `DispatchTask` takes one task's share of a batch through all stages;
`dispatched` publishes what comes of it.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from situ.bus.address import Address
from situ.bus.interface import StoreAck
from situ.bus.sync_bus import shared_bus
from situ.event.failures import StageFailure, failed, failed_by, failure_of, is_of_event, largest_working
from situ.event.lines import bare_lines, decode_line
from situ.event.message import PLACES, Message, lane_of
from situ.event.row import BadRow, Row, origins_of
from situ.event.subjects import BusNames, pack_dead
from situ.routing.routing_table import RoutedRows
from situ.spark import frames
from situ.spark.checkpoint import ClientOffsetStore, Offset
from situ.spark.elastic.load import sample_of_task
from situ.spark.frames import TaskCounts
from situ.spark.measure import TaskMeter, measuring_of
from situ.spark.partitions import decode, part_of_batch
from situ.spark.plans import former, former_plan, load_plan, use_tables
from situ.spark.real_time.leave_out import RealTimeShare
from situ.spark.state_store import PendingDeliveryStore, ShapeStateStore
from situ.stages.deliver import DeliveryBatcher, interpret_out, route, route_and_shape
from situ.stages.interpret_out import ConvertedDeliveries, prefetch_inbound, prefetch_outbound
from situ.stages.pending_deliveries import DeliveryTag, PendingDeliveries
from situ.stages.plan import Plan
from situ.stages.root_log import dead_letter_line, pack, write
from situ.stages.shape import ShapedDeliveries, ShapeState
from situ.stages.stamp import stamp
from situ.storage.state_folder import StateFolder

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The bus as a sink: messages are published in their order, by the task that has them. A message with an id is stored
# once however often it is sent, which is what makes a repeated batch harmless. For jobs of one's own,
# ``format("situ-bus")`` takes rows of ``subject headers body``.

_UNDER_WAY = 256
OnStored = Callable[[Message, StoreAck], None]
_HEADERS = msgspec.json.Decoder(dict[str, str])


@dataclass
class WrittenMessages(WriterCommitMessage):
    """What one task stored, and what was stored before."""

    stored: int
    repeated: int


class BusWriter(DataSourceArrowWriter):
    """Publishes the rows of each task over one connection."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return publish(self._address, _messages(iterator))


def publish(
    address: Address,
    messages: Iterable[Message],
    stored: Collection[str] = (),
    on_stored: OnStored | None = None,
    *,
    live: bool = True,
) -> WrittenMessages:
    """Send what is for clients that are there now, store all else but these ids: they are known to be stored.

    If there are such ids, or this is not ``live``, something that was interrupted is repeated. Volatile subscriptions,
    which promise nothing over a crash, get nothing of it: they may have got it before.
    """
    bus, to_clients = shared_bus(address), BusNames(address.zone).live("")
    under_way: deque[tuple[Message, Future[StoreAck]]] = deque()
    acks: list[bool] = []

    def wait() -> None:
        message, future = under_way.popleft()
        ack = future.result()
        acks.append(ack.duplicate)
        if on_stored is not None:
            on_stored(message, ack)

    for message in messages:
        if message.id in stored:
            acks.append(True)
            continue
        if message.subject.startswith(to_clients):
            if live and not stored:
                bus.send(message)
            continue
        under_way.append((message, bus.store(message)))
        if len(under_way) > _UNDER_WAY:
            wait()
    while under_way:
        wait()
    return WrittenMessages(stored=acks.count(False), repeated=acks.count(True))


def _messages(batches: Iterator[pa.RecordBatch]) -> Iterator[Message]:
    for batch in batches:
        subjects, headers, bodies = (batch.column(name).to_pylist() for name in ("subject", "headers", "body"))
        for subject, header, body in zip(subjects, headers, bodies, strict=True):
            yield Message(subject=subject, headers=_HEADERS.decode(header), body=body)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All stages in one pass. What :class:`DispatchTask` makes is pure: the same rows and the same version of the deployment
# give the same messages with the same ids, in the same order. The worker that made them publishes them; only what it
# counted goes back to Spark. Boundaries of messages of the root log follow those of the messages that came in.

T = TypeVar("T")
Reading = Callable[[bool], Generator[list[Row | BadRow], None, None]]
"""Reads what a task has to do, a list for each message: bare rows the first time, with their texts each time after."""
_TASK = "task"
_MOST_TRACES = 10
"""Tracebacks that a task tells of."""
_MANY = 4096
"""Events for which Python functions are called together."""


def dispatching(address: Address, checkpoint: StateFolder) -> frames.Mapped:
    """The function that Spark maps over the rows of the events' query, in every batch."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        note, number, attempt = frames.batch_of_task()
        # A task that is tried again may have sent before it failed, on a machine that is gone.
        part = dispatch_part(address, checkpoint, note.begin, note.end, number, batches, live=not attempt)
        yield frames.count_batch(part)

    return run


def dispatch_part(
    address: Address,
    checkpoint: StateFolder,
    begin: Offset,
    end: Offset,
    number: int,
    given: Iterable[pa.RecordBatch] | None = None,
    *,
    live: bool = True,
) -> TaskCounts:
    """Take one part of a batch through all stages. Its rows are ``given``, or else read from the bus.

    Not ``live``: clients that are there now get nothing, as they may have got it before.
    """
    plan = load_plan(address, end.version)
    use_tables(plan, address, end.tables)
    part = part_of_batch(BusNames(address.zone), begin, end, number)
    carry = ClientOffsetStore(checkpoint).load(begin.mark)
    highest = carry.share(part.shards) if part.shards else carry.highest
    clock = StageClock()
    share = RealTimeShare.of(plan, checkpoint, end)

    def read(first: bool) -> Generator[list[Row | BadRow], None, None]:
        messages = frames.messages_of(given) if first and given is not None else part.messages(address)
        if share is not None:
            messages = share.noted(messages)
        found = decode(
            clock.over("read", messages),
            plan,
            highest,
            lambda version: former(address, version, plan, end.tables),
            bare=first,
        )
        yield from clock.over("decode", found)

    def make() -> DispatchTask:
        return DispatchTask(
            plan,
            end.clock,
            PendingDeliveryStore(checkpoint, begin.mark, end.mark),
            ShapeStateStore(checkpoint, begin, end, part.shards),
            former_plan(address, begin.version, plan),
            measuring_of(plan, address),
            clock,
            live=live and not carry.stored,
            share=share,
        )

    return dispatched(address, make, read, carry.stored)


class StageClock:
    """How long each stage takes, of stages that call each other: what is inside of one is not its own."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = time.perf_counter()

    def begin(self, stage: str) -> None:
        self._turn()
        self._running.append(stage)

    def end(self) -> None:
        self._turn()
        self._running.pop()

    def _turn(self) -> None:
        now = time.perf_counter()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def over(self, stage: str, items: Iterable[T]) -> Iterator[T]:
        """The same items; the time until each comes is the stage's."""
        found = iter(items)
        while True:
            self.begin(stage)
            try:
                item = next(found)
            except StopIteration:
                return
            finally:
                self.end()
            yield item


def dispatched(
    address: Address, make: Callable[[], DispatchTask], read: Reading, stored: Collection[str]
) -> TaskCounts:
    """What was counted of what there is to read, whose messages are now on the bus; those with the ids ``stored`` were
    before.

    If that fails in a way that nobody foresaw, it is found out which messages it fails on: their events are dead
    letters, and all others go on. A batch that is repeated would fail again, and hold up everybody. What was published
    before it failed is published again with the same ids: it comes from messages before the first that fails.
    """
    dispatch, sent = make(), _Sent(BusNames(address.zone).live(""))
    try:
        with closing(read(True)) as rows:
            dispatch.publish(address, sent.noted(dispatch.messages(rows)), stored)
    except Exception as error:
        if not is_of_event(error):
            raise
        failures = _failing(make, read)
        first, dispatch = dispatch, make()
        dispatch.follow(first, None if failures else error)
        with closing(read(False)) as rows:
            dispatch.publish(address, sent.without(dispatch.messages(_replaced(rows, failures))), stored)
    dispatch.finish()
    return dispatch.counts()


class _HalfDone(Exception):
    """Some of the deliveries of a message are among those to come: to begin with it again would repeat them."""


class _Sent:
    """How many messages were sent to clients that are there now: nobody notices if they are sent again."""

    def __init__(self, live: str) -> None:
        self._live = live
        self._number = 0

    def noted(self, messages: Iterable[Message]) -> Iterator[Message]:
        for each in messages:
            self._number += each.subject.startswith(self._live)
            yield each

    def without(self, messages: Iterable[Message]) -> Iterator[Message]:
        """The same messages once more, without those that were sent."""
        for each in messages:
            if self._number and each.subject.startswith(self._live):
                self._number -= 1
            else:
                yield each


def _failing(make: Callable[[], DispatchTask], read: Reading) -> dict[int | str, StageFailure]:
    """The messages that cannot be dispatched, by their place in the log. Nothing is published."""

    def work(some: list[int | str]) -> None:
        wanted = set(some)
        with closing(read(False)) as rows:
            deque(make().messages(each for each in rows if _place(each) in wanted), maxlen=0)

    _, bad = largest_working([_place(each) for each in read(False)], work)
    return {place: failure_of(_cause(error), _TASK) for place, error in bad}


def _cause(error: Exception) -> BaseException:
    return (error.__cause__ or error) if isinstance(error, _HalfDone) else error


def _replaced(
    rows: Iterable[list[Row | BadRow]], failures: Mapping[int | str, StageFailure]
) -> Iterator[list[Row | BadRow]]:
    """All messages; the events of those that fail as what dead letters are made of."""
    for each in rows:
        failure = failures.get(_place(each))
        if failure is None:
            yield each
        else:
            yield [failed_by(failure, row, row.original if isinstance(row, BadRow) else row.data) for row in each]


def _place(rows: Sequence[Row | BadRow]) -> int | str:
    """Of a message of the log, or of one that records of a topic were put into: events of that have no position."""
    return rows[0].pos // PLACES or rows[0].key


def _together(rows: Iterable[list[Row | BadRow]]) -> Iterator[list[list[Row | BadRow]]]:
    """Messages, as many as have some thousand events between them."""
    some: list[list[Row | BadRow]] = []
    count = 0
    for each in rows:
        some.append(each)
        count += len(each)
        if count >= _MANY:
            yield some
            some, count = [], 0
    if some:
        yield some


class DispatchTask:
    """One task's share of a batch."""

    def __init__(
        self,
        plan: Plan,
        clock: int,
        remembering: PendingDeliveryStore | None = None,
        shaping: ShapeStateStore | None = None,
        former: Plan | None = None,
        measuring: TaskMeter | None = None,
        clock_of_stages: StageClock | None = None,
        *,
        live: bool = True,
        share: RealTimeShare | None = None,
    ) -> None:
        """``former`` is the plan of the batch before; ``share`` knows what is left to real-time queries."""
        self._share = share
        self._stages = clock_of_stages or StageClock()
        self._state_bytes = 0
        self._sends_live = live
        self._plan, self._former = plan, former or plan
        shapes = shaping is not None and (bool(plan.shapes.by_id) or shaping.is_left_behind)
        self._shaping_store = shaping if shapes else None
        self._shaping: ShapeState | None = None
        self._measuring = measuring
        counts = measuring is not None and measuring.counts
        self.on_stored: OnStored | None = measuring.stored if measuring is not None and counts else None
        """Who is told what was stored, if anybody counts it."""
        remembers = remembering is not None and (plan.interpretation.remembers or remembering.is_left_behind)
        self._remembering = remembering if remembers else None
        self._holding: PendingDeliveries | None = None
        self._names = BusNames(plan.zone)
        self._clock = clock
        self._delivery = DeliveryBatcher(plan, measuring.packed if measuring is not None and counts else None)
        self._types: Counter[str] = Counter()
        self._groups: Counter[str] = Counter()
        self._live: Counter[str] = Counter()
        self._dead: Counter[str] = Counter()
        self._origins: Counter[str] = Counter()
        self._originals: Counter[str] = Counter()
        self._converted: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._highest: dict[str, tuple[int, int]] = {}
        self._failures: Counter[str] = Counter()
        self._traces: list[str] = []

    def messages(self, rows: Iterable[list[Row | BadRow]]) -> Iterator[Message]:
        """What to publish for these rows, given as lists that each belong to one incoming message."""
        if self._remembering is not None:
            self._holding = self._remembering.start(self._plan)
        if self._shaping_store is not None:
            yield from self._begin_shaping(self._shaping_store)
        if self._remembering is not None:
            yield from self._remembered(rows)
        elif self._plan.interpretation.calls_python:
            yield from self._by_many(rows)
        else:
            for each in rows:
                yield from self._message(*self._stamped(each))
        if self._shaping is not None:
            yield from self._let_go(self._shaping.tick(self._clock), self._plan)
        yield from self._delivery.finish()

    def publish(self, address: Address, messages: Iterable[Message], stored: Collection[str]) -> None:
        """Publish its messages; whatever no stage takes is the time of this."""
        self._stages.begin("publish")
        try:
            publish(address, messages, stored, self.on_stored, live=self._sends_live)
        finally:
            self._stages.end()

    def follow(self, first: DispatchTask, error: Exception | None) -> None:
        """Take up what one was counting that failed on the same events, by an error that is nobody's own."""
        if error is not None:
            self._note(_cause(error), _TASK)
        if self._measuring is not None and first._measuring is not None:
            self._measuring.lots.add(first._measuring.lots)

    def finish(self) -> None:
        """When all messages are published: leave what is remembered to the next batch."""
        if self._remembering is not None:
            self._state_bytes += self._remembering.finish(self._plan)
        if self._shaping_store is not None and self._shaping is not None:
            self._dropped, self._shaping.dropped = self._shaping.dropped, Counter()
            self._state_bytes += self._shaping_store.finish()

    def _begin_shaping(self, store: ShapeStateStore) -> Iterator[Message]:
        """Go on with what filters remember; what they held back and must let go under this plan is delivered."""
        self._shaping = store.start(self._former)
        yield from self._let_go(*self._shaping.adopt(self._plan))

    def _let_go(self, shaped: ShapedDeliveries, plan: Plan) -> Iterator[Message]:
        if not shaped.rows:
            return
        if self._holding is None:
            yield from self._add(shaped.rows, interpret_out(shaped, plan))
        else:
            for said in self._holding.say(shaped, plan, DeliveryTag()):
                yield from self._add(said.rows, said.worded)

    def _remembered(self, rows: Iterable[list[Row | BadRow]]) -> Iterator[Message]:
        """The same, where conversions ask what came before."""
        for each in rows:
            good, bad = self._stamped(each)
            self._plan.interpretation.incoming.note(good)
            yield from self._message(good, bad)

    def _by_many(self, rows: Iterable[list[Row | BadRow]]) -> Iterator[Message]:
        """The same, but Python functions are called once for many messages instead of once for each."""
        plan = self._plan
        for some in _together(rows):
            with prefetch_inbound(plan.interpretation, some):
                stamped = [self._stamped(each) for each in some]
            routed = [(good, route(good, plan, queued=True)) for good, _ in stamped if good]
            with prefetch_outbound(plan.interpretation, routed, plan.routing):
                for good, bad in stamped:
                    yield from self._message(good, bad)

    def _stamped(self, rows: list[Row | BadRow]) -> tuple[list[Row], list[BadRow]]:
        """The events of a message in root's terms and stamped; those that make that fail are dead letters."""
        last = rows[-1]
        self._highest[lane_of(last.client, last.incarnation)] = (last.incarnation, last.seq)
        self._stages.begin("interpret")
        try:
            return stamp(self._plan.interpretation.into_root(rows), self._plan)
        except Exception as error:
            if not is_of_event(error):
                raise
        finally:
            self._stages.end()
        good: list[Row] = []
        bad: list[BadRow] = []
        for row in rows:
            try:
                fine, refused = stamp(self._plan.interpretation.into_root([row]), self._plan)
            except Exception as error:  # noqa: BLE001 - of this event, and of no other
                original = row.original if isinstance(row, BadRow) else row.data
                bad.append(failed(row, row.stage if isinstance(row, BadRow) else "stamp", error, original))
            else:
                good += fine
                bad += refused
        return good, bad

    def counts(self) -> TaskCounts:
        """What was seen so far."""
        return TaskCounts(
            types=dict(self._types),
            groups=dict(self._groups),
            live=dict(self._live),
            dead=dict(self._dead),
            origins=dict(self._origins),
            originals=dict(self._originals),
            converted=dict(self._converted),
            dropped=dict(self._dropped),
            measured=self._measuring.meter.drain().as_json() if self._measuring is not None else {},
            stored=self._measuring.lots.as_json() if self._measuring is not None else {},
            highest=self._highest,
            failures=dict(self._failures),
            traces=self._traces,
            seconds=dict(self._stages.seconds),
            state_bytes=self._state_bytes,
            worker=sample_of_task(self._plan.deployment.settings),
        )

    def _message(self, good: list[Row], bad: list[BadRow]) -> Iterator[Message]:
        self._stages.begin("log")
        try:
            batch = write(good, bad)
            pack(batch, self._plan)
        finally:
            self._stages.end()
        good = batch.good
        if batch.bad:
            yield from self._dead_letters(batch.bad)
        if good:
            self._types.update([row.type for row in good])
            self._origins.update(origins_of(good))
            yield from [message for _, message in batch.messages]
            if self._measuring is not None:
                self._measure(good)
            yield from self._delivered(good, batch.lines)

    def _measure(self, rows: Sequence[Row]) -> None:
        assert self._measuring is not None
        try:
            self._measuring.meter.take(rows, time.time_ns() // 1000)
        except Exception as error:  # noqa: BLE001 - figures lack these
            self._note(error, "measure")

    def _note(self, error: BaseException, what: str) -> StageFailure:
        failure = failure_of(error, what)
        self._failures[what] += 1
        self._keep([failure.trace])
        return failure

    def _keep(self, traces: Iterable[str]) -> None:
        self._traces += [each for each in traces if each][: max(_MOST_TRACES - len(self._traces), 0)]

    def _delivered(self, rows: Sequence[Row], lines: Sequence[bytes]) -> Iterator[Message]:
        """The deliveries of a message of the root log. If they fail, each event is delivered by itself; those that fail
        again are dead letters: they are in the log, and so is that they went no further.

        Where something is remembered from event to event, it would remember those twice that went well: all of them are
        dead letters then."""
        try:
            if self._holding is None:
                found = list(self._deliver(rows, lines, self._shaping))
            else:
                shape = self._shape if self._is_shaped else None
                said = self._holding.word(rows, lines, self._plan, None, shape)
                found = [each for one in said for each in self._add(one.rows, one.worded)]
        except Exception as error:
            if not is_of_event(error) or isinstance(error, _HalfDone):
                raise
            if len(rows) > 1 and self._holding is None and not self._is_shaped:
                for row, line in zip(rows, lines, strict=True):
                    yield from self._delivered([row], [line])
                return
            failure = failure_of(error, "deliver")
            found = list(self._dead_letters([failed_by(failure, row) for row in rows]))
        yield from found

    @property
    def _is_shaped(self) -> bool:
        return self._shaping is not None and bool(self._plan.shapes.by_id)

    def _shape(self, rows: Sequence[Row], lines: Sequence[bytes], routed: RoutedRows) -> ShapedDeliveries:
        assert self._shaping is not None
        return self._shaping.shape(rows, lines, routed, self._clock)

    def _deliver(
        self, rows: Sequence[Row], lines: Sequence[bytes], shaping: ShapeState | None = None, *, letters: bool = False
    ) -> Iterator[Message]:
        self._stages.begin("route")
        try:
            shaped = route_and_shape(rows, lines, self._plan, shaping, self._clock)
        finally:
            self._stages.end()
        self._stages.begin("interpret")
        try:
            worded = interpret_out(shaped, self._plan)
        finally:
            self._stages.end()
        yield from self._add(shaped.rows, worded, letters=letters)

    def _add(self, rows: Sequence[Row], worded: ConvertedDeliveries, *, letters: bool = False) -> Iterator[Message]:
        if self._share is not None and not letters:
            worded = self._share.leave_out(rows, worded)
        if self._shaping is not None:
            worded = self._shaping.mark(rows, worded)
        self._originals.update(worded.originals)
        self._converted.update(worded.converted)
        self._groups.update([group for _, group, _ in worded.durable])
        self._live.update(f"{client}/{name}" for _, client, names, _ in worded.live for name in names.split(","))
        self._stages.begin("deliver")
        try:
            packed = list(self._delivery.add(rows, worded))
        except Exception as error:
            if not is_of_event(error):
                raise
            raise _HalfDone from error
        finally:
            self._stages.end()
        yield from packed
        if worded.bad and letters:
            self._failures["deliver dead letter"] += len(worded.bad)
            self._keep(row.trace for row in worded.bad)
        elif worded.bad:
            yield from self._dead_letters(worded.bad)

    def _dead_letters(self, rows: Sequence[BadRow]) -> Iterator[Message]:
        """They are events themselves."""
        self._dead.update(row.errors[0][0] for row in rows)
        self._keep(row.trace for row in rows)
        lines = [dead_letter_line(row, self._clock, self._plan) for row in rows]
        yield from (pack_dead(self._names, row, line) for row, line in zip(rows, lines, strict=True))
        letters = [decode_line(line) for line in lines]
        try:
            yield from list(self._deliver(letters, bare_lines(letters, lines), letters=True))
        except Exception as error:  # noqa: BLE001 - they are in the log of dead letters all the same
            self._note(error, "deliver dead letter")

    def letters(self, rows: Sequence[BadRow]) -> Iterator[Message]:
        """The dead letters of events that failed elsewhere, and their deliveries."""
        yield from self._dead_letters(rows)
        yield from self._delivery.finish()
