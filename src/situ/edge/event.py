"""An event as an application gets it, read from the line that was delivered.

A message of hundreds of events is read by one call; what few applications look at is made when they do.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from situ.errors import nearest


class Data(dict[str, Any]):
    """The data of an event: ``event.data["at"]["x"]`` and ``event.data.at.x`` are the same."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            similar = nearest(name, self) or tuple(self)
            raise AttributeError(f"the data has no {name!r}; it has {', '.join(similar) or 'nothing'}") from None
        if type(value) is dict or type(value) is list:
            value = self[name] = _with_attributes(value)
        return value


def _with_attributes(value: Any) -> Any:
    if type(value) is dict:
        return Data(value)
    if type(value) is list:
        return [_with_attributes(item) for item in value]
    return value


class Event(msgspec.Struct, kw_only=True):
    """What was published, and where it stands: its ``pos`` among the events of the subscription, without gaps.

    ``context`` is the version of the context in whose terms it is, ``origin`` that in whose terms it was published.

    Its ``key`` is the same whenever and wherever the event is seen. Where there are scopes it says nothing but that.

    ``redelivered`` says that this process or one before it may have seen the event already. ``released`` names the
    dimensions in which an administrator let a situation go, and with it all that it does not say any more.
    ``imprecision`` is how far the value that it says may be from the latest, where that is what was asked for.
    """

    id: str
    source: str
    type: str
    instant: str = msgspec.field(name="time")
    key: str = msgspec.field(name="situkey", default="")
    context: str = msgspec.field(name="situcontext", default="root")
    origin: str = msgspec.field(name="situfrom", default="root")
    subject: str | None = None
    released: str = ""
    confidence: str | None = None
    imprecision: str | None = None
    redelivered: bool = msgspec.field(name="situredelivered", default=False)
    arrival: str = msgspec.field(name="siturecv", default="")
    subscriptions: str = msgspec.field(name="situsubs", default="")
    content: dict[str, Any] = msgspec.field(name="data", default_factory=dict)
    number: int = msgspec.field(name="situnumber", default=0)

    @property
    def data(self) -> Data:
        content = self.content
        if type(content) is not Data:
            content = self.content = Data(content)
        return content

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.instant)

    @property
    def received(self) -> datetime:
        """When its router got it."""
        return datetime.fromisoformat(self.arrival or self.instant)

    @property
    def pos(self) -> int:
        """Its number among those that its subscription was given: one more than that of the event before."""
        return self.number

    def __repr__(self) -> str:
        return f"Event(type={self.type!r}, key={self.key!r}, time={self.time.isoformat()!r}, data={dict(self.data)!r})"


_DECODER: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[Event])


def read_events(body: bytes) -> list[Event]:
    """The events of a message that was delivered."""
    return _DECODER.decode(body)
