"""Stamps of what a situation comes from, as text, and the numbers of filters and tag sets that stamps are made of.

`write_parts` and `read_parts` are the text that a row and a line of the log carry, `StampNumbers` gives numbers that
outlive versions of the deployment.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from situ.lang.tags import NO_TAGS, TagSet
from situ.scopes.filter_sets import NO_NUMBERS, FilterNumbers
from situ.scopes.graph import ScopeGraph
from situ.scopes.visibility_plan import number_filters

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``3.41.1f`` is a tag set by its number, an epoch and bits in hexadecimal; dimensions in which it was released follow,
# ``3.41.1f.geography+network``; ``;`` stands between them. They are in one order, so equal parts are equal texts.
#
# Behind a ``|`` may stand what a release took out of the event, as JSON in base64: the log is where operators look it
# up, and nothing of this text ever leaves it.

_WITHHELD = "|"
_MOST_PARTS = 64


class StampPart(NamedTuple):
    """The stamp of one event that a situation comes from, as rows have stamps."""

    tags: int
    epoch: int
    bits: int
    released: frozenset[str] = frozenset()


def merge_parts(parts: Iterable[StampPart], most: int = _MOST_PARTS) -> tuple[frozenset[StampPart], int]:
    """Each once; beyond so many, those of one tag set and epoch are merged, with what is true for all of them.

    So a filter counts as true only if it is so for all: merging hides, and never shows. Also how many are gone by it.
    """
    found = frozenset(parts)
    if len(found) <= most:
        return found, 0
    together: dict[StampPart, int] = {}
    for each in found:
        group = each._replace(bits=0)
        together[group] = together.get(group, each.bits) & each.bits
    kept = frozenset(group._replace(bits=bits) for group, bits in together.items())
    return kept, len(found) - len(kept)


def write_parts(parts: Iterable[StampPart]) -> str:
    """Each once."""
    return ";".join(sorted({_write_part(each) for each in parts}))


@lru_cache(maxsize=10_000)
def read_parts(text: str) -> tuple[StampPart, ...]:
    """What :func:`write_parts` wrote."""
    stamps = stamps_in(text)
    return tuple(map(_read_part, stamps.split(";"))) if stamps else ()


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


def _write_part(part: StampPart) -> str:
    released = f".{'+'.join(sorted(part.released))}" if part.released else ""
    return f"{part.tags}.{part.epoch}.{part.bits:x}{released}"


def _read_part(text: str) -> StampPart:
    tags, epoch, bits, *released = text.split(".", 3)
    return StampPart(
        int(tags), int(epoch), int(bits, 16), frozenset(released[0].split("+")) if released else frozenset()
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Numbers of filters and of tag sets. A number is given once and never to anything else, so that a stamp can be read as
# long as there are events that have it. The registry keeps them and carries them from version to version; what was made
# from a folder numbers by itself. With them goes the secret by which numbers are sealed that clients get to see
# (:mod:`situ.event.seal`).


@dataclass(frozen=True, slots=True, kw_only=True)
class StampNumbers:
    """Filters by their texts; tag sets by their places. The first tag set is the one that says nothing."""

    filters: FilterNumbers = NO_NUMBERS
    tags: tuple[TagSet, ...] = ()
    seal: str = field(default="", repr=False)
    _places: Mapping[TagSet, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        places = {each: place for place, each in enumerate(self.tags)}
        object.__setattr__(self, "_places", MappingProxyType(places))

    def __bool__(self) -> bool:
        """Whether there ever were scopes."""
        return bool(self.tags)

    def __contains__(self, tags: object) -> bool:
        return tags in self._places

    def of(self, tags: TagSet) -> int:
        """The number of a tag set that has one."""
        return self._places[tags]

    def tag_set(self, number: int) -> TagSet | None:
        """The tag set with this number; None if nobody was given it."""
        return self.tags[number] if 0 <= number < len(self.tags) else None

    def with_all(self, graph: ScopeGraph, advertised: Iterable[TagSet]) -> StampNumbers:
        """With numbers for all filters of the graph, and for all tag sets that something is published under."""
        if not graph.dimensions and not self.tags:
            return self
        new = {NO_TAGS, *advertised, *(each.publishes for each in graph.policies.values())} - self._places.keys()
        filters = number_filters(graph, self.filters)
        if not new and filters is self.filters:
            return self
        ordered = sorted(new, key=lambda each: (each != NO_TAGS, each.named, each.rest))
        return StampNumbers(filters=filters, tags=(*self.tags, *ordered), seal=self.seal)

    def as_json(self) -> dict[str, Any]:
        """Filters and tag sets in the order of their numbers."""
        texts = self.filters.texts()
        return {
            "filters": [texts[place] for place in range(len(texts))],
            "tags": [each.as_json() for each in self.tags],
            **({"seal": self.seal} if self.seal else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StampNumbers:
        tags = (TagSet.from_json(each) for each in value["tags"])
        return cls.of_texts(value["filters"], tags, str(value.get("seal", "")))

    @classmethod
    def of_texts(cls, filters: Iterable[str], tags: Iterable[TagSet], seal: str = "") -> StampNumbers:
        """From filters and tag sets in the order of their numbers."""
        given = {text: number for number, text in enumerate(filters)}
        numbers = FilterNumbers(given=MappingProxyType(given)) if given else NO_NUMBERS
        return cls(filters=numbers, tags=tuple(tags), seal=seal)


NO_NUMBERING = StampNumbers()
