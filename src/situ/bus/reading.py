"""Reading streams from any place, by *direct batch get*: no consumer is made, nothing is remembered by the server.

A request names a sequence and a subject, the server answers with so many messages and an end marker. A reader asks for
the next batch from where the last one ended, so gaps (purged, aged, of other subjects) do not matter, and after a lost
connection it goes on where it was.
"""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from nats.aio.msg import Msg

from situ.bus.interface import StreamState
from situ.bus.link import Link
from situ.catalogue import BUS_FAILED, NO_ANSWER, NOT_ON_BUS
from situ.errors import SituError
from situ.event.message import Stored

_BATCH, _BYTES = 1000, 8 * 1024 * 1024
_SILENCE = 5.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_OF_SERVER = frozenset(
    ("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Num-Pending", "Nats-Last-Sequence")
)
NO_RESPONDERS, END, NOTHING = "503", "204", "404"


class Asked(NamedTuple):
    """Who is asked for a batch, and what the request says beside what is wanted."""

    subject: str
    headers: Mapping[str, str] | None = None
    says: Mapping[str, Any] = MappingProxyType({})


def stored(message: Msg) -> Stored:
    """The message of a direct get."""
    headers = message.headers or {}
    at = datetime.fromisoformat(headers["Nats-Time-Stamp"])
    return Stored(
        seq=int(headers["Nats-Sequence"]),
        subject=headers["Nats-Subject"],
        body=message.data,
        headers={name: value for name, value in headers.items() if name not in _OF_SERVER},
        at=(at - _EPOCH) // _MICROSECOND,
    )


async def state_of(link: Link, stream: str) -> StreamState:
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


async def find(link: Link, stream: str, at: datetime) -> int:
    """The first sequence stored at or after this time."""
    end = (await state_of(link, stream)).last + 1
    async with aclosing(_one_batch(link, stream, {"start_time": at.astimezone(UTC).isoformat(), "batch": 1})) as batch:
        async for message in batch:
            return min(stored(message).seq, end)
    return end


async def read(
    link: Link,
    stream: str,
    first: int,
    last: int | None,
    subjects: Sequence[str],
    batch: int = _BATCH,
    asked: Asked | None = None,
) -> AsyncGenerator[Stored, None]:
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


async def _merge(readers: Sequence[AsyncGenerator[Stored, None]]) -> AsyncGenerator[Stored, None]:
    heads: list[tuple[int, int, Stored]] = []
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
    link: Link, stream: str, first: int, last: int, subject: str | None, batch: int, asked: Asked | None
) -> AsyncGenerator[Stored, None]:
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
    link: Link, stream: str, request: Mapping[str, Any], asked: Asked | None = None
) -> AsyncGenerator[Msg, None]:
    """The answers to one request: up to the end marker, or some of them if the connection was lost in between."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + link.patience
    subject, headers, says = asked or Asked(f"$JS.API.DIRECT.GET.{stream}")
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
