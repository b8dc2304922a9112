"""Values by key, and objects by name, in buckets of JetStream.

A bucket is a stream that keeps the last message of a subject; the revision of a value is its sequence. Both are laid
out as the tools of NATS do it. Watching reads the stream, woken by what passes on the subjects, so that a watcher
misses no last value, whatever happens to connections.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from nats.aio.msg import Msg

from situ.bus.interface import Entry
from situ.bus.link import Link
from situ.bus.reading import failure, read, state_of, stored
from situ.catalogue import BUS_UNREACHABLE, NO_ANSWER, NO_LISTENER, NOT_ON_BUS, OTHER_REVISION
from situ.errors import SituError
from situ.event.message import Stored

_OPERATION = "KV-Operation"
_EXPECTED = "Nats-Expected-Last-Subject-Sequence"
_WRONG_SEQUENCE = 10071
_LOOK_AGAIN = 1.0
_ROUNDS = 20
_CHUNK = 128 * 1024


class Keys:
    """The buckets behind one link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def get(self, bucket: str, key: str) -> Entry | None:
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

    async def entries(self, bucket: str, prefix: str) -> tuple[Entry, ...]:
        stream, seen = f"KV_{bucket}", 0
        found: dict[str, Entry] = {}
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

    async def watch(self, bucket: str, key: str) -> AsyncGenerator[Entry, None]:
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

    async def _last(self, stream: str, subject: str) -> Stored | None:
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


def _found(answer: Msg) -> Stored | None:
    return None if (answer.headers or {}).get("Status") is not None else stored(answer)


def _entry(bucket: str, message: Stored) -> Entry:
    gone = _OPERATION in message.headers
    key = message.subject.removeprefix(f"$KV.{bucket}.")
    return Entry(key=key, value=None if gone else message.body, revision=message.seq)


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
