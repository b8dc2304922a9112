"""Policy text → a checked policy, or everything that is wrong with it.

Names are looked up in the ontology, conditions become relations and then clauses. What is asked of a policy as a whole
is asked here: that something can trigger it, that every condition is connected with events, that sequences are of
things that happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import assert_never

from situ.lang.catalogue import (
    ALIAS_TWICE,
    ALIAS_UNUSED,
    CONSTRAINT_ALONE,
    CONSTRAINT_IN_SEQUENCE,
    CONSUMPTION_UNUSED,
    KEPT_TOO_LONG,
    NEVER_HOLDS,
    NEVER_MET,
    NOTHING_TRIGGERS,
    UNKNOWN_CONCEPT,
)
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.policies.actions.resolve import BoundAliases, resolve_action
from situ.policies.check import normal_form as resolved
from situ.policies.check.domain import Domain, members
from situ.policies.check.normal_form import to_normal_form
from situ.policies.check.relations import RelationChecker
from situ.policies.check.satisfiability import dead_conditions, exclude_each_other, renamed
from situ.policies.language import syntax
from situ.policies.language.print import print_policy, print_property
from situ.policies.language.syntax import ConsumptionMode, PolicyText, When
from situ.policies.logic_tree import duration_text
from situ.policies.model import (
    IT,
    LEFT,
    Alias,
    Clause,
    ConditionLiteral,
    ConditionPart,
    Policy,
    PolicyAction,
    Relation,
    RelationKind,
    RelationLiteral,
    SequenceLiteral,
)
from situ.policies.ontology.model import IDENTITY, Concept, ConceptAttribute

MOST_REPEATED = 1_000_000
"""How often a value that a push source keeps may count again."""


def check_policy(text: PolicyText, domain: Domain, problems: Problems, *, name: str = "") -> Policy | None:
    """The policy; None if it has errors, which are reported. ``name`` is that of one that does not say its own."""
    found = Problems()
    policy = _Checking(text, domain, found).policy(name)
    problems.extend(found)
    return None if found.errors else policy


class _Checking:
    def __init__(self, text: PolicyText, domain: Domain, problems: Problems) -> None:
        self.written, self.text = text, domain.spelled(text)
        self.domain, self.problems = domain, problems
        self.concepts = self._concepts()
        self.relations = RelationChecker(domain, self.concepts, problems)
        self.window = _microseconds(text.window, domain.window)
        self.places = 0

    def policy(self, name: str) -> Policy | None:
        aliases = self._aliases()
        conditions = self._condition(self.text.conditions)
        self._check_unused()
        normal = None if conditions is None else self._normal_form(conditions, aliases)
        actions = self._actions(None if normal is None else normal[1])
        if normal is None:
            return None
        parts, clauses = normal
        text = self.text
        return Policy(
            name=text.name.text if text.name is not None else name,
            aliases=aliases,
            conditions=parts,
            clauses=clauses,
            window=self.window,
            hold=_microseconds(text.hold, 2 * self.window),
            lateness=_microseconds(text.lateness, -1),
            consumption=text.consumption or ConsumptionMode.CHRONICLE,
            when=text.when or When.OPENING,
            actions=actions,
            text=print_policy(self.written),
            location=text.location,
        )

    # ── concepts ──────────────────────────────────────────────────────────────────────────────────

    def _concepts(self) -> dict[str, Concept | None]:
        """By alias; None for one that is reported: what is said about the alias cannot be judged."""
        found: dict[str, Concept | None] = {}
        first: dict[str, Location | None] = {}
        known = self.domain.ontology.concepts
        for each in self.text.concepts:
            name, alias = each.concept, each.alias
            if name.text not in known:
                self.problems.add(UNKNOWN_CONCEPT(name.location, name=name.text, nearest=nearest(name.text, known)))
            if alias.text in found:
                self.problems.add(ALIAS_TWICE(alias.location, name=alias.text, first=str(first[alias.text])))
                continue
            found[alias.text], first[alias.text] = known.get(name.text), alias.location
        return found

    def _aliases(self) -> tuple[Alias, ...]:
        return tuple(
            Alias(
                name=each.alias.text,
                concept=concept.name,
                constraint=self.relations.constraint(each.alias.text, concept, each.properties),
                text=" and ".join(map(print_property, each.properties)),
            )
            for each in self.text.concepts
            if (concept := self.domain.ontology.concepts.get(each.concept.text)) is not None
        )

    def _check_unused(self) -> None:
        for each in self.text.concepts:
            if each.alias.text not in self.relations.used:
                self.problems.add(ALIAS_UNUSED(each.alias.location, name=each.alias.text))

    # ── conditions ────────────────────────────────────────────────────────────────────────────────

    def _condition(self, written: syntax.Condition) -> resolved.ResolvedCondition | None:
        """None if a part has a problem; all parts are looked at."""
        place = written.location
        match written:
            case syntax.RelationText():
                return self._holds(self.relations.relation(written), written)
            case syntax.Comparison():
                return self._holds(self.relations.comparison(written), written)
            case syntax.AllOf(parts=parts):
                return None if (below := self._all(parts)) is None else resolved.ResolvedAll(below, location=place)
            case syntax.AnyOf(parts=parts):
                return None if (below := self._all(parts)) is None else resolved.ResolvedAny(below, location=place)
            case syntax.FollowedBy(first=first, second=second, within=within):
                before, after = self._condition(first), self._condition(second)
                if before is None or after is None:
                    return None
                bound = None if within is None else _microseconds(within, 0)
                return resolved.ResolvedSequence(before, after, bound, location=place)
            case _:
                assert_never(written)

    def _holds(
        self, relation: Relation | None, written: syntax.RelationText | syntax.Comparison
    ) -> resolved.ResolvedCondition | None:
        """Literals are numbered as they are written: two that read the same are two."""
        if relation is None:
            return None
        self.places += 1
        return resolved.ResolvedRelation(
            RelationLiteral(relation, written.negated, self.places), location=written.location
        )

    def _all(self, parts: Iterable[syntax.Condition]) -> tuple[resolved.ResolvedCondition, ...] | None:
        found = [self._condition(part) for part in parts]
        whole = tuple(each for each in found if each is not None)
        return whole if len(whole) == len(found) else None

    # ── actions ───────────────────────────────────────────────────────────────────────────────────

    def _actions(self, clauses: tuple[Clause, ...] | None) -> tuple[PolicyAction, ...]:
        known = self.domain.actions
        if known is None:
            return tuple(_action(each) for each in self.text.actions)
        concepts = {alias: concept for alias, concept in self.concepts.items() if concept is not None}
        bound, types = BoundAliases.of(concepts, clauses), self.domain.types
        return tuple(resolve_action(each, known, bound, types, self.problems) for each in self.text.actions)

    # ── the policy as a whole ─────────────────────────────────────────────────────────────────────

    def _normal_form(
        self, conditions: resolved.ResolvedCondition, aliases: Iterable[Alias]
    ) -> tuple[tuple[ConditionPart, ...], tuple[Clause, ...]] | None:
        self.problems.extend(_constraints_in_sequences(conditions))
        places = dict(_places(conditions))
        self.problems.extend(_unconnected(places))
        self.problems.extend(self._kept_too_long(places))
        kinds = {relation.kind for relation in places}
        if self.text.consumption is not None and RelationKind.CORRELATION not in kinds:
            self.problems.add(CONSUMPTION_UNUSED(self.text.location, mode=self.text.consumption.value))
        try:
            parts, clauses = to_normal_form(conditions, self.window, self.domain.limits.literals)
        except SituError as error:
            self.problems.extend(error.problems)
            return None
        if not any(_happens(literal) for clause in clauses for literal in clause):
            self.problems.add(self._nothing_triggers(clauses, conditions))
        needed = [
            only.relation
            for (only, *more) in clauses
            if not more and isinstance(only, RelationLiteral) and not only.negated
        ]
        self.problems.extend(_never_together(needed, aliases, places))
        written = dict(_written(conditions))
        for dead in dead_conditions(parts, self.window):
            first = dead.literal.first if isinstance(dead.literal, SequenceLiteral) else dead.literal
            self.problems.add(NEVER_MET(written[first.place], reason=dead.reason))
        return parts, clauses

    def _kept_too_long(self, places: dict[Relation, Location | None]) -> Iterator[Problem]:
        """A value that is kept counts again after each window: a short one is over very often in a long time."""
        told: set[str] = set()
        for relation, place in places.items():
            for side in relation.sides:
                concept = self.concepts[side.alias]
                for member in members(concept) if concept is not None and side.event else ():
                    push, keep = self.domain.kept.get(ConceptAttribute(concept=member, attribute=side.event), ("", 0))
                    if keep // self.window > MOST_REPEATED and push not in told:
                        told.add(push)
                        yield KEPT_TOO_LONG(
                            place,
                            push=push,
                            keep=duration_text(keep),
                            window=duration_text(self.window),
                            count=f"{keep // self.window:,}",
                            most=f"{MOST_REPEATED:,}",
                        )

    def _nothing_triggers(self, clauses: tuple[Clause, ...], conditions: resolved.ResolvedCondition) -> Problem:
        place = next(_places(conditions))[1]
        if not clauses:
            remedy = "Say something that can be true or not."
            return NOTHING_TRIGGERS(place, reason="its conditions are always met", remedy=remedy)
        literals = [literal for clause in clauses for literal in clause]
        positive = [each.relation for each in literals if isinstance(each, RelationLiteral) and not each.negated]
        if not positive:
            reason = "all its conditions are about what does not happen"
            relation = next(part.relation for each in literals for part in _parts(each))
            remedy = f"Add what happens, as in `{relation.text}`, for something to be absent from."
            return NOTHING_TRIGGERS(place, reason=reason, remedy=remedy)
        reason = "no condition that is not negated has an event-based attribute"
        return NOTHING_TRIGGERS(place, reason=reason, remedy=self._would_have_to_be(positive))

    def _would_have_to_be(self, relations: list[Relation]) -> str:
        wanted: dict[str, None] = {}
        general: dict[str, None] = {}
        for relation in relations:
            for side in relation.sides:
                concept = self.concepts[side.alias]
                assert concept is not None  # there is a relation
                for attribute in (each for each in side.attributes if each != IDENTITY):
                    wanted.setdefault(f"`{concept.name}.{attribute}`")
                    if above := self.domain.more_general(concept, attribute):
                        general.setdefault(
                            f" Events bring `{above}.{attribute}`, but not every {above} is a {concept.name}."
                        )
        shown = " or ".join(list(wanted)[:6])
        return f"A push source would have to feed {shown}.{''.join(general)}"


def _microseconds(written: timedelta | None, otherwise: int) -> int:
    return otherwise if written is None else written // timedelta(microseconds=1)


def _action(written: syntax.ActionText) -> PolicyAction:
    return PolicyAction(name=" ".join(word.text for word in written.words), location=written.location)


def _parts(literal: ConditionLiteral) -> tuple[RelationLiteral, ...]:
    return literal.parts if isinstance(literal, SequenceLiteral) else (literal,)


def _happens(literal: ConditionLiteral) -> bool:
    """Whether a literal produces occurrences in time."""
    return any(not part.negated and part.relation.kind is not RelationKind.CONSTRAINT for part in _parts(literal))


def _written(condition: resolved.ResolvedCondition) -> Iterator[tuple[int, Location | None]]:
    """Where each literal is written, by its number."""
    match condition:
        case resolved.ResolvedRelation(literal=literal, location=location):
            yield literal.place, location
        case resolved.ResolvedAll(parts=parts) | resolved.ResolvedAny(parts=parts):
            for part in parts:
                yield from _written(part)
        case resolved.ResolvedSequence(first=first, second=second):
            yield from _written(first)
            yield from _written(second)


def _places(condition: resolved.ResolvedCondition) -> Iterator[tuple[Relation, Location | None]]:
    """Every relation with where it stands, in order."""
    match condition:
        case resolved.ResolvedRelation(literal=literal, location=location):
            yield literal.relation, location
        case resolved.ResolvedAll(parts=parts) | resolved.ResolvedAny(parts=parts):
            for part in parts:
                yield from _places(part)
        case resolved.ResolvedSequence(first=first, second=second):
            yield from _places(first)
            yield from _places(second)


def _constraints_in_sequences(condition: resolved.ResolvedCondition) -> Iterator[Problem]:
    match condition:
        case resolved.ResolvedSequence():
            for relation, place in _places(condition):
                if relation.kind is RelationKind.CONSTRAINT:
                    read = [f"`{side.alias}.{each}`" for side in relation.sides for each in side.attributes]
                    yield CONSTRAINT_IN_SEQUENCE(place, text=relation.text, attributes=" or ".join(read))
        case resolved.ResolvedAll(parts=parts) | resolved.ResolvedAny(parts=parts):
            for part in parts:
                yield from _constraints_in_sequences(part)


def _never_together(
    needed: Iterable[Relation], aliases: Iterable[Alias], places: dict[Relation, Location | None]
) -> Iterator[Problem]:
    """Of what must hold of one instance: what excludes its properties, or what must hold of it at any time.

    Events come one after the other, and one may say the opposite of another: each is looked at by itself.
    """
    for alias in aliases:
        about = [each for each in needed if each.aliases == (alias.name,)]
        lasting = [each for each in about if each.kind is RelationKind.CONSTRAINT]
        given = [] if alias.constraint is None else [renamed(alias.constraint, IT, LEFT)]
        said = [f"{alias.concept} {alias.name} ({alias.text})"] if given else []
        for place, relation in enumerate(about):
            before = [each for each in about[:place] if each in lasting] if relation in lasting else lasting
            if exclude_each_other([*given, *(each.test for each in before), relation.test]):
                shown = " and ".join([*said, *(each.text for each in before), relation.text])
                yield NEVER_HOLDS(places[relation], text=shown)
                break


def _unconnected(places: dict[Relation, Location | None]) -> Iterator[Problem]:
    """Relations without events that share no alias with one that has them, not even through each other."""
    eventful = [relation for relation in places if relation.kind is not RelationKind.CONSTRAINT]
    if not eventful:
        return  # then nothing triggers the policy, which says more
    reached = {alias for relation in eventful for alias in relation.aliases}
    left = [relation for relation in places if relation.kind is RelationKind.CONSTRAINT]
    while connected := [each for each in left if reached.intersection(each.aliases)]:
        reached.update(alias for each in connected for alias in each.aliases)
        left = [each for each in left if each not in connected]
    for relation in left:
        shown = " or ".join(f"`{alias}`" for alias in relation.aliases)
        yield CONSTRAINT_ALONE(places[relation], text=relation.text, aliases=shown)
