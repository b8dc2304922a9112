"""Numbers that outlive versions: those of filters and of tag sets, which stamps of events are made of.

A number is given once and never to anything else, so that a stamp can be read as long as there are events that have it.
The registry keeps them and carries them from version to version; what was made from a folder numbers by itself. With
them goes the secret by which numbers are sealed that clients get to see (:mod:`situ.event.seal`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.tags import NO_TAGS, TagSet
from situ.visibility.bits import NO_NUMBERS, Numbers
from situ.visibility.compile import number_filters
from situ.visibility.graph import ScopeGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """Filters by their texts; tag sets by their places. The first tag set is the one that says nothing."""

    filters: Numbers = NO_NUMBERS
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

    def with_all(self, graph: ScopeGraph, advertised: Iterable[TagSet]) -> Numbering:
        """With numbers for all filters of the graph, and for all tag sets that something is published under."""
        if not graph.dimensions and not self.tags:
            return self
        new = {NO_TAGS, *advertised, *(each.publishes for each in graph.policies.values())} - self._places.keys()
        filters = number_filters(graph, self.filters)
        if not new and filters is self.filters:
            return self
        ordered = sorted(new, key=lambda each: (each != NO_TAGS, each.named, each.rest))
        return Numbering(filters=filters, tags=(*self.tags, *ordered), seal=self.seal)

    def as_json(self) -> dict[str, Any]:
        """Filters and tag sets in the order of their numbers."""
        texts = self.filters.texts()
        return {
            "filters": [texts[place] for place in range(len(texts))],
            "tags": [each.as_json() for each in self.tags],
            **({"seal": self.seal} if self.seal else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Numbering:
        tags = (TagSet.from_json(each) for each in value["tags"])
        return cls.of_texts(value["filters"], tags, str(value.get("seal", "")))

    @classmethod
    def of_texts(cls, filters: Iterable[str], tags: Iterable[TagSet], seal: str = "") -> Numbering:
        """From filters and tag sets in the order of their numbers."""
        given = {text: number for number, text in enumerate(filters)}
        numbers = Numbers(given=MappingProxyType(given)) if given else NO_NUMBERS
        return cls(filters=numbers, tags=tuple(tags), seal=seal)


NO_NUMBERING = Numbering()
