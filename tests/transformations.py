"""Generated types, contexts and events, for tests of what transformations do.

A case is one context with one direction, and event types that come through it. Types have units, supertypes and lists;
rules are made for the types there are, functions by what the rules need, and the target types after what comes of that.
So most cases pass the checks, and what passes must work for every event.
"""

from __future__ import annotations

import datetime as dt
import decimal
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from situ.contexts.model import (
    IDENTITY,
    ROOT,
    Context,
    Conversion,
    Direction,
    EventMapping,
    Expression,
    FromDefault,
    FromExpression,
    FromPath,
    Origin,
    Path,
    Rule,
)
from situ.contexts.patterns import read_pattern
from situ.contexts.resolve_rules import ResolvedPlace, RuleSet, resolve_event_type
from situ.event.row import BadRow, Row
from situ.lang.expr.checker.check import check
from situ.lang.expr.scope import NameScope, Variable, event_scope
from situ.lang.problems import Problems, SituError
from situ.lang.records import replace
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.layout import columns
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    POINT,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Named,
    Struct,
    Type,
    combine,
    is_subtype,
    plain,
)
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, Unit, Units
from situ.stages.interpret import Interpretation

UNITS = Units({"EUR": "currency", "USD": "currency"})
DIMENSIONS = (("m", "km", "cm", "ft"), ("s", "h"), ("degC", "degF", "K"), ("EUR", "USD"))
SINGLE: tuple[Type, ...] = (
    BOOLEAN, INT, LONG, DOUBLE, DOUBLE, STRING, BYTES, DATE, TIMESTAMP, DURATION, Decimal(9, 2), Decimal(18, 4)
)  # fmt: skip
NAMES = "abcdefgh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A context, and the event types that may come through it."""

    context: Context
    direction: Direction
    events: tuple[Struct, ...]

    @property
    def types(self) -> Types:
        return self.context.types_of(self.direction)


class CaseGenerator:
    """Makes one case from a seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.types: dict[str, Named | Struct] = {
            "Tag": Named("Tag", STRING),
            "Mark": Named("Mark", Named("Tag", STRING)),
        }
        self.added: dict[str, Named | Struct] = {}
        self.functions: dict[str, Conversion] = {}
        self.late: dict[str, Conversion] = {}
        self.shared: list[Attribute] = []
        self.made = 0

    def case(self, towards: Direction | None = None) -> Case:
        layers: list[list[Struct]] = [[]]
        for layer in range(self.dice.randrange(1, 4)):
            layers.append([self._struct(f"S{layer}{number}", layers) for number in range(self.dice.randrange(1, 4))])
        events: list[Struct] = []
        for number in range(self.dice.randrange(1, 3)):
            supers = tuple(self.dice.sample(events, 1)) if events and self.dice.random() < 0.4 else ()
            events.append(self._struct(f"E{number}", layers, supers))
        direction = self.dice.choice(list(Direction))
        return self._case(events, towards or direction)

    def case_out_of(self, root: Types, events: list[Struct]) -> Case:
        """A case about the types of a root that is there already."""
        self.types = {each.name: each for each in root.declared}
        self.made = 100  # types that are added here are others than those that the root got
        return self._case(events, Direction.OUT)

    def _case(self, events: list[Struct], direction: Direction) -> Case:
        table = self._table(self.types, events)
        rules = self._rules(table, direction, events)
        chain = self._chain(direction, events, rules)
        return Case(context=chain, direction=direction, events=tuple(events))

    # ── types ──

    def _struct(self, name: str, layers: list[list[Struct]], supers: tuple[Struct, ...] = ()) -> Struct:
        same = [each for each in self.types.values() if isinstance(each, Struct) and each.name[:2] == name[:2]]
        if name[0] == "S" and same and self.dice.random() < 0.5:
            supers = tuple(self.dice.sample(same, 1 + (len(same) > 1 and self.dice.random() < 0.3)))
        taken: dict[str, Attribute] = {}
        for above in supers:
            for attribute in above.attributes:
                if taken.setdefault(attribute.name, attribute) != attribute:
                    supers = supers[:1]
        inherited = {attribute.name for above in supers for attribute in above.attributes}
        free = [each for each in NAMES if each not in inherited]
        names = self.dice.sample(free, min(len(free), self.dice.randrange(0 if supers else 1, 4)))
        own = [self._attribute(each, layers) for each in names]
        own.extend(self._narrowed(each) for each in taken.values() if each.name in inherited)
        made = Struct(name, combine(supers, own), supers)
        self.types[name] = made
        return made

    def _narrowed(self, attribute: Attribute) -> Attribute:
        """The attribute of a supertype, which may be declared again with a subtype, and as always there."""
        if self.dice.random() > 0.2:
            return attribute
        below = [each for each in self.types.values() if isinstance(each, Struct) and attribute.type in each.supers]
        type = self.dice.choice([attribute.type, *below])
        return replace(attribute, type=type, optional=attribute.optional and self.dice.random() < 0.5)

    def _attribute(self, name: str, layers: list[list[Struct]]) -> Attribute:
        type = self._type(layers)
        unit = self._unit(type)
        optional = self.dice.random() < 0.3
        return Attribute(name=name, type=type, unit=unit, optional=optional)

    def _type(self, layers: list[list[Struct]]) -> Type:
        structs: list[Type] = [each for layer in layers for each in layer]
        chance = self.dice.random()
        if structs and chance < 0.45:
            type = self.dice.choice(structs)
        elif chance < 0.55:
            type = self.types[self.dice.choice(["Tag", "Mark"])]
        elif chance < 0.6:
            type = POINT
        else:
            type = self.dice.choice(SINGLE)
        return ListOf(type) if self.dice.random() < 0.2 else type

    def _unit(self, type: Type) -> Unit:
        inner = type.element if isinstance(type, ListOf) else type
        numeric = inner in (INT, LONG, DOUBLE) or isinstance(inner, Decimal)
        if (numeric and self.dice.random() < 0.5) or (inner == POINT and self.dice.random() < 0.8):
            choices = DIMENSIONS[:1] if inner == POINT else DIMENSIONS
            return UNITS.parse(self.dice.choice(self.dice.choice(choices)))
        if isinstance(inner, Struct) and inner != POINT and self.dice.random() < 0.1:
            return UNITS.parse(self.dice.choice(["EUR", "USD"]))
        return NO_UNIT

    def _table(self, types: dict[str, Named | Struct], events: Iterable[Struct]) -> Types:
        return Types(types=types, events=frozenset(each.name for each in events), units=UNITS)

    # ── rules and functions ──

    def _rules(self, types: Types, direction: Direction, events: list[Struct]) -> list[Rule]:
        self.shared = [
            each
            for each in events[0].attributes
            if not each.optional and all(event.attribute(each.name) == each for event in events)
        ]
        rules: list[Rule] = []
        for _ in range(self.dice.randrange(0, 6)):
            text = self._pattern(types, events)
            pattern = read_pattern(text, types, Problems())
            if pattern is None:
                continue
            function = IDENTITY if self.dice.random() < 0.25 else self._function(pattern.target, types)
            rules.append(Rule(direction=direction, pattern=pattern, function=function, order=len(rules)))
        return rules

    def _pattern(self, types: Types, events: list[Struct]) -> str:
        if self.dice.random() < 0.45:
            above = {event.name for event in events}
            below = [name for name in self.types if name not in above]
            name = self.dice.choice([*below, "Point", "string", "double", "timestamp"])
            return f"[{name}]" if self.dice.random() < 0.1 else name
        parts: list[str] = [self.dice.choice(events).name]
        left: Type = types.types[parts[0]]
        for _ in range(self.dice.randrange(1, 4)):
            if not isinstance(left, Struct) or not left.attributes:
                break
            attribute = self.dice.choice(left.attributes)
            left = attribute.type.element if isinstance(attribute.type, ListOf) else attribute.type
            if self.dice.random() < 0.3:
                left = self.dice.choice(types.subtypes(left))
                parts.append(f":{left}")
            else:
                parts.append(attribute.name + ("[]" if isinstance(attribute.type, ListOf) else ""))
        return ".".join(parts)

    def _function(self, parameter: Type, types: Types) -> str:
        name = f"f{len(self.functions)}"
        result, text = self._body(parameter, types)
        unit = UNITS.parse("m") if plain(result) == DOUBLE and self.dice.random() < 0.3 else NO_UNIT
        self.functions[name] = self._conversion(name, Variable(type=parameter), Variable(type=result, unit=unit), text)
        return name

    def _conversion(self, name: str, parameter: Variable, result: Variable, text: str) -> Conversion:
        scope = NameScope(types=Types(types={**self.types, **self.added}, units=UNITS), units=UNITS)
        return Conversion(
            name=name,
            parameter=parameter,
            result=result,
            expression=Expression(text=text),
            nulls=parameter.type == STRING and self.dice.random() < 0.2,
            scope=scope,
        )

    def _body(self, parameter: Type, types: Types) -> tuple[Type, str]:
        bare = plain(parameter)
        match bare:
            case Struct():
                return self._struct_body(parameter, bare, types)
            case ListOf():
                return self.dice.choice([(parameter, "filter(value, x -> x IS NOT NULL)"), (LONG, "size(value)")])
            case Decimal():
                return parameter, "value"
        shared = [each for each in self.shared if plain(each.type) == bare]
        if shared and bare in (STRING, DOUBLE) and self.dice.random() < 0.5:
            name = self.dice.choice(shared).name
            return bare, f"value || event.{name}" if bare == STRING else f"value + event.{name}"
        options: dict[Type, list[tuple[Type, str]]] = {
            DOUBLE: [(DOUBLE, "value * 2 + 1"), (DOUBLE, "1 / value"), (DOUBLE, "sqrt(value)"), (STRING, "'n'")],
            INT: [(LONG, "value + 1"), (DOUBLE, "value / 2"), (DOUBLE, "10 / value")],
            LONG: [(LONG, "value * 3"), (DOUBLE, "value / 2")],
            STRING: [
                (STRING, "upper(value)"),
                (STRING, "coalesce(value, 'x') || event.source"),
                (LONG, "length(value)"),
            ],
            TIMESTAMP: [(LONG, "epoch_ms(value)"), (TIMESTAMP, "value + DURATION 'PT1S'")],
        }
        return self.dice.choice(options.get(bare, [(parameter, "value"), (STRING, "'x'")]))

    def _struct_body(self, parameter: Type, struct: Struct, types: Types) -> tuple[Type, str]:
        chance = self.dice.random()
        if chance < 0.2:
            return parameter, "value"
        if chance < 0.4:
            result = self.dice.choice([each for each in types.subtypes(struct) if isinstance(each, Struct)])
            fields = [
                (each.name, f"value.{each.name}" if struct.attribute(each.name) == each else self._literal(each.type))
                for each in result.attributes
                if struct.attribute(each.name) == each or not each.optional
            ]
            if all(text for _, text in fields) and fields:
                return result, f"struct({', '.join(f'{text} AS {name}' for name, text in fields)})"
        kept = [each for each in struct.attributes if self.dice.random() < 0.7] or list(struct.attributes[:1])
        self.made += 1
        result = Struct(f"R{self.made}", tuple(kept) or (Attribute(name="n", type=STRING),))
        self.added[result.name] = result
        if not kept:
            return result, "struct('n' AS n)"
        return result, f"struct({', '.join(f'value.{each.name} AS {each.name}' for each in reversed(kept))})"

    def _literal(self, type: Type) -> str:
        bare = plain(type)
        options: dict[Type, str] = {BOOLEAN: "TRUE", DOUBLE: "1.5", LONG: "7", INT: "7", STRING: "'s'"}
        if isinstance(bare, Decimal):
            return "1"
        return options.get(bare, "") if type == bare else ""

    # ── the target, and the contexts ──

    def _chain(self, direction: Direction, events: list[Struct], rules: list[Rule]) -> Context:
        """Root, and one or two contexts below it, over which rules and functions are spread."""
        between = self._between_units()
        ids = ["c"] if self.dice.random() < 0.5 else ["p", "c"]
        rules = [replace(rule, context=self.dice.choice(ids)) for rule in rules]
        functions: dict[str, dict[str, Conversion]] = {id: {} for id in (ROOT, *ids)}
        for name, function in {**self.functions, **between}.items():
            functions[self.dice.choice([ROOT, *ids[:1]])][name] = function

        def build(root: Types, own: Types, mappings: tuple[EventMapping, ...]) -> Context:
            made = Context(id=ROOT, types=root, functions=functions[ROOT])
            for id in ids:
                last = id == ids[-1]
                made = Context(
                    id=id,
                    parent=made,
                    types=own,
                    mappings=mappings if last else (),
                    rules=tuple(rule for rule in rules if rule.context == id),
                    functions=functions[id],
                )
            return made

        everything = self._table({**self.types, **self.added}, events)
        draft = build(everything, everything, ())
        mappings = self._mappings(draft, direction, events)
        functions[ids[-1]].update(self.late)
        targets = {mapping.target.name for mapping in mappings}
        out = direction is Direction.OUT
        own = {**self.types, **self.added}
        there = Types(types=own, events=frozenset({*(each.name for each in events), *targets}), units=UNITS)
        if out:
            return build(self._table(self.types, events), there, mappings)
        hidden = self._leaves() if self.dice.random() < 0.5 else set()
        known = {name: type for name, type in own.items() if name not in hidden}
        return build(Types(types=known, events=frozenset(targets), units=UNITS), there, mappings)

    def _leaves(self) -> set[str]:
        """Subtypes that nothing else is made of: the other side need not know them."""
        used: set[str] = set()
        for each in (*self.types.values(), *self.added.values()):
            if isinstance(each, Struct):
                used.update(above.name for above in each.supers)
                used.update(str(attribute.type).strip("[]") for attribute in each.attributes)
        results = {str(function.result.type).strip("[]") for function in self.functions.values()}
        results |= {str(function.parameter.type).strip("[]") for function in self.functions.values()}
        return {
            name
            for name, each in self.types.items()
            if isinstance(each, Struct) and each.supers and name not in used | results and name[0] == "S"
        }

    def _between_units(self) -> dict[str, Conversion]:
        found: dict[str, Conversion] = {}
        for source, target in (("EUR", "USD"), ("USD", "EUR"), *self.dice.sample([("m", "ft"), ("km", "m")], 1)):
            name = f"{source}_to_{target}"
            units = (UNITS.parse(source), UNITS.parse(target))
            found[name] = self._conversion(
                name, Variable(type=DOUBLE, unit=units[0]), Variable(type=DOUBLE, unit=units[1]), "value * 1.09"
            )
        return found

    def _mappings(self, draft: Context, direction: Direction, events: list[Struct]) -> tuple[EventMapping, ...]:
        found = []
        for event in events:
            if self.dice.random() < 0.15:
                continue
            place = resolve_event_type(event, RuleSet.of(draft, direction), draft.types)
            target = self._target(place, event, draft, f"F{event.name[1:]}")
            attributes, more = self._attributes(event, draft, direction)
            more = [each for each in more if target.attribute(each.name) is None]
            attributes = {
                path: origin for path, origin in attributes.items() if path[0] in {each.name for each in more}
            }
            target = replace_attributes(target, (*target.attributes, *more))
            self.added[target.name] = target
            found.append(
                EventMapping(direction=direction, source=event, target=target, attributes=attributes, context=draft.id)
            )
        return tuple(found)

    def _target(self, place: ResolvedPlace, struct: Struct, context: Context, name: str) -> Struct:
        """A struct for what comes of a place: with what functions give, and small changes where they are possible."""
        attributes = []
        for attribute in struct.attributes:
            if self.dice.random() < 0.1:
                continue
            attributes.append(self._target_attribute(place.attributes[attribute.name][0], attribute, context))
        for extra in self.dice.sample("xyz", self.dice.randrange(0, 2)):
            if struct.attribute(extra) is not None:
                continue
            attributes.append(Attribute(name=extra, type=INT, optional=self.dice.random() < 0.5, default=None))
            if not attributes[-1].optional:
                attributes[-1] = replace(attributes[-1], default=5)
        made = Struct(name, tuple(attributes))
        self.added[name] = made
        return made

    def _target_attribute(self, place: ResolvedPlace, attribute: Attribute, context: Context) -> Attribute:
        type, unit = self._target_type(place, attribute.type, attribute.unit, context)
        optional = attribute.optional or self.dice.random() < 0.1
        if optional and self.dice.random() < 0.1:
            optional = False
        default: Any = None
        if plain(type) == STRING and self.dice.random() < 0.2:
            default = "none"
        return Attribute(name=attribute.name, type=type, unit=unit, optional=optional, default=default)

    def _target_type(self, place: ResolvedPlace, type: Type, unit: Unit, context: Context) -> tuple[Type, Unit]:
        if place.rule is not None:
            function = context.conversion(place.rule.function)
            return (type, unit) if function is None else (function.result.type, unit if unit.labels else NO_UNIT)
        if isinstance(type, Struct) and type != POINT:
            if unit.labels and self.dice.random() < 0.5:
                return type, self._relabelled(type, unit)
            if self.dice.random() < 0.5:
                self.made += 1
                return self._target(place, type, context, f"T{self.made}"), unit
            return type, unit
        if isinstance(type, ListOf):
            element, unit = self._target_type(place.elements[0], type.element, unit, context)
            return ListOf(element), unit
        if type == INT and self.dice.random() < 0.3:
            wider: tuple[Type, ...] = (LONG, DOUBLE, Decimal(18, 4))
            type = self.dice.choice(wider)
        if unit != NO_UNIT and self.dice.random() < 0.6:
            unit = self._other_unit(type, unit)
        return type, unit

    def _relabelled(self, type: Struct, unit: Unit) -> Unit:
        """The other currency, with a function that leads there for values of this type."""
        other = UNITS.parse("USD" if str(unit) == "EUR" else "EUR")
        name = f"{type.name}_to_{other}"
        parameter, result = Variable(type=type, unit=unit), Variable(type=type, unit=other)
        self.late[name] = self._conversion(name, parameter, result, "value")
        return other

    def _other_unit(self, type: Type, unit: Unit) -> Unit:
        same = next(names for names in DIMENSIONS if str(unit) in names)
        if type in (INT, LONG) and str(unit) not in ("km", "m"):
            return unit
        if type in (INT, LONG):
            return UNITS.parse("cm")
        if same == DIMENSIONS[3] and type != DOUBLE:
            return unit
        return UNITS.parse(self.dice.choice(same))

    def _attributes(
        self, event: Struct, context: Context, direction: Direction
    ) -> tuple[dict[Path, Origin], list[Attribute]]:
        """Attributes of the target that come from elsewhere."""
        found: dict[Path, Origin] = {}
        more: list[Attribute] = []
        covered = resolve_event_type(event, RuleSet.of(context, direction), context.types, covered=True)
        for attribute in event.attributes:
            if self.dice.random() > 0.15:
                continue
            path, place, last, optional = (
                [attribute.name],
                covered.attributes[attribute.name][0],
                attribute,
                attribute.optional,
            )
            while isinstance(last.type, Struct) and last.type.attributes and self.dice.random() < 0.6:
                last = self.dice.choice(last.type.attributes)
                place = place.attributes[last.name][0]
                path.append(last.name)
                optional = optional or last.optional
            function = context.conversion(place.rule.function) if place.rule is not None else None
            type = last.type if function is None else function.result.type
            name = f"from_{'_'.join(path)}"
            more.append(Attribute(name=name, type=type, unit=NO_UNIT if function else last.unit, optional=True))
            found[(name,)] = FromPath(path=tuple(path))
        if self.dice.random() < 0.2:
            more.append(Attribute(name="always", type=LONG))
            found["always",] = FromDefault(value=42)
        if self.dice.random() < 0.3:
            node = check("event.source || ':' || event.id", event_scope(event, types=context.types)).tree()
            more.append(Attribute(name="computed", type=STRING))
            found["computed",] = FromExpression(text="event.source || ':' || event.id", node=node)
        return found, more


def replace_attributes(struct: Struct, attributes: tuple[Attribute, ...]) -> Struct:
    return Struct(struct.name, attributes, struct.supers)


# ── values ────────────────────────────────────────────────────────────────────────────────────────

ENVELOPE = {
    "id": "17",
    "source": "gate/4",
    "type": "E",
    "time": dt.datetime(2026, 11, 1, 8, 30, tzinfo=dt.UTC),
    "confidence": None,
}


def make_value(dice: random.Random, type: Type, types: Types) -> Any:
    """A value of the type as the engines hold it, some of subtypes."""
    bare = plain(type)
    match bare:
        case Struct():
            return make_struct(dice, bare, types)
        case ListOf(element=element):
            return [
                None if dice.random() < 0.15 else make_value(dice, element, types) for _ in range(dice.randrange(0, 4))
            ]
        case Decimal(precision=precision, scale=scale):
            digits = dice.choice([0, 1, 12345, 10**precision - 1, dice.randrange(10**precision)])
            return decimal.Decimal(dice.choice([1, -1]) * digits if digits else 0).scaleb(-scale)
    options: dict[Type, list[Any]] = {
        BOOLEAN: [True, False],
        INT: [0, 1, -7, 40_000_000, 2**31 - 1],
        LONG: [0, 1, -7, 2**40, 2**63 - 1],
        DOUBLE: [0.0, 1.0, -2.5, 3082.0, 1e-7, 1.7e308, dice.uniform(-1000, 1000)],
        STRING: ["", "a", "straße", "x" * 20, 'q"\\'],
        BYTES: [b"", b"\x00\xff"],
        DATE: [dt.date(2026, 11, 1), dt.date(1, 1, 1)],
        TIMESTAMP: [dt.datetime(2026, 11, 1, 8, 30, 0, 500_000, tzinfo=dt.UTC), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)],
        DURATION: [dt.timedelta(), dt.timedelta(days=1, seconds=3, microseconds=5), -dt.timedelta(hours=2)],
    }
    return dice.choice(options[bare])


def make_struct(dice: random.Random, declared: Struct, types: Types) -> dict[str, Any]:
    exact = dice.choice([each for each in types.subtypes(declared) if isinstance(each, Struct)])
    value = make_attributes(dice, exact, types)
    return value if exact == declared else {TYPE_KEY: exact.name, **value}


def make_attributes(dice: random.Random, struct: Struct, types: Types) -> dict[str, Any]:
    return {
        each.name: make_value(dice, each.type, types)
        for each in struct.attributes
        if not each.optional or dice.random() < 0.7
    }


def generated_case(seed: int) -> Case | None:
    """The case of a seed; None for the few whose types have too many places."""
    try:
        return CaseGenerator(seed).case()
    except SituError:
        return None


def laid_out(value: Any, type: Type, types: Types, own: Type | None = None) -> Any:
    """A value as engines hold it that know no subtypes: structs with all columns of their layout.

    ``own`` is the type that the value has unless it says another, where a subtype declares its attribute narrower.
    """
    bare, own = plain(type), plain(own or type)
    if value is None or not isinstance(bare, Struct | ListOf):
        return value
    if isinstance(bare, ListOf):
        assert isinstance(own, ListOf)
        return [laid_out(item, bare.element, types, own.element) for item in value]
    exact = types.get(value[TYPE_KEY]) if TYPE_KEY in value else own
    assert isinstance(exact, Struct)
    found: dict[str, Any] = {}
    for column in columns(bare, types):
        attribute = exact.attribute(column.attribute)
        if column.name == TYPE_KEY:
            found[TYPE_KEY] = value.get(TYPE_KEY)
        elif attribute is not None and attribute.unit == column.unit and is_subtype(attribute.type, column.type):
            found[column.name] = laid_out(value.get(column.attribute), column.type, types, attribute.type)
        else:
            found[column.name] = None
    return found


def generated_pair(seed: int) -> tuple[Case, Case] | None:
    """A context with a way into root, and another with a way out of the same root."""
    try:
        generator = CaseGenerator(seed)
        inbound = generator.case(Direction.IN)
        root = inbound.context.root.types
        events = [each for name in sorted(root.events) if isinstance(each := root.types[name], Struct)]
        return (inbound, CaseGenerator(seed + 1_000_000).case_out_of(root, events)) if events else None
    except SituError:
        return None


def out_of_root(interpretation: Interpretation, row: Row, context: str) -> Row | BadRow:
    """An event in the terms of a context."""
    found = interpretation.in_terms(row, context)
    if found is None or isinstance(found, BadRow):
        return found or row
    return replace(row, type=found[0], data=found[1], value=None)
