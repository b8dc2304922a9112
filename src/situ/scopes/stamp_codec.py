"""The stamps of what a situation comes from, as text: what a row and a line of the log carry.

``3.41.1f`` is a tag set by its number, an epoch and bits in hexadecimal; dimensions in which it was released follow,
``3.41.1f.geography+network``; ``;`` stands between them. They are in one order, so equal parts are equal texts.

Behind a ``|`` may stand what a release took out of the event, as JSON in base64: the log is where operators look it up,
and nothing of this text ever leaves it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from situ.visibility.meet import MOST_PARTS

_WITHHELD = "|"


class Part(NamedTuple):
    """The stamp of one event that a situation comes from, as rows have stamps."""

    tags: int
    epoch: int
    bits: int
    released: frozenset[str] = frozenset()


def united(parts: Iterable[Part], most: int = MOST_PARTS) -> tuple[frozenset[Part], int]:
    """Each once; beyond so many, those of one tag set and epoch are merged, with what is true for all of them.

    As :func:`situ.visibility.meet.merge` says it; also how many are gone by that.
    """
    found = frozenset(parts)
    if len(found) <= most:
        return found, 0
    together: dict[Part, int] = {}
    for each in found:
        group = each._replace(bits=0)
        together[group] = together.get(group, each.bits) & each.bits
    kept = frozenset(group._replace(bits=bits) for group, bits in together.items())
    return kept, len(found) - len(kept)


def write_parts(parts: Iterable[Part]) -> str:
    """Each once."""
    return ";".join(sorted({_write(each) for each in parts}))


@lru_cache(maxsize=10_000)
def read_parts(text: str) -> tuple[Part, ...]:
    """What :func:`write_parts` wrote."""
    stamps = stamps_in(text)
    return tuple(map(_read, stamps.split(";"))) if stamps else ()


def stamps_in(text: str) -> str:
    """A text of parts without what was withheld."""
    return text.partition(_WITHHELD)[0]


def with_withheld(text: str, attributes: Mapping[str, Any]) -> str:
    """A text of parts, with what the event does not say of itself."""
    if not attributes:
        return text
    return f"{text}{_WITHHELD}{base64.b64encode(msgspec.json.encode(attributes)).decode('ascii')}"


def withheld_in(text: str) -> dict[str, Any]:
    """What :func:`with_withheld` put there."""
    _, _, written = text.partition(_WITHHELD)
    found: dict[str, Any] = msgspec.json.decode(base64.b64decode(written)) if written else {}
    return found


def _write(part: Part) -> str:
    released = f".{'+'.join(sorted(part.released))}" if part.released else ""
    return f"{part.tags}.{part.epoch}.{part.bits:x}{released}"


def _read(text: str) -> Part:
    tags, epoch, bits, *released = text.split(".", 3)
    return Part(int(tags), int(epoch), int(bits, 16), frozenset(released[0].split("+")) if released else frozenset())
