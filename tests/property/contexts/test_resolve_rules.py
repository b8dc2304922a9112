"""Generated types and rules: the product resolves them as trying every rule at every place does."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations

from situ.contexts.model import IDENTITY, KEEP, Context, Direction, Pattern, Qualifier, Rule
from situ.contexts.patterns import Traversal, TraversalStep, matches, print_pattern, read_pattern
from situ.contexts.resolve_rules import (
    ResolvedPlace,
    RuleSet,
    converted_places,
    precedence_key,
    resolve_event_type,
)
from situ.lang.problems import Problems
from situ.lang.types.model import DOUBLE, STRING, Attribute, ListOf, Named, Struct, Type
from situ.lang.types.table import Types
from tests import interpretation_reference as reference
from tests.context_files import rank_rules
from tests.interpretation_reference import Level, Way
from tests.volume import seeds

TAG = Named("Tag", STRING)
BADGE = Named("Badge", TAG)
DEEPEST = 5
MOST_PLACES = 250
RULE_SETS = 5  # for each world of types


class World:
    """Types to depth 5 with several supertypes each, narrowed attributes and lists; and contexts with rules on them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.structs: list[Struct] = []
        self.events: list[Struct] = []
        deepest = self.dice.choice((1, 2, 3, 3, 4, 4, DEEPEST, DEEPEST, DEEPEST))
        lower: list[Struct] = []
        for layer in range(deepest):
            lower = self._layer(layer, lower)
        self.table: Sequence[Named | Struct] = (*self.structs, TAG, BADGE)
        small = [struct for struct in reversed(self.structs) if self._is_small(struct)]  # the deepest first
        candidates = [struct for struct in lower if struct in small] or small[:1]
        self.events = self.dice.sample(candidates, min(2, len(candidates)))
        self.types = Types(
            types={type.name: type for type in self.table}, events=frozenset(event.name for event in self.events)
        )
        self.ways = [way for event in self.events for way in self._ways(event)]

    def _layer(self, layer: int, lower: Sequence[Struct]) -> list[Struct]:
        made: list[Struct] = []
        for number in range(self.dice.randint(1, 5)):
            supers = self._supers(made)
            attributes = {each.name: each for above in reversed(supers) for each in above.attributes}
            for name, inherited in list(attributes.items()):
                narrower = [
                    each for each in self.structs if each not in made and reference.below_or_same(each, inherited.type)
                ]
                if narrower and self.dice.random() < 0.3:
                    attributes[name] = Attribute(name=name, type=self.dice.choice(narrower))
            for _ in range(self.dice.choice((0, 0, 1, 2) if supers else (1, 1, 2, 3))):
                name = self.dice.choice("abcdef")
                if name not in attributes:
                    attributes[name] = Attribute(name=name, type=self._type(lower))
            made.append(Struct(f"S{layer}{number}", tuple(attributes.values()), supers))
        self.structs += made
        return made

    def _supers(self, made: Sequence[Struct]) -> tuple[Struct, ...]:
        """Some that agree on the attributes they share."""
        supers: list[Struct] = []
        for struct in self.dice.sample(made, min(len(made), self.dice.choice((0, 1, 2, 2)))):
            pairs = ((a, b) for above in supers for a in above.attributes for b in struct.attributes)
            if all(a == b for a, b in pairs if a.name == b.name):
                supers.append(struct)
        return tuple(supers)

    def _type(self, lower: Sequence[Struct]) -> Type:
        roll = self.dice.random()
        type: Type = self.dice.choice((DOUBLE, STRING, TAG, BADGE))
        if lower and roll < 0.75:
            type = self.dice.choice(lower if roll < 0.65 else self.structs)
        if self.dice.random() < 0.25:
            type = ListOf(type)
        return ListOf(type) if isinstance(type, ListOf) and self.dice.random() < 0.15 else type

    def _is_small(self, event: Struct) -> bool:
        return all(number < MOST_PLACES for number, _ in enumerate(self._ways(event)))

    def _ways(self, event: Struct) -> Iterator[Way]:
        """All places of an event type."""
        waiting: list[Way] = [(Level("", False, event),)]
        while waiting:
            way = waiting.pop()
            yield way
            type = way[-1].type
            if isinstance(type, Struct):
                for attribute in type.attributes:
                    found = reference.dynamic_types(attribute.type, self.table)
                    waiting += [(*way, Level(attribute.name, False, each)) for each in found]
            elif isinstance(type, ListOf):
                found = reference.dynamic_types(type.element, self.table)
                waiting += [(*way[:-1], Level(way[-1].attribute, True, each)) for each in found]

    def pattern(self, way: Way | None = None) -> Pattern:
        """One that matches the place, or some place."""
        way = way or self.dice.choice(self.ways)
        n = len(way) - 1
        if n == 0 or self.dice.random() < 0.35:
            return Pattern(head=self._above(way[n].type))
        head = self._above(way[0].type)
        if self.dice.random() < 0.5:
            inner = [self._qualifier(way[level]) for level in range(1, n)]
            return Pattern(head=head, qualifiers=(*inner, self._attribute(way[n])))
        inner = [self._qualifier(way[level]) for level in range(1, self.dice.randint(1, n))]
        return Pattern(head=head, qualifiers=(*inner, Qualifier(type=self._above(way[n].type))))

    def _above(self, type: Type) -> Type:
        return type if self.dice.random() < 0.5 else self.dice.choice(list(reference.walk_up(type)))

    def _attribute(self, level: Level) -> Qualifier:
        return Qualifier(type=self._above(level.type), attribute=level.attribute, elements=level.elements)

    def _qualifier(self, level: Level) -> Qualifier:
        return self._attribute(level) if self.dice.random() < 0.5 else Qualifier(type=self._above(level.type))

    def context(self) -> Context:
        """A context with up to two ancestors, rules in each; some override, some keep what was before."""
        context: Context | None = None
        known: list[Pattern] = []
        for name in ("root", "child", "grandchild")[: self.dice.randint(1, 3)]:
            rules: list[Rule] = []
            for order in range(self.dice.randint(1, 6)):
                again = known and self.dice.random() < 0.25
                pattern = self.dice.choice(known) if again else self.pattern()
                known.append(pattern)
                keeps = context is not None and again and self.dice.random() < 0.5
                direction = Direction.IN if self.dice.random() < 0.1 else Direction.OUT
                function = KEEP if keeps else IDENTITY
                rules.append(Rule(direction=direction, pattern=pattern, function=function, context=name, order=order))
            context = Context(id=name, parent=context, types=self.types, rules=tuple(rules))
        assert context is not None
        return context


def traversal(way: Way) -> Traversal:
    first, *others = way
    assert isinstance(first.type, Struct)
    steps = (TraversalStep(attribute=level.attribute, elements=level.elements, type=level.type) for level in others)
    return Traversal(event=first.type, steps=tuple(steps))


def places(place: ResolvedPlace) -> Iterator[ResolvedPlace]:
    yield place
    for each in place.below:
        yield from places(each)


def resolved(place: ResolvedPlace) -> dict[Traversal, list[Rule]]:
    return {each.path: [each.rule, *each.beaten] if each.rule else [] for each in places(place)}


def worlds(seeds: range) -> Iterator[World]:
    return (World(seed) for seed in seeds)


def hold_equal(seeds: range) -> tuple[int, int, int, int]:
    """Rule sets in all, and with a place that a rule converts, where rules compete, and where one overrides another."""
    total = converted = competing = overriding = 0
    for world in worlds(seeds):
        for _ in range(RULE_SETS):
            context = world.context()
            rules, visible = RuleSet.of(context, Direction.OUT), reference.visible_rules(context, Direction.OUT)
            depths = reference.depth(context)
            found: dict[Traversal, list[Rule]] = {}
            for event in world.events:
                expected = reference.visit(event, visible, depths, world.table)
                place = resolve_event_type(event, rules, world.types)
                found = resolved(place)
                assert found == {traversal(way): matching for way, matching in expected.items()}
                check_prefixes([each.path for each in converted_places(place)])
            for path in world.dice.sample(list(found), min(5, len(found))):
                assert rank_rules(visible, path, depths.__getitem__) == found[path]
            total += 1
            converted += any(found.values())
            competing += any(len(matching) > 1 for matching in found.values())
            overriding += any(len({each.pattern for each in ranked}) < len(ranked) for ranked in found.values())
    return total, converted, competing, overriding


def check_prefixes(paths: Sequence[Traversal]) -> None:
    """None of them lies below another: neither of an attribute, nor of a list around it."""
    for a, b in combinations(paths, 2):
        shorter, longer = sorted((a.steps, b.steps), key=len)
        before, at = longer[: len(shorter)], longer[len(shorter) - 1 : len(shorter)]
        assert before != shorter
        if shorter and at[0].elements and before[:-1] == shorter[:-1]:
            whole = shorter[-1]
            assert (whole.attribute, isinstance(whole.type, ListOf)) != (at[0].attribute, True) or whole.elements


@seeds(range(60), range(100_000, 102_000))
def test_resolution_equals_the_reference(seeds: range) -> None:
    total, converted, competing, overriding = hold_equal(seeds)
    assert total == len(seeds) * RULE_SETS
    assert converted > 0.8 * total  # the test has something to tell apart
    assert competing > 0.3 * total
    assert overriding > 0.05 * total


@seeds(range(1000, 1025), range(1000, 1150))
def test_winner_does_not_depend_on_the_order_of_rules_with_different_patterns(seeds: range) -> None:
    for world in worlds(seeds):
        context = world.context()
        chain = list(context.chain)
        shuffled: Context | None = None
        for each in reversed(chain):
            shuffled = Context(id=each.id, parent=shuffled, types=each.types, rules=shuffle(each.rules, world.dice))
        assert shuffled is not None
        for event in world.events:
            expected = resolve_event_type(event, RuleSet.of(context, Direction.OUT), world.types)
            found = resolve_event_type(event, RuleSet.of(shuffled, Direction.OUT), world.types)
            assert outcome(found) == outcome(expected)


def shuffle(rules: Sequence[Rule], dice: random.Random) -> tuple[Rule, ...]:
    """The rules in another order, identical patterns among themselves in theirs."""
    waiting: dict[Pattern, list[Rule]] = {}
    for rule in rules:
        waiting.setdefault(rule.pattern, []).append(rule)
    patterns = [rule.pattern for rule in rules]
    dice.shuffle(patterns)
    again = (waiting[pattern].pop(0) for pattern in patterns)
    return tuple(
        Rule(direction=rule.direction, pattern=rule.pattern, function=rule.function, context=rule.context, order=order)
        for order, rule in enumerate(again)
    )


def outcome(place: ResolvedPlace) -> dict[Traversal, list[tuple[Pattern, str, str]]]:
    return {
        path: [(rule.pattern, rule.function, rule.context) for rule in ranked]
        for path, ranked in resolved(place).items()
    }


@seeds(range(2000, 2025), range(2000, 2150))
def test_different_patterns_never_tie(seeds: range) -> None:
    compared = 0
    for world in worlds(seeds):
        for way in world.dice.sample(world.ways, min(10, len(world.ways))):
            patterns = {world.pattern(way) for _ in range(8)}
            path = traversal(way)
            for a, b in combinations(patterns, 2):
                assert matches(a, path)
                assert precedence_key(a, path) != precedence_key(b, path)
                assert (precedence_key(a, path) < precedence_key(b, path)) == (reference.more_specific(a, b, way) < 0)
                compared += 1
    assert compared > 33 * len(seeds)


@seeds(range(3000, 3045), range(3000, 3300))
def test_pattern_that_says_more_wins(seeds: range) -> None:
    refined = 0
    for world in worlds(seeds):
        for way in world.dice.sample(world.ways, min(10, len(world.ways))):
            pattern, path = world.pattern(way), traversal(way)
            finer = refine(pattern, way, world.dice)
            assert matches(finer, path), (str(finer), str(pattern), str(path))
            if finer != pattern:
                assert precedence_key(finer, path) < precedence_key(pattern, path), (
                    str(finer),
                    str(pattern),
                    str(path),
                )
                refined += 1
    assert refined > 3 * len(seeds)


def refine(pattern: Pattern, way: Way, dice: random.Random) -> Pattern:
    """Some subtypes, some attributes named, something said where nothing was."""
    n = len(way) - 1
    said = [reference.said(pattern, way, level) for level in range(n + 1)]
    finer: list[Qualifier | None] = []
    for level, qualifier in enumerate(said):
        found = way[level]
        if qualifier is None:
            finer.append(Qualifier(type=found.type) if None not in finer and dice.random() < 0.4 else None)
            continue
        between = [each for each in reference.walk_up(found.type) if reference.below_or_same(each, qualifier.type)]
        type = dice.choice(between)
        named = bool(qualifier.attribute)
        ends_early = level == n and None in finer
        if level and not named and not ends_early and dice.random() < 0.5:
            named = True
        finer.append(
            Qualifier(type=type, attribute=found.attribute, elements=found.elements) if named else Qualifier(type=type)
        )
    target = finer.pop()
    assert target is not None
    before = [each for each in finer if each is not None]
    if not before:
        return Pattern(head=target.type)
    return Pattern(head=before[0].type, qualifiers=(*before[1:], target))


@seeds(range(4000, 4050), range(4000, 4200))
def test_printed_patterns_read_back(seeds: range) -> None:
    """Those that can be written: of an attribute, patterns say no more than the type to the left declares."""
    read = total = 0
    for world in worlds(seeds):
        for _ in range(10):
            pattern, problems = world.pattern(), Problems()
            text = print_pattern(pattern, world.types)
            again = read_pattern(text, world.types, problems)
            assert (
                again == pattern if again else {each.code.code for each in problems} <= {"INT202", "INT203", "INT204"}
            )
            read += again is not None
            total += 1
    assert read > 0.6 * total
