"""What policies are checked against: the ontology, which of its attributes events bring, types and units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar, assert_never

from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.scope import Definition, NameScope, Variable
from situ.lang.expr.tree import Node
from situ.lang.records import replace
from situ.lang.types.table import Types
from situ.policies.actions.model import DeclaredActions
from situ.policies.language import syntax
from situ.policies.language.syntax import PolicyText
from situ.policies.ontology.model import Concept, ConceptAttribute, ConceptMeasure, Ontology, Relationship
from situ.policies.source_coverage import fed_attributes
from situ.settings import Settings
from situ.sources.model import Push

T = TypeVar("T", bound=Relationship | ConceptMeasure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """``fed`` are the attributes that push sources feed, of the concepts that those name.

    ``window`` is that of policies that name none, in microseconds.
    """

    ontology: Ontology
    fed: frozenset[ConceptAttribute]
    types: Types
    limits: ExpressionLimits = DEFAULT_LIMITS
    window: int = 5_000_000
    actions: DeclaredActions | None = None
    """Those that policies can name; None: what they name is not looked up."""
    kept: Mapping[ConceptAttribute, tuple[str, int]] = field(default_factory=dict)
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
        actions: DeclaredActions | None = None,
    ) -> Domain:
        """That of a project."""
        pushes = tuple(pushes)
        return cls(
            ontology=ontology,
            fed=fed_attributes(pushes),
            types=types,
            limits=settings.expression_limits,
            window=settings.defaults.window // timedelta(microseconds=1),
            actions=actions,
            kept=_kept(pushes),
        )

    def brings(self, concept: Concept, attribute: str) -> bool:
        """Whether events bring this attribute of some instance of the concept."""
        return any(ConceptAttribute(concept=member, attribute=attribute) in self.fed for member in members(concept))

    def fits(self, concept: Concept, end: ConceptAttribute) -> bool:
        """Whether every instance of the concept can stand at this end."""
        return concept.name in members(self.ontology.concepts[end.concept])

    def joining(self, candidates: Sequence[T], left: Concept, right: Concept) -> T | None:
        """The one of these that joins the two in this order."""
        return next((each for each in candidates if self.fits(left, each.left) and self.fits(right, each.right)), None)

    def more_general(self, concept: Concept, attribute: str) -> str:
        """A concept of which this one is a special case, and of which events bring the attribute; else nothing."""
        for each in self.ontology.concepts.values():
            if concept.name in members(each) and ConceptAttribute(concept=each.name, attribute=attribute) in self.fed:
                return each.name
        return ""

    def spelled(self, text: PolicyText) -> PolicyText:
        """A policy with its concepts, attributes, relationships and measures spelled as the ontology does.

        A name in another case is the one that there is, if there is only one; what is not known stays as it is written.
        """
        return _Spelling(self.ontology).policy(text)

    def scope(
        self, variables: Iterable[tuple[str, Concept]], functions: dict[str, Definition] | None = None
    ) -> NameScope:
        """Expressions over instances of concepts."""
        return NameScope(
            variables={name: Variable(type=concept.struct) for name, concept in variables},
            types=self.types,
            units=self.types.units,
            functions=functions or {},
            limits=self.limits,
        )


def members(concept: Concept) -> tuple[str, ...]:
    return concept.members or (concept.name,)


def _kept(pushes: Iterable[Push]) -> dict[ConceptAttribute, tuple[str, int]]:
    found: dict[ConceptAttribute, tuple[str, int]] = {}
    for each in sorted(pushes, key=lambda push: (push.keep or timedelta(0), push.name)):
        if each.keep:
            found[ConceptAttribute(concept=each.concept, attribute=each.attribute)] = (
                each.name,
                each.keep // timedelta(microseconds=1),
            )
    return found


class _Spelling:
    """The names of one policy. Names that are spelled right cost a look into a dictionary."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self.concepts: dict[str, Concept] = {}

    def policy(self, text: PolicyText) -> PolicyText:
        concepts = tuple(self._concept(each) for each in text.concepts)
        return replace(text, concepts=concepts, conditions=self._condition(text.conditions))

    def _concept(self, written: syntax.ConceptDefinition) -> syntax.ConceptDefinition:
        name = _spelled(written.concept, self.ontology.concepts)
        concept = self.ontology.concepts.get(name.text)
        if concept is None:
            return written
        self.concepts.setdefault(written.alias.text, concept)
        properties = tuple(
            replace(each, attribute=self._attribute(concept, each.attribute)) for each in written.properties
        )
        return replace(written, concept=name, properties=properties)

    def _attribute(self, concept: Concept | None, name: syntax.Name) -> syntax.Name:
        if concept is None or concept.attribute(name.text) is not None:
            return name
        return _spelled(name, {each.name: each for each in concept.attributes})

    def _condition(self, written: syntax.Condition) -> syntax.Condition:
        match written:
            case syntax.RelationText(relationship=name):
                return replace(written, relationship=_spelled(name, self.ontology.relationships))
            case syntax.Comparison(left=left, right=right):
                return replace(written, left=self._operand(left), right=self._operand(right))
            case syntax.FollowedBy(first=first, second=second):
                return replace(written, first=self._condition(first), second=self._condition(second))
            case syntax.AllOf(parts=parts) | syntax.AnyOf(parts=parts):
                return replace(written, parts=tuple(map(self._condition, parts)))
            case _:
                assert_never(written)

    def _operand(self, written: syntax.Operand) -> syntax.Operand:
        match written:
            case syntax.MeasureOf(measure=name):
                return replace(written, measure=_spelled(name, self.ontology.measures))
            case syntax.AttributeOf(alias=alias, attribute=name):
                return replace(written, attribute=self._attribute(self.concepts.get(alias.text), name))
            case syntax.ValueText():
                return written
            case _:
                assert_never(written)


def _spelled(name: syntax.Name, known: Mapping[str, object]) -> syntax.Name:
    if name.text in known:
        return name
    alike = [each for each in known if each.casefold() == name.text.casefold()]
    return replace(name, text=alike[0]) if len(alike) == 1 else name
