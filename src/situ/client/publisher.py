"""What a client publishes: its advertisements, and events under them.

`name_of_type` and `listener_target` find names that nobody gave: of the advertisement of a type, and what a listener
names (types, an expression, a policy). `Publications` has the advertisements and numbers the events.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from situ.client.declarations import AdvertisementHandle, Installation, Scopes, problem_remarks, tags_of
from situ.client.publish_queue import PublishQueue, Receipt
from situ.client.session import Session
from situ.client.state_files import ClientFiles
from situ.event.envelope import own_source
from situ.event.row import print_percent
from situ.lang.catalogue import NO_SUCH_DECLARATION, NOT_AVAILABLE
from situ.lang.problems import SituError
from situ.protocol.messages import (
    AdAck,
    Advertise,
    Describe,
    DescribeAck,
    Description,
    OfferedAdvertisement,
    Tags,
    Unadvertise,
)
from situ.routing.model import not_of_type

_OTHER = re.compile(r"[^A-Za-z0-9]+")
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")
_POLICY = re.compile(r"policy\s+([A-Za-z0-9-]{1,64})")
_TEXT = re.compile(r"'(?:[^']|'')*'")
_TYPE_IS = re.compile(r"\btype\s+IS\s+(?!NOT\b)([A-Za-z][A-Za-z0-9_.]*)", re.IGNORECASE)


def name_of_type(type: str) -> str:
    """An advertisement's name for a type: names become subjects, which have no dots and underscores."""
    return _OTHER.sub("-", type).strip("-")[:64]


def listener_target(what: str) -> tuple[tuple[str, ...], str | None]:
    """The types and the filter of a listener: for a type, an expression that names types, or ``policy NAME``.

    What a policy finds are situations.
    """
    from situ.lang.types.table import SITUATION  # with all types, which a client knows by name only

    if (policy := _POLICY.fullmatch(what.strip())) is not None:
        return (SITUATION.name,), f"policy = '{policy[1]}'"
    types = types_in(what)
    return types, None if types == (what.strip(),) else what


def types_in(what: str) -> tuple[str, ...]:
    """A type's name stands for itself; an expression names its types as ``type IS T``."""
    if _TYPE.fullmatch(what.strip()):
        return (what.strip(),)
    found = tuple(sorted(set(_TYPE_IS.findall(_TEXT.sub("''", what)))))
    if not found:
        remedy = "Name the type of the events: `type IS Sighting AND at.x < 5 m`."
        raise SituError(NOT_AVAILABLE(what=f"A listener for `{what[:100]}`, which names no type,", remedy=remedy))
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Advertisements and events.

_log = logging.getLogger("situ.client")
_encode = msgspec.json.Encoder().encode
_MOST_STARTS = 1000


class Publications:
    """Advertisements and events of one client."""

    def __init__(self, session: Session, sender: PublishQueue, files: ClientFiles) -> None:
        self.client = session.client
        self.duplicates = 0
        """Events whose id was published before."""
        self.ads: dict[str, AdvertisementHandle] = {}
        self.suspended: dict[str, tuple[str, SituError]] = {}
        """Advertisements that this client has no right to any more, by name: their types, and why."""
        self._lost: dict[str, SituError] = {}
        """Those that were lost before this client knew that it had them."""
        self._session = session
        self._sender = sender
        self._ids = files.ids
        self._ad_of: dict[str, AdvertisementHandle] = {}
        """Type → the advertisement its events go under when none is named."""
        self._starts: dict[tuple[str, str | None, AdvertisementHandle], bytes] = {}
        self._types: dict[str, Description] = {}
        self._turn = asyncio.Lock()

    # ── advertisements ──

    async def advertise(
        self, type: str, name: str | None, where: str = "", scopes: Scopes | None = None
    ) -> AdvertisementHandle:
        name = name or name_of_type(type)
        known, tags = self.ads.get(name), tags_of(scopes)
        if known is not None and known.type == type and _says(known, where, tags):
            return known
        message = Advertise(req=self._session.request(), ad=name, type=type, filter=where, scopes=tags)
        self._lost.pop(name, None)
        answer = await self._session.ask(message)
        assert isinstance(answer, AdAck)
        if name in self._lost:
            raise self._lost.pop(name)
        made = AdvertisementHandle(self.client, name, type, Installation(), where, tags)
        made.installing.told(answer.state, answer.version, answer.missing)
        made.said = problem_remarks(answer.said)
        self.ads[name] = made
        self.suspended.pop(name, None)
        self._ad_of.clear()
        return made

    async def unadvertise(self, ad: AdvertisementHandle | str) -> None:
        name = ad if isinstance(ad, str) else ad.name
        await self._sender.flush()
        await self._session.ask(Unadvertise(req=self._session.request(), ad=name))
        self.ads.pop(name, None)
        self._ad_of.clear()

    def listed(self) -> dict[str, str | OfferedAdvertisement]:
        """What this client advertises itself."""
        return {
            each.name: OfferedAdvertisement(type=each.type, filter=each.where, scopes=each.scopes)
            if each.where or each.scopes
            else each.type
            for each in self.ads.values()
            if each.mine
        }

    def known(self, ads: Mapping[str, str | OfferedAdvertisement]) -> None:
        """What is advertised for this client, by itself or in the project."""
        for name, each in ads.items():
            if name not in self.ads:
                offered = OfferedAdvertisement(type=each) if isinstance(each, str) else each
                self.ads[name] = AdvertisementHandle(
                    self.client,
                    name,
                    offered.type,
                    Installation(installed=True),
                    offered.filter,
                    offered.scopes,
                    mine=False,
                )
        self._ad_of.clear()

    def suspend(self, name: str, error: SituError) -> None:
        """The client has no right to an advertisement any more: nothing is published under it, or in its place."""
        ad = self.ads.pop(name, None)
        if ad is None:
            self._lost[name] = error
        else:
            self.suspended[name] = ad.type, error
            self._ad_of.clear()
            self._starts.clear()

    def told(self, message: AdAck) -> None:
        if message.ad in self.ads:
            self.ads[message.ad].installing.told(message.state, message.version, message.missing)

    def stored(self, ids: list[str]) -> None:
        """Events that the application gave these ids are stored."""
        for id in ids:
            self._ids.add(id)
        self._ids.flush()

    # ── events ──

    async def publish(
        self,
        type: str,
        data: Mapping[str, Any],
        *,
        ad: AdvertisementHandle | str | None,
        id: str | None,
        time: datetime | str | None,
        source: str | None,
        confidence: float | None,
    ) -> Receipt:
        under = self._ad_of.get(type) if ad is None else None
        if under is None:
            under = await self._advertisement(type, ad)
        if not under.held:
            await self._hold(under)
        more = b"" if time is None else b',"time":%s' % _encode(time)
        if confidence is not None:
            more += b',"confidence":%s' % _encode(print_percent(float(confidence)))
        content = _encode(data)
        if id is not None:
            if id in self._ids:
                self.duplicates += 1
                return Receipt(0, id, None)
            self._ids.expect(id)
        try:
            sender = self._sender
            if sender.busy:
                await sender.room()
            start = self._starts.get((type, source, under)) or self._start(type, source, under)
            # From here to the end nothing waits: the number in the id is the one the event gets.
            made = b'"%d-%d"' % (sender.incarnation, sender.seq + 1) if id is None else _encode(id)
            return sender.put(b'%s,"id":%s%s,"data":%s}' % (start, made, more, content), id)
        except BaseException:
            if id is not None:
                self._ids.discard(id)
            raise

    def _start(self, type: str, source: str | None, under: AdvertisementHandle) -> bytes:
        """What the text of many events begins with."""
        if len(self._starts) >= _MOST_STARTS:
            self._starts.clear()
        own = self.client if source is None else own_source(source, self.client)
        event = {"specversion": "1.0", "source": own, "type": type, "situad": under.id}
        start = self._starts[type, source, under] = _encode(event)[:-1]
        return start

    async def advertised(self, type: str) -> None:
        """The type is advertised, by an advertisement of its own if there is none."""
        if not any(each.type == type for each in self.ads.values()):
            await self._advertisement(type, None)

    async def _advertisement(self, type: str, ad: AdvertisementHandle | str | None) -> AdvertisementHandle:
        if ad is not None:
            return await self._named(type, ad)
        async with self._turn:
            if type in self._ad_of:
                return self._ad_of[type]
            fitting = [each for each in self.ads.values() if each.type == type]
            if not fitting and self.ads:
                above = (await self._described(type)).above
                fitting = [each for each in self.ads.values() if each.type in above]
            if not fitting and self.suspended:
                # One without scopes in the place of one that lost them would be seen by others than before.
                await self._raise_suspended(type)
            if len(fitting) > 1:
                names = ", ".join(f"`{each.name}`" for each in fitting)
                reason = f"has several advertisements for `{type}`: {names}"
                remedy = f'Say which one: `publish_event(…, ad="{fitting[0].name}")`.'
                raise SituError(NO_SUCH_DECLARATION(client=self.client, reason=reason, remedy=remedy))
            found = fitting[0] if fitting else await self.advertise(type, None)
            self._ad_of[type] = found
            return found

    async def _named(self, type: str, ad: AdvertisementHandle | str) -> AdvertisementHandle:
        name = ad if isinstance(ad, str) else ad.name
        name = name.removeprefix(f"{self.client}/")
        found = self.ads.get(name)
        if found is None and name in self.suspended:
            raise self.suspended[name][1]
        if found is None:
            reason = f"has no advertisement `{name}`"
            remedy = "Make it with `advertise`, or leave `ad` out."
            raise SituError(NO_SUCH_DECLARATION(client=self.client, reason=reason, remedy=remedy))
        if type != found.type and found.type not in (await self._described(type)).above:
            raise SituError(not_of_type(type, found.id, found.type))
        return found

    async def _raise_suspended(self, type: str) -> None:
        known = await self._described(type)
        for of, error in self.suspended.values():
            # Who lost its scopes may not be told any more what the type is below.
            if of == type or of in known.above or not known.event:
                raise error

    async def _hold(self, under: AdvertisementHandle) -> None:
        """Who subscribes already must not miss the first event; but nobody waits for ever."""
        if not await under.installing.wait(self._session.terms.install_timeout):
            _log.warning("%s is not installed everywhere yet; publishing under it all the same", under.id)
        under.held = True

    # ── types ──

    def went_over(self, gone: tuple[str, ...]) -> None:
        """Names mean something else in another context, and these advertisements nothing."""
        for name in gone:
            self.ads.pop(name, None)
        self._types.clear()
        self._ad_of.clear()

    async def describe(self, types: tuple[str, ...]) -> Mapping[str, Description]:
        answer = await self._session.ask(Describe(req=self._session.request(), types=types))
        assert isinstance(answer, DescribeAck)
        return answer.types

    async def _described(self, type: str) -> Description:
        if type not in self._types:
            self._types.update(await self.describe((type,)))
        return self._types.get(type) or Description(event=False)


def _says(known: AdvertisementHandle, where: str, tags: Tags) -> bool:
    """Whether an advertisement is what is asked for; who asks for nothing else takes it as the project has it."""
    return (known.where, known.scopes) == (where, tags) or not (known.mine or where or tags)
