"""Rows of tables → what is known of the instances of concepts, as policies see it.

Several tables of one concept are put together by identity; where more than one says something of an attribute, the
first in the order of names that says anything counts. What a table does not say of a container follows from the
container's own. As long as the tables are the same, so is what is made of them, object for object: whoever worked
something out of it need not do so again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from situ.situation.domain.check_sources import provided
from situ.situation.domain.concepts import IDENTITY, containers_of
from situ.situation.domain.cover import Cover, cover
from situ.situation.domain.ontology import End, Ontology
from situ.situation.meaning.detection import Instances
from situ.sources.model import Source
from situ.sources.table import Keyed, Table

KnownOf = Mapping[str, Mapping[str, Any]]


class InstanceTables:
    """The tables that provide what is needed (:func:`situ.situation.domain.cover.needed_of`), and what is in them."""

    def __init__(self, needed: Iterable[End], ontology: Ontology, sources: Mapping[str, Source]) -> None:
        self.cover: Cover = cover(needed, ontology, sources)
        self._ontology = ontology
        self._sources = {name: sources[name] for name in sorted(self.cover.tables)}
        self._made: dict[str, tuple[tuple[Table, ...], KnownOf]] = {}
        self._last: tuple[tuple[Table, ...], Instances] | None = None

    @property
    def keyed(self) -> Mapping[str, frozenset[Keyed]]:
        """The tables to read, by the columns that tell their rows apart: one with two rows for a key is refused."""
        return MappingProxyType({name: frozenset({(each.key, "")}) for name, each in self._sources.items()})

    def of(self, tables: Mapping[str, Table]) -> Instances:
        """What these tables know; KeyError if one of those that are needed is not among them."""
        read = tuple(tables[name] for name in self._sources)
        last = self._last
        if last is None or not _same(last[0], read):
            found = {concept: self._concept(concept, tables) for concept in self.cover.sources}
            last = self._last = (read, MappingProxyType(found))
        return last[1]

    def _concept(self, concept: str, tables: Mapping[str, Table]) -> KnownOf:
        chain = containers_of(concept, self._ontology.containers)
        used = (concept, *(member for container in chain for member in self._members(container)))
        read = tuple(tables[name] for each in used for name in self.cover.sources[each])
        made = self._made.get(concept)
        if made is None or not _same(made[0], read):
            found = self._together(concept, tables)
            self._fill_in(chain, found, tables)
            made = self._made[concept] = (read, MappingProxyType(found))
        return made[1]

    def _members(self, concept: str) -> list[str]:
        return [each for each in self._ontology.concepts[concept].members if each in self.cover.sources]

    def _together(self, concept: str, tables: Mapping[str, Table]) -> dict[str, dict[str, Any]]:
        chosen = [self._sources[name] for name in self.cover.sources[concept]]
        found: dict[str, dict[str, Any]] = {}
        for source in chosen:
            if source.concept == concept:
                for row in tables[source.name].rows:
                    if (identity := _identity(source, row)) is not None:
                        found.setdefault(identity, {IDENTITY: identity})
        for source in chosen:
            columns = tuple(provided(source, self._ontology.concepts[source.concept]).items())
            for row in tables[source.name].rows:
                identity = _identity(source, row)
                known = found.get(identity) if identity is not None else None
                if known is not None:
                    for attribute, column in columns:
                        if (value := row.get(column)) is not None:
                            known.setdefault(attribute, value)
        return found

    def _fill_in(
        self, chain: tuple[str, ...], found: Mapping[str, dict[str, Any]], tables: Mapping[str, Table]
    ) -> None:
        """Containers further out, from those that are nearer: a room is in the building that its floor is in."""
        for nearer, further in pairwise(chain):
            for member in self._members(nearer):
                above = self._concept(member, tables)
                for known in found.values():
                    container = above.get(known.get(nearer, ""), {})
                    if further in container:
                        known.setdefault(further, container[further])


def _same(tables: tuple[Table, ...], others: tuple[Table, ...]) -> bool:
    return all(one is other for one, other in zip(tables, others, strict=True))


def _identity(source: Source, row: Mapping[str, Any]) -> str | None:
    value = row.get(source.key[0])
    return None if value is None else str(value)
