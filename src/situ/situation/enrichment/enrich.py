"""Enrichment: what events said, joined to what pull sources know → the rows of every leaf of every policy.

Observations come as columns, a batch for each push source. What policies have in common is done once: equal leaves are
one; a constraint is evaluated once for each instance, not for each event; and leaves that differ only in their
constraints share one join, whose pairs are then sorted out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from situ.expr.tree import Node
from situ.situation.domain.ontology import Ontology
from situ.situation.enrichment.known import Knowledge
from situ.situation.enrichment.leaf_groups import Constraints, Failure, Group, Seen, Unknown, group_of
from situ.situation.enrichment.rows import concat
from situ.situation.policies.leaves import Leaf, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Observations through one push source: of an attribute of a concept.

    ``rows`` have the columns of :data:`situ.situation.enrichment.rows.BASE`, and then one for each scalar of
    :meth:`Enrichment.scalars`, in this order, whatever their names are.
    """

    concept: str
    attribute: str
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Enriched:
    """Rows of the leaves that have some, and what was noticed on the way."""

    rows: Mapping[Leaf, pa.RecordBatch]
    unknown: tuple[Unknown, ...] = ()
    failures: tuple[Failure, ...] = ()


class Enrichment:
    """What is made of observations for these leaves. Pure: what it remembers follows from what is known."""

    def __init__(self, leaves: Iterable[Leaf], ontology: Ontology) -> None:
        self.leaves = tuple(dict.fromkeys(leaves))
        self._ontology = ontology
        constraints = Constraints()
        groups: dict[tuple[str, str, Node | None, str, str], list[Leaf]] = {}
        for leaf in self.leaves:
            groups.setdefault((leaf.concept, leaf.attribute, leaf.test, leaf.observed, leaf.other), []).append(leaf)
        self._groups = [group_of(members, constraints) for members in groups.values()]
        self._looking: dict[tuple[str, str], tuple[Group, ...]] = {}
        self._scalars: dict[tuple[str, str], tuple[Scalar, ...]] = {}

    def scalars(self, concept: str, attribute: str) -> tuple[Scalar, ...]:
        """What is looked at of an attribute that events bring: the columns that observations of it must have."""
        known = self._scalars.get((concept, attribute))
        if known is None:
            found: dict[tuple[str, ...], Scalar] = {}
            for group in self._of(concept, attribute):
                for scalar in group.reads:
                    if scalar.path[0] == attribute:
                        found.setdefault(scalar.path, scalar)
            known = self._scalars[concept, attribute] = tuple(found[path] for path in sorted(found))
        return known

    def is_wanted(self, concept: str, attribute: str) -> bool:
        """Whether any leaf looks at this attribute of instances of this concept."""
        return bool(self._of(concept, attribute))

    def run(self, observed: Iterable[Observed], knowledge: Knowledge) -> Enriched:
        """The rows of all leaves, those of each push source in the order of its observations."""
        found: dict[Leaf, list[pa.RecordBatch]] = {}
        unknown: list[Unknown] = []
        failures: list[Failure] = []
        for each in observed:
            if not each.rows.num_rows:
                continue
            seen = Seen(each.rows, self.scalars(each.concept, each.attribute), knowledge)
            for group in self._of(each.concept, each.attribute):
                for leaf, rows in group.rows(seen):
                    found.setdefault(leaf, []).append(rows)
            unknown += seen.unknown()
            failures += seen.failures
        return Enriched(
            rows={leaf: concat(leaf, batches) for leaf, batches in found.items()},
            unknown=tuple(unknown),
            failures=tuple(failures),
        )

    def _of(self, concept: str, attribute: str) -> tuple[Group, ...]:
        """The groups that look at this attribute of instances of this concept."""
        found = self._looking.get((concept, attribute))
        if found is None:
            of_attribute = (group for group in self._groups if group.attribute == attribute)
            found = tuple(group for group in of_attribute if concept in self._members(group.concept))
            self._looking[concept, attribute] = found
        return found

    def _members(self, concept: str) -> tuple[str, ...]:
        declared = self._ontology.concepts[concept]
        return declared.members or (declared.name,)
