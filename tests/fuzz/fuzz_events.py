"""Any bytes as an event and as a batch: events or refusals, and what is accepted reads back the same."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["situ"]):
    from situ.event import RefusedEvent, decode_batch, decode_event
    from situ.lang.problems import SituError
    from situ.lang.types.lookup import EventData
    from situ.lang.types.table import Types
    from tests.encoded_events import encode_batch

from tests.expressions import LINE, ROW, UNITS
from tests.fuzz.harness import fuzz

DATA = EventData(Types(types={"Row": ROW, "Line": LINE}, events=frozenset({"Row"}), units=UNITS), "drop")
_PIECES = [
    '{"specversion":"1.0","id":"1","source":"a","type":"Row","time":"2026-11-01T12:00:00Z"', ',"data":{', '"d":1.5',
    '"i":2147483648', '"ts":"2026-11-01T12:00:00+01:00"', '"dec":"1.25"', '"lines":[{"qty":1,"sku":"a","tags":[]}]',
    '"at":{"x":1,"y":2}', '"$type":"Row"', ",", "}", "{", "[", "]", "\n", "null", "NaN", "1e999", "-0", '"', "\\",
    "\\ud800", "\\u0000", '"confidence":"80 %"', '"situad":"a/b"', '"data_base64":"AA=="', "true", "é", "0" * 50,
    '"s":"x"', '"b":true', '"dur":"PT5S"',
]  # fmt: skip


def bytes_of(data: bytes) -> bytes:
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        return "".join(provider.PickValueInList(_PIECES) for _ in range(provider.ConsumeIntInRange(1, 60))).encode()
    return bytes(provider.ConsumeBytes(4000))


def target(data: bytes) -> None:
    raw = bytes_of(data)
    for body in (raw, b"[\n" + raw + b"\n]"):
        found = decode_batch(body)
        events = [item for item in found if not isinstance(item, RefusedEvent)]
        for item in found:
            if isinstance(item, RefusedEvent):
                assert item.problems
        again = decode_batch(encode_batch(events)) if events else ()
        assert list(again) == events, raw
        for event in events:
            DATA.decode(event.type, event.data)
    with suppress(SituError):
        decode_event(raw)


if __name__ == "__main__":
    fuzz(target)
