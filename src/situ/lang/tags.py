"""Tag sets: what an advertisement or a subscription says of its scopes. Per dimension one scope, ``any``, or nothing.

In an advertisement ``any`` is ⊥, in a subscription ⊤. Declarations carry tag sets, so these stand below the parts;
whether the scopes are there, and whether the client may name them, is decided by :mod:`situ.scopes.rights`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from situ.lang.catalogue import NO_SCOPE, NOT_A_CHOICE, TWO_TAGS
from situ.lang.documents import Node, Reader, ScalarNode, SequenceNode
from situ.lang.problems import Location, Problem, SituError, nearest

ANY: Final = "any"
NONE: Final = "none"
REST: Final = "rest"
VIRTUAL: Final = ("⊥", "⊤")
"""Signs that stand for ``any`` in print, and are not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSet:
    """The scopes that are named, in the order of their dimensions; ``rest``: ``any`` in all dimensions not named."""

    named: tuple[tuple[str, str], ...] = ()
    rest: bool = False

    @classmethod
    def of(cls, tags: Mapping[str, str] | None = None, *, rest: bool = False) -> TagSet:
        return cls(named=tuple(sorted((tags or {}).items())), rest=rest)

    def tag(self, dimension: str) -> str | None:
        """A scope, ``any``, or None where nothing is said."""
        for name, tag in self.named:
            if name == dimension:
                return tag
        return ANY if self.rest else None

    def or_else(self, others: TagSet) -> TagSet:
        """These, and where they say nothing those that the others name."""
        missing = tuple((name, tag) for name, tag in others.named if self.tag(name) is None)
        return TagSet(named=tuple(sorted((*self.named, *missing))), rest=self.rest) if missing else self

    def as_json(self) -> dict[str, str]:
        """As it is written in a document; equal tag sets give equal values."""
        return {**dict(self.named), REST: ANY} if self.rest else dict(self.named)

    @classmethod
    def from_json(cls, value: Any) -> TagSet:
        """The tag set that :meth:`as_json` gave; ValueError for what it cannot have given."""
        if not isinstance(value, dict) or not all(isinstance(part, str) for pair in value.items() for part in pair):
            raise ValueError(f"these are no tags: {value!r}")
        if value.get(REST, ANY) not in (ANY, NONE):
            raise ValueError(f"`rest` is any or none: {value!r}")
        tags = {name: tag for name, tag in value.items() if name != REST}
        return cls.of(tags, rest=value.get(REST) == ANY)


NO_TAGS = TagSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTags:
    """A tag set with the places of what it names: dimension → where its tag stands, and ``rest`` where that stands."""

    tags: TagSet
    places: Mapping[str, Location]
    place: Location | None


def parse_tags(value: Mapping[str, str | Iterable[str]]) -> TagSet:
    """What a program says of scopes; :class:`SituError` with all that is wrong with it: V007, V016, P119."""
    tags: dict[str, str] = {}
    problems: list[Problem] = []
    for dimension, said in value.items():
        names = (said,) if isinstance(said, str) else tuple(said)
        if len(names) > 1:
            problems.append(TWO_TAGS(dimension=dimension, scopes=", ".join(f"`{name}`" for name in names)))
        elif names and dimension == REST and names[0] not in (ANY, NONE):
            near = nearest(names[0], (ANY, NONE))
            problems.append(NOT_A_CHOICE(found=f"`rest: {names[0]}`", nearest=near, choices=(ANY, NONE)))
        elif names and names[0] in VIRTUAL:
            problems.append(_virtual(dimension, names[0], None))
        elif names:
            tags[dimension] = names[0]
    if problems:
        raise SituError(*problems)
    return TagSet.of({name: tag for name, tag in tags.items() if name != REST}, rest=tags.get(REST) == ANY)


def read_tags(read: Reader, node: Node) -> WrittenTags | None:
    """What stands under ``scopes:``; what is wrong with it goes to the reader's problems and is left out."""
    mapping = read.mapping(node)
    if mapping is None:
        return None
    tags: dict[str, str] = {}
    places: dict[str, Location] = {}
    rest = False
    for key, below in mapping.entries:
        if key.text == REST:
            rest = read.choice(below, (ANY, NONE)) == ANY
            places[REST] = below.location
        elif (tag := _tag(read, key.text, below)) is not None:
            tags[key.text], places[key.text] = tag.text, tag.location
    return WrittenTags(tags=TagSet.of(tags, rest=rest), places=places, place=mapping.location)


def _tag(read: Reader, dimension: str, node: Node) -> ScalarNode | None:
    if isinstance(node, SequenceNode) and len(node.items) > 1:
        scopes = ", ".join(f"`{each.text}`" if isinstance(each, ScalarNode) else "…" for each in node.items)
        read.problems.add(TWO_TAGS(node.location, dimension=dimension, scopes=scopes))
        return None
    scalar = read.scalar(node)
    if scalar is not None and scalar.text in VIRTUAL:
        read.problems.add(_virtual(dimension, scalar.text, scalar.location))
        return None
    return scalar


def _virtual(dimension: str, name: str, place: Location | None) -> Problem:
    remedy = f"Write `{dimension}: any`: in an advertisement that is ⊥, in a subscription ⊤."
    return NO_SCOPE(place, name=name, what="be named as a scope", remedy=remedy)
