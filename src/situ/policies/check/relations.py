"""Single conditions of a policy → relations: names looked up, a test over the instances of their aliases.

`reach_of` bounds how far apart two points may be, `ExpressionPieces` leads from a place in an expression back to the
policy, `RelationChecker` makes properties, relations and comparisons of what is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from situ.lang.catalogue import (
    COMPARED_OUTSIDE,
    CONDITION_UNFIT,
    EVENT_BASED_PROPERTY,
    NEVER_HOLDS,
    NO_RELATION,
    NOT_JOINED,
    PARAMETER_MISSING,
    PARAMETER_SUPERFLUOUS,
    SAME_ALIAS,
    SEVERAL_EVENT_BASED,
    UNKNOWN_ALIAS,
    UNKNOWN_CONCEPT_ATTRIBUTE,
    UNKNOWN_MEASURE,
    UNKNOWN_RELATIONSHIP,
)
from situ.lang.expr.checker.check import check_bounded
from situ.lang.expr.scope import Definition, NameScope
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import And, Apply, Compare, Literal, Node, Or, Read
from situ.lang.problems import Location, Problem, Problems, nearest
from situ.lang.records import replace
from situ.lang.types.model import BOOLEAN
from situ.lang.units import Unit
from situ.policies.check.domain import Domain
from situ.policies.check.satisfiability import is_impossible, outside_domain
from situ.policies.language import syntax
from situ.policies.language.print import print_condition, print_property
from situ.policies.language.syntax import ValueText
from situ.policies.model import IT, LEFT, RIGHT, Reach, Relation, Side
from situ.policies.ontology.model import Concept, ConceptAttribute, ConceptMeasure, Relationship

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How far apart two points may be for a relation to hold: what a grid needs to know. Found where a test says it plainly,
# ``distance(left.p, right.p) <= c`` in the plane, alone or joined with more by AND, or in every part of an OR. Where
# nothing is found, nothing is promised.


def reach_of(test: Node) -> Reach | None:
    """The reach of a simplified test, if it is surely bounded."""
    match test:
        case Compare(op="<" | "<=", left=Apply(overload=overload, args=args), right=Literal(value=float() as most)):
            return _between(args, most) if overload.name == "distance" and most > 0 else None
        case And(args=args):
            found = [reach for arg in args if (reach := reach_of(arg)) is not None]
            return min(found, key=lambda each: each.distance, default=None)
        case Or(args=args):
            each_of = [reach_of(arg) for arg in args]
            known = [reach for reach in each_of if reach is not None]
            same = len({(reach.left, reach.right) for reach in known}) == 1
            return max(known, key=lambda each: each.distance) if same and len(known) == len(each_of) else None
        case _:
            return None


def _between(args: tuple[Node, ...], most: float) -> Reach | None:
    """Of coordinates as they are read: one that is converted is in another unit than the column it comes from."""
    match args:
        case (Read() as x1, Read() as y1, Read() as x2, Read() as y2):
            first, second = (x1.path, y1.path), (x2.path, y2.path)
            variables = x1.variable, y1.variable, x2.variable, y2.variable
            reach = Reach(left=first, right=second, distance=most)
            if variables == (LEFT, LEFT, RIGHT, RIGHT):
                return reach
            return replace(reach, left=second, right=first) if variables == (RIGHT, RIGHT, LEFT, LEFT) else None
        case _:
            return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Expressions made of pieces of a policy, and the way back from a place in them to one in the policy.


class ExpressionPieces:
    """The text of an expression; ``place`` is that of whatever has none of its own."""

    def __init__(self, place: Location | None) -> None:
        self.text = ""
        self._place = place or Location(file="policy")
        self._pieces: list[tuple[int, int, Location, bool]] = []

    def add(self, text: str, place: Location | None = None) -> ExpressionPieces:
        if place is not None:
            self._pieces.append((len(self.text), len(self.text) + len(text), place, False))
        self.text += text
        return self

    def value(self, value: ValueText) -> ExpressionPieces:
        """A value stands in the policy as it stands here, so problems inside it have their own place."""
        if value.location is not None:
            exact = value.location.length == len(value.text)
            self._pieces.append((len(self.text), len(self.text) + len(value.text), value.location, exact))
        self.text += value.text
        return self

    def locate(self, offset: int, length: int) -> Location:
        for start, end, place, exact in self._pieces:
            if start <= offset and offset + length <= end:
                return replace(place, column=place.column + offset - start, length=max(length, 1)) if exact else place
        return self._place


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Relations. Conditions become expressions over ``left`` and ``right``, checked like every other, so types and units of
# attributes and values are held against each other; problems point at where the value stands in the policy.

_TEST = "_test"
"""Under which name a relationship stands in the scope of its own condition; measures have a number behind it."""


class RelationChecker:
    """The conditions of one policy, whose aliases are known. An alias whose concept is not known is None."""

    def __init__(self, domain: Domain, aliases: Mapping[str, Concept | None], problems: Problems) -> None:
        self.domain, self.aliases, self.problems = domain, aliases, problems
        self.used: set[str] = set()
        self.spellings: dict[tuple[str, ...], str] = {}
        self.made: dict[str, Relation] = {}

    # ── properties ────────────────────────────────────────────────────────────────────────────────

    def constraint(self, alias: str, concept: Concept, properties: Sequence[syntax.PropertyText]) -> Node | None:
        """What the instance must satisfy, over ``it``; None if that is nothing, or if it is not understood."""
        scope = self.domain.scope([(IT, concept)])
        found = [self._property(alias, concept, each, scope) for each in properties]
        tests = tuple(each for each in found if each is not None)
        if not properties or len(tests) < len(properties):
            return None
        whole = simplify(And(tests) if len(tests) > 1 else tests[0])
        if is_impossible(whole):
            text = " and ".join(map(print_property, properties))
            self.problems.add(NEVER_HOLDS(properties[0].location, text=text))
            return None
        return whole

    def _property(self, alias: str, concept: Concept, written: syntax.PropertyText, scope: NameScope) -> Node | None:
        name = written.attribute
        if not self._has(concept, name):
            return None
        if self.domain.brings(concept, name.text):
            shown = f"{alias}.{print_property(written)}"
            problem = EVENT_BASED_PROPERTY(name.location, attribute=name.text, concept=concept.name, condition=shown)
            self.problems.add(problem)
            return None
        text = ExpressionPieces(written.location).add(f"{IT}.{_quoted(name.text)}", name.location)
        text.add(f" {written.operator} ").value(written.value)
        return self._checked(text, scope, print_property(written))

    # ── relations ─────────────────────────────────────────────────────────────────────────────────

    def relation(self, written: syntax.RelationText) -> Relation | None:
        """``A is within 5 m of B``, whatever its sign; None after reporting what is wrong with it."""
        concepts = self._concepts((written.left, written.right), written.relationship.text)
        if concepts is None:
            return None
        found = self._relationship(written, *concepts)
        if found is None or not self._check_parameter(found[0], written):
            return None
        relationship, turned = found
        if turned or (relationship.symmetric and self._comes_later(relationship, written)):
            written = replace(written, left=written.right, right=written.left)
        text = ExpressionPieces(written.location)
        text.add(f"{_TEST}({_attribute_text(LEFT, relationship.left)}, {_attribute_text(RIGHT, relationship.right)}")
        if written.parameter is not None:
            text.add(", ").value(written.parameter)
        text.add(")")
        reads = {LEFT: [relationship.left.attribute], RIGHT: [relationship.right.attribute]}
        names = {LEFT: written.left.text, RIGHT: written.right.text}
        shown = self._spelling(written)
        return self._made(text, shown, names, reads, {_TEST: relationship.test}, written.location)

    def _spelling(self, written: syntax.RelationText) -> str:
        """As where it stands first, with or without ``is`` and ``of``: relations are equal if they read the same."""
        parameter = written.parameter.text if written.parameter is not None else ""
        key = (written.left.text, written.relationship.text, parameter, written.right.text)
        return self.spellings.setdefault(key, print_condition(replace(written, negated=False)))

    def _relationship(
        self, written: syntax.RelationText, left: Concept, right: Concept
    ) -> tuple[Relationship, bool] | None:
        """The one that joins these concepts, and whether it does so in the other order."""
        name = written.relationship.text
        candidates = self.domain.ontology.relationships.get(name, ())
        if (found := self.domain.joining(candidates, left, right)) is not None:
            return found, False
        turned = self.domain.joining(candidates, right, left)
        if turned is not None and turned.symmetric:
            return turned, True
        place = written.relationship.location
        if not candidates:
            between = self._joining_names(self.domain.ontology.relationships, left, right)
            known = nearest(name, between) or nearest(name, self.domain.ontology.relationships)
            remedy = _known_between("relationship", between, left, right)
            self.problems.add(UNKNOWN_RELATIONSHIP(place, name=name, nearest=known, remedy=remedy))
        elif turned is not None:
            other = replace(written, left=written.right, right=written.left)
            self._not_joined(place, name, left, right, f"Write it the other way round: `{print_condition(other)}`.")
        else:
            self._not_joined(place, name, left, right, f"It joins {_ends(candidates)}.")
        return None

    def _comes_later(self, relationship: Relationship, written: syntax.RelationText) -> bool:
        """Both ways mean the same: the order is that of the concepts in the policy, if both ends take both."""
        order = list(self.aliases)
        left, right = self.aliases[written.left.text], self.aliases[written.right.text]
        assert left is not None
        assert right is not None
        return (
            order.index(written.right.text) < order.index(written.left.text)
            and self.domain.joining((relationship,), right, left) is not None
        )

    def _check_parameter(self, relationship: Relationship, written: syntax.RelationText) -> bool:
        name, given, wanted = relationship.name, written.parameter, relationship.parameter
        if given is None and wanted is not None:
            example = print_condition(replace(written, parameter=_example(wanted.unit), says_of=True))
            place = written.relationship.location
            self.problems.add(PARAMETER_MISSING(place, name=name, parameter=wanted.name, example=example))
            return False
        if given is not None and wanted is None:
            self.problems.add(PARAMETER_SUPERFLUOUS(given.location, name=name, value=given.text))
            return False
        return True

    # ── comparisons ───────────────────────────────────────────────────────────────────────────────

    def comparison(self, written: syntax.Comparison) -> Relation | None:
        """``distance(A, B) < 5 m``; None after reporting what is wrong with it."""
        operands = (written.left, written.right)
        named = [name for operand in operands for name in _aliases(operand)]
        known = [self._alias(name) for name in named]
        if any(each is None for each in known):
            return None
        order = list(self.aliases)
        aliases = sorted({name.text for name in named}, key=order.index)
        if not 1 <= len(aliases) <= 2:
            found = f"{len(aliases)} aliases: {', '.join(f'`{each}`' for each in aliases)}" if aliases else "constants"
            self.problems.add(NO_RELATION(written.location, found=found))
            return None
        names = dict(zip((LEFT, RIGHT), aliases, strict=False))
        variables = {alias: variable for variable, alias in names.items()}
        reads: dict[str, list[str]] = {variable: [] for variable in names}
        functions: dict[str, Definition] = {}
        text = ExpressionPieces(written.location)
        understood = [
            self._operand(written.left, variables, reads, functions, text),
            self._operand(written.right, variables, reads, functions, text.add(f" {written.operator} ")),
        ]
        if not all(understood):
            return None
        shown = print_condition(replace(written, negated=False))
        return self._made(text, shown, names, reads, functions, written.location, compares=True)

    def _operand(
        self,
        operand: syntax.Operand,
        variables: Mapping[str, str],
        reads: dict[str, list[str]],
        functions: dict[str, Definition],
        text: ExpressionPieces,
    ) -> bool:
        match operand:
            case syntax.ValueText():
                text.value(operand)
                return True
            case syntax.AttributeOf(alias=alias, attribute=attribute):
                concept = self.aliases[alias.text]
                assert concept is not None
                if not self._has(concept, attribute):
                    return False
                variable = variables[alias.text]
                reads[variable].append(attribute.text)
                text.add(
                    _attribute_text(variable, ConceptAttribute(concept=concept.name, attribute=attribute.text)),
                    operand.location,
                )
                return True
            case syntax.MeasureOf():
                measure = self._measure(operand)
                if measure is None:
                    return False
                left, right = variables[operand.left.text], variables[operand.right.text]
                reads[left].append(measure.left.attribute)
                reads[right].append(measure.right.attribute)
                name = f"{_TEST}{len(functions)}"
                functions[name] = measure.value
                text.add(
                    f"{name}({_attribute_text(left, measure.left)}, {_attribute_text(right, measure.right)})",
                    operand.location,
                )
                return True

    def _measure(self, written: syntax.MeasureOf) -> ConceptMeasure | None:
        concepts = self._concepts((written.left, written.right), written.measure.text)
        if concepts is None:
            return None
        name, place = written.measure.text, written.measure.location
        candidates = self.domain.ontology.measures.get(name, ())
        if (found := self.domain.joining(candidates, *concepts)) is not None:
            return found
        if not candidates:
            between = self._joining_names(self.domain.ontology.measures, *concepts)
            known = nearest(name, between) or nearest(name, self.domain.ontology.measures)
            remedy = _known_between("measure", between, *concepts)
            self.problems.add(UNKNOWN_MEASURE(place, name=name, nearest=known, remedy=remedy))
        elif self.domain.joining(candidates, *reversed(concepts)) is not None:
            other = f"{name}({written.right.text}, {written.left.text})"
            self._not_joined(place, name, *concepts, f"Write it the other way round: `{other}`.")
        else:
            self._not_joined(place, name, *concepts, f"It joins {_ends(candidates)}.")
        return None

    # ── what both become ──────────────────────────────────────────────────────────────────────────

    def _made(
        self,
        text: ExpressionPieces,
        shown: str,
        names: Mapping[str, str],
        reads: Mapping[str, Sequence[str]],
        functions: dict[str, Definition],
        place: Location | None,
        *,
        compares: bool = False,
    ) -> Relation | None:
        if shown in self.made:
            return self.made[shown]
        concepts = {variable: concept for variable, name in names.items() if (concept := self.aliases[name])}
        sides = [self._side(names[variable], concepts[variable], reads[variable], place) for variable in names]
        test = self._checked(text, self.domain.scope(concepts.items(), functions), shown)
        if test is None or any(side is None for side in sides):
            return None
        if is_impossible(test):
            self.problems.add(NEVER_HOLDS(place, text=shown))
            return None
        if compares and (outside := outside_domain(test)) is not None:
            verdict, read, why = outside
            attribute = f"{names[read.variable]}.{'.'.join(read.path)}"
            said = "true" if verdict else "untrue"
            self.problems.add(COMPARED_OUTSIDE(place, text=shown, verdict=said, attribute=attribute, domain=why))
        left, *right = (side for side in sides if side is not None)
        made = Relation(
            text=shown,
            left=left,
            right=right[0] if right else None,
            test=test,
            reach=reach_of(test),
            compares=compares,
        )
        self.made[shown] = made
        return made

    def _side(self, alias: str, concept: Concept, reads: Sequence[str], place: Location | None) -> Side | None:
        attributes = tuple(dict.fromkeys(reads))
        brought = [each for each in attributes if self.domain.brings(concept, each)]
        if len(brought) > 1:
            shown = " and ".join(f"`{each}`" for each in brought)
            self.problems.add(SEVERAL_EVENT_BASED(place, attributes=shown, alias=alias))
            return None
        return Side(alias=alias, attributes=attributes, event=brought[0] if brought else "")

    def _checked(self, text: ExpressionPieces, scope: NameScope, shown: str) -> Node | None:
        """The condition, simplified."""
        variables = tuple((name, str(each.type)) for name, each in scope.variables.items())
        key = (text.text, variables, tuple(map(id, scope.functions.values())))  # these live as long as the domain
        if (known := self.domain.checked.get(key)) is not None:
            return known
        checked = check_bounded(text.text, scope, text.locate, BOOLEAN)
        for problem in checked.problems:
            self.problems.add(_unfit(problem, shown) if problem.is_error else problem)
        node = None if checked.node is None else simplify(checked.node)
        if node is not None and not checked.problems:
            self.domain.checked[key] = node
        return node

    # ── names ─────────────────────────────────────────────────────────────────────────────────────

    def _alias(self, name: syntax.Name) -> Concept | None:
        self.used.add(name.text)
        if name.text not in self.aliases:
            meant = tuple(alias for alias, concept in self.aliases.items() if concept and concept.name == name.text)
            known = meant or nearest(name.text, self.aliases)
            self.problems.add(UNKNOWN_ALIAS(name.location, name=name.text, nearest=known))
        return self.aliases.get(name.text)

    def _concepts(self, names: tuple[syntax.Name, syntax.Name], what: str) -> tuple[Concept, Concept] | None:
        left, right = (self._alias(name) for name in names)
        if names[0].text == names[1].text and left is not None:
            self.problems.add(SAME_ALIAS(names[1].location, name=what, alias=names[1].text))
            return None
        return None if left is None or right is None else (left, right)

    def _has(self, concept: Concept, name: syntax.Name) -> bool:
        if concept.attribute(name.text) is not None:
            return True
        known = tuple(each.name for each in concept.attributes)
        self.problems.add(
            UNKNOWN_CONCEPT_ATTRIBUTE(
                name.location, concept=concept.name, name=name.text, nearest=nearest(name.text, known), known=known
            )
        )
        return False

    def _joining_names(
        self,
        known: Mapping[str, tuple[Relationship, ...]] | Mapping[str, tuple[ConceptMeasure, ...]],
        left: Concept,
        right: Concept,
    ) -> list[str]:
        return [name for name, each in known.items() if self.domain.joining(each, left, right) is not None]

    def _not_joined(self, place: Location | None, name: str, left: Concept, right: Concept, remedy: str) -> None:
        self.problems.add(NOT_JOINED(place, name=name, left=left.name, right=right.name, remedy=remedy))


def _aliases(operand: syntax.Operand) -> Iterable[syntax.Name]:
    match operand:
        case syntax.MeasureOf(left=left, right=right):
            return (left, right)
        case syntax.AttributeOf(alias=alias):
            return (alias,)
        case syntax.ValueText():
            return ()


def _attribute_text(variable: str, end: ConceptAttribute) -> str:
    return f"{variable}.{_quoted(end.attribute)}"


def _unfit(cause: Problem, shown: str) -> Problem:
    """Expressions leave it to whoever asks what to do about types that do not fit."""
    remedy = "" if cause.hint else "Write what is expected there; `situ explain types` shows what is declared."
    return CONDITION_UNFIT(cause.location, cause=cause, text=shown, remedy=remedy)


def _quoted(name: str) -> str:
    return f"`{name}`"


def _example(unit: Unit) -> syntax.ValueText:
    name = str(unit)
    shown = name if name.isalpha() else f"[{name}]" if name else ""
    return syntax.ValueText(f"5 {shown}".strip())


def _ends(candidates: Sequence[Relationship] | Sequence[ConceptMeasure]) -> str:
    return "; ".join(f"`{each.left.concept}` and `{each.right.concept}`" for each in candidates[:8])


def _known_between(what: str, names: Sequence[str], left: Concept, right: Concept) -> str:
    if not names:
        return f"The ontology has no {what} of `{left.name}` and `{right.name}`."
    return f"Between `{left.name}` and `{right.name}` there is {', '.join(f'`{name}`' for name in names[:8])}."
