"""What a node publishes: its advertisements, and events under them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from situ.catalogue import NO_SUCH_DECLARATION
from situ.edge.client_files import ClientFiles
from situ.edge.declared import Advertisement, Installing
from situ.edge.naming import name_of_type
from situ.edge.sending import Receipt, Sender
from situ.edge.session import Session
from situ.errors import SituError
from situ.event.encode import print_percent
from situ.event.ingress import own_source
from situ.overlay.messages import AdAck, Advertise, Describe, DescribeAck, Description, Unadvertise
from situ.subscription.stamp import not_of_type

_log = logging.getLogger("situ.client")
_encode = msgspec.json.Encoder().encode
_MOST_STARTS = 1000


class Publications:
    """Advertisements and events of one client."""

    def __init__(self, session: Session, sender: Sender, files: ClientFiles) -> None:
        self.client = session.client
        self.duplicates = 0
        """Events whose id was published before."""
        self.ads: dict[str, Advertisement] = {}
        self._session = session
        self._sender = sender
        self._ids = files.ids
        self._ad_of: dict[str, Advertisement] = {}
        """Type → the advertisement its events go under when none is named."""
        self._starts: dict[tuple[str, str | None, Advertisement], bytes] = {}
        self._types: dict[str, Description] = {}
        self._turn = asyncio.Lock()

    # ── advertisements ──

    async def advertise(self, type: str, name: str | None) -> Advertisement:
        name = name or name_of_type(type)
        known = self.ads.get(name)
        if known is not None and known.type == type:
            return known
        answer = await self._session.ask(Advertise(req=self._session.request(), ad=name, type=type))
        assert isinstance(answer, AdAck)
        made = Advertisement(self.client, name, type, Installing())
        made.installing.told(answer.state, answer.version, answer.missing)
        self.ads[name] = made
        self._ad_of.clear()
        return made

    async def unadvertise(self, ad: Advertisement | str) -> None:
        name = ad if isinstance(ad, str) else ad.name
        await self._sender.flush()
        await self._session.ask(Unadvertise(req=self._session.request(), ad=name))
        self.ads.pop(name, None)
        self._ad_of.clear()

    def listed(self) -> dict[str, str]:
        """What this node advertises itself."""
        return {each.name: each.type for each in self.ads.values() if each.mine}

    def known(self, ads: Mapping[str, str]) -> None:
        """What is advertised for this client, by itself or in the project."""
        for name, type in ads.items():
            if name not in self.ads:
                self.ads[name] = Advertisement(self.client, name, type, Installing(installed=True), mine=False)
        self._ad_of.clear()

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
        ad: Advertisement | str | None,
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

    def _start(self, type: str, source: str | None, under: Advertisement) -> bytes:
        """What the text of many events begins with."""
        if len(self._starts) >= _MOST_STARTS:
            self._starts.clear()
        own = self.client if source is None else own_source(source, self.client)
        event = {"specversion": "1.0", "source": own, "type": type, "situad": under.id}
        start = self._starts[type, source, under] = _encode(event)[:-1]
        return start

    async def _advertisement(self, type: str, ad: Advertisement | str | None) -> Advertisement:
        if ad is not None:
            return await self._named(type, ad)
        async with self._turn:
            if type in self._ad_of:
                return self._ad_of[type]
            fitting = [each for each in self.ads.values() if each.type == type]
            if not fitting and self.ads:
                above = (await self._described(type)).above
                fitting = [each for each in self.ads.values() if each.type in above]
            if len(fitting) > 1:
                names = ", ".join(f"`{each.name}`" for each in fitting)
                reason = f"has several advertisements for `{type}`: {names}"
                remedy = f'Say which one: `publish_event(…, ad="{fitting[0].name}")`.'
                raise SituError(NO_SUCH_DECLARATION(client=self.client, reason=reason, remedy=remedy))
            found = fitting[0] if fitting else await self.advertise(type, None)
            self._ad_of[type] = found
            return found

    async def _named(self, type: str, ad: Advertisement | str) -> Advertisement:
        name = ad if isinstance(ad, str) else ad.name
        found = self.ads.get(name.removeprefix(f"{self.client}/"))
        if found is None:
            reason = f"has no advertisement `{name}`"
            remedy = "Make it with `advertise`, or leave `ad` out."
            raise SituError(NO_SUCH_DECLARATION(client=self.client, reason=reason, remedy=remedy))
        if type != found.type and found.type not in (await self._described(type)).above:
            raise SituError(not_of_type(type, found.id, found.type))
        return found

    async def _hold(self, under: Advertisement) -> None:
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
