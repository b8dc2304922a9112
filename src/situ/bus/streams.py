"""The streams and buckets of JetStream: reading a stream from any place, creating those of a zone, values and objects.

`read` and `find` read by direct get, without a consumer. `configurations` and `make` are the streams of a zone as the
settings want them. `KeyValueBuckets` holds values by key and objects by name.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import heapq
import json
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from nats.aio.msg import Msg

from situ.bus.connection import NatsConnection
from situ.bus.interface import KeyEntry, StreamState
from situ.event.message import StoredMessage
from situ.event.subjects import BusNames
from situ.lang.catalogue import BUS_FAILED, BUS_UNREACHABLE, NO_ANSWER, NO_LISTENER, NOT_ON_BUS, OTHER_REVISION
from situ.lang.problems import SituError
from situ.settings import Settings

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Reading by *direct batch get*: no consumer is made, nothing is remembered by the server. A request names a sequence
# and a subject, the server answers with so many messages and an end marker. A reader asks for the next batch from where
# the last one ended, so gaps (purged, aged, of other subjects) do not matter, and after a lost connection it goes on
# where it was.

_BATCH, _BYTES = 1000, 8 * 1024 * 1024
_SILENCE = 5.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_OF_SERVER = frozenset(
    ("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Num-Pending", "Nats-Last-Sequence")
)
NO_RESPONDERS, END, NOTHING = "503", "204", "404"


class BatchRequest(NamedTuple):
    """Who is asked for a batch, and what the request says beside what is wanted."""

    subject: str
    headers: Mapping[str, str] | None = None
    says: Mapping[str, Any] = MappingProxyType({})


def stored(message: Msg) -> StoredMessage:
    """The message of a direct get."""
    headers = message.headers or {}
    at = datetime.fromisoformat(headers["Nats-Time-Stamp"])
    return StoredMessage(
        seq=int(headers["Nats-Sequence"]),
        subject=headers["Nats-Subject"],
        body=message.data,
        headers={name: value for name, value in headers.items() if name not in _OF_SERVER},
        at=(at - _EPOCH) // _MICROSECOND,
    )


async def state_of(link: NatsConnection, stream: str) -> StreamState:
    answer = await link.ask_server(f"STREAM.INFO.{stream}")
    if "error" in answer:
        raise failure(answer["error"], "stream", stream)
    state = answer["state"]
    return StreamState(
        first=state["first_seq"] if state["messages"] else state["last_seq"] + 1,
        last=state["last_seq"],
        messages=state["messages"],
        size=state["bytes"],
    )


def failure(error: Mapping[str, Any], kind: str, name: str) -> SituError:
    """What JetStream says went wrong."""
    if error.get("code") == 404:
        return SituError(NOT_ON_BUS(kind=kind, name=name))
    return SituError(BUS_FAILED(what=f"use {kind} `{name}`", reason=str(error.get("description", error))))


async def find(link: NatsConnection, stream: str, at: datetime) -> int:
    """The first sequence stored at or after this time."""
    end = (await state_of(link, stream)).last + 1
    async with aclosing(_one_batch(link, stream, {"start_time": at.astimezone(UTC).isoformat(), "batch": 1})) as batch:
        async for message in batch:
            return min(stored(message).seq, end)
    return end


async def read(
    link: NatsConnection,
    stream: str,
    first: int,
    last: int | None,
    subjects: Sequence[str],
    batch: int = _BATCH,
    asked: BatchRequest | None = None,
) -> AsyncGenerator[StoredMessage, None]:
    """What the stream holds of these sequences and subjects, in order; asked for at the server itself unless said."""
    if last is None:
        last = (await state_of(link, stream)).last
    first = max(first, 1)
    if first > last:
        return
    each = [
        _read_one(link, stream, first, last, subject, batch, asked) for subject in dict.fromkeys(subjects) or (None,)
    ]
    async with aclosing(each[0] if len(each) == 1 else _merge(each)) as messages:
        async for message in messages:
            yield message


async def _merge(readers: Sequence[AsyncGenerator[StoredMessage, None]]) -> AsyncGenerator[StoredMessage, None]:
    heads: list[tuple[int, int, StoredMessage]] = []
    try:
        for number, reader in enumerate(readers):
            async for message in reader:
                heads.append((message.seq, number, message))
                break
        heapq.heapify(heads)
        seen = 0
        while heads:
            seq, number, message = heads[0]
            if seq > seen:  # subjects with wildcards may overlap
                seen = seq
                yield message
            async for message in readers[number]:
                heapq.heapreplace(heads, (message.seq, number, message))
                break
            else:
                heapq.heappop(heads)
    finally:
        for reader in readers:
            await reader.aclose()


async def _read_one(
    link: NatsConnection,
    stream: str,
    first: int,
    last: int,
    subject: str | None,
    batch: int,
    asked: BatchRequest | None,
) -> AsyncGenerator[StoredMessage, None]:
    while first <= last:
        request: dict[str, Any] = {"seq": first, "batch": min(batch, last - first + 1), "max_bytes": _BYTES}
        if subject is not None:
            request["next_by_subj"] = subject
        came = False
        async with aclosing(_one_batch(link, stream, request, asked)) as messages:
            async for message in messages:
                found = stored(message)
                if found.seq > last:
                    return
                if found.seq >= first:
                    first, came = found.seq + 1, True
                    yield found
        if not came:
            return


async def _one_batch(
    link: NatsConnection, stream: str, request: Mapping[str, Any], asked: BatchRequest | None = None
) -> AsyncGenerator[Msg, None]:
    """The answers to one request: up to the end marker, or some of them if the connection was lost in between."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + link.patience
    subject, headers, says = asked or BatchRequest(f"$JS.API.DIRECT.GET.{stream}")
    payload = json.dumps({**says, **request}).encode()
    while True:
        answers: asyncio.Queue[Msg | None] = asyncio.Queue()
        inbox = link.inbox()
        came = False
        listening = await link.listen(inbox, answers.put_nowait)
        try:
            down = link.down
            await link.publish(subject, payload, headers, reply=inbox)
            while (message := await _next(answers, down)) is not None:
                status = (message.headers or {}).get("Status")
                if status in (END, NOTHING):
                    return
                if status == NO_RESPONDERS:
                    if asked is None:
                        await state_of(link, stream)  # says what is missing
                    break
                if status is not None:
                    reason = f"{status} {(message.headers or {}).get('Description', '')}".strip()
                    raise SituError(BUS_FAILED(what=f"read `{stream}`", reason=reason))
                came = True
                yield message
        finally:
            await listening.close()
        if came:
            return
        if loop.time() > deadline:
            if link.connected:
                raise SituError(NO_ANSWER(subject=subject, seconds=float(link.patience)))
            raise link.unreachable()
        await asyncio.sleep(0.05)


async def _next(answers: asyncio.Queue[Msg | None], down: asyncio.Event) -> Msg | None:
    """The next answer; None if none comes, or none can come any more."""
    if not answers.empty():
        return answers.get_nowait()
    get, lost = asyncio.ensure_future(answers.get()), asyncio.ensure_future(down.wait())
    try:
        await asyncio.wait((get, lost), timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED)
        return get.result() if get.done() else None
    finally:
        get.cancel()
        lost.cancel()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The streams and buckets of a zone as configurations of JetStream. Making them is repeatable: what is there is changed
# to what the settings say, and keeps its content.

_NOT_FOUND, _NAME_IN_USE = 10059, 10058
_HISTORY = 1
_TOLD = timedelta(hours=1)  # how long feedback about quality is kept
_CHANGEABLE = (
    "subjects",
    "retention",
    "max_bytes",
    "max_age",
    "max_msgs_per_subject",
    "discard",
    "duplicate_window",
    "allow_direct",
    "allow_rollup_hdrs",
)


def nanoseconds(time: timedelta) -> int:
    return time // timedelta(microseconds=1) * 1000


def configurations(names: BusNames, settings: Settings) -> tuple[dict[str, Any], ...]:
    """Everything the zone needs."""
    log, groups = settings.log, settings.overlay.groups
    window = settings.overlay.duplicate_window

    def stream(name: str, age: timedelta | None, size: int, **more: Any) -> dict[str, Any]:
        return {
            "name": name,
            "subjects": [names.subjects_of(name)],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "max_age": nanoseconds(age) if age is not None else 0,
            "max_bytes": size,
            "max_msgs_per_subject": -1,
            # The server refuses a window that is longer than messages are kept.
            "duplicate_window": nanoseconds(min(window, age) if age is not None else window),
            "allow_direct": True,
            "allow_rollup_hdrs": False,
            **more,
        }

    return (
        stream(names.in_stream, None, log.size, discard="new"),
        stream(names.root_stream, log.age, log.size),
        stream(names.out_stream, groups.age, groups.size, retention="interest"),
        stream(names.dead_stream, log.dead.age, log.dead.size),
        stream(names.late_stream, log.dead.age, log.dead.size),
        stream(names.feed_stream, _TOLD, log.dead.size),
        *(_bucket(f"KV_{bucket}", [f"$KV.{bucket}.>"], _HISTORY) for bucket in names.buckets),
        *(_bucket(f"OBJ_{store}", [f"$O.{store}.C.>", f"$O.{store}.M.>"], -1) for store in names.object_stores),
    )


def _bucket(name: str, subjects: list[str], history: int) -> dict[str, Any]:
    """As the tools of NATS make them, so that they can be looked into with those."""
    return {
        "name": name,
        "subjects": subjects,
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_age": 0,
        "max_bytes": -1,
        "max_msgs_per_subject": history,
        "duplicate_window": nanoseconds(timedelta(minutes=2)),
        "allow_direct": True,
        "allow_rollup_hdrs": True,
    }


async def make(link: NatsConnection, configuration: dict[str, Any]) -> None:
    """The stream is there, and as configured."""
    name = configuration["name"]
    answer = await link.ask_server(f"STREAM.INFO.{name}")
    if answer.get("error", {}).get("err_code") == _NOT_FOUND:
        answer = await link.ask_server(f"STREAM.CREATE.{name}", configuration)
        if answer.get("error", {}).get("err_code") == _NAME_IN_USE:  # another one made it meanwhile
            answer = await link.ask_server(f"STREAM.INFO.{name}")
    if "error" in answer:
        raise failure(answer["error"], "stream", name)
    there = answer["config"]
    if all(there.get(key, _absent(key)) == configuration[key] for key in _CHANGEABLE):
        return
    answer = await link.ask_server(f"STREAM.UPDATE.{name}", {**there, **configuration})
    if "error" in answer:
        reason = str(answer["error"].get("description", answer["error"]))
        raise SituError(BUS_FAILED(what=f"change the stream `{name}` to what the settings say", reason=reason))


def _absent(key: str) -> Any:
    return {"max_age": 0, "max_bytes": -1, "max_msgs_per_subject": -1}.get(key, False)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Buckets. A bucket is a stream that keeps the last message of a subject; the revision of a value is its sequence.
# Values and objects are laid out as the tools of NATS do it. Watching reads the stream, woken by what passes on the
# subjects, so that a watcher misses no last value, whatever happens to connections.

_OPERATION = "KV-Operation"
_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_WRONG_SEQUENCE = 10071
_LOOK_AGAIN = 1.0
_ROUNDS = 20
_CHUNK = 128 * 1024


class KeyValueBuckets:
    """The buckets behind one link."""

    def __init__(self, link: NatsConnection) -> None:
        self._link = link

    async def get(self, bucket: str, key: str) -> KeyEntry | None:
        message = await self._last(f"KV_{bucket}", f"$KV.{bucket}.{key}")
        if message is None:
            return None
        entry = _entry(bucket, message)
        return entry if entry.value is not None else None

    async def put(self, bucket: str, key: str, value: bytes, expected: int | None) -> int:
        headers = {}
        if expected == 0:
            # A removed key is a message, too: "there is none" means that one, if there is one.
            last = await self._last(f"KV_{bucket}", f"$KV.{bucket}.{key}")
            gone = last is not None and _entry(bucket, last).value is None
            headers[_EXPECTED] = str(last.seq) if last is not None and gone else "0"
        elif expected is not None:
            headers[_EXPECTED] = str(expected)
        return await self._store(bucket, key, value, headers, expected)

    async def remove(self, bucket: str, key: str) -> None:
        await self._store(bucket, key, b"", {_OPERATION: "DEL"}, None)

    async def entries(self, bucket: str, prefix: str) -> tuple[KeyEntry, ...]:
        stream, seen = f"KV_{bucket}", 0
        found: dict[str, KeyEntry] = {}
        # A value that is replaced while we read moves to the end: we read on until the end stays where it is.
        for _ in range(_ROUNDS):
            last = (await state_of(self._link, stream)).last
            if last <= seen:
                break
            async with aclosing(read(self._link, stream, seen + 1, last, ())) as messages:
                async for message in messages:
                    entry = _entry(bucket, message)
                    if entry.key.startswith(prefix):
                        found[entry.key] = entry
            seen = last
        return tuple(found[key] for key in sorted(found) if found[key].value is not None)

    async def watch(self, bucket: str, key: str) -> AsyncGenerator[KeyEntry, None]:
        stream, subject = f"KV_{bucket}", f"$KV.{bucket}.{key}"
        changed = asyncio.Event()
        listening = await self._link.listen(subject, lambda _: changed.set())
        self._link.on_up.append(changed.set)
        try:
            seen, first = 0, True
            while True:
                changed.clear()
                try:
                    async with aclosing(read(self._link, stream, seen + 1, None, (subject,))) as messages:
                        async for message in messages:
                            seen = message.seq
                            entry = _entry(bucket, message)
                            if entry.value is not None or not first:
                                yield entry
                    first = False
                except SituError as error:
                    if error.code not in (BUS_UNREACHABLE.code, NO_ANSWER.code):
                        raise  # but a watcher waits for its bus however long it is away
                # Listeners hear of a value an instant before it is stored, and of values that are refused.
                await _wait(changed, _LOOK_AGAIN)
                if changed.is_set():
                    await asyncio.sleep(0.002)
        finally:
            self._link.on_up.remove(changed.set)
            await listening.close()

    async def put_object(self, bucket: str, name: str, content: bytes) -> None:
        stream, meta = f"OBJ_{bucket}", _meta_subject(bucket, name)
        before = await self._last(stream, meta)
        nuid = secrets.token_hex(11).upper()
        chunks = [content[at : at + _CHUNK] for at in range(0, len(content), _CHUNK)]
        for chunk in chunks:
            await self._publish(stream, f"$O.{bucket}.C.{nuid}", chunk, {})
        description = {
            "name": name,
            "options": {"max_chunk_size": _CHUNK},
            "bucket": bucket,
            "nuid": nuid,
            "size": len(content),
            "chunks": len(chunks),
            "digest": _digest(content),
        }
        # Last, and the old parts go after it: until then readers find the old description with its parts.
        await self._publish(stream, meta, json.dumps(description).encode(), {"Nats-Rollup": "sub"})
        if before is not None:
            old = json.loads(before.body).get("nuid", "")
            await self._link.ask_server(f"STREAM.PURGE.{stream}", {"filter": f"$O.{bucket}.C.{old}"})

    async def get_object(self, bucket: str, name: str) -> bytes | None:
        stream = f"OBJ_{bucket}"
        for _ in range(5):
            meta = await self._last(stream, _meta_subject(bucket, name))
            if meta is None:
                return None
            description = json.loads(meta.body)
            if description.get("deleted"):
                return None
            async with aclosing(
                read(self._link, stream, 1, meta.seq, (f"$O.{bucket}.C.{description['nuid']}",))
            ) as parts:
                content = b"".join([part.body async for part in parts])
            if _digest(content) == description["digest"]:
                return content
            # Replaced while it was read: its parts are gone, the new ones are there.
        raise SituError(NOT_ON_BUS(kind="whole object", name=name))

    async def remove_object(self, bucket: str, name: str) -> None:
        stream, meta = f"OBJ_{bucket}", _meta_subject(bucket, name)
        found = await self._last(stream, meta)
        if found is None:
            return
        nuid = json.loads(found.body).get("nuid", "")
        for subject in (meta, f"$O.{bucket}.C.{nuid}"):
            await self._link.ask_server(f"STREAM.PURGE.{stream}", {"filter": subject})

    async def _store(self, bucket: str, key: str, value: bytes, headers: dict[str, str], expected: int | None) -> int:
        answer = await self._publish(f"KV_{bucket}", f"$KV.{bucket}.{key}", value, headers)
        if isinstance(answer, int):
            return answer
        raise SituError(OTHER_REVISION(key=key, bucket=bucket, expected=expected or 0))

    async def _publish(self, stream: str, subject: str, body: bytes, headers: dict[str, str]) -> int | None:
        """The sequence; None if another one was expected."""
        # The id makes a repetition after a lost connection harmless: it is answered like the first.
        headers = {**headers, "Nats-Msg-Id": secrets.token_hex(12)}
        deadline = asyncio.get_running_loop().time() + self._link.patience
        while True:
            try:
                answer = json.loads((await self._link.ask(subject, body, headers)).data)
                break
            except SituError as error:
                if error.code == NO_LISTENER.code:
                    await state_of(self._link, stream)  # says what is missing
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(0.05)
        if "error" in answer:
            if answer["error"].get("err_code") == _WRONG_SEQUENCE:
                return None
            raise failure(answer["error"], "bucket", stream.partition("_")[2])
        return int(answer["seq"])

    async def _last(self, stream: str, subject: str) -> StoredMessage | None:
        deadline = asyncio.get_running_loop().time() + self._link.patience
        while True:
            try:
                answer = await self._link.ask(f"$JS.API.DIRECT.GET.{stream}.{subject}")
                return _found(answer)
            except SituError as error:
                if error.code == NO_LISTENER.code:
                    await state_of(self._link, stream)
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(0.05)


def _found(answer: Msg) -> StoredMessage | None:
    return None if (answer.headers or {}).get("Status") is not None else stored(answer)


def _entry(bucket: str, message: StoredMessage) -> KeyEntry:
    gone = _OPERATION in message.headers
    key = message.subject.removeprefix(f"$KV.{bucket}.")
    return KeyEntry(key=key, value=None if gone else message.body, revision=message.seq)


def _meta_subject(bucket: str, name: str) -> str:
    return f"$O.{bucket}.M.{_encode(name.encode())}"


def _digest(content: bytes) -> str:
    return f"SHA-256={_encode(hashlib.sha256(content).digest())}"


def _encode(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode()


async def _wait(event: asyncio.Event, timeout: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            await event.wait()
