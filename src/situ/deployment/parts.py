"""The stamps of what a situation comes from, as text: what a row and a line of the log carry.

``3.41.1f`` is a tag set by its number, an epoch and bits in hexadecimal; dimensions in which it was released follow,
``3.41.1f.geography+network``; ``;`` stands between them. They are in one order, so equal parts are equal texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple


class Part(NamedTuple):
    """The stamp of one event that a situation comes from, as rows have stamps."""

    tags: int
    epoch: int
    bits: int
    released: frozenset[str] = frozenset()


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
