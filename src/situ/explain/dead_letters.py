"""Dead letters and late events as the bus keeps them: found, read; dead letters can be published again.

`StoredDeadLetter` and the functions behind it are dead letters, `LateEvent` is what came after the policies it concerns
had decided. `publish_again` and `mark_retried` are the only functions of `situ.explain` that change something.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from situ.bus.interface import Bus
from situ.event.instants import print_instant
from situ.event.lines import decode_line
from situ.event.message import POLICIES, EventKey, Message, StoredMessage, join_lines, split_lines
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.lang.catalogue import NOT_PUBLISHED_AGAIN
from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.protocol.messages import Nack, PublishAck
from situ.protocol.wire import decode_from_router

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Dead letters. One that was published again stays where it is; a mark beside it says so, and ``--all`` passes it by.
# What is published again comes as from its client, under the same advertisement, with a new key that the router gives.

ROUTER = "r1"
_RETRIED = "retried."
_PATIENCE = 10.0


class StoredDeadLetter(Explanation, frozen=True, kw_only=True):
    """A dead letter: an event that could not go on, and why."""

    id: str
    time: str
    client: str
    code: str
    stage: str
    """The stage at which it could not go on."""
    path: str
    """The place in the event that is wrong; empty: the event."""
    message: str
    hint: str
    others: tuple[str, ...]
    """What else is wrong with it."""
    key: str
    advertisement: str | None
    context: str
    retried: bool
    """It was published again."""
    original: str | None
    """What was sent, if it is a text."""
    original_base64: str | None
    """What was sent, if it is none."""
    whole: bool
    """False: it was too large to be kept whole, and this is its beginning."""
    sent: Annotated[bytes, TEXT_ONLY]
    seq: Annotated[int, TEXT_ONLY]
    """With the place, where the bus has it."""
    place: Annotated[int, TEXT_ONLY]
    at: Annotated[int, TEXT_ONLY]
    """When the bus stored it, in microseconds."""

    @property
    def event(self) -> dict[str, Any] | None:
        """What was sent, if it is a JSON object."""
        try:
            found = msgspec.json.decode(self.sent)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


async def read_dead_letters(bus: Bus, *, client: str = "", first: int = 1) -> AsyncIterator[StoredDeadLetter]:
    """All dead letters from this sequence on, or those of one client, oldest first."""
    names = BusNames(bus.zone)
    marks = await _marks(bus)
    subjects = (names.dead(client),) if client else ()
    async with aclosing(bus.read(names.dead_stream, first, subjects=subjects)) as messages:
        async for message in messages:
            for letter in _letters_of(message):
                done = letter.place in marks.get(letter.seq, ())
                yield replace(letter, retried=True) if done else letter


async def latest_dead_letters(bus: Bus, number: int, *, client: str = "") -> list[StoredDeadLetter]:
    """The last so many, oldest first."""
    state = await bus.state(BusNames(bus.zone).dead_stream)
    # A message holds at least one letter, so this many messages are enough if they are all of this client.
    first = 1 if client else max(state.first, state.last - number + 1)
    return [letter async for letter in read_dead_letters(bus, client=client, first=first)][-number:]


async def find_dead_letter(bus: Bus, ids: Collection[str]) -> dict[str, StoredDeadLetter]:
    """The letters of these ids; an id is the letter's own or the key of its event. What is not there is left out."""
    found: dict[str, StoredDeadLetter] = {}
    clients = {_client_of(id) for id in ids}
    for client in sorted(clients):
        async for letter in read_dead_letters(bus, client=client):
            for id in (letter.id, letter.key):
                if id in ids:
                    found[id] = letter
    return found


async def publish_again(bus: Bus, letter: StoredDeadLetter) -> None:
    """Send what the letter is about once more; :class:`SituError` with why it is refused again."""
    event = letter.event
    if event is None or not letter.whole:
        reason = "what was sent is no JSON object" if letter.whole else "it was too large to be kept whole"
        raise SituError(NOT_PUBLISHED_AGAIN(id=letter.id, reason=reason))
    event = {name: value for name, value in event.items() if not name.startswith("situ")}
    if letter.advertisement:
        event["situad"] = letter.advertisement
    body = join_lines([msgspec.json.encode(event)])
    message = Message(subject=BusNames(bus.zone).ingress(ROUTER, letter.client), body=body)
    answer = await bus.request(message, timeout=_PATIENCE)
    said = decode_from_router(answer.headers, answer.body)
    if isinstance(said, Nack):
        raise SituError(NOT_PUBLISHED_AGAIN(id=letter.id, reason=f"{said.code} {said.message.rstrip('.')}"))
    if isinstance(said, PublishAck) and said.dead:
        dead = said.dead[0]
        reasons = [(dead.code, dead.message), *((each.code, each.message) for each in dead.others)]
        reason = "; ".join(f"{code} {message.rstrip('.')}" for code, message in reasons)
        raise SituError(NOT_PUBLISHED_AGAIN(id=letter.id, reason=reason))


async def mark_retried(bus: Bus, done: Iterable[StoredDeadLetter]) -> None:
    """Note that these were published again; marks of letters that are no longer kept go."""
    names = BusNames(bus.zone)
    marks = await _marks(bus)
    for letter in done:
        places = {*marks.get(letter.seq, ()), letter.place}
        marks[letter.seq] = frozenset(places)
        await bus.put(names.metrics, f"{_RETRIED}{letter.seq}", json.dumps(sorted(places)).encode())
    first = (await bus.state(names.dead_stream)).first
    for seq in marks:
        if seq < first:
            await bus.remove(names.metrics, f"{_RETRIED}{seq}")


async def _marks(bus: Bus) -> dict[int, frozenset[int]]:
    entries = await bus.entries(BusNames(bus.zone).metrics, _RETRIED)
    return {int(each.key.removeprefix(_RETRIED)): frozenset(json.loads(each.value)) for each in entries if each.value}


def _letters_of(message: StoredMessage) -> list[StoredDeadLetter]:
    return [_letter(line, message, place) for place, line in enumerate(split_lines(message.body))]


def _letter(line: bytes, message: StoredMessage, place: int) -> StoredDeadLetter:
    event = msgspec.json.decode(line)
    data = event["data"]
    original = data["original"]
    sent = base64.b64decode(original) if data.get("encoding") == "base64" else original.encode()
    text = _text(sent)
    return StoredDeadLetter(
        id=event["id"],
        time=event["time"],
        client=_client_of(data["key"]),
        code=data["code"],
        stage=data["stage"],
        path=data["path"],
        message=data["message"],
        hint=data["hint"],
        others=tuple(data.get("others", ())),
        key=data["key"],
        advertisement=data["ad"] or None,
        context=data["context"],
        retried=False,
        original=text,
        original_base64=None if text is not None else base64.b64encode(sent).decode(),
        whole="size" not in data,
        sent=sent,
        seq=message.seq,
        place=place,
        at=message.at,
    )


def _text(sent: bytes) -> str | None:
    try:
        return sent.decode()
    except UnicodeDecodeError:
        return None


def _client_of(id: str) -> str:
    """The client in a key or in the id of a letter; empty if it is neither."""
    key = ".".join(id.split(".")[:3])
    try:
        return EventKey.parse(key).client
    except ValueError:
        return ""


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Late events.


@dataclass(frozen=True, slots=True, kw_only=True)
class LateEvent:
    """A late event, the policies it came too late for, and when it came, in microseconds."""

    row: Row
    policies: tuple[str, ...]
    at: int

    def as_json(self) -> dict[str, Any]:
        row = self.row
        return {
            "id": row.id,
            "source": row.source,
            "type": row.type,
            "time": print_instant(row.time),
            "received": print_instant(row.recv),
            "policies": list(self.policies),
            "data": msgspec.json.decode(row.data),
        }


async def read_late_events(bus: Bus, *, type: str = "", policy: str = "") -> AsyncGenerator[LateEvent, None]:
    """All there are, the oldest first: of one type, for one policy, if these are given."""
    names = BusNames(bus.zone)
    subjects = (names.late(type),) if type else ()
    async with aclosing(bus.read(names.late_stream, 1, subjects=subjects)) as messages:
        async for message in messages:
            policies = tuple(filter(None, message.headers.get(POLICIES, "").split(",")))
            if policy and policy not in policies:
                continue
            for line in split_lines(message.body):
                yield LateEvent(row=decode_line(line), policies=policies, at=message.at)
