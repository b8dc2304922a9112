"""Contexts augmented at random: what those below them do stays as it was, and would not without the rules put in."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from situ.contexts.compatibility import changed_event_types
from situ.contexts.model import IDENTITY, KEEP, Context, Conversion, Direction, Expression, Pattern, Rule
from situ.contexts.patterns import Traversal
from situ.contexts.resolve_rules import RuleSet, converted_places, resolve_event_type
from situ.contexts.table import Contexts
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import transformations
from situ.contexts.versions import KeepRule, as_root, former_types, keep_below, with_contexts, with_mappings
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import NameScope, Variable
from situ.lang.problems import Problems
from situ.lang.records import replace
from situ.lang.types.model import STRING, Attribute, Struct
from situ.lang.types.table import Types
from tests.property.contexts.test_resolve_rules import World, worlds
from tests.property.contexts.test_transformation import outcome
from tests.transformations import ENVELOPE, Case, CaseGenerator, generated_case, make_attributes
from tests.volume import seeds


def chain_of(context: Context) -> Contexts:
    return Contexts(context.chain)


def augmented(contexts: Contexts, id: str, rules: list[Rule]) -> Contexts:
    """A context with more rules, of patterns that it does not have yet."""
    context = contexts.by_id[id]
    known = {(rule.direction, rule.pattern) for rule in context.rules}
    fresh = {(rule.direction, rule.pattern): rule for rule in rules if (rule.direction, rule.pattern) not in known}
    added = [replace(rule, context=id, order=len(context.rules) + number) for number, rule in enumerate(fresh.values())]
    return with_contexts(contexts, {id: replace(context, rules=(*context.rules, *added))})


# ── which rule converts what ──────────────────────────────────────────────────────────────────────


def winners(context: Context, world: World) -> Mapping[Traversal, tuple[str, str]]:
    rules = RuleSet.of(context, Direction.OUT)
    places = (
        each for event in world.events for each in converted_places(resolve_event_type(event, rules, world.types))
    )
    return {each.path: (str(each.rule.pattern), each.rule.function) for each in places if each.rule is not None}


def named(contexts: Contexts, dice: random.Random) -> Contexts:
    """Each rule with a function of its own, so that it can be seen which one it was."""
    made = {
        id: replace(each, rules=tuple(_named(rule, id, dice) for rule in each.rules))
        for id, each in contexts.by_id.items()
    }
    return with_contexts(contexts, made)


def _named(rule: Rule, id: str, dice: random.Random) -> Rule:
    return rule if rule.function == KEEP else replace(rule, function=f"{id}_{dice.randrange(10**9)}")


def resolved_alike(seeds: range) -> tuple[int, int, int]:
    """How many changes there were, how many descendants would have changed, and how many patterns were seen before."""
    changes = would = seen = 0
    for world in worlds(seeds):
        for _ in range(4):
            old = named(chain_of(world.context()), world.dice)
            below = sorted(old.by_id.keys() - {"grandchild"}) if "grandchild" in old.by_id else ["root"]
            id = world.dice.choice(below)
            known = [rule.pattern for each in old for rule in each.rules]
            patterns = [
                world.dice.choice(known) if world.dice.random() < 0.3 else world.pattern()
                for _ in range(world.dice.randint(1, 4))
            ]
            rules = [
                Rule(direction=Direction.OUT, pattern=pattern, function=f"new_{number}")
                for number, pattern in enumerate(patterns)
            ]
            new = augmented(old, id, rules)
            after, kept = keep_below(old, new, {id})
            for each in after:
                if each.id != id and any(above.id == id for above in each.chain):
                    was = winners(old.by_id[each.id], world)
                    assert winners(each, world) == was
                    would += winners(new.by_id[each.id], world) != was
            assert winners(after.by_id[id], world) == winners(new.by_id[id], world)
            changes += 1
            seen += any(each.rule.function != KEEP for each in kept)
    return changes, would, seen


@seeds(range(20), range(1_000, 6_000))
def test_new_rules_above_convert_nothing_below(seeds: range) -> None:
    changes, would, seen = resolved_alike(seeds)
    assert would > changes / 10
    assert seen > len(seeds) / 30


# ── what comes out ────────────────────────────────────────────────────────────────────────────────


def augmentations(seeds: range) -> Iterator[tuple[int, Contexts, Contexts, str]]:
    """Contexts with at least one between root and the last, and the same with rules added to one above the last."""
    for seed in seeds:
        case = generated_case(seed)
        if case is None or not case.context.types_of(case.direction).events:
            continue
        old = chain_of(case.context)
        dice = random.Random(seed)
        id = dice.choice([each.id for each in case.context.chain][1:])
        more = CaseGenerator(seed)
        more.types = dict(case.types.types)
        rules = []
        for _ in range(3):
            rules += more._rules(case.types, case.direction, list(case.events))
        visible = {rule.pattern.target for rule in rules}
        functions = [each for above in old for each in above.functions.values() if each.parameter.type in visible]
        drawn = []
        for rule in rules:
            fit = [each.name for each in functions if each.parameter.type == rule.pattern.target]
            drawn.append(replace(rule, function=dice.choice([*fit, IDENTITY])))
        yield seed, old, augmented(old, id, drawn), id


@seeds(range(40), range(250))
def test_what_comes_out_below_is_what_came_out_before(seeds: range) -> None:
    """Without the rules put in it would not be, now and then."""
    would, kept_in = 0, 0
    for seed, old, new, id in augmentations(seeds):
        after, kept = keep_below(old, new, {id})
        kept_in += bool(kept)
        for each in after:
            if each.id == id or not any(above.id == id for above in each.chain):
                continue
            before = old.by_id[each.id]
            assert changed_event_types(before, each) == (), (seed, each.id)
            for direction in Direction:
                was = transformations(before, direction, Problems())
                found = transformations(each, direction, Problems())
                assert {name: way.node for name, way in found.items()} == {name: way.node for name, way in was.items()}
            would += changed_event_types(before, new.by_id[each.id]) != ()
    assert would > len(seeds) / 25
    assert kept_in >= would


@seeds(range(30), range(100))
def test_rules_put_in_tell_what_they_are_against(seeds: range) -> None:
    found: list[KeepRule] = []
    for _, old, new, id in augmentations(seeds):
        found += keep_below(old, new, {id})[1]
    assert all(each.rule.kept and each.rule.pattern == each.against.pattern for each in found)
    assert any("->" in each.instead for each in found)
    assert any(each.instead == "no rule" for each in found)


# ── replaced types ────────────────────────────────────────────────────────────────────────────────


def replacements(seeds: range) -> Iterator[tuple[int, Case, Struct]]:
    """Cases whose events hold a struct that can be replaced, and the struct."""
    for seed in seeds:
        case = generated_case(seed)
        if case is None or case.direction is Direction.IN:
            continue
        dice = random.Random(seed)
        held = [
            each
            for each in case.types.types.values()
            if isinstance(each, Struct) and each.name.startswith("S") and each.attributes and not each.supers
        ]
        lonely = [each for each in held if len(case.types.subtypes(each)) == 1]
        if lonely:
            yield seed, case, dice.choice(lonely)


def replaced(root: Context, struct: Struct, extra: str) -> tuple[Context, Context]:
    """Root with one more attribute in a struct, wherever it stands, and what it was as a context over that."""
    more = Attribute(name=extra, type=STRING)
    grown = Struct(struct.name, (*struct.attributes, more))
    declared = Types(types={**root.types.types, struct.name: grown}, events=root.types.events, units=root.types.units)
    types, _ = former_types(root.types, declared, frozenset({struct.name}))
    base = replace(root, types=types, functions={}, rules=(), mappings=())
    after = types.types[struct.name]
    assert isinstance(after, Struct)
    scope = NameScope(types=types, units=types.units)

    def function(name: str, parameter: Struct, result: Struct, text: str) -> Conversion:
        variables = Variable(type=parameter), Variable(type=result)
        expression = Expression(text=text)
        return Conversion(name=name, parameter=variables[0], result=variables[1], expression=expression, scope=scope)

    def fields(more: str = "") -> str:
        copied = [f"value.{each.name} AS {each.name}" for each in struct.attributes]
        return ", ".join([*copied, f"'new' AS {more}"] if more else copied)

    functions = {
        "forth": function("forth", struct, after, f"struct({fields(more=extra)})"),
        "back": function("back", after, struct, f"struct({fields()})"),
    }
    was, own = former_types(types, root.types, frozenset({struct.name}))
    name = f"root.v{9 - len(extra)}"
    rules = (
        Rule(direction=Direction.IN, pattern=Pattern(head=struct), function="forth", context=name),
        Rule(direction=Direction.OUT, pattern=Pattern(head=after), function="back", context=name),
    )
    former = Context(id=name, parent=base, types=was, own=own, functions=functions, rules=rules)
    return base, with_mappings(former)


@seeds(range(40), range(220))
def test_contexts_that_know_the_old_type_get_what_they_got(seeds: range) -> None:
    """Also if what replaced it is replaced again; and what is new is there for those who know it."""
    compared = 0
    for seed, case, struct in replacements(seeds):
        root = case.context.root
        base, former = replaced(root, struct, "y")
        newer = base.types.types[struct.name]
        assert isinstance(newer, Struct)
        last, between = replaced(base, newer, "yy")
        over = replace(former, parent=as_root(between))
        chain = list(case.context.chain)[:-1]
        below: Context = replace(as_root(over), functions=root.functions, rules=root.rules)
        for each in reversed(chain):
            below = replace(each, parent=below)
        old = transformations(case.context, case.direction, Problems())
        new = transformations(below, case.direction, Problems())
        ways = {name: transformations(each, Direction.IN, Problems()) for name, each in (("1", over), ("2", between))}
        assert last.types.types[struct.name] != newer
        for name, way in old.items():
            if name not in ways["1"]:
                continue
            assert name in new, (seed, name)
            dice = random.Random(seed)
            for _ in range(3):
                data = make_attributes(dice, way.source, case.types)
                try:
                    forth = Converter(ways["1"][name]).data(ENVELOPE, data)
                except FAILURES:
                    continue
                expected = outcome(Converter(way).data, ENVELOPE, data)
                found = outcome(Converter(new[name]).data, ENVELOPE, forth)
                assert found == expected, (seed, name, data, forth)
                compared += forth != data
    assert compared > len(seeds) / 5
