"""The stamps of what a situation comes from, as text: what a row and a line of the log carry.

``3.41.1f`` is a tag set by its number, an epoch and bits in hexadecimal; dimensions in which it was released follow,
``3.41.1f.geography+network``; ``;`` stands between them. They are in one order, so equal parts are equal texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from situ.visibility.meet import MOST_PARTS


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
    return tuple(map(_read, text.split(";"))) if text else ()


def _write(part: Part) -> str:
    released = f".{'+'.join(sorted(part.released))}" if part.released else ""
    return f"{part.tags}.{part.epoch}.{part.bits:x}{released}"


def _read(text: str) -> Part:
    tags, epoch, bits, *released = text.split(".", 3)
    return Part(int(tags), int(epoch), int(bits, 16), frozenset(released[0].split("+")) if released else frozenset())
