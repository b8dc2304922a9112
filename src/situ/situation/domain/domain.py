"""What policies are checked against: the ontology, which of its attributes events bring, types and units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from situ.expr.limits import DEFAULT_LIMITS, Limits
from situ.expr.scope import Definition, Scope, Variable
from situ.expr.tree import Node
from situ.settings import Settings
from situ.situation.actions.action import Actions
from situ.situation.domain.check_sources import fed
from situ.situation.domain.ontology import Concept, End, Measure, Ontology, Relationship
from situ.sources.model import Push
from situ.types.table import Types

T = TypeVar("T", bound=Relationship | Measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """``fed`` are the attributes that push sources feed, of the concepts that those name.

    ``window`` is that of policies that name none, in microseconds.
    """

    ontology: Ontology
    fed: frozenset[End]
    types: Types
    limits: Limits = DEFAULT_LIMITS
    window: int = 5_000_000
    actions: Actions | None = None
    """Those that policies can name; None: what they name is not looked up."""
    kept: Mapping[End, tuple[str, int]] = field(default_factory=dict)
    """Of attributes whose values push sources keep: the name of the one that keeps them longest, and for how long."""
    checked: dict[tuple[object, ...], Node] = field(default_factory=dict, compare=False, repr=False)
    """Conditions that were found to be right: many policies say much the same."""

    @classmethod
    def of(
        cls,
        ontology: Ontology,
        pushes: Iterable[Push],
        types: Types,
        settings: Settings,
        actions: Actions | None = None,
    ) -> Domain:
        """That of a project."""
        pushes = tuple(pushes)
        return cls(
            ontology=ontology,
            fed=fed(pushes),
            types=types,
            limits=settings.expression_limits,
            window=settings.defaults.window // timedelta(microseconds=1),
            actions=actions,
            kept=_kept(pushes),
        )

    def brings(self, concept: Concept, attribute: str) -> bool:
        """Whether events bring this attribute of some instance of the concept."""
        return any(End(concept=member, attribute=attribute) in self.fed for member in members(concept))

    def fits(self, concept: Concept, end: End) -> bool:
        """Whether every instance of the concept can stand at this end."""
        return concept.name in members(self.ontology.concepts[end.concept])

    def joining(self, candidates: Sequence[T], left: Concept, right: Concept) -> T | None:
        """The one of these that joins the two in this order."""
        return next((each for each in candidates if self.fits(left, each.left) and self.fits(right, each.right)), None)

    def more_general(self, concept: Concept, attribute: str) -> str:
        """A concept of which this one is a special case, and of which events bring the attribute; else nothing."""
        for each in self.ontology.concepts.values():
            if concept.name in members(each) and End(concept=each.name, attribute=attribute) in self.fed:
                return each.name
        return ""

    def scope(self, variables: Iterable[tuple[str, Concept]], functions: dict[str, Definition] | None = None) -> Scope:
        """Expressions over instances of concepts."""
        return Scope(
            variables={name: Variable(type=concept.struct) for name, concept in variables},
            types=self.types,
            units=self.types.units,
            functions=functions or {},
            limits=self.limits,
        )


def members(concept: Concept) -> tuple[str, ...]:
    return concept.members or (concept.name,)


def _kept(pushes: Iterable[Push]) -> dict[End, tuple[str, int]]:
    found: dict[End, tuple[str, int]] = {}
    for each in sorted(pushes, key=lambda push: (push.keep or timedelta(0), push.name)):
        if each.keep:
            found[End(concept=each.concept, attribute=each.attribute)] = (
                each.name,
                each.keep // timedelta(microseconds=1),
            )
    return found
