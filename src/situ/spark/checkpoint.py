"""What lies in and beside the checkpoint of the event query: offsets, ends of batches, clients' offsets, recovery.

`Offset` is what Spark writes down for a batch. `BatchEnds` says where batches of events end in the root log.
`ClientOffsetStore` keeps how far each client's events have come. `check_checkpoint`, `recall` and `adopt_log` are for
the start after a crash or on a log that was read before.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from situ.bus.sync_bus import BlockingBus
from situ.event.lines import decode_line, stored_lines
from situ.event.message import client_of, lane_of, position
from situ.event.subjects import BusNames, shard_of
from situ.lang.json_form import StoredForm
from situ.lang.records import replace
from situ.settings import Settings
from situ.spark.storage.owner import CheckpointOwner
from situ.storage.state_folder import StateFolder, open_folder, use_options


def checkpoints_of(settings: Settings, folder: Path) -> StateFolder:
    """Where a project in this folder has its checkpoints; this process opens them with the settings of Spark."""
    use_options({name: value.value for name, value in settings.spark.conf})
    return open_folder(settings.spark.checkpoints.value, folder)


def owner_of(settings: Settings, checkpoints: StateFolder) -> CheckpointOwner:
    """This process, as the job that wants these checkpoints."""
    return CheckpointOwner(checkpoints, project=settings.name, zone=settings.zone)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Offsets: everything a batch depends on beside the rows of the log. Spark writes the offset of a batch down before it
# runs it, so a batch that is repeated after a crash is repeated with the same positions, the same version of the
# deployment, the same clock and the same partitions, whatever changed.


class Offset(StoredForm, frozen=True, kw_only=True):
    """The end of a batch: ``seq`` is the last message of the log in it."""

    OMITTED = ("buckets", "settled", "spread", "real_time")

    seq: int = 0
    version: int = 0
    """Of the deployment the batch runs with."""
    partitions: int = 1
    """How many tasks share the clients; messages are cut within one."""
    clock: int = 0
    """When the end was chosen, in microseconds: the batch knows no other present."""
    tables: dict[str, str] = msgspec.field(default_factory=dict)
    """Digests of the pull tables the batch reads, by name."""
    topics: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Of each partition of a topic, as `CLIENT TOPIC PARTITION`, the offset from which the batch reads it, and the one
    behind its last record. What is not read any more stays: a batch is known by how far all is."""
    spread: bool = False
    """Whether partitions of topics are shared among the tasks one by one, and not by their clients."""
    buckets: int = 0
    """Of detection: into how many buckets what policies remember at the end of the batch is divided; 0: as many as
    the first run had."""
    settled: int = 0
    """Of detection: what came in before this message of the ingress stream is in the root log up to ``seq``, or never
    will be; 0: not known."""

    real_time: int = 0
    """The generation of real-time queries that deliveries are left to; 0: none, see :mod:`situ.spark.real_time`."""

    @property
    def mark(self) -> int:
        """How far all that is read is, as one number: no batch with an event ends where it begins."""
        return self.seq + sum(end for _, end in self.topics.values())

    @property
    def records(self) -> int:
        """How many records of topics the batch reads, at most: not every offset has one."""
        return sum(end - begin for begin, end in self.topics.values())


def read_offset(checkpoint: StateFolder, batch: int) -> Offset:
    """The offset that Spark wrote down for a batch of the query with this checkpoint."""
    folder, name = checkpoint / "offsets", str(batch)
    try:
        text = folder.read(name)
        if text is None:
            raise folder.damaged("there is no such file", name)
        # The first line is the format's version, the second Spark's own metadata, then comes a line for each source.
        return Offset.from_json(json.loads(text.splitlines()[2]))
    except IndexError:
        raise folder.damaged("it is cut off", name) from None
    except OSError as error:
        raise folder.damaged(error.strerror or error, name) from None
    except ValueError as error:
        raise folder.damaged(error, name) from None


def last_batch(checkpoint: StateFolder, log: str) -> int | None:
    """The highest batch in ``offsets`` (begun) or ``commits`` (done); None if there is none."""
    return max((int(each) for each in (checkpoint / log).names() if each.isdigit()), default=None)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Ends of batches in the root log: detection takes whole batches.
#
# The tasks of a batch write the log side by side, each at its own pace, so within a batch what came first need not be
# first. If detection took a part of one, the clients of the faster task would move the watermark past what the slower
# one has still to write; of a large batch that is far more than any lateness that is granted.

_ENDS = "ends.json"
_ENDS_KEPT = 1000


class BatchEnds:
    """The last ends, in a file beside the checkpoint of the query of events."""

    def __init__(self, checkpoint: StateFolder) -> None:
        self._folder = checkpoint

    def load(self) -> tuple[int, ...] | None:
        """In order; None if nobody ever said where a batch ended."""
        try:
            text = self._folder.read(_ENDS)
            return None if text is None else tuple(int(each) for each in json.loads(text)["ends"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # it serves the order of work, and is made again

    def add(self, last: int) -> None:
        """A batch is done, and this message of the root log is the last there is."""
        before = [each for each in self.load() or () if each < last]  # what is beyond was in another log
        content = {"version": 1, "ends": [*before, last][-_ENDS_KEPT:]}
        self._folder.write(_ENDS, json.dumps(content).encode())


def whole(ends: Sequence[int] | None, behind: int, most: int, last: int) -> int:
    """Where a batch of detection ends that begins ``behind`` a message: behind as many whole batches of events as fit.

    It is to have ``most`` messages, but one batch of events at least, if there is one; the log ends at ``last``.
    """
    if ends is None:
        return min(last, behind + most)
    known = [each for each in ends if behind < each <= last]
    fitting = bisect_right(known, behind + most)
    return known[max(fitting - 1, 0)] if known else behind


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What passes from batch to batch: how far each client's events have come. Written at the end of a batch under the
# position where it ended, read by the batch that begins there. So a repeated batch starts from what its first run
# started from, and drops the same repeats. Before an interrupted batch is repeated, what it got stored is added to what
# it starts from.

_CARRIES_KEPT = 20
Highest = Mapping[str, tuple[int, int]]
"""Client → its incarnation and the highest sequence of it that was taken."""


@dataclass(frozen=True, slots=True)
class ClientOffsets:
    """How far each lane of a client is. In a lane a higher incarnation follows a lower one, so the last is enough."""

    highest: Highest = field(default_factory=dict)
    stored: frozenset[str] = frozenset()
    """Ids of messages that the batch which begins here has stored before it was interrupted."""

    def advanced(self, seen: Iterable[Highest]) -> ClientOffsets:
        """The carry after a batch whose tasks have seen these."""
        highest = dict(self.highest)
        for each in seen:
            for lane, reached in each.items():
                highest[lane] = max(highest.get(lane, reached), reached)
        return ClientOffsets(highest)

    def share(self, shards: Iterable[int]) -> Highest:
        """The part that concerns the clients of these shards, and all partitions of topics: any task may have those."""
        wanted = set(shards)
        return {
            lane: reached
            for lane, reached in self.highest.items()
            if (client := client_of(lane)) != lane or shard_of(client) in wanted
        }


class ClientOffsetStore:
    """The carries of one query, beside its checkpoint."""

    def __init__(self, checkpoint: StateFolder) -> None:
        self._folder = checkpoint / "carry"

    def load(self, mark: int) -> ClientOffsets:
        """The carry of a batch that starts at this mark. A query that is new to the log has none."""
        name = _carry(mark)
        try:
            text = self._folder.load(name)
            if text is None:
                if mark == 0:
                    return ClientOffsets()
                raise self._folder.damaged("there is no such file", name)
            content = json.loads(text)
            highest = {client: (int(each[0]), int(each[1])) for client, each in content["highest"].items()}
            return ClientOffsets(highest, frozenset(map(str, content.get("stored", ()))))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise self._folder.damaged(error, name) from None

    def save(self, mark: int, carry: ClientOffsets) -> None:
        content = {"version": 1, "highest": carry.highest, "stored": sorted(carry.stored)}
        self._folder.save(_carry(mark), json.dumps(content, separators=(",", ":")).encode())
        self._prune()

    def _prune(self) -> None:
        """Spark repeats at most the last batch; the few before serve whoever looks into what happened."""
        for mark in numbered(self._folder)[:-_CARRIES_KEPT]:
            self._folder.remove(_carry(mark))


def _carry(mark: int) -> str:
    return f"{mark}.json"


def numbered(folder: StateFolder) -> list[int]:
    """The numbers that files of a folder are named by, in order."""
    stems = (name.removesuffix(".json") for name in folder.names() if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdigit())


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Recovery: is what the last run wrote down whole, and what did its last batch get done?
#
# Spark repeats a batch that was begun and not committed. The bus refuses what is stored already, but only as long as it
# remembers ids, and the process may have been down for longer. So the messages that the interrupted batch has put into
# the logs are looked up once, before it is repeated.

_MARGIN = 1_000_000  # µs: clocks of bus and engine may differ


def check_checkpoint(checkpoint: StateFolder) -> None:
    """N101 if what Spark and Situ wrote down of the events cannot be gone on from."""
    begun_from = check_offsets(checkpoint)
    if begun_from is not None:
        ClientOffsetStore(checkpoint).load(begun_from.mark)


def check_offsets(checkpoint: StateFolder) -> Offset | None:
    """N101 if what Spark wrote down cannot be gone on from; else where the next batch begins, None if at the start."""
    begun, done = last_batch(checkpoint, "offsets"), last_batch(checkpoint, "commits")
    if begun is None and done is None:
        return None
    try:
        json.loads(checkpoint.read("metadata") or b"")["id"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise checkpoint.damaged(error, "metadata") from None
    if begun is None or (done is not None and done > begun):
        raise checkpoint.damaged(f"batch {done} was committed, but its offset is missing", "offsets")
    read_offset(checkpoint, begun)
    if begun:
        return read_offset(checkpoint, begun - 1)
    return read_offset(checkpoint, done) if done is not None else None


def recall(bus: BlockingBus, names: BusNames, checkpoint: StateFolder) -> None:
    """If the last batch was begun and not committed: add what it got stored to what it starts from."""
    begun, done = last_batch(checkpoint, "offsets"), last_batch(checkpoint, "commits")
    if begun is None or begun == done:
        return
    offset, start = read_offset(checkpoint, begun), read_offset(checkpoint, begun - 1).mark if begun else 0
    carries = ClientOffsetStore(checkpoint)
    carries.save(start, replace(carries.load(start), stored=_stored_since(bus, names, offset.clock - _MARGIN)))


def _stored_since(bus: BlockingBus, names: BusNames, clock: int) -> frozenset[str]:
    """Ids of the messages in root log and dead letters that are younger than this."""
    since = datetime.fromtimestamp(clock / 1_000_000, UTC)
    return frozenset(
        message.id
        for stream in (names.root_stream, names.dead_stream)
        for message in bus.read(stream, bus.find(stream, since))
        if message.id
    )


def adopt_log(bus: BlockingBus, names: BusNames, checkpoint: StateFolder) -> None:
    """A query without checkpoint on a log that was read before: learn from the root log what was taken already."""
    if last_batch(checkpoint, "offsets") is not None:
        return
    waiting = bus.state(names.in_stream)
    oldest = next(iter(bus.read(names.in_stream, waiting.first, waiting.first)), None) if waiting.messages else None
    if oldest is None:
        return
    since = datetime.fromtimestamp((oldest.at - _MARGIN) / 1_000_000, UTC)
    highest: dict[str, tuple[int, int]] = {}
    for message in bus.read(names.root_stream, bus.find(names.root_stream, since)):
        for place, line in enumerate(stored_lines(message)):
            row = decode_line(line, pos=position(message.seq, place))
            lane = lane_of(row.client, row.incarnation)
            highest[lane] = max(highest.get(lane, (0, 0)), (row.incarnation, row.seq))
    carries = ClientOffsetStore(checkpoint)
    carries.save(0, carries.load(0).advanced([highest]))
