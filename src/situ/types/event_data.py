"""The data of events, by event type: what the decode stage of every engine asks of types."""

from __future__ import annotations

from typing import Any

from situ.types.decode import Decoded, Decoder, Extra, decoder
from situ.types.encode import Encoder, encoder
from situ.types.lookup import Suggestions
from situ.types.model import Struct
from situ.types.table import Types
from situ.types.undeclared import unknown_event


class EventData:
    """Decodes and encodes the data of events of one table. Each type's functions are made at its first event.

    ``suggests``: who sends an event of an unknown type is told which types are called nearly so.
    """

    def __init__(self, types: Types, extra: Extra = "drop", *, suggests: bool = True) -> None:
        self._types = types
        self._extra = extra
        self._decoders: dict[str, Decoder] = {}
        self._encoders: dict[str, Encoder] = {}
        self._suggestions = Suggestions()
        self._suggests = suggests

    def decode(self, type: str, data: Any) -> Decoded:
        """The data as a value of the event type; INT701 if there is no such type. No data has no attributes."""
        known = self._decoders.get(type)
        if known is None:
            struct = self._types.event(type)
            if struct is None:
                return self._unknown(type)
            known = self._decoders[type] = decoder(struct, self._types, self._extra)
        return known({} if data is None else data)

    def encode(self, type: str, value: Any) -> Any:
        """The canonical JSON value of a value of the event type, which must exist."""
        known = self._encoders.get(type)
        if known is None:
            known = self._encoders[type] = encoder(self._struct(type), self._types)
        return known(value)

    def _struct(self, type: str) -> Struct:
        struct = self._types.event(type)
        if struct is None:
            raise KeyError(type)
        return struct

    def _unknown(self, type: str) -> Decoded:
        shown = type[:100] if type.isprintable() else "…"
        similar = self._suggestions.near(shown, self._types.events) if self._suggests else ()
        return Decoded(None, (unknown_event(shown, similar),))
