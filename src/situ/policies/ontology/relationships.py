"""Relationships and measures from what is declared: their ends looked up, their functions checked against the ends.

The condition of a relationship is an expression over ``left``, ``right`` and its parameter, checked like every other,
so types and units of attributes and function are held against each other before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, product

from situ.lang.catalogue import (
    BAD_ENDS,
    MEASURE_UNFIT,
    RELATIONSHIP_AMBIGUOUS,
    RELATIONSHIP_UNFIT,
    UNFIT_FOR_FUNCTION,
    UNKNOWN_CONCEPT,
    UNKNOWN_CONCEPT_ATTRIBUTE,
    UNKNOWN_RELATIONSHIP_FUNCTION,
    UNKNOWN_UNIT,
)
from situ.lang.documents import ScalarNode
from situ.lang.expr.checker.check import check_bounded, check_result
from situ.lang.expr.faults import Faults
from situ.lang.expr.limits import ExpressionLimits
from situ.lang.expr.scope import Definition, NameScope, Variable
from situ.lang.expr.syntax import KEYWORDS, Locate
from situ.lang.expr.tree import Node
from situ.lang.problems import Location, Problem, Problems, nearest
from situ.lang.types.model import ATTRIBUTE_NAME, BOOLEAN, DOUBLE, ListOf, Struct, format_type, plain
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, Unit, UnknownUnit
from situ.policies.model import LEFT, RIGHT
from situ.policies.ontology.declare import RelationshipText
from situ.policies.ontology.model import (
    IDENTITY,
    ConceptAttribute,
    ConceptMeasure,
    ConceptTable,
    Relationship,
    RelationshipParameter,
    containers_of,
)

PART = "part"
"""The relationship of a concept and its containers: ``R is part of F``."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_BUILT_IN: Mapping[str, tuple[str, bool]] = {
    **{op: (f"{LEFT} {op} {RIGHT}", False) for op in COMPARISONS},
    "in": (f"exists({RIGHT}, each -> each = {LEFT})", False),
    "inside": (f"inside({LEFT}, {RIGHT})", False),
    "within": (f"within({LEFT}, {RIGHT}, {{parameter}})", True),
    "distance": (f"distance({LEFT}, {RIGHT})", False),
}
"""What functions of the language mean as relationships, and whether they need a parameter."""

FUNCTIONS = tuple(_BUILT_IN)


class RelationshipBuilder:
    """Makes the relationships and measures of one ontology; what is wrong is reported and left out."""

    def __init__(
        self,
        concepts: ConceptTable,
        types: Types,
        functions: Mapping[str, Definition],
        problems: Problems,
        *,
        limits: ExpressionLimits,
        faults: Faults,
    ) -> None:
        self._concepts, self._types, self._functions = concepts, types, functions
        self._problems, self._limits, self._faults = problems, limits, faults

    def relationships(self, texts: list[RelationshipText]) -> dict[str, tuple[Relationship, ...]]:
        found: dict[str, list[Relationship]] = {}
        for each in (*self._parts(), *(each for text in texts for each in self._relationship(text))):
            of_name = found.setdefault(each.name, [])
            first = next((other for other in of_name if self._same(each, other)), None)
            if first is None:
                of_name.append(each)
            else:
                self._ambiguous(each, first.location, f"`containers:` ({first.left.concept})")
        return {name: tuple(found[name]) for name in sorted(found)}

    def measures(self, texts: list[RelationshipText]) -> dict[str, tuple[ConceptMeasure, ...]]:
        found: dict[str, list[ConceptMeasure]] = {}
        for each in (each for text in texts for each in self._measure(text)):
            of_name = found.setdefault(each.name, [])
            first = next(
                (other for other in of_name if self._meet(each.left, other.left, each.right, other.right)), None
            )
            if first is None:
                of_name.append(each)
            else:
                self._ambiguous(each, first.location, "")
        return {name: tuple(found[name]) for name in sorted(found)}

    # ── of each kind ──────────────────────────────────────────────────────────────────────────────

    def _parts(self) -> Iterator[Relationship]:
        """Every concept is part of its container, and of what that is part of; more special ones by being members."""
        for part in self._concepts.containers:
            for above in containers_of(part, self._concepts.containers):
                ends = (
                    ConceptAttribute(concept=part, attribute=above),
                    ConceptAttribute(concept=above, attribute=IDENTITY),
                )
                if not self._inherits(part, above) and all(map(self._type, ends)):
                    test = self._checked(f"{LEFT} = {RIGHT}", *ends, None)
                    if isinstance(test, Definition):
                        yield Relationship(name=PART, left=ends[0], right=ends[1], function="=", test=test)

    def _inherits(self, part: str, container: str) -> bool:
        """Whether a more general concept is part of the same container: the relationship is that one's, then."""
        general = (name for name, each in self._concepts.by_name.items() if name != part and part in each.members)
        return any(container in containers_of(name, self._concepts.containers) for name in general)

    def _relationship(self, text: RelationshipText) -> Iterator[Relationship]:
        parameter = self._parameter(text)
        expression = self._expression(text, parameter)
        if expression is None or (text.parameter is not None and parameter is None):
            return
        for left, right in self._ends(text):
            test = self._test(text, expression, left, right, parameter)
            if test is not None:
                yield Relationship(
                    name=text.name,
                    left=left,
                    right=right,
                    function=text.function.text,
                    test=test,
                    parameter=parameter,
                    symmetric=text.symmetric,
                    location=text.location,
                )

    def _measure(self, text: RelationshipText) -> Iterator[ConceptMeasure]:
        expression = self._expression(text, None)
        unit = self._unit(text.unit)
        if expression is None or unit is None:
            return
        result = None if text.unit is None else Variable(type=DOUBLE, unit=unit, optional=True)
        for left, right in self._ends(text):
            value = self._value(text, expression, left, right, result)
            if value is not None:
                yield ConceptMeasure(
                    name=text.name,
                    left=left,
                    right=right,
                    function=text.function.text,
                    value=value,
                    location=text.location,
                )

    # ── ends ──────────────────────────────────────────────────────────────────────────────────────

    def _ends(self, text: RelationshipText) -> list[tuple[ConceptAttribute, ConceptAttribute]]:
        """All pairs that are meant: of a group without the attribute itself, those of its members."""
        lefts, rights = (list(self._alternatives(text, each)) for each in text.ends)
        if text.symmetric and text.ends[0].text == text.ends[1].text:
            return list(combinations_with_replacement(lefts, 2))
        return list(product(lefts, rights))

    def _alternatives(self, text: RelationshipText, end: ScalarNode) -> Iterator[ConceptAttribute]:
        concept, dot, attribute = end.text.rpartition(".")
        if not dot:
            reason = f"`{end.text}` names no attribute of a concept"
            self._problems.add(BAD_ENDS(end.location, name=text.name, reason=reason))
        elif concept not in self._concepts.by_name:
            similar = nearest(concept, self._concepts.by_name)
            self._problems.add(UNKNOWN_CONCEPT(end.location, name=concept, nearest=similar))
        else:
            yield from self._with_attribute(concept, attribute, end)

    def _with_attribute(self, name: str, attribute: str, end: ScalarNode) -> Iterator[ConceptAttribute]:
        concept = self._concepts.by_name[name]
        if concept.attribute(attribute) is not None:
            yield ConceptAttribute(concept=name, attribute=attribute)
        elif concept.group:
            for member in self._concepts.below[name]:
                yield from self._with_attribute(member, attribute, end)
        elif attribute not in self._concepts.faulty.get(name, ()):
            known = tuple(each.name for each in concept.attributes)
            similar = nearest(attribute, known)
            self._problems.add(
                UNKNOWN_CONCEPT_ATTRIBUTE(end.location, concept=name, name=attribute, nearest=similar, known=known)
            )

    def _type(self, end: ConceptAttribute) -> Variable | None:
        attribute = self._concepts.by_name[end.concept].attribute(end.attribute)
        if attribute is None:
            return None
        return Variable(type=attribute.type, unit=attribute.unit, optional=attribute.name != IDENTITY)

    # ── functions ─────────────────────────────────────────────────────────────────────────────────

    def _expression(self, text: RelationshipText, parameter: RelationshipParameter | None) -> str | None:
        """The condition or value as text."""
        name, function = text.function.text, self._function(text.function.text)
        if name in _BUILT_IN:
            expression, needs = _BUILT_IN[name]
            count = 3 if needs else 2
        elif function is not None:
            count = len(function.parameters)
            expression = f"{function.name}({', '.join((LEFT, RIGHT, '{parameter}')[:count])})"
        else:
            if name.lower() not in self._faults.functions:
                similar = nearest(name, (*FUNCTIONS, *self._functions))
                problem = UNKNOWN_RELATIONSHIP_FUNCTION(
                    text.function.location, name=text.name, function=name, nearest=similar, known=FUNCTIONS
                )
                self._problems.add(problem)
            return None
        given = 2 + (text.parameter is not None)
        if count != given:
            self._unfit_parameter(text, name, count, given)
            return None
        return expression.format(parameter=parameter.name if parameter is not None else "")

    def _function(self, name: str) -> Definition | None:
        return next((each for known, each in self._functions.items() if known.lower() == name.lower()), None)

    def _parameter(self, text: RelationshipText) -> RelationshipParameter | None:
        if text.parameter is None:
            return None
        name, unit = text.parameter.name, self._unit(text.parameter.unit)
        if not ATTRIBUTE_NAME.fullmatch(name.text) or name.text.upper() in KEYWORDS or name.text in (LEFT, RIGHT):
            reason = f"`{name.text}` cannot be the name of a parameter"
            remedy = "Use letters, digits and `_`, and no word such as `left`, `right` or `and`."
            self._problems.add(UNFIT_FOR_FUNCTION(name.location, name=text.name, reason=reason, remedy=remedy))
            return None
        return None if unit is None else RelationshipParameter(name=name.text, unit=unit)

    def _unit(self, scalar: ScalarNode | None) -> Unit | None:
        if scalar is None:
            return NO_UNIT
        try:
            return self._types.units.parse(scalar.text)
        except UnknownUnit as error:
            self._problems.add(UNKNOWN_UNIT(scalar.location, unit=scalar.text, nearest=error.nearest))
            return None

    def _test(
        self,
        text: RelationshipText,
        expression: str,
        left: ConceptAttribute,
        right: ConceptAttribute,
        parameter: RelationshipParameter | None,
    ) -> Definition | None:
        found = self._checked(expression, left, right, parameter, Variable(type=BOOLEAN, optional=True), text)
        if isinstance(found, Definition):
            return found
        self._refuse(text, left, right, found)
        return None

    def _value(
        self,
        text: RelationshipText,
        expression: str,
        left: ConceptAttribute,
        right: ConceptAttribute,
        result: Variable | None,
    ) -> Definition | None:
        found = self._checked(expression, left, right, None, result, text)
        if not isinstance(found, Definition):
            self._refuse(text, left, right, found)
            return None
        if isinstance(plain(found.result.type), Struct | ListOf):
            given = format_type(found.result.type) or "a struct"
            self._problems.add(MEASURE_UNFIT(text.function.location, name=text.name, found=given))
            return None
        return found

    def _checked(
        self,
        expression: str,
        left: ConceptAttribute,
        right: ConceptAttribute,
        parameter: RelationshipParameter | None,
        result: Variable | None = None,
        text: RelationshipText | None = None,
    ) -> Definition | tuple[Problem, ...]:
        """The expression as a definition, or what is wrong with it."""
        variables = {LEFT: self._type(left), RIGHT: self._type(right)}
        if parameter is not None:
            variables[parameter.name] = Variable(type=DOUBLE, unit=parameter.unit)
        parameters = tuple((name, each) for name, each in variables.items() if each is not None)
        scope = NameScope(
            variables=dict(parameters),
            types=self._types,
            units=self._types.units,
            functions=self._functions,
            limits=self._limits,
        )
        locate = _everything_at(text.function.location if text is not None else None)
        if result is None:
            checked = check_bounded(expression, scope, locate)
        else:
            checked = check_result(expression, scope, result, locate)
        if checked.node is None:
            used = [each.type for _, each in parameters]
            return tuple(each for each in checked.problems if each.is_error and not self._faults.explain(each, *used))
        return Definition(
            name=text.name if text is not None else PART,
            parameters=parameters,
            result=result or _result(checked.node),
            body=checked.node,
        )

    # ── problems ──────────────────────────────────────────────────────────────────────────────────

    def _refuse(
        self, text: RelationshipText, left: ConceptAttribute, right: ConceptAttribute, found: tuple[Problem, ...]
    ) -> None:
        for problem in found:
            self._problems.add(
                RELATIONSHIP_UNFIT(
                    text.function.location,
                    cause=problem,
                    name=text.name,
                    function=text.function.text,
                    left=str(left),
                    left_type=self._shown(left),
                    right=str(right),
                    right_type=self._shown(right),
                    remedy=""
                    if problem.hint
                    else "Name a function that takes values of these types, or other attributes.",
                )
            )

    def _shown(self, end: ConceptAttribute) -> str:
        variable = self._type(end)
        assert variable is not None  # ends are those of attributes that are there
        return f"{format_type(variable.type)} {variable.unit}".strip()

    def _unfit_parameter(self, text: RelationshipText, function: str, takes: int, given: int) -> None:
        if takes not in (2, 3):
            reason = f"`{function}` takes {takes} arguments"
            remedy = "The function of a relationship takes the two values, and one more if there is a parameter."
        elif given == 3:
            reason = f"`{function}` takes the two values and no parameter"
            remedy = "Leave `parameter` out, or name a function that takes one."
        else:
            reason = f"`{function}` takes a third argument beside the two values"
            remedy = "Say what policies give it, as in `parameter: {name: distance, unit: m}`."
        self._problems.add(UNFIT_FOR_FUNCTION(text.function.location, name=text.name, reason=reason, remedy=remedy))

    def _same(self, one: Relationship, other: Relationship) -> bool:
        """Whether there are two concepts for which both could be meant."""
        if self._meet(one.left, other.left, one.right, other.right):
            return True
        either = one.symmetric or other.symmetric
        return either and self._meet(one.left, other.right, one.right, other.left)

    def _meet(
        self,
        left: ConceptAttribute,
        other_left: ConceptAttribute,
        right: ConceptAttribute,
        other_right: ConceptAttribute,
    ) -> bool:
        return self._overlap(left, other_left) and self._overlap(right, other_right)

    def _overlap(self, one: ConceptAttribute, other: ConceptAttribute) -> bool:
        concepts = self._concepts.by_name
        return not set(concepts[one.concept].members).isdisjoint(concepts[other.concept].members)

    def _ambiguous(self, each: Relationship | ConceptMeasure, first: Location | None, otherwise: str) -> None:
        place = str(first) if first is not None else otherwise
        self._problems.add(
            RELATIONSHIP_AMBIGUOUS(
                each.location, name=each.name, left=str(each.left), right=str(each.right), first=place
            )
        )


def _result(node: Node) -> Variable:
    return Variable(type=node.type, unit=node.unit, optional=True)


def _everything_at(place: Location | None) -> Locate:
    """The expression is made here, so all of it stands where its function is named."""
    somewhere = place or Location(file="ontology.yaml")
    return lambda offset, length: somewhere
